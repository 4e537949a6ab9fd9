"""Standard streams that whoever started the process has closed."""

from __future__ import annotations

import os
import sys


def occupy_closed_streams() -> None:
    """Put the null device in the place of closed standard streams. Call first in a process.

    Otherwise the next file or socket that is opened gets the number of standard error, and what
    libraries complain of is written into it. Python has None in `sys` for a closed stream, and
    prints to the standard output what is meant for a standard error that is None; `sys.stdout`
    stays None, so that a program can say that nobody will get its result.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)  # as standard streams are
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process lives
