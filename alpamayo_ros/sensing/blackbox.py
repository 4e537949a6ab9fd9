"""Snapshots kept for later: the newest few in one folder."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from alpamayo_ros.types import Snapshot, UserError

ABANDONED_S = 600.0  # a draft this old belongs to a process that was killed while it wrote


class BlackBox:
    """A folder of snapshot files, bounded by their number and by their bytes together.

    Any thread may save; one at a time does.

    Args:
        directory: where to write; it is made when first needed.
        max_files: how many files to keep; the oldest go first.
        max_bytes: how large they may be together. The newest stays, however large it is.

    Raises:
        UserError: the folder's `~user` is nobody.
    """

    def __init__(self, directory: str, max_files: int, max_bytes: int) -> None:
        try:
            self.directory = Path(directory).expanduser().absolute()
        except RuntimeError:
            raise UserError(f"blackbox.directory {directory}: there is no such user") from None
        self.max_files = max_files
        self.max_bytes = max_bytes
        self._saving = threading.Lock()

    def save(self, snapshot: Snapshot, cause: str) -> Path:
        """Write a snapshot as `snapshot_<t0>_<cause>.npz`, whole or not at all; forget the oldest.

        Raises:
            OSError: the folder cannot be made or written.
        """
        with self._saving:
            self.directory.mkdir(parents=True, exist_ok=True)
            path = self.directory / f"snapshot_{snapshot.t0_ns:019d}_{cause}.npz"
            snapshot.save(path)
            self._forget_oldest()
            self._remove_abandoned_drafts()
            return path

    def _forget_oldest(self) -> None:
        files = [(path, path.stat()) for path in self.directory.glob("snapshot_*.npz")]
        files.sort(key=lambda file: file[1].st_mtime_ns, reverse=True)
        kept_bytes = 0
        for rank, (path, stat) in enumerate(files):
            kept_bytes += stat.st_size
            if rank > 0 and (rank >= self.max_files or kept_bytes > self.max_bytes):
                path.unlink(missing_ok=True)

    def _remove_abandoned_drafts(self) -> None:
        for draft in self.directory.glob(".snapshot_*.npz.*.draft"):
            if time.time() - draft.stat().st_mtime > ABANDONED_S:
                draft.unlink(missing_ok=True)
