"""Examples to learn from: what a decision sees at moments of synthetic drives, and what follows.

Rendering sixteen views costs about as much as a training step, so the examples of each drive are
kept on disk: `<folder>/<digest of the drive's code>/<seed>/`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from tqdm import tqdm

from alpamayo_ros import demo
from alpamayo_ros.demo.cameras import Camera, default_rig
from alpamayo_ros.demo.causes import Category
from alpamayo_ros.demo.drive import MAX_DURATION_S, Drive
from alpamayo_ros.demo.render import render
from alpamayo_ros.demo.vehicle import VehicleState
from alpamayo_ros.model.images import resize_frame
from alpamayo_ros.sensing.poses import Track, ego_history
from alpamayo_ros.types import (
    CAMERA_IDS,
    FRAME_OFFSETS_NS,
    HISTORY_POSES,
    POSE_OFFSETS_NS,
    STEP_S,
    WAYPOINTS,
    Snapshot,
)

# Half the size that the demo's cameras have: the model sees less than a third of it anyway.
SMALL_RIG = default_rig(width_px=288, height_px=160)
FIRST_T0_S = (HISTORY_POSES - 1) * STEP_S + 0.1
HORIZON_S = WAYPOINTS * STEP_S
LAST_T0_S = MAX_DURATION_S - HORIZON_S - 0.1
# Modules of the demo that don't decide what is in an example.
NOT_SEEN = (
    *("recording", "moments", "pictures", "report", "summary"),
    *("small_model", "small_tokenizer"),
)
# A clear road teaches little after the thousandth example: of what is most frequent less is taken.
KEPT = {Category.CLEAR: 0.6}


@dataclass(frozen=True, eq=False)
class Example:
    """A moment of a drive."""

    seed: int
    t_s: float
    images: np.ndarray  # uint8 (16, H, W, 3) at the model's size, camera-major, oldest first
    history_xyz: np.ndarray  # float64 (16, 3) m, ego frame at t0
    history_rot: np.ndarray  # float64 (16, 3, 3)
    future: np.ndarray  # float64 (64, 3) x_m, y_m, yaw_rad, ego frame at t0
    navigation: str
    category: str  # of the cause, as causes.Category spells it
    sentence: str

    def snapshot(self, images: np.ndarray | None = None) -> Snapshot:
        """What the model is shown; with other images in place of the example's own."""
        shown = self.images if images is None else images
        t0_ns = round(self.t_s * 1e9)
        cameras = len(CAMERA_IDS)
        return Snapshot(
            frames=tuple(shown.reshape(cameras, -1, *shown.shape[1:])),
            camera_ids=tuple(CAMERA_IDS.values()),
            frame_stamps_ns=np.tile(t0_ns + np.array(FRAME_OFFSETS_NS), (cameras, 1)),
            t0_ns=t0_ns,
            ego_history_xyz=self.history_xyz,
            ego_history_rot=self.history_rot,
            navigation_text=self.navigation,
        )


Item = TypeVar("Item")


class Stored(Sequence[Item], ABC, Generic[Item]):
    """What is kept of moments of several drives; images stay on disk until they are asked for."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._drives = [_read(folder) for folder in folders]
        counts = [len(images) for images, _ in self._drives]
        self._places = [(i, k) for i, count in enumerate(counts) for k in range(count)]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> Item:  # type: ignore[override]
        drive, k = self._places[index]
        images, arrays = self._drives[drive]
        return self._item(np.array(images[k]), arrays, k)

    @abstractmethod
    def _item(self, images: np.ndarray, arrays: dict[str, np.ndarray], k: int) -> Item:
        """Moment k of a drive, given its images and all that is kept of the drive."""


class Examples(Stored[Example]):
    """The examples of several drives."""

    def _item(self, images: np.ndarray, arrays: dict[str, np.ndarray], k: int) -> Example:
        return Example(
            seed=int(arrays["seed"]),
            t_s=float(arrays["t_s"][k]),
            images=images,
            history_xyz=arrays["history_xyz"][k],
            history_rot=arrays["history_rot"][k],
            future=arrays["future"][k],
            navigation=str(arrays["navigation"][k]),
            category=str(arrays["category"][k]),
            sentence=str(arrays["sentence"][k]),
        )


@dataclass(frozen=True)
class Recipe:
    """Which moments are taken of a drive, and how the model sees them."""

    per_drive: int
    min_pixels: int
    max_pixels: int


# Images of K moments (K, N, H, W, 3), and what else is kept of them by its name.
ArraysOf = Callable[[Drive, Recipe], tuple[np.ndarray, dict[str, Any]]]


def make_examples(folder: Path, seeds: Sequence[int], recipe: Recipe, workers: int) -> Examples:
    """The examples of these drives; what the folder does not hold yet is made, with progress."""
    return Examples(make_drives(folder / "whole", seeds, recipe, workers, _whole))


def make_drives(
    folder: Path, seeds: Sequence[int], recipe: Recipe, workers: int, arrays_of: ArraysOf
) -> list[Path]:
    """The folder of each drive, with what `arrays_of` makes of it where it isn't there yet."""
    root = folder / f"{code_digest()}-{recipe.per_drive}-{recipe.max_pixels}"
    root.mkdir(parents=True, exist_ok=True)
    missing = [seed for seed in seeds if not (root / str(seed)).is_dir()]
    if missing:
        with ProcessPoolExecutor(workers, get_context("spawn"), single_threaded) as pool:
            jobs = [pool.submit(_make, root, seed, recipe, arrays_of) for seed in missing]
            for job in tqdm(jobs, desc=f"drives, {folder.name}", unit="drive"):
                job.result()
    return [root / str(seed) for seed in seeds]


