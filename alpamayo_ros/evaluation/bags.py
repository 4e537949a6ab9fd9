"""Recorded drives: rosbag2 as mcap or sqlite3, compressed or split, and which topic is what."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rosbags.highlevel import AnyReader
from rosbags.interfaces import Connection
from rosbags.typesys import Stores, get_typestore

from alpamayo_ros.sensing.messages import frame_of_compressed_image, frame_of_image
from alpamayo_ros.types import CAMERA_ROLES, Frame, UserError

IMAGE = "sensor_msgs/msg/Image"
COMPRESSED = "sensor_msgs/msg/CompressedImage"
ODOMETRY = "nav_msgs/msg/Odometry"
TEXT = "std_msgs/msg/String"
STORAGE_SUFFIXES = (".mcap", ".db3")
HASH_BLOCK_BYTES = 1 << 22


class BagError(UserError):
    """A bag that cannot be evaluated; one line."""


@dataclass(frozen=True)
class TopicChoice:
    """Topics that a user names; the others are found by type and name.

    Raises:
        BagError: a camera's role is not known; one line.
    """

    cameras: Mapping[str, str] = field(default_factory=dict)  # role to topic
    odometry: str = ""
    navigation: str = ""  # never guessed: most bags have none

    def __post_init__(self) -> None:
        for role in self.cameras:
            if role not in CAMERA_ROLES:
                raise BagError(f"--camera {role}=...: the roles are {', '.join(CAMERA_ROLES)}")


@dataclass(frozen=True)
class BagMessage:
    """A message in the order of the bag."""

    name: str  # a camera's role, "odometry" or "navigation"
    log_ns: int
    msgtype: str
    value: Any

    def frame(self) -> Frame:
        """The frame of a camera's message.

        Raises:
            MalformedImageError: it is compressed, and neither JPEG nor PNG.
        """
        read = frame_of_compressed_image if self.msgtype == COMPRESSED else frame_of_image
        return read(self.value)


class Bag:
    """A bag that is open for reading; use it as a context manager.

    Args:
        path: a rosbag2 folder, or one .mcap or .db3 file.
        choice: topics that the user has named.

    Raises:
        BagError: it is no readable bag, or its topics are missing or ambiguous; one line.
    """

    def __init__(self, path: Path, choice: TopicChoice | None = None) -> None:
        self.path = path
        self._stack = ExitStack()
        # What a damaged file makes readers raise has no common class: struct, zstd, sqlite, yaml...
        try:
            self._reader = self._stack.enter_context(
                AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE))
            )
        except FileNotFoundError:
            raise BagError(f"bag {path}: {_why_none(path)}") from None
        except Exception as error:
            raise BagError(f"bag {path} cannot be read: {_one_line(error)}") from None
        try:
            self.topics = find_topics(path, self._reader.connections, choice or TopicChoice())
        except BagError:
            self._stack.close()
            raise

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    @property
    def start_ns(self) -> int:
        """Log time of the first message."""
        return self._reader.start_time

    @property
    def duration_s(self) -> float:
        """Seconds from the first message to the last."""
        return max(self._reader.end_time - self._reader.start_time, 0) / 1e9

    def share_before(self, log_ns: int) -> float:
        """How much of the bag's time, 0 to 1, lies before a log time."""
        return (log_ns - self.start_ns) / 1e9 / max(self.duration_s, 1e-9)

    def messages(
        self, names: tuple[str, ...] = (), start_ns: int | None = None, stop_ns: int | None = None
    ) -> Iterator[BagMessage]:
        """Messages in the order of their log times, in [start_ns, stop_ns).

        Args:
            names: which of topics; all of them when empty.

        Raises:
            BagError: a message or a block of the file is damaged (a checksum does not fit), or
                the bag holds fewer messages than it says.
        """
        wanted = {topic: name for name, topic in self.topics.items() if name in (names or (name,))}
        connections = [c for c in self._reader.connections if c.topic in wanted]
        stream = self._reader.messages(connections, start_ns, stop_ns)
        count = 0
        while True:
            try:  # not around the yield: what a reader of the messages raises is not ours
                connection, log_ns, data = next(stream)
                value = self._reader.deserialize(data, connection.msgtype)
            except StopIteration:
                break
            except Exception as error:
                raise BagError(f"bag {self.path} is damaged: {_one_line(error)}") from None
            count += 1
            yield BagMessage(wanted[connection.topic], log_ns, connection.msgtype, value)
        announced = sum(connection.msgcount for connection in connections)
        if start_ns is None and stop_ns is None and count < announced:
            raise BagError(f"bag {self.path} is damaged: it holds {count} of {announced} messages")


