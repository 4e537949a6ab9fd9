"""The report's charts as inline SVG: same data, same bytes; no request to elsewhere."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from alpamayo_ros.evaluation.metrics import MISS_M, distances_m
from alpamayo_ros.evaluation.scores import MODEL, SUBJECTS, Scored
from alpamayo_ros.types import STEP_S, WAYPOINTS

# Of Okabe and Ito's palette: told apart by colour-blind readers, and in grey by the dashes.
STYLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "model": ("#0072b2", "-"),
        "constant_velocity": ("#999999", "--"),
        "constant_turn_rate_and_velocity": ("#d55e00", "-."),
        "constant_acceleration": ("#009e73", ":"),
    }
)
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "model": "model",
        "constant_velocity": "constant velocity",
        "constant_turn_rate_and_velocity": "constant turn rate and velocity",
        "constant_acceleration": "constant acceleration",
        "driven": "driven",
    }
)
ACCEPTED, REJECTED = "#0072b2", "#c0342b"
SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "alpamayo",  # ids of clip paths are random without it
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e2e5e9",
    "axes.edgecolor": "#8a929d",
    "legend.frameon": False,
}


def growth(scored: Sequence[Scored]) -> str:
    """Mean distance from the driven path over the plan's seconds, of each subject."""
    times_s = np.arange(1, WAYPOINTS + 1) * STEP_S
    with _chart((6.4, 3.2)) as (axes, svg):
        for subject in SUBJECTS:
            usable = [d for d in scored if d.finite or subject != MODEL]
            gaps = [distances_m(d.plans[subject][0], d.record.truth) for d in usable]
            if gaps:
                axes.plot(times_s, _column_means(np.array(gaps)), **_line(subject))
        axes.set(xlabel="seconds after t0", ylabel="mean distance, m", xlim=(0, 6.4))
        axes.set_ylim(bottom=0)
        axes.legend()
    return svg.getvalue()


def distribution(scored: Sequence[Scored], horizon_s: float) -> str:
    """Share of the decisions with an average displacement up to x, of each subject."""
    with _chart((6.4, 3.2)) as (axes, svg):
        ends = []
        for subject in SUBJECTS:
            values = np.array([d.value(subject, "ade", horizon_s) for d in scored])
            values = np.sort(values[np.isfinite(values)])
            if len(values):
                ends.append(values[-1])
                steps = np.arange(len(values) + 1) / len(values)
                axes.step(np.concatenate([[0.0], values]), steps, where="post", **_line(subject))
        if ends:
            axes.legend(loc="lower right")
        axes.set(xlabel=f"average displacement over {horizon_s:g} s, m", ylabel="share")
        axes.set(xlim=(0, max(ends, default=1.0) or 1.0), ylim=(0, 1.02))
    return svg.getvalue()


def timeline(scored: Sequence[Scored], horizon_s: float) -> str:
    """Each decision of a bag over its time: average displacement and what the gate said."""
    with _chart((10.4, 2.6)) as (axes, svg):
        for accepted, colour, marker, label in (
            (True, ACCEPTED, "o", "accepted by the gate"),
            (False, REJECTED, "x", "rejected"),
        ):
            some = [d for d in scored if (not d.record.reasons) == accepted]
            axes.plot(
                [d.record.t_s for d in some],
                [d.value(MODEL, "ade", horizon_s) for d in some],
                marker,
                color=colour,
                markersize=4,
                label=label,
            )
        axes.axhline(MISS_M, color="#8a929d", linewidth=0.8, linestyle="--")
        axes.set(xlabel="seconds of the bag", ylabel=f"ADE {horizon_s:g} s, m")
        axes.set_ylim(bottom=0)
        speed = axes.twinx()
        speed.plot(
            [d.record.t_s for d in scored],
            [d.record.speed_m_s for d in scored],
            color="#b8bec6",
            linewidth=1,
        )
        speed.set_ylabel("speed, m/s", color="#6a727d")
        speed.grid(visible=False)
        speed.set_ylim(bottom=0)
        axes.set_zorder(speed.get_zorder() + 1)
        axes.patch.set_visible(False)
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
    return svg.getvalue()


def differences(values_m: np.ndarray, horizon_s: float) -> str:
    """How the per-decision differences of a comparison are spread."""
    with _chart((6.4, 2.6)) as (axes, svg):
        known = values_m[np.isfinite(values_m)]
        axes.hist(known, bins=min(40, max(8, len(known) // 4)), color="#0072b2")
        axes.axvline(0, color="#20242a", linewidth=1)
        axes.set(xlabel=f"ADE {horizon_s:g} s, this run minus the other, m", ylabel="decisions")
    return svg.getvalue()


def _column_means(values: np.ndarray) -> np.ndarray:
    """Means of the columns over what is known; NaN where nothing is."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


def _line(subject: str) -> dict[str, Any]:
    colour, dashes = STYLES[subject]
    width = 2.2 if subject == MODEL else 1.4
    return {"color": colour, "linestyle": dashes, "linewidth": width, "label": NAMES[subject]}


@contextmanager
def _chart(size_in: tuple[float, float]) -> Iterator[tuple[Axes, io.StringIO]]:
    """Axes of one figure; when the block ends the text holds its <svg> element."""
    svg = io.StringIO()
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=size_in, layout="constrained")
        yield figure.subplots(), svg
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    svg.write(text[text.index("<svg") :])
