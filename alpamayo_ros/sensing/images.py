"""From a camera's bytes to RGB pixels."""

from __future__ import annotations

import importlib
import struct
from dataclasses import dataclass
from types import SimpleNamespace

import cv2
import numpy as np

from alpamayo_ros.types import Frame, UserError

COMPRESSED = ("jpeg", "png")


@dataclass(frozen=True)
class Layout:
    """How a raw image lies in memory, and how OpenCV makes RGB of it."""

    channels: int  # bytes of a pixel in a row
    conversion: int | None  # None: already RGB
    even_width: bool = False  # two pixels share their colour
    even_height: bool = False
    planes: bool = False  # half as many rows of colour follow the rows of brightness


# sensor_msgs encodings. OpenCV names a Bayer pattern by the second row's second and third pixel,
# ROS by the first row's first two: rggb8 is BayerBG.
RAW = {
    "rgb8": Layout(3, None),
    "bgr8": Layout(3, cv2.COLOR_BGR2RGB),
    "rgba8": Layout(4, cv2.COLOR_RGBA2RGB),
    "bgra8": Layout(4, cv2.COLOR_BGRA2RGB),
    "mono8": Layout(1, cv2.COLOR_GRAY2RGB),
    "bayer_rggb8": Layout(1, cv2.COLOR_BayerBG2RGB),
    "bayer_bggr8": Layout(1, cv2.COLOR_BayerRG2RGB),
    "bayer_gbrg8": Layout(1, cv2.COLOR_BayerGR2RGB),
    "bayer_grbg8": Layout(1, cv2.COLOR_BayerGB2RGB),
    "yuv422": Layout(2, cv2.COLOR_YUV2RGB_UYVY, even_width=True),
    "uyvy": Layout(2, cv2.COLOR_YUV2RGB_UYVY, even_width=True),
    "yuv422_yuy2": Layout(2, cv2.COLOR_YUV2RGB_YUY2, even_width=True),
    "yuyv": Layout(2, cv2.COLOR_YUV2RGB_YUY2, even_width=True),
    "nv12": Layout(1, cv2.COLOR_YUV2RGB_NV12, even_width=True, even_height=True, planes=True),
    "nv21": Layout(1, cv2.COLOR_YUV2RGB_NV21, even_width=True, even_height=True, planes=True),
}
MAX_SIDE = 16_384  # an image larger than this is a damaged header, not a camera
MAX_PIXELS = 64_000_000
PNG_START, JPEG_START = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # markers of a frame header
HEADER_BYTES = 200_000  # metadata before the frame header can be as long as three segments


class MalformedImageError(UserError):
    """A frame's bytes are not the image its header speaks of."""


def decode(frame: Frame) -> np.ndarray:
    """The pixels of a frame as contiguous RGB uint8 (H, W, 3).

    Encodings that are not in our table go to cv_bridge, where a ROS distribution has it.

    Raises:
        MalformedImageError: unknown encoding, absurd size, or too few bytes; one line.
    """
    if frame.encoding in COMPRESSED:
        return _decode_compressed(frame)
    if frame.encoding in RAW:
        return _decode_raw(frame)
    return _decode_by_cv_bridge(frame)


def compressed_encoding(format_field: str) -> str:
    """ "jpeg" or "png" from a CompressedImage's `format`, such as "bgr8; jpeg compressed bgr8".

    Raises:
        MalformedImageError: the field names neither.
    """
    words = format_field.lower().replace("jpg", "jpeg")
    for encoding in COMPRESSED:
        if encoding in words:
            return encoding
    raise MalformedImageError(f"compressed format {format_field!r} is not known: want jpeg or png")


def _decode_compressed(frame: Frame) -> np.ndarray:
    data = np.frombuffer(frame.data, np.uint8)
    _check_size(frame.encoding, *_announced_size(frame.encoding, bytes(data[:HEADER_BYTES])))
    try:
        bgr = cv2.imdecode(data, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise MalformedImageError(f"{frame.encoding} image: {error.err}") from None
    if bgr is None:
        raise MalformedImageError(f"{frame.encoding} image of {data.size} bytes cannot be decoded")
    return cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)


