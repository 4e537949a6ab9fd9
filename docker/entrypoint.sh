#!/usr/bin/env bash
# The environment of ROS 2 and of the package, then the command, which gets the signals itself.
set -eo pipefail  # ROS's set-up reads unset variables
ascend=/usr/local/Ascend/ascend-toolkit/set_env.sh
if [ -f "$ascend" ]; then . "$ascend"; fi
. "/opt/ros/$ROS_DISTRO/setup.bash"
. /ws/install/setup.bash
exec "$@"
