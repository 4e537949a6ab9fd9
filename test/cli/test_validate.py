"""alpamayo_validate: two results agree, or not, or cannot be compared."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alpamayo_ros.cli import inference
from alpamayo_ros.cli.validate import main

RESULT: dict[str, Any] = {
    "waypoints": [[0.5 * k, 0.01 * k, 0.001 * k] for k in range(1, 65)],
    "token_ids": [[5, 6, 7]],
    "run_id": "a",
    "device": "cpu",
    "model": "model@0123456789ab",
    "seed": 3,
    "t0_ns": 1_700_000_000_000_000_000,
    "finite": True,
    "dtype": "float32",
}


@pytest.fixture
def validate(tmp_path: Path, capsys: pytest.CaptureFixture):
    """Exit code and output of comparing RESULT with a changed copy of another run and device."""

    def compare(change=lambda values: None, *options: str) -> tuple[int, dict]:
        candidate = copy.deepcopy(RESULT) | {"run_id": "b", "device": "npu:0"}
        change(candidate)
        for name, values in (("a", RESULT), ("b", candidate)):
            (tmp_path / f"{name}.json").write_text(json.dumps(values))
        files = ["--reference", str(tmp_path / "a.json"), "--candidate", str(tmp_path / "b.json")]
        code = main([*files, *options])
        return code, json.loads(capsys.readouterr().out)

    return compare


def move(row: int, column: int, by: float):
    def change(values: dict) -> None:
        values["waypoints"][row][column] += by

    return change


def test_equal_results_pass(validate) -> None:
    assert validate() == (
        0,
        {"count": 192, "finite": True, "max_abs": 0.0, "max_rel": 0.0, "tokens_equal": True,
         "passed": True},
    )  # fmt: skip


@pytest.mark.parametrize(("by", "code"), [(0.0299, 0), (-0.0299, 0), (0.0301, 1), (-0.0301, 1)])
def test_a_number_may_be_off_by_atol_and_rtol_of_the_reference(validate, by, code) -> None:
    # x of waypoint 1 is 0.5 m: 0.005 + 0.05 * 0.5 = 0.03 m.
    got, written = validate(move(0, 0, by))
    assert got == code
    assert written["passed"] is (code == 0)
    assert written["max_abs"] == pytest.approx(0.03, abs=2e-4)
    assert written["max_rel"] == pytest.approx(0.06, abs=4e-4)


def test_the_tolerances_can_be_given(validate) -> None:
    assert validate(move(0, 0, 0.02), "--atol", "0.01", "--rtol", "0")[0] == 1
    assert validate(move(0, 0, 0.02), "--atol", "0.03", "--rtol", "0")[0] == 0


def test_yaw_is_compared_modulo_a_full_turn(validate) -> None:
    code, written = validate(move(9, 2, -2 * np.pi))
    assert code == 0
    assert written["max_abs"] == pytest.approx(0.0, abs=1e-12)
    assert validate(move(9, 0, -2 * np.pi))[0] == 1


def test_a_number_that_is_not_finite_never_passes(validate) -> None:
    def lose(values: dict) -> None:
        values["waypoints"][3][1] = None

    code, written = validate(lose, "--atol", "1e9")
    assert code == 1
    assert (written["finite"], written["passed"], written["max_abs"]) == (False, False, 0.0)


def test_a_candidate_that_says_it_is_not_finite_does_not_pass(validate) -> None:
    code, written = validate(lambda values: values.update(finite=False))
    assert (code, written["finite"], written["passed"], written["max_abs"]) == (1, False, False, 0)


@pytest.mark.filterwarnings("error")
def test_the_largest_tolerances_pass_all_that_is_finite_without_a_warning(validate) -> None:
    assert validate(move(5, 0, 1e9), "--rtol", "1e308", "--atol", "1e308")[0] == 0


def test_name_of_the_folder_and_type_of_the_numbers_may_differ(validate) -> None:
    other = {"model": "copy@0123456789ab", "dtype": "bfloat16"}
    assert validate(lambda values: values.update(other))[0] == 0


def test_a_file_of_an_earlier_version_has_no_t0(validate) -> None:
    assert validate(lambda values: values.pop("t0_ns"))[0] == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [float("inf"), -float("inf"), float("nan"), 1e308, -1e308])
def test_a_wild_number_fails_without_a_warning(validate, number) -> None:
    def spoil(values: dict) -> None:
        values["waypoints"][0] = [number] * 3

    assert validate(spoil)[0] == 1


def test_other_tokens_are_said_but_do_not_fail(validate) -> None:
    code, written = validate(lambda values: values.update(token_ids=[[5, 8]]))
    assert (code, written["tokens_equal"]) == (0, False)


def refused(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def write(path: Path, **changes: Any) -> str:
    path.write_text(json.dumps({k: v for k, v in (RESULT | changes).items() if v is not None}))
    return str(path)


def test_a_run_cannot_vouch_for_itself(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    a, b = write(tmp_path / "a"), write(tmp_path / "b", device="npu:0")
    assert "are of one run (a): a run says nothing about itself" in refused(
        capsys, "--cpu", a, "--npu", b
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "model@ba9876543210"}, "of model model@0123456789ab, "),
        ({"model": "model"}, "of model model@0123456789ab, "),
        ({"seed": 4}, "is of seed 3, "),
        ({"t0_ns": 1_700_000_000_000_000_001}, "is of t0_ns 1700000000000000000, "),
    ],
)
def test_results_of_two_models_seeds_or_snapshots_say_nothing_of_a_device(
    tmp_path: Path, capsys: pytest.CaptureFixture, changes: dict, message: str
) -> None:
    files = write(tmp_path / "a"), write(tmp_path / "b", run_id="b", device="npu:0", **changes)
    line = refused(capsys, "--reference", files[0], "--candidate", files[1])
    assert message in line
    assert "give two runs of one model, seed and snapshot" in line


def test_one_device_is_compared_with_itself_only_when_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    files = ["--cpu", write(tmp_path / "a"), "--npu", write(tmp_path / "b", run_id="b")]
    assert "both runs are of device cpu; give runs of two devices, or" in refused(capsys, *files)
    assert main([*files, "--allow-same-device"]) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"waypoints": None}, "is no result of alpamayo_inference: it lacks 'waypoints'"),
        ({"run_id": None}, "is no result of alpamayo_inference: it lacks 'run_id'"),
    ],
)
def test_another_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture, changes: dict, message: str
) -> None:
    files = write(tmp_path / "a"), write(tmp_path / "b", **changes)
    assert message in refused(capsys, "--reference", files[0], "--candidate", files[1])


ROWS = RESULT["waypoints"]
HOSTILE = {
    "run_id": [None, 5, 0.5, True, [], ["a"], {}, "", " "],
    "device": [
        *(None, 0, True, [], ["cpu"], {}, "", "CPU", "cpu:0", "tpu", "cuda", "npu:", "npu:-1"),
        *("npu:00", "cuda:01", "npu:0 ", "npu:0\n", "npu:\u0663", "cuda:x"),
    ],
    "model": [None, 5, True, [], {}, "", " "],
    "seed": [None, 0.5, 3.0, True, "3", [], {}, -1, 2**63],
    "t0_ns": [0.5, 3.0, True, "3", [], {}, -1],
    "finite": [None, 1, "true", [], {}],
    "waypoints": [
        *(None, 5, "far", True, {}, [], [[1, 2, 3]], ROWS[1:], [*ROWS, ROWS[0]], [0.0] * 64),
        *([[0.0, 0.0]] * 64, [[0.0] * 4] * 64, [*ROWS[1:], [0.0, 1.0]], [*ROWS[1:], None]),
        *([*ROWS[1:], {"0": 1, "1": 2, "2": 3}], [*ROWS[1:], "abc"], [[[0.0]] * 3] * 64),
        *([*ROWS[1:], [0.0, 1.0, bad]] for bad in ("1.5", True, [], {}, 10**400, -(10**400))),
    ],
    "token_ids": [
        *(None, 5, 0.5, "abc", True, {}, [], [5, 6, 7], [[]], [[5], []], [None], [[None]]),
        *([[5.0]], [[True]], [["5"]], [[-1]], [[[5]]], [{"5": 6}], [float("nan")], [[1]] * 65),
        *([[float("nan")]], [[float("inf")]]),
    ],
}


@pytest.mark.parametrize("side", ["reference", "candidate"])
@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in HOSTILE.items() for value in values]
)
def test_an_entry_that_no_run_writes_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture, side: str, name: str, value: Any
) -> None:
    results = {"reference": dict(RESULT), "candidate": RESULT | {"run_id": "b", "device": "npu:0"}}
    results[side][name] = value
    for which, values in results.items():
        (tmp_path / which).write_text(json.dumps(values))
    message = refused(
        capsys,
        *("--reference", str(tmp_path / "reference"), "--candidate", str(tmp_path / "candidate")),
    )
    assert f"{side} is no result of alpamayo_inference: {name} must be " in message
    assert len(message) < 400


def test_the_result_is_written_to_a_file_if_one_is_named(tmp_path: Path, validate, capsys) -> None:
    file = tmp_path / "comparison.json"
    a, b = write(tmp_path / "a"), write(tmp_path / "b", run_id="b", device="npu:0")
    assert main(["--cpu", a, "--npu", b, "--output", str(file)]) == 0
    assert json.loads(file.read_text())["passed"] is True
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "[" * 100_000, "9" * 5000, "\0"])
def test_a_damaged_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture, content: str
) -> None:
    (tmp_path / "b").write_text(content)
    files = ["--reference", write(tmp_path / "a"), "--candidate", str(tmp_path / "b")]
    assert str(tmp_path / "b") in refused(capsys, *files)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reference", "/no/a"], "the following arguments are required: --candidate/--npu"),
        (["--reference", "/no/a", "--candidate", "/no/b"], "/no/a: there is no such file"),
        (["--reference", "a", "--candidate", "b", "--atol", "nan"], "--atol must be a finite"),
        (["--reference", "a", "--candidate", "b", "--rtol", "-1"], "--rtol must be a finite"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture, arguments, message) -> None:
    assert message in refused(capsys, *arguments)


def test_two_runs_of_the_demo_agree(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for file in files:
        assert inference.main(["--device", "cpu", "--greedy", "--output", file]) == 0
    assert main(["--reference", files[0], "--candidate", files[1], "--allow-same-device"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written["tokens_equal"]
    assert written["max_abs"] < 1e-4
