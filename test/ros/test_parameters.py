"""One table: declarations, YAML files and README are equal to it, and it refuses what it should."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from alpamayo_ros.ros.parameter import ParameterError
from alpamayo_ros.ros.parameter_table import BY_NAME, TABLE, markdown, refuse_unknown

ROOT = Path(__file__).resolve().parents[2]


def yaml_parameters(name: str) -> dict:
    document = yaml.safe_load((ROOT / "config" / name).read_text())
    assert list(document) == ["/**"]
    return document["/**"]["ros__parameters"]


def test_the_vehicles_yaml_holds_every_parameter_with_its_default():
    assert yaml_parameters("alpamayo.yaml") == {p.name: p.default for p in TABLE}


@pytest.mark.parametrize("name", ["alpamayo.yaml", "demo.yaml"])
def test_every_value_in_a_yaml_file_is_allowed(name):
    values = yaml_parameters(name)
    refuse_unknown(values)
    for key, value in values.items():
        if key in BY_NAME:
            BY_NAME[key].check(value)


def test_the_readme_shows_the_table():
    assert markdown() in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("parameter", TABLE, ids=lambda p: p.name)
def test_every_default_is_allowed_and_explained(parameter):
    assert parameter.check(parameter.default) == parameter.default
    assert len(parameter.help) > 8


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("gate.modus", "gate.mode"),
        ("model_path", "model.path"),
        ("sampling.temprature", "sampling.temperature"),
        ("sync.tolerance", "sync.tolerance_s"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, near):
    with pytest.raises(ParameterError, match=f"unknown parameter {name}: did you mean {near}?"):
        refuse_unknown([name])


def test_names_that_rclpy_declares_are_let_pass():
    refuse_unknown(
        [
            "use_sim_time",
            "qos_overrides./clock.subscription.depth",
            "start_type_description_service",
        ]
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("planning.max_rate_hz", 0.0),
        ("planning.max_rate_hz", float("nan")),
        ("planning.max_rate_hz", True),
        ("planning.paused", 1),
        ("num_samples", 0),
        ("num_samples", 1.5),
        ("num_samples", True),
        ("gate.mode", "Enforce"),
        ("gate.mode", 1),
        ("model.path", 5),
        ("odometry.to_rear_axle", [0.0, 0.0, 0.0]),
        ("odometry.to_rear_axle", [0.0, 0.0, 0.0, float("inf")]),
        ("odometry.to_rear_axle", "0000"),
        ("sampling.seed", -1),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(name, value):
    with pytest.raises(ParameterError, match=name):
        BY_NAME[name].check(value)


def test_a_whole_number_serves_where_a_float_is_wanted():
    value = BY_NAME["planning.max_rate_hz"].check(5)
    assert value == 5.0
    assert type(value) is float
    assert BY_NAME["odometry.to_rear_axle"].check([1, 0, 0, 0]) == [1.0, 0.0, 0.0, 0.0]
