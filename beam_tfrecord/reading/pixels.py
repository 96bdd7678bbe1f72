"""What pictures are decoded to, told without TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass

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
