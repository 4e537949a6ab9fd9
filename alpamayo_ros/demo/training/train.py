"""Trains the small model on synthetic drives.

    python -m alpamayo_ros.demo.training.train FOLDER

makes the examples (FOLDER/examples), teaches the image encoder to see, then the whole network to
say and to drive, and writes FOLDER/model. Interrupted, the same command goes on from the last
checkpoint, of which there is one every ten minutes. FOLDER/loss.png shows how it goes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from alpamayo_ros.devices.device import prepare_environment

prepare_environment()  # before torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.multiprocessing.spawn import spawn as start_processes  # noqa: E402
from tqdm import tqdm  # noqa: E402

from alpamayo_ros.demo.drive import HELD_OUT_SEEDS, TRAINING_SEEDS  # noqa: E402
from alpamayo_ros.demo.small_model import FOLDER as SMALL  # noqa: E402
from alpamayo_ros.demo.training.examples import Examples, Recipe, make_examples  # noqa: E402
from alpamayo_ros.demo.training.objective import Teacher, losses  # noqa: E402
from alpamayo_ros.demo.training.optimise import (  # noqa: E402
    Optimiser,
    gather_gradients,
    prepare_weights,
)
from alpamayo_ros.demo.training.perception import (  # noqa: E402
    Reader,
    Sights,
    make_sights,
    sight_loss,
)
from alpamayo_ros.model.config_file import load_config  # noqa: E402
from alpamayo_ros.model.configuration import ModelConfig  # noqa: E402
from alpamayo_ros.model.network import Network  # noqa: E402
from alpamayo_ros.model.recipe import recipe_network  # noqa: E402
from alpamayo_ros.model.tokenizer import TextTokenizer  # noqa: E402

CHECKPOINT_EVERY_S = 600.0
CHECK_EVERY = 200  # steps, on held-out examples
CHECKED = 64
CHECK_SEEDS = HELD_OUT_SEEDS[1:13]  # 0 is the demo's own
SIGHT_BATCH = 32
PLAN_NAME = "training.json"


@dataclass(frozen=True)
class Numbers:
    """Everything that decides what comes out, and how many share the work."""

    drives: int = 320
    sight_drives: int = 1500
    per_drive: int = 32
    sight_steps: int = 2000
    steps: int = 1150
    batch: int = 16
    seed: int = 0
    workers: int = 2


@dataclass(frozen=True)
class Phase:
    """A stretch of the training: what is learnt in each step, and checked now and then."""

    name: str
    steps: int
    count: int  # of what is learnt from
    batch: int
    learn: Callable[[int, np.ndarray], dict[str, float]]
    check: Callable[[int], None]


@dataclass
class Log:
    """Losses by phase: step, and a value each."""

    sight: list[tuple[int, float]] = field(default_factory=list)
    reasoning: list[tuple[int, float]] = field(default_factory=list)
    flow: list[tuple[int, float]] = field(default_factory=list)
    held_out_sight: list[tuple[int, float]] = field(default_factory=list)
    held_out_reasoning: list[tuple[int, float]] = field(default_factory=list)
    held_out_flow: list[tuple[int, float]] = field(default_factory=list)


def order(count: int, batch: int, seed: int, first_step: int) -> Iterator[np.ndarray]:
    """Indices of each step's batch from a step on: every epoch is a new permutation of all."""
    step = first_step
    per_epoch = max(count // batch, 1)
    while True:
        epoch, place = divmod(step, per_epoch)
        permutation = np.random.default_rng([seed, epoch]).permutation(count)
        yield permutation[place * batch : (place + 1) * batch]
        step += 1


class Worker:
    """One process of the training; all of them hold the same weights."""

    def __init__(self, folder: Path, plan: Numbers, rank: int) -> None:
        self.folder, self.plan, self.rank = folder, plan, rank
        self.config = load_config(SMALL)
        self.network = recipe_network(self.config, "cpu", torch.float32, salt=f"train {plan.seed}")
        prepare_weights(self.network)
        self.network.requires_grad_(True)
        self.teacher = Teacher(self.config, TextTokenizer.load(SMALL, self.config))
        self.examples = training_examples(folder, plan, self.config)
        self.held_out = held_out_examples(folder, plan, self.config)
        self.sights = training_sights(folder, plan, self.config)
        self.held_out_sights = held_out_sights(folder, plan, self.config)
        self.reader = Reader(self.config, self.network.vlm.model.visual.tokens(self._grid()))
        torch.manual_seed(plan.seed)
        self.reader.start_quietly()
        self.log = Log()
        self._saved_s = time.monotonic()

    @property
    def checkpoint(self) -> Path:
        """Where the state of the training is kept."""
        return self.folder / "checkpoint.pt"

    def run(self) -> None:
        """Both phases, from the last checkpoint on."""
        state = torch.load(self.checkpoint) if self.checkpoint.is_file() else None
        if state is not None:
            begun = Numbers(**state["plan"])
            if replace(begun, workers=self.plan.workers) != self.plan:
                raise SystemExit(f"{self.folder} holds a training with other numbers: {begun}")
            self.network.load_state_dict(state["network"])
            self.reader.load_state_dict(state["reader"])
            self.log = Log(**state["log"])
        if state is None or state["phase"] == "sight":
            visual = self.network.vlm.model.visual
            named = [*visual.named_parameters(), *self.reader.named_parameters(prefix="reader")]
            self._go_through(self._seeing(), named, state)
            state = None
        self._go_through(self._driving(), list(self.network.named_parameters()), state)
        if self.rank == 0:
            write_model(self.network, self.plan, self.folder / "model")

    def _grid(self) -> tuple[int, int]:
        patch = self.config.backbone.vision.patch_size
        height, width = self.examples[0].images.shape[1:3]
        return height // patch, width // patch

    def _seeing(self) -> Phase:
        steps, count = self.plan.sight_steps, len(self.sights)
        return Phase("sight", steps, count, SIGHT_BATCH, self._sight_step, self._check_sight)

    def _driving(self) -> Phase:
        plan, count = self.plan, len(self.examples)
        return Phase("drive", plan.steps, count, plan.batch, self._drive_step, self._check)

    def _go_through(
        self, phase: Phase, named: list[tuple[str, nn.Parameter]], state: dict | None
    ) -> None:
        optimiser = Optimiser(named, phase.steps)
        first = 0
        if state is not None:
            first = state["step"]
            optimiser.load(state["optimiser"])
        batches = order(phase.count, phase.batch, self.plan.seed, first)
        parameters = [parameter for _, parameter in named]
        steps = range(first, phase.steps)
        bar = tqdm(steps, phase.name, phase.steps, initial=first, disable=self.rank > 0)
        for step in bar:
            mine = next(batches)[self.rank :: self.plan.workers]
            values = phase.learn(step, mine)
            gather_gradients(parameters, self.plan.workers)
            optimiser.step(step)
            for key, value in values.items():
                getattr(self.log, key).append((step, value))
            bar.set_postfix({key: f"{value:.3f}" for key, value in values.items()})
            if (step + 1) % CHECK_EVERY == 0:
                phase.check(step)
            self._save(phase, step + 1, optimiser)

    def _sight_step(self, step: int, mine: np.ndarray) -> dict[str, float]:
        sights = [self.sights[int(i)] for i in mine]
        loss, _ = sight_loss(self.network.vlm.model.visual, self.reader, sights)
        loss.backward()
        return {"sight": loss.item()}

    @torch.no_grad()
    def _check_sight(self, step: int) -> None:
        """How well it sees what it has not learnt from; every worker for itself."""
        sights = [self.held_out_sights[i] for i in range(len(self.held_out_sights))]
        loss, right = sight_loss(self.network.vlm.model.visual, self.reader, sights)
        self.log.held_out_sight.append((step, loss.item()))
        if self.rank == 0:
            tqdm.write(f"step {step + 1}: held out, sight {loss:.3f}, {right:.0%} categories right")

    def _drive_step(self, step: int, mine: np.ndarray) -> dict[str, float]:
        (seed,) = np.random.SeedSequence([self.plan.seed, step, self.rank]).generate_state(1)
        rng = torch.Generator().manual_seed(int(seed))
        reasoning, flow = 0.0, 0.0
        for index in mine:
            lesson = self.teacher.lesson(self.examples[int(index)])
            loss = losses(self.network, self.config, lesson, rng)
            (loss.total / len(mine)).backward()
            reasoning += loss.reasoning.item() / len(mine)
            flow += loss.flow.item() / len(mine)
        return {"reasoning": reasoning, "flow": flow}

    @torch.no_grad()
    def _check(self, step: int) -> None:
        """Mean losses on held-out examples, of which each worker takes its share."""
        chosen = np.linspace(0, len(self.held_out) - 1, CHECKED).astype(int)
        rng = torch.Generator().manual_seed(self.rank)
        total = torch.zeros(2)
        for index in chosen[self.rank :: self.plan.workers]:
            lesson = self.teacher.lesson(self.held_out[int(index)])
            loss = losses(self.network, self.config, lesson, rng)
            total += torch.stack([loss.reasoning, loss.flow]) / CHECKED
        if self.plan.workers > 1:
            torch.distributed.all_reduce(total)
        self.log.held_out_reasoning.append((step, float(total[0])))
        self.log.held_out_flow.append((step, float(total[1])))
        if self.rank == 0:
            tqdm.write(f"step {step + 1}: held out, reasoning {total[0]:.3f}, flow {total[1]:.3f}")

    def _save(self, phase: Phase, step: int, optimiser: Optimiser) -> None:
        """A checkpoint where the last one is ten minutes old, or the phase ends."""
        ends = step == phase.steps
        if self.rank > 0 or (time.monotonic() - self._saved_s < CHECKPOINT_EVERY_S and not ends):
            return
        self._saved_s = time.monotonic()
        state = {
            "plan": asdict(self.plan),
            "phase": phase.name,
            "step": step,
            "network": self.network.state_dict(),
            "optimiser": optimiser.state(),
            "reader": self.reader.state_dict(),
            "log": asdict(self.log),
        }
        temporary = self.checkpoint.with_suffix(".writing")
        torch.save(state, temporary)
        os.replace(temporary, self.checkpoint)
        draw_losses(self.log, self.folder / "loss.png")


def training_examples(folder: Path, plan: Numbers, config: ModelConfig) -> Examples:
    """The examples that are learnt from."""
    seeds = TRAINING_SEEDS[: plan.drives]
    return make_examples(folder / "examples", seeds, recipe(plan, config), plan.workers)


def held_out_examples(folder: Path, plan: Numbers, config: ModelConfig) -> Examples:
    """Examples from drives that nothing is learnt from."""
    return make_examples(folder / "examples", CHECK_SEEDS, recipe(plan, config), plan.workers)


def training_sights(folder: Path, plan: Numbers, config: ModelConfig) -> Sights:
    """What the image encoder learns to see from: other drives again."""
    seeds = TRAINING_SEEDS[plan.drives : plan.drives + plan.sight_drives]
    return make_sights(folder / "examples", seeds, recipe(plan, config), plan.workers)


def held_out_sights(folder: Path, plan: Numbers, config: ModelConfig) -> Sights:
    """Sights from drives that nothing is learnt from."""
    return make_sights(folder / "examples", CHECK_SEEDS, recipe(plan, config), plan.workers)


def recipe(plan: Numbers, config: ModelConfig) -> Recipe:
    """How examples are taken for a model."""
    return Recipe(plan.per_drive, config.min_pixels, config.max_pixels)


def write_model(network: Network, plan: Numbers, folder: Path) -> None:
    """A checkpoint folder in bfloat16 that the normal loader reads, and how it was made."""
    temporary = Path(tempfile.mkdtemp(dir=folder.parent))
    shutil.copytree(SMALL, temporary, dirs_exist_ok=True)
    tensors = {name: _stored(value) for name, value in network.state_dict().items()}
    save_file(tensors, temporary / "model.safetensors")
    (temporary / PLAN_NAME).write_text(json.dumps(asdict(plan), indent=1) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(temporary, folder)


def _stored(value: Tensor) -> Tensor:
    return value.detach().to(torch.bfloat16).contiguous()


def draw_losses(log: Log, path: Path) -> None:
    """The losses over the steps, smoothed, with the held-out ones as points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for axis, name in zip(axes, ("sight", "reasoning", "flow")):
        values = getattr(log, name)
        axis.set(title=name, xlabel="step", yscale="log")
        if values:
            steps, numbers = np.array(values).T
            width = max(1, len(numbers) // 60)
            means = np.convolve(numbers, np.ones(width) / width, "valid")
            axis.plot(steps, numbers, color="0.85", linewidth=0.5)
            axis.plot(steps[width - 1 :], means, label="training")
        checked = getattr(log, f"held_out_{name}", [])
        if checked:
            axis.plot(*np.array(checked).T, "o-", label="held out")
            axis.legend()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _work(rank: int, folder: Path, plan: Numbers, meeting: str) -> None:
    torch.set_num_threads(1)
    if plan.workers > 1:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting}", rank=rank, world_size=plan.workers
        )
    Worker(folder, plan, rank).run()


def main() -> None:
    """Run the training."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where examples, checkpoint and model go")
    for name, default in asdict(Numbers()).items():
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=int, default=default, help=f"default {default}")
    values = vars(parser.parse_args())
    folder: Path = values.pop("folder")
    for name, value in values.items():
        least = {"seed": 0, "batch": values["workers"]}.get(name, 1)
        if value < least:
            option = name.replace("_", "-")
            parser.error(f"--{option} {value}: allowed are whole numbers from {least} on")
    plan = Numbers(**values)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"{folder}: {error.strerror}; name a folder that can be written")
    config = load_config(SMALL)
    # Made here, so that the workers find them.
    print(f"{len(training_examples(folder, plan, config))} examples to learn from")
    held_out_examples(folder, plan, config)
    print(f"{len(training_sights(folder, plan, config))} sights to learn to see from")
    held_out_sights(folder, plan, config)
    with tempfile.TemporaryDirectory() as meeting:
        start_processes(_work, (folder, plan, f"{meeting}/meeting"), nprocs=plan.workers)
    print(f"the model is in {folder / 'model'}")


if __name__ == "__main__":
    main()
