"""The emulated device: runs operators on npu tensors on the CPU and counts them.

Import it before torch, in a process with `runtime.environment`.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass
from typing import Any

from test.npu.emulator import runtime

RUNTIME = runtime.load()

import torch  # noqa: E402
import torch_npu.op_plugin.meta._meta_registrations as meta  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves, tree_map  # noqa: E402

from test.npu.emulator.reference import REFERENCE  # noqa: E402

meta._npu_fusion_attention_warning_printed = True

# The host learns something from the device: a number, or how large a result is.
SYNCHRONISING = {
    *("aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal", "aten::nonzero"),
    *("aten::masked_select", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive"),
}
INDEXING = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
# torch_npu's own kernels do these in the emulated memory.
NATIVE = {
    *("aten::empty.memory_format", "aten::empty_strided", "aten::detach", "aten::alias"),
    *("aten::_local_scalar_dense", "aten::set_.source_Storage"),
}
MAY_MIX_DEVICES = {"aten::copy_", "aten::_to_copy", *INDEXING}
ATTEN_MASK = 7  # its place among the arguments of fused attention
# Neither views nor allocations launch a kernel.
NO_KERNEL = {"aten::empty.memory_format", "aten::empty_strided", "aten::_unsafe_view"}


@dataclass(frozen=True)
class AttentionCall:
    """One call of a fused attention."""

    operator: str
    query: tuple[int, ...]
    key: tuple[int, ...]
    layout: str
    masked: bool


def full_name(func: Any) -> str:
    """ "aten::add.Tensor"."""
    overload = func._schema.overload_name
    return f"{func._schema.name}.{overload}" if overload else str(func._schema.name)


def launches(func: Any) -> bool:
    """Whether an operator starts a kernel on the device."""
    return not func.is_view and full_name(func) not in NO_KERNEL


def is_npu(value: Any) -> bool:
    """Whether this is a tensor on the device."""
    return isinstance(value, Tensor) and value.device.type == "npu"


def _names_npu(value: Any) -> bool:
    return isinstance(value, torch.device) and value.type == "npu"


def on_host(tensor: Tensor) -> Tensor:
    """A CPU tensor on the same bytes as an npu tensor."""
    storage = tensor.untyped_storage()
    if storage.nbytes() == 0 or tensor.numel() == 0:
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    bytes_ = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    flat = torch.frombuffer(bytes_, dtype=torch.uint8)
    whole = storage.nbytes() // tensor.element_size() * tensor.element_size()
    numbers = flat[:whole].view(tensor.dtype)
    return numbers.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def on_device(tensor: Tensor) -> Tensor:
    """A copy on the device, with the same strides."""
    copy = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="npu")
    if tensor.numel():
        on_host(copy).copy_(tensor)
    return copy


class HostNPU(TorchDispatchMode):
    """Within it, npu tensors can be computed with; its counters say what a device would do."""

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self) -> None:
        """Start all counts at zero."""
        self.operators: Counter[str] = Counter()  # every one that touches the device
        self.launches = 0  # those that start a kernel
        self.synchronisations: Counter[str] = Counter()  # the host waits for a result
        self.uploads = 0  # copies from the host to the device
        self.float64: Counter[str] = Counter()
        self.attention: list[AttentionCall] = []
        self._waits_before = RUNTIME.hostnpu_waits()

    def runtime_waits(self) -> int:
        """Waits for the runtime, explicit synchronisation included."""
        return RUNTIME.hostnpu_waits() - self._waits_before

    def stalls(self) -> int:
        """How often the host has waited for the device, in whatever way.

        A scalar that is read is both a synchronisation and a wait for the runtime: counted once.
        """
        scalars = self.synchronisations["aten::_local_scalar_dense"]
        return sum(self.synchronisations.values()) + self.runtime_waits() - scalars

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        if not any(is_npu(leaf) or _names_npu(leaf) for leaf in leaves):
            return func(*args, **kwargs)
        self._count(func, args, kwargs, leaves)
        name = full_name(func)
        if func.is_view or name in NATIVE:
            return func(*args, **kwargs)
        return self._compute(func, args, kwargs)

    def _count(self, func: Any, args: Any, kwargs: Any, leaves: list[Any]) -> None:
        name, full = func._schema.name, full_name(func)
        self.operators[full] += 1
        self.launches += launches(func)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        if any(is_npu(t) and t.dtype in (torch.float64, torch.complex128) for t in tensors):
            self.float64[full] += 1
        if _reads_result(name, args, kwargs):
            self.synchronisations[full] += 1
        if name in ("aten::_to_copy", "aten::copy_") and not is_npu(tensors[-1]):
            self.uploads += 1
        mixed = any(is_npu(t) for t in tensors) and any(
            not is_npu(t) and t.dim() > 0 for t in tensors
        )
        if mixed and name not in MAY_MIX_DEVICES:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, found npu:0 and cpu in {full}"
            )
        if "fusion_attention" in name:
            given = (*args, *[None] * 8)[ATTEN_MASK]
            masked = given is not None or kwargs.get("atten_mask") is not None
            self.attention.append(
                AttentionCall(
                    name.partition("::")[2],
                    tuple(args[0].shape),
                    tuple(args[1].shape),
                    args[4],
                    masked,
                )
            )

    def _compute(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run it on the CPU, on the same bytes."""
        originals: dict[int, tuple[Tensor, Tensor]] = {}

        def down(value: Any) -> Any:
            if is_npu(value):
                alias = on_host(value)
                originals[id(alias)] = (alias, value)
                return alias
            return torch.device("cpu") if _names_npu(value) else value

        def up(value: Any) -> Any:
            if not isinstance(value, Tensor) or value.device.type != "cpu":
                return value
            return originals[id(value)][1] if id(value) in originals else on_device(value)

        name = func._schema.name
        host_args, host_kwargs = tree_map(down, (args, kwargs))
        if host_kwargs.get("generator") is not None:
            host_kwargs["generator"] = None
        if name in REFERENCE:
            result = REFERENCE[name](*host_args, **host_kwargs)
        elif name.startswith("npu::"):
            raise NotImplementedError(f"{full_name(func)} is not in reference.py")
        else:
            result = func(*host_args, **host_kwargs)
        if _copies_to_host(name, args, kwargs):
            return args[0] if name == "aten::copy_" else result
        return tree_map(up, result)


def _copies_to_host(name: str, args: Any, kwargs: Any) -> bool:
    if name == "aten::_to_copy":
        return is_npu(args[0]) and str(kwargs.get("device", "npu")).startswith("cpu")
    return name == "aten::copy_" and is_npu(args[1]) and not is_npu(args[0])


def _reads_result(name: str, args: Any, kwargs: Any) -> bool:
    """Whether the host has to wait for the operator's result."""
    by_mask = name in INDEXING and any(
        isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8) for index in args[1]
    )
    counted_out = name == "aten::repeat_interleave" and len(args) == 1
    return name in SYNCHRONISING or by_mask or counted_out or _copies_to_host(name, args, kwargs)
