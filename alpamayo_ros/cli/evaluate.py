"""alpamayo_evaluate: how good are the plans of a model on recorded drives?"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from alpamayo_ros.cli.common import (
    OneLineParser,
    UsageError,
    claim_folder,
    require_range,
    run,
    writing,
)
from alpamayo_ros.devices.device import resolve_device
from alpamayo_ros.limits import (
    MAX_NEW_TOKENS,
    NUM_SAMPLES,
    SEED,
    TEMPERATURE,
    TO_REAR_AXLE,
    TOP_P,
    Limits,
)

if TYPE_CHECKING:
    from alpamayo_ros.evaluation.fleet import Job, NamedBag
    from alpamayo_ros.evaluation.records import BagRecords
    from alpamayo_ros.evaluation.results import Results

MARKER = ".alpamayo_evaluate"  # says that a folder is this program's, to be written anew
EVERY_S = 0.5
SOME_FAILED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the evaluation; 0, 1 when some bags failed, 2 when all did or for a wrong use."""
    return run(_main, argv)


def parser() -> argparse.ArgumentParser:
    """The options, as DESIGN names them."""
    options = OneLineParser("alpamayo_evaluate", description=__doc__)
    add = options.add_argument
    what = "rosbag2 folder, .mcap or .db3 file, or folder with clips of the Physical AI AV dataset"
    add("bags", nargs="+", type=Path, metavar="BAG", help=what)
    add("--output", type=Path, required=True, help="folder for the results; a run goes on there")
    add("--model", default="demo", help="checkpoint folder, or demo: the built-in small model")
    add("--tokenizer", default="", help="folder with tokenizer.json, where the model ships none")
    add("--device", default="auto", help="auto, cpu, cuda:0 or npu:0 (default: auto)")
    add("--dtype", default="auto", choices=("auto", "float32", "bfloat16"), help="(default: auto)")
    add("--plans", type=Path, help=".npz of plans that are scored in place of the model's")
    add("--camera", action="append", default=[], metavar="ROLE=TOPIC", help="a camera's topic")
    add("--odometry", default="", metavar="TOPIC", help="odometry's topic")
    add("--navigation", default="", metavar="TOPIC", help="topic of navigation texts, if any")
    add("--to-rear-axle", type=float, nargs=4, default=(0, 0, 0, 0), metavar=("X", "Y", "Z", "YAW"))
    add("--every", type=float, help=f"seconds between decisions (default: {EVERY_S}; --plans: 0)")
    add("--at", type=float, action="append", metavar="S", help="t0 of a clip, again for more (5.1)")
    add("--num-samples", type=int, default=6, help="trajectories a decision (default: 6)")
    add("--seed", type=int, default=0, help="of sampling, noise and intervals (default: 0)")
    add("--greedy", action="store_true", help="take the most probable token, no sampling")
    add("--temperature", type=float, default=0.6, help="of the sampling (default: 0.6)")
    add("--top-p", type=float, default=0.98, help="mass of tokens sampled from (default: 0.98)")
    add("--max-new-tokens", type=int, default=256, help="longest reasoning (default: 256)")
    add("--engine", choices=("local", "ray"), default="local", help="(default: local)")
    add("--workers", type=int, default=1, help="models that work at once, with --engine ray")
    add("--compare", type=Path, metavar="OTHER", help="output of another run on the same bags")
    return options


def _main(argv: Sequence[str] | None) -> int:
    options = parser().parse_args(argv)
    _check(options)
    from alpamayo_ros.evaluation.compare import load_run
    from alpamayo_ros.evaluation.fleet import name_bags

    bags, job = name_bags(options.bags), _job(options)
    other = load_run(options.compare) if options.compare else None
    claim_folder(options.output, MARKER, "of no evaluation: choose another")
    # A plan may hold infinity: the figures leave it out and count it, numpy need not warn.
    with _alone(options.output), np.errstate(invalid="ignore", over="ignore"):
        return _evaluate(options, bags, job, other)


