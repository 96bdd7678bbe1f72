"""What an element of a loaded dataset holds, decided from the metadata and the options before anything is read, without
TensorFlow; mean and standard deviation of its pictures come from what statistics.json tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from beam_tfrecord.annotations.base import FeatureSpec
from beam_tfrecord.conversion.writing.statistics import moments
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.errors import ConfigError, DatasetError
from beam_tfrecord.reading.names import box_sides, default_target, image_key, keys_named, names_by_key
from beam_tfrecord.reading.options import LoadOptions

MIXED = ""


@dataclass(frozen=True)
class PixelType:
    """What pixels are decoded to.

    channels: 1 to 4. dtype: ``uint8`` or ``uint16``; :data:`MIXED` for masks and raw pixels of which some have 16 bits
    and some have 8. is_mask: values are classes or numbers of objects, which are never blended.
    """

    channels: int
    dtype: str
    is_mask: bool = False


@dataclass(frozen=True)
class Target:
    """What pictures become: size (height, width) or None for their own, how they get there, and whether from 0 to 1.

    stored: (height, width) that all stored pictures have in common, None for what differs.
    """

    size: tuple[int, ...] | None = None
    mode: str = "stretch"
    scale: bool = False
    stored: tuple[int | None, ...] = (None, None)

    @property
    def known_size(self) -> tuple[int | None, ...]:
        """(height, width) of every picture that is given out, as far as it is known."""
        return self.size or self.stored


_RAW_FACTS = ("height", "width", "channels", "dtype")
# Coordinates that move when a picture is padded: rows of four, and lists along one axis.
_VERTICAL = ("bbox_ymin", "bbox_ymax", "keypoint_y")
_HORIZONTAL = ("bbox_xmin", "bbox_xmax", "keypoint_x")
_PLACES = ("bbox", *_VERTICAL, *_HORIZONTAL)


@dataclass(frozen=True)
class ElementPlan:
    """What is parsed, decoded and given out.

    specs: of the features to parse. names: name of each key that is given out; keys that share one are the sides of
    boxes. pixels: of each key with pictures that are decoded. raw: keys that tell of raw pixels, in the order of
    height, width, channels, dtype; empty when the image is encoded. image: key of the image. moved: keys of coordinates
    to move by padding, with their axis (0 vertical, 1 horizontal, -1 rows of boxes). target: how pictures are resized.
    supervised: keys of the target of training, None for a dict of everything. label_ids: to be turned into zeros and
    ones, empty for labels as they are. normal: mean and standard deviation of each channel of the image as it is
    decoded, to be normalised by; None to leave it.
    """

    is_sequence: bool
    specs: tuple[FeatureSpec, ...]
    names: Mapping[str, str]
    pixels: Mapping[str, PixelType]
    raw: tuple[str, ...]
    image: str
    sides: tuple[str, ...]
    moved: Mapping[str, int]
    target: Target
    supervised: tuple[str, ...] | None
    is_dict_target: bool
    label_ids: tuple[int, ...]
    normal: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    @property
    def has_label_list(self) -> bool:
        """Whether the target is a list of labels rather than one."""
        return any(spec.key in (self.supervised or ()) and spec.shape == (None,) for spec in self.specs)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is done record by record, so that whole batches can be parsed at once."""
        return not self.is_sequence and not self.pixels


def plan_elements(
    facts: DatasetFacts, options: LoadOptions, stored_size: tuple[int | None, ...] = (None, None)
) -> ElementPlan:
    """The plan. stored_size: (height, width) that all images are known to have, None for what is not known.

    Raises ConfigError for options that do not fit the dataset.
    """
    names = names_by_key(facts, options.names)
    image = image_key(facts)
    supervised = _supervised(facts, options, names)
    wanted = _wanted(facts, options, names, supervised)
    target = Target(options.size, options.resize_mode, options.scale, stored_size)
    if (target.size is not None or target.scale or options.channels is not None) and not image:
        raise ConfigError("the records have no image: image_size, scale and channels do not apply to a table")
    pixels = _pixels(facts, options, wanted)
    moved = _moved(facts, options, wanted) if image and options.decode else {}
    needed = [*wanted, *([image] if moved and image not in wanted else [])]
    if moved and image not in pixels:
        pixels[image] = _image_pixels(facts, options)
    raw = tuple(facts.keys[name] for name in _RAW_FACTS) if image in pixels and image == facts.keys.get("raw") else ()
    needed += [key for key in raw if key not in needed]
    return ElementPlan(
        is_sequence=facts.is_sequence,
        specs=tuple(facts.specs[key] for key in needed),
        names={key: names[key] for key in wanted},
        pixels=pixels,
        raw=raw,
        image=image,
        sides=tuple(key for key in box_sides(facts) if len({names[side] for side in box_sides(facts)}) == 1),
        moved=moved,
        target=target,
        supervised=supervised,
        is_dict_target=supervised is not None and not _is_single(supervised, names),
        label_ids=_label_ids(facts, options, supervised),
    )


