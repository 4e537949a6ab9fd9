"""A pytest plugin: print every skipped test with its reason; fail on one that is not listed.

allowed_skips.txt, beside this file, holds one `node id | reason` a line, both with wildcards.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("allowed_skips.txt")


@dataclass(frozen=True)
class Skip:
    """A skipped test, or a skipped module; in the list, patterns of both."""

    node_id: str
    reason: str

    def __str__(self) -> str:
        return f"{self.node_id} | {self.reason}"

    def is_allowed(self, allowed: list[Skip]) -> bool:
        """Whether a line of the list fits both node id and reason."""
        return any(
            fnmatchcase(self.node_id, line.node_id) and fnmatchcase(self.reason, line.reason)
            for line in allowed
        )


def read_list(path: Path = LIST) -> list[Skip]:
    """Lines of the list, less comments and empty ones.

    Raises:
        pytest.UsageError: a line has no reason.
    """
    allowed = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        node_id, _, reason = line.partition(" | ")
        if not reason.strip():
            raise pytest.UsageError(f"{path.name}: '{line}' is not of the form 'node id | reason'")
        allowed.append(Skip(node_id.strip(), reason.strip()))
    return allowed


def skips_of_this_run(config: pytest.Config) -> list[Skip]:
    """Every skip once, though each process of a parallel run reports the modules that it skips."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    found = {
        Skip(report.nodeid, report.longrepr[2].removeprefix("Skipped: "))
        for report in reporter.stats.get("skipped", [])
    }
    return sorted(found, key=str)


def pytest_configure() -> None:
    """Refuse a malformed list before the tests, not after."""
    read_list()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turn success into failure when a skip is not listed."""
    if hasattr(session.config, "workerinput"):  # the process that started the others has all
        return
    allowed = read_list()
    if not all(skip.is_allowed(allowed) for skip in skips_of_this_run(session.config)):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """List the skips, those that fail the run last."""
    skips = skips_of_this_run(config)
    allowed = read_list()
    unlisted = [skip for skip in skips if not skip.is_allowed(allowed)]
    if skips:
        terminalreporter.section("skipped")
    for skip in skips:
        terminalreporter.write_line(f"SKIPPED {skip}")
    for skip in unlisted:
        terminalreporter.write_line(f"ERROR not in test/{LIST.name}: {skip}", red=True)
