"""Bags as they come: storages, compressions, topics, and damage."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import zlib

import numpy as np
import pytest
from rosbags.rosbag2 import CompressionMode, Reader, StoragePlugin, Writer

from alpamayo_ros.evaluation.bags import (
    COMPRESSED,
    IMAGE,
    Bag,
    BagError,
    TopicChoice,
    bag_sha256,
    find_topics,
)
from alpamayo_ros.types import CAMERA_ROLES

from .drives import TYPES, Recipe, write_drive

SHORT_S = 1.0
CHUNK = 0x06  # mcap's opcode


def counts(bag: Bag) -> dict[str, int]:
    """Messages by name."""
    found: dict[str, int] = {}
    for message in bag.messages():
        found[message.name] = found.get(message.name, 0) + 1
    return found


EXPECTED = {**dict.fromkeys(CAMERA_ROLES, 10), "odometry": 50}


@pytest.mark.parametrize("storage", StoragePlugin)
@pytest.mark.parametrize("jpeg", [True, False])
def test_both_storages_and_both_kinds_of_images_are_read(tmp_path, storage, jpeg):
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S, storage=storage, jpeg=jpeg))
    with Bag(path) as bag:
        assert counts(bag) == EXPECTED


@pytest.mark.parametrize(
    ("mode", "storage"),
    [
        (CompressionMode.MESSAGE, StoragePlugin.SQLITE3),
        (CompressionMode.FILE, StoragePlugin.SQLITE3),
        (CompressionMode.FILE, StoragePlugin.MCAP),
        (CompressionMode.STORAGE, StoragePlugin.MCAP),
    ],
)
def test_compressed_bags_are_read(tmp_path, mode, storage):
    recipe = Recipe(duration_s=SHORT_S, storage=storage, compression=mode)
    path = write_drive(tmp_path / "d", recipe)
    with Bag(path) as bag:
        assert counts(bag) == EXPECTED
    assert len(bag_sha256(path)) == 64


def test_a_split_bag_is_read_as_one(tmp_path):
    """Two files of one recording under one metadata.yaml, as `ros2 bag record -b` leaves them."""
    whole = write_drive(tmp_path / "whole", Recipe(duration_s=2.0))
    split = tmp_path / "split"
    split.mkdir()
    parts = split_in_two(whole / "whole.mcap", split)
    text = (whole / "metadata.yaml").read_text()
    listed = "".join(f"\n  - {part}" for part in parts)
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if "relative_file_paths" in line)
    end = next(i for i in range(start + 1, len(lines)) if "- " not in lines[i])
    lines[start:end] = [f"  relative_file_paths:{listed}"]
    (split / "metadata.yaml").write_text("\n".join(lines) + "\n")
    with Bag(split) as bag:
        assert counts(bag) == {**dict.fromkeys(CAMERA_ROLES, 20), "odometry": 100}
        times = [message.log_ns for message in bag.messages()]
    assert times == sorted(times)
    assert bag_sha256(split) != bag_sha256(whole)


def split_in_two(mcap, folder):
    """Write the first and the second half of a bag's messages to two files."""
    names = []
    with Reader(mcap) as reader:
        middle = (reader.start_time + reader.end_time) // 2
        for half, span in enumerate([(None, middle), (middle, None)]):
            draft = folder / f"half_{half}"
            with Writer(draft, version=8, storage_plugin=StoragePlugin.MCAP) as writer:
                made = {}
                for connection, log_ns, data in reader.messages(start=span[0], stop=span[1]):
                    if connection.topic not in made:
                        made[connection.topic] = writer.add_connection(
                            connection.topic, connection.msgtype, typestore=TYPES
                        )
                    writer.write(made[connection.topic], log_ns, data)
            shutil.move(draft / f"half_{half}.mcap", folder)
            shutil.rmtree(draft)
            names.append(f"half_{half}.mcap")
    return names


def test_a_single_file_is_a_bag(tmp_path):
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S))
    with Bag(path / "d.mcap") as bag:
        assert counts(bag) == EXPECTED


