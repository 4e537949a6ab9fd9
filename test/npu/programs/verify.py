"""alpamayo_verify on the emulated device; its JSON is the last line."""

from __future__ import annotations

import sys

from test.npu.emulator.hostnpu import HostNPU

from alpamayo_ros.cli.verify import main  # isort: skip - after torch_npu

if __name__ == "__main__":
    with HostNPU():
        code = main(["--device", "npu:0"])
    sys.exit(code)
