"""The report stands alone, says what the document says, and opens in a browser without errors."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import cv2
import numpy as np
import pytest

from alpamayo_ros.evaluation.compare import compare, load_run
from alpamayo_ros.evaluation.deciders import GivenDecider, Plans
from alpamayo_ros.evaluation.report import estimate_text, tables, write_report
from alpamayo_ros.evaluation.results import FailedBag, Results, document
from alpamayo_ros.evaluation.run import RunSettings, evaluate_bag

from .drives import START_NS, Recipe, circle, future, write_drive
from .runs import NO_ORIGIN, bag_records, folder_of_run, record, results, steady

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Results:
    """A run on a real bag, of plans that drift to the right; one has words that look like HTML."""
    folder = tmp_path_factory.mktemp("run")
    t0s_s = np.arange(1.5, 9.0, 0.5)
    drift = np.column_stack([np.zeros(64), -np.arange(1, 65) * 0.05, np.zeros(64)])
    paths = np.array([future(circle(), t) + drift * (1 + k) for k, t in enumerate(t0s_s)])
    texts = np.array(
        [f"Keep the lane {k}." for k in range(len(t0s_s) - 1)] + ["<script>x</script>"]
    )
    np.savez(
        folder / "plans.npz",
        t0_ns=START_NS + np.round(t0s_s * 1e9).astype(np.int64),
        waypoints=paths,
        reasoning=np.array(texts),
    )
    bag = write_drive(folder / "drive", Recipe(duration_s=15.5))
    decider = GivenDecider(Plans.load(folder / "plans.npz"))
    records = evaluate_bag(bag, "drive", decider, RunSettings(every_s=0.0))
    return replace(results(records), failed=(FailedBag("broken", "bag broken is damaged"),))


@pytest.fixture(scope="module")
def page(run, tmp_path_factory) -> Path:
    """The report of the run, with a comparison."""
    folder = tmp_path_factory.mktemp("page")
    scored = run.scored()
    other = load_run(folder_of_run(folder / "other", run.bags[0]))
    comparison = compare(scored, run.bags, other, "other", NO_ORIGIN, seed=0)
    write_report(folder / "report.html", run, scored, document(run, scored), comparison)
    return folder / "report.html"


class Links(HTMLParser):
    """Everything that a page would fetch, and its pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.pictures = 0
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.pictures += tag == "img"
        self.scripts += tag == "script"
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "data"):
                self.fetched.append(value or "")


def test_the_page_asks_for_nothing_and_runs_nothing(page):
    links = Links()
    links.feed(page.read_text())
    assert [x for x in links.fetched if not x.startswith(("data:image/jpeg;base64,", "#"))] == []
    assert links.scripts == 0
    assert "&lt;script&gt;x&lt;/script&gt;" in page.read_text()
    assert not re.search(r"url\((?!#)|@import", page.read_text())


def test_the_ten_worst_decisions_are_shown_with_their_cameras(page):
    links = Links()
    text = page.read_text()
    links.feed(text)
    assert links.pictures == 10 * 5
    shown = re.findall(r"drive, ([\d.]+) s:\s+([\d.]+) m", text)
    assert [float(t) for t, _ in shown] == [8.5 - 0.5 * k for k in range(10)]
    errors = [float(e) for _, e in shown]
    assert errors == sorted(errors, reverse=True)


def test_failed_bags_and_the_comparison_are_on_the_page(page):
    text = page.read_text()
    assert "broken: bag broken is damaged" in text
    assert "Compared with other" in text


def test_the_tables_hold_the_documents_numbers_and_mark_the_least_of_the_single_plans():
    run = results(bag_records(steady(offset_m=(3.0, 4.0))))
    first, *_ = tables(document(run, run.scored())["figures"], num_samples=2)
    means = {line.label: [cell["mean"] for cell in line.cells] for line in first.lines}
    assert means["model, the driven sample"] == pytest.approx([5.0] * 4)
    assert means["model, best of 2 samples"] == pytest.approx([3.0] * 4)
    best = {line.label for line in first.lines if all(line.best)}
    assert best == {"constant turn rate and velocity"}
    near = results(bag_records([replace(r, chosen=1) for r in steady(offset_m=(0.0, 0.0))]))
    first, *_ = tables(document(near, near.scored())["figures"], num_samples=2)
    assert not any(any(line.best) for line in first.lines if "best of" in line.label)


