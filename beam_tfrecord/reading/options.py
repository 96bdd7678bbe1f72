"""What ``beam_tfrecord.load`` is told: one frozen dataclass that checks itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.errors import ConfigError, nearest
from beam_tfrecord.reading.names import SHORT, STORED

RESIZE_MODES = ("stretch", "crop", "pad")


@dataclass(frozen=True)
class LoadOptions:
    """The options of :func:`beam_tfrecord.load`.

    What is in an element:

    decode: pictures are decoded; without it they stay strings of encoded bytes, and of raw pixels.
    image_size: (height, width), or one number for both, that every picture is resized to; bilinear with antialiasing,
        masks with nearest neighbour.
    resize_mode: ``stretch`` to that size; ``crop`` to its ratio in the middle first; ``pad`` with zeros to it. Boxes
        and keypoints follow; ``crop`` refuses datasets that have them.
    channels: 1, 3 or 4 of the image; by default what all images have, and 3 when they differ.
    mask_channels: of whole-image masks: 1, or 3 for masks that are coloured.
    scale: the image as float32 from 0 to 1, instead of the integers that are stored.
    normalize: ``dataset`` for the image as float32 of mean 0 and standard deviation 1 in each channel, by the
        statistics of the dataset.
    features: names of those that are wanted; by default all.
    names: ``stored`` for the keys of the records; ``short`` for ``image``, ``label``, ``boxes`` ..., which are the same
        whatever the keys of the dataset are.
    as_supervised: (image, target) instead of a dict; (other features, target) for a table.
    label: name of the target, or several, which give a dict. By default the label of the image, else its mask, else
        boxes and labels of its objects.
    one_hot: the target as float32 zeros and ones, one for each label in the order of ids; several labels of one image
        give several ones, none give none.

    How it comes:

    shuffle: True, or the number of records in the buffer; files and records come in another order each time.
    seed: makes that order the same on every run.
    repeat: True for ever, or how many times.
    batch_size: records in a batch; dense where all have one shape, ragged where not.
    drop_remainder: leave out a last batch that is not full.
    prefetch: batches made ahead; by default 2, 0 for none.
    shard: (index, count) of a worker that reads its share only.
    deterministic: the same order every time. By default only given up when shuffled without a seed.
    """

    decode: bool = True
    image_size: int | tuple[int, int] | None = None
    resize_mode: str = "stretch"
    channels: int | None = None
    mask_channels: int = 1
    scale: bool = False
    normalize: str | None = None
    features: tuple[str, ...] | None = None
    names: str = STORED
    as_supervised: bool = False
    label: str | tuple[str, ...] | None = None
    one_hot: bool = False
    shuffle: bool | int = False
    seed: int | None = None
    repeat: bool | int = False
    batch_size: int | None = None
    drop_remainder: bool = False
    prefetch: int | None = None
    shard: tuple[int, int] = (0, 1)
    deterministic: bool | None = None

    @classmethod
    def from_keywords(cls, options: Mapping[str, Any]) -> LoadOptions:
        """The options for keywords. Raises ConfigError for one that there is not, with the nearest."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in options:
            if name not in known:
                raise ConfigError(f"load has no option {name!r}{nearest(name, known)}")
        return cls(**options)

    def __post_init__(self) -> None:
        for name in ("features", "label"):
            value = getattr(self, name)
            if isinstance(value, list | tuple):
                object.__setattr__(self, name, tuple(value))
        if isinstance(self.features, str):
            object.__setattr__(self, "features", (self.features,))
        self._check_choices()
        self._check_numbers()
        if self.one_hot and self.label is not None and not isinstance(self.label, str):
            raise ConfigError("one_hot works on one label: name it alone in label")
        if not self.decode and any((self.image_size, self.scale, self.channels, self.normalize)):
            told = "it goes with no image_size, scale, channels or normalize"
            raise ConfigError(f"decode=False leaves pictures as they are: {told}")
        if self.drop_remainder and self.batch_size is None:
            raise ConfigError("drop_remainder leaves out a last batch that is not full: give batch_size as well")
        check_share(self.shard)

    def _check_choices(self) -> None:
        choices: tuple[tuple[str, tuple[Any, ...]], ...] = (
            ("resize_mode", RESIZE_MODES),
            ("normalize", (None, "dataset")),
            ("names", (STORED, SHORT)),
            ("channels", (None, 1, 3, 4)),
            ("mask_channels", (1, 3)),
        )
        for name, allowed in choices:
            value = getattr(self, name)
            if value not in allowed:
                told = ", ".join(str(choice) for choice in allowed)
                near = nearest(value, allowed) if isinstance(value, str) else ""
                raise ConfigError(f"{name}={value!r}: must be one of {told}{near}")

    def _check_numbers(self) -> None:
        for name, least in (("batch_size", 1), ("prefetch", 0), ("shuffle", 0), ("repeat", 0)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < least):
                raise ConfigError(f"{name}={value!r}: must be a whole number of {least} or more")
        sides: tuple[Any, ...] = (1, 1) if self.size is None else self.size
        if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
            raise ConfigError(f"image_size={self.image_size!r}: must be one side, or (height, width)")

    @property
    def size(self) -> tuple[int, ...] | None:
        """(height, width) that pictures are resized to, or None."""
        if isinstance(self.image_size, tuple | list):
            return tuple(self.image_size)
        return None if self.image_size is None else (self.image_size, self.image_size)

    @property
    def is_deterministic(self) -> bool:
        """Whether elements must come in the same order every time."""
        return self.deterministic if self.deterministic is not None else not self.shuffle or self.seed is not None


def check_share(shard: Any) -> None:
    """Raise ConfigError unless shard is (index, count) with an index from 0 to count - 1."""
    is_pair = isinstance(shard, tuple | list) and len(shard) == 2 and all(isinstance(number, int) for number in shard)
    if not is_pair or not 0 <= shard[0] < shard[1]:
        raise ConfigError(f"shard={shard!r}: must be (index, count) of a worker, index from 0 to count - 1")
