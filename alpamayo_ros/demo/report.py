"""report.html: one file that shows a demo run, without any request to elsewhere."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import jinja2
import numpy as np

from alpamayo_ros.demo.summary import Decision, Moment, Summary, write_text

JPEG_QUALITY = 88
CHART_WIDTH, CHART_HEIGHT = 720, 220
CHART_LEFT, CHART_BOTTOM = 64, 34  # room for the labels


@dataclass(frozen=True)
class Dot:
    """A decision in the latency chart, in the chart's units."""

    x: float
    y: float
    accepted: bool
    label: str


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis of the chart."""

    at: float
    label: str


@dataclass(frozen=True)
class Chart:
    """Decision times over the drive."""

    width: int
    height: int
    left: int
    base: int  # y of the time axis
    dots: tuple[Dot, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def write_report(
    folder: str | os.PathLike[str], summary: Summary, moments: Sequence[Moment]
) -> Path:
    """Write report.html into an existing folder, atomically, and return its path."""
    page = page_template("alpamayo_ros.demo", "report.html").render(
        summary=summary,
        moments=moments,
        chart=latency_chart(summary.decisions),
    )
    return write_text(Path(folder) / "report.html", page)


def page_template(
    package: str, name: str, filters: Mapping[str, Callable[..., str]] | None = None
) -> jinja2.Template:
    """A package's template for a page; `picture` and the given filters are at its disposal.

    What it is given is escaped in HTML, by the template's name.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=jinja2.select_autoescape(),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["picture"] = picture_uri
    environment.filters.update(filters or {})
    return environment.get_template(name)


def picture_uri(image_rgb: np.ndarray) -> str:
    """A picture, uint8 (H, W, 3), as a data URI of a JPEG."""
    bgr = cv2.cvtColor(image_rgb, cv2.COLOR_RGB2BGR)
    written, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not written:
        raise RuntimeError("OpenCV could not encode a JPEG")
    return "data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode("ascii")


def latency_chart(decisions: Sequence[Decision]) -> Chart | None:
    """Where each decision stands in the chart; None without decisions."""
    if not decisions:
        return None
    base = CHART_HEIGHT - CHART_BOTTOM
    last_s = max(decision.t_s for decision in decisions) or 1.0
    top_ms = max(decision.decision_ms for decision in decisions) * 1.1 or 1.0

    def x(t_s: float) -> float:
        return round(CHART_LEFT + t_s / last_s * (CHART_WIDTH - CHART_LEFT - 12), 1)

    def y(duration_ms: float) -> float:
        return round(base - duration_ms / top_ms * (base - 10), 1)

    dots = tuple(
        Dot(
            x(decision.t_s),
            y(decision.decision_ms),
            decision.accepted,
            f"{decision.t_s:.1f} s: {decision.decision_ms:.0f} ms",
        )
        for decision in decisions
    )
    return Chart(
        CHART_WIDTH,
        CHART_HEIGHT,
        CHART_LEFT,
        base,
        dots,
        tuple(Tick(x(t_s), f"{t_s:g} s") for t_s in _round_steps(last_s)),
        tuple(Tick(y(t_ms), f"{t_ms:g} ms") for t_ms in _round_steps(top_ms)),
    )


def _round_steps(last: float) -> np.ndarray:
    """Three to eight values from 0 to last, at steps of 1, 2 or 5 times a power of ten."""
    magnitude = 10.0 ** np.floor(np.log10(last))
    step = next(s * magnitude for s in (0.2, 0.5, 1.0, 2.0) if last / (s * magnitude) < 7)
    return np.arange(0, last * (1 + 1e-9), step)