def _is_single(keys: tuple[str, ...], names: Mapping[str, str]) -> bool:
    return len({names[key] for key in keys}) == 1


def _supervised(facts: DatasetFacts, options: LoadOptions, names: Mapping[str, str]) -> tuple[str, ...] | None:
    """The keys of the target, or None when elements are dicts."""
    if options.label is not None:
        labels = (options.label,) if isinstance(options.label, str) else options.label
        found = tuple(keys_named([_known_as(label, facts, names) for label in labels], names, "label"))
    else:
        found = tuple(default_target(facts))
    if options.as_supervised and not found:
        raise ConfigError(
            "as_supervised: the records have no label; name the feature that a model is to learn with label="
            f"{next(iter(names.values()), '')!r}, or another of {', '.join(sorted(set(names.values())))}"
        )
    return found if options.as_supervised else None


def _known_as(label: str, facts: DatasetFacts, names: Mapping[str, str]) -> str:
    """``label`` finds the label of the image whatever its key is, unless another feature has that name."""
    is_general = label == "label" and label not in names.values() and label in facts.keys
    return names[facts.keys[label]] if is_general else label


def _wanted(
    facts: DatasetFacts, options: LoadOptions, names: Mapping[str, str], supervised: tuple[str, ...] | None
) -> list[str]:
    if options.features is not None:
        wanted = keys_named(options.features, names, "features")
        return [*wanted, *(key for key in supervised or () if key not in wanted)]
    image = image_key(facts)
    if supervised is not None and image:
        return [image, *(key for key in supervised if key != image)]
    return list(facts.specs)


def _pixels(facts: DatasetFacts, options: LoadOptions, wanted: list[str]) -> dict[str, PixelType]:
    if not options.decode:
        return {}
    image = image_key(facts)
    pixels = {}
    for key in wanted:
        spec = facts.specs[key]
        if key == image:
            pixels[key] = _image_pixels(facts, options)
        elif spec.role == "image":
            is_stated = spec.channels is not None
            pixels[key] = PixelType(
                spec.channels or options.mask_channels, spec.pixel_dtype if is_stated else MIXED, is_mask=True
            )
    return pixels


def _image_pixels(facts: DatasetFacts, options: LoadOptions) -> PixelType:
    formats = [str(name).split("/") for name in facts.conversion.get("image_formats") or ()]
    channels = sorted({int(parts[1]) for parts in formats})
    depths = {parts[2] for parts in formats}
    if facts.keys.get("raw"):
        if len(channels) != 1 or options.channels not in (None, *channels):
            told = " and ".join(map(str, channels))
            raise ConfigError(
                f"raw pixels have the channels that are stored ({told}): convert with --color rgb or gray"
            )
        return PixelType(channels[0], depths.pop() if len(depths) == 1 else MIXED)
    if options.channels == 4 and any(parts[0] == "jpeg" for parts in formats):
        raise ConfigError("channels=4: some images are JPEGs, which have no fourth channel")
    own = channels[0] if len(channels) == 1 else 3
    return PixelType(options.channels or own, depths.pop() if len(depths) == 1 else "uint8")


def _moved(facts: DatasetFacts, options: LoadOptions, wanted: list[str]) -> dict[str, int]:
    """Keys of coordinates that padding moves. Raises ConfigError where that cannot be done."""
    places = {facts.keys[name]: name for name in _PLACES if facts.keys.get(name) in wanted}
    if not places or options.size is None or options.resize_mode == "stretch":
        return {}
    if options.resize_mode == "crop":
        raise ConfigError(
            "resize_mode='crop' could cut objects away: use 'pad' or 'stretch', or leave boxes and keypoints out with "
            "features"
        )
    if facts.is_sequence:
        raise ConfigError("resize_mode='pad' does not move the boxes of sequences: use 'stretch'")
    return {key: 0 if name in _VERTICAL else 1 if name in _HORIZONTAL else -1 for key, name in places.items()}


def _label_ids(facts: DatasetFacts, options: LoadOptions, supervised: tuple[str, ...] | None) -> tuple[int, ...]:
    if not options.one_hot:
        return ()
    if supervised is None:
        raise ConfigError("one_hot is about the target of training: it needs as_supervised=True")
    if len(supervised) != 1 or facts.specs[supervised[0]].role != "label":
        raise ConfigError(f"one_hot: {', '.join(supervised)} is no label with ids of the vocabulary")
    return tuple(facts.vocabulary.ids)


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
