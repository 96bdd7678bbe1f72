"""Which columns of a table hold boxes, and what their four numbers are.

Names are compared without case, blanks, dashes, dots and underscores, and with or without one of a few words in front
(``bbox_x``, ``box_left``, ``roi.x1``). The names say what the numbers are, except ``x, y, width, height``, which tools
write for a corner and for a centre alike, and those of a single column such as ``bbox``: what these are is found from
all boxes of the source (:mod:`beam_tfrecord.manifests.box_reading`), or stated with ``--box_format``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

XYXY, XYWH, CENTER = "xyxy", "xywh", "cxcywh"
FORMS = (XYXY, XYWH, CENTER)
# Names of the four columns, and what they can be; those that say more come first.
_QUADRUPLES: tuple[tuple[tuple[str, ...], tuple[str, str, str, str]], ...] = (
    ((XYXY,), ("xmin", "ymin", "xmax", "ymax")),
    ((XYXY,), ("minx", "miny", "maxx", "maxy")),
    ((XYXY,), ("x1", "y1", "x2", "y2")),
    ((XYXY,), ("x0", "y0", "x1", "y1")),
    ((XYXY,), ("left", "top", "right", "bottom")),
    ((XYXY,), ("left", "upper", "right", "lower")),
    ((XYXY,), ("xleft", "ytop", "xright", "ybottom")),
    ((XYXY,), ("xtl", "ytl", "xbr", "ybr")),
    ((XYXY,), ("tlx", "tly", "brx", "bry")),
    ((XYXY,), ("topleftx", "toplefty", "bottomrightx", "bottomrighty")),
    ((XYXY,), ("upperleftx", "upperlefty", "lowerrightx", "lowerrighty")),
    ((XYXY,), ("xstart", "ystart", "xend", "yend")),
    ((XYXY,), ("startx", "starty", "endx", "endy")),
    *(
        ((CENTER,), (x, y, *sides))
        for x, y in (("xcenter", "ycenter"), ("centerx", "centery"), ("xcentre", "ycentre"), ("centrex", "centrey"))
        for sides in (("width", "height"), ("w", "h"))
    ),
    *(
        ((CENTER,), (x, y, *sides))
        for x, y in (("cx", "cy"), ("xc", "yc"))
        for sides in (("w", "h"), ("width", "height"))
    ),
    *(
        ((XYWH,), (x, y, *sides))
        for x, y in (("xmin", "ymin"), ("left", "top"), ("x1", "y1"), ("minx", "miny"), ("topleftx", "toplefty"))
        for sides in (("width", "height"), ("w", "h"))
    ),
    ((XYWH, CENTER), ("x", "y", "width", "height")),
    ((XYWH, CENTER), ("x", "y", "w", "h")),
)
# Four corners of a quadrilateral: x1, y1 ... x4, y4.
_CORNERS = tuple(f"{side}{corner}" for corner in (1, 2, 3, 4) for side in "xy")
_PREFIXES = ("", "boundingbox", "bndbox", "bbox", "box", "bb", "roi", "rect", "object", "label", "region", "annotation")
_STRONG = ("bbox", "bboxes", "boundingbox", "boundingboxes", "bndbox", "bndboxes")
_WEAK = ("box", "boxes", "rect", "rectangle")  # which hold other things as well: only with something like a list in it
_STATED = {"xyxy": XYXY, "xyminmax": XYXY, "voc": XYXY, "xywh": XYWH, "coco": XYWH, "cxcywh": CENTER, "yolo": CENTER}
_OBJECTS = ("objects",)
_VIA = "regionshapeattributes"
_LIST = re.compile(r"\s*[\[{(]")

BOX_NAMES = frozenset(
    {
        *(
            prefix + part
            for forms, parts in _QUADRUPLES
            for part in parts
            for prefix in ("", "bbox", "box")
            if prefix or part not in ("x", "y", "w", "h", "width", "height")
        ),
        *(*_STRONG, _VIA),
    }
)  # of columns, as :func:`compact` spells them

Samples = Callable[[str], Iterable[Any]]


def no_samples(column: str) -> Iterable[Any]:
    """Of a table whose cells were not looked at."""
    return ()


@dataclass(frozen=True, slots=True)
class BoxColumns:
    """Where the boxes of a table are.

    kind: ``columns`` (four of them), ``corners`` (eight), ``cell`` (one box or a list of boxes in one column),
    ``objects`` (a struct of lists, or a list of structs, as Hugging Face has it), ``via`` (the VGG Image Annotator).
    names: of the columns. forms: what the four numbers can be. units: ``pixels``, ``fractions`` or, to be found out,
    ``auto``. is_told: the forms are those of an option. is_assumed: nothing but the layout of the file tells the form.
    """

    kind: str
    names: tuple[str, ...]
    forms: tuple[str, ...]
    units: str = "auto"
    is_told: bool = False
    is_assumed: bool = False

    @classmethod
    def from_details(cls, details: Mapping[str, Any]) -> BoxColumns:
        """The value that :func:`dataclasses.asdict` gave."""
        return cls(**{**details, "names": tuple(details["names"]), "forms": tuple(details["forms"])})


def compact(name: str) -> str:
    """A column name as it is compared here."""
    return re.sub(r"[\s._\-/\[\]()]+", "", name.casefold())


def box_columns(
    header: Sequence[str], asked: str, units: str, taken: Iterable[str] = (), samples: Samples = no_samples
) -> BoxColumns | None:
    """The columns of the boxes; None when there are none, or when they are not wanted.

    asked: the option ``--box_format``. taken: columns that play another part. samples: some cells of a column.
    """
    if asked == "none":
        return None
    used = set(taken)
    free = {compact(name): name for name in reversed(header) if name not in used}
    told = (asked,) if asked != "auto" else ()
    is_told = bool(told)
    for prefix in _PREFIXES:
        names = tuple(free.get(prefix + part, "") for part in _CORNERS)
        if all(names):
            return BoxColumns("corners", names, (XYXY,), units)
    for forms, parts in _QUADRUPLES:
        for prefix in _PREFIXES:
            names = tuple(free.get(prefix + part, "") for part in parts)
            if all(names):
                known = forms if not prefix or len(forms) == 1 else (XYWH,)  # makesense: bbox_x, bbox_y, bbox_width ...
                return BoxColumns("columns", names, told or known, units, is_told)
    if _VIA in free:
        return BoxColumns("via", (free[_VIA],), (XYWH,), "pixels")
    for key, name in free.items():
        if (key in _OBJECTS or key in _WEAK) and not any(map(_is_structure, samples(name))):
            continue
        if key in _OBJECTS:
            return BoxColumns("objects", (name,), told or (XYXY, XYWH), units, is_told)
        stated = next((_STATED[key.removeprefix(word)] for word in _STRONG if key.removeprefix(word) in _STATED), "")
        if stated or key in _STRONG or key in _WEAK:
            forms = told or ((stated,) if stated else FORMS)
            return BoxColumns("cell", (name,), forms, units, is_told)
    return None


def missing_side(header: Sequence[str]) -> str:
    """What to say of columns that are three sides of a box; nothing when there are no such columns."""
    free = {compact(name): name for name in header}
    for forms, parts in _QUADRUPLES:
        for prefix in _PREFIXES if forms == (XYXY,) else ():
            found = [free[prefix + part] for part in parts if prefix + part in free]
            if len(found) == 3:
                absent = next(part for part in parts if prefix + part not in free)
                return f"the columns {', '.join(found)} are three sides of a box, and there is no {prefix}{absent}"
    return ""


def _is_structure(value: Any) -> bool:
    return (isinstance(value, str) and _LIST.match(value) is not None) or isinstance(value, list | tuple | dict)
