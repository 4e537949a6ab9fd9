#!/usr/bin/env bash
# torch-npu for the tests of the NPU's path, which run it on a stand-in of Ascend's runtime:
#
#     scripts/setup_npu.sh [kilted|jazzy]
#
# It goes into .npu/, not into the environment: there `import torch` would fail without CANN. About
# 5 s and 600 MB; what is there already is kept.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

requirement=torch-npu==2.13.0 # with the torch of requirements-dev.txt
venv=.venv
[ "${1:-kilted}" = kilted ] || venv=.venv-$1

version=$("$venv/bin/python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
folder=.npu/$version
log=.npu/setup.log
if [ "$(cat "$folder/stamp" 2>/dev/null)" = "$requirement" ]; then
    exit
fi
mkdir -p .npu
exec 9>.npu/setup.lock
flock 9
if [ "$(cat "$folder/stamp" 2>/dev/null)" = "$requirement" ]; then # another one has just made it
    exit
fi
printf 'torch-npu for the tests, into %s ... ' "$folder"
rm -rf "$folder"
if ! "$venv/bin/python" -m pip install -q --no-input --disable-pip-version-check --no-deps \
    --target "$folder" "$requirement" >"$log" 2>&1; then
    echo
    echo "error: pip could not install $requirement: $(grep -m1 '^ERROR' "$log" || echo 'no reason given') (more in $log)" >&2
    exit 2
fi
echo "$requirement" >"$folder/stamp"
echo "$SECONDS s"
