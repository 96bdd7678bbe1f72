"""The look at the pictures of a shard: taken where they are checked, measured many at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from beam_tfrecord.images import small_of
from beam_tfrecord.images.stored import StoredImage
from beam_tfrecord.images.sums import ChannelSums, channel_sums
from beam_tfrecord.insight.grids import grid_of
from beam_tfrecord.options.config import ConvertConfig

SUMMED_BYTES = 16 << 20  # of pictures that are decoded in full for the statistics of their channels
SUMMED_PIXELS = 16_000_000  # of one of them
_SHARES = 1 << 32


class Seen(NamedTuple):
    """What was seen of a stored picture. grid: as bytes; sums: of its channels; each None where it was not taken."""

    grid: bytes | None = None
    sums: ChannelSums | None = None


@dataclass(frozen=True)
class Looking:
    """What is looked at in the pictures of a dataset.

    share: of the pictures that are decoded in full, chosen by the hash of their content, of 2**32.
    """

    takes_looks: bool = False
    at_pixels: bool = False
    share: int = 0
    is_exact: bool = False

    def at(self, image: StoredImage, sha256: str) -> Seen:
        """The look at a stored picture. sha256: of its bytes, in hex."""
        if not self.at_pixels:
            return _NOTHING
        small = small_of(image)
        grid = None if small is None else grid_of(small.array, small.span, small.step).tobytes()
        is_summed = int(sha256[:8], 16) < self.share and (self.is_exact or image.height * image.width <= SUMMED_PIXELS)
        return Seen(grid, channel_sums(image) if is_summed else None)


_NOTHING = Seen()


def looking_for(config: ConvertConfig, stored_bytes: float = 0.0) -> Looking:
    """What a conversion looks at. stored_bytes: about how many all pictures have.

    Pixels are looked at only where a conversion decodes them anyway. All of them are summed where they are few, else
    a share.
    """
    choice = config.insight.insight
    if choice == "off":
        return Looking()
    if config.images.validate == "header":
        return Looking(takes_looks=True)
    is_exact = choice == "exact"
    share = 1.0 if is_exact else min(1.0, SUMMED_BYTES / max(1.0, stored_bytes))
    return Looking(True, True, int(share * _SHARES), is_exact)
