"""How the C library keeps the memory of images that have been dealt with."""

from __future__ import annotations

import ctypes

# Of mallopt, in glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_IMAGE_BYTES = 64 << 20  # a message over this is given back at once
KEPT_BYTES = 256 << 20  # forty images of 1080p


def keep_memory_of_images() -> bool:
    """Let memory that was freed serve the next image instead of going back to the kernel.

    A raw 1080p image takes 6 MB in the middleware and 6 MB in Python. By default glibc gives both
    back and asks for them anew forty times a second; the kernel then clears and maps every page,
    which costs more than all copies of the image together.

    Returns:
        Whether the C library took it; those other than glibc may not know how.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(
        mallopt(M_MMAP_THRESHOLD, LARGEST_IMAGE_BYTES) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
    )
