#!/usr/bin/env bash
# The checks of `make test`, in the environment of `make setup`. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/env.sh

ruff check .
ruff format --check .
mypy
# One thread a process: two test processes already fill two cores.
OMP_NUM_THREADS=1 pytest -n 2 --dist loadfile "$@"