def test_topics_that_are_named_are_taken(tmp_path):
    topics = {"cross_left": "/a", "front_wide": "/b", "cross_right": "/c", "front_tele": "/d"}
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S, topics=topics))
    with Bag(path, TopicChoice(topics)) as bag:
        assert bag.topics == {**topics, "odometry": "/localization/odometry"}


def test_what_is_not_found_is_asked_for_with_the_candidates(tmp_path):
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S, topics={"front_wide": "/b"}))
    with pytest.raises(BagError, match="no topic is front_wide") as caught:
        Bag(path)
    assert "--camera front_wide=TOPIC" in str(caught.value)
    assert "/b" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_ambiguous_is_asked_for_with_the_candidates(tmp_path):
    topics = {"cross_left": "/front_wide_left/cross_left"}
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S, topics=topics))
    with pytest.raises(BagError, match="which is front_wide") as caught:
        Bag(path)
    for candidate in ("/front_wide_left/cross_left", "/camera/front_wide/image/compressed"):
        assert candidate in str(caught.value)


def test_a_raw_topic_goes_before_its_compressed_twin(tmp_path):
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S, jpeg=False))
    with Reader(path) as reader:
        connections = list(reader.connections)
    twin = next(c for c in connections if c.topic == "/camera/front_wide/image")
    assert twin.msgtype == IMAGE
    both = [*connections, twin._replace(topic=f"{twin.topic}/compressed", msgtype=COMPRESSED)]
    assert find_topics(path, both, TopicChoice())["front_wide"] == twin.topic


def test_odometry_alone_of_its_type_needs_no_name(tmp_path):
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S, topics={"odometry": "/fused"}))
    with Bag(path) as bag:
        assert bag.topics["odometry"] == "/fused"


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        (TopicChoice({"front_wide": "/nowhere"}), "it is not there"),
        (TopicChoice({"front_wide": "/localization/odometry"}), "it is nav_msgs/msg/Odometry"),
        (
            TopicChoice(odometry="/camera/front_wide/image/compressed"),
            "should be nav_msgs/Odometry",
        ),
        (TopicChoice({"front_wide": "/camera/cross_left/image/compressed"}), "two sensors"),
    ],
)
def test_a_wrong_topic_is_refused(tmp_path, choice, says):
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S))
    with pytest.raises(BagError, match=says):
        Bag(path, choice)


def test_a_camera_of_no_role_is_refused_before_a_bag_is_opened():
    with pytest.raises(BagError, match=r"--camera rear=\.\.\.: the roles are cross_left, front"):
        TopicChoice({"rear": "/x"})


@pytest.mark.parametrize("missing", ["odometry", "front_tele"])
def test_a_bag_without_a_sensor_is_refused(tmp_path, missing):
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S, leave_out=(missing,)))
    with pytest.raises(BagError, match=f"no topic is {missing}"):
        Bag(path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.99])
@pytest.mark.parametrize("storage", StoragePlugin)
def test_a_truncated_file_is_refused_in_one_line(tmp_path, share, storage):
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S, storage=storage))
    file = next(p for p in path.iterdir() if p.name != "metadata.yaml")
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(BagError, match="bag") as caught, Bag(path) as bag:
        counts(bag)
    assert "\n" not in str(caught.value)


def test_messages_that_are_gone_are_missed(tmp_path):
    """A database is sound without some of its rows; metadata.yaml knows how many there were."""
    recipe = Recipe(duration_s=SHORT_S, storage=StoragePlugin.SQLITE3)
    path = write_drive(tmp_path / "d", recipe)
    with contextlib.closing(sqlite3.connect(path / "d.db3")) as database, database:
        database.execute("DELETE FROM messages WHERE id % 9 = 0")
    with pytest.raises(BagError, match="it holds 80 of 90 messages"), Bag(path) as bag:
        counts(bag)


