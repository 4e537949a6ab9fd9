"""From bytes to pixels: exact for raw images, close for JPEG, one clear line for damage."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from alpamayo_ros.sensing.images import (
    MalformedImageError,
    centre_crop,
    compressed_encoding,
    decode,
)
from alpamayo_ros.types import Frame

PIXELS = np.random.default_rng(3).integers(0, 256, (5, 7, 3)).astype(np.uint8)

PNG = cv2.imencode(".png", PIXELS)[1].tobytes()
JPEG = cv2.imencode(".jpg", PIXELS.repeat(20, 0).repeat(20, 1))[1].tobytes()


def raw(encoding: str, pixels: np.ndarray, padding: int = 0) -> Frame:
    height, width = pixels.shape[:2]
    rows = pixels.reshape(height, -1)
    padded = np.hstack([rows, np.full((height, padding), 99, np.uint8)])
    return Frame(1, encoding, padded.tobytes(), height, width, padded.shape[1])


ALPHA = np.full((5, 7, 1), 17, np.uint8)


@pytest.mark.parametrize("padding", [0, 1, 11])
@pytest.mark.parametrize(
    ("encoding", "sent"),
    [
        ("rgb8", PIXELS),
        ("bgr8", PIXELS[:, :, ::-1]),
        ("rgba8", np.dstack([PIXELS, ALPHA])),
        ("bgra8", np.dstack([PIXELS[:, :, ::-1], ALPHA])),
    ],
)
def test_raw_colours_are_exact_with_any_row_padding(encoding, sent, padding):
    np.testing.assert_array_equal(decode(raw(encoding, sent, padding)), PIXELS)


@pytest.mark.parametrize("padding", [0, 3])
def test_grey_becomes_three_equal_channels(padding):
    grey = decode(raw("mono8", PIXELS[:, :, :1], padding))
    np.testing.assert_array_equal(grey, PIXELS[:, :, :1].repeat(3, axis=2))


def test_png_is_exact():
    png = cv2.imencode(".png", PIXELS[:, :, ::-1])[1].tobytes()
    np.testing.assert_array_equal(decode(Frame(1, "png", png)), PIXELS)


@pytest.mark.parametrize("options", [[], [cv2.IMWRITE_JPEG_PROGRESSIVE, 1]])
@pytest.mark.parametrize("size", [(1, 1), (90, 160), (1080, 1920)])
def test_jpegs_of_any_kind_and_size_are_decoded(size, options):
    jpeg = cv2.imencode(".jpg", np.zeros((*size, 3), np.uint8), options)[1].tobytes()
    assert decode(Frame(1, "jpeg", jpeg)).shape == (*size, 3)


def test_jpeg_metadata_before_the_frame_header_is_passed_over_and_its_rotation_ignored():
    exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    comment = b"\xff\xfe" + (60_002).to_bytes(2, "big") + b"x" * 60_000
    segment = b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif
    assert decode(Frame(1, "jpeg", JPEG[:2] + segment + comment + JPEG[2:])).shape == (100, 140, 3)


def test_jpeg_keeps_red_red():
    red = np.zeros((64, 64, 3), np.uint8)
    red[:, :, 0] = 200
    jpeg = cv2.imencode(".jpg", red[:, :, ::-1])[1].tobytes()
    assert np.abs(decode(Frame(1, "jpeg", jpeg)).astype(int) - red).max() <= 3


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (Frame(1, "rgb8", b"\0" * 104, 5, 7, 21), "has 104 bytes, needs 105"),
        (Frame(1, "rgb8", b"\0" * 105, 5, 7, 20), "width 7 has rows of 20 bytes"),
        (Frame(1, "rgb8", b"", 0, 7, 21), "7x0 pixels"),
        (Frame(1, "rgb8", b"", 5, 4_000_000_000, 0), "4000000000x5 pixels"),
        (Frame(1, "32FC1", b"\0" * 105, 5, 7, 21), "encoding '32FC1' is not known; known: rgb8"),
        (Frame(1, "jpeg", b""), "jpeg image of 0 bytes or more cannot be decoded"),
        (Frame(1, "jpeg", b"not a jpeg"), "jpeg image of 10 bytes or more cannot be decoded"),
        (Frame(1, "jpeg", JPEG[:-400]), f"jpeg image of {len(JPEG) - 400} bytes cannot be decoded"),
        (Frame(1, "png", JPEG), "cannot be decoded"),
        (Frame(1, "jpeg", PNG), "cannot be decoded"),
        (Frame(1, "png", PNG[:16] + b"\0\0\x3e\x80" * 2 + PNG[24:]), "16000x16000 pixels"),
    ],
)
def test_a_malformed_frame_says_what_is_wrong_in_one_line(frame, words):
    with pytest.raises(MalformedImageError) as caught:
        decode(frame)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "encoding"),
    [("jpeg", "jpeg"), ("jpg", "jpeg"), ("bgr8; jpeg compressed bgr8", "jpeg"), ("png", "png")],
)
def test_compressed_formats_are_named_in_many_ways(field, encoding):
    assert compressed_encoding(field) == encoding


def test_an_unknown_compressed_format_is_refused():
    with pytest.raises(MalformedImageError, match="'h264' is not known"):
        compressed_encoding("h264")


@pytest.mark.parametrize(
    ("size", "cropped"),
    [((1080, 1920), (1067, 1920)), ((480, 640), (356, 640)), ((320, 576), (320, 576))],
)
def test_centre_crop_keeps_the_middle(size, cropped):
    image = np.zeros((*size, 3), np.uint8)
    image[size[0] // 2, size[1] // 2] = 255
    part = centre_crop(image, 576 / 320)
    assert part.shape[:2] == cropped
    y, x = np.argwhere(part[:, :, 0] == 255)[0]
    assert abs(y - cropped[0] / 2) <= 1
    assert abs(x - cropped[1] / 2) <= 1
