"""alpamayo_inference: one JSON object, or one line saying what is wrong."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from alpamayo_ros import __version__
from alpamayo_ros.cli.common import UsageError, write_json
from alpamayo_ros.cli.inference import as_json, main
from alpamayo_ros.demo.small_model import load_demo_model
from alpamayo_ros.model.recipe import write_recipe_checkpoint
from alpamayo_ros.sensing.fake import fake_snapshot
from alpamayo_ros.types import Plan
from test.model.golden import (
    TINY_CHECKPOINT,
    TRAJECTORY_ATOL_M,
    YAW_ATOL_RAD,
    GoldenRollout,
    load_rollout,
    write_stand_in_tokenizer,
)

ROOT = Path(__file__).parents[2]
KEYS = [
    *("waypoints", "samples", "chosen", "spread", "reasoning", "token_ids", "truncated"),
    *("finite", "seed", "t0_ns", "device", "dtype", "model", "run_id", "timing_ms"),
]


def run(capsys: pytest.CaptureFixture, *arguments: str) -> dict:
    """What the program prints, on the CPU."""
    assert main(["--device", "cpu", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_demo_is_planned_without_any_option(capsys: pytest.CaptureFixture) -> None:
    written = run(capsys)
    assert list(written) == KEYS
    assert np.shape(written["waypoints"]) == (64, 3)
    assert np.shape(written["samples"]) == (1, 64, 3)
    assert written["finite"] is True
    assert written["model"].startswith("demo-")
    assert (written["device"], written["dtype"], written["seed"]) == ("cpu", "float32", 0)


def test_the_program_and_python_plan_alike(capsys: pytest.CaptureFixture) -> None:
    written = run(capsys, "--seed", "3", "--num-samples", "2", "--max-new-tokens", "8")
    plan = load_demo_model().plan(fake_snapshot(3), num_samples=2, seed=3, max_new_tokens=8)
    assert written["token_ids"] == [list(ids) for ids in plan.token_ids]
    np.testing.assert_allclose(written["samples"], plan.samples, atol=1e-5)
    assert written["waypoints"] == written["samples"][written["chosen"]]


def test_every_run_has_its_own_id(capsys: pytest.CaptureFixture) -> None:
    assert run(capsys, "--greedy")["run_id"] != run(capsys, "--greedy")["run_id"]


@pytest.fixture(scope="module")
def golden_files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[GoldenRollout], list[str]]:
    """Writes the files of a golden case; the options that name them."""
    root = tmp_path_factory.mktemp("golden")
    write_stand_in_tokenizer(root / "tokenizer")

    @cache
    def checkpoint(boost: float) -> str:
        return str(write_recipe_checkpoint(root / f"model {boost}", TINY_CHECKPOINT, boost))

    def options(golden: GoldenRollout) -> list[str]:
        files = {name: str(root / f"{golden.name} {name}") for name in ("snapshot", "noise",
                                                                        "tokens")}  # fmt: skip
        golden.snapshot.save(f"{files['snapshot']}.npz")
        np.save(files["noise"], golden.arrays["noise"])
        given = ["--model", checkpoint(golden.boost), "--tokenizer", str(root / "tokenizer")]
        given += ["--snapshot", f"{files['snapshot']}.npz", "--noise", f"{files['noise']}.npy"]
        if golden.tokens is not None:
            np.save(files["tokens"], golden.tokens.astype(np.int32))
            return [*given, "--tokens", f"{files['tokens']}.npy"]
        return [*given, "--greedy", "--max-new-tokens", str(golden.max_new_tokens)]

    return options


@pytest.mark.parametrize("name", ["ends", "three_samples", "forced_lengths", "no_end_token"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_golden_case_passes_through_the_program(
    capsys: pytest.CaptureFixture, golden_files: Callable, name: str, threads: int
) -> None:
    golden = load_rollout(name)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        written = run(capsys, *golden_files(golden))
    finally:
        torch.set_num_threads(before)
    samples = np.array(written["samples"])
    assert len(samples) == golden.num_samples  # as many as the noise has
    tokens = [list(row) for row in golden.expected_tokens]
    if name == "no_end_token":
        # The reference's trajectory follows a fallback position there; only its tokens compare.
        assert written["token_ids"] == [[*row, 155681] for row in tokens]
        assert written["truncated"] == [True]
        return
    assert written["token_ids"] == tokens
    error = np.abs(samples[..., :2] - golden.arrays["pred_xyz"][..., :2]).max()
    assert error <= TRAJECTORY_ATOL_M
    turns = (samples[..., 2] - golden.expected_yaw) / (2 * np.pi)
    assert np.abs(turns - np.round(turns)).max() * 2 * np.pi <= YAW_ATOL_RAD


def test_tokens_from_a_file_are_the_reasoning(
    capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    end = 640 + 1024 + 12  # traj_future_start of the small model
    np.save(tmp_path / "tokens.npy", np.array([[300, end, -1], [301, 302, end]], np.int32))
    written = run(capsys, "--tokens", str(tmp_path / "tokens.npy"))
    assert written["token_ids"] == [[300, end], [301, 302, end]]


def test_inference_py_at_the_root_is_the_same_program() -> None:
    result = subprocess.run(
        [sys.executable, "inference.py", "--seed", "0", "--device", "cpu"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    written = json.loads(result.stdout)
    expected = load_demo_model().plan(fake_snapshot(0), seed=0)
    np.testing.assert_allclose(written["samples"], expected.samples, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["--seed", "x"], "argument --seed: invalid int value: 'x'"),
        (["--seed", "-1"], "seed must be 0 to 9223372036854775807, got -1"),
        (["--dtype", "float16"], "argument --dtype: invalid choice: 'float16'"),
        (["--device", "tpu"], "device 'tpu' is not known; use auto, cpu, cuda:0 or npu:0"),
        (["--model", "/no/such"], "model folder /no/such: there is no such folder"),
        (["--snapshot", "/no/such.npz"], "snapshot /no/such.npz: there is no such file"),
        (["--noise", "/no/such.npy"], "--noise /no/such.npy: there is no such file"),
        (["--tokens", __file__], f"--tokens {__file__} is no .npy file"),
        (["--temperature", "0"], "temperature must be 0.01 to 10, got 0.0; greedy takes the most"),
        (["--temperature", "1e-300"], "temperature must be 0.01 to 10, got 1e-300"),
        (["--temperature", "nan"], "temperature must be 0.01 to 10, got nan"),
        (["--top-p", "nan"], "top_p must be 0.01 to 1, got nan"),
        (["--max-new-tokens", "5000"], "max_new_tokens must be 1 to 1024, got 5000"),
        (["--seed", "9" * 5000], "argument --seed: invalid int value"),
        (
            ["--navigation", "\udcff"],
            "the navigation text holds bytes that are no UTF-8: '\\udcff'",
        ),
        (["--navigation", "x" * 2001], "the navigation text has 2001 characters, at most 2000"),
        (["--tokenizer", "/no/such"], "the demo model has a tokenizer of its own: leave out"),
        (["--device", "npu:" + "7" * 5000], "device 'npu:77777777...7777777777777' is not known;"),
        (["--device", "cpu:7"], "device cpu:7: there is only one CPU; use cpu"),
        (["--model", ""], '--model is empty: give the folder of a checkpoint, or "demo"'),
        (["--model", "two\nlines"], "model folder two lines: there is no such folder"),
        (["--greedy", "--top-p", "0.5"], "--greedy does not sample: leave out --temperature and"),
        (["--num-samples", "0"], "num_samples must be 1 to 64, got 0"),
        (["--output", "/no/such/folder/x.json"], "--output /no/such/folder/x.json cannot be"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture, arguments: list[str], message: str
) -> None:
    if "--device" not in arguments:
        arguments = ["--device", "cpu", *arguments]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_a_file_of_arrays_that_does_not_fit_is_one_line(
    capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    path = str(tmp_path / "array.npy")
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000, 64, 2), }"
    for option, data, message in (
        ("--tokens", np.zeros((1, 1025), np.int32), "with n from 1 to 1024, got (1, 1025)"),
        ("--tokens", np.zeros((1, 3)), "tokens must be whole numbers"),
        ("--noise", np.zeros((0, 64, 2), np.float32), "num_samples must be 1 to 64, got 0"),
        ("--noise", np.zeros((1, 64, 2), complex), "noise must be finite float32 (1, 64, 2)"),
        ("--noise", np.array([[{}]], object), f"--noise {path} is no .npy file: "),
        ("--noise", b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(118), f"--noise {path} is no .npy"),
    ):
        if isinstance(data, bytes):
            Path(path).write_bytes(data)
        else:
            np.save(path, data)
        assert main(["--device", "cpu", option, path]) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.err.count("\n") == 1


def test_a_wild_snapshot_is_one_line(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    path = tmp_path / "wild.npz"
    fake_snapshot(0, 64, 96).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays["ego_history_xyz"][0] = 1e308
    np.savez(path, **arrays)
    assert main(["--device", "cpu", "--snapshot", str(path)]) == 2
    assert "ego_history_xyz reaches 1e+308 m from the ego, at most 10000 m" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        ("> /dev/full", 2, "error: standard output cannot be written: No space left on device\n"),
        (">&-", 2, "error: standard output is closed: name a file with --output\n"),
        ("| true", 141, ""),
    ],
)
def test_output_that_nobody_takes_is_at_most_one_line(
    redirection: str, code: int, message: str
) -> None:
    program = f"{sys.executable} inference.py --device cpu --greedy"
    result = subprocess.run(
        ["bash", "-c", f"{program} {redirection}; exit ${{PIPESTATUS[0]}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr) == (code, message)


def test_every_program_knows_its_version(capsys: pytest.CaptureFixture) -> None:
    programs = (ROOT / "resource" / "executables.txt").read_text().split("\n")
    for name, target in (line.split(" = ") for line in programs if line):
        module, _, function = target.partition(":")
        with pytest.raises(SystemExit) as end:
            getattr(importlib.import_module(module), function)(["--version"])
        assert end.value.code == 0
        assert capsys.readouterr().out == f"{name} {__version__}\n"


def test_a_mistake_of_ours_is_not_taken_for_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise ValueError("shapes do not match")

    monkeypatch.setattr("alpamayo_ros.sensing.fake.fake_snapshot", broken)
    with pytest.raises(ValueError, match="shapes do not match"):
        main(["--device", "cpu"])


def test_numbers_that_are_not_finite_become_null(capsys: pytest.CaptureFixture) -> None:
    samples = np.zeros((1, 64, 3), np.float32)
    samples[0, 5, 1] = np.nan
    plan = Plan(
        t0_ns=0, samples=samples, actions=np.zeros((1, 64, 2), np.float32), chosen=0, z_m=0.0,
        v0_m_s=0.0, reasoning="", token_ids=((1,),), truncated=(False,), spread_m=0.0, seed=0,
        model_id="", device="cpu", dtype="float32",
    )  # fmt: skip
    write_json(as_json(plan), None)
    written = json.loads(capsys.readouterr().out)
    assert written["finite"] is False
    assert written["waypoints"][5][1] is None


def test_a_file_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: Is a directory"):
        write_json({}, str(tmp_path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--graph-capture"], "graph_capture is for cuda and npu, not for the cpu; leave it off"),
        (["--weight-format", "nz"], "weight_format nz is for npu, not for cpu; use plain"),
        (["--patch-embedding", "conv"], "invalid choice: 'conv'"),
    ],
)
def test_a_switch_that_the_device_lacks_is_one_line(
    capsys: pytest.CaptureFixture, options: list[str], message: str
) -> None:
    assert main(["--device", "cpu", *options]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1
