"""In which picture an annotation was drawn: the raster of the file, or the one that its EXIF tag turns upright."""

from __future__ import annotations

from beam_tfrecord.core.geometry import PixelFrame


def annotation_is_upright(
    size: tuple[int, int] | None, frame: PixelFrame, box_frame: str = "auto", default: str | None = None
) -> tuple[bool, bool]:
    """(whether the annotation is given in the turned picture, whether that is only a guess).

    size: (width, height) that the annotation states, or None. box_frame: the option, ``auto``, ``upright`` or
    ``stored``. default: what the annotation's format says, ``upright`` or ``stored``, or None when it says nothing.

    A size that fits one of the two pictures decides. A square image, one turned by 180 degrees or only mirrored, and an
    annotation without a size tell nothing: then the format decides, and without it the annotation is taken to belong to
    the raster, so that it moves with the pixels. Where the turn is ignored that is no guess: the pixels stay as well.
    """
    if frame.stated_orientation == 1:
        return False, False
    if box_frame != "auto":
        return box_frame == "upright", False
    if frame.turned_size != frame.source_size and size in (frame.turned_size, frame.source_size):
        return size == frame.turned_size, False
    return default == "upright", default is None and frame.ignored == 1
