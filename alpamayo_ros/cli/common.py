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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from alpamayo_ros.devices.device import prepare_environment
from alpamayo_ros.types import UserError

USAGE_ERROR = 2
INTERRUPTED = 130
TERMINATED = 143
CLOSED_PIPE = 141


class UsageError(UserError):
    """Arguments that do not go together, or name what is not there."""


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and the message."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def run(command: Callable[[Sequence[str] | None], int], argv: Sequence[str] | None) -> int:
    """The exit code of a command; what a user can mend becomes one line on standard error."""
    prepare_environment()
    # As Ctrl-C does: leave every block on the way out, so that no process is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        code = command(argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read has seen enough; what is left must not fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except (UserError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED


def check_output(output: str | None) -> None:
    """Refuse a file that `write_json` could not write, before the work that fills it.

    Raises:
        UsageError: there is no such folder, or the name is a folder's.
    """
    if output is None:
        return
    if Path(output).is_dir():
        raise UsageError(f"--output {output} cannot be written: it is a folder; name a file")
    if not Path(output).parent.is_dir():
        raise UsageError(f"--output {output} cannot be written: there is no such folder")


def write_json(values: dict[str, Any], output: str | None) -> None:
    """Write an object to a file, or without one to standard output.

    Numbers that are not finite, which JSON does not know, become null.

    Raises:
        UsageError: the file cannot be written.
    """
    text = json.dumps(_finite(values), allow_nan=False) + "\n"
    if output is None:
        sys.stdout.write(text)
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--output {output} cannot be written: {error.strerror}") from None


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
