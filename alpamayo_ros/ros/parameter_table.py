"""The node's parameters, in one table: YAML files, README and declarations are checked against it.

No rclpy here, so that tools and tests can read the table anywhere.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from alpamayo_ros import limits
from alpamayo_ros.devices.tuning import PATCH_EMBEDDINGS, WEIGHT_FORMATS
from alpamayo_ros.ros import faults
from alpamayo_ros.ros.parameter import Parameter, ParameterError
from alpamayo_ros.types import CAMERA_ROLES

TABLE: tuple[Parameter, ...] = (
    Parameter(
        "model.path",
        "",
        "folder of the checkpoint; `demo` is the built-in small model, which drives nothing real",
    ),
    Parameter(
        "model.tokenizer_path",
        "",
        "folder of the Qwen3-VL tokenizer and configuration, where the checkpoint has none",
    ),
    Parameter(
        "model.encode_ahead",
        False,
        "encode frames of the next plan while there is nothing to plan on; for "
        "planning.max_rate_hz below the device's pace",
    ),
    Parameter("device", "auto", "auto (npu, else cuda, else cpu), cpu, cuda:N or npu:N"),
    Parameter(
        "dtype",
        "auto",
        "number type of weights and activations; auto is bfloat16, on the CPU float32",
        choices=("auto", "bfloat16", "float32"),
    ),
    Parameter(
        "device_options.patch_embedding",
        "matmul",
        "form of the images' first layer; which is faster depends on the device",
        choices=PATCH_EMBEDDINGS,
    ),
    Parameter(
        "device_options.graph_capture",
        False,
        "record a step of the flow once, then replay it; cuda and npu, not tried on either",
    ),
    Parameter(
        "device_options.weight_format",
        "plain",
        "nz: the NPU's own layout of matrices; not tried on hardware",
        choices=WEIGHT_FORMATS,
    ),
    Parameter(
        "num_samples",
        1,
        "trajectories drawn per decision; the most central one is driven",
        minimum=limits.NUM_SAMPLES.least,
        maximum=limits.NUM_SAMPLES.most,
    ),
    Parameter(
        "sampling.temperature",
        0.6,
        "temperature of the reasoning",
        minimum=limits.TEMPERATURE.least,
        maximum=limits.TEMPERATURE.most,
        run_time=True,
    ),
    Parameter(
        "sampling.top_p",
        0.98,
        "probability mass that tokens are drawn from",
        minimum=limits.TOP_P.least,
        maximum=limits.TOP_P.most,
        run_time=True,
    ),
    Parameter(
        "sampling.greedy",
        False,
        "take the most probable token instead of drawing one",
        run_time=True,
    ),
    Parameter(
        "sampling.seed",
        0,
        "with t0 it fixes every random number of a decision",
        minimum=limits.SEED.least,
        maximum=limits.SEED.most,
        run_time=True,
    ),
    Parameter(
        "sampling.max_new_tokens",
        256,
        "limit of the reasoning",
        unit="tokens",
        minimum=limits.MAX_NEW_TOKENS.least,
        maximum=limits.MAX_NEW_TOKENS.most,
        run_time=True,
    ),
    *(
        Parameter(
            f"cameras.{role}.transport",
            "raw",
            f"how {role} comes: sensor_msgs/Image or CompressedImage",
            choices=("raw", "compressed"),
        )
        for role in CAMERA_ROLES
    ),
    *(
        Parameter(
            f"cameras.{role}.camera_info",
            "auto",
            f"topic of {role}'s CameraInfo; auto: camera_info beside the image; empty: none",
        )
        for role in CAMERA_ROLES
    ),
    Parameter(
        "image.fit",
        "native",
        "native keeps a camera's aspect, as the reference does; crop cuts its centre to 576x320",
        choices=("native", "crop"),
    ),
    Parameter(
        "sync.tolerance_s",
        0.055,
        "how far a frame may lie from its instant",
        unit="s",
        minimum=0.001,
        maximum=0.1,
    ),
    Parameter(
        "sync.max_age_s", 0.5, "oldest t0 that is planned on", unit="s", minimum=0.05, maximum=2.0
    ),
    Parameter(
        "odometry.max_gap_s",
        0.3,
        "widest gap between odometry stamps",
        unit="s",
        minimum=0.01,
        maximum=1.5,
    ),
    Parameter(
        "odometry.to_rear_axle",
        [0.0, 0.0, 0.0, 0.0],
        "x, y, z and yaw of the model's origin in child_frame_id",
        unit="m, rad",
        minimum=limits.TO_REAR_AXLE.least,
        maximum=limits.TO_REAR_AXLE.most,
    ),
    Parameter(
        "planning.max_rate_hz",
        10.0,
        "most decisions per second of stamps",
        unit="Hz",
        minimum=0.1,
        maximum=100.0,
        run_time=True,
    ),
    Parameter(
        "planning.paused",
        False,
        "stop planning without leaving the active state; plan_once still works",
        run_time=True,
    ),
    Parameter(
        "navigation.timeout_s",
        10.0,
        "how long a navigation text holds",
        unit="s",
        minimum=0.1,
        maximum=3600.0,
        run_time=True,
    ),
    Parameter(
        "navigation.max_length",
        200,
        "longest navigation text; the rest is cut off",
        unit="characters",
        minimum=1,
        maximum=1000,
        run_time=True,
    ),
    Parameter(
        "gate.mode",
        "enforce",
        "enforce keeps rejected plans off `path`; report publishes them all the same, with a WARN",
        choices=("enforce", "report"),
        run_time=True,
    ),
    Parameter(
        "gate.start_along_m",
        0.3,
        "waypoint 1 against v0 * 0.1 s, along",
        unit="m",
        minimum=0.0,
        maximum=10.0,
        run_time=True,
    ),
    Parameter(
        "gate.start_across_m",
        0.2,
        "waypoint 1 against the ego's axis, across",
        unit="m",
        minimum=0.0,
        maximum=10.0,
        run_time=True,
    ),
    Parameter(
        "gate.start_speed_m_s",
        2.0,
        "first speed against odometry's",
        unit="m/s",
        minimum=0.0,
        maximum=60.0,
        run_time=True,
    ),
    Parameter(
        "gate.folding_deg",
        90.0,
        "heading against motion above 0.5 m/s",
        unit="deg",
        minimum=0.0,
        maximum=180.0,
        run_time=True,
    ),
    Parameter(
        "gate.reverse_m",
        0.5,
        "how far an ego that does not back up may be sent back",
        unit="m",
        minimum=0.0,
        maximum=100.0,
        run_time=True,
    ),
    Parameter(
        "gate.lateral_m_s2",
        6.0,
        "lateral acceleration, mean over 0.5 s, above 2 m/s",
        unit="m/s2",
        minimum=0.0,
        maximum=30.0,
        run_time=True,
    ),
    Parameter(
        "gate.speed_m_s",
        60.0,
        "speed of any segment",
        unit="m/s",
        minimum=0.0,
        maximum=100.0,
        run_time=True,
    ),
    Parameter(
        "watchdog.timeout_s",
        0.0,
        "longest time without an accepted plan; 0 is max(1 s, 3 x the warm-up's decision time)",
        unit="s",
        minimum=0.0,
        maximum=600.0,
        run_time=True,
    ),
    Parameter(
        "blackbox.directory",
        "",
        "where snapshots are kept, on request and of rejected plans; empty keeps none",
    ),
    Parameter(
        "blackbox.max_files",
        20,
        "how many snapshots to keep; the oldest go first",
        unit="files",
        minimum=1,
        maximum=10_000,
    ),
    Parameter(
        "blackbox.max_size_mb",
        500.0,
        "how large they may be together; one has up to 9 MB",
        unit="MB",
        minimum=10.0,
        maximum=1e6,
    ),
    Parameter(
        "output.path_remaining",
        False,
        "publish what is ahead of `path` at publication on `~/output/path_remaining`",
    ),
    Parameter(
        "output.autoware",
        False,
        "publish `path` as autoware_planning_msgs/Trajectory on `~/output/trajectory`",
    ),
    Parameter(
        "output.overlay",
        False,
        "draw each plan into the front_wide image on `~/output/overlay`; needs its CameraInfo",
    ),
    Parameter(
        "output.overlay_mount",
        [1.75, 0.0, 1.5, 0.0, 0.0, 0.0],
        "x, y, z, roll, pitch, yaw of front_wide in child_frame_id; zero angles look ahead",
        unit="m, rad",
        minimum=-100.0,
        maximum=100.0,
    ),
    Parameter("autostart", True, "configure and activate at start; false under a manager"),
    Parameter(
        faults.PARAMETER,
        faults.NONE,
        f"a fault that tests set; needs {faults.SWITCH}=1 in the node's environment",
        choices=faults.FAULTS,
        run_time=True,
    ),
)

BY_NAME = {parameter.name: parameter for parameter in TABLE}

# Declared by rclpy itself, on one distribution or another.
FOREIGN = re.compile(
    r"use_sim_time|qos_overrides\..*|start_type_description_service|enable_logger_service"
)


def refuse_unknown(names: Iterable[str]) -> None:
    """Raise ParameterError for the first name that is neither ours nor rclpy's."""
    for name in names:
        if name in BY_NAME or FOREIGN.fullmatch(name):
            continue
        near = difflib.get_close_matches(name, BY_NAME, n=1, cutoff=0.0)
        raise ParameterError(f"unknown parameter {name}: did you mean {near[0]}?")


def markdown() -> str:
    """The table as README.md shows it."""
    rows = ["| parameter | default | allowed | meaning |", "|---|---|---|---|"]
    for parameter in TABLE:
        unit = f" [{parameter.unit}]" if parameter.unit else ""
        running = " †" if parameter.run_time else ""
        rows.append(
            f"| `{parameter.name}`{running} | `{shown(parameter.default)}` | "
            f"{parameter.allowed()} | {parameter.help}{unit} |"
        )
    return "\n".join(rows)


def shown(value: Any) -> str:
    """A default as YAML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return '""' if value == "" else str(value)


if __name__ == "__main__":
    print(markdown())
