"""The node as a process of its own, as `ros2 run` would start it: for the demo and for tests."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

DOMAIN_PORT = 21_900  # bound while a domain is in use; below the ports of DDS and of the system
LAST_DOMAIN = 101  # higher ones reach into the ports that Linux gives to clients
PROFILE_VARIABLES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
PR_SET_PDEATHSIG = 1  # linux/prctl.h
FAST_DDS_2 = ("humble", "iron", "jazzy")
SHARED_MEMORY = Path("/dev/shm")
SEGMENT_LOCK = re.compile(r"(fastdds|fastrtps)_[0-9a-f]{16}_el")


class DomainLease:
    """A ROS_DOMAIN_ID that no other lease on this machine holds, until it is closed.

    Args:
        domain_id: use this one, whoever else does.
    """

    def __init__(self, domain_id: int | None = None) -> None:
        self._lock: socket.socket | None = None
        if domain_id is not None:
            self.domain_id = domain_id
            return
        first = 1 + os.getpid() % LAST_DOMAIN  # runs that start together rarely collide
        for step in range(LAST_DOMAIN):
            domain_id = 1 + (first + step - 1) % LAST_DOMAIN
            lock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                lock.bind(("127.0.0.1", DOMAIN_PORT + domain_id))
            except OSError:
                lock.close()
                continue
            self.domain_id = domain_id
            self._lock = lock
            return
        raise RuntimeError(f"all {LAST_DOMAIN} ROS domains of this machine are in use")

    def __enter__(self) -> DomainLease:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._lock is not None:
            self._lock.close()


def config_file(name: str) -> Path | None:
    """A file of config/: beside the sources, or in the installed share."""
    prefixes = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(":") if p]
    places = [Path(__file__).resolve().parents[2] / "config"]
    places += [prefix / "share" / "alpamayo_ros" / "config" for prefix in prefixes]
    return next((place / name for place in places if (place / name).is_file()), None)


def profile_variables(environment: Mapping[str, str]) -> list[str]:
    """The environment variables that name Fast DDS's profile: those set, else the distribution's.

    Fast DDS 2 (Humble, Jazzy) reads another one than 3 (Kilted), which warns of the old one.
    """
    present = [name for name in PROFILE_VARIABLES if name in environment]
    old = environment.get("ROS_DISTRO") in FAST_DDS_2
    return present or [PROFILE_VARIABLES[1 if old else 0]]


def use_dds_profile(environment: MutableMapping[str, str]) -> None:
    """Set the profile in an environment, unless the user has chosen one (an empty one too)."""
    profile = config_file("fastdds_images.xml")
    for name in profile_variables(environment):
        if profile is not None:
            environment.setdefault(name, str(profile))


def node_executable() -> list[str]:
    """The node's program: as installed when it is on the path, else the module."""
    installed = shutil.which("alpamayo_node")
    return [installed] if installed else [sys.executable, "-m", "alpamayo_ros.ros.main"]


class NodeProcess:
    """`alpamayo_node` with arguments, its output in a log file; ended when the block is left.

    Args:
        arguments: what follows the executable, `--ros-args` included.
        log: file that gets stdout and stderr.
        executable: the program; None finds `alpamayo_node` on the path, else runs the module.
    """

    def __init__(
        self,
        arguments: list[str],
        log: Path,
        environment: dict[str, str] | None = None,
        executable: list[str] | None = None,
    ) -> None:
        self.log = log
        self._arguments = arguments
        self._environment = {**os.environ, **(environment or {})}
        self._executable = executable or node_executable()
        self._stack = ExitStack()
        self.process: subprocess.Popen[bytes]

    def __enter__(self) -> NodeProcess:
        file = self._stack.enter_context(open(self.log, "wb"))
        self.process = subprocess.Popen(
            [*self._executable, *self._arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in a terminal is ours to pass on
            preexec_fn=_end_with_parent,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.stop(signal.SIGTERM, timeout_s=20.0)
        self._stack.close()

    def stop(self, number: signal.Signals = signal.SIGINT, timeout_s: float = 20.0) -> int:
        """Send a signal and wait for the end; kill what does not end. The exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
            remove_dead_shared_memory()
            return code

    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def output(self) -> str:
        """What the process has printed so far."""
        return self.log.read_text(errors="replace")


def _end_with_parent() -> None:
    """Ask the kernel to end this process with the one that started it, however that ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def remove_dead_shared_memory() -> list[Path]:
    """Remove Fast DDS's segments that a killed process has left (128 MB each with our profile).

    A living owner holds a lock on the segment's `_el` file.
    """
    removed = []
    for lock in SHARED_MEMORY.glob("fast*_el"):
        if not SEGMENT_LOCK.fullmatch(lock.name):
            continue
        try:
            with open(lock, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                segment = lock.with_name(lock.name.removesuffix("_el"))
                for path in (segment, lock):
                    path.unlink(missing_ok=True)
                removed.append(segment)
        except OSError:
            continue  # alive, another user's, or gone meanwhile
    return removed


def wait_until(condition: Callable[[], bool], timeout_s: float, poll_s: float = 0.02) -> bool:
    """Poll a condition until it holds or the deadline passes; whether it held."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(poll_s)
    return True
