#!/usr/bin/env bash
# The checks of `make test`, in the environment of `make setup`. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/env.sh

ruff check .
ruff format --check .
mypy
# Without real nodes: two test processes, of one thread each, fill two cores. With real nodes: one at
# a time, since a node that waits for another test's cores is late, and lateness is what they judge.
export OMP_NUM_THREADS=1
run() {  # pytest's 5, for no such test, counts as none
    local code=0
    pytest "$@" || code=$?
    [ "$code" = 5 ] || found=yes
    [ "$code" = 0 ] || [ "$code" = 5 ] || exit "$code"
}
found=no
run -n 2 --dist loadfile -m "not process" "$@"
run -m process "$@"
[ "$found" = yes ]
