"""Recording kernels, on stand-ins for a device's interface: there is no device here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from alpamayo_ros.devices.graphs import CaptureError, capture
from test.devices.recorded import Recorder


class Graph(Recorder):
    """Recorded within `graph`, as torch.cuda.CUDAGraph is."""

    def begin(self) -> None:
        """A driver may refuse."""


class Interface:
    """The part of torch.cuda and torch.npu that recording needs; it computes at once."""

    def __init__(self) -> None:
        self.streams = [Stream()]
        self.CUDAGraph = self.NPUGraph = Graph

    def current_stream(self) -> Stream:
        """Where kernels go."""
        return self.streams[-1]

    @contextlib.contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        """Kernels go elsewhere, until the block ends, however it does."""
        before = list(self.streams)
        self.streams.append(stream)
        try:
            yield
        finally:
            self.streams[:] = before

    @contextlib.contextmanager
    def graph(self, graph: Graph) -> Iterator[None]:
        """Record on a stream of its own."""
        self.streams.append(Stream())
        graph.begin()
        with graph:
            yield
        self.streams.pop()

    @staticmethod
    def device(name: str) -> contextlib.AbstractContextManager[None]:
        """There is only one."""
        return contextlib.nullcontext()


class Stream:
    """Has nothing left to do."""

    def wait_stream(self, other: Stream) -> None:
        """Nothing is left to wait for."""


@pytest.fixture
def interface() -> Interface:
    return Interface()


@pytest.fixture(params=["cuda:0", "npu:0"])
def device(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, interface: Interface
) -> str:
    """The name of a device whose interface is a stand-in."""
    kind = request.param.partition(":")[0]
    if not hasattr(torch, kind):
        monkeypatch.setattr(torch, kind, SimpleNamespace(), raising=False)
    for name in ("Stream", "current_stream", "stream", "graph", "device", "CUDAGraph", "NPUGraph"):
        value = Stream if name == "Stream" else getattr(interface, name)
        monkeypatch.setattr(getattr(torch, kind), name, value, raising=False)
    return request.param


def test_a_replay_computes_anew_from_what_lies_at_the_same_addresses(device: str) -> None:
    x, table = torch.tensor([[1.0, 2.0]]), torch.eye(2)
    recording = capture(device, lambda: (x @ table).mul_(10).view(2, 1))
    x.copy_(torch.tensor([[3.0, 4.0]]))
    table[0, 1] = 1.0
    recording.replay()
    assert recording.result.flatten().tolist() == [30.0, 70.0]


def test_what_is_made_once_is_made_before_recording(device: str) -> None:
    made: list[Tensor] = []
    x = torch.ones(2)

    def work() -> Tensor:
        if not made:
            made.append(torch.tensor([2.0, 3.0]))
        return x * made[0]

    recording = capture(device, work)
    made[0].copy_(torch.tensor([5.0, 7.0]))  # the recording reads it and does not make it again
    recording.replay()
    assert recording.result.tolist() == [5.0, 7.0]


def test_work_that_waits_for_the_device_is_refused_in_one_line(device: str) -> None:
    x = torch.ones(2)
    with pytest.raises(CaptureError, match=r"^operation not permitted .*_local_scalar_dense$"):
        capture(device, lambda: x * x.sum().item())


def test_a_device_without_graphs_is_refused(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = device.partition(":")[0]
    monkeypatch.delattr(getattr(torch, kind), f"{kind.upper()}Graph")
    with pytest.raises(CaptureError, match=f"torch.{kind} has no {kind.upper()}Graph"):
        capture(device, lambda: torch.ones(1))


def test_a_recording_that_does_not_begin_leaves_the_stream_as_it_was(
    device: str, interface: Interface, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(graph: Graph) -> None:
        raise RuntimeError("no room for another graph")

    monkeypatch.setattr(Graph, "begin", refuse)
    before = interface.current_stream()
    with pytest.raises(CaptureError, match="no room for another graph"):
        capture(device, lambda: torch.ones(1))
    assert interface.current_stream() is before
