"""What lies on a sample picture beside its boxes: masks and keypoints, drawn as on a contact sheet.

They are a transparent picture of their own, so that the page can take them away. Boxes and their names are not in it:
the page draws those itself, sharp at every size.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from beam_tfrecord.report.views import PictureView

if TYPE_CHECKING:
    from PIL import Image

    from beam_tfrecord.tools.showing.drawing import Colour
    from beam_tfrecord.tools.showing.pictures import DrawnPicture

# Of the classes of objects, in turn: bright, since they lie on pictures of any kind and not on the page.
STYLE_COLOURS: tuple[Colour, ...] = (
    (255, 212, 0),
    (0, 229, 255),
    (255, 79, 216),
    (124, 255, 79),
    (255, 138, 60),
    (157, 140, 255),
    (255, 90, 90),
    (255, 255, 255),
)
_PALETTE = 48  # colours of an overlay, with their opacities: few make a small file


@dataclass(frozen=True, slots=True)
class Overlay:
    """A transparent picture that lies over another one. uri: a data URI. masks, points: objects that have them.

    has_classes: whether a mask of the whole image is drawn.
    """

    uri: str
    masks: int = 0
    points: int = 0
    has_classes: bool = False


def make_overlay(
    picture: PictureView,
    keys: Mapping[str, str],
    names: Mapping[int, str],
    style_of: Callable[[str], int],
    size: tuple[int, int],
) -> Overlay | None:
    """The masks and keypoints of a picture, drawn at a size (width, height); None when it has none.

    keys: logical name -> key. names: label name by id. style_of: number of the colour of a class.
    """
    from beam_tfrecord.tools.showing.pictures import DrawnPicture, frame_annotations

    found, classes = frame_annotations(picture.features, keys, names, max(size))
    objects = tuple(
        replace(item, number=style_of(item.name), name="", box=None)
        for item in found
        if item.mask is not None or item.points
    )
    if not objects and classes is None:
        return None
    drawn = DrawnPicture(None, size, "", "", objects, classes)
    return Overlay(
        _uri(_transparent(drawn, size)),
        sum(item.mask is not None for item in objects),
        sum(any(visibility for _, _, visibility in item.points) for item in objects),
        classes is not None,
    )


def _transparent(drawn: DrawnPicture, size: tuple[int, int]) -> Image.Image:
    """The annotations alone, in RGBA.

    They are drawn on black and on white: where the two differ most nothing was drawn, and where they agree the colour
    covers all of what is under it.
    """
    import numpy as np
    from PIL import Image

    from beam_tfrecord.tools.showing.drawing import draw_annotations

    colours = dict(enumerate(STYLE_COLOURS))
    on_black, on_white = (
        np.asarray(draw_annotations(Image.new("RGB", size, ground), drawn, colours), np.int32)
        for ground in ("black", "white")
    )
    opacity = (255 - (on_white - on_black).max(axis=2, keepdims=True)).clip(0, 255)
    colour = (on_black * 255 // opacity.clip(1)).clip(0, 255)
    return Image.fromarray(np.concatenate([colour, opacity], axis=2).astype(np.uint8))


def _uri(image: Image.Image) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    image.quantize(_PALETTE, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def style_rules() -> str:
    """The colours as variables for the style sheet: ``--b0`` and so on."""
    rules = (f"--b{number}: #{bytes(colour).hex()};" for number, colour in enumerate(STYLE_COLOURS))
    return f":root {{ {' '.join(rules)} }}"
