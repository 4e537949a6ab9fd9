"""Node processes in a ROS domain of their own, and what talks to them."""

from __future__ import annotations

import os

import pytest
import rclpy

from alpamayo_ros.ros.node_process import DomainLease, NodeProcess, use_dds_profile

from .bench import Bench


@pytest.fixture(scope="session")
def domain_id():
    """A ROS_DOMAIN_ID that no other test process on this machine has."""
    with DomainLease() as lease:
        use_dds_profile(os.environ)
        yield lease.domain_id


@pytest.fixture(scope="module")
def context(domain_id):
    """An initialised rclpy context in the tests' domain."""
    context = rclpy.Context()
    rclpy.init(args=[], context=context, domain_id=domain_id)
    yield context
    context.try_shutdown()


@pytest.fixture(scope="module")
def start_node(domain_id, context, tmp_path_factory):
    """Start a node process and what talks to it; all are ended with the module."""
    benches = []

    def start(*arguments: str, environment=None) -> Bench:
        log = tmp_path_factory.mktemp("node") / "node.log"
        process = NodeProcess(
            list(arguments), log, {"ROS_DOMAIN_ID": str(domain_id), **(environment or {})}
        )
        benches.append(Bench(process, context).__enter__())
        return benches[-1]

    yield start
    for bench in reversed(benches):
        bench.__exit__(None, None, None)


def parameters(**values) -> list[str]:
    """ROS arguments that set parameters; __ stands for a dot."""
    arguments = ["--ros-args"]
    for name, value in values.items():
        arguments += ["-p", f"{name.replace('__', '.')}:={value}"]
    return arguments
