"""DOTA's label files of rotated boxes (source: captain-whu.github.io/DOTA/dataset.html and DOTA_devkit).

A line is ``x1 y1 x2 y2 x3 y3 x4 y4 category difficult``: four corners in pixels, clockwise, and a flag, which old files
leave out. Before them may stand ``imagesource:GoogleEarth`` and ``gsd:0.146343590398`` (metres a pixel, or null), which
have no features in records. The four corners are kept as the outline of the object; the box is the one around them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from beam_tfrecord.annotations.cells import is_number
from beam_tfrecord.manifests.label_files import LabelLinesFormat
from beam_tfrecord.manifests.outlines import numbers_of
from beam_tfrecord.manifests.picture_labels import PictureLabels, bad

_HEAD = re.compile(r"(?:imagesource|gsd|acquisition_?dates?)\s*:", re.IGNORECASE)
_VALUES = (9, 10)
_CORNERS = 8
_NUMBER = re.compile(r"[-+]?\.?\d+(?:\.\d*)?")


class DotaFormat(LabelLinesFormat):
    """Label files of DOTA and their images, or one file."""

    name = "dota"

    def cells(self, line: str) -> list[str] | None:
        if _HEAD.match(line.strip()):
            return []
        cells = line.split()
        if len(cells) not in _VALUES or not all(map(is_number, cells[:_CORNERS])) or _NUMBER.fullmatch(cells[_CORNERS]):
            return None
        return cells

    def add(self, cells: Sequence[str], where: str, labels: PictureLabels) -> None:
        outline = numbers_of(cells[:_CORNERS], where)
        box: dict[str, Any] = {"class": cells[_CORNERS], "polygons": [outline], "origin": where}
        for flag in cells[_CORNERS + 1 :]:
            (value,) = numbers_of([flag], where)
            if value not in (0, 1, 2):
                raise bad(where, f"has the difficulty {flag}, not 0 or 1")
            box["difficult"] = int(value > 0)
            labels.attribute("difficult", is_stored=True, where=where)
        labels.store(box)
