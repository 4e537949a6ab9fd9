"""What the command-line tools share: one line and exit code 2 for a user's mistake.

Nothing here imports torch, so that `run` can prepare its environment first.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from alpamayo_ros import __version__
from alpamayo_ros.devices.device import prepare_environment
from alpamayo_ros.limits import Limits, number_text
from alpamayo_ros.streams import occupy_closed_streams
from alpamayo_ros.types import UserError

USAGE_ERROR = 2
INTERRUPTED = 130
TERMINATED = 143
CLOSED_PIPE = 141


class UsageError(UserError):
    """Arguments that do not go together, or name what is not there."""


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, and that knows --version."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_argument("--version", action="version", version=f"%(prog)s {__version__}")

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and the message."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def run(command: Callable[[Sequence[str] | None], int], argv: Sequence[str] | None) -> int:
    """The exit code of a command; what a user can mend becomes one line on standard error."""
    occupy_closed_streams()
    prepare_environment()
    # As Ctrl-C does: leave every block on the way out, so that no process is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        try:
            return command(argv)
        finally:
            _flush_output()
    except BrokenPipeError:
        return CLOSED_PIPE  # whoever read has seen enough
    except (UserError, OSError) as error:
        with suppress(OSError):  # the exit code says it too
            print("error:", " ".join(str(error).splitlines()), file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED


def _flush_output() -> None:
    """Write out what was printed, while it can still be said that this failed.

    Raises:
        BrokenPipeError: whoever read has gone.
        UsageError: it cannot be written, to a full disk for example.
    """
    if sys.stdout is None:  # closed from the start
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        # What is left must not fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise UsageError(f"standard output cannot be written: {error.strerror}") from None


def require_range(option: str, value: float, limits: Limits) -> None:
    """Refuse a number outside its limits.

    Raises:
        UsageError: it is outside, or no number.
    """
    if value not in limits:
        raise UsageError(f"{option} {number_text(value)}: allowed are {limits}")


def claim_folder(output: Path, marker: str, foreign: str) -> None:
    """Make the folder of a program's results, or take one that it has made before.

    Args:
        marker: name of the file that says whose folder it is.
        foreign: what is wrong with a folder that holds other things.

    Raises:
        UsageError: it is no folder, somebody else's, or cannot be written.
    """
    if output.exists() and not output.is_dir():
        raise UsageError(f"--output {output} is no folder")
    if output.is_dir() and any(output.iterdir()) and not (output / marker).exists():
        raise UsageError(f"--output {output} is not empty and {foreign}")
    with writing(output):
        output.mkdir(parents=True, exist_ok=True)
        (output / marker).touch()


@contextmanager
def writing(output: Path) -> Iterator[None]:
    """Whatever the system refuses inside becomes a UsageError that names the output."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"--output {output} cannot be written: {error.strerror}") from None


def check_output(output: str | None) -> None:
    """Refuse an output that `write_json` could not write, before the work that fills it.

    Raises:
        UsageError: there is no such folder, it is write-protected, or the name is a folder's; or
            no file is named and standard output is closed.
    """
    if output is None:
        if sys.stdout is None:
            raise UsageError("standard output is closed: name a file with --output")
        return
    if Path(output).is_dir():
        raise UsageError(f"--output {output} cannot be written: it is a folder; name a file")
    if not Path(output).parent.is_dir():
        raise UsageError(f"--output {output} cannot be written: there is no such folder")
    target = Path(output) if Path(output).exists() else Path(output).parent
    if not os.access(target, os.W_OK):
        raise UsageError(f"--output {output} cannot be written: {target} is write-protected")


def write_json(values: dict[str, Any], output: str | None) -> None:
    """Write an object to a file, or without one to standard output.

    Numbers that are not finite, which JSON does not know, become null.

    Raises:
        UsageError: the file or standard output cannot be written.
    """
    text = json.dumps(_finite(values), allow_nan=False) + "\n"
    try:
        if output is not None:
            Path(output).write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = "standard output" if output is None else f"--output {output}"
        raise UsageError(f"{where} cannot be written: {error.strerror}") from None


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def say(message: str) -> None:
    """A line of progress, on a terminal only."""
    if sys.stderr.isatty():
        print(message, file=sys.stderr, flush=True)