def _evaluate(
    options: argparse.Namespace,
    bags: Sequence[NamedBag],
    job: Job,
    other: list[BagRecords] | None,
) -> int:
    from alpamayo_ros.evaluation.fleet import run_local, run_ray
    from alpamayo_ros.evaluation.records import BagRecords
    from alpamayo_ros.evaluation.results import Results

    start_s = time.monotonic()
    bars = _Bars(bags)
    if options.engine == "ray":
        stream = run_ray(job, bags, options.workers)
    else:
        stream = run_local(job, bags, bars.show)
    with bars:
        outcomes = [bars.done(outcome) for outcome in stream]
    done = tuple(outcome for outcome in outcomes if isinstance(outcome, BagRecords))
    failed = tuple(outcome for outcome in outcomes if not isinstance(outcome, BagRecords))
    for bag in failed:
        print(f"error: {bag.error}", file=sys.stderr)
    if not done:
        return 2
    results = Results(
        bags=done,
        failed=failed,
        configuration=_configuration(options, job),
        origin=job.settings.to_rear_axle,
        seed=options.seed,
        created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        wall_s=time.monotonic() - start_s,
    )
    with writing(options.output):
        _write(options, results, other)
    return SOME_FAILED if failed else 0


@contextmanager
def _alone(output: Path) -> Iterator[None]:
    """Hold the folder while a run writes into it; the system lets go of it when the run is killed.

    Raises:
        UsageError: another run holds it.
    """
    with open(output / MARKER, "a") as marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"--output {output}: another run is writing into it: wait, or choose another"
            ) from None
        yield


def _check(options: argparse.Namespace) -> None:
    if options.every is None:
        options.every = 0.0 if options.plans else EVERY_S
    for name, limits in (
        ("every", Limits(0, 3600)),
        ("num_samples", NUM_SAMPLES),
        ("seed", SEED),
        ("temperature", TEMPERATURE),
        ("top_p", TOP_P),
        ("max_new_tokens", MAX_NEW_TOKENS),
        ("workers", Limits(1, 1024)),
    ):
        require_range("--" + name.replace("_", "-"), getattr(options, name), limits)
    for value in options.to_rear_axle:
        require_range("--to-rear-axle", value, TO_REAR_AXLE)
    for at_s in options.at or []:
        require_range("--at", at_s, Limits(0, 86400))


def _job(options: argparse.Namespace) -> Job:
    from alpamayo_ros.evaluation.bags import TopicChoice
    from alpamayo_ros.evaluation.clips import PUBLISHED_T0_S
    from alpamayo_ros.evaluation.deciders import ModelChoice
    from alpamayo_ros.evaluation.fleet import Job
    from alpamayo_ros.evaluation.run import RunSettings
    from alpamayo_ros.planning.planner import PlannerSettings

    planner = PlannerSettings(
        num_samples=options.num_samples,
        temperature=options.temperature,
        top_p=options.top_p,
        greedy=options.greedy,
        seed=options.seed,
        max_new_tokens=options.max_new_tokens,
    )
    x, y, z, yaw = map(float, options.to_rear_axle)
    return Job(
        output=options.output,
        settings=RunSettings(
            every_s=options.every,
            topics=TopicChoice(_cameras(options.camera), options.odometry, options.navigation),
            to_rear_axle=(x, y, z, yaw),
            clip_times_s=tuple(sorted(set(options.at or [PUBLISHED_T0_S]))),
        ),
        model=ModelChoice(
            options.model, options.tokenizer, _device(options), options.dtype, planner
        ),
        plans=options.plans,
    )


def _device(options: argparse.Namespace) -> str:
    """The device of a model; with Ray its kind, as each worker sees one device, its number 0."""
    if options.engine != "ray" or options.plans:
        return str(options.device)
    name = resolve_device("auto") if options.device == "auto" else options.device
    kind, _, number = name.partition(":")
    if number not in ("", "0"):
        raise UsageError(
            f"--device {name}: with --engine ray each worker gets a {kind} of its own: say {kind}"
        )
    return str(kind)


