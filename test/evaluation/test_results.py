"""metrics.json and decisions.csv: the right numbers, in the promised form, twice the same."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import alpamayo_ros.evaluation.results
from alpamayo_ros.evaluation.metrics import HORIZONS_S
from alpamayo_ros.evaluation.results import document, write_decisions, write_json
from alpamayo_ros.evaluation.scores import FIGURES, SUBJECTS

from .drives import circle
from .runs import bag_records, record, results, steady

SCHEMA = Path(alpamayo_ros.evaluation.results.__file__).with_name("metrics.schema.json")


def made(*bags) -> dict:
    run = results(*bags)
    return document(run, run.scored())


def figure(values: dict, subject: str, name: str, horizon_s: float) -> dict:
    (row,) = [
        row
        for row in values["figures"]
        if (row["subject"], row["figure"], row["horizon_s"]) == (subject, name, horizon_s)
    ]
    return row


@pytest.mark.parametrize("horizon_s", HORIZONS_S)
def test_a_known_offset_gives_the_figures_worked_out_by_hand(horizon_s):
    values = made(bag_records(steady(offset_m=(3.0, 4.0))))
    for name, want in [("ade", 5), ("fde", 5), ("min_ade", 3), ("min_fde", 3), ("miss", 1)]:
        assert figure(values, "model", name, horizon_s)["mean"] == pytest.approx(want, abs=1e-9)
    assert figure(values, "model", "ade", horizon_s)["count"] == 8
    assert figure(values, "constant_turn_rate_and_velocity", "ade", horizon_s)[
        "mean"
    ] == pytest.approx(0, abs=1e-9)
    assert figure(values, "constant_velocity", "ade", horizon_s)["mean"] > 0.02


def test_the_driven_sample_counts_and_not_the_first():
    records = [replace(r, chosen=1) for r in steady(offset_m=(3.0, 4.0))]
    assert figure(made(bag_records(records)), "model", "ade", 6.4)["mean"] == pytest.approx(3)


def test_the_document_fits_its_schema():
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    long = [record(circle(), 1.5 + k) for k in range(80)]
    silent = [replace(r, tokens=0, reasoning="", timing_ms={}) for r in steady()]
    for bags in ([bag_records(long)], [bag_records(silent), bag_records(steady(), "other")]):
        values = made(*bags)
        check.validate(values)
        assert {(r["subject"], r["figure"], r["horizon_s"]) for r in values["figures"]} == {
            (s, f, h) for s in SUBJECTS for f in FIGURES for h in HORIZONS_S
        }
    damaged = {**values, "decisions": -1}
    assert not check.is_valid(damaged)


def test_two_runs_are_byte_identical_but_for_times(tmp_path):
    bags = bag_records([record(circle(), 1.5 + k) for k in range(80)]), bag_records(steady(), "b")
    texts = []
    for created, wall_s in (("now", 1.0), ("later", 2.0)):
        run = replace(results(*bags), created=created, wall_s=wall_s)
        values = document(run, run.scored())
        values.pop("times")
        write_json(tmp_path / "m.json", values)
        texts.append((tmp_path / "m.json").read_bytes())
    assert texts[0] == texts[1]


def test_where_the_truth_ends_fewer_decisions_count_and_the_document_says_so():
    records = steady()
    cut = records[0].truth.copy()
    cut[40:] = np.nan
    values = made(bag_records([replace(records[0], truth=cut), *records[1:]]))
    assert values["decisions_with_truth"] == {"1.0": 8, "3.0": 8, "5.0": 7, "6.4": 7}
    assert figure(values, "model", "ade", 5.0)["count"] == 7
    assert figure(values, "constant_velocity", "ade", 5.0)["count"] == 7
    assert values["comfort"]["driven"]["uncomfortable"]["count"] == 7


def test_a_plan_of_nan_is_counted_and_in_no_figure():
    records = steady(offset_m=(3.0, 4.0))
    spoiled = records[0].samples.copy()
    spoiled[1, 3, 0] = np.nan
    values = made(bag_records([replace(records[0], samples=spoiled), *records[1:]]))
    assert values["decisions_not_finite"] == 1
    assert figure(values, "model", "ade", 1.0)["count"] == 7
    assert figure(values, "constant_velocity", "ade", 1.0)["count"] == 8
    json.dumps(values, allow_nan=False)


def test_the_table_leaves_the_figures_of_such_a_plan_empty(tmp_path):
    spoiled = record(circle(), 2.0)
    spoiled.samples[1, 3, 0] = np.nan
    write_decisions(tmp_path / "d.csv", results(bag_records([spoiled])).scored())
    with open(tmp_path / "d.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert {row[f"model.{name}.1s"] for name in FIGURES} == {""}
    assert row["constant_velocity.ade.1s"] != ""


def test_plans_that_share_less_than_half_of_their_horizon_are_not_held_against_each_other():
    for gap_s, count in ((3.2, 2), (3.4, 0)):
        values = made(bag_records(steady(3, every_s=gap_s)))
        assert values["inconsistency_m"]["model"]["count"] == count


def test_plans_of_one_motion_are_consistent_and_shifted_ones_are_not():
    whole = made(bag_records(steady()))["inconsistency_m"]["model"]
    assert whole["mean"] == pytest.approx(0, abs=1e-3)  # linear between waypoints of a circle
    assert whole["count"] == 7
    records = steady()
    records[1::2] = [record(circle(), r.t_s, (0.0, 0.5)) for r in records[1::2]]
    shifted = made(bag_records(records))["inconsistency_m"]["model"]
    assert shifted["mean"] == pytest.approx(0.5, abs=0.01)


def test_plans_of_two_bags_are_not_held_against_each_other():
    bags = bag_records(steady(3)), bag_records(steady(3), "other")
    assert made(*bags)["inconsistency_m"]["model"]["count"] == 4


def test_the_gate_is_counted_by_reason():
    records = steady(4)
    records[0] = replace(records[0], reasons=("lateral: 7 m/s2", "speed: 70 m/s"))
    records[1] = replace(records[1], reasons=("lateral: 8 m/s2",))
    assert made(bag_records(records))["gate"] == {
        "accepted": 2,
        "rejected": 2,
        "rejected_by": {"lateral": 2, "speed": 1},
    }


def test_words_are_held_against_the_path():
    records = steady(4)
    records[0] = replace(records[0], reasoning="Turn right.")
    records[1] = replace(records[1], reasoning="The sky is blue.")
    reasoning = made(bag_records(records))["reasoning"]
    assert reasoning["claims"]["left"] == {"said": 2, "done": 2}
    assert reasoning["claims"]["right"] == {"said": 1, "done": 0}
    assert reasoning["agreement"]["mean"] == pytest.approx(2 / 3)
    assert reasoning["agreement"]["count"] == 3


def test_the_table_has_a_row_a_decision_and_the_figures_of_the_document(tmp_path):
    records = steady(offset_m=(3.0, 4.0))
    records[2] = replace(records[2], reasoning='line\nbreak, "quote"; comma')
    run = results(bag_records(records))
    write_decisions(tmp_path / "d.csv", run.scored())
    with open(tmp_path / "d.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["t0_ns"]) for row in rows] == [r.t0_ns for r in records]
    assert {row["model.ade.6.4s"] for row in rows} == {"5"}
    assert rows[2]["reasoning"] == 'line break, "quote"; comma'
    assert rows[0]["inconsistency_m"] == ""
    assert float(rows[0]["total_ms"]) == 41.5
