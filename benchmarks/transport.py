"""Images through the middleware into the node's inputs: what arrives, and what it costs.

    python benchmarks/transport.py [--seconds 60] [--load raw] [--load jpeg]

Two loads, each with odometry at 100 Hz: 4 x 1080p rgb8 at 10 Hz, and 4 x 1080p JPEG of about 400 kB
at 30 Hz. Each comes with and without config/fastdds_images.xml, to a receiver that is idle and to
one that decodes the frames it uses and computes 0.5 s a decision on all cores. The publisher is a
process of its own and sends bytes that are serialised already, so it costs about what a driver in
C++ does. CPU per frame is that of all threads that receive, the middleware's included, less the
odometry's share, which is measured first, alone. The last line is JSON; the exit code is 1 when a
limit is broken with the profile.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from alpamayo_ros.devices.device import prepare_environment

prepare_environment()  # before torch is imported

import numpy as np  # noqa: E402
import rclpy  # noqa: E402
import torch  # noqa: E402
from camera_load import HEIGHT, LOADS, WIDTH, Load, jpeg, picture  # noqa: E402
from rclpy.node import Node  # noqa: E402

from alpamayo_ros.planning.planner import Planner, PlannerSettings  # noqa: E402
from alpamayo_ros.ros import parameters  # noqa: E402
from alpamayo_ros.ros.allocator import keep_memory_of_images  # noqa: E402
from alpamayo_ros.ros.inputs import Inputs  # noqa: E402
from alpamayo_ros.ros.node_process import (  # noqa: E402
    DomainLease,
    config_file,
    profile_variables,
)
from alpamayo_ros.sensing.selection import Selection  # noqa: E402
from alpamayo_ros.types import CAMERA_ROLES, FRAME_OFFSETS_NS, Frame  # noqa: E402

PUBLISHER = Path(__file__).with_name("camera_load.py")
DECISION_S = 0.5
ALONE_DECISIONS = 6
PREPARE_ROUNDS = 8

DELIVERED = 0.99
CPU_MS = {"raw": 5.0, "jpeg": 1.0}  # per received frame
USED_JPEG_MS = 15.0  # CPU per decoded frame
PREPARE_MS = 130.0  # 16 JPEG frames to the model's size
SLOWER = 1.15  # a decision with inputs flowing against one without


@dataclass(frozen=True)
class Row:
    """What one receiver saw."""

    load: str
    profile: bool
    busy: bool
    sent: int
    received: int
    odometry_sent: int
    odometry_received: int
    cpu_ms_per_frame: float  # of all threads that receive, less the odometry's share
    cpu_ms_per_odometry: float  # of the same threads while nothing else came
    publisher_ms_per_frame: float
    decisions: int
    decision_alone_ms: float | None  # None: an idle receiver
    decision_ms: float | None  # None: too little arrived to decide on

    @property
    def delivered(self) -> float:
        """Share of the images that arrived."""
        return self.received / self.sent

    @property
    def slower(self) -> float | None:
        """A decision's time with inputs flowing against that without."""
        if self.decision_alone_ms is None or self.decision_ms is None:
            return None
        return self.decision_ms / self.decision_alone_ms


# The receiver's process


class StandInModel:
    """Computes for half a second, and says at what size it wants its images."""

    pixel_limits = (163_840, 196_608)  # the released checkpoint's

    def __init__(self) -> None:
        torch.manual_seed(0)
        self._weight = torch.randn(1024, 1024) / 32.0
        self._layers = 20
        self.decide()
        self._layers = max(1, round(self._layers * DECISION_S / self.decide()))

    def decide(self) -> float:
        """Layers of a product and an activation on all cores; the time it took in s."""
        start_s = time.perf_counter()
        x = torch.ones(1024, 1024)
        for _ in range(self._layers):
            x = torch.nn.functional.gelu(x @ self._weight)
        return time.perf_counter() - start_s


def threads() -> dict[str, float]:
    """CPU seconds so far of each thread of this process, by its id."""
    tasks = Path("/proc/self/task").iterdir()
    return {task.name: int((task / "schedstat").read_text().split()[0]) / 1e9 for task in tasks}


def spent_by(others: set[str]) -> float:
    """CPU seconds so far of all threads but those of the model."""
    return sum(spent_s for thread, spent_s in threads().items() if thread not in others)


