"""report.html: one file for a review, readable offline and printable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alpamayo_ros.demo.report import page_template
from alpamayo_ros.demo.summary import write_text
from alpamayo_ros.evaluation import charts
from alpamayo_ros.evaluation.compare import Comparison, Difference
from alpamayo_ros.evaluation.metrics import HORIZONS_S, steps_of
from alpamayo_ros.evaluation.moments import make_moments, worst
from alpamayo_ros.evaluation.results import Results
from alpamayo_ros.evaluation.scores import FIGURES, MODEL, SUBJECTS, Scored

MOST_TIMELINES = 24  # bags that are drawn; metrics.json has all


@dataclass(frozen=True)
class Line:
    """One subject's row in a table of a figure, by horizon."""

    label: str
    cells: tuple[Mapping[str, Any], ...]  # estimates
    best: tuple[bool, ...]  # whether it is the least of the column's single plans


@dataclass(frozen=True)
class Table:
    """One figure of all subjects."""

    title: str
    digits: int
    lines: tuple[Line, ...]


# Title, digits, and the figures that the model's rows show; baselines have one plan, so the first.
TABLES = (
    ("Average displacement (ADE), m", 2, ("ade", "min_ade")),
    ("Displacement at the horizon (FDE), m", 2, ("fde", "min_fde")),
    ("Misses: farther than 2 m off at the horizon, share", 2, ("miss", "min_miss")),
    ("Along the driven heading, mean, m", 2, ("longitudinal",)),
    ("Across the driven heading, mean, m", 2, ("lateral",)),
    ("Heading, mean, rad", 3, ("heading",)),
    ("Speed, mean, m/s", 2, ("speed",)),
)


def write_report(
    path: Path,
    results: Results,
    scored: Sequence[Scored],
    document: Mapping[str, Any],
    comparison: Comparison | None = None,
) -> None:
    """Write the report, atomically.

    Args:
        document: of results.document, what metrics.json holds.
    """
    horizon_s = longest_horizon_s(scored)
    filters = {"estimate": estimate_text}
    page = page_template("alpamayo_ros.evaluation", "evaluation.html", filters).render(
        document=document,
        configuration=list(_flat(document["configuration"])),
        results=results,
        names=charts.NAMES,
        subjects=SUBJECTS,
        horizon_s=horizon_s,
        horizons_s=HORIZONS_S,
        tables=tables(document["figures"], len(scored[0].record.samples)),
        headline=_headline(document["figures"], horizon_s),
        growth=charts.growth(scored),
        distribution=charts.distribution(scored, horizon_s),
        timelines=_timelines(scored, horizon_s),
        moments=make_moments(worst(scored, horizon_s), results.bags, horizon_s),
        comparison=comparison,
        figure_meanings={name: figure.meaning for name, figure in FIGURES.items()},
        compared=_compared(comparison) if comparison else {},
        differences=_differences(comparison),
    )
    write_text(path, page)


def longest_horizon_s(scored: Sequence[Scored]) -> float:
    """The longest horizon that the truth of any decision reaches; the shortest without one."""
    most = max(decision.known_waypoints for decision in scored)
    reached = [h for h in HORIZONS_S if steps_of(h) <= most]
    return reached[-1] if reached else HORIZONS_S[0]


def estimate_text(estimate: Mapping[str, Any], digits: int = 2) -> str:
    """ "1.23 (1.10 to 1.40)", without the interval where there is none."""
    if estimate["mean"] is None:
        return "not known"
    text = f"{estimate['mean']:.{digits}f}"
    if estimate["low"] is None:
        return text
    return f"{text} ({estimate['low']:.{digits}f} to {estimate['high']:.{digits}f})"


def tables(rows: Sequence[Mapping[str, Any]], num_samples: int) -> list[Table]:
    """The tables of the report, from the rows of metrics.json."""
    found = {(row["subject"], row["figure"], row["horizon_s"]): row for row in rows}
    result = []
    for title, digits, figures in TABLES:
        shown = figures if num_samples > 1 else figures[:1]
        keys = [(MODEL, figure, _label(figure, num_samples)) for figure in shown]
        keys += [(name, figures[0], charts.NAMES[name]) for name in SUBJECTS[1:]]
        picked = [[found[subject, name, h] for h in HORIZONS_S] for subject, name, _ in keys]
        means = np.array([[_number(row["mean"]) for row in line] for line in picked])
        # The best of several plans is no rival of a single one: nobody knows it beforehand.
        means[[name != figures[0] for _, name, _ in keys]] = np.nan
        least = means == np.fmin.reduce(means, axis=0)
        lines = (
            Line(label, tuple(line), tuple(map(bool, best)))
            for (_, _, label), line, best in zip(keys, picked, least)
        )
        result.append(Table(title, digits, tuple(lines)))
    return result


def _label(figure: str, num_samples: int) -> str:
    if figure.startswith("min_"):
        return f"model, best of {num_samples} samples"
    return "model, the driven sample" if num_samples > 1 else "model"


def _number(mean: float | None) -> float:
    return float("nan") if mean is None else mean


def _headline(rows: Sequence[Mapping[str, Any]], horizon_s: float) -> dict[str, Any]:
    """The model's and the best baseline's figures at the longest horizon."""
    at = {(row["subject"], row["figure"]): row for row in rows if row["horizon_s"] == horizon_s}
    known = [name for name in SUBJECTS[1:] if at[name, "ade"]["mean"] is not None]
    best = min(known, key=lambda name: at[name, "ade"]["mean"], default=SUBJECTS[1])
    return {
        "ade": at[MODEL, "ade"],
        "min_ade": at[MODEL, "min_ade"],
        "miss": at[MODEL, "miss"],
        "baseline": charts.NAMES[best],
        "baseline_ade": at[best, "ade"],
    }


def _differences(comparison: Comparison | None) -> str:
    """The chart of a comparison, where the truth reaches the horizon that it is about."""
    if comparison is None or not np.isfinite(comparison.ade_m).any():
        return ""
    return charts.differences(comparison.ade_m, HORIZONS_S[-1])


def _compared(comparison: Comparison) -> dict[str, list[Difference]]:
    """Differences by figure, over the horizons."""
    figures = dict.fromkeys(row.figure for row in comparison.rows)
    return {name: [row for row in comparison.rows if row.figure == name] for name in figures}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and values of nested settings; empty ones are left out."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif value not in ("", None):
            yield f"{prefix}{name}", value


def _timelines(scored: Sequence[Scored], horizon_s: float) -> list[tuple[str, str]]:
    """Name and chart of each bag, of the first ones where there are many."""
    bags = dict.fromkeys(decision.bag for decision in scored)
    return [
        (bag, charts.timeline([d for d in scored if d.bag == bag], horizon_s))
        for bag in list(bags)[:MOST_TIMELINES]
    ]
