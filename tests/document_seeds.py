"""Small valid documents of every annotated format, as trees that can be changed anywhere, and how they are counted.

A tree is made of dicts, lists and values; ``render`` makes the files of it. ``objects`` counts, by the origin of the
row or by the name of the picture, what the rendered files hold, in another way than the package reads them.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from beam_tfrecord.manifests.base import ManifestFormat
from beam_tfrecord.manifests.formats.coco import CocoFormat
from beam_tfrecord.manifests.formats.jsonl import JsonlFormat
from beam_tfrecord.manifests.formats.openimages import OpenImagesFormat
from beam_tfrecord.manifests.formats.table import CsvFormat
from beam_tfrecord.manifests.formats.vertex import VertexFormat
from beam_tfrecord.manifests.formats.voc import VocFormat
from beam_tfrecord.manifests.formats.yolo import YoloFormat

Path = tuple[Any, ...]  # keys and places from the outermost value of a tree to one inside
Files = Mapping[str, bytes]
Parts = Counter[tuple[str, str]]  # objects by (origin or picture, kind)
ROOT = "/m"


@dataclass(frozen=True)
class Seed:
    """A valid document. uri: what is converted. owners: the pictures that a node of the tree speaks of; None: any.

    by_picture: objects are counted by the name of the picture, not by the origin of its row.
    """

    name: str
    format: ManifestFormat
    uri: str
    tree: Any
    render: Callable[[Any], Files]
    objects: Callable[[Files], Parts]
    owners: Callable[[Any, Path], frozenset[str] | None]
    by_picture: bool = False
    options: tuple[tuple[str, str], ...] = ()


def spelled(value: Any) -> str:
    """A value as the cell of a text file; bytes that are no UTF-8 for half of a surrogate pair."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# ---------------------------------------------------------------------------------------------------------------------
# COCO

SQUARE = [4, 4, 30, 4, 30, 30, 4, 30]
PICTURES = ("a.png", "b.png", "c.png")
COCO_IMAGES = [{"id": n, "file_name": name, "width": 64, "height": 48} for n, name in enumerate(PICTURES, 1)]
COCO_CATEGORIES: list[dict[str, Any]] = [
    {"id": 1, "name": "fox", "supercategory": "none"},
    {"id": 7, "name": "hen", "supercategory": "bird"},
]


def coco_tree(annotations: list[dict[str, Any]], categories: Any = COCO_CATEGORIES) -> dict[str, Any]:
    numbered = [{"id": number, **annotation} for number, annotation in enumerate(annotations, start=1)]
    return {
        "info": {"year": 2024},
        "licenses": [{"id": 1, "name": ""}],
        "images": COCO_IMAGES,
        "annotations": numbered,
        "categories": categories,
    }


def boxes_tree() -> Any:
    runs = {"size": [48, 64], "counts": [100, 60, 2912]}
    return coco_tree(
        [
            {"image_id": 1, "category_id": 1, "bbox": [4, 4, 26, 26], "area": 676.0, "iscrowd": 0},
            {"image_id": 1, "category_id": 7, "bbox": [4, 4, 26, 26], "segmentation": [SQUARE], "iscrowd": 0},
            {"image_id": 2, "category_id": 7, "bbox": [1.5, 2.5, 9, 9], "attributes": {"occluded": False}},
            {"image_id": 2, "category_id": 1, "segmentation": runs, "bbox": [2, 4, 2, 40], "iscrowd": 1},
        ]
    )


def keypoints_tree() -> Any:
    points = [{"id": 1, "name": "fox", "keypoints": ["nose", "tail"], "skeleton": [[1, 2]]}]
    one = {"category_id": 1, "bbox": [4, 4, 26, 26], "keypoints": [5, 5, 2, 0, 0, 0], "num_keypoints": 1}
    return coco_tree([{"image_id": 1, **one}, {"image_id": 3, **one}], points)


def captions_tree() -> Any:
    return coco_tree([{"image_id": n, "caption": f"picture {n}"} for n in (1, 1, 3)], [])


def mixed_tree() -> Any:
    return coco_tree(
        [
            {"image_id": 1, "category_id": 1, "bbox": [4, 4, 26, 26], "caption": "a fox"},
            {"image_id": 2, "category_id": 7, "bbox": [4, 4, 26, 26], "segmentation": [SQUARE], "caption": "a hen"},
            {"image_id": 2, "caption": "no box"},
        ]
    )


