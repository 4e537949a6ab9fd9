"""Which device a model runs on, resolved as text first; never a silent run on the CPU.

`torch.device("npu:0")` raises before torch_npu is imported, and with torch-npu installed but CANN
missing or broken even `import torch` fails, because it loads torch_npu along. So
`prepare_environment` runs before torch is imported, and the name of a device is checked before
torch sees it.
"""

from __future__ import annotations

import ctypes.util
import gc
import importlib.util
import logging
import os
import re
import reprlib
import sys
from pathlib import Path
from typing import Any

from alpamayo_ros.types import UserError

LOG = logging.getLogger(__name__)

KINDS = ("cpu", "cuda", "npu")
DTYPES = ("float32", "bfloat16")
SPIN_COUNT = "5000"  # on two busy cores 4 % slower than 0, at 20000 twice as slow


class DeviceError(UserError):
    """A device or data type that cannot be had here; one line with the remedy."""


def has_cann() -> bool:
    """Whether Ascend's runtime is installed."""
    return bool(os.environ.get("ASCEND_HOME_PATH")) or (
        ctypes.util.find_library("ascendcl") is not None
    )


def prepare_environment() -> None:
    """Keep `import torch` from loading torch_npu, which is done here when asked for. Call first.

    Where that fails within `import torch`, nothing in the process can use torch any more; where
    it fails later, the other devices still work. And let OpenMP's threads wait awake for
    about as long as the next operator takes to come, then asleep. Awake all along, the default,
    they took a decision of 0.5 s to 4 s on two cores that were busy with other work; asleep at
    once they cost free cores a sixth (the small model 190 ms instead of 160).
    """
    os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")


def resolve_device(name: str) -> str:
    """The device that a user's text means: "cpu", "cuda:N" or "npu:N"; "auto" is npu, cuda, cpu.

    Raises:
        DeviceError: the name is unknown, or there is no such device.
    """
    text = str(name).strip().lower()
    if text == "auto":
        return _best_device()
    match = re.fullmatch(r"(cpu|cuda|npu)(?::([0-9]{1,4}))?", text)
    if match is None:
        shown = reprlib.repr(name)
        raise DeviceError(f"device {shown} is not known; use auto, cpu, cuda:0 or npu:0")
    kind, index = match.group(1), int(match.group(2) or 0)
    if kind == "cpu":
        if index:
            raise DeviceError(f"device {text}: there is only one CPU; use cpu")
        return "cpu"
    count = _count(kind)
    if index >= count:
        raise DeviceError(f"device {kind}:{index}: {_why_not(kind, count)}")
    return f"{kind}:{index}"


def _best_device() -> str:
    try:
        if _count("npu"):
            return "npu:0"
    except DeviceError as error:  # an NPU may be there, so that this is worth a line
        LOG.warning("device auto takes no NPU: %s", error)
    return "cuda:0" if _count("cuda") else "cpu"


def _count(kind: str) -> int:
    if kind == "npu":
        backend = _torch_npu()
        return 0 if backend is None else int(backend.npu.device_count())
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _torch_npu() -> Any:
    """The torch_npu module, or None where it or CANN is missing.

    Raises:
        DeviceError: both are there and torch_npu cannot be loaded all the same.
    """
    loaded = "torch_npu" in sys.modules
    if not loaded and (importlib.util.find_spec("torch_npu") is None or not has_cann()):
        return None
    try:
        from alpamayo_ros.devices.npu import backend
    except Exception as error:  # it raises all kinds of errors, of versions that do not fit too
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DeviceError(
            f"torch_npu cannot be loaded: {reason.rstrip('.')}; source CANN's set_env.sh and "
            "install the torch-npu of torch's version (requirements-npu.txt)"
        ) from None
    return backend()


def _why_not(kind: str, count: int) -> str:
    if count:
        return f"there are only {count}; use {kind}:0 to {kind}:{count - 1}"
    if kind == "cuda":
        return "no CUDA device is found (torch.cuda sees none); use cpu or auto"
    if importlib.util.find_spec("torch_npu") is None:
        return "torch_npu is not installed (pip install -r requirements-npu.txt); use cpu or auto"
    if not has_cann():
        return "CANN is not found (source its set_env.sh first); use cpu or auto"
    return "torch_npu sees no NPU (check npu-smi info); use cpu or auto"


def resolve_dtype(dtype: Any) -> Any:
    """A torch dtype from "float32", "bfloat16" or the torch dtype itself.

    Raises:
        DeviceError: another one.
    """
    import torch

    known = {name: getattr(torch, name) for name in DTYPES}
    if dtype in known.values():
        return dtype
    if not isinstance(dtype, str) or dtype not in known:
        raise DeviceError(f"dtype {dtype!r} is not known; use {' or '.join(DTYPES)}")
    return known[dtype]


def dtype_name(dtype: Any) -> str:
    """ "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


def device_name(device: str) -> str:
    """What a resolved device calls itself, such as "Ascend910B3"; the CPU "cpu"."""
    kind = device.partition(":")[0]
    if kind == "cpu":
        return "cpu"
    import torch

    return str(getattr(torch, kind).get_device_name(device))


def torch_version() -> str:
    """Such as "2.13.0+cpu"."""
    import torch

    return str(torch.__version__)


def synchronize(device: str) -> None:
    """Wait until the device has done what it was told; nothing on the CPU."""
    kind = device.partition(":")[0]
    if kind == "cpu":
        return
    import torch

    getattr(torch, kind).synchronize(device)


def free_memory_bytes(device: str) -> int:
    """Free memory of a resolved device; on the CPU what the kernel says is available."""
    kind = device.partition(":")[0]
    if kind != "cpu":
        import torch

        free, _ = getattr(torch, kind).mem_get_info(device)
        return int(free)
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise DeviceError("/proc/meminfo does not say how much memory is available")


def release_memory(device: str) -> None:
    """Give memory that nothing uses any more back to a resolved device, for others to use."""
    gc.collect()
    kind = device.partition(":")[0]
    if kind != "cpu":
        import torch

        getattr(torch, kind).empty_cache()
