"""Snapshots kept for later: the newest few in one folder."""

from __future__ import annotations

from pathlib import Path

from alpamayo_ros.types import Snapshot, UserError


class BlackBox:
    """A folder of snapshot files, bounded by their number.

    Args:
        directory: where to write; it is made when first needed.
        max_files: how many files to keep; the oldest go first.

    Raises:
        UserError: the folder's `~user` is nobody.
    """

    def __init__(self, directory: str, max_files: int) -> None:
        try:
            self.directory = Path(directory).expanduser().absolute()
        except RuntimeError:
            raise UserError(f"blackbox.directory {directory}: there is no such user") from None
        self.max_files = max_files

    def save(self, snapshot: Snapshot, cause: str) -> Path:
        """Write a snapshot as `snapshot_<t0>_<cause>.npz` and forget the oldest files.

        Raises:
            OSError: the folder cannot be made or written.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"snapshot_{snapshot.t0_ns:019d}_{cause}.npz"
        snapshot.save(path)
        files = sorted(self.directory.glob("snapshot_*.npz"), key=lambda f: f.stat().st_mtime_ns)
        for outdated in files[: -self.max_files]:
            outdated.unlink(missing_ok=True)
        return path
