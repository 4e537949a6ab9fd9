"""Memory of images serves the next ones: counted by the page faults of a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Allocates and fills images of 6 MB, eight at a time, and prints the page faults a round.
PROGRAM = """
import resource, sys
if sys.argv[1] == "kept":
    from alpamayo_ros.ros.allocator import keep_memory_of_images
    assert keep_memory_of_images()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def round():
    images = [bytearray(6_220_800) for _ in range(8)]
    for image in images:
        image[::4096] = image[::4096]
for _ in range(3):
    round()
before = faults()
for _ in range(10):
    round()
print((faults() - before) / 10)
"""


def faults_a_round(how: str) -> float:
    command = [sys.executable, "-c", PROGRAM, how]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_images_after_the_first_come_without_page_faults():
    pages = 8 * 6_220_800 // 4096
    assert faults_a_round("kept") < 0.01 * pages
    assert faults_a_round("plain") > 0.5 * pages  # else it were not worth a line
