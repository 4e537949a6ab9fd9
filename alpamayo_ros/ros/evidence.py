"""What is kept of things that went wrong: one line of text, or the snapshot itself."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from pathlib import Path

from rclpy.node import Node

from alpamayo_ros.planning.planner import Decision
from alpamayo_ros.ros.faults import strike_disk
from alpamayo_ros.ros.parameters import NodeSettings
from alpamayo_ros.ros.statistics import Statistics
from alpamayo_ros.sensing.blackbox import BlackBox
from alpamayo_ros.types import Snapshot


def one_line(error: BaseException) -> str:
    """The first line of an error's text, with its kind where the text alone says too little."""
    text = (str(error).splitlines() or [""])[0]
    known = isinstance(error, ValueError | OSError) and text
    return text if known else f"{type(error).__name__}: {text}"


class NodeBlackBox(BlackBox):
    """The black box of a node, which tells the diagnostics why it cannot write.

    Args:
        fault: the fault that tests have set now.

    Raises:
        UserError: the folder's `~user` is nobody.
    """

    def __init__(
        self, settings: NodeSettings, statistics: Statistics, fault: Callable[[], str]
    ) -> None:
        super().__init__(
            settings.blackbox_directory, settings.blackbox_max_files, settings.blackbox_max_bytes
        )
        self._statistics = statistics
        self._fault = fault

    def save(self, snapshot: Snapshot, cause: str) -> Path:
        """As BlackBox.save."""
        try:
            strike_disk(self._fault())
            path = super().save(snapshot, cause)
        except OSError as error:
            self._statistics.black_box_problem = one_line(error)
            raise
        self._statistics.black_box_problem = ""
        return path


class Evidence:
    """Writes snapshots of rejected plans, off the planning thread, one at a time."""

    def __init__(self, node: Node, black_box: BlackBox | None) -> None:
        self._node = node
        self._box = black_box
        self._writer = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="blackbox")
        self._writing: concurrent.futures.Future[None] | None = None

    def keep(self, decision: Decision) -> None:
        """Write a decision's snapshot, unless there is no box or the last one is being written.

        Writing a snapshot takes longer than a fast decision: what comes meanwhile is not kept.
        """
        if self._box is None or (self._writing and not self._writing.done()):
            return
        self._writing = self._writer.submit(self._write, self._box, decision)

    def close(self) -> None:
        """Finish writing."""
        self._writer.shutdown(wait=True)

    def _write(self, box: BlackBox, decision: Decision) -> None:
        try:
            box.save(decision.snapshot, "rejected")
        except OSError as error:
            self._node.get_logger().warning(f"black box: {error}", throttle_duration_sec=10.0)
