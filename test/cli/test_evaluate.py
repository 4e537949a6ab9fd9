"""alpamayo_evaluate as a user calls it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from alpamayo_ros.cli.evaluate import main
from test.evaluation.drives import START_NS, Recipe, circle, future, write_drive

FILES = {"metrics.json", "decisions.csv", "report.html", "bags", "plans", ".alpamayo_evaluate"}


@pytest.fixture(scope="module")
def bag(tmp_path_factory) -> Path:
    return write_drive(tmp_path_factory.mktemp("bag") / "drive", Recipe(duration_s=9.0))


@pytest.fixture(scope="module")
def plans(tmp_path_factory) -> Path:
    """The true futures of the first second of decisions."""
    path = tmp_path_factory.mktemp("plans") / "plans.npz"
    t0s_s = np.arange(1.5, 2.5, 0.1)
    t0_ns = START_NS + np.round(t0s_s * 1e9).astype(np.int64)
    np.savez(path, t0_ns=t0_ns, waypoints=np.array([future(circle(), t) for t in t0s_s]))
    return path


def metrics(output: Path) -> dict:
    return json.loads((output / "metrics.json").read_text())


def test_the_built_in_model_is_evaluated_twice_alike_and_all_files_are_written(bag, tmp_path):
    texts = []
    for name in ("a", "b"):
        output = tmp_path / name
        options = ["--num-samples", "2", "--every", "2", "--max-new-tokens", "8"]
        assert main([str(bag), *options, "--output", str(output)]) == 0
        assert {path.name for path in output.iterdir()} == FILES
        text = (output / "metrics.json").read_text()
        texts.append(text[: text.index('"times"')])
    assert texts[0] == texts[1]
    values = metrics(tmp_path / "a")
    assert values["decisions"] == 4
    assert values["model"]["id"].startswith("demo")
    assert values["configuration"]["num_samples"] == 2


def test_features_that_are_reused_change_no_plan(tmp_path):
    """Every 0.1 s twelve of sixteen images are known from the decision before; every 1 s none."""
    bag = write_drive(tmp_path / "drive", Recipe(duration_s=3.0))
    plans = {}
    for every in ("0.1", "1"):
        output = tmp_path / every
        options = ["--num-samples", "1", "--every", every, "--max-new-tokens", "4"]
        assert main([str(bag), *options, "--output", str(output)]) == 0
        with np.load(output / "bags" / "drive.npz") as file:
            rows = json.loads(str(file["text"]))["records"]
            plans[every] = {row["t0_ns"]: s for row, s in zip(rows, file["samples"])}
    both = plans["1"].keys() & plans["0.1"].keys()
    assert len(both) == len(plans["1"]) == 2
    for t0_ns in both:
        np.testing.assert_allclose(plans["0.1"][t0_ns], plans["1"][t0_ns], atol=1e-4)


def test_true_futures_score_zero(bag, plans, tmp_path, capsys):
    assert main([str(bag), "--plans", str(plans), "--output", str(tmp_path / "o")]) == 0
    values = metrics(tmp_path / "o")
    of_model = [row for row in values["figures"] if row["subject"] == "model"]
    assert {row["count"] for row in of_model} == {10}
    assert max(row["mean"] for row in of_model) < 1e-9
    assert values["gate"]["accepted"] == 10
    assert "ADE 0.00 m" in capsys.readouterr().out


def test_a_comparison_is_written(bag, plans, tmp_path):
    for name, more in (("a", []), ("b", ["--compare", str(tmp_path / "a")])):
        command = [str(bag), "--plans", str(plans), "--output", str(tmp_path / name), *more]
        assert main(command) == 0
    values = json.loads((tmp_path / "b" / "compare.json").read_text())
    assert values["decisions"] == 10
    assert {row["estimate"]["mean"] for row in values["differences"]} == {0.0}
    assert "Compared with" in (tmp_path / "b" / "report.html").read_text()


def test_some_broken_bags_end_with_1_and_are_named(bag, plans, tmp_path, capsys):
    broken = write_drive(tmp_path / "broken", Recipe(duration_s=2.0, leave_out=("odometry",)))
    output = tmp_path / "o"
    assert main([str(broken), str(bag), "--plans", str(plans), "--output", str(output)]) == 1
    values = metrics(output)
    assert [bag["name"] for bag in values["bags"]] == ["drive"]
    assert [bag["name"] for bag in values["failed_bags"]] == ["broken"]
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "no topic is odometry" in error


def test_the_table_has_as_many_rows_as_decisions(bag, plans, tmp_path):
    output = tmp_path / "o"
    assert main([str(bag), "--plans", str(plans), "--output", str(output)]) == 0
    with open(output / "decisions.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 10


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--every", "-1"], "--every -1: allowed are 0 to 3600"),
        (["--num-samples", "0"], "--num-samples 0: allowed are 1 to 64"),
        (["--camera", "front=/x"], "the roles are cross_left"),
        (["--camera", "=/x"], "want ROLE=TOPIC"),
        (["--camera", "front_wide"], "want ROLE=TOPIC"),
        (["--camera", "front_wide=/x"], "it is not there"),
        (["--odometry", "/x"], "it is not there"),
        (["--plans", "/nowhere.npz"], "there is no such file"),
        (["--model", "/nowhere"], "/nowhere"),
        (["--compare", "/nowhere"], "earlier evaluation"),
        (["--engine", "cloud"], "invalid choice"),
    ],
)
def test_a_mistake_is_one_line_and_2(bag, plans, tmp_path, capsys, options, says):
    given = [] if {"--plans", "--model"} & set(options) else ["--plans", str(plans)]
    assert main([str(bag), *given, *options, "--output", str(tmp_path / "o")]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "o" / "metrics.json").exists()


def test_no_bag_is_one_line_and_2(plans, tmp_path, capsys):
    command = [str(tmp_path / "none"), "--plans", str(plans), "--output", str(tmp_path / "o")]
    assert main(command) == 2
    assert "there is no such bag" in capsys.readouterr().err


def test_a_folder_of_something_else_is_not_touched(bag, plans, tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert main([str(bag), "--plans", str(plans), "--output", str(tmp_path)]) == 2
    assert "is not empty and of no evaluation" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
