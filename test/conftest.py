"""What every test run has."""

from alpamayo_ros.devices.device import prepare_environment

prepare_environment()  # before any test imports torch

pytest_plugins = ["test.skip_list"]
