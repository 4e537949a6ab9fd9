"""Driving plans from four cameras and odometry with Alpamayo-R1, as a ROS 2 node."""

from pkgutil import extend_path

__version__ = "0.1.0"

# The messages are compiled into an install folder. Whoever imports these sources from a checkout or
# from pip's site-packages finds alpamayo_ros.msg in the install folder that is on the path.
__path__ = extend_path(__path__, __name__)