@pytest.mark.parametrize("indexed", [True, False])
def test_one_wrong_byte_in_a_chunk_is_found_by_its_checksum(tmp_path, indexed):
    """Also in files without an index, where readers are known to leave the checksum out."""
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S))
    file = path / "d.mcap"
    data = bytearray(with_checksums(file.read_bytes(), indexed))
    file.write_bytes(bytes(data))
    with Bag(path) as bag:
        assert counts(bag) == EXPECTED  # sound so far
    data[len(data) // 3] ^= 0x10
    file.write_bytes(bytes(data))
    with pytest.raises(BagError, match="checksum"), Bag(path) as bag:
        counts(bag)


def with_checksums(data: bytes, indexed: bool) -> bytes:
    """An mcap file of rosbags with the CRC of each chunk filled in; with its index or without."""
    result = bytearray(data)
    at = 8
    while at < len(data) - 8:
        opcode, length = data[at], int.from_bytes(data[at + 1 : at + 9], "little")
        if opcode == CHUNK:
            body = at + 9
            name = int.from_bytes(data[body + 28 : body + 32], "little")
            assert name == 0, "the chunk is compressed"
            result[body + 24 : body + 28] = zlib.crc32(data[body + 40 : at + 9 + length]).to_bytes(
                4, "little"
            )
        at += 9 + length
    if not indexed:
        result[-28:-20] = bytes(8)  # the footer's place of the summary
    return bytes(result)


def test_a_folder_without_a_bag_is_no_bag(tmp_path):
    with pytest.raises(BagError, match="no such bag"):
        Bag(tmp_path / "nothing")
    with pytest.raises(BagError, match="no such bag"):
        bag_sha256(tmp_path)


def test_a_bag_that_has_lost_its_metadata_says_how_to_get_it_back(tmp_path):
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S))
    (path / "metadata.yaml").unlink()
    with pytest.raises(BagError, match=r"no metadata\.yaml: write one with `ros2 bag reindex`"):
        Bag(path)
    with Bag(path / "d.mcap") as bag:
        assert counts(bag) == EXPECTED


@pytest.mark.parametrize("text", ["", "\0", "[]", "rosbag2_bagfile_information:"])
def test_damaged_metadata_is_one_line(tmp_path, text):
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S))
    (path / "metadata.yaml").write_text(text)
    with pytest.raises(BagError, match="cannot be read") as caught:
        Bag(path)
    assert "\n" not in str(caught.value)


def test_bytes_that_flip_anywhere_are_one_line_or_read_as_before(tmp_path):
    """In the data, the index, the head and the end of a file whose writer left checksums out."""
    path = write_drive(tmp_path / "d", Recipe(duration_s=SHORT_S)) / "d.mcap"
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    places = (
        (0, len(whole)),
        (len(whole) - 3000, len(whole)),
        (0, 200),
        (len(whole) - 60, len(whole)),
    )
    read, refused = 0, []
    for span in places * 10:
        data = bytearray(whole)
        data[int(random.integers(*span))] ^= int(random.integers(1, 256))
        path.write_bytes(bytes(data))
        try:
            with Bag(path) as bag:
                counts(bag)
        except BagError as error:
            refused.append(str(error))
        else:
            read += 1
    assert read
    assert refused
    assert not [text for text in refused if "\n" in text]


def test_a_bag_without_a_message_lacks_its_topics(tmp_path):
    with Writer(tmp_path / "d", version=8, storage_plugin=StoragePlugin.MCAP):
        pass
    with pytest.raises(BagError, match="no topic is cross_left"):
        Bag(tmp_path / "d")


def test_the_hash_changes_with_the_recording_and_not_with_its_place(tmp_path):
    first = write_drive(tmp_path / "a" / "d", Recipe(duration_s=SHORT_S))
    same = shutil.copytree(first, tmp_path / "b" / "d")
    (same / "metadata.yaml").write_text("reindexed")
    longer = write_drive(tmp_path / "c" / "d", Recipe(duration_s=SHORT_S + 0.1))
    assert bag_sha256(same) == bag_sha256(first)
    assert bag_sha256(longer) != bag_sha256(first)