def code_digest() -> str:
    """Of the modules that decide what is in an example: other code makes other examples."""
    digest = hashlib.sha256()
    for path in sorted(Path(demo.__file__).parent.glob("*.py")):
        if path.stem not in NOT_SEEN:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def moments(drive: Drive, count: int) -> Iterator[float]:
    """Times for t0, on the grid of 0.01 s, in order and at most `count`."""
    rng = np.random.default_rng([drive.seed, 1])
    for t_s in drawn_times_s(rng, count):
        if rng.random() < KEPT.get(drive.cause_at(t_s).category, 1.0):
            yield t_s


def drawn_times_s(rng: np.random.Generator, count: int) -> list[float]:
    """So many times that can be t0 of a whole drive, on the grid of 0.01 s, in order."""
    times_s: list[float] = np.sort(rng.uniform(FIRST_T0_S, LAST_T0_S, count)).round(2).tolist()
    return times_s


def example_at(
    drive: Drive, t_s: float, recipe: Recipe, rig: Sequence[Camera] = SMALL_RIG
) -> Example:
    """The example at a time of a drive, through these cameras."""
    times_s = [t_s + offset_ns * 1e-9 for offset_ns in FRAME_OFFSETS_NS]
    states = [drive.state_at(t_s + offset_ns * 1e-9) for offset_ns in POSE_OFFSETS_NS]
    xyz, rot = history_of(states)
    cause = drive.cause_at(t_s)
    return Example(
        seed=drive.seed,
        t_s=t_s,
        images=views(drive, times_s, rig, recipe),
        history_xyz=xyz,
        history_rot=rot,
        future=drive.future_xyyaw(t_s),
        navigation=drive.navigation_at(t_s),
        category=cause.category.value,
        sentence=cause.sentence,
    )


def views(
    drive: Drive, times_s: Sequence[float], cameras: Sequence[Camera], recipe: Recipe
) -> np.ndarray:
    """Images uint8 (cameras * times, H, W, 3) at the model's size, camera-major."""
    scenes = [drive.scene_at(t_s) for t_s in times_s]
    limits = (recipe.min_pixels, recipe.max_pixels)
    return np.stack(
        [resize_frame(render(camera, scene), *limits) for camera in cameras for scene in scenes]
    )


def history_of(states: Sequence[VehicleState]) -> tuple[np.ndarray, np.ndarray]:
    """Positions float64 (N, 3) and rotations (N, 3, 3) of states, in the frame of the last one."""
    half_yaw = np.array([state.yaw_rad for state in states]) / 2
    zero = np.zeros(len(states))
    track = Track(
        np.array([(state.x_m, state.y_m, 0.0) for state in states]),
        np.column_stack([zero, zero, np.sin(half_yaw), np.cos(half_yaw)]),
        np.array([state.speed_m_s for state in states]),
    )
    return ego_history(track, np.zeros(4))


def _whole(drive: Drive, recipe: Recipe) -> tuple[np.ndarray, dict[str, Any]]:
    """All of a drive's examples: images (K, 16, H, W, 3), and the rest by its name."""
    taken = [example_at(drive, t_s, recipe) for t_s in moments(drive, recipe.per_drive)]
    names = ("t_s", "history_xyz", "history_rot", "future", "navigation", "category", "sentence")
    arrays = {name: np.array([getattr(example, name) for example in taken]) for name in names}
    return np.stack([example.images for example in taken]), arrays | {"seed": np.array(drive.seed)}


def _make(root: Path, seed: int, recipe: Recipe, arrays_of: ArraysOf) -> None:
    """Make one drive's folder; it appears when it is complete."""
    images, arrays = arrays_of(Drive(seed), recipe)
    temporary = Path(tempfile.mkdtemp(prefix=".making-", dir=root))
    try:
        np.save(temporary / "images.npy", images)
        np.savez(temporary / "rest.npz", **arrays)
        os.replace(temporary, root / str(seed))
    except OSError:
        if not (root / str(seed)).is_dir():  # else another process was faster: as good as ours
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _read(folder: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Images, left on disk until asked for, and the rest by its name."""
    with np.load(folder / "rest.npz") as file:
        arrays = {name: file[name] for name in file.files}
    return np.load(folder / "images.npy", mmap_mode="r"), arrays


def single_threaded() -> None:
    """One thread in each worker: they are as many as the cores."""
    import cv2
    import torch

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
