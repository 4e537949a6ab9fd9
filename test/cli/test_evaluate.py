"""alpamayo_evaluate as a user calls it."""

from __future__ import annotations

import csv
import fcntl
import json
import resource
import signal
import subprocess
import sys
import time
import warnings
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


def test_given_plans_of_what_is_no_number_are_counted_without_a_word(bag, tmp_path, capfd):
    paths = np.array([future(circle(), t) for t in np.arange(1.5, 2.5, 0.1)])
    paths[1], paths[2, 5, 0], paths[3, :, 0], paths[4] = np.nan, np.inf, -np.inf, 1e300
    t0_ns = START_NS + np.round(np.arange(1.5, 2.5, 0.1) * 1e9).astype(np.int64)
    np.savez(tmp_path / "p.npz", t0_ns=t0_ns, waypoints=paths)
    command = [str(bag), "--plans", str(tmp_path / "p.npz"), "--output", str(tmp_path / "o")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(command) == 0
    assert capfd.readouterr().err == ""
    values = metrics(tmp_path / "o")
    assert values["decisions_not_finite"] == 3
    assert values["gate"] == {
        "accepted": 6,
        "rejected": 4,
        "rejected_by": {"non_finite": 3} | values["gate"]["rejected_by"],
    }


def test_two_runs_at_once_do_not_write_into_one_folder(bag, plans, tmp_path, capsys):
    output = tmp_path / "o"
    command = [str(bag), "--plans", str(plans), "--output", str(output)]
    assert main(command) == 0
    before = {path: path.stat().st_mtime_ns for path in output.glob("[!.]*")}
    with open(output / ".alpamayo_evaluate", "a") as marker:
        fcntl.flock(marker, fcntl.LOCK_EX)
        assert main(command) == 2
    assert "another run is writing into it" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert main(command) == 0


def test_what_an_earlier_run_on_another_bag_has_left_is_not_shown_as_of_this_one(
    bag, plans, tmp_path
):
    output = tmp_path / "o"
    other = write_drive(tmp_path / "other", Recipe(duration_s=4.0))
    compared = ["--compare", str(output)]
    for path, more in ((other, []), (other, compared), (bag, [])):
        command = [str(path), "--plans", str(plans), "--output", str(output), *more]
        assert main(command) == 0
        assert (output / "compare.json").exists() == bool(more)
        assert [folder.name for folder in (output / "plans").iterdir()] == [path.name]


@pytest.mark.parametrize("most_bytes", [3_000, 100_000])
def test_a_full_disk_is_one_line_that_names_what_cannot_be_written(
    bag, plans, tmp_path, capsys, most_bytes
):
    """The system refuses to let a file grow: in the records, then in what is made of them."""
    output = tmp_path / "o"
    command = [str(bag), "--plans", str(plans), "--output", str(output)]
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, unlimited[1]))
    try:
        assert main(command) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(output) in error
    assert not [path for path in output.rglob("*") if "draft" in path.name]
    assert main(command) == 0


def test_a_run_that_is_interrupted_ends_quietly_and_goes_on_where_it_was(plans, tmp_path):
    paths = [write_drive(tmp_path / f"k{i}", Recipe(duration_s=3.0 + i)) for i in range(3)]
    command = [sys.executable, "-m", "alpamayo_ros.cli.evaluate", *map(str, paths)]
    command += ["--plans", str(plans), "--output"]
    output = tmp_path / "o"
    process = subprocess.Popen([*command, str(output)], stderr=subprocess.PIPE, text=True)
    deadline_s = time.monotonic() + 60
    while not list(output.glob("bags/*.npz")) and process.poll() is None:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "")
    kept = {path: path.stat().st_mtime_ns for path in output.glob("bags/*.npz")}
    assert len(kept) < 3
    assert main([*command[3:], str(output)]) == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert main([*command[3:], str(tmp_path / "whole")]) == 0
    texts = [(folder / "metrics.json").read_text() for folder in (output, tmp_path / "whole")]
    assert texts[0].split('"times"')[0] == texts[1].split('"times"')[0]


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
