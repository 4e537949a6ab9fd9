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
    from alpamayo_ros.devices.device import device_name, resolve_device, torch_version
    from alpamayo_ros.model.verification import Check, Outcome, verify, verify_switches
    from alpamayo_ros.sensing.fake import fake_snapshot

    device = resolve_device(options.device)
    say(f"verifying {device} with the small model")
    name = device_name(device)
    print(f"{device}{'' if name == device else f' is {name}'}, torch {torch_version()}")
    checks: list[Check] = []
    parts = [verify, verify_switches] if options.switches else [verify]
    for check in chain.from_iterable(p(device, load_demo_model, fake_snapshot(0)) for p in parts):
        checks.append(check)
        label = "FAILED" if check.outcome is Outcome.FAILED else check.outcome.value
        print(f"{label:11}  {check.name:44}  {check.detail}", flush=True)
    names = {o: [check.name for check in checks if check.outcome is o] for o in Outcome}
    failed, not_checked = names[Outcome.FAILED], names[Outcome.NOT_CHECKED]
    print(
        f"{len(names[Outcome.PASSED])} of {len(checks) - len(not_checked)} checks passed on "
        f"{device}" + (f", {len(not_checked)} could not be checked there" if not_checked else "")
    )
    values = {
        "device": device,
        "device_name": name,
        "torch": torch_version(),
        "passed": not failed,
        "failed": failed,
        "not_checked": not_checked,
        "checks": [asdict(check) for check in checks],
    }
    write_json(values, options.output)
    return NOT_PASSED if failed else 0
