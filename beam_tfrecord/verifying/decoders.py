"""What decodes images for a check: TensorFlow, or Pillow and libjpeg-turbo where TensorFlow is not installed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from beam_tfrecord.config import ImagePolicy
from beam_tfrecord.errors import ConfigError, ImageError
from beam_tfrecord.images import convert_image
from beam_tfrecord.reading import decode_with_tensorflow, has_tensorflow

DECODERS = ("tensorflow", "pillow")
AUTO = "auto"

Decode = Callable[[bytes], tuple[int, int, int]]


def choose_decoder(name: str) -> str:
    """The decoder to use: ``auto`` is TensorFlow where it is installed. Raises ConfigError when it is not but must be.

    Called where the images are decoded: the workers of a cluster need not have what this machine has.
    """
    if name == AUTO:
        return "tensorflow" if has_tensorflow() else "pillow"
    if name == "tensorflow" and not has_tensorflow():
        raise ConfigError(
            "--decoder tensorflow: TensorFlow is not installed here; pip install 'beam-tfrecord[tensorflow]', "
            "or choose --decoder pillow"
        )
    return name


def make_decoder(name: str, max_pixels: int = ImagePolicy.max_pixels) -> Decode:
    """The function of a decoder: (height, width, channels) of an encoded image, as TensorFlow gives them.

    It raises ImageError, and may be called from many threads. max_pixels: the most that Pillow is to decode.
    """
    if name == "tensorflow":
        return decode_with_tensorflow
    policy = ImagePolicy(orientation="ignore", max_pixels=max_pixels)
    return functools.partial(decode_with_pillow, policy=policy)


def stated_max_pixels(conversion: Mapping[str, Any]) -> int:
    """The largest image, in pixels, that a conversion.json lets expect; the default where it states less or nothing."""
    options = conversion.get("options")
    stated = options.get("max_pixels") if isinstance(options, Mapping) else None
    return max(ImagePolicy.max_pixels, stated) if isinstance(stated, int) else ImagePolicy.max_pixels


def decode_with_pillow(data: bytes, policy: ImagePolicy) -> tuple[int, int, int]:
    """The size by the same look that a conversion takes at an image: libjpeg-turbo first, and Pillow has the last word.

    A file that lacks only its end marker counts as damaged: TensorFlow refuses it.
    """
    image = convert_image(data, policy)
    if "repaired" in image.changed:
        raise ImageError("truncated_image", "it ends before its end marker")
    return image.height, image.width, image.channels
