#!/usr/bin/env bash
# Print the Python that the environment is made with: $PYTHON, else the first of 3.10 to 3.13 that
# runs. The ROS 2 wheels exist for these versions.
set -euo pipefail

in_range() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

real_path() { # a virtual environment's python3 gives way to the one that it was made with
    "$1" -c 'import os, sys; print(os.path.realpath(sys.executable))'
}

if [ -n "${PYTHON-}" ]; then
    if ! command -v "$PYTHON" >/dev/null; then
        echo "error: PYTHON=$PYTHON: there is no such program; name another or unset PYTHON" >&2
        exit 2
    fi
    if ! in_range "$PYTHON"; then
        echo "error: PYTHON=$PYTHON is not a Python of 3.10 to 3.13; name another or unset PYTHON" >&2
        exit 2
    fi
    real_path "$PYTHON"
    exit
fi
for candidate in python3 python3.13 python3.12 python3.11 python3.10; do
    if in_range "$candidate"; then
        real_path "$candidate"
        exit
    fi
done
echo "error: no Python of 3.10 to 3.13 is on the path, and ROS 2 wheels exist for no other;" \
    "install one or name it: make setup PYTHON=/path/to/python3.12" >&2
exit 2