def _why_none(path: Path) -> str:
    if any(file.suffix in STORAGE_SUFFIXES for file in path.glob("*")):
        return "it has no metadata.yaml: write one with `ros2 bag reindex`, or name its file"
    return f"there is no such bag (want {_WANTED})"


_WANTED = "a rosbag2 folder with metadata.yaml, or a .mcap or .db3 file"


def find_topics(path: Path, connections: list[Connection], choice: TopicChoice) -> dict[str, str]:
    """Topic by camera role, of `odometry`, and of `navigation` where it is named.

    A camera is the one topic of images whose name holds its role. Where a camera comes raw and
    compressed, the raw one is taken.

    Raises:
        BagError: a topic is not there, of another type, not found, or ambiguous; one line that
            lists the candidates and the option to set.
    """
    types = {connection.topic: connection.msgtype for connection in connections}
    found = {}
    for role in CAMERA_ROLES:
        option = f"--camera {role}=TOPIC"
        named = choice.cameras.get(role, "")
        found[role] = _topic(path, types, named, (IMAGE, COMPRESSED), role, option)
    found["odometry"] = _topic(
        path, types, choice.odometry, (ODOMETRY,), "odometry", "--odometry TOPIC"
    )
    if choice.navigation:
        found["navigation"] = _topic(
            path, types, choice.navigation, (TEXT,), "navigation", "--navigation TOPIC"
        )
    if len(set(found.values())) != len(found):
        twice = next(t for t in found.values() if list(found.values()).count(t) > 1)
        raise BagError(f"bag {path}: {twice} is given for two sensors")
    return found


def _topic(
    path: Path, types: dict[str, str], named: str, wanted: tuple[str, ...], name: str, option: str
) -> str:
    kinds = " or ".join(kind.replace("/msg/", "/") for kind in wanted)
    if named:
        if types.get(named) not in wanted:
            there = f"it is {types[named]}" if named in types else "it is not there"
            raise BagError(f"bag {path}: {option}: {named} should be {kinds}; {there}")
        return named
    all_of_type = sorted(topic for topic, kind in types.items() if kind in wanted)
    matching = [topic for topic in all_of_type if name in topic.lower()]
    if not matching and name == "odometry":
        matching = all_of_type  # the only one of its type needs no name
    matching = _without_compressed_twins(matching, types)
    if len(matching) == 1:
        return matching[0]
    if matching:
        candidates = ", ".join(matching)
        raise BagError(f"bag {path}: which is {name}? Give {option}; candidates: {candidates}")
    candidates = ", ".join(all_of_type) or f"none of type {kinds}"
    raise BagError(f"bag {path}: no topic is {name}. Give {option}; the bag has {candidates}")


def _without_compressed_twins(topics: list[str], types: dict[str, str]) -> list[str]:
    """Topics less those that repeat a raw one as `NAME/compressed`."""
    twins = {f"{topic}/compressed" for topic in topics if types[topic] == IMAGE}
    return [topic for topic in topics if topic not in twins]


def bag_sha256(path: Path) -> str:
    """sha256 over the storage files of a bag and their names, in order of name.

    metadata.yaml is left out: reindexing a bag does not make it another drive.

    Raises:
        BagError: there is no storage file, or it cannot be read.
    """
    try:
        return files_sha256(storage_files(path))
    except OSError as error:
        raise BagError(f"bag {path} cannot be read: {error.strerror}") from None


def files_sha256(files: Iterable[Path]) -> str:
    """sha256 over files and their names, in the order given.

    Raises:
        OSError: one cannot be read.
    """
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0")
        with file.open("rb") as stream:
            while block := stream.read(HASH_BLOCK_BYTES):
                digest.update(block)
    return digest.hexdigest()


def storage_files(path: Path) -> list[Path]:
    """The files of a bag that hold its messages.

    Raises:
        BagError: there is none.
    """
    if path.is_file():
        return [path]
    files = [
        file
        for file in sorted(path.glob("*"))
        if file.suffix in STORAGE_SUFFIXES or file.suffixes[-2:-1] + [file.suffix] in _ZIPPED
    ]
    if not files:
        raise BagError(f"bag {path}: there is no such bag (want {_WANTED})")
    return files


_ZIPPED = [[suffix, ".zstd"] for suffix in STORAGE_SUFFIXES]


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__
