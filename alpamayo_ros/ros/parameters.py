"""The parameter table on a node: declared, checked, and turned into each room's settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.node import Node

from alpamayo_ros.devices.tuning import Tuning
from alpamayo_ros.planning.gate import GateLimits
from alpamayo_ros.planning.planner import PlannerSettings
from alpamayo_ros.ros import faults
from alpamayo_ros.ros.parameter import Parameter, ParameterError
from alpamayo_ros.ros.parameter_table import BY_NAME, TABLE
from alpamayo_ros.ros.parameter_table import refuse_unknown as refuse_unknown_names
from alpamayo_ros.sensing.sampler import SamplerSettings
from alpamayo_ros.types import CAMERA_ROLES, NS_PER_S


def declare(node: Node) -> None:
    """Declare every parameter of the table.

    Raises:
        ParameterError: a given parameter is unknown, or its value is not allowed; one line.
    """
    # rclpy has no public way to ask for overrides of parameters that nobody declares.
    refuse_unknown_names(node._parameter_overrides)
    for parameter in TABLE:
        # Types are checked by the table: rclpy would refuse `10` for 10.0.
        node.declare_parameter(parameter.name, parameter.default, _descriptor(parameter))
        faults.require_test(parameter.name, value_of(node, parameter.name))


def _descriptor(parameter: Parameter) -> ParameterDescriptor:
    unit = f" [{parameter.unit}]" if parameter.unit else ""
    return ParameterDescriptor(
        description=parameter.help + unit,
        additional_constraints=parameter.allowed(),
        read_only=False,
        dynamic_typing=True,
    )


def value_of(node: Node, name: str) -> Any:
    """The checked value of one of our parameters."""
    return BY_NAME[name].check(_plain(node.get_parameter(name).value))


def check_change(changes: list[Any], configured: bool) -> SetParametersResult:
    """Whether a running node may take these changes.

    Args:
        changes: rclpy parameters.
        configured: whether a model is loaded; then only run-time parameters may change.
    """
    for change in changes:
        parameter = BY_NAME.get(change.name)
        if parameter is None:
            continue  # use_sim_time and the like are rclpy's business
        try:
            faults.require_test(change.name, parameter.check(_plain(change.value)))
        except ParameterError as error:
            return SetParametersResult(successful=False, reason=str(error))
        if configured and not parameter.run_time:
            return SetParametersResult(
                successful=False,
                reason=f"{change.name} is read when the node is configured: clean up first",
            )
    return SetParametersResult(successful=True)


@dataclass(frozen=True)
class OutputSettings:
    """What is published beside the outputs that always are: the output.* parameters."""

    path_remaining: bool
    autoware: bool
    overlay: bool
    overlay_mount: tuple[float, ...]  # x, y, z in m and roll, pitch, yaw in rad, in child_frame_id


@dataclass(frozen=True)
class NodeSettings:
    """All parameters, by the room that uses them."""

    model_path: str
    tokenizer_path: str
    encode_ahead: bool
    device: str
    dtype: str
    tuning: Tuning  # device_options.*
    transports: dict[str, str]  # role to raw or compressed
    camera_infos: dict[str, str]  # role to topic, auto or ""
    sampler: SamplerSettings
    planner: PlannerSettings
    paused: bool
    navigation_timeout_ns: int
    navigation_max_length: int
    enforce: bool
    watchdog_timeout_s: float
    blackbox_directory: str
    blackbox_max_files: int
    blackbox_max_bytes: int
    outputs: OutputSettings
    test_fault: str

    @classmethod
    def read(cls, node: Node, changes: dict[str, Any] | None = None) -> NodeSettings:
        """The parameters of a node, with changes not yet in force on top."""
        changes = changes or {}

        def get(name: str) -> Any:
            if name in changes:
                return BY_NAME[name].check(_plain(changes[name]))
            return value_of(node, name)

        return cls(
            model_path=get("model.path"),
            tokenizer_path=get("model.tokenizer_path"),
            encode_ahead=get("model.encode_ahead"),
            device=get("device"),
            dtype=get("dtype"),
            tuning=Tuning(
                patch_embedding=get("device_options.patch_embedding"),
                graph_capture=get("device_options.graph_capture"),
                weight_format=get("device_options.weight_format"),
            ),
            transports={role: get(f"cameras.{role}.transport") for role in CAMERA_ROLES},
            camera_infos={role: get(f"cameras.{role}.camera_info") for role in CAMERA_ROLES},
            sampler=SamplerSettings(
                tolerance_ns=_ns(get("sync.tolerance_s")),
                max_age_ns=_ns(get("sync.max_age_s")),
                max_gap_ns=_ns(get("odometry.max_gap_s")),
                period_ns=_ns(1.0 / get("planning.max_rate_hz")),
                to_rear_axle=tuple(get("odometry.to_rear_axle")),
            ),
            planner=PlannerSettings(
                num_samples=get("num_samples"),
                temperature=get("sampling.temperature"),
                top_p=get("sampling.top_p"),
                greedy=get("sampling.greedy"),
                seed=get("sampling.seed"),
                max_new_tokens=get("sampling.max_new_tokens"),
                crop=get("image.fit") == "crop",
                gate=GateLimits(
                    start_along_m=get("gate.start_along_m"),
                    start_across_m=get("gate.start_across_m"),
                    start_speed_m_s=get("gate.start_speed_m_s"),
                    folding_rad=math.radians(get("gate.folding_deg")),
                    reverse_m=get("gate.reverse_m"),
                    lateral_m_s2=get("gate.lateral_m_s2"),
                    speed_m_s=get("gate.speed_m_s"),
                ),
            ),
            paused=get("planning.paused"),
            navigation_timeout_ns=_ns(get("navigation.timeout_s")),
            navigation_max_length=get("navigation.max_length"),
            enforce=get("gate.mode") == "enforce",
            watchdog_timeout_s=get("watchdog.timeout_s"),
            blackbox_directory=get("blackbox.directory"),
            blackbox_max_files=get("blackbox.max_files"),
            blackbox_max_bytes=round(get("blackbox.max_size_mb") * 1e6),
            outputs=OutputSettings(
                path_remaining=get("output.path_remaining"),
                autoware=get("output.autoware"),
                overlay=get("output.overlay"),
                overlay_mount=tuple(get("output.overlay_mount")),
            ),
            test_fault=get(faults.PARAMETER),
        )


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def _plain(value: Any) -> Any:
    """rclpy hands over arrays as array.array; the table speaks of lists."""
    return list(value) if hasattr(value, "tolist") else value
