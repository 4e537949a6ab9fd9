"""A bag, evaluated: which t0s, with which truth, and what makes a bag unusable."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alpamayo_ros.evaluation.bags import BagError, TopicChoice
from alpamayo_ros.evaluation.deciders import GivenDecider, GivenPlan, Plans
from alpamayo_ros.evaluation.metrics import ade_m
from alpamayo_ros.evaluation.records import BagRecords, RecordsError, load_records
from alpamayo_ros.evaluation.run import NOT_GIVEN, RunSettings, evaluate_bag
from alpamayo_ros.sensing.selection import Selection

from .drives import START_NS, Recipe, circle, future, straight, write_drive


class Straight:
    """Plans straight ahead, and remembers what it was asked."""

    identity = ("straight", "none", "float64")

    def __init__(self) -> None:
        self.asked: list[tuple[Selection, str]] = []
        t0s = START_NS + np.arange(0, 100) * 100_000_000
        path = np.column_stack([np.arange(1, 65) * 0.5, np.zeros(64), np.zeros(64)])
        samples = np.broadcast_to(path, (100, 1, 64, 3)).copy()
        chosen, texts = np.zeros(100, np.int64), ("keep the lane",) * 100
        self._given = GivenDecider(Plans(("",) * 100, t0s, samples, chosen, texts, "0" * 64))

    def decide(self, bag: str, selection: Selection, navigation_text: str) -> GivenPlan | None:
        self.asked.append((selection, navigation_text))
        return self._given.decide(bag, selection, navigation_text)

    def reset(self) -> None:
        self.asked.clear()


def evaluate(tmp_path: Path, recipe: Recipe, settings: RunSettings | None = None) -> BagRecords:
    """The records of a straight plan on a bag of the recipe."""
    path = write_drive(tmp_path / "drive", recipe)
    return evaluate_bag(path, "drive", Straight(), settings or RunSettings())


def t0s_s(records: BagRecords) -> list[float]:
    return [round((record.t0_ns - START_NS) / 1e9, 3) for record in records.records]


def test_a_decision_is_made_every_half_second_from_the_first_whole_history_on(tmp_path):
    records = evaluate(tmp_path, Recipe(duration_s=4.0))
    assert t0s_s(records) == [1.5, 2.0, 2.5, 3.0, 3.5]
    assert [record.t_s for record in records.records] == t0s_s(records)
    assert records.duration_s == pytest.approx(3.98)


def test_every_frame_can_be_decided_on(tmp_path):
    records = evaluate(tmp_path, Recipe(duration_s=3.0), RunSettings(every_s=0.1))
    assert t0s_s(records) == [round(1.5 + 0.1 * k, 1) for k in range(15)]


@pytest.mark.parametrize("motion", [circle(), circle(12.0, -0.3), straight()])
def test_the_truth_is_where_the_vehicle_went(tmp_path, motion):
    records = evaluate(tmp_path, Recipe(motion=motion, duration_s=10.0))
    for record in records.records:
        t0_s = (record.t0_ns - START_NS) / 1e9
        known = np.isfinite(record.truth[:, 0])
        assert known.sum() == min(64, int((9.98 - t0_s) * 10 + 1e-6))
        np.testing.assert_allclose(record.truth[known], future(motion, t0_s)[known], atol=1e-9)


def test_between_odometry_poses_the_truth_is_interpolated(tmp_path):
    """Odometry at 30 Hz: no waypoint but every third has a pose of its own."""
    recipe = Recipe(motion=circle(10.0, 0.3), duration_s=9.0, odometry_period_ns=33_333_333)
    record = evaluate(tmp_path, recipe).records[0]
    t0_s = (record.t0_ns - START_NS) / 1e9
    np.testing.assert_allclose(record.truth, future(recipe.motion, t0_s), atol=1e-4)


def test_the_truth_is_that_of_the_models_origin(tmp_path):
    """1 m ahead of the odometry's frame, on a circle: its own circle is wider."""
    settings = RunSettings(to_rear_axle=(1.0, 0.0, 0.0, 0.0))
    record = evaluate(tmp_path, Recipe(motion=circle(8.0, 0.2)), settings).records[0]
    turned = 0.2 * np.arange(1, 65) * 0.1
    radius = 8.0 / 0.2
    want_x = radius * np.sin(turned) + np.cos(turned) - 1.0
    want_y = radius * (1 - np.cos(turned)) + np.sin(turned)
    np.testing.assert_allclose(record.truth, np.column_stack([want_x, want_y, turned]), atol=1e-9)


def test_the_truth_ends_where_odometry_ends(tmp_path):
    records = evaluate(tmp_path, Recipe(duration_s=8.0, odometry_end_s=5.0))
    assert int(np.isfinite(records.records[0].truth[:, 0]).sum()) == 35
    last = records.records[-1]
    assert (last.t0_ns - START_NS) / 1e9 == 5.0
    assert not np.isfinite(last.truth).any()


def test_the_truth_ends_where_odometry_jumps(tmp_path):
    """No error of 30 m is laid to the plan."""
    record = evaluate(tmp_path, Recipe(jump_at_s=4.0)).records[0]
    known = np.isfinite(record.truth[:, 0])
    assert known.sum() == 24  # up to 3.9 s
    np.testing.assert_allclose(record.truth[known], future(circle(), 1.5)[known], atol=1e-9)


