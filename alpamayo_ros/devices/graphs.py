"""Records kernels once and launches them all with one call: CUDA's graphs and the NPU's.

torch.cuda and torch.npu have one interface for it. Not tried on either device yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

GRAPHS = {"cuda": "CUDAGraph", "npu": "NPUGraph"}


class CaptureError(RuntimeError):
    """Kernels cannot be recorded here; one line."""


@dataclass(frozen=True, eq=False)
class Recording:
    """Kernels on fixed addresses: what they read may change between replays, not where it lies."""

    replay: Callable[[], None]
    result: Tensor  # overwritten by each replay


Capture = Callable[[Callable[[], Tensor]], Recording]


def capture(device: str, work: Callable[[], Tensor]) -> Recording:
    """Record the kernels that `work` launches on a resolved device, "cuda:N" or "npu:N".

    work is called twice, the first time to make what is made once (constants, kernels that are
    compiled when first used): a graph must not own it. It may neither wait for the device nor
    upload anything.

    Raises:
        CaptureError: the device, its driver or an operator refuses.
    """
    kind = device.partition(":")[0]
    backend: Any = getattr(torch, kind)
    if not hasattr(backend, GRAPHS[kind]):
        raise CaptureError(f"torch.{kind} has no {GRAPHS[kind]}")
    try:
        graph = getattr(backend, GRAPHS[kind])()
        # The stream is set back here: a recording that fails to begin leaves its own as current.
        with backend.device(device), backend.stream(backend.current_stream()):
            _run_aside(backend, work)
            with backend.graph(graph):
                result = work()
    except RuntimeError as error:
        reason = str(error).strip() or type(error).__name__
        raise CaptureError(reason.splitlines()[0]) from error
    return Recording(graph.replay, result)


def _run_aside(backend: Any, work: Callable[[], Tensor]) -> None:
    """Run on a stream of its own, as recording will: the default stream cannot be recorded."""
    stream = backend.Stream()
    stream.wait_stream(backend.current_stream())
    with backend.stream(stream):
        work()
    backend.current_stream().wait_stream(stream)
