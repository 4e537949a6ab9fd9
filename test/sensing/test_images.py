"""From bytes to pixels: exact for raw images, close for JPEG, one clear line for damage."""

from __future__ import annotations

from dataclasses import replace

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


BAYER = {  # colour index of the pixels of a 2x2 cell, row by row, as sensor_msgs names them
    "bayer_rggb8": (0, 1, 1, 2),
    "bayer_bggr8": (2, 1, 1, 0),
    "bayer_gbrg8": (1, 2, 0, 1),
    "bayer_grbg8": (1, 0, 2, 1),
}


@pytest.mark.parametrize("colour", [(200, 30, 60), (10, 220, 90), (5, 40, 250)])
@pytest.mark.parametrize("encoding", BAYER)
@pytest.mark.parametrize("padding", [0, 5])
def test_bayer_patterns_give_the_colour_that_was_filtered(encoding, colour, padding):
    """One colour everywhere comes back exactly, inside and at the edges: red stays red."""
    mosaic = np.zeros((8, 10, 1), np.uint8)
    for cell, channel in enumerate(BAYER[encoding]):
        mosaic[cell // 2 :: 2, cell % 2 :: 2] = colour[channel]
    decoded = decode(raw(encoding, mosaic, padding))
    np.testing.assert_array_equal(decoded, np.broadcast_to(np.uint8(colour), (8, 10, 3)))


def rgb_of_yuv(y: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """BT.601, limited range, written out: the independent reference."""
    y, u, v = (1.164383 * (y.astype(float) - 16), u.astype(float) - 128, v.astype(float) - 128)
    rgb = [y + 1.596027 * v, y - 0.391762 * u - 0.812968 * v, y + 2.017232 * u]
    return np.clip(np.round(np.stack(rgb, -1)), 0, 255)


Y, U, V = np.random.default_rng(5).integers(16, 236, (3, 6, 8)).astype(np.uint8)


@pytest.mark.parametrize("padding", [0, 6])
@pytest.mark.parametrize("encoding", ["uyvy", "yuv422", "yuyv", "yuv422_yuy2"])
def test_yuv422_shares_colour_between_two_pixels_of_a_row(encoding, padding):
    brightness = 1 if encoding in ("uyvy", "yuv422") else 0
    sent = np.zeros((6, 8, 2), np.uint8)
    sent[:, :, brightness] = Y
    sent[:, ::2, 1 - brightness], sent[:, 1::2, 1 - brightness] = U[:, ::2], V[:, ::2]
    expected = rgb_of_yuv(Y, U[:, ::2].repeat(2, 1), V[:, ::2].repeat(2, 1))
    assert np.abs(decode(raw(encoding, sent, padding)) - expected).max() <= 1


@pytest.mark.parametrize("padding", [0, 6])
@pytest.mark.parametrize("encoding", ["nv12", "nv21"])
def test_nv12_and_nv21_share_colour_between_four_pixels(encoding, padding):
    first, second = (U, V) if encoding == "nv12" else (V, U)
    colour = np.stack([first[::2, ::2], second[::2, ::2]], -1).reshape(3, 8)
    frame = raw(encoding, np.vstack([Y, colour])[:, :, None], padding)
    frame = replace(frame, height=6)
    u, v = (plane[::2, ::2].repeat(2, 0).repeat(2, 1) for plane in (U, V))
    assert np.abs(decode(frame) - rgb_of_yuv(Y, u, v)).max() <= 1


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
        (Frame(1, "nv12", b"\0" * 35, 4, 6, 6), "6x4 has 35 bytes, needs 36"),
        (Frame(1, "nv12", b"\0" * 99, 3, 6, 6), "odd size 6x3"),
        (Frame(1, "uyvy", b"\0" * 99, 4, 5, 10), "odd size 5x4"),
        (Frame(1, "32FC1", b"\0" * 105, 5, 7, 21), "encoding '32FC1' is not known"),
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


def test_the_bytes_that_are_needed_are_enough():
    assert decode(Frame(1, "nv12", b"\0" * 36, 4, 6, 6)).shape == (4, 6, 3)
    assert decode(Frame(1, "rgb8", b"\0" * 105, 5, 7, 21)).shape == (5, 7, 3)


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
