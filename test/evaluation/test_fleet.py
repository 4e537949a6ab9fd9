"""Many bags: kept, gone on with, skipped when broken; with Ray the same as without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alpamayo_ros.evaluation.fleet import (
    FleetError,
    Job,
    NamedBag,
    name_bags,
    process_bag,
    run_local,
    run_ray,
)
from alpamayo_ros.evaluation.records import BagRecords
from alpamayo_ros.evaluation.results import FailedBag
from alpamayo_ros.evaluation.run import RunSettings

from .drives import START_NS, Recipe, circle, future, straight, write_drive


@pytest.fixture
def job(tmp_path) -> Job:
    """Plans of a circle, scored every half second."""
    t0s_s = np.arange(1.5, 4.0, 0.5)
    np.savez(
        tmp_path / "plans.npz",
        t0_ns=START_NS + np.round(t0s_s * 1e9).astype(np.int64),
        waypoints=np.array([future(circle(), t) for t in t0s_s]),
    )
    return Job(tmp_path / "out", RunSettings(every_s=0.0), plans=tmp_path / "plans.npz")


@pytest.fixture
def bags(tmp_path) -> list[NamedBag]:
    """Three drives, the second one broken."""
    recipes = Recipe(duration_s=4.0), Recipe(duration_s=4.0), Recipe(straight(), 4.0)
    paths = [write_drive(tmp_path / f"d{i}", recipe) for i, recipe in enumerate(recipes)]
    (paths[1] / "d1.mcap").write_bytes(b"no bag")
    return name_bags(paths)


def outcomes(job: Job, bags: list[NamedBag]) -> list[BagRecords | FailedBag]:
    return list(run_local(job, bags, lambda *_: None))


def assert_equal(a: BagRecords | FailedBag, b: BagRecords | FailedBag) -> None:
    """Two records of a bag are the same but for times."""
    assert isinstance(a, BagRecords)
    assert isinstance(b, BagRecords)
    assert repr(replace(a, records=(), wall_s=0.0)) == repr(replace(b, records=(), wall_s=0.0))
    for x, y in zip(a.records, b.records, strict=True):
        for name in vars(x):
            if name != "timing_ms":
                np.testing.assert_array_equal(getattr(x, name), getattr(y, name), err_msg=name)


def test_a_broken_bag_is_listed_and_does_not_end_the_run(job, bags):
    first, second, third = outcomes(job, bags)
    assert isinstance(first, BagRecords)
    assert isinstance(second, FailedBag)
    assert second.name == "d1"
    assert "cannot be read" in second.error
    assert isinstance(third, BagRecords)


def test_finished_bags_are_not_done_again(job, bags):
    first, *_ = outcomes(job, bags)
    asked = []
    again = process_bag(job, bags[0], Recorder(job.decider(), asked), lambda *_: None)
    assert_equal(first, again)
    assert asked == []


def test_a_bag_is_done_again_when_anything_it_depends_on_has_changed(job, bags, tmp_path):
    outcomes(job, bags)
    other_settings = replace(job, settings=RunSettings(every_s=1.0))
    with np.load(job.plans) as file:
        np.savez(tmp_path / "others.npz", **{**file, "waypoints": file["waypoints"] + 1.0})
    other_plans = replace(job, plans=tmp_path / "others.npz")
    for changed in (other_settings, other_plans):
        asked = []
        process_bag(changed, bags[0], Recorder(changed.decider(), asked), lambda *_: None)
        assert asked
    write_drive(tmp_path / "new" / "d0", Recipe(duration_s=3.0))
    asked = []
    moved = NamedBag(tmp_path / "new" / "d0", "d0")
    process_bag(job, moved, Recorder(job.decider(), asked), lambda *_: None)
    assert asked


class Recorder:
    """A decider that remembers that it was asked."""

    def __init__(self, decider, asked: list) -> None:
        self._decider, self._asked = decider, asked
        self.identity = decider.identity

    def decide(self, bag, selection, navigation_text):
        self._asked.append(selection.t0_ns)
        return self._decider.decide(bag, selection, navigation_text)

    def reset(self) -> None:
        self._decider.reset()


def test_progress_rises_to_the_end(job, bags):
    shown = []
    list(run_local(job, bags[:1], lambda bag, share, decisions: shown.append((share, decisions))))
    assert shown == sorted(shown)
    assert shown[-1] == (pytest.approx(1.0, abs=0.01), 5)


def test_bags_of_one_name_are_told_apart_by_their_folder():
    named = name_bags([Path("/a/drive"), Path("/b/drive"), Path("/c/other.mcap")])
    assert [bag.name for bag in named] == ["a-drive", "b-drive", "other"]


def test_a_bag_given_twice_is_refused():
    with pytest.raises(FleetError, match="give it once"):
        name_bags([Path("/a/drive"), Path("/a/../a/drive")])


def test_without_ray_its_engine_says_what_to_install(job, bags, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(FleetError, match="--engine local"):
        list(run_ray(job, bags, workers=2))


@pytest.mark.timeout(300)
def test_ray_on_two_workers_gives_what_the_local_engine_gives(job, bags, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed")
    local = outcomes(job, bags)
    spread = list(run_ray(replace(job, output=tmp_path / "ray"), bags, workers=2))
    assert_equal(local[0], spread[0])
    assert local[1] == spread[1]
    assert_equal(local[2], spread[2])


@pytest.mark.timeout(300)
def test_a_ray_run_that_was_killed_goes_on_to_the_same_result(job, tmp_path):
    """Killed when the first of four bags is kept; the second run does the rest."""
    pytest.importorskip("ray", reason="Ray is not installed")
    paths = [write_drive(tmp_path / f"k{i}", Recipe(duration_s=4.0 + i)) for i in range(4)]
    command = [sys.executable, "-m", "alpamayo_ros.cli.evaluate", *map(str, paths)]
    command += ["--plans", str(job.plans), "--engine", "ray", "--workers", "2"]
    output = tmp_path / "killed"
    process = subprocess.Popen(
        [*command, "--output", str(output)], start_new_session=True, env=dict(os.environ)
    )
    deadline_s = time.monotonic() + 120
    while not list(output.glob("bags/*.npz")) and process.poll() is None:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (output / "metrics.json").exists()
    kept = {p: p.stat().st_mtime_ns for p in output.glob("bags/k*.npz")}
    assert subprocess.run([*command, "--output", str(output)]).returncode == 0
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    local = command[: command.index("--engine")]
    whole = tmp_path / "whole"
    assert subprocess.run([*local, "--output", str(whole)]).returncode == 0
    assert metrics_text(output) == metrics_text(whole)


def metrics_text(output: Path) -> str:
    """metrics.json up to its times."""
    text = (output / "metrics.json").read_text()
    return text[: text.index('"times"')]
