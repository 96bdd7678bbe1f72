"""VisDrone's label files of detection in images (source: the README of VisDrone2018-DET-toolkit).

A line is ``left,top,width,height,score,category,truncation,occlusion``, in pixels. A score of 0 marks what does not
count: ignored regions (category 0) and others (11). Truncation is 0 or 1, occlusion 0, 1 (partly) or 2 (heavily).
The files lie in ``annotations``, the images in ``images``.
"""

from __future__ import annotations

from collections.abc import Sequence

from beam_tfrecord.manifests.label_files import LabelLinesFormat
from beam_tfrecord.manifests.outlines import numbers_of
from beam_tfrecord.manifests.picture_labels import PictureLabels

CLASSES = (
    *("ignored regions", "pedestrian", "people", "bicycle", "car", "van", "truck", "tricycle", "awning-tricycle"),
    *("bus", "motor", "others"),
)
_VALUES = 8
_RANGES = {4: (0, 1), 5: range(len(CLASSES)), 6: (0, 1, 2), 7: (0, 1, 2)}


class VisdroneFormat(LabelLinesFormat):
    """Label files of VisDrone-DET and their images, or one file."""

    name = "visdrone"

    def cells(self, line: str) -> list[str] | None:
        cells = [cell.strip() for cell in line.strip().removesuffix(",").split(",")]
        if len(cells) != _VALUES or not all(cell.removeprefix("-").isdecimal() for cell in cells):
            return None
        return cells if all(int(cells[place]) in known for place, known in _RANGES.items()) else None

    def add(self, cells: Sequence[str], where: str, labels: PictureLabels) -> None:
        left, top, width, height, score, category, truncation, occlusion = map(int, numbers_of(cells, where))
        name = CLASSES[category]
        if not score or not category:
            why = "its score is 0" if not score else f"its category is {category}"
            labels.leave_out(where, name, f"{why}: it does not count")
            return
        labels.attribute("truncation", is_stored=True, where=where)
        labels.attribute("occlusion", is_stored=True, where=where)
        labels.store(
            {
                "class": name,
                "bbox_xywh": [left, top, width, height],
                "truncated": int(truncation > 0),
                "occluded": int(occlusion > 0),
                "origin": where,
            }
        )