def test_the_truth_ends_at_a_gap(tmp_path):
    records = evaluate(tmp_path, Recipe(duration_s=10.0, odometry_gap_s=(4.0, 4.5)))
    assert int(np.isfinite(records.records[0].truth[:, 0]).sum()) == 25


def test_true_futures_have_no_error(tmp_path):
    path = write_drive(tmp_path / "drive", Recipe(duration_s=10.0))
    first = evaluate_bag(path, "drive", Straight(), RunSettings(every_s=0.1))
    whole = [r for r in first.records if np.isfinite(r.truth).all()]
    plans = plans_file(tmp_path, np.array([r.t0_ns for r in whole]), [r.truth for r in whole])
    again = evaluate_bag(path, "drive", GivenDecider(plans), RunSettings(every_s=0.0))
    assert len(again.records) == len(whole) == 21
    for record in again.records:
        assert [ade_m(record.plan, record.truth, h) for h in (1.0, 3.0, 5.0, 6.4)] == [0, 0, 0, 0]
        assert record.reasons == ()
    assert again.refused[NOT_GIVEN] > 0


def plans_file(tmp_path: Path, t0_ns: np.ndarray, paths: list[np.ndarray]) -> Plans:
    """Plans that went through a file."""
    np.savez(tmp_path / "plans.npz", t0_ns=t0_ns, waypoints=np.array(paths))
    return Plans.load(tmp_path / "plans.npz")


def test_a_given_plan_counts_for_its_bag_only(tmp_path):
    path = write_drive(tmp_path / "drive", Recipe(duration_s=2.0))
    samples = np.zeros((2, 1, 64, 3))
    samples[1] += 1.0
    arrays = {"t0_ns": np.full(2, START_NS + 1_500_000_000), "samples": samples}
    np.savez(tmp_path / "p.npz", bag=np.array(["other", "drive"]), **arrays)
    decider = GivenDecider(Plans.load(tmp_path / "p.npz"))
    records = evaluate_bag(path, "drive", decider, RunSettings(every_s=0.0))
    assert records.records[0].plan[0, 0] == 1.0


def test_navigation_of_a_named_topic_is_heard(tmp_path):
    path = write_drive(tmp_path / "drive", Recipe(duration_s=2.0, navigation="Turn left"))
    decider = Straight()
    evaluate_bag(path, "drive", decider, RunSettings(topics=TopicChoice(navigation="/route")))
    assert {text for _, text in decider.asked} == {"Turn left"}
    evaluate_bag(path, "drive", decider, RunSettings())
    assert {text for _, text in decider.asked} == {""}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"duration_s": 1.0}, "odometry does not cover"),
        ({"odometry_shift_ns": 37_000_000_000}, "ahead of the clock"),
        ({"odometry_shift_ns": -37_000_000_000}, "odometry"),
        ({"odometry_end_s": 0.5}, "odometry does not cover"),
    ],
)
def test_a_bag_without_a_decision_says_why(tmp_path, change, says):
    with pytest.raises(BagError, match="no decision was made") as caught:
        evaluate(tmp_path, replace(Recipe(duration_s=4.0), **change))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_records_come_back_from_their_file_as_they_were(tmp_path):
    records = evaluate(tmp_path, Recipe(duration_s=4.0))
    records.save(tmp_path / "r.npz", "key")
    back = load_records(tmp_path / "r.npz", "key")
    plain = [name for name in vars(records) if name != "records"]
    assert {n: getattr(back, n) for n in plain} == {n: getattr(records, n) for n in plain}
    for mine, other in zip(records.records, back.records, strict=True):
        assert vars(mine).keys() == vars(other).keys()
        for name, value in vars(mine).items():
            np.testing.assert_array_equal(value, getattr(other, name), err_msg=name)


def test_records_of_other_settings_are_not_taken(tmp_path):
    evaluate(tmp_path, Recipe(duration_s=2.0)).save(tmp_path / "r.npz", "key")
    with pytest.raises(RecordsError, match="other settings"):
        load_records(tmp_path / "r.npz", "another")
    (tmp_path / "r.npz").write_bytes(b"PK damaged")
    with pytest.raises(RecordsError, match="damaged"):
        load_records(tmp_path / "r.npz", "key")


def test_a_file_of_arrays_that_are_no_records_is_refused(tmp_path):
    """Right names and right JSON, but a field too few, one too many, or too few rows."""
    whole = evaluate(tmp_path, Recipe(duration_s=2.0))
    whole.save(tmp_path / "r.npz", "key")
    with np.load(tmp_path / "r.npz") as file:
        arrays = dict(file)
    document = json.loads(str(arrays["text"]))
    fewer = {**document, "about": {"name": "drive"}}
    more = {**document, "records": [{**r, "colour": "red"} for r in document["records"]]}
    longer = {**document, "records": document["records"] * 9}
    for spoiled in (fewer, more, longer, {"schema": 1}, [], {"schema": 1, "key": "key"}):
        np.savez(tmp_path / "r.npz", **{**arrays, "text": np.array(json.dumps(spoiled))})
        with pytest.raises(RecordsError, match="damaged"):
            load_records(tmp_path / "r.npz", "key")