def test_an_estimate_without_an_interval_or_value_says_so():
    whole = {"mean": 1.234, "low": 1.1, "high": 1.4}
    alone = {"mean": 1.234, "low": None, "high": None}
    nothing = {"mean": None, "low": None, "high": None}
    assert list(map(estimate_text, (whole, alone, nothing))) == [
        "1.23 (1.10 to 1.40)",
        "1.23",
        "not known",
    ]


def test_an_interval_stands_below_its_mean(tmp_path):
    records = [record(circle(), 1.5 + k, (0.0, 0.1 * (k % 7))) for k in range(90)]
    run = results(bag_records(records))
    scored = run.scored()
    values = document(run, scored)
    write_report(tmp_path / "r.html", run, scored, values)
    (row,) = [
        r
        for r in values["figures"]
        if (r["subject"], r["figure"], r["horizon_s"]) == ("model", "ade", 6.4)
    ]
    mean, low, high = (f"{row[name]:.2f}" for name in ("mean", "low", "high"))
    cell = f'{mean}<small class="interval">{low} to {high}</small>'
    assert low < mean < high
    page = (tmp_path / "r.html").read_text()
    assert page.count(cell) >= 2  # in the head and in the table
    assert page.count("The bag is no longer where it was") == 10


def test_a_run_that_ends_before_every_horizon_still_has_a_report(tmp_path):
    records = [replace(r, truth=np.full((64, 3), np.nan)) for r in steady(3)]
    run = results(bag_records(records))
    scored = run.scored()
    write_report(tmp_path / "r.html", run, scored, document(run, scored))
    assert "ends before any decision" in (tmp_path / "r.html").read_text()


def test_a_comparison_without_a_difference_to_draw_has_no_empty_chart(tmp_path):
    records = [
        replace(r, truth=np.where(np.arange(64)[:, None] < 20, r.truth, np.nan)) for r in steady(3)
    ]
    run = results(bag_records(records))
    other = load_run(folder_of_run(tmp_path / "other", run.bags[0]))
    scored = run.scored()
    comparison = compare(scored, run.bags, other, "other", NO_ORIGIN, seed=0)
    write_report(tmp_path / "r.html", run, scored, document(run, scored), comparison)
    page = (tmp_path / "r.html").read_text()
    assert "Compared with other" in page
    assert "Left of zero" not in page


def browser(*arguments: str) -> subprocess.CompletedProcess:
    """Chromium without a window, without a network, and with its log on standard error."""
    if BROWSER is None:
        pytest.skip("Chromium is not at hand")
    return subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        + ["--enable-logging=stderr", "--v=0", "--proxy-server=127.0.0.1:1", *arguments],
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_a_browser_shows_every_picture_and_chart_without_an_error(page, tmp_path):
    """A script of ours, appended to a copy, counts what the browser has really decoded."""
    probe = tmp_path / "probe.html"
    probe.write_text(
        page.read_text()
        + """<script>
        addEventListener("load", () => {
          const images = [...document.images];
          const charts = [...document.querySelectorAll("figure svg")];
          document.title = JSON.stringify({
            images: images.length,
            shown: images.filter(i => i.complete && i.naturalWidth > 0).length,
            charts: charts.filter(c => c.getBoundingClientRect().height > 50).length,
            requests: performance.getEntriesByType("resource").filter(
              e => !e.name.startsWith("data:")).length,
            wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
          });
        });
        </script>"""
    )
    result = browser("--window-size=1180,2000", "--dump-dom", probe.as_uri())
    title = re.search(r"<title>(\{.*?\})</title>", result.stdout)
    assert title, result.stderr
    assert title[1] == '{"images":50,"shown":50,"charts":4,"requests":0,"wide":false}'
    assert "CONSOLE" not in result.stderr, result.stderr


def test_a_browser_prints_it(page, tmp_path):
    target = tmp_path / "report.pdf"
    result = browser("--no-pdf-header-footer", f"--print-to-pdf={target}", page.as_uri())
    assert target.is_file(), result.stderr
    pages = len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))
    assert 5 <= pages <= 16


def test_the_page_looks_like_something(page, tmp_path):
    """Ink in every part of the first screen: no blank page, no unstyled list."""
    target = tmp_path / "shot.png"
    result = browser("--window-size=1180,1400", f"--screenshot={target}", page.as_uri())
    assert target.is_file(), result.stderr
    shot = cv2.imread(str(target), cv2.IMREAD_GRAYSCALE)
    assert shot.shape == (1400, 1180)
    bands = shot.reshape(7, 200, 1180)
    assert [bool((band < 100).sum() > 200) for band in bands] == [True] * 7
