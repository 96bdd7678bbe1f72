"""Pictures and label files as tools write them, small and by hand. A picture is known by its number, as are its boxes.

Nothing here uses the code under test: collections of these files are what it is tried on.
"""

from __future__ import annotations

import functools
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from tests import image_samples

WIDTH, HEIGHT = 64, 48
Box = tuple[int, int, int, int]
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Picture:
    """What is true of a picture. objects: (class, box in pixels); None where nothing states objects."""

    label: str = ""
    objects: tuple[tuple[str, Box], ...] | None = None
    split: str = "train"
    mask: str = ""


def box(number: int, place: int = 0) -> Box:
    """The box of an object of a picture: no two pictures below number 600 have the same one."""
    left, top = (number * 7 + place * 11) % 30, (number // 30 * 5 + place * 3) % 20
    return left, top, left + 9 + number % 5, top + 10 + place


def objects(number: int, *classes: str) -> tuple[tuple[str, Box], ...]:
    """The objects of a picture, one of each class named."""
    return tuple((name, box(number, place)) for place, name in enumerate(classes))


@functools.cache
def picture(number: int, kind: str = "JPEG") -> bytes:
    """An image file, another one for each number."""
    return image_samples.save(image_samples.gradient(WIDTH, HEIGHT, seed=number * 3 + 1), kind)


def voc_xml(filename: str, number: int, *classes: str) -> bytes:
    """An annotation of Pascal VOC as LabelImg writes it."""
    parts = [
        f"<object><name>{escape(name)}</name><bndbox><xmin>{x0}</xmin><ymin>{y0}</ymin><xmax>{x1}</xmax>"
        f"<ymax>{y1}</ymax></bndbox></object>"
        for name, (x0, y0, x1, y1) in objects(number, *classes)
    ]
    size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
    return f"<annotation><filename>{escape(filename)}</filename>{size}{''.join(parts)}</annotation>".encode()


def yolo_txt(number: int, names: Sequence[str], *classes: str) -> bytes:
    """A label file of YOLO: a line per object, in fractions."""
    lines = [
        f"{names.index(name)} {(x0 + x1) / 2 / WIDTH:.6f} {(y0 + y1) / 2 / HEIGHT:.6f} {(x1 - x0) / WIDTH:.6f} "
        f"{(y1 - y0) / HEIGHT:.6f}\n"
        for name, (x0, y0, x1, y1) in objects(number, *classes)
    ]
    return "".join(lines).encode()


def coco(numbers: Mapping[str, tuple[int, Sequence[str]]], names: Sequence[str]) -> bytes:
    """A COCO document. numbers: the number of each file, and the classes of its objects."""
    images, annotations = [], []
    for place, (file_name, (number, classes)) in enumerate(numbers.items(), start=1):
        images.append({"id": place, "file_name": file_name, "width": WIDTH, "height": HEIGHT})
        for name, (x0, y0, x1, y1) in objects(number, *classes):
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": place,
                    "category_id": names.index(name),
                    "bbox": [x0, y0, x1 - x0, y1 - y0],
                    "area": (x1 - x0) * (y1 - y0),
                    "iscrowd": 0,
                }
            )
    categories = [{"id": place, "name": name, "supercategory": "none"} for place, name in enumerate(names)]
    return as_json({"info": {}, "images": images, "annotations": annotations, "categories": categories})


def as_json(value: Any) -> bytes:
    """A value as a JSON document."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def as_jsonl(values: Sequence[Any]) -> bytes:
    """Values as JSON Lines."""
    return b"".join(as_json(value) + b"\n" for value in values)


def as_csv(rows: Sequence[Sequence[str]]) -> bytes:
    """Rows as RFC 4180 has them, with quotes where they are needed."""
    return "".join(",".join(map(_quoted, row)) + "\n" for row in rows).encode()


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\n\r') else cell


def names_txt(names: Sequence[str]) -> bytes:
    """Class names, one to a line."""
    return "".join(f"{name}\n" for name in names).encode()


def data_yaml(names: Sequence[str], **parts: str) -> bytes:
    """A data.yaml as Roboflow writes it. parts: places of images by key."""
    lines = [*(f"{key}: {json.dumps(place)}" for key, place in parts.items()), f"nc: {len(names)}"]
    return "\n".join([*lines, f"names: {json.dumps(list(names))}", ""]).encode()


def as_zip(files: Files) -> bytes:
    """The files as a zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def as_tar(files: Files, mode: str = "w:gz") -> bytes:
    """The files as a tar archive, compressed as ``mode`` says."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()
