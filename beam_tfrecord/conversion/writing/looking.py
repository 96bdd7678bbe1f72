"""The look at the pictures of a shard: taken where they are checked, measured many at a time."""

from __future__ import annotations

from beam_tfrecord.images import small_of
from beam_tfrecord.images.stored import StoredImage
from beam_tfrecord.insight.grids import grid_of
from beam_tfrecord.options.config import ConvertConfig


def looks_at_pixels(config: ConvertConfig) -> bool:
    """Whether the pixels of pictures are looked at: only where the conversion decodes them anyway."""
    return config.insight.insight != "off" and config.images.validate != "header"


def grid_of_stored(image: StoredImage) -> bytes | None:
    """The grid of a stored picture, as bytes; None when it does not decode."""
    small = small_of(image)
    return None if small is None else grid_of(small.array, small.span, small.step).tobytes()