def _announced_size(encoding: str, head: bytes) -> tuple[int, int]:
    """Height and width that a compressed image says it has, before it is decoded.

    A PNG of 770 kB may unfold to 768 MB.

    Raises:
        MalformedImageError: the bytes do not begin as such an image does.
    """
    if encoding == "png" and head.startswith(PNG_START) and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
        return height, width
    if encoding == "jpeg" and head.startswith(JPEG_START):
        at = 2
        while at + 9 <= len(head) and head[at] == 0xFF:
            marker, length = head[at + 1], int.from_bytes(head[at + 2 : at + 4], "big")
            if marker in JPEG_FRAMES:
                height, width = struct.unpack(">HH", head[at + 5 : at + 9])
                return height, width
            at += 1 if marker == 0xFF else 2 + length
    raise MalformedImageError(f"{encoding} image of {len(head)} bytes or more cannot be decoded")


def _check_size(encoding: str, height: int, width: int) -> None:
    if not (0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE and height * width <= MAX_PIXELS):
        raise MalformedImageError(f"{encoding} image of {width}x{height} pixels")


def _decode_raw(frame: Frame) -> np.ndarray:
    layout = RAW[frame.encoding]
    height, width = frame.height, frame.width
    _check_size(frame.encoding, height, width)
    if (layout.even_width and width % 2) or (layout.even_height and height % 2):
        raise MalformedImageError(f"{frame.encoding} image of odd size {width}x{height} pixels")
    used = width * layout.channels
    row_bytes = frame.row_bytes or used
    if row_bytes < used:
        raise MalformedImageError(
            f"{frame.encoding} image of width {width} has rows of {row_bytes} bytes"
        )
    row_count = height * 3 // 2 if layout.planes else height
    data = np.frombuffer(frame.data, np.uint8)
    if data.size < row_bytes * row_count:
        raise MalformedImageError(
            f"{frame.encoding} image of {width}x{height} has {data.size} bytes, "
            f"needs {row_bytes * row_count}"
        )
    rows = data[: row_bytes * row_count].reshape(row_count, row_bytes)[:, :used]
    pixels = np.ascontiguousarray(rows.reshape(row_count, width, layout.channels))
    if layout.conversion is not None:
        return cv2.cvtColor(pixels, layout.conversion)
    return pixels if pixels.base is None else pixels.copy()  # not to hold the whole message


def _decode_by_cv_bridge(frame: Frame) -> np.ndarray:
    name = repr(frame.encoding)[:40]
    try:
        bridge = importlib.import_module("cv_bridge").CvBridge()
    except ImportError:
        known = ", ".join((*RAW, *COMPRESSED))
        raise MalformedImageError(
            f"encoding {name} is not known, and cv_bridge is not installed; known: {known}"
        ) from None
    _check_size(name, frame.height, frame.width)
    message = SimpleNamespace(  # what cv_bridge reads of a sensor_msgs/Image
        height=frame.height,
        width=frame.width,
        encoding=frame.encoding,
        is_bigendian=frame.big_endian,
        step=frame.row_bytes,
        data=frame.data,
    )
    try:
        rgb = np.asarray(bridge.imgmsg_to_cv2(message, desired_encoding="rgb8"))
    except Exception as error:  # its own, OpenCV's, numpy's, Boost's
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise MalformedImageError(f"encoding {name}: cv_bridge says {reason}") from None
    if rgb.dtype != np.uint8 or rgb.shape != (frame.height, frame.width, 3):
        raise MalformedImageError(
            f"encoding {name}: cv_bridge gave {rgb.dtype} {rgb.shape} for rgb8"
        )
    return np.ascontiguousarray(rgb)


def centre_crop(rgb: np.ndarray, aspect: float) -> np.ndarray:
    """The largest centred part (view) of an image (H, W, 3) with this width / height."""
    left, top, width, height = centre_crop_box(rgb.shape[1], rgb.shape[0], aspect)
    return rgb[top : top + height, left : left + width]


def centre_crop_box(width: int, height: int, aspect: float) -> tuple[int, int, int, int]:
    """Left, top, width and height of that part of an image."""
    crop_width = min(width, round(height * aspect))
    crop_height = min(height, round(width / aspect))
    return (width - crop_width) // 2, (height - crop_height) // 2, crop_width, crop_height
