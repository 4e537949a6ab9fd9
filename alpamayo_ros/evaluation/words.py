"""Do the words and the path of a decision agree? A rule of words, not a judge of reasons.

A text claims a manoeuvre when one of its clauses holds the manoeuvre's words and no negation; what
follows "because", "since", "as" or "due to" in a sentence is a cause and claims nothing. "left" and
"right" count only up to five words after a verb of motion ("nudge to the left", not "a car on the
left"), and "stop" not as part of a thing's name ("stop sign") nor as others' state ("a stopped
vehicle"). A path does a manoeuvre when it passes the threshold below. A decision agrees when its
path does all that its text claims; without a claim it says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from alpamayo_ros.planning.gate import segment_speeds_m_s

SIDEWAYS_M = 1.0  # left, right: a waypoint lies farther than this from the ego's axis at t0
STANDSTILL_M_S = 0.5  # stop: a segment is slower than this
CHANGE_M_S = 0.5  # accelerate, slow: a segment is faster or slower than the ego by more than this

_VERBS = "turn|nudg|chang|merg|mov|steer|shift|veer|swerv|bear|pull|go|curv|follow|drift|keep"
_TOWARDS = rf"\b(?:{_VERBS})\w*(?:\s+\w+){{0,4}}\s+"
_PATTERNS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "left": re.compile(_TOWARDS + r"left\b"),
        "right": re.compile(_TOWARDS + r"right\b"),
        "stop": re.compile(
            r"\bstop(?:ping)?\b(?!\s+(?:sign|line|light|bar))|\bstandstill\b|\bhalt(?:ing)?\b"
            r"|\bwait(?:ing)?\b|\b(?:remain|stay)\w*\s+stopped\b"
        ),
        "accelerate": re.compile(
            r"\baccelerat\w*|\bspeed(?:ing)?\s+up\b|\bresum\w+\s+speed\b|\bmov(?:e|es|ing)\s+off\b"
        ),
        "slow": re.compile(r"\bslow(?:s|ing)?\b|\bdecelerat\w*|\bbrak(?:e|es|ing)\b"),
    }
)
MANOEUVRES = tuple(_PATTERNS)
_NEGATION = re.compile(r"\b(?:no|not|never|without|cannot|avoid|don't|doesn't)\b")
_SENTENCE_END = re.compile(r"[.;!?\n]")
_CAUSE = re.compile(r"\b(?:because|since|as|due\s+to)\b.*")
_CLAUSE_END = re.compile(r"[,:]|\b(?:and|but|then)\b")


def claims(text: str) -> frozenset[str]:
    """The manoeuvres that a text says the ego does."""
    effects = [_CAUSE.sub("", sentence) for sentence in _SENTENCE_END.split(text.lower())]
    clauses = [clause for effect in effects for clause in _CLAUSE_END.split(effect)]
    said = [clause for clause in clauses if not _NEGATION.search(clause)]
    return frozenset(
        name for name, words in _PATTERNS.items() if any(words.search(clause) for clause in said)
    )


def deeds(plan: np.ndarray, speed_m_s: float) -> frozenset[str]:
    """The manoeuvres that a plan (64, 3) does, from a signed speed at t0."""
    speeds = segment_speeds_m_s(np.asarray(plan, np.float64))
    done = {
        "left": plan[:, 1].max() > SIDEWAYS_M,
        "right": plan[:, 1].min() < -SIDEWAYS_M,
        "stop": np.abs(speeds).min() < STANDSTILL_M_S,
        "accelerate": speeds.max() > speed_m_s + CHANGE_M_S,
        "slow": speeds.min() < speed_m_s - CHANGE_M_S,
    }
    return frozenset(name for name, does in done.items() if does)
