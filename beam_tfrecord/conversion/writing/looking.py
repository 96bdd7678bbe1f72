"""The look at the pictures of a shard: taken where they are checked, measured many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beam_tfrecord.images import small_of
from beam_tfrecord.images.stored import StoredImage
from beam_tfrecord.images.sums import ChannelSums, channel_sums
from beam_tfrecord.insight.grids import grids_of
from beam_tfrecord.options.config import ConvertConfig

# Pictures that are decoded in full for the statistics of their channels, which costs several times a check: about so
# many bytes, so large a share, or so many of them, whichever are most.
SUMMED_BYTES = 4 << 20
SUMMED_SHARE = 1 / 256
SUMMED_PICTURES = 32
SUMMED_PIXELS = 16_000_000  # of one of them
_SHARES = 1 << 32


class Seen(NamedTuple):
    """What was seen of a stored picture. grid: as bytes; sums: of its channels; each None where it was not taken."""

    grid: bytes | None = None
    sums: ChannelSums | None = None


@dataclass(frozen=True)
class Looking:
    """What is looked at in the pictures of a dataset.

    share: of the pictures that are decoded in full, chosen by the hash of their content, of 2**32. takes_names: whether
    it is noted as what each record is known (:mod:`.names`).
    """

    takes_looks: bool = False
    at_pixels: bool = False
    share: int = 0
    is_exact: bool = False
    takes_names: bool = False

    def at(self, image: StoredImage, sha256: str) -> Seen:
        """The look at a stored picture. sha256: of its bytes, in hex."""
        return self.at_all([(image, sha256)])[0]

    def at_all(self, images: Sequence[tuple[StoredImage, str]]) -> list[Seen]:
        """The looks at some stored pictures and their hashes: those of one size are taken together."""
        if not self.at_pixels:
            return [NOTHING] * len(images)
        smalls = [small_of(image) for image, _ in images]
        alike: dict[tuple[int, int, tuple[int, int], int], list[int]] = {}
        for number, small in enumerate(smalls):
            if small is not None:
                alike.setdefault((small.height, small.width, small.span, small.step), []).append(number)
        found: list[bytes | None] = [None] * len(images)
        for (height, width, span, step), numbers in alike.items():
            pixels = b"".join([small.pixels for small in map(smalls.__getitem__, numbers) if small])
            grids = grids_of(np.frombuffer(pixels, np.uint8).reshape(-1, height, width), span, step)
            for number, grid in zip(numbers, grids, strict=True):
                found[number] = grid.tobytes()
        return [
            Seen(grid, channel_sums(image) if self._is_summed(image, sha256) else None)
            for grid, (image, sha256) in zip(found, images, strict=True)
        ]

    def _is_summed(self, image: StoredImage, sha256: str) -> bool:
        return int(sha256[:8], 16) < self.share and (self.is_exact or image.height * image.width <= SUMMED_PIXELS)


NOTHING = Seen()


def looking_for(config: ConvertConfig, pictures: int = 0, bytes_of_one: float = 0.0) -> Looking:
    """What a conversion looks at. pictures: about how many there are; bytes_of_one: as they are stored.

    Pixels are looked at only where a conversion decodes them anyway. All of them are summed where they are few, else
    a share.
    """
    choice = config.insight.insight
    if choice == "off":
        return Looking()
    if config.images.validate == "header":
        return Looking(takes_looks=True)
    is_exact = choice == "exact"
    few = max(SUMMED_PICTURES, SUMMED_BYTES / max(1.0, bytes_of_one)) / max(1, pictures)
    return Looking(True, True, int((1.0 if is_exact else min(1.0, max(few, SUMMED_SHARE))) * _SHARES), is_exact)
