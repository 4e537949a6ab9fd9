"""Transitions that fail half-way, in this process so that the failure can be made."""

from __future__ import annotations

import gc
import threading

import pytest
import rclpy
import torch
from rclpy.lifecycle import TransitionCallbackReturn

from alpamayo_ros.ros.loop import PlanningLoop
from alpamayo_ros.ros.node import STUCK, AlpamayoNode
from alpamayo_ros.ros.node_process import wait_until

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


@pytest.fixture
def node(domain_id):
    arguments = ["--ros-args", "-p", "model.path:=demo", "-p", "autostart:=false"]
    rclpy.init(args=arguments, domain_id=domain_id)
    node = AlpamayoNode()
    yield node
    node.end()
    node.destroy_node()
    rclpy.shutdown()


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_an_activation_that_fails_leaves_nothing_and_the_next_one_works(node, monkeypatch):
    assert node.trigger_configure() == SUCCESS
    before = threads()

    def broken(settings):
        raise RuntimeError("no such topic\nat all")

    with monkeypatch.context() as patch:
        patch.setattr(node._inputs, "subscribe", broken)
        assert node.trigger_activate() == FAILURE
    assert node._statistics.last_error == "RuntimeError: no such topic"
    assert node._state == "inactive"
    assert node._loop is None
    assert threads() == before
    assert node.trigger_activate() == SUCCESS
    assert {"planning", "inputs"} <= threads()
    assert node.trigger_deactivate() == SUCCESS
    assert not {"planning", "inputs"} & threads()


def test_a_configuration_that_fails_in_the_warm_up_leaves_nothing(node, monkeypatch):
    def broken(planner, should_stop):
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr("alpamayo_ros.planning.planner.Planner.warm_up", broken)
        assert node.trigger_configure() == FAILURE
    assert node._state == "unconfigured"
    assert node._planner is None
    assert node.trigger_configure() == SUCCESS


def test_nothing_is_planned_beside_a_stage_that_does_not_end(node, monkeypatch):
    stop = PlanningLoop.stop
    monkeypatch.setattr(PlanningLoop, "stop", lambda loop, timeout_s=0.1: stop(loop, timeout_s))
    entered, go_on = threading.Event(), threading.Event()
    assert node.trigger_configure() == SUCCESS

    def hang(settings, now_ns):
        entered.set()
        go_on.wait(60)

    monkeypatch.setattr(node._inputs, "take", hang)
    assert node.trigger_activate() == SUCCESS
    assert entered.wait(20)
    assert node.trigger_deactivate() == SUCCESS  # nothing is published any more
    assert node._statistics.last_error == STUCK
    assert node.trigger_activate() == FAILURE
    assert node.trigger_cleanup() == FAILURE
    assert node._state == "inactive"
    go_on.set()
    assert wait_until(lambda: "planning" not in threads(), 20)
    monkeypatch.undo()
    assert node.trigger_activate() == SUCCESS
    assert node.trigger_deactivate() == SUCCESS
    assert node.trigger_cleanup() == SUCCESS


def test_a_process_that_is_ending_starts_no_transition(node):
    node._stopping.set()
    assert node.trigger_configure() == FAILURE
    assert node._planner is None
    assert "the process is ending" in node._statistics.last_error


def storage_bytes(tensors) -> int:
    """Bytes of tensors, each storage once."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def tensor_bytes() -> int:
    """Bytes of all tensors that anything in this process still holds."""
    gc.collect()
    return storage_bytes(o for o in gc.get_objects() if issubclass(type(o), torch.Tensor))


def test_cleanup_gives_back_the_memory_of_every_weight_and_configure_works_again(node):
    before = tensor_bytes()
    for _ in range(2):
        assert node.trigger_configure() == SUCCESS
        weights = storage_bytes(node._planner.model.network.parameters())
        assert weights > 10e6
        assert tensor_bytes() >= before + weights
        assert node.trigger_activate() == SUCCESS
        assert node.trigger_deactivate() == SUCCESS
        assert node.trigger_cleanup() == SUCCESS
        assert tensor_bytes() - before < 0.01 * weights


@pytest.mark.parametrize(
    ("way", "allowed"),
    [
        ([], {"configure"}),
        (["configure"], {"activate", "cleanup"}),
        (["configure", "activate"], {"deactivate"}),
    ],
    ids=["unconfigured", "inactive", "active"],
)
def test_in_each_state_the_transitions_of_that_state_work_and_the_others_change_nothing(
    node, way, allowed
):
    for name in way:
        assert getattr(node, f"trigger_{name}")() == SUCCESS
    state = node._state
    for name in {"configure", "activate", "deactivate", "cleanup"} - allowed:
        assert getattr(node, f"trigger_{name}")() != SUCCESS
        assert node._state == state
    assert node.trigger_shutdown() == SUCCESS
    assert node._state == "finalized"
    assert node._planner is None
    assert not {"planning", "inputs"} & threads()
