"""alpamayo_demo: a synthetic drive as a bag, the real node on it, and pictures of its plans."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np
from tqdm import tqdm

from alpamayo_ros.cli.common import (
    OneLineParser,
    UsageError,
    claim_folder,
    require_range,
    run,
    writing,
)
from alpamayo_ros.demo.drive import MAX_DURATION_S
from alpamayo_ros.demo.moments import ShownPlan, make_moments
from alpamayo_ros.demo.recording import DriveRecording, record_drive
from alpamayo_ros.demo.report import write_report
from alpamayo_ros.demo.summary import Decision, Moment, Summary
from alpamayo_ros.limits import SEED, Limits
from alpamayo_ros.msg import DrivingPlan
from alpamayo_ros.ros.bag_run import (
    BagRun,
    NodeFailedError,
    plan_stamp_ns,
    run_node_on_bag,
    waypoints_in_ego_frame,
)
from alpamayo_ros.ros.node_process import LAST_DOMAIN, DomainLease, config_file
from alpamayo_ros.types import CAMERA_ROLES, HISTORY_POSES, STEP_S

WRITES = ("bag", "summary.json", "report.html", "node.log", "front.png", "above.png")
MARKER = ".alpamayo_demo"  # says that a folder is the demo's, to be written anew
FIRST_WINDOW_S = (HISTORY_POSES - 1) * STEP_S  # odometry needs longer than the frames' 0.3 s
SHORTEST_S = 3.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 when the node planned and ended well, 1 when not, 2 for a wrong use."""
    return run(_command, argv)


def _command(argv: Sequence[str] | None) -> int:
    options = _parser().parse_args(argv)
    try:
        return _demo(options)
    except NodeFailedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _demo(options: argparse.Namespace) -> int:
    require_range("--duration", options.duration, Limits(SHORTEST_S, MAX_DURATION_S))
    require_range("--seed", options.seed, SEED)
    require_range("--moments", options.moments, Limits(0, 1000))
    if options.domain_id is not None:
        require_range("--domain-id", options.domain_id, Limits(0, LAST_DOMAIN))
    params_file = options.params_file or config_file("demo.yaml")
    if params_file is None or not params_file.is_file():
        raise UsageError(f"--params-file {params_file}: there is no such file")
    with _draft(options.output) as draft:
        print(f"recording {options.duration:g} s of a synthetic drive, seed {options.seed}")
        recording = record_drive(draft / "bag", options.seed, options.duration)
        print("starting the node")
        outcome = _play(recording, params_file, draft / "node.log", options.domain_id)
        plans = [_shown(recording, message) for message in outcome.plans]
        summary = _summary(recording, plans, outcome)
        _write(draft, summary, make_moments(recording, plans, options.moments))
        _publish(draft, options.output)
    _tell(options.output, summary)
    if outcome.exit_code != 0:
        print(f"error: the node ended with {outcome.exit_code}", file=sys.stderr)
    return 0 if plans and outcome.exit_code == 0 else 1


def _summary(recording: DriveRecording, plans: list[ShownPlan], outcome: BagRun) -> Summary:
    status = outcome.status
    return Summary(
        decisions=tuple(plan.decision for plan in plans),
        refused=dict(zip(status.refusal_reasons, map(int, status.refusal_counts))),
        seconds_from_first_window=recording.duration_s - FIRST_WINDOW_S - STEP_S,
        model_id=status.model_id,
        device=status.device,
        bag=f"a synthetic drive, seed {recording.seed}",
    )


def _play(recording: DriveRecording, params_file: Path, log: Path, domain_id: int | None) -> BagRun:
    """Run the node on the bag, with a bar of bag seconds and plans."""
    bar = tqdm(total=recording.duration_s, unit="s", desc="playing", disable=None)

    def show(played_s: float, plans: int) -> None:
        bar.n = round(min(played_s, recording.duration_s), 1)
        bar.set_postfix(plans=plans)

    with bar, DomainLease(domain_id) as lease:
        return run_node_on_bag(
            recording.path,
            params_file,
            _remaps(recording),
            log,
            lease.domain_id,
            on_progress=show,
        )


@contextmanager
def _draft(output: Path) -> Iterator[Path]:
    """A folder beside the output, where a run is made; of one that fails the node's log is kept.

    An earlier result is replaced when the new one is whole, and nothing else is ever touched.

    Raises:
        UsageError: the output is no folder of a demo, or cannot be written.
    """
    claim_folder(output, MARKER, "not a demo's: choose another folder")
    with writing(output):
        draft = Path(tempfile.mkdtemp(prefix=f".{output.name}.draft-", dir=output.parent))
    try:
        yield draft
    finally:
        if (draft / "node.log").exists():
            os.replace(draft / "node.log", output / "node.log")
        shutil.rmtree(draft, ignore_errors=True)


def _publish(draft: Path, output: Path) -> None:
    """Put a whole result where the last one was."""
    for name in WRITES:
        target = output / name
        shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        if (draft / name).exists():
            os.replace(draft / name, target)


def _remaps(recording: DriveRecording) -> dict[str, str]:
    suffix = "/compressed" if recording.compressed else ""
    remaps = {
        f"~/input/{role}/image{suffix}": recording.image_topics[role] for role in CAMERA_ROLES
    }
    remaps["~/input/navigation"] = recording.navigation_topic
    return {**remaps, "~/input/odometry": recording.odometry_topic}


def _shown(recording: DriveRecording, message: DrivingPlan) -> ShownPlan:
    t0_ns = plan_stamp_ns(message)
    stages_ms = dict(zip(message.stage_names, map(float, message.stage_times_ms)))
    decision_ms = stages_ms.pop("total")
    return ShownPlan(
        t0_ns=t0_ns,
        decision=Decision(recording.t_s(t0_ns), decision_ms, stages_ms, tuple(message.reasons)),
        waypoints=waypoints_in_ego_frame(message),
        reasoning=message.reasoning,
        ego_speed_m_s=message.ego_speed,
        navigation_text=message.navigation_text,
        truncated=message.truncated,
    )


def _write(output: Path, summary: Summary, moments: list[Moment]) -> None:
    summary.write(output)
    write_report(output, summary, moments)
    if moments:
        middle = moments[len(moments) // 2]
        for name, image in (("front", middle.plan_in_front), ("above", middle.plan_from_above)):
            cv2.imwrite(str(output / f"{name}.png"), np.ascontiguousarray(image[:, :, ::-1]))


def _tell(output: Path, summary: Summary) -> None:
    median_ms = summary.decision_time_median_ms
    print(
        f"{summary.plans} plans, {summary.accepted} accepted by the gate; "
        + (f"median decision {median_ms:.0f} ms" if median_ms is not None else "no decision")
    )
    print(f"look at {output / 'report.html'}")


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="alpamayo_demo",
        description="Record a synthetic drive as a rosbag2, run the real node process on it in "
        "real time, and write the bag, summary.json, report.html and pictures.",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("out/demo"),
        help="folder to write (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="fixes road, traffic and drive (0)")
    parser.add_argument(
        "--duration", type=float, default=20.0, help="length of the drive in s (20)"
    )
    parser.add_argument(
        "--moments", type=int, default=12, help="decisions shown in the report (12)"
    )
    parser.add_argument(
        "--params-file",
        type=Path,
        help="the node's parameters (default: config/demo.yaml of this package)",
    )
    parser.add_argument(
        "--domain-id",
        type=int,
        help="ROS_DOMAIN_ID, to watch in RViz (default: one that is free on this machine)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
