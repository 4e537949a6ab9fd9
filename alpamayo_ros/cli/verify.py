"""alpamayo_verify: run the operators and the small model on a device and say what holds there."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain

from alpamayo_ros.cli.common import OneLineParser, check_output, run, say, write_json

NOT_PASSED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0: all passed, 1: something did not."""
    return run(_main, argv)


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = OneLineParser("alpamayo_verify", description=__doc__)
    add = options.add_argument
    add("--device", default="auto", help="auto, cpu, cuda:0 or npu:0 (default: auto)")
    add("--switches", action="store_true", help="also try the device's switches, one by one")
    add("--output", help="file for the JSON (default: the last line printed)")
    return options


def _main(argv: Sequence[str] | None) -> int:
    options = parser().parse_args(argv)
    check_output(options.output)
    from alpamayo_ros.demo.small_model import load_demo_model
    from alpamayo_ros.devices.device import resolve_device
    from alpamayo_ros.model.verification import Check, verify, verify_switches
    from alpamayo_ros.sensing.fake import fake_snapshot

    device = resolve_device(options.device)
    say(f"verifying {device} with the small model")
    checks: list[Check] = []
    parts = [verify, verify_switches] if options.switches else [verify]
    for check in chain.from_iterable(p(device, load_demo_model, fake_snapshot(0)) for p in parts):
        checks.append(check)
        print(f"{'pass' if check.passed else 'FAIL'}  {check.name:44}  {check.detail}", flush=True)
    failed = [check.name for check in checks if not check.passed]
    print(f"{len(checks) - len(failed)} of {len(checks)} checks passed on {device}")
    values = {
        "device": device,
        "passed": not failed,
        "failed": failed,
        "checks": [asdict(check) for check in checks],
    }
    write_json(values, options.output)
    return NOT_PASSED if failed else 0
