#!/usr/bin/env bash
# Make everything that the demo and the tests need on a machine without ROS: a virtual environment
# with the ROS 2 wheels, torch and the tools, then the messages and the package built into install/.
#
#     scripts/setup.sh [kilted|jazzy]
#
# What is there already is kept: stamps of what each step was made from are written when it ended.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ros=${1:-kilted}
case $ros in
kilted) suffix= ;;
jazzy) suffix=-jazzy ;;
*)
    echo "error: ROS=$ros is not known; use kilted (the default) or jazzy" >&2
    exit 2
    ;;
esac
venv=.venv$suffix
build=build$suffix
install=install$suffix
log=$build/setup.log
requirements=(requirements.txt requirements-dev.txt "requirements-ros-$ros.txt")

fail() {
    echo "error: $1" >&2
    exit 2
}

# progress NUMBER WHAT: the first half of a line; finished: its second half.
progress() {
    step_start_s=$SECONDS
    printf '[%s/3] %s ... ' "$1" "$2"
}

finished() {
    echo "${1:-$((SECONDS - step_start_s)) s}"
}

# logged COMMAND...: run it with its output in the log only.
logged() {
    "$@" >>"$log" 2>&1
}

check_machine() {
    if [ "$(uname -s) $(uname -m)" != "Linux x86_64" ]; then
        fail "the ROS 2 wheels are for x86-64 Linux, this is $(uname -s) $(uname -m); build with colcon in a ROS 2 distribution instead (README.md)"
    fi
    if [ -n "${ROS_DISTRO-}" ] && [[ ${PYTHONPATH-} == */opt/ros/* ]]; then
        fail "ROS 2 $ROS_DISTRO is sourced in this shell and must not mix with wheels; build with colcon there (README.md), or run this in a shell without it"
    fi
    local tool
    for tool in g++ make flock; do
        command -v "$tool" >/dev/null || fail "$tool is missing; install it (Debian and Ubuntu: apt install g++ make util-linux)"
    done
}

one_at_a_time() {
    mkdir -p "$build"
    exec 9>"$build/setup.lock"
    if ! flock --nonblock 9; then
        echo "another set-up of this checkout is running; waiting for it"
        flock 9
    fi
}

python_version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
}

# A usable environment is kept whatever python3 is now; a named PYTHON of another version is obeyed.
environment_is_usable() {
    [ ! -e "$venv/incomplete" ] && "$venv/bin/python" -c 'import pip' >/dev/null 2>&1 &&
        { [ -z "${PYTHON-}" ] || [ "$(python_version "$PYTHON" 2>/dev/null)" = "$(python_version "$venv/bin/python")" ]; }
}

make_environment() {
    local python
    python=$(scripts/choose_python.sh) || exit 2
    local headers
    headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ -e "$headers/Python.h" ] || fail "the headers of $python are missing; install them (Debian and Ubuntu: apt install python3-dev)"
    progress 1 "Python $(python_version "$python") environment in $venv"
    rm -rf "$venv"
    logged "$python" -m venv "$venv" || fail "$python cannot make a virtual environment; install venv (Debian and Ubuntu: apt install python3-venv), more in $log"
    finished
}

environment_fingerprint() {
    { echo "$PWD/$venv" && python_version "$venv/bin/python" &&
        cat "${requirements[@]}" scripts/mend_ros_wheels.py; } | sha256sum 2>/dev/null
}

# What the messages are compiled from and with.
compiled_fingerprint() {
    { echo "$PWD/$venv" && python_version "$venv/bin/python" &&
        cat "requirements-ros-$ros.txt" msg/* resource/* CMakeLists.txt package.xml; } | sha256sum
}

# The names of modules and data count: links to their files are made by the build.
package_fingerprint() {
    { compiled_fingerprint &&
        find alpamayo_ros launch config -type f ! -name '*.pyc' | sort; } | sha256sum
}

explain_pip() {
    if grep -q 'after connection broken' "$log"; then
        fail "no network: pip cannot reach its package index; connect, or set pip's proxy or index options (more in $log)"
    fi
    fail "pip could not install the packages: $(grep -m1 '^ERROR' "$log" || echo 'no reason given') (more in $log)"
}

install_packages() {
    progress 2 "Packages: ROS 2 ${ros^}, torch, tools (about 90 s and 2 GB the first time)"
    touch "$venv/incomplete" # stays when this is killed half-way: then the environment is made anew
    local status=0
    logged "$venv/bin/python" -m pip install -q --no-input --disable-pip-version-check \
        "${requirements[@]/#/-r}" || status=$?
    rm "$venv/incomplete" # pip itself undoes what it could not finish
    [ "$status" = 0 ] || explain_pip
    logged "$venv/bin/python" scripts/mend_ros_wheels.py || fail "the CMake files of the wheels cannot be mended (more in $log)"
    environment_fingerprint >"$venv/fingerprint"
    finished
}

build_package() {
    progress 3 "Messages and package into $install"
    if ! compiled_fingerprint | cmp -s - "$install/compiled_fingerprint"; then
        rm -rf "$build/alpamayo_ros" "$install" # nothing stale is left
    fi
    rm -f "$install/fingerprint"
    local root=$PWD/$venv made_of
    made_of=$(package_fingerprint) # before the build: a file that comes later is not in it
    PATH=$root/bin:$PATH AMENT_PREFIX_PATH=$root CMAKE_PREFIX_PATH=$root logged \
        colcon --log-base "$build/log" build --symlink-install --paths . \
        --build-base "$build" --install-base "$install" \
        --cmake-args "-DPython3_EXECUTABLE=$root/bin/python" -DBUILD_TESTING=OFF ||
        fail "the package does not build: $(grep -m1 -iE 'error' "$log" || echo 'no reason given') (more in $log)"
    find "$install" -xtype l -delete # links to files that are gone
    compiled_fingerprint >"$install/compiled_fingerprint"
    echo "$made_of" >"$install/fingerprint"
    finished
}

main() {
    check_machine
    unset PYTHONPATH PYTHONHOME # of another environment
    one_at_a_time
    : >"$log"
    if environment_is_usable; then
        progress 1 "Python $(python_version "$venv/bin/python") environment in $venv"
        finished "there"
    else
        make_environment
    fi
    if environment_fingerprint | cmp -s - "$venv/fingerprint"; then
        progress 2 "Packages: ROS 2 ${ros^}, torch, tools"
        finished "there"
    else
        install_packages
    fi
    if package_fingerprint | cmp -s - "$install/fingerprint"; then
        progress 3 "Messages and package in $install"
        finished "there"
    else
        build_package
    fi
}

main
