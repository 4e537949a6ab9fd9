"""Counts how often the host waits for a device's results: in a loop, each time is a stall."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Their results are a number on the host, or as large as the device finds.
READING = {
    *("aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal", "aten::nonzero"),
    *("aten::masked_select", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive"),
}
INDEXING = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}


class HostWaits(TorchDispatchMode):
    """Within it, `count` says how many operators have made the host wait for their result.

    Explicit synchronisation is no operator and is not seen. On the CPU a result is there at once
    and only numbers that are read are counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.count += _waits(func._schema.name, args, kwargs)
        return func(*args, **kwargs)


def _waits(name: str, args: Any, kwargs: Any) -> bool:
    """Whether the host must wait for the operator's result."""
    if name in READING:
        return True
    if name in INDEXING:
        return any(_is_mask(index) for index in args[1])
    if name == "aten::_to_copy":
        return _is_on_device(args[0]) and _names_cpu(kwargs.get("device"))
    if name == "aten::copy_":
        return _is_on_device(args[1]) and not _is_on_device(args[0])
    return name == "aten::repeat_interleave" and len(tree_leaves(args)) == 1


def _is_mask(index: Any) -> bool:
    return isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)


def _is_on_device(tensor: Tensor) -> bool:
    return tensor.device.type not in ("cpu", "meta")


def _names_cpu(device: Any) -> bool:
    return device is not None and torch.device(device).type == "cpu"
