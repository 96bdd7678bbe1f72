"""Bytes of an image file to a checked image as it goes into a record; masks in the frame of their image.

Pillow is set on import, once: see :mod:`beam_tfrecord.images.safety`.
"""

from beam_tfrecord.images.convert import convert_frames, convert_image
from beam_tfrecord.images.masks import place_mask
from beam_tfrecord.images.memory import keep_large_buffers
from beam_tfrecord.images.small import small_of
from beam_tfrecord.images.sniff import sniff
from beam_tfrecord.images.stored import StoredImage

__all__ = [
    "StoredImage",
    "convert_frames",
    "convert_image",
    "keep_large_buffers",
    "place_mask",
    "small_of",
    "sniff",
]
