"""The two languages of docs/ascend show the same commands, output, names and figures."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
ENGLISH, CHINESE = (
    (DOCS / name).read_text(encoding="utf-8") for name in ("ascend.md", "ascend.zh-CN.md")
)


def blocks(text: str) -> list[str]:
    """Commands and output, without their comments."""
    lines = [line.partition(" # ")[0].rstrip() for line in text.splitlines()]
    return [line for line in lines if line.startswith("    ")]


def sections(text: str) -> list[str]:
    """What is below each heading."""
    return re.split(r"^## .*$", text, flags=re.MULTILINE)


def names_in_code(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def figures(text: str) -> Counter[str]:
    """Numbers outside of code, such as 2,252 or 0.227."""
    prose = re.sub(r"`[^`]*`", "", text)
    return Counter(re.findall(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)*(?:e-\d+)?", prose))


def test_commands_and_output_are_the_same() -> None:
    assert len(blocks(ENGLISH)) > 40
    assert blocks(ENGLISH) == blocks(CHINESE)


def test_each_section_speaks_of_the_same_names_and_figures() -> None:
    english, chinese = sections(ENGLISH), sections(CHINESE)
    assert len(english) == len(chinese) > 8
    for ours, theirs in zip(english, chinese):
        assert names_in_code(ours) == names_in_code(theirs)
        assert figures(ours) == figures(theirs)
