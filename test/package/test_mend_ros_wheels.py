"""The header folders in the CMake files of the ROS 2 wheels."""

from __future__ import annotations

import runpy
import sys
import sysconfig
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).parents[2] / "scripts" / "mend_ros_wheels.py"
MENDED = runpy.run_path(str(SCRIPT))["mended"]


def test_foreign_header_folders_become_those_of_this_environment():
    site_packages = "/opt/python/cp312-cp312/lib/python3.12/site-packages"
    before = (
        'INTERFACE_INCLUDE_DIRECTORIES "${_IMPORT_PREFIX}/include;'
        "/opt/python/cp312-cp312/include/python3.12;"
        f'{site_packages}/numpy/_core/include;{site_packages}/numpy/core/include"'
    )
    assert MENDED(before) == (
        'INTERFACE_INCLUDE_DIRECTORIES "${_IMPORT_PREFIX}/include;'
        f'{sysconfig.get_path("include")};{np.get_include()};{np.get_include()}"'
    )


def test_a_mended_file_and_other_text_stay_as_they_are():
    text = f'set(a "{np.get_include()};{sysconfig.get_path("include")};/opt/ros/include")'
    assert MENDED(text) == text


def test_no_wheel_of_this_environment_names_a_folder_that_is_missing():
    share = Path(sys.prefix, "share")
    foreign = [path for path in share.rglob("*.cmake") if "/opt/python/" in path.read_text()]
    assert foreign == []