def labels_tree() -> Any:
    return coco_tree([{"image_id": 1, "category_id": 1}, {"image_id": 2, "category_id": 7}])


def panoptic_tree() -> Any:
    segments = [{"id": 1, "category_id": 1, "iscrowd": 0}, {"id": 2, "category_id": 7, "iscrowd": 0}]
    return coco_tree([{"image_id": n, "file_name": "m.png", "segments_info": segments} for n in (1, 2)])


def _coco_id(value: Any) -> str:
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)


def coco_objects(files: Files) -> Parts:
    """As the document says: what is none of the others is a label."""
    parts: Parts = Counter()
    for annotation in json.loads(files[f"{ROOT}/a.json"]).get("annotations", []):
        if not isinstance(annotation, dict):
            parts["(no image_id)", "boxes"] += 1
            continue
        image = f"image {_coco_id(annotation.get('image_id'))}"
        before = parts.total()
        parts[image, "captions"] += annotation.get("caption") is not None
        segments = annotation.get("segments_info")
        parts[image, "segments"] += len(segments) if isinstance(segments, list) else segments is not None
        has_box = any(annotation.get(key) not in (None, []) for key in ("bbox", "segmentation", "keypoints"))
        parts[image, "boxes"] += has_box
        parts[image, "labels"] += not has_box and (annotation.get("category_id") is not None or parts.total() == before)
    return parts


def coco_owners(tree: Any, path: Path) -> frozenset[str] | None:
    if len(path) < 2 or path[0] not in ("images", "annotations") or not isinstance(path[1], int):
        return None if path[:1] in ((), ("images",), ("annotations",), ("categories",)) else frozenset()
    number = int(float(tree[path[0]][path[1]]["image_id" if path[0] == "annotations" else "id"]))
    return frozenset({PICTURES[number - 1]} if 0 < number <= len(PICTURES) else ())


def coco_seed(name: str, tree: Any) -> Seed:
    return Seed(
        f"coco {name}",
        CocoFormat(),
        f"{ROOT}/a.json",
        tree,
        lambda tree: {f"{ROOT}/a.json": json.dumps(tree).encode()},
        coco_objects,
        coco_owners,
    )


# ---------------------------------------------------------------------------------------------------------------------
# One JSON object to a line


def render_lines(tree: Any) -> Files:
    return {f"{ROOT}/a.jsonl": "".join(json.dumps(line) + "\n" for line in tree).encode()}


def line_owners(tree: Any, path: Path) -> frozenset[str] | None:
    line = tree[path[0]] if path else {}
    name = line.get("image", line.get("imageGcsUri")) if isinstance(line, dict) else ""
    return frozenset({name}) if path else None


VERTEX_LINES = [
    {
        "imageGcsUri": "a.png",
        "classificationAnnotation": {"displayName": "fox", "annotationResourceLabels": {"a": "b"}},
        "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "training"},
    },
    {
        "imageGcsUri": "b.png",
        "boundingBoxAnnotations": [
            {"displayName": "hen", "xMin": 0.1, "yMin": 0.1, "xMax": 0.5, "yMax": 0.5},
            {"displayName": "fox", "xMin": 0.2, "yMin": 0.25, "xMax": 0.75, "yMax": 1.0},
        ],
    },
    {"imageGcsUri": "c.png", "classificationAnnotations": [{"displayName": "fox"}, {"displayName": "hen"}]},
]
TABLE_LINES = [
    {"image": "a.png", "label": "fox", "split": "train", "year": 2020, "tags": ["x", "y"], "note": "n"},
    {"image": "b.png", "label": ["fox", "hen"], "split": "test", "year": 2021, "tags": [], "note": ""},
    {"image": "c.png", "label": "hen", "split": "train", "year": -1, "tags": ["z"], "note": "ö"},
]
COLUMNS = (("columns", "year:int64,tags:string[],note:string"),)


