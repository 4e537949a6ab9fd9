"""Faults that tests set in a running node, by the parameter `test.fault`.

Camera loss, odometry loss and jumps of the clock need no help from inside: tests send less, or
something else.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from alpamayo_ros.ros.parameter import ParameterError

PARAMETER = "test.fault"
NONE = "none"
EXCEPTION = "exception"  # every decision raises, as a device that is lost does
OUT_OF_MEMORY = "out_of_memory"  # every decision finds no memory
HANG = "hang"  # a decision waits until the fault is taken away, whoever wants it to stop
DISK_FULL = "disk_full"  # nothing can be written to the black box
FAULTS = (NONE, EXCEPTION, OUT_OF_MEMORY, HANG, DISK_FULL)

SWITCH = "ALPAMAYO_TEST"  # environment variable without which no fault can be set
HANG_POLL_S = 0.02


def require_test(name: str, value: object) -> None:
    """Raise ParameterError for a fault in a node that was not started for tests."""
    if name == PARAMETER and value != NONE and os.environ.get(SWITCH) != "1":
        raise ParameterError(
            f"{PARAMETER}: {value!r} is for tests only; "
            f"a test starts the node with {SWITCH}=1 in its environment"
        )


def strike_decision(fault: Callable[[], str]) -> None:
    """Let a decision fail, or hang for as long as the fault is set.

    Args:
        fault: the fault that is set now.
    """
    if fault() == EXCEPTION:
        raise RuntimeError(f"{PARAMETER}: the device is lost")
    if fault() == OUT_OF_MEMORY:
        raise MemoryError(f"{PARAMETER}: the device is out of memory")
    while fault() == HANG:
        time.sleep(HANG_POLL_S)


def strike_disk(fault: str) -> None:
    """Let the black box find a full disk."""
    if fault == DISK_FULL:
        raise OSError(errno.ENOSPC, f"{PARAMETER}: {os.strerror(errno.ENOSPC)}")
