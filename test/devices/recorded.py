"""Stands in for a device's graph: records operators with their tensors, and runs them again.

A replay runs the recorded operators on the recorded memory and none of the model's Python, as a
graph does: what the host decided, made or read while recording stays as it was. What would end a
real recording is refused: reading results, and copies to and from the host. It says nothing of
whether a driver can record an operator, nor how fast the replay is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from alpamayo_ros.devices.graphs import Recording
from alpamayo_ros.devices.stalls import _waits

COPIES = ("aten::_to_copy", "aten::copy_")


class Recorder(TorchDispatchMode):
    """Records what is computed within it; `replay` computes it again."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name
        if _waits(name, args, kwargs) or _uploads(name, args, kwargs):
            raise RuntimeError(f"operation not permitted when stream is capturing: {name}")
        result = func(*args, **kwargs)
        if not func.is_view:  # a view is the same memory again
            self.calls.append((func, args, kwargs, result))
        return result

    @torch.no_grad()
    def replay(self) -> None:
        """Run all operators again, into the tensors that they made when recorded."""
        for func, args, kwargs, result in self.calls:
            again = func(*args, **kwargs)
            for old, new in zip(tree_leaves(result), tree_leaves(again)):
                if isinstance(old, Tensor) and new.data_ptr() != old.data_ptr():
                    old.copy_(new)


def _uploads(name: str, args: Any, kwargs: Any) -> bool:
    """Whether host memory is copied to a device."""
    if name not in COPIES:
        return False
    source = args[1] if name == "aten::copy_" else args[0]
    target = args[0] if name == "aten::copy_" else kwargs.get("device") or source.device
    where = target.device if isinstance(target, Tensor) else torch.device(target)
    return source.device.type == "cpu" and where.type != "cpu"


def record(work: Callable[[], Tensor]) -> Recording:
    """As `devices.graphs.capture`, on any device."""
    work()
    with Recorder() as recorder:
        result = work()
    return Recording(recorder.replay, result)
