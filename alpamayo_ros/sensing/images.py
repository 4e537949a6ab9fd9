"""From a camera's bytes to RGB pixels."""

from __future__ import annotations

import cv2
import numpy as np

from alpamayo_ros.types import Frame, UserError

COMPRESSED = ("jpeg", "png")
# Raw encoding to its channels and OpenCV's conversion to RGB (None: already RGB).
RAW: dict[str, tuple[int, int | None]] = {
    "rgb8": (3, None),
    "bgr8": (3, cv2.COLOR_BGR2RGB),
    "rgba8": (4, cv2.COLOR_RGBA2RGB),
    "bgra8": (4, cv2.COLOR_BGRA2RGB),
    "mono8": (1, cv2.COLOR_GRAY2RGB),
}
MAX_SIDE = 16_384  # an image larger than this is a damaged header, not a camera


class MalformedImageError(UserError):
    """A frame's bytes are not the image its header speaks of."""


def decode(frame: Frame) -> np.ndarray:
    """The pixels of a frame as contiguous RGB uint8 (H, W, 3).

    Raises:
        MalformedImageError: unknown encoding, absurd size, or too few bytes; one line.
    """
    if frame.encoding in COMPRESSED:
        return _decode_compressed(frame)
    if frame.encoding not in RAW:
        known = ", ".join((*RAW, *COMPRESSED))
        raise MalformedImageError(f"encoding {frame.encoding!r} is not known; known: {known}")
    return _decode_raw(frame)


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
    if data.size == 0:
        raise MalformedImageError(f"{frame.encoding} image has no bytes")
    try:
        bgr = cv2.imdecode(data, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise MalformedImageError(f"{frame.encoding} image: {error.err}") from None
    if bgr is None:
        raise MalformedImageError(f"{frame.encoding} image of {data.size} bytes cannot be decoded")
    return cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)


def _decode_raw(frame: Frame) -> np.ndarray:
    channels, conversion = RAW[frame.encoding]
    height, width = frame.height, frame.width
    if not (0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE):
        raise MalformedImageError(f"{frame.encoding} image of {width}x{height} pixels")
    row_bytes = frame.row_bytes or width * channels
    if row_bytes < width * channels:
        raise MalformedImageError(
            f"{frame.encoding} image of width {width} has rows of {row_bytes} bytes"
        )
    data = np.frombuffer(frame.data, np.uint8)
    if data.size < row_bytes * height:
        raise MalformedImageError(
            f"{frame.encoding} image of {width}x{height} has {data.size} bytes, "
            f"needs {row_bytes * height}"
        )
    rows = data[: row_bytes * height].reshape(height, row_bytes)
    pixels = rows[:, : width * channels].reshape(height, width, channels)
    if conversion is None:
        return np.ascontiguousarray(pixels)
    return cv2.cvtColor(np.ascontiguousarray(pixels), conversion)


def centre_crop(rgb: np.ndarray, aspect: float) -> np.ndarray:
    """The largest centred part (view) of an image (H, W, 3) with this width / height."""
    height, width = rgb.shape[:2]
    crop_width = min(width, round(height * aspect))
    crop_height = min(height, round(width / aspect))
    top, left = (height - crop_height) // 2, (width - crop_width) // 2
    return rgb[top : top + crop_height, left : left + crop_width]
