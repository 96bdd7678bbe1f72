"""Small collections of each kind, and the call that converts them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from beam_tfrecord import convert
from tests.annotation_tools import png as png_of
from tests.annotation_tools import write
from tests.samples import CLASSES, class_folders, draw_shape, jpeg, noise, painted_boxes, png, write_files, write_table

Options = dict[str, Any]
BOXES = {"a.png": [("cat", 10, 8, 60, 48), ("dog", 0, 0, 160, 120)], "b.png": [("dog", 50, 40, 150, 70)]}
OUTLINE = [20.0, 10.0, 140.0, 12.0, 90.0, 110.0]
KEYPOINTS = [30, 20, 2, 80, 60, 1]


def classes(folder: Path) -> tuple[Any, Options]:
    """Twelve JPEGs of one size in three classes: nine to train with, in three files, and three to validate."""
    files = class_folders(per_class=4)
    write_files(folder, files)
    rows = [("image", "label", "split")]
    rows += [(name, name.partition("/")[0], "validation" if "_3" in name else "train") for name in files]
    return write_table(folder / "data.csv", rows), {"num_shards": "train=3,validation=1"}


def sizes(folder: Path) -> tuple[Any, Options]:
    """JPEGs of different sizes."""
    for number in range(6):
        label = CLASSES[number % 3]
        write(folder / label / f"{number}.jpg", jpeg(draw_shape(label, number, 40 + 7 * number, 60 - 4 * number).image))
    return folder, {}


def channels(folder: Path) -> tuple[Any, Options]:
    """A grey, a colour and a half transparent PNG, and a JPEG."""
    write(folder / "x/grey.png", png(Image.fromarray(noise(8, 6, 1, 1)[:, :, 0])))
    write(folder / "x/colour.png", png(Image.fromarray(noise(8, 6, 2, 3))))
    write(folder / "x/alpha.png", png(Image.fromarray(noise(8, 6, 3, 4))))
    write(folder / "x/photo.jpg", jpeg(Image.fromarray(noise(8, 6, 4, 3))))
    return folder, {}


def deep(folder: Path) -> tuple[Any, Options]:
    """Grey PNGs of 16 bits."""
    for number in range(3):
        values = np.random.default_rng(number).integers(0, 65536, (6, 8)).astype(np.uint16)
        write(folder / f"x/{number}.png", png(Image.fromarray(values)))
    return folder, {}


def raw(folder: Path) -> tuple[Any, Options]:
    """Raw pixels, 8 bits."""
    for number in range(4):
        write(folder / f"{'xy'[number % 2]}/{number}.png", png(Image.fromarray(noise(8 + number, 6, number))))
    return folder, {"image_format": "raw"}


def raw_deep(folder: Path) -> tuple[Any, Options]:
    """Raw pixels, of 8 bits and of 16."""
    deep(folder)
    write(folder / "x/narrow.png", png(Image.fromarray(noise(8, 6, 9, 1)[:, :, 0])))
    return folder, {"image_format": "raw"}


def boxes(folder: Path) -> tuple[Any, Options]:
    """Two images with boxes."""
    lines: list[tuple[Any, ...]] = [("filename", "width", "height", "class", "xmin", "ymin", "xmax", "ymax")]
    for name, objects in BOXES.items():
        write(folder / name, png(painted_boxes(160, 120, [box for _, *box in objects])))  # type: ignore[misc]
        lines += [(name, 160, 120, *values) for values in objects]
    return write_table(folder / "boxes.csv", lines), {}


def objects(folder: Path) -> tuple[Any, Options]:
    """COCO: masks and keypoints of one object, of two, and of none; the image of the two is larger."""
    for name, width in zip("abc", (160, 200, 160), strict=True):
        write(folder / f"images/{name}.png", png(painted_boxes(width, 120, [(20, 10, 140, 110)])))
    found = {"category_id": 1, "bbox": [20, 10, 120, 100], "segmentation": [OUTLINE]}
    annotations = [
        {**found, "image_id": 1, "keypoints": KEYPOINTS},
        {**found, "image_id": 2, "keypoints": KEYPOINTS},
        {**found, "image_id": 2},
    ]
    widths = (160, 200, 160)
    document = {
        "images": [
            {"id": n, "file_name": f"{name}.png", "width": width, "height": 120}
            for n, (name, width) in enumerate(zip("abc", widths, strict=True), start=1)
        ],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "thing", "keypoints": ["nose", "tail"]}],
    }
    return write(folder / "instances.json", document), {"images": str(folder / "images")}


def masks(folder: Path) -> tuple[Any, Options]:
    """Images with a mask, one of them of 16 bits."""
    lines = [("image", "label", "mask")]
    for number in range(3):
        write(folder / f"{number}.png", png(Image.fromarray(noise(8, 6, number))))
        values = np.full((6, 8), 7 + number, np.uint16 if number == 2 else np.uint8)
        values[0] = 40_000 if number == 2 else 255
        write(folder / f"mask_{number}.png", png_of(values))
        lines.append((f"{number}.png", "x", f"mask_{number}.png"))
    return write_table(folder / "data.csv", lines), {"mask_column": "mask"}


def several(folder: Path) -> tuple[Any, Options]:
    """Several labels of an image, one, and lists in further columns."""
    rows = [
        ("image", "label", "age", "tags"),
        ("a.png", "x|z", 7, "p|q"),
        ("b.png", "y", 8, ""),
        ("c.png", "z", 9, "r"),
    ]
    for number, name in enumerate("abc"):
        write(folder / f"{name}.png", png(Image.fromarray(noise(8, 6, number))))
    options = {"label_separator": "|", "columns": "age:int64,tags:string[]"}
    return write_table(folder / "data.csv", rows), options


def table(folder: Path) -> tuple[Any, Options]:
    """Rows without images."""
    rows = [("id", "label", "age", "weight", "tags")]
    rows += [(f"r{n}", "xy"[n % 2], n, n / 4, "|".join("pqr"[: n % 4])) for n in range(10)]  # type: ignore[misc]
    columns = "age:int64,weight:float,tags:string[]"
    return write_table(folder / "data.csv", rows), {"columns": columns, "id_column": "id", "label_separator": "|"}


def sequence(folder: Path) -> tuple[Any, Options]:
    """Two clips, of three pictures and of two."""
    rows: list[tuple[Any, ...]] = [("image", "label", "clip", "place", "speed")]
    for clip, length in (("m", 3), ("n", 2)):
        for place in range(length):
            name = f"{clip}{place}.png"
            write(folder / name, png(Image.fromarray(noise(8, 6, 10 * place + length))))
            rows.append((name, "walk" if clip == "m" else "run", clip, place, place / 2))
    options = {"sequence_column": "clip", "order_column": "place", "columns": "speed:float"}
    return write_table(folder / "data.csv", rows), options


def masks_of_some(folder: Path) -> tuple[Any, Options]:
    """Images of which every other one has a mask of 16 bits."""
    lines = [("image", "label", "mask")]
    for number in range(4):
        write(folder / f"{number}.png", png(Image.fromarray(noise(8, 6, number))))
        lines.append((f"{number}.png", "x", "" if number % 2 else f"mask_{number}.png"))
        write(folder / f"mask_{number}.png", png_of(np.full((6, 8), 300 + number, np.uint16)))
    return write_table(folder / "data.csv", lines), {"mask_column": "mask"}


def panoptic(folder: Path) -> tuple[Any, Options]:
    """A panoptic picture of 300 segments, one pixel each, and of 400 classes."""
    ids = 5 * np.arange(1, 301).reshape(15, 20)
    write(folder / "images/a.png", png(Image.fromarray(noise(20, 15, 1))))
    write(folder / "masks/a.png", png_of(np.stack([ids % 256, ids // 256, 0 * ids], axis=-1).astype(np.uint8)))
    document = {
        "images": [{"id": 1, "file_name": "a.png", "width": 20, "height": 15}],
        "annotations": [
            {
                "image_id": 1,
                "file_name": "a.png",
                "segments_info": [{"id": 5 * n, "category_id": 100 + n, "iscrowd": 0} for n in range(1, 301)],
            }
        ],
        "categories": [{"id": 100 + n, "name": f"c{n:03}"} for n in range(1, 401)],
    }
    return write(folder / "masks.json", document), {"images": str(folder / "images")}


KINDS: dict[str, Callable[[Path], tuple[Any, Options]]] = {
    function.__name__: function
    for function in (
        classes,
        sizes,
        channels,
        deep,
        raw,
        raw_deep,
        boxes,
        objects,
        masks,
        masks_of_some,
        panoptic,
        several,
        table,
        sequence,
    )
}


def convert_kind(kind: str, folder: Path, output: str = "", **options: Any) -> Path:
    """The finished dataset of a collection: below a folder, or at a uri."""
    source, own = KINDS[kind](folder / "in")
    summary = convert(str(source), output or folder / "out", **{**own, **options})
    assert (summary.status, summary.rejected) == ("published", {})
    return folder / "out"
