# To be sourced by bash or zsh: puts the environment of `make setup` and the built package on the
# paths. `. scripts/env.sh`, or `ROS=jazzy . scripts/env.sh`.
# shellcheck shell=bash

# alpamayo_prepend VARIABLE FOLDER...: in front of what is there, less what an earlier call put.
alpamayo_prepend() {
    alpamayo_name=$1
    shift
    alpamayo_value=$(
        eval "alpamayo_old=\${$alpamayo_name-}"
        for alpamayo_folder in "$@"; do printf '%s:' "$alpamayo_folder"; done
        printf '%s' "$alpamayo_old" | awk -v RS=: -v ORS=: -v venv="$alpamayo_root/.venv" \
            -v built="$alpamayo_root/install" 'index($0, venv) != 1 && index($0, built) != 1'
    )
    export "$alpamayo_name=${alpamayo_value%:}"
}

alpamayo_enter() {
    if [ -n "${ROS_DISTRO-}" ] && [ "${PYTHONPATH-}" != "${PYTHONPATH#*/opt/ros/}" ]; then
        echo "error: ROS 2 $ROS_DISTRO is sourced in this shell and must not mix with wheels;" \
            "source install/setup.bash of your colcon workspace, or use a shell without it" >&2
        return 1
    fi
    case ${ROS:-kilted} in
    kilted) alpamayo_suffix= alpamayo_profile=FASTDDS_DEFAULT_PROFILES_FILE ;;
    jazzy) alpamayo_suffix=-jazzy alpamayo_profile=FASTRTPS_DEFAULT_PROFILES_FILE ;;
    *)
        echo "error: ROS=$ROS is not known; use kilted (the default) or jazzy" >&2
        return 1
        ;;
    esac
    alpamayo_venv=$alpamayo_root/.venv$alpamayo_suffix
    alpamayo_built=$alpamayo_root/install$alpamayo_suffix/alpamayo_ros
    if [ ! -e "$alpamayo_venv/fingerprint" ] || [ ! -d "$alpamayo_built" ]; then
        echo "error: nothing is set up for ROS 2 ${ROS:-kilted}; run: make setup ROS=${ROS:-kilted}" >&2
        return 1
    fi
    alpamayo_python=$("$alpamayo_venv/bin/python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    alpamayo_prepend PATH "$alpamayo_venv/bin" "$alpamayo_built/lib/alpamayo_ros"
    alpamayo_prepend PYTHONPATH "$alpamayo_built/lib/$alpamayo_python/site-packages"
    alpamayo_prepend LD_LIBRARY_PATH "$alpamayo_built/lib" # where Fast DDS looks for message types
    alpamayo_prepend AMENT_PREFIX_PATH "$alpamayo_built" "$alpamayo_venv"

    # The wheels' Python puts their libraries on the path and starts itself again, once: with this set
    # it takes that for done, though the paths are new.
    unset _ROS_WHEELS_BOOTSTRAP_COMPLETE

    # Large images need shared memory. Fast DDS 2 (Jazzy) and 3 (Kilted) read different names, and 3
    # warns in every process that has the old one. A value of the user is kept, the empty one too,
    # which switches the profile off.
    eval "export $alpamayo_profile=\"\${$alpamayo_profile-\$alpamayo_root/config/fastdds_images.xml}\""

    # An installed torch-npu is loaded with torch and fails without CANN.
    if [ -z "${ASCEND_HOME_PATH-}${ASCEND_TOOLKIT_HOME-}" ] && [ ! -d /usr/local/Ascend ]; then
        export TORCH_DEVICE_BACKEND_AUTOLOAD=0
    fi
}

if [ -n "${BASH_VERSION-}" ]; then
    eval 'alpamayo_root=${BASH_SOURCE[0]}' # hidden from shells that cannot read it
elif [ -n "${ZSH_VERSION-}" ]; then
    eval 'alpamayo_root=${(%):-%x}'
else
    echo "error: scripts/env.sh is for bash and zsh; start one of them and source it there" >&2
    return 1
fi
alpamayo_root=$(cd "$(dirname "$alpamayo_root")/.." && pwd)
alpamayo_status=0
alpamayo_enter || alpamayo_status=$?
unset alpamayo_root alpamayo_suffix alpamayo_profile alpamayo_venv alpamayo_built alpamayo_python
unset alpamayo_name alpamayo_value
unset -f alpamayo_prepend alpamayo_enter
if [ "$alpamayo_status" != 0 ]; then
    unset alpamayo_status
    # shellcheck disable=SC2317
    return 1
fi
unset alpamayo_status
