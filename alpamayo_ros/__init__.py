"""Driving plans from four cameras and odometry with Alpamayo-R1, as a ROS 2 node."""

__version__ = "0.1.0"