def _cameras(assignments: list[str]) -> dict[str, str]:
    """Topic by role of "role=topic" options."""
    topics = {}
    for text in assignments:
        role, _, topic = text.partition("=")
        if not role or not topic:
            raise UsageError(f"--camera {text}: want ROLE=TOPIC, such as front_wide=/camera/image")
        topics[role] = topic
    return topics


def _configuration(options: argparse.Namespace, job: Job) -> dict[str, Any]:
    """What decides on the figures, as plain values."""
    settings = asdict(job.settings)
    if job.plans is not None:
        return {**settings, "plans": True}
    return {**settings, **asdict(job.model.planner)}


def _write(options: argparse.Namespace, results: Results, other: list[BagRecords] | None) -> None:
    from alpamayo_ros.evaluation.compare import compare
    from alpamayo_ros.evaluation.plan_bag import write_plan_bag
    from alpamayo_ros.evaluation.report import write_report
    from alpamayo_ros.evaluation.results import document, write_decisions, write_json

    output: Path = options.output
    scored = results.scored()
    comparison = None
    (output / "compare.json").unlink(missing_ok=True)  # of an earlier run
    if other is not None:
        comparison = compare(
            scored, results.bags, other, str(options.compare), results.origin, results.seed
        )
        write_json(output / "compare.json", comparison.as_json())
    values = document(results, scored)
    for old in (output / "plans").glob("*"):
        if old.name not in {bag.name for bag in results.bags}:
            shutil.rmtree(old)  # of an earlier run on other bags, or of one that was killed
    for bag in results.bags:
        write_plan_bag(output / "plans" / bag.name, bag, results.origin, results.seed)
    write_decisions(output / "decisions.csv", scored)
    write_json(output / "metrics.json", values)
    write_report(output / "report.html", results, scored, values, comparison)
    _tell(output, values)


def _tell(output: Path, values: dict[str, Any]) -> None:
    """The run in three lines."""
    horizon_s, *_ = [h for h, n in reversed(values["decisions_with_truth"].items()) if n] or ["1.0"]
    rows = {(r["subject"], r["figure"], str(r["horizon_s"])): r for r in values["figures"]}
    model, best = (rows["model", name, horizon_s]["mean"] for name in ("ade", "min_ade"))
    baseline = rows["constant_turn_rate_and_velocity", "ade", horizon_s]["mean"]
    print(f"{values['decisions']} decisions, {values['gate']['accepted']} accepted by the gate")
    if model is not None:
        print(
            f"over {horizon_s} s: ADE {model:.2f} m, minADE {best:.2f} m; "
            f"constant turn rate and velocity {baseline:.2f} m"
        )
    print(f"look at {output / 'report.html'}")


class _Bars:
    """Progress on a terminal: the share of all bags that is done, and the time left."""

    def __init__(self, bags: Sequence[NamedBag]) -> None:
        self._bar = tqdm(
            total=len(bags),
            desc="evaluating",
            disable=None,
            bar_format="{desc} {percentage:3.0f}% |{bar}| {n:.1f}/{total} bags, "
            "{elapsed} done, {remaining} left {postfix}",
        )
        self._done = 0
        self._decisions_before = 0
        self._decisions = 0

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()

    def show(self, bag: NamedBag, share: float, decisions: int) -> None:
        """Say how far a bag is."""
        self._decisions = self._decisions_before + decisions
        elapsed_s = max(self._bar.format_dict["elapsed"], 1e-9) if not self._bar.disable else 1.0
        rate = f"{self._decisions / elapsed_s:.1f} decisions/s"
        self._bar.set_postfix_str(f"{bag.name}: {decisions} decisions, {rate}", refresh=False)
        self._bar.update(self._done + min(share, 1.0) - self._bar.n)

    def done(self, outcome: Any) -> Any:
        """Count a bag."""
        self._done += 1
        self._decisions_before = self._decisions
        self._bar.update(self._done - self._bar.n)
        return outcome


if __name__ == "__main__":
    sys.exit(main())
