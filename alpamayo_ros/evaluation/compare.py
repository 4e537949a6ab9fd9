"""Two runs on the same bags: the difference of every decision, and whether it is chance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alpamayo_ros.evaluation.metrics import HORIZONS_S
from alpamayo_ros.evaluation.records import BagRecords, kept_file, load_records
from alpamayo_ros.evaluation.results import block_of
from alpamayo_ros.evaluation.scores import MODEL, Scored, score
from alpamayo_ros.evaluation.statistics import Estimate, estimate, sign_test
from alpamayo_ros.sensing.poses import Origin
from alpamayo_ros.types import UserError

COMPARED = ("ade", "min_ade", "fde", "miss", "lateral", "longitudinal", "speed")


class CompareError(UserError):
    """Runs that have nothing in common; one line."""


@dataclass(frozen=True)
class Difference:
    """This run minus the other, of one figure; negative: this one is nearer to the truth."""

    figure: str
    horizon_s: float
    estimate: Estimate
    better: int  # decisions in which this run is nearer
    worse: int
    p_value: float | None  # of the sign test over stretches of 10 s


@dataclass(frozen=True, eq=False)
class Comparison:
    """All differences of two runs."""

    other: str  # its folder's name
    other_model: str
    decisions: int  # that both runs have
    only_here: int
    only_there: int
    rows: tuple[Difference, ...]
    ade_m: np.ndarray  # (N,) differences at the longest horizon, by decision

    def as_json(self) -> dict[str, Any]:
        """compare.json."""
        rows = [{**vars(row), "estimate": vars(row.estimate)} for row in self.rows]
        return {
            "other": self.other,
            "other_model": self.other_model,
            "decisions": self.decisions,
            "only_here": self.only_here,
            "only_there": self.only_there,
            "differences": rows,
        }


def load_run(folder: Path) -> list[BagRecords]:
    """The records of an earlier run: of the bags in its metrics.json, whatever else is kept.

    Raises:
        CompareError: the folder is none of a finished run; one line.
        RecordsError: a file of it is damaged; one line.
    """
    told = folder / "metrics.json"
    try:
        document = json.loads(told.read_text(encoding="utf-8"))
        model_id = document["model"]["id"]
        wanted = {bag["name"]: (bag["sha256"], model_id) for bag in document["bags"]}
    except (FileNotFoundError, NotADirectoryError):
        raise CompareError(
            f"--compare {folder}: want the --output of an earlier evaluation that was finished"
        ) from None
    except (OSError, ValueError, LookupError, TypeError):
        raise CompareError(f"--compare: {told} is damaged: evaluate once more") from None
    runs = [load_records(kept_file(folder, name)) for name in wanted]
    for run in runs:
        # A run with another model may have been started into the same folder, and not finished.
        if (run.sha256, run.model_id) != wanted.get(run.name):
            raise CompareError(
                f"--compare {folder}: the records of {run.name} are not those of its "
                "metrics.json: evaluate once more"
            )
    return runs


def compare(
    here: Sequence[Scored],
    bags: Sequence[BagRecords],
    there: Sequence[BagRecords],
    name: str,
    origin: Origin,
    seed: int,
) -> Comparison:
    """Differences of the decisions that both runs made: the same bag, by its bytes, and t0.

    Raises:
        CompareError: there is none; one line.
    """
    others = {
        (there[decision.bag_number].sha256, decision.record.t0_ns): decision
        for decision in score(there, origin)
    }
    pairs = [
        (decision, others[key])
        for decision in here
        if (key := (bags[decision.bag_number].sha256, decision.record.t0_ns)) in others
    ]
    if not pairs:
        raise CompareError(f"--compare {name}: no decision is on the same bag at the same t0")
    block = block_of([mine for mine, _ in pairs])
    rows = [
        _difference(pairs, figure, horizon_s, block, seed)
        for figure in COMPARED
        for horizon_s in HORIZONS_S
    ]
    return Comparison(
        other=name,
        other_model=there[0].model_id,
        decisions=len(pairs),
        only_here=len(here) - len(pairs),
        only_there=len(others) - len(pairs),
        rows=tuple(rows),
        ade_m=_values(pairs, "ade", HORIZONS_S[-1]),
    )


def _values(pairs: Sequence[tuple[Scored, Scored]], figure: str, horizon_s: float) -> np.ndarray:
    return np.array(
        [a.value(MODEL, figure, horizon_s) - b.value(MODEL, figure, horizon_s) for a, b in pairs]
    )


def _difference(
    pairs: Sequence[tuple[Scored, Scored]],
    figure: str,
    horizon_s: float,
    block: np.ndarray,
    seed: int,
) -> Difference:
    values = _values(pairs, figure, horizon_s)
    return Difference(
        figure,
        horizon_s,
        estimate(values, block, seed),
        better=int((values < 0).sum()),
        worse=int((values > 0).sum()),
        p_value=sign_test(values, block),
    )
