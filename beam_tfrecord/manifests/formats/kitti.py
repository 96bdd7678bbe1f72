"""KITTI's label files, of object detection (source: ``readme.txt`` of its development kit, devkit_object.zip).

A line is ``type truncated occluded alpha left top right bottom height width length x y z rotation_y [score]``, the
corners in pixels from 0. ``truncated`` goes from 0 to 1, ``occluded`` is 0, 1 (partly), 2 (largely) or 3 (unknown), and
-1 in files without these. ``DontCare`` is a region whose objects nobody labelled: no object. The values in space
(alpha, dimensions, location, rotation) have no features in records. The files of a split lie in ``label_2``, its images
in ``image_2``; tools such as NVIDIA TAO write ``labels`` and ``images``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from beam_tfrecord.annotations.cells import is_number
from beam_tfrecord.manifests.label_files import LabelLinesFormat
from beam_tfrecord.manifests.outlines import numbers_of
from beam_tfrecord.manifests.picture_labels import PictureLabels, bad

_VALUES = (15, 16)
_NUMBER = re.compile(r"[-+]?[\d.]")
_DONT_CARE = "dontcare"


class KittiFormat(LabelLinesFormat):
    """Label files of KITTI and their images, or one file."""

    name = "kitti"

    def cells(self, line: str) -> list[str] | None:
        cells = line.split()
        is_object = len(cells) in _VALUES and _NUMBER.match(cells[0]) is None and all(map(is_number, cells[4:8]))
        return cells if is_object else None

    def add(self, cells: Sequence[str], where: str, labels: PictureLabels) -> None:
        truncated, occluded, _, *sides = numbers_of(cells[1:], where)[:7]
        name = cells[0]
        if name.casefold() == _DONT_CARE:
            labels.leave_out(where, "DontCare", "a region whose objects are not labelled is no object")
            return
        if occluded not in (-1, 0, 1, 2, 3):
            raise bad(where, f"has occluded {cells[2]}; KITTI has 0, 1, 2, 3, and -1 for none")
        box: dict[str, Any] = {"class": name, "bbox": sides, "origin": where}
        box["truncated"] = -1 if truncated < 0 else int(truncated > 0)
        box["occluded"] = {-1: -1, 3: -1, 0: 0}.get(int(occluded), 1)
        if len(cells) == max(_VALUES):
            (score,) = numbers_of(cells[-1:], where)
            is_share = 0 <= score <= 1
            if is_share:
                box["confidence"] = score
            labels.attribute("score", is_stored=is_share, where=where)
        labels.attribute("truncated", is_stored=True, where=where)
        labels.attribute("occluded", is_stored=True, where=where)
        labels.attribute("alpha, dimensions, location, rotation_y", is_stored=False, where=where)
        labels.store(box)