def vertex_objects(files: Files) -> Parts:
    parts: Parts = Counter()
    for number, line in enumerate(files[f"{ROOT}/a.jsonl"].splitlines(), start=1):
        value = json.loads(line)
        if isinstance(value, dict):
            for key, kind in (("boundingBoxAnnotations", "boxes"), ("classificationAnnotations", "labels")):
                given = value.get(key)
                parts[str(number), kind] += len(given) if isinstance(given, list | dict | str) else given is not None
            parts[str(number), "labels"] += value.get("classificationAnnotation") is not None
    return parts


def table_objects(files: Files) -> Parts:
    parts: Parts = Counter()
    for number, line in enumerate(files[f"{ROOT}/a.jsonl"].splitlines(), start=1):
        value = json.loads(line)
        if isinstance(value, dict):
            label = value.get("label")
            parts[str(number), "labels"] += len(label) if isinstance(label, list) else "label" in value
    return parts


# ---------------------------------------------------------------------------------------------------------------------
# CSV


def render_csv(tree: Any) -> Files:
    stream = io.StringIO()
    for row in tree:
        csv.writer(stream).writerow([spelled(cell) for cell in row] if isinstance(row, list) else [spelled(row)])
    return {f"{ROOT}/a.csv": encoded(stream.getvalue())}


