"""Mean and standard deviation of the pictures that a dataset is decoded to, from what statistics.json tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from beam_tfrecord.conversion.writing.statistics import moments
from beam_tfrecord.errors import ConfigError, DatasetError
from beam_tfrecord.reading.element_plan import ElementPlan
from beam_tfrecord.reading.options import LoadOptions
from beam_tfrecord.reading.pixels import PixelType

_LARGEST = {"uint8": 255, "uint16": 65_535}
# Which stored channels those are that pictures are decoded to; others are made of several, or not of what is stored.
_DECODED = {(1, 1): (0,), (2, 2): (0, 1), (3, 3): (0, 1, 2), (4, 4): (0, 1, 2, 3), (1, 3): (0, 0, 0), (4, 3): (0, 1, 2)}


def normalised(plan: ElementPlan, channels: Mapping[str, Any], options: LoadOptions) -> ElementPlan:
    """The plan with ``normal`` set, for ``normalize="dataset"``. channels: of statistics.json.

    Raises ConfigError where the records have no image or the statistics do not tell of pictures as they are decoded.
    """
    pixels = plan.pixels.get(plan.image)
    if pixels is None:
        raise ConfigError("normalize: no image is given out that could be normalised")
    if not channels:
        raise ConfigError(
            "normalize: statistics.json of this dataset does not tell the mean of its channels; convert it with "
            "--insight on or exact, and --validate full"
        )
    try:
        mean, std = _pooled(pixels, channels)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise DatasetError(f"statistics.json is damaged: channels ({type(error).__name__}: {error})") from None
    unit = _LARGEST[pixels.dtype] if options.scale else 1
    std = [value or float(unit) for value in std]  # a channel of one value becomes zeros
    return replace(plan, normal=(tuple(value / unit for value in mean), tuple(value / unit for value in std)))


def _pooled(pixels: PixelType, channels: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    count, sums, squares = 0, [0] * pixels.channels, [0] * pixels.channels
    for key, own in channels.items():
        number, _, dtype = key.partition("/")
        places = _DECODED.get((int(number), pixels.channels))
        if places is None or (dtype or "uint8") != pixels.dtype:
            raise ConfigError(
                f"normalize: images are decoded to {pixels.channels} channels of {pixels.dtype}, and the statistics "
                f"are of {number} channels of {dtype or 'uint8'}; give channels={number}, or convert with --color"
            )
        count += int(own["pixels"])
        sums = [total + int(own["sum"][place]) for total, place in zip(sums, places, strict=True)]
        squares = [total + int(own["squares"][place]) for total, place in zip(squares, places, strict=True)]
    return moments(count, sums, squares)
