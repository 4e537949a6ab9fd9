"""Let the ROS 2 wheels' CMake files name the headers of this environment.

The wheels were built elsewhere and export the header folders of that machine's Python and numpy;
CMake refuses a target whose include folder does not exist. Run with the environment's own Python.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

import numpy as np

# numpy 1 keeps its headers in core, numpy 2 in _core. The longer path goes first.
NUMPY_HEADERS = re.compile(r"/opt/python/[^;\"\s]*/site-packages/numpy/_?core/include")
PYTHON_HEADERS = re.compile(r"/opt/python/[^;\"\s]*/include/python3\.\d+")


def mended(text: str) -> str:
    """The text of a CMake file with this environment's header folders."""
    text = NUMPY_HEADERS.sub(lambda _: np.get_include(), text)
    return PYTHON_HEADERS.sub(lambda _: sysconfig.get_path("include"), text)


def main() -> int:
    """Mend every CMake file below the environment's share folder."""
    for path in Path(sys.prefix, "share").rglob("*.cmake"):
        before = path.read_text(encoding="utf-8")
        after = mended(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
