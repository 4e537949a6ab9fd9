"""The report: complete, self-contained and safe against what a model may write."""

import base64
import re
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest

from alpamayo_ros.demo.report import latency_chart, picture_uri, write_report
from alpamayo_ros.demo.summary import Decision, Moment, Summary
from alpamayo_ros.types import CAMERA_ROLES

DECISIONS = (
    Decision(1.5, 110.0, {"vision": 70.0, "flow": 40.0}),
    Decision(1.6, 140.0, {"vision": 90.0, "flow": 50.0}, ("lateral: 7.31 m/s2 over 6 m/s2",)),
)
REASONING = 'Slow <script>alert("x")</script> & keep http://example.com in "view"'


def summary(decisions=DECISIONS) -> Summary:
    return Summary(decisions, {"busy": 3}, 18.5, "demo", "cpu", "synthetic <drive>")


def moment(decision: Decision) -> Moment:
    image = np.full((32, 48, 3), (200, 30, 30), np.uint8)
    return Moment(
        decision,
        cameras=dict.fromkeys(CAMERA_ROLES, image),
        plan_in_front=image,
        plan_from_above=image,
        reasoning=REASONING,
        ego_speed_m_s=8.25,
        truncated=True,
    )


@pytest.fixture
def page(tmp_path) -> str:
    path = write_report(tmp_path, summary(), [moment(decision) for decision in DECISIONS])
    assert path == tmp_path / "report.html"
    return path.read_text()


class Reader(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open_tags: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "img", "br"):
            self.open_tags.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag

    def handle_data(self, data):
        self.text += data


def parsed(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def test_it_asks_nothing_from_elsewhere(page):
    reader = parsed(page)
    loading = [value for name, value in reader.attributes if name in ("src", "href", "data")]
    assert len(loading) == 2 * (4 + 2)
    assert all(value.startswith("data:image/jpeg;base64,") for value in loading)
    assert not {"script", "link", "iframe", "object", "form", "a"} & set(reader.tags)
    styles = re.search(r"<style>(.*?)</style>", page, re.DOTALL).group(1)
    assert "url(" not in styles
    assert "@import" not in styles
    assert "http" not in page.replace("http://example.com", ""), "only the reasoning's own words"


def test_reasoning_is_shown_as_text_and_never_as_markup(page):
    assert "<script" not in page
    assert REASONING + " [unfinished]" in parsed(page).text
    assert "Plans on synthetic <drive>" in parsed(page).text


def test_its_tags_are_closed(page):
    assert parsed(page).open_tags == []


def test_numbers_verdicts_and_stages_can_be_read(page):
    text = re.sub(r"\s+", " ", parsed(page).text)
    for words in (
        "2plans",
        "1accepted",
        "1rejected",
        "125 msmedian decision",
        "lateral: 7.31 m/s2 over 6 m/s2",
        "busy3",
        "1.6 s, 8.2 m/s: rejected",
        "1.5 s, 8.2 m/s: accepted",
        "vision 90.0 ms",
        *CAMERA_ROLES,
    ):
        assert words in text, words


def test_a_run_without_plans_has_a_report_too(tmp_path):
    page = write_report(tmp_path, summary(()), []).read_text()
    text = parsed(page).text
    assert "There were no plans." in text
    assert "No moments were kept." in text
    assert "<svg" not in page


def test_pictures_survive_the_way_into_the_page():
    image = np.zeros((40, 60, 3), np.uint8)
    image[:, 30:] = (250, 120, 10)
    data = base64.b64decode(picture_uri(image).partition(",")[2])
    back = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    assert np.abs(back.astype(int) - image).mean() < 6


def test_the_chart_is_higher_for_slower_decisions_and_further_right_for_later_ones():
    chart = latency_chart(DECISIONS)
    first, second = chart.dots
    assert (first.accepted, second.accepted) == (True, False)
    assert first.x < second.x
    assert first.y > second.y
    # Linear from the base line: 110 ms and 140 ms are as 11 to 14.
    assert (chart.base - first.y) / (chart.base - second.y) == pytest.approx(11 / 14, abs=0.01)
    assert 3 <= len(chart.y_ticks) <= 9
    assert chart.y_ticks[0].label == "0 ms"
    assert chart.y_ticks[0].at == chart.base


@pytest.mark.parametrize("slowest_ms", [0.3, 1.0, 7.0, 19.0, 99.0, 100.0, 5400.0])
def test_axes_have_few_round_labels(slowest_ms):
    chart = latency_chart([Decision(20.0, slowest_ms, {})])
    assert 2 <= len(chart.y_ticks) <= 9
    assert chart.y_ticks[-1].at >= 0
