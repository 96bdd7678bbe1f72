"""What looks at images for a check.

By default TensorFlow is asked about those only that are in doubt: for all others a look at every coded bit
(:mod:`beam_tfrecord.images.quick_look`) comes to the same, at a fraction of TensorFlow's price. Where TensorFlow is not
installed, the rules of a conversion decide, with libjpeg-turbo and Pillow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from beam_tfrecord.errors import ConfigError, ImageError
from beam_tfrecord.images import convert_image, png
from beam_tfrecord.images.png import fits_window
from beam_tfrecord.images.quick_look import size_beyond_doubt
from beam_tfrecord.options.config import ImagePolicy
from beam_tfrecord.reading import decode_with_tensorflow, has_tensorflow

TENSORFLOW, PILLOW, AUTO = "tensorflow", "pillow", "auto"
DECODERS = (TENSORFLOW, PILLOW)
# What a verdict calls the default where TensorFlow is installed: what looked at every image, and what at some.
QUICK = "libjpeg-turbo and zlib, tensorflow in doubt"

Decode = Callable[[bytes], tuple[int, int, int]]


def choose_decoder(name: str) -> str:
    """What looks at images, as a verdict says it: TENSORFLOW, PILLOW or QUICK. name: of DECODERS, or AUTO.

    Raises ConfigError when TensorFlow is not installed but must be. Called where the images are decoded: the workers
    of a cluster need not have what this machine has.
    """
    if name == AUTO:
        return QUICK if has_tensorflow() else PILLOW
    if name == TENSORFLOW and not has_tensorflow():
        raise ConfigError(
            "--decoder tensorflow: TensorFlow is not installed here; pip install 'beam-tfrecord[tensorflow]', "
            "or choose --decoder pillow"
        )
    return name


def make_decoder(chosen: str, max_pixels: int = ImagePolicy.max_pixels) -> Decode:
    """The function of a decoder: (height, width, channels) of an encoded image, as TensorFlow gives them.

    chosen: by :func:`choose_decoder`. It raises ImageError, and may be called from many threads. max_pixels: the most
    that is decoded by anything else than TensorFlow.
    """
    if chosen == TENSORFLOW:
        return decode_with_tensorflow
    if chosen == QUICK:
        return functools.partial(decode_in_doubt_with_tensorflow, max_pixels=max_pixels)
    policy = ImagePolicy(orientation="ignore", max_pixels=max_pixels)
    return functools.partial(decode_with_pillow, policy=policy)


def stated_max_pixels(conversion: Mapping[str, Any]) -> int:
    """The largest image, in pixels, that a conversion.json lets expect; the default where it states less or nothing."""
    options = conversion.get("options")
    stated = options.get("max_pixels") if isinstance(options, Mapping) else None
    return max(ImagePolicy.max_pixels, stated) if isinstance(stated, int) else ImagePolicy.max_pixels


def decode_in_doubt_with_tensorflow(data: bytes, max_pixels: int) -> tuple[int, int, int]:
    """The size by a quick look; by TensorFlow, which is imported for the first one, where that leaves a doubt."""
    return size_beyond_doubt(data, max_pixels) or decode_with_tensorflow(data)


def decode_with_pillow(data: bytes, policy: ImagePolicy) -> tuple[int, int, int]:
    """The size by the same look that a conversion takes at an image: libjpeg-turbo first, and Pillow has the last word.

    What a conversion would have to repair counts as damaged where TensorFlow refuses it.
    """
    image = convert_image(data, policy)
    if "repaired" in image.changed:
        _check_repaired(data)
    return image.height, image.width, image.channels


def _check_repaired(data: bytes) -> None:
    if data.startswith(png.SIGNATURE):
        file = png.read_chunks(data)
        if file.end is not None:
            if not fits_window(file):
                raise ImageError("corrupt_image", "its compressed data reach further back than the window they promise")
            return
    raise ImageError("truncated_image", "it ends before its end marker")