def receive(load: Load, seconds: float, busy: bool, profile: bool) -> Row:
    """Listen as the node does, plan on what arrives when busy, and count."""
    model = StandInModel() if busy else None
    planner = Planner(model or StandInSize(), PlannerSettings())  # type: ignore[arg-type]
    planner.prepare(selection(encoded_frames(load)))  # starts the decoding threads
    alone_s = [model.decide() for _ in range(ALONE_DECISIONS)] if model else []
    planning = set(threads()) if busy else set()
    with DomainLease() as lease:
        context = rclpy.Context()
        rclpy.init(args=[], context=context, domain_id=lease.domain_id)
        node = Node("alpamayo", context=context)
        parameters.declare(node)
        for role in CAMERA_ROLES:
            transport = "compressed" if load.name == "jpeg" else "raw"
            name = f"cameras.{role}.transport"
            node.set_parameters([rclpy.Parameter(name, value=transport)])
        settings = node.settings = parameters.NodeSettings.read(node)
        inputs = Inputs(node, lambda: None)
        inputs.apply(settings)
        inputs.subscribe(settings)
        publisher = subprocess.Popen(
            [sys.executable, str(PUBLISHER), load.name, str(seconds), str(lease.domain_id)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert publisher.stdout is not None
        lines = (json.loads(line) for line in publisher.stdout)
        next(lines)
        alone, before = spent_by(planning), dict(inputs.received)
        next(lines)
        odometry_s = spent_by(planning) - alone
        odometry_s /= max(inputs.received["odometry"] - before.get("odometry", 0), 1)
        next(lines)
        begun, before = spent_by(planning), dict(inputs.received)
        end_s = time.monotonic() + seconds
        decisions_s = []
        while time.monotonic() < end_s:
            chosen = inputs.take(settings, time.time_ns()) if model else None
            if model is None or chosen is None:
                time.sleep(0.005 if busy else 0.1)
                continue
            planner.prepare(chosen)
            decisions_s.append(model.decide())
        said = next(lines)
        spent_s = spent_by(planning) - begun
        received = {name: n - before.get(name, 0) for name, n in inputs.received.items()}
        publisher.communicate()
        inputs.unsubscribe()
        context.try_shutdown()
    images = sum(received.get(role, 0) for role in CAMERA_ROLES)
    spent_s -= odometry_s * received["odometry"]
    return Row(
        load=load.name,
        profile=profile,
        busy=busy,
        sent=said["images"],
        received=images,
        odometry_sent=said["odometry"],
        odometry_received=received.get("odometry", 0),
        cpu_ms_per_frame=1e3 * spent_s / max(images, 1),
        cpu_ms_per_odometry=1e3 * odometry_s,
        publisher_ms_per_frame=1e3 * said["cpu_s"] / said["images"],
        decisions=len(decisions_s),
        decision_alone_ms=median_ms(alone_s),
        decision_ms=median_ms(decisions_s),
    )


def median_ms(durations_s: list[float]) -> float | None:
    """Median in ms; None of nothing."""
    return 1e3 * float(np.median(durations_s)) if durations_s else None


class StandInSize:
    """What a planner that only prepares images asks its model."""

    pixel_limits = StandInModel.pixel_limits


def encoded_frames(load: Load) -> dict[str, tuple[Frame, ...]]:
    """Four frames of each camera as they are kept, each with bytes of its own."""
    pixels = picture()
    encoding, data = ("jpeg", jpeg(pixels)) if load.name == "jpeg" else ("rgb8", pixels.tobytes())
    return {
        role: tuple(
            Frame(10**18 + offset_ns, encoding, bytes(bytearray(data)), HEIGHT, WIDTH, 3 * WIDTH)
            for offset_ns in FRAME_OFFSETS_NS
        )
        for role in CAMERA_ROLES
    }


def selection(frames: dict[str, tuple[Frame, ...]]) -> Selection:
    """A selection of a vehicle that stands still."""
    return Selection(
        t0_ns=10**18,
        frames=frames,
        ego_history_xyz=np.zeros((16, 3)),
        ego_history_rot=np.tile(np.eye(3), (16, 1, 1)),
        t0_position=np.zeros(3),
        t0_quaternion=np.array([0.0, 0.0, 0.0, 1.0]),
        t0_speed_m_s=0.0,
        frame_id="map",
        child_frame_id="base_link",
    )


# The table


@dataclass(frozen=True)
class Preparation:
    """From encoded frames to the model's size."""

    load: str
    wall_ms: float  # of 16 frames, on all cores
    cpu_ms_per_frame: float


def measured_preparation(load: Load) -> Preparation:
    """Median wall time of 16 frames, none of them prepared before, and CPU per frame."""
    torch.set_num_threads(1)  # as in the decoding threads' own work: four of them share the cores
    planner = Planner(StandInSize(), PlannerSettings())  # type: ignore[arg-type]
    walls_s, cpus_s = [], []
    for _ in range(PREPARE_ROUNDS):
        chosen = selection(encoded_frames(load))
        start_s, cpu_s = time.perf_counter(), time.process_time()
        planner.prepare(chosen)
        walls_s.append(time.perf_counter() - start_s)
        cpus_s.append(time.process_time() - cpu_s)
    frames = len(CAMERA_ROLES) * len(FRAME_OFFSETS_NS)
    wall_ms, cpu_ms = (1e3 * float(np.median(values[1:])) for values in (walls_s, cpus_s))
    return Preparation(load.name, wall_ms, cpu_ms / frames)


def measured_row(load: Load, seconds: float, profile: bool, busy: bool) -> Row:
    """A row, measured in a process that begins with or without the profile."""
    environment = dict(os.environ)
    for name in profile_variables({}):
        environment[name] = str(config_file("fastdds_images.xml")) if profile else ""
    command = [sys.executable, __file__, "--receive", load.name, "--seconds", str(seconds)]
    flags = ["--busy"] * busy + ["--profile"] * profile
    result = subprocess.run([*command, *flags], env=environment, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"a receiver failed: {result.stderr[-2000:]}")
    return Row(**json.loads(result.stdout.splitlines()[-1]))


def broken_limits(rows: list[Row], preparations: list[Preparation]) -> list[str]:
    """What is over its limit, in words; rows without the profile are there to compare."""
    broken = []
    for row in (row for row in rows if row.profile):
        name = f"{row.load}, {'computing' if row.busy else 'idle'}"
        if not row.delivered >= DELIVERED:
            broken.append(f"{name}: {row.delivered:.1%} delivered, under {DELIVERED:.0%}")
        if not row.cpu_ms_per_frame <= CPU_MS[row.load]:
            broken.append(f"{name}: {row.cpu_ms_per_frame:.2f} ms, over {CPU_MS[row.load]:g} ms")
        if row.busy and row.slower is None:
            broken.append(f"{name}: nothing was decided")
        if row.slower is not None and not row.slower <= SLOWER:
            broken.append(f"{name}: a decision takes {row.slower:.2f} x, over {SLOWER:g} x")
    for one in (one for one in preparations if one.load == "jpeg"):
        if not one.cpu_ms_per_frame <= USED_JPEG_MS:
            broken.append(f"a used JPEG frame: {one.cpu_ms_per_frame:.1f} ms")
        if not one.wall_ms <= PREPARE_MS:
            broken.append(f"16 JPEG frames: {one.wall_ms:.0f} ms, over {PREPARE_MS:g} ms")
    return broken


def show(row: Row) -> None:
    """A row of the table."""
    times = ""
    if row.slower is not None:
        times = f"{row.decision_alone_ms:6.0f} {row.decision_ms:6.0f} {row.slower:6.2f}x"
    print(
        f"{row.load:5} {'yes' if row.profile else 'no':8} {'computes' if row.busy else 'idle':9}"
        f"{row.delivered:9.1%} {row.odometry_received / row.odometry_sent:8.1%}"
        f"{row.cpu_ms_per_frame:8.2f} {row.cpu_ms_per_odometry:8.2f}"
        f"{row.publisher_ms_per_frame:9.2f}  {times}",
        flush=True,
    )


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of each row")
    parser.add_argument("--load", action="append", choices=LOADS, help="one of them; default both")
    # This program's own processes:
    parser.add_argument("--receive", choices=LOADS, help=argparse.SUPPRESS)
    parser.add_argument("--busy", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--profile", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.receive:
        keep_memory_of_images()  # as the node does
        load = LOADS[options.receive]
        print(json.dumps(asdict(receive(load, options.seconds, options.busy, options.profile))))
        return 0
    loads = [LOADS[name] for name in options.load or LOADS]
    preparations = [measured_preparation(load) for load in loads]
    for one in preparations:
        print(
            f"16 {one.load} frames to the model's size: {one.wall_ms:.0f} ms; "
            f"CPU per used frame {one.cpu_ms_per_frame:.1f} ms"
        )
    print(f"{len(jpeg(picture())) / 1e3:.0f} kB a JPEG; CPU in ms per frame, decisions in ms")
    print("load  profile  receiver  delivered odometry receive odometry  publish   alone   with")
    rows = []
    for load in loads:
        for profile in (False, True):
            for busy in (False, True):
                rows.append(measured_row(load, options.seconds, profile, busy))
                show(rows[-1])
    broken = broken_limits(rows, preparations)
    print("\n".join(broken) or "all limits are kept")
    report = {
        "rows": [asdict(row) for row in rows],
        "preparations": [asdict(one) for one in preparations],
        "broken": broken,
    }
    print(json.dumps(report))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