OPEN_IMAGES = [
    ["ImageID", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax", "IsOccluded"],
    ["a", "/m/fox", "1", "0.1", "0.5", "0.2", "0.75", "0"],
    ["b", "/m/hen", "1", "0.1", "0.5", "0.2", "0.75", "-1"],
    ["c", "/m/fox", "0.5", "0.25", "0.5", "0.25", "0.5", "1"],
    ["a", "/m/hen", "1", "0", "1", "0", "1", "0"],
]
VERTEX_CSV = [
    ["TRAIN", "a.png", "fox", "0.1", "0.2", "", "", "0.5", "0.75", "", ""],
    ["TEST", "b.png", "hen", "0.1", "0.2", "", "", "0.5", "0.75", "", ""],
    ["UNASSIGNED", "c.png", "", "", "", "", "", "", "", "", ""],
    ["TRAIN", "a.png", "hen", "0.25", "0.25", "0.5", "0.25", "0.5", "0.5", "0.25", "0.5"],
]
BOX_TABLE = [
    ["filename", "width", "height", "class", "xmin", "ymin", "xmax", "ymax", "difficult"],
    ["a.png", "64", "48", "fox", "4", "4", "30", "30", "0"],
    ["b.png", "64", "48", "hen", "1", "2", "3", "4", "1"],
    ["c.png", "64", "48", "fox", "1", "2", "3.5", "4", ""],
    ["a.png", "64", "48", "hen", "0", "0", "64", "48", "0"],
]


def csv_owners(image: int, has_header: bool) -> Callable[[Any, Path], frozenset[str] | None]:
    def owners(tree: Any, path: Path) -> frozenset[str] | None:
        if not path or (has_header and path[0] == 0):
            return None
        name = tree[path[0]][image]
        # Without any whole line with a box, a Vertex file is one of labels, and lines without a label are others.
        return frozenset({name if name.endswith(".png") else f"{name}.png"} | (set() if has_header else {"c.png"}))

    return owners


def no_objects(files: Files) -> Parts:
    """Lines are counted by themselves: every one is in a row or in a reject."""
    return Counter()


# ---------------------------------------------------------------------------------------------------------------------
# Folders: YOLO and VOC


def render_yolo(tree: Any) -> Files:
    files = {f"{ROOT}/images/{name}": b"" for name in PICTURES}
    names = tree["names"]
    files[f"{ROOT}/data.yaml"] = encoded(f"train: {json.dumps(tree['train'])}\nnames: {json.dumps(names)}\n")
    for name, lines in (tree["labels"] if isinstance(tree["labels"], dict) else {}).items():
        rows = lines if isinstance(lines, list) else [[lines]]
        text = "\n".join(" ".join(map(spelled, row if isinstance(row, list) else [row])) for row in rows)
        files[f"{ROOT}/labels/{name}.txt"] = encoded(text)
    return files


YOLO = {
    "train": "images",
    "names": ["fox", "hen"],
    "labels": {
        "a": [["0", "0.5", "0.5", "0.25", "0.25"], ["1", "0.25", "0.25", "0.125", "0.25"]],
        "b": [["1", "0.1", "0.1", "0.5", "0.1", "0.5", "0.5"]],
        "c": [],
    },
}


def yolo_objects(files: Files) -> Parts:
    """Label files that belong to no picture are no objects: the account of the input tells of them."""
    parts: Parts = Counter()
    for name, data in files.items():
        if name.endswith(".txt"):
            stem = name.removeprefix(f"{ROOT}/labels/").removesuffix(".txt")
            count = sum(bool(line.strip()) for line in data.decode("utf-8", "replace").split("\n"))
            if f"{stem}.png" in PICTURES:
                parts[f"{stem}.png", "boxes"] += count
    return parts


def yolo_owners(tree: Any, path: Path) -> frozenset[str] | None:
    return frozenset({f"{path[1]}.png"}) if len(path) > 1 and path[0] == "labels" else None


def _elements(node: Any) -> str:
    """[name, text or list of nodes] as XML."""
    if not (isinstance(node, list) and len(node) == 2 and isinstance(node[0], str)):
        return _escaped(spelled(node))
    name, inner = node
    body = "".join(map(_elements, inner)) if isinstance(inner, list) else _escaped(spelled(inner))
    return f"<{name}>{body}</{name}>\n"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def render_voc(tree: Any) -> Files:
    files = {f"{ROOT}/JPEGImages/{name}": b"" for name in PICTURES}
    for name, node in (tree if isinstance(tree, dict) else {}).items():
        files[f"{ROOT}/Annotations/{name}.xml"] = encoded(_elements(node))
    return files


def voc_tree() -> Any:
    def box(name: str, *sides: int) -> Any:
        corners = [[side, str(place)] for side, place in zip(("xmin", "ymin", "xmax", "ymax"), sides, strict=True)]
        return ["object", [["name", name], ["pose", "Left"], ["difficult", "0"], ["bndbox", corners]]]

    def picture(name: str, *boxes: Any) -> Any:
        size = ["size", [["width", "64"], ["height", "48"], ["depth", "3"]]]
        return ["annotation", [["folder", "x"], ["filename", name], size, *boxes]]

    return {
        "a": picture("a.png", box("fox", 4, 4, 30, 30), box("hen", 1, 2, 3, 4)),
        "b": picture("b.png", box("hen", 0, 0, 64, 48)),
        "c": picture("c.png"),
    }


def voc_objects(files: Files) -> Parts:
    parts: Parts = Counter()
    for name, data in files.items():
        if name.endswith(".xml"):
            try:
                count = len(ElementTree.fromstring(data).findall("object"))
            except (ElementTree.ParseError, UnicodeError):
                count = 1
            parts[name, "boxes"] += count
    return parts


def voc_owners(tree: Any, path: Path) -> frozenset[str] | None:
    return frozenset({f"{path[0]}.png"}) if path else None


def seeds() -> Iterator[Seed]:
    """All valid documents."""
    trees = {
        "boxes": boxes_tree(),
        "keypoints": keypoints_tree(),
        "captions": captions_tree(),
        "mixed": mixed_tree(),
        "labels": labels_tree(),
        "panoptic": panoptic_tree(),
    }
    for name, tree in trees.items():
        yield coco_seed(name, tree)
    lines = f"{ROOT}/a.jsonl"
    yield Seed("vertex json", VertexFormat(), lines, VERTEX_LINES, render_lines, vertex_objects, line_owners)
    yield Seed("jsonl", JsonlFormat(), lines, TABLE_LINES, render_lines, table_objects, line_owners, options=COLUMNS)
    table = f"{ROOT}/a.csv"
    for name, format, tree, image, has_header in (
        ("open images", OpenImagesFormat(), OPEN_IMAGES, 0, True),
        ("vertex csv", VertexFormat(), VERTEX_CSV, 1, False),
        ("box table", CsvFormat(), BOX_TABLE, 0, True),
    ):
        yield Seed(name, format, table, tree, render_csv, no_objects, csv_owners(image, has_header))
    yield Seed("yolo", YoloFormat(), f"{ROOT}/data.yaml", YOLO, render_yolo, yolo_objects, yolo_owners, True)
    yield Seed("voc", VocFormat(), ROOT, voc_tree(), render_voc, voc_objects, voc_owners)
