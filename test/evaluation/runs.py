"""Results of runs on made-up records, for tests of what is written about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from alpamayo_ros.evaluation.deciders import implied_actions
from alpamayo_ros.evaluation.records import BagRecords, Record, kept_file
from alpamayo_ros.evaluation.results import Results, document, write_json

from .drives import START_NS, Motion, circle, future

NO_ORIGIN = (0.0, 0.0, 0.0, 0.0)


def record(
    motion: Motion, t_s: float, offset_m: tuple[float, float] = (0.0, 0.0), **changes: object
) -> Record:
    """A decision at t_s of a motion whose plan is the truth, moved by an offset."""
    truth = future(motion, t_s)
    x, y, yaw, speed = motion(t_s)
    samples = np.stack([truth + (*offset_m, 0.0), truth + (0.0, 3.0, 0.0)])
    past = [motion(t_s + 0.1 * k) for k in range(-15, 1)]
    turned = np.array([p[2] - yaw for p in past])
    rot = np.zeros((16, 3, 3))
    rot[:, 0, 0] = rot[:, 1, 1] = np.cos(turned)
    rot[:, 1, 0], rot[:, 0, 1], rot[:, 2, 2] = np.sin(turned), -np.sin(turned), 1
    gap = np.array([p[:2] for p in past]) - (x, y)
    c, s = np.cos(yaw), np.sin(yaw)
    made = Record(
        t0_ns=START_NS + round(t_s * 1e9),
        t_s=t_s,
        samples=samples,
        actions=implied_actions(samples[0], speed),
        chosen=0,
        truth=truth,
        history_xyz=np.column_stack([gap @ np.array([[c, -s], [s, c]]), np.zeros(16)]),
        history_rot=rot,
        speed_m_s=speed,
        v0_m_s=speed,
        spread_m=3.0,
        position=np.array([x, y, 41.7]),
        quaternion=np.array([0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)]),
        frame_stamps_ns=np.full(4, START_NS + round(t_s * 1e9), np.int64),
        z_m=0.0,
        reasoning="Follow the curve to the left because the road bends.",
        tokens=9,
        truncated=False,
        reasons=(),
        navigation_text="",
        timing_ms={"decode": 3.0, "total": 40.0 + t_s},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def bag_records(records: list[Record], name: str = "drive") -> BagRecords:
    """Records as those of a bag."""
    return BagRecords(
        name=name,
        path=f"/nowhere/{name}",
        sha256=name.encode().hex().ljust(64, "0")[:64],
        duration_s=records[-1].t_s + 6.5,
        frame_id="map",
        child_frame_id="base_link",
        model_id="model@0123456789ab",
        device="cpu",
        dtype="float32",
        refused={"odometry_gap": 3},
        unusable_messages=0,
        records=tuple(records),
        wall_s=1.0,
        topics={"odometry": "/localization/odometry"},
    )


def results(*bags: BagRecords) -> Results:
    """Results of a run on these bags."""
    return Results(bags, (), {"every_s": 0.5}, NO_ORIGIN, 0, "2026-01-01T00:00:00+00:00", 2.0)


def steady(
    count: int = 8, offset_m: tuple[float, float] = (0.0, 0.0), every_s: float = 0.5
) -> list[Record]:
    """Decisions on a circle, each off by the same offset."""
    return [record(circle(), 1.5 + every_s * k, offset_m) for k in range(count)]


def folder_of_run(folder: Path, *bags: BagRecords) -> Path:
    """The folder that an earlier run has left."""
    (folder / "bags").mkdir(parents=True)
    for bag in bags:
        bag.save(kept_file(folder, bag.name), "key")
    run = results(*bags)
    write_json(folder / "metrics.json", document(run, run.scored()))
    return folder
