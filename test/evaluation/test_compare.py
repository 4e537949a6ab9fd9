"""Two runs against each other: paired by bag and t0, with a sign and a chance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from alpamayo_ros.evaluation.compare import CompareError, Comparison, compare, load_run
from alpamayo_ros.evaluation.records import BagRecords, RecordsError

from .drives import circle
from .runs import NO_ORIGIN, bag_records, folder_of_run, record, results, steady


def compared(tmp_path, here: BagRecords, there: BagRecords) -> Comparison:
    other = load_run(folder_of_run(tmp_path / "other", there))
    run = results(here)
    return compare(run.scored(), run.bags, other, "other", NO_ORIGIN, seed=0)


def row(comparison: Comparison, figure: str, horizon_s: float):
    (found,) = [r for r in comparison.rows if (r.figure, r.horizon_s) == (figure, horizon_s)]
    return found


def long(offset_m: tuple[float, float]) -> BagRecords:
    """Two minutes: twelve stretches of 10 s."""
    return bag_records([record(circle(), 1.5 + k, offset_m) for k in range(118)])


def test_a_plan_two_metres_nearer_is_better_by_two_metres(tmp_path):
    found = row(compared(tmp_path, long((0.0, 1.0)), long((0.0, -3.0))), "ade", 6.4)
    assert found.estimate.mean == pytest.approx(-2, abs=1e-9)
    assert found.estimate.high == pytest.approx(-2, abs=1e-9)
    assert (found.better, found.worse) == (118, 0)
    assert found.p_value == pytest.approx(2 / 2**12)


def test_a_run_against_itself_differs_in_nothing(tmp_path):
    comparison = compared(tmp_path, long((0.0, 1.0)), long((0.0, 1.0)))
    assert {r.estimate.mean for r in comparison.rows} == {0.0}
    assert {r.p_value for r in comparison.rows} == {None}
    assert (comparison.only_here, comparison.only_there) == (0, 0)


def test_only_decisions_that_both_made_are_compared(tmp_path):
    comparison = compared(
        tmp_path, bag_records(steady(6)), bag_records(steady(4, (0.0, 1.0), every_s=1.0))
    )
    assert (comparison.decisions, comparison.only_here, comparison.only_there) == (3, 3, 1)
    assert row(comparison, "ade", 1.0).estimate.mean == pytest.approx(-1, abs=1e-9)


def test_runs_on_other_bags_have_nothing_in_common(tmp_path):
    with pytest.raises(CompareError, match="no decision is on the same bag"):
        compared(tmp_path, bag_records(steady()), bag_records(steady(), "another"))


def test_a_folder_of_no_run_is_refused(tmp_path):
    with pytest.raises(CompareError, match="want the --output of an earlier evaluation"):
        load_run(tmp_path)


def test_bags_that_an_earlier_run_has_left_beside_are_not_compared(tmp_path):
    """Records of a bag that the last run into the folder was not about, from another model."""
    folder = folder_of_run(tmp_path / "other", bag_records(steady(), "a"))
    bag_records(steady(), "b").save(folder / "bags" / "b.npz", "key")
    assert [bag.name for bag in load_run(folder)] == ["a"]


def test_a_run_that_was_started_anew_and_not_finished_is_refused(tmp_path):
    folder = folder_of_run(tmp_path / "other", bag_records(steady()))
    replace(bag_records(steady()), model_id="another").save(folder / "bags" / "drive.npz", "key")
    with pytest.raises(CompareError, match="records of drive are not those"):
        load_run(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"model": {}, "bags": 3}', "\0"])
def test_a_damaged_metrics_json_is_refused(tmp_path, text):
    folder = folder_of_run(tmp_path / "other", bag_records(steady()))
    (folder / "metrics.json").write_text(text)
    with pytest.raises(CompareError, match=r"metrics\.json is damaged"):
        load_run(folder)


def test_records_that_are_gone_or_damaged_are_named(tmp_path):
    folder = folder_of_run(tmp_path / "other", bag_records(steady()))
    file = folder / "bags" / "drive.npz"
    whole = file.read_bytes()
    file.unlink()
    with pytest.raises(RecordsError, match=r"drive\.npz: there is no such file"):
        load_run(folder)
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RecordsError, match=r"drive\.npz is damaged"):
        load_run(folder)
