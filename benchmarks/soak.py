"""The node at work for minutes: does it keep memory, files or threads, does it always answer?

    python benchmarks/soak.py [--minutes 10]

The small model plans on four cameras at 10 Hz and odometry at 50 Hz while the lifecycle is asked
for its state once a second. Growth is the median of the last fifth of the time less that of the
second fifth: of ten minutes the last two, and minutes 2 to 4. The last line is JSON; the exit code
is 1 when a limit is broken.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
import tracemalloc
from dataclasses import asdict, dataclass
from pathlib import Path

import rclpy
from lifecycle_msgs.srv import GetState
from rclpy.client import Client

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for the tests' rig

from alpamayo_ros.ros.bag_run import Listener, Spinner  # noqa: E402
from alpamayo_ros.ros.main import main as node_main  # noqa: E402
from alpamayo_ros.ros.node_process import DomainLease, NodeProcess, wait_until  # noqa: E402
from alpamayo_ros.types import CAMERA_ROLES  # noqa: E402
from test.ros.rig import Rig  # noqa: E402

AS_NODE = "--as-node"  # this file as the node's program: it writes down what Python has allocated
PERIOD_S = 1.0
START_S = 120.0
SETTLE_PLANS = 10  # after which what was allocated before the counting began has been replaced
SETTLE_S = 120.0
ANSWER_S = 5.0  # an answer that takes longer is missed
LIMIT_MEMORY_MB = 15.0
LIMIT_TRACED_MB = 1.0


@dataclass(frozen=True)
class Sample:
    """The node process at one moment."""

    time_s: float  # since the soak began
    memory_mb: float  # resident
    traced_mb: float  # allocated by Python, as tracemalloc counts
    files: int
    threads: int
    answered: bool  # get_state


@dataclass(frozen=True)
class Result:
    """What has grown, and what did not answer."""

    minutes: float
    plans: int
    memory_growth_mb: float
    traced_growth_mb: float
    files_growth: float
    threads_growth: float
    missed_answers: int
    exit_code: int

    def broken(self) -> list[str]:
        """What limits are broken, in words."""
        checks = {
            f"memory grew by {LIMIT_MEMORY_MB:g} MB": self.memory_growth_mb < LIMIT_MEMORY_MB,
            f"Python's memory grew by {LIMIT_TRACED_MB:g} MB": self.traced_growth_mb
            < LIMIT_TRACED_MB,
            "files were left open, or closed": self.files_growth == 0,
            "threads were left, or lost": self.threads_growth == 0,
            "the lifecycle did not always answer": self.missed_answers == 0,
            "nothing was planned": self.plans > 0,
            "the node did not end with code 0": self.exit_code == 0,
        }
        return [words for words, kept in checks.items() if not kept]


def soak(minutes: float) -> Result:
    """Start a node, let it plan that long, and end it."""
    with DomainLease() as lease, tempfile.TemporaryDirectory() as folder:
        traced = Path(folder) / "traced"
        context = rclpy.Context()
        rclpy.init(args=[], context=context, domain_id=lease.domain_id)
        arguments = ["--ros-args", "-p", "model.path:=demo", "-p", "gate.mode:=report"]
        for role in CAMERA_ROLES:
            arguments += ["-p", f"cameras.{role}.transport:=compressed"]
        process = NodeProcess(
            arguments,
            Path(folder) / "log",
            {"ROS_DOMAIN_ID": str(lease.domain_id)},
            [sys.executable, __file__, AS_NODE, str(traced)],
        )
        listener = Listener(context)
        try:
            with process, Spinner(context, listener), Rig(context):
                if not wait_until(lambda: len(listener.plans) > 0, START_S):
                    raise RuntimeError(f"no plan within {START_S:g} s\n{process.output()}")
                traced.write_text("0.0")
                wanted = len(listener.plans) + SETTLE_PLANS
                if not wait_until(lambda: len(listener.plans) >= wanted, SETTLE_S):
                    raise RuntimeError(f"less than {SETTLE_PLANS} plans within {SETTLE_S:g} s")
                samples = watch(process.process.pid, traced, listener, 60 * minutes)
                return summary(samples, minutes, len(listener.plans), process.stop())
        finally:
            context.try_shutdown()


def watch(pid: int, traced: Path, listener: Listener, duration_s: float) -> list[Sample]:
    """Look at a node process once a second."""
    client = listener.create_client(GetState, "/alpamayo/get_state")
    samples, begun_s = [], time.monotonic()
    while (time_s := time.monotonic() - begun_s) < duration_s:
        answered = answers(client)
        samples.append(sample(pid, traced, time_s, answered))
        if sys.stderr.isatty():
            print(f"\r{time_s:.0f} of {duration_s:.0f} s", end="", file=sys.stderr)
        time.sleep(max(0.0, begun_s + time_s + PERIOD_S - time.monotonic()))
    return samples


def answers(client: Client) -> bool:
    """Whether get_state answers in time."""
    future = client.call_async(GetState.Request())
    return wait_until(future.done, ANSWER_S)


def sample(pid: int, traced: Path, time_s: float, answered: bool) -> Sample:
    """The process as /proc and its own notes have it."""
    process = Path("/proc") / str(pid)
    lines = (process / "status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return Sample(
        time_s=time_s,
        memory_mb=int(status["VmRSS"].split()[0]) / 1024,
        traced_mb=float(traced.read_text()),
        files=len(list((process / "fd").iterdir())),
        threads=int(status["Threads"]),
        answered=answered,
    )


def summary(samples: list[Sample], minutes: float, plans: int, exit_code: int) -> Result:
    """Medians of the last fifth of the time less those of the second fifth."""
    fifth_s = 60 * minutes / 5
    early = [s for s in samples if fifth_s <= s.time_s < 2 * fifth_s]
    late = [s for s in samples if s.time_s >= 4 * fifth_s]

    def growth(name: str) -> float:
        before, after = ([getattr(s, name) for s in part] for part in (early, late))
        return statistics.median(after) - statistics.median(before)

    return Result(
        minutes=minutes,
        plans=plans,
        memory_growth_mb=growth("memory_mb"),
        traced_growth_mb=growth("traced_mb"),
        files_growth=growth("files"),
        threads_growth=growth("threads"),
        missed_answers=sum(not s.answered for s in samples),
        exit_code=exit_code,
    )


def run_as_node(traced: Path, arguments: list[str]) -> int:
    """The node, with a thread that writes down once a second how much Python has allocated.

    Counting begins when the file is there: imports and the model's load take far longer with it.
    """

    def note() -> None:
        while not traced.exists():
            time.sleep(PERIOD_S)
        tracemalloc.start()
        while True:
            current, _ = tracemalloc.get_traced_memory()
            draft = traced.with_suffix(".draft")
            draft.write_text(f"{current / 1e6}")
            draft.replace(traced)
            time.sleep(PERIOD_S)

    threading.Thread(target=note, name="note", daemon=True).start()
    return node_main(arguments)


def main() -> int:
    """Soak and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    minutes = parser.parse_args().minutes
    if not 0.5 <= minutes <= 1440.0:
        parser.error(f"--minutes {minutes:g}: give 0.5 to 1440")
    result = soak(minutes)
    print(f"\n{minutes:g} minutes, {result.plans} plans")
    print("| grown by | | limit |\n|---|---|---|")
    print(f"| memory [MB] | {result.memory_growth_mb:+.1f} | < {LIMIT_MEMORY_MB:g} |")
    print(f"| traced by Python [MB] | {result.traced_growth_mb:+.2f} | < {LIMIT_TRACED_MB:g} |")
    print(f"| open files | {result.files_growth:+g} | 0 |")
    print(f"| threads | {result.threads_growth:+g} | 0 |")
    print(f"| missed lifecycle answers | {result.missed_answers} | 0 |")
    broken = result.broken()
    for words in broken:
        print(f"BROKEN: {words}")
    print(json.dumps({**asdict(result), "passed": not broken}))
    return 1 if broken else 0


if __name__ == "__main__":
    if sys.argv[1:2] == [AS_NODE]:
        sys.exit(run_as_node(Path(sys.argv[2]), sys.argv[3:]))
    sys.exit(main())
