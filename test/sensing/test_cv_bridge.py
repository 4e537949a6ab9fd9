"""Encodings beyond our table: cv_bridge where there is one, a reason where there is none.

cv_bridge comes with ROS distributions and not as a wheel, so a stand-in module takes its place:
it reads the same fields of a message and knows one encoding. The real one has not been tried here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from alpamayo_ros.sensing.images import MalformedImageError, decode
from alpamayo_ros.types import Frame

STAND_IN = """
import numpy as np

class CvBridgeError(TypeError):
    pass

class CvBridge:
    def imgmsg_to_cv2(self, message, desired_encoding="passthrough"):
        if message.encoding == "gives_floats":
            return np.zeros((message.height, message.width, 3))
        if message.encoding != "mono16":
            raise CvBridgeError(f"[{message.encoding}] is not a color format.\\nand a second line")
        assert desired_encoding == "rgb8"
        order = ">" if message.is_bigendian else "<"
        pixels = np.ndarray(
            (message.height, message.step // 2), np.dtype(order + "u2"), bytes(message.data)
        )[:, : message.width]
        return np.repeat((pixels // 256).astype(np.uint8)[:, :, None], 3, axis=2)
"""


@pytest.fixture
def cv_bridge(tmp_path: Path, monkeypatch):
    """The stand-in on the path."""
    (tmp_path / "cv_bridge.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cv_bridge", raising=False)
    yield
    sys.modules.pop("cv_bridge", None)


@pytest.fixture
def no_cv_bridge(monkeypatch):
    """None, also where a distribution has one."""
    monkeypatch.setitem(sys.modules, "cv_bridge", None)


def frame(encoding: str, big_endian: bool = False) -> Frame:
    """Two rows of three pixels of 16 bits and 2 bytes of padding."""
    pixels = np.array([[0, 256, 65_535], [32_768, 513, 255]], ">u2" if big_endian else "<u2")
    rows = b"".join(row.tobytes() + b"pp" for row in pixels)
    return Frame(1, encoding, memoryview(rows), 2, 3, 8, big_endian)


@pytest.mark.parametrize("big_endian", [False, True])
def test_an_encoding_that_we_do_not_know_goes_to_cv_bridge_with_padding_and_byte_order(
    cv_bridge, big_endian
):
    rgb = decode(frame("mono16", big_endian))
    grey = np.array([[0, 1, 255], [128, 2, 0]], np.uint8)
    np.testing.assert_array_equal(rgb, np.repeat(grey[:, :, None], 3, axis=2))
    assert rgb.flags.c_contiguous


def test_our_own_encodings_never_go_there(cv_bridge):
    rgb = decode(Frame(1, "rgb8", b"abcdef", 1, 2, 6))
    assert rgb.tobytes() == b"abcdef"
    assert "cv_bridge" not in sys.modules


def test_what_cv_bridge_refuses_is_refused_in_one_line_with_its_reason(cv_bridge):
    with pytest.raises(MalformedImageError) as error:
        decode(frame("32FC1"))
    assert str(error.value) == ("encoding '32FC1': cv_bridge says [32FC1] is not a color format.")


def test_what_cv_bridge_gives_must_be_rgb8(cv_bridge):
    with pytest.raises(MalformedImageError, match=r"cv_bridge gave float64 \(2, 3, 3\) for rgb8"):
        decode(frame("gives_floats"))


def test_an_absurd_size_does_not_get_that_far(cv_bridge):
    with pytest.raises(MalformedImageError, match="image of 4294967295x4294967295 pixels"):
        decode(Frame(1, "mono16", b"", 2**32 - 1, 2**32 - 1, 2**32 - 1))


def test_without_cv_bridge_the_reason_names_it_and_what_is_known(no_cv_bridge):
    with pytest.raises(MalformedImageError) as error:
        decode(frame("mono16"))
    text = str(error.value)
    assert text.startswith("encoding 'mono16' is not known, and cv_bridge is not installed; known:")
    assert "rgb8" in text
    assert "jpeg" in text
    assert "\n" not in text
