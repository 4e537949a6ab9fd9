"""Many bags: one after the other here, or spread by Ray; finished ones are not done again.

Both engines call the same function on each bag. Its records are kept in OUTPUT/bags/NAME.npz under
a key of all that they depend on: the bag's bytes, the model's identity, the settings and this
package's version. A run that was killed goes on where it was; a bag that fails is listed and does
not end the run.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import alpamayo_ros
from alpamayo_ros.evaluation.bags import bag_sha256
from alpamayo_ros.evaluation.clips import EGOMOTION, Clip, find_clips, is_clip
from alpamayo_ros.evaluation.deciders import GivenDecider, ModelChoice, ModelDecider, Plans
from alpamayo_ros.evaluation.records import (
    BagRecords,
    RecordsError,
    kept_file,
    load_records,
    settings_json,
)
from alpamayo_ros.evaluation.results import FailedBag
from alpamayo_ros.evaluation.run import Decider, RunSettings, evaluate_bag, evaluate_clip
from alpamayo_ros.types import UserError


class FleetError(UserError):
    """The bags of a run do not go together, or an engine is missing; one line."""


@dataclass(frozen=True)
class Job:
    """What a run does with each bag. It travels to other processes, so it is plain values."""

    output: Path
    settings: RunSettings = field(default_factory=RunSettings)
    model: ModelChoice = field(default_factory=ModelChoice)
    plans: Path | None = None  # scored in place of the model's

    def decider(self) -> ClosableDecider:
        """Load the model, or read the plans."""
        if self.plans is not None:
            return GivenDecider(Plans.load(self.plans))
        return ModelDecider(self.model)

    def key(self, bag_sha256_hex: str, identity: Sequence[str]) -> str:
        """Of all that a bag's records depend on."""
        parts = [
            alpamayo_ros.__version__,
            bag_sha256_hex,
            *identity,
            settings_json(self.settings),
            settings_json(self.model.planner) if self.plans is None else "",
        ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class ClosableDecider(Decider, Protocol):
    """A decider that holds a device."""

    def close(self) -> None:
        """Give it back."""


@dataclass(frozen=True)
class NamedBag:
    """A bag and the name it has in the results."""

    path: Path
    name: str


Outcome = BagRecords | FailedBag
Progress = Callable[[NamedBag, float, int], None]  # bag, share of it that was read, decisions


def name_bags(paths: Sequence[Path]) -> list[NamedBag]:
    """Bags by the name of their folder or file, with the parent's where two are alike.

    A folder of clips of the public dataset stands for all of them, by their ids.

    Raises:
        FleetError: a bag is given twice.
    """
    bags: list[Path] = []
    clips: list[Path] = []
    for path in paths:
        found = find_clips(path)
        clips += found
        if not found:
            bags.append(path)
    named_clips = [NamedBag(path, path.name.removesuffix(EGOMOTION)) for path in clips]
    return _distinct(_name_by_folder(bags) + named_clips)


def _name_by_folder(paths: Sequence[Path]) -> list[NamedBag]:
    resolved = [path.resolve() for path in paths]
    counts = Counter(path.stem for path in resolved)
    return [
        NamedBag(path, p.stem if counts[p.stem] == 1 else f"{p.parent.name}-{p.stem}")
        for path, p in zip(paths, resolved)
    ]


def _distinct(named: list[NamedBag]) -> list[NamedBag]:
    again = [name for name, count in Counter(bag.name for bag in named).items() if count > 1]
    if again:
        raise FleetError(f"two bags would be called {again[0]}: rename one, or give it once")
    return named


def process_bag(job: Job, bag: NamedBag, decider: Decider, progress: Progress) -> Outcome:
    """The records of a bag, kept ones where they are still good; or why there are none."""
    file = kept_file(job.output, bag.name)
    try:
        clip = Clip.load(bag.path) if is_clip(bag.path) else None
        content = clip.sha256() if clip else bag_sha256(bag.path)
        key = job.key(content, decider.identity)
        try:
            kept = load_records(file, key)
            return replace(kept, name=bag.name, path=str(bag.path))  # it may have been moved
        except RecordsError:
            pass
        if clip:
            records = evaluate_clip(clip, bag.path, bag.name, decider, job.settings, content)
        else:
            records = evaluate_bag(
                bag.path,
                bag.name,
                decider,
                job.settings,
                lambda share, decisions: progress(bag, share, decisions),
                content,
            )
    except UserError as error:
        return FailedBag(bag.name, str(error))
    _keep(records, file, key)
    return records


def _keep(records: BagRecords, file: Path, key: str) -> None:
    """Save records; that the disk is full is no fault of the bag, and ends the run."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        records.save(file, key)
    except OSError as error:
        raise FleetError(f"{file} cannot be written: {error.strerror}") from None


def run_local(job: Job, bags: Sequence[NamedBag], progress: Progress) -> Iterator[Outcome]:
    """One bag after the other in this process."""
    decider = job.decider()
    try:
        for bag in bags:
            yield process_bag(job, bag, decider, progress)
    finally:
        decider.close()


def run_ray(job: Job, bags: Sequence[NamedBag], workers: int) -> Iterator[Outcome]:
    """Bags over `workers` Ray actors, each with a model of its own; in the order of the bags.

    With a device of CUDA or an NPU each actor asks Ray for one. The bags and the output must lie on
    a file system that every machine of the cluster sees.

    Raises:
        FleetError: Ray is not installed, has no room for so many workers, or lost one; or a worker
            cannot load the model.
    """
    try:
        import ray
        from ray.exceptions import RayError
        from ray.util import ActorPool
    except ImportError:
        raise FleetError(
            '--engine ray needs Ray: pip install "alpamayo_ros[ray]", or use --engine local'
        ) from None
    started_here = not ray.is_initialized()
    if started_here:
        ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        wanted = _resources(job)
        _check_room(wanted, workers, ray.cluster_resources())
        actor = ray.remote(**wanted)(_Worker)
        # Typed by hand: Ray may be missing where types are checked, and its types are too narrow.
        actors: list[Any] = [actor.remote(job) for _ in range(min(workers, len(bags)))]
        if reasons := [reason for reason in ray.get([a.load.remote() for a in actors]) if reason]:
            raise FleetError(reasons[0])
        pool: Any = ActorPool(actors)
        for outcome in pool.map(lambda a, bag: a.process.remote(bag), bags):
            if isinstance(outcome, FleetError):
                raise outcome
            yield outcome
    except RayError as error:
        first, *_ = str(error).splitlines() or [""]
        raise FleetError(
            f"a worker of Ray was lost ({type(error).__name__}: {first}); what is finished is "
            "kept: start the run again, with fewer --workers if memory ran out"
        ) from None
    finally:
        if started_here:
            ray.shutdown()


class _Worker:
    """A Ray actor: one device, one model, many bags."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._decider: ClosableDecider

    def load(self) -> str:
        """Load the model; why it cannot be, as text: Ray wraps what is raised in tracebacks."""
        try:
            self._decider = self._job.decider()
        except UserError as error:
            return str(error)
        return ""

    def process(self, bag: NamedBag) -> Outcome | FleetError:
        """The outcome of a bag, or what ends the run."""
        try:
            return process_bag(self._job, bag, self._decider, lambda *_: None)
        except FleetError as error:
            return error


def _check_room(wanted: Mapping[str, Any], workers: int, there: Mapping[str, float]) -> None:
    """Refuse more workers than Ray has room for: the others would be waited for without end."""
    names = {"num_cpus": "CPU", "num_gpus": "GPU"}
    one = {names[k]: v for k, v in wanted.items() if k in names} | wanted.get("resources", {})
    room = {name: int(there.get(name, 0) // amount) for name, amount in one.items()}
    scarce = min(room, key=lambda name: room[name])
    if workers > room[scarce]:
        raise FleetError(
            f"--workers {workers}: Ray has room for {room[scarce]}, one a {scarce}; give fewer, "
            "or join more machines to the cluster"
        )


def _resources(job: Job) -> dict[str, Any]:
    """What an actor asks Ray for."""
    device = "cpu" if job.plans is not None else job.model.device
    if device.startswith("cuda"):
        return {"num_cpus": 1, "num_gpus": 1}
    if device.startswith("npu"):
        return {"num_cpus": 1, "resources": {"NPU": 1}}
    return {"num_cpus": 1}
