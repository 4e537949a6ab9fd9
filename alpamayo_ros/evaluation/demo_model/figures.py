"""What scores come to: the figures of the small model's card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from alpamayo_ros.evaluation.demo_model.score import Scored, Scores, Turned
from alpamayo_ros.evaluation.statistics import Estimate, blocks, estimate

SEED = 0  # of the intervals' resampling


@dataclass(frozen=True)
class Group:
    """Decisions of a kind, held against constant turn rate and velocity."""

    name: str
    count: int
    ade_m: tuple[float, ...]  # means at score.HORIZONS_S
    baseline_ade_m: tuple[float, ...]

    @property
    def less(self) -> tuple[float, ...]:
        """By what part the error is below the baseline's, at score.HORIZONS_S."""
        return tuple(1 - a / b if b else 0.0 for a, b in zip(self.ade_m, self.baseline_ade_m))


@dataclass(frozen=True)
class Kind:
    """How often a true category is named, and what is named instead."""

    name: str
    count: int
    right: int
    instead: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Figures:
    """Everything that the card says in numbers."""

    groups: tuple[Group, ...]
    kinds: tuple[Kind, ...]
    right: Estimate  # part of the decisions that name the true category
    most_frequent: float  # what always naming the most frequent category would get
    kept: Estimate  # part of the plans that do what their own words say
    truth_kept: float  # the same of what was driven and the true sentence
    accepted: Estimate  # by the gate
    turned: float  # plans at intersections that go where they were told
    turned_otherwise: float  # the same when told to turn the other way
    turns: int


def figures(scores: Scores) -> Figures:
    """The figures of at least one decision and one intersection."""
    seeing, turns = scores.seeing, scores.turns
    frequencies = Counter(scored.category for scored in seeing)
    by_category = {name: [s for s in seeing if s.category == name] for name in frequencies}
    return Figures(
        groups=(
            group("all", seeing),
            group("cause to slow, stop or turn", [s for s in seeing if s.slows_or_turns]),
            *(group(name, of_it) for name, of_it in sorted(by_category.items())),
            group("all, images blank", scores.blank),
            group("all, cameras exchanged", scores.exchanged),
        ),
        kinds=tuple(kind(name, seeing) for name, _ in frequencies.most_common()),
        right=_part(seeing, lambda scored: scored.said_category == scored.category),
        most_frequent=frequencies.most_common(1)[0][1] / len(seeing),
        kept=_part(seeing, lambda scored: scored.keeps_its_word),
        truth_kept=float(np.mean([scored.truth_keeps_its_word for scored in seeing])),
        accepted=_part(seeing, lambda scored: not scored.reasons),
        turned=float(np.mean([turned.planned == turned.driven for turned in turns])),
        turned_otherwise=float(np.mean([_goes_where_swapped(turned) for turned in turns])),
        turns=len(turns),
    )


def group(name: str, decisions: Sequence[Scored]) -> Group:
    """Mean errors of at least one decision."""
    ours = np.array([scored.ade_m for scored in decisions]).mean(axis=0)
    baseline = np.array([scored.baseline_ade_m for scored in decisions]).mean(axis=0)
    return Group(name, len(decisions), tuple(ours), tuple(baseline))


def kind(name: str, decisions: Sequence[Scored]) -> Kind:
    """What is said where a category is true."""
    said = Counter(s.said_category or "nothing known" for s in decisions if s.category == name)
    right = said.pop(name, 0)
    return Kind(name, right + said.total(), right, tuple(said.most_common()))


def _part(decisions: Sequence[Scored], holds: Callable[[Scored], bool]) -> Estimate:
    values = np.array([float(holds(scored)) for scored in decisions])
    drives = np.array([scored.seed for scored in decisions])
    return estimate(values, blocks(drives, np.array([s.t_s for s in decisions])), SEED)


def _goes_where_swapped(turned: Turned) -> bool:
    side = "right" if "right" in turned.swapped_told else "left"
    return turned.swapped_planned == side
