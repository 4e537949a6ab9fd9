"""Recording kernels, on stand-ins for a device's interface: there is no device here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from alpamayo_ros.devices.graphs import CaptureError, capture
from test.devices.recorded import Recorder


class Graph(Recorder):
    """Recorded within `graph`, as torch.cuda.CUDAGraph is."""


class Stream:
    """Computes at once, as the CPU does."""

    def wait_stream(self, other: Stream) -> None:
        """Nothing is left to wait for."""


@contextlib.contextmanager
def nothing(*_: Any) -> Iterator[None]:
    """A device or a stream is chosen."""
    yield


@pytest.fixture(params=["cuda:0", "npu:0"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a device whose interface is a stand-in."""
    interface = SimpleNamespace(
        Stream=Stream, current_stream=Stream, stream=nothing, device=nothing,
        graph=lambda graph: graph, CUDAGraph=Graph, NPUGraph=Graph,
    )  # fmt: skip
    kind = request.param.partition(":")[0]
    if not hasattr(torch, kind):
        monkeypatch.setattr(torch, kind, SimpleNamespace(), raising=False)
    for name, value in vars(interface).items():
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
