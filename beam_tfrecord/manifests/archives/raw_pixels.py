"""Pixels that stand in a record as they are: bytes of 8 bits a sample, by rows or by channels."""

from __future__ import annotations

import io
import re
from typing import Any

RAW_PIXELS = "raw_pixels"  # the method of a Member that is pixels; the last name of its path says how they lie
_LAYOUT = re.compile(r".*\b(hwc|chw) (\d+)x(\d+)x(\d+)", re.DOTALL)


def layout_name(order: str, shape: tuple[int, int, int]) -> str:
    """The name of a layout. order: ``hwc`` or ``chw``, that of the three numbers and of the samples."""
    return f"{order} {'x'.join(map(str, shape))}"


def png_of_pixels(data: bytes, layout: str) -> bytes:
    """The pixels as PNG. layout: ends as :func:`layout_name` says. Raises ValueError where the data are none."""
    import numpy as np
    from PIL import Image

    found = _LAYOUT.fullmatch(layout)
    if found is None:
        raise ValueError(f"{layout!r} says not how the pixels lie")
    shape = (int(found[2]), int(found[3]), int(found[4]))
    samples = np.frombuffer(data, np.uint8)
    if samples.size != shape[0] * shape[1] * shape[2]:
        raise ValueError(f"{len(data)} bytes are no pixels of {found[1]} {shape}")
    pixels: Any = samples.reshape(shape) if found[1] == "hwc" else samples.reshape(shape).transpose(1, 2, 0)
    if pixels.shape[2] == 1:
        pixels = pixels.reshape(pixels.shape[:2])
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(out, "PNG")
    return out.getvalue()
