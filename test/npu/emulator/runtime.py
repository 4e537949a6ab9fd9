"""Builds the stand-in libraries and loads torch_npu on them. Nothing here imports torch first."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
FOLDER_VARIABLE = "HOSTNPU_FOLDER"  # where the libraries lie
# In the order in which they are loaded; those without a source of their own are empty.
LIBRARIES = ("ascendcl", "hccl", "acl_op_compiler", "ge_runner", "graph", "acl_tdt_channel")
SOURCES = {"ascendcl": "acl_runtime.c", "acl_op_compiler": "acl_op_compiler.c"}


def build(folder: Path) -> None:
    """Compile the libraries into a folder, in about a second.

    Raises:
        subprocess.CalledProcessError: gcc refuses.
    """
    for name in LIBRARIES:
        target = library(folder, name)
        source = [HERE / SOURCES[name]] if name in SOURCES else ["-x", "c", "/dev/null"]
        subprocess.run(
            ["gcc", "-w", "-std=gnu11", "-shared", "-fPIC", f"-Wl,-soname,{target.name}"]
            + ["-o", target, *source],
            check=True,
        )


def library(folder: Path, name: str) -> Path:
    """The file of one of the libraries."""
    return folder / f"lib{name}.so"


def environment(folder: Path, torch_npu: Path) -> dict[str, str]:
    """What a process needs to load torch_npu, which lies in a folder of its own, on the libraries.

    torch_npu is not loaded along with torch: `load` does that.
    """
    return {
        FOLDER_VARIABLE: str(folder),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "TASK_QUEUE_ENABLE": "0",  # operators run in the thread that calls them
        "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(torch_npu)))),
    }


def load() -> ctypes.CDLL:
    """Load the libraries, then torch_npu; returns the runtime. Call once, before torch is used."""
    folder = Path(os.environ[FOLDER_VARIABLE])
    loaded = [
        ctypes.CDLL(str(library(folder, name)), mode=ctypes.RTLD_GLOBAL) for name in LIBRARIES
    ]
    runtime = loaded[0]
    runtime.hostnpu_waits.restype = ctypes.c_long
    import torch_npu  # noqa: F401 - registers the device

    return runtime
