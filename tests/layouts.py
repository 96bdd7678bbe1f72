"""How people lay out images and labels, and what is to become of each: cases for the tests and for docs/formats.md.

A case says by itself which pictures it has, with labels, boxes, splits and masks, what is used of its files, and what a
person is told. :func:`seen` says what the planning of a conversion makes of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from beam_tfrecord.conversion.job import plan_job, prepare_job
from beam_tfrecord.conversion.planning.block_reading import read_entries
from beam_tfrecord.core.elements import Entry, RejectedRow
from beam_tfrecord.errors import BeamTfrecordError
from beam_tfrecord.manifests import FORMATS
from beam_tfrecord.manifests.own_outputs import files_beside
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage
from pipelines.summaries import plan_values
from tests.label_files import (
    HEIGHT,
    WIDTH,
    Picture,
    as_csv,
    as_json,
    as_jsonl,
    as_tar,
    as_zip,
    box,
    coco,
    data_yaml,
    names_txt,
    objects,
    picture,
    voc_xml,
    yolo_txt,
)
from tests.samples import write_files

NAMES = ("fox", "hen", "owl")
ROOT = "data"  # the folder of a case


@dataclass(frozen=True)
class Case:
    """One layout.

    name: what people call it. shown: how it looks, for the table of the documentation; that of several lines has one
    path in each. files: by path below the folder ``data``. pictures: what is true, by path. reads: what is read, for
    people; of a refusal the cure. used, named: how many files by use and by reason. warnings: codes. error: what the
    refusal says, in parts. inputs: what --input names, below the folder of the case; the folder ``data`` by default.
    """

    name: str
    shown: tuple[str, ...]
    files: Mapping[str, bytes]
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    format: str = ""
    reads: str = ""
    used: Mapping[str, int] = field(default_factory=dict)
    named: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    inputs: tuple[str, ...] = (ROOT,)
    options: Mapping[str, Any] = field(default_factory=dict)
    converted: bool = False

    def write(self, folder: Path) -> list[str]:
        """Write the files; the places of the inputs."""
        write_files(
            folder,
            {f"{ROOT}/{path}" if not path.startswith("../") else path[3:]: data for path, data in self.files.items()},
        )
        return [str(folder / place) if "=" not in place else _placed(place, folder) for place in self.inputs]


def _placed(place: str, folder: Path) -> str:
    split, _, path = place.partition("=")
    return f"{split}={folder / path}"


@dataclass(frozen=True)
class Seen:
    """What planning says of inputs. pictures: by uri. inputs: as conversion.json has them."""

    pictures: Mapping[str, Picture] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()
    rejects: tuple[tuple[str, str], ...] = ()
    inputs: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    splits: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    rows: int = 0
    excluded: Mapping[str, int] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()


def seen(inputs: Sequence[str], **options: Any) -> Seen:
    """What ``--plan`` and the rows say of inputs, or the error."""
    config = ConvertConfig.from_options({"input": list(inputs), "output": "/tmp/never-written", **options})
    storage = Storage.for_run(config.run)
    try:
        job = prepare_job(config, storage)
        plan = plan_job(job, storage)
    except BeamTfrecordError as error:
        return Seen(error=str(error))
    told = plan_values(plan, job)
    rows, rejects = [], []
    for source in job.sources:
        for piece in FORMATS[source.format].pieces(files_beside(storage, source), source):
            for item in read_entries(piece, job.config, storage, job.choice):
                if isinstance(item, Entry):
                    rows.append((item.uri or "", _picture(item)))
                elif isinstance(item, RejectedRow):
                    rejects.append((item.finding.origin, item.finding.code))
    counts = Counter(uri for uri, _ in rows)
    return Seen(
        dict(rows),
        tuple(sorted(uri for uri, count in counts.items() if count > 1)),
        tuple(rejects),
        tuple(told["inputs"]),
        tuple(sorted(surprise["code"] for one in told["inputs"] for surprise in one["surprises"])),
        {name: split["records"] for name, split in told["splits"].items()},
        rows=told["rows"],
        excluded=told["excluded_by_option"],
        labels=tuple(told["labels"]),
        unmatched=tuple(told["unmatched"]),
    )


def _picture(entry: Entry) -> Picture:
    annotations = entry.annotations
    labels = annotations["label"].names if "label" in annotations else ()
    boxes = annotations.get("boxes")
    mask = annotations.get("semantic_mask")
    return Picture(
        "|".join(labels),
        None if boxes is None else tuple((one.name, _pixels(one)) for one in boxes.objects),
        entry.split or "train",
        mask.uri if mask else "",
    )


def _pixels(one: Any) -> Any:
    x, y = (WIDTH, HEIGHT) if one.normalized else (1, 1)
    return tuple(round(side * scale) for side, scale in zip(one.box, (x, y, x, y), strict=True))


def files_of(told: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    """(files by use, files by reason) in the account of an input."""
    named = {reason: entry["count"] for reason, entry in told["named"].get("files", {}).items()}
    return dict(told["used"].get("files", {})), named


# ---------------------------------------------------------------------------------------------------------------------
# The cases. Letters are pictures: a.jpg is picture 1, b.jpg picture 2 ...

JUNK = {".DS_Store": b"x", "__MACOSX/._a.jpg": b"x", "Thumbs.db": b"x"}


def pics(*paths: str) -> dict[str, bytes]:
    """The pictures of these paths."""
    return {path: picture(number_of(path), "PNG" if path.endswith(".png") else "JPEG") for path in paths}


def number_of(path: str) -> int:
    """The number of a picture: that of the letter it is called by."""
    return ord(path.rpartition("/")[2][0]) - ord("a") + 1


def xml(path: str, *classes: str) -> bytes:
    """The VOC annotation of a picture."""
    return voc_xml(path.rpartition("/")[2], number_of(path), *classes)


def txt(path: str, *classes: str) -> bytes:
    """The YOLO label file of a picture."""
    return yolo_txt(number_of(path), NAMES, *classes)


def boxed(path: str, *classes: str, split: str = "train") -> Picture:
    """A picture with objects of these classes."""
    return Picture("", objects(number_of(path), *classes), split)


def in_coco(**classes: Sequence[str]) -> bytes:
    """The COCO document of pictures by letter."""
    return coco({f"{letter}.jpg": (number_of(letter), names) for letter, names in classes.items()}, NAMES)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _folders()
    yield from _voc()
    yield from _yolo()
    yield from _coco()
    yield from _tables()
    yield from _documents()
    yield from _others()
    yield from _archives()


def _folders() -> Iterator[Case]:
    yield Case(
        "images alone",
        ("x.jpg",),
        pics("a.jpg", "b.jpg"),
        {"a.jpg": Picture(), "b.jpg": Picture()},
        format="folder",
        reads="images without labels",
        used={"image": 2},
    )
    yield Case(
        "class folders",
        ("class/x.jpg",),
        {**pics("fox/a.jpg", "hen/b.jpg"), **JUNK, "README.md": b"read", "paper.pdf": b"%PDF"},
        {"fox/a.jpg": Picture("fox"), "hen/b.jpg": Picture("hen")},
        format="folder",
        reads="labels",
        used={"image": 2},
        named={"junk": 3, "other files .md": 1, "other files .pdf": 1},
        converted=True,
    )
    yield Case(
        "class folders in split folders",
        ("train/class/x.jpg", "val/class/y.jpg"),
        pics("train/fox/a.jpg", "train/hen/b.jpg", "val/hen/c.jpg"),
        {
            "train/fox/a.jpg": Picture("fox"),
            "train/hen/b.jpg": Picture("hen"),
            "val/hen/c.jpg": Picture("hen", split="val"),
        },
        format="folder",
        reads="labels, splits",
        used={"image": 3},
        converted=True,
    )
    yield Case(
        "split folders",
        ("train/x.jpg", "test/y.jpg"),
        pics("train/a.jpg", "Test/b.jpg"),
        {"train/a.jpg": Picture(), "Test/b.jpg": Picture(split="test")},
        format="folder",
        reads="splits",
        used={"image": 2},
    )
    yield Case(
        "images/ in each class folder",
        ("class/images/x.jpg",),
        pics("fox/images/a.jpg", "hen/images/b.jpg"),
        {"fox/images/a.jpg": Picture("fox"), "hen/images/b.jpg": Picture("hen")},
        format="folder",
        reads="labels",
        used={"image": 2},
    )
    yield Case(
        "images at the top beside class folders",
        ("class/x.jpg", "y.jpg"),
        pics("fox/a.jpg", "b.jpg"),
        reads="move the images, or give the parts as several --input",
        error=("the folders make no layout that is understood", "1 images in *", "1 images in fox/*", "--input"),
    )
    yield Case(
        "masks beside images",
        ("images/x.jpg", "masks/x.png"),
        {**pics("images/a.jpg", "images/b.jpg"), "masks/a.png": picture(51, "PNG"), "masks/b.png": picture(52, "PNG")},
        {"images/a.jpg": Picture(mask="masks/a.png"), "images/b.jpg": Picture(mask="masks/b.png")},
        format="folder",
        reads="masks",
        used={"image": 2, "mask": 2},
    )
    yield Case(
        "masks beside images in split folders",
        ("train/images/x.jpg", "train/masks/x.png", "val/images/y.jpg", "val/masks/y.png"),
        {
            **pics("train/images/a.jpg", "val/images/b.jpg"),
            "train/masks/a.png": picture(51, "PNG"),
            "val/masks/b.png": picture(52, "PNG"),
            "val/masks/z.png": picture(53, "PNG"),
        },
        {
            "train/images/a.jpg": Picture(mask="train/masks/a.png"),
            "val/images/b.jpg": Picture(split="val", mask="val/masks/b.png"),
        },
        format="folder",
        reads="masks, splits",
        used={"image": 2, "mask": 2},
        named={"mask that belongs to no image": 1},
    )
    yield Case(
        "masks in folders called after the splits (CamVid)",
        ("train/x.jpg", "trainannot/x.png", "train.txt"),
        {
            **pics("train/a.jpg", "val/b.jpg"),
            "trainannot/a.png": picture(51, "PNG"),
            "valannot/b.png": picture(52, "PNG"),
            "train.txt": b"/train/a.jpg trainannot/a.png\n",
            "all.txt": b"train/a.jpg\nval/b.jpg\n",
        },
        {
            "train/a.jpg": Picture(mask="trainannot/a.png"),
            "val/b.jpg": Picture(split="val", mask="valannot/b.png"),
        },
        format="folder",
        reads="masks, splits; the lists are not read",
        used={"image": 2, "mask": 2},
        named={"names images of the collection": 1, "other files .txt": 1},
        warnings=("labels_not_read",),
    )
    yield Case(
        "masks whose only common folder is called like them (Kvasir-SEG)",
        ("Kvasir-SEG/images/x.jpg", "Kvasir-SEG/masks/x.jpg"),
        {
            **pics("Kvasir-SEG/images/a.jpg", "Kvasir-SEG/images/b.jpg"),
            "Kvasir-SEG/masks/a.jpg": picture(51, "JPEG"),
            "Kvasir-SEG/masks/b.jpg": picture(52, "JPEG"),
        },
        {
            "Kvasir-SEG/images/a.jpg": Picture(mask="Kvasir-SEG/masks/a.jpg"),
            "Kvasir-SEG/images/b.jpg": Picture(mask="Kvasir-SEG/masks/b.jpg"),
        },
        format="folder",
        reads="masks",
        used={"image": 2, "mask": 2},
    )
    yield Case(
        "split folders with numbers (Kaggle's test1, COCO's train2017)",
        ("train/x.jpg", "test1/y.jpg"),
        pics("train/a.jpg", "test1/b.jpg"),
        {"train/a.jpg": Picture(), "test1/b.jpg": Picture(split="test1")},
        format="folder",
        reads="splits",
        used={"image": 2},
    )
    yield Case(
        "a folder called after images",
        ("img_align_celeba/x.jpg",),
        pics("img_align_celeba/a.jpg", "img_align_celeba/b.jpg"),
        {"img_align_celeba/a.jpg": Picture(), "img_align_celeba/b.jpg": Picture()},
        format="folder",
        reads="images without labels",
        used={"image": 2},
    )
    yield Case(
        "label files without an ending (Stanford Dogs)",
        ("Images/class/x.jpg", "Annotation/class/x"),
        {
            **pics("Images/fox/a.jpg", "Images/hen/b.jpg"),
            "Annotation/fox/a": xml("a.jpg", "fox"),
            "Annotation/hen/b": xml("b.jpg", "hen"),
        },
        {"Images/fox/a.jpg": Picture("fox"), "Images/hen/b.jpg": Picture("hen")},
        format="folder",
        reads="labels of the folders; the boxes are not read",
        used={"image": 2},
        named={"looks like labels": 2},
        warnings=("labels_not_read",),
    )
    yield Case(
        "masks apart from the splits (MVTec)",
        ("test/class/x.png", "train/class/y.png", "ground_truth/class/x_mask.png"),
        {
            **pics("train/good/a.png", "test/good/b.png", "test/broken/c.png"),
            "ground_truth/broken/c_mask.png": picture(51, "PNG"),
        },
        {
            "train/good/a.png": Picture("good"),
            "test/good/b.png": Picture("good", split="test"),
            "test/broken/c.png": Picture("broken", split="test", mask="ground_truth/broken/c_mask.png"),
        },
        format="folder",
        reads="labels, masks, splits",
        used={"image": 3, "mask": 1},
    )
    yield Case(
        "a folder of masks whose names are no images'",
        ("photos/x.jpg", "ground_truth/y.png"),
        {**pics("photos/a.jpg", "photos/b.jpg"), "ground_truth/z.png": picture(51, "PNG")},
        {
            "photos/a.jpg": Picture("photos"),
            "photos/b.jpg": Picture("photos"),
            "ground_truth/z.png": Picture("ground_truth"),
        },
        format="folder",
        reads="labels; a warning that these may be masks",
        used={"image": 3},
        warnings=("labels_not_read",),
    )
    yield Case(
        "a text for each image with the tool's prefix (ICDAR)",
        ("x.jpg", "gt_x.txt"),
        {**pics("a.jpg", "b.jpg"), "gt_a.txt": b"1,2,3,4,word", "gt_b.txt": b"1,2,3,4,word"},
        {"a.jpg": Picture(), "b.jpg": Picture()},
        format="folder",
        reads="images without labels; the texts are not read",
        used={"image": 2},
        named={"looks like labels": 2},
        warnings=("labels_not_read",),
    )
    yield Case(
        "a class called masks",
        ("hats/x.jpg", "masks/y.jpg"),
        pics("hats/a.jpg", "masks/b.jpg"),
        {"hats/a.jpg": Picture("hats"), "masks/b.jpg": Picture("masks")},
        format="folder",
        reads="labels",
        used={"image": 2},
    )


def _voc() -> Iterator[Case]:
    devkit = {
        **pics("VOC2012/JPEGImages/a.jpg", "VOC2012/JPEGImages/b.jpg", "VOC2012/JPEGImages/c.jpg"),
        "VOC2012/Annotations/a.xml": xml("a.jpg", "fox"),
        "VOC2012/Annotations/b.xml": xml("b.jpg", "hen", "fox"),
        "VOC2012/ImageSets/Main/train.txt": b"a\n",
        "VOC2012/ImageSets/Main/val.txt": b"b\n",
        "README": b"read",
    }
    yield Case(
        "VOCdevkit",
        ("VOC2012/JPEGImages/x.jpg", "VOC2012/Annotations/x.xml", "VOC2012/ImageSets/Main/train.txt"),
        devkit,
        {
            "VOC2012/JPEGImages/a.jpg": boxed("a.jpg", "fox"),
            "VOC2012/JPEGImages/b.jpg": boxed("b.jpg", "hen", "fox", split="val"),
        },
        format="voc",
        reads="boxes, splits",
        used={"image": 2, "label file": 2, "manifest": 2},
        named={"image that no row names": 1, "other files without an ending": 1},
        warnings=("images_not_named",),
        converted=True,
    )
    yield Case(
        "VOC without lists",
        ("images/x.jpg", "annotations/x.xml"),
        {
            **pics("images/a.jpg", "images/b.jpg"),
            "annotations/a.xml": xml("a.jpg", "fox"),
            "annotations/b.xml": xml("b.jpg"),
        },
        {"images/a.jpg": boxed("a.jpg", "fox"), "images/b.jpg": boxed("b.jpg")},
        format="voc",
        reads="boxes",
        used={"image": 2, "label file": 2},
    )
    yield Case(
        "VOC beside the images",
        ("x.jpg", "x.xml"),
        {**pics("a.jpg", "b.png"), "a.xml": xml("a.jpg", "fox"), "b.xml": xml("b.png", "hen")},
        {"a.jpg": boxed("a.jpg", "fox"), "b.png": boxed("b.png", "hen")},
        format="voc",
        reads="boxes",
        used={"image": 2, "label file": 2},
    )
    yield Case(
        "VOC beside the images in split folders",
        ("train/x.jpg", "train/x.xml", "test/y.jpg", "test/y.xml"),
        {
            **pics("train/a.jpg", "test/b.jpg"),
            "train/a.xml": xml("a.jpg", "fox"),
            "test/b.xml": xml("b.jpg", "hen"),
            "README.dataset.txt": b"read",
        },
        {"train/a.jpg": boxed("a.jpg", "fox"), "test/b.jpg": boxed("b.jpg", "hen", split="test")},
        format="voc",
        reads="boxes, splits",
        used={"image": 2, "label file": 2},
        named={"other files .txt": 1},
        converted=True,
    )
    yield Case(
        "images and annotations in split folders",
        ("train/images/x.jpg", "train/annotations/x.xml", "val/images/y.jpg", "val/annotations/y.xml"),
        {
            **pics("train/images/a.jpg", "val/images/a.jpg"),
            "train/annotations/a.xml": xml("a.jpg", "fox"),
            "val/annotations/a.xml": xml("a.jpg", "hen"),
        },
        {"train/images/a.jpg": boxed("a.jpg", "fox"), "val/images/a.jpg": boxed("a.jpg", "hen", split="val")},
        format="voc",
        reads="boxes, splits",
        used={"image": 2, "label file": 2},
    )
    yield Case(
        "split folders in images/ and annotations/",
        ("images/train/x.jpg", "annotations/train/x.xml", "images/val/y.jpg", "annotations/val/y.xml"),
        {
            **pics("images/train/a.jpg", "images/val/a.jpg"),
            "annotations/train/a.xml": xml("a.jpg", "fox"),
            "annotations/val/a.xml": xml("a.jpg", "hen"),
        },
        {"images/train/a.jpg": boxed("a.jpg", "fox"), "images/val/a.jpg": boxed("a.jpg", "hen", split="val")},
        format="voc",
        reads="boxes, splits",
        used={"image": 2, "label file": 2},
    )
    yield Case(
        "VOC beside the images, in class folders",
        ("class/x.jpg", "class/x.xml"),
        {**pics("fox/a.jpg", "hen/b.jpg"), "fox/a.xml": xml("a.jpg", "fox"), "hen/b.xml": xml("b.jpg", "hen")},
        {"fox/a.jpg": boxed("a.jpg", "fox"), "hen/b.jpg": boxed("b.jpg", "hen")},
        format="voc",
        reads="boxes",
        used={"image": 2, "label file": 2},
    )


def _yolo() -> Iterator[Case]:
    yield Case(
        "YOLO with a data.yaml (Roboflow)",
        ("data.yaml", "train/images/x.jpg", "train/labels/x.txt", "valid/images/y.jpg", "valid/labels/y.txt"),
        {
            **pics("train/images/a.jpg", "valid/images/b.jpg"),
            "train/labels/a.txt": txt("a", "fox", "owl"),
            "valid/labels/b.txt": txt("b", "hen"),
            "data.yaml": data_yaml(
                NAMES, train="../train/images", val="../valid/images", test="../test/images"
            ).replace(b'test: "../test/images"\n', b""),
            "README.roboflow.txt": b"read",
        },
        {"train/images/a.jpg": boxed("a", "fox", "owl"), "valid/images/b.jpg": boxed("b", "hen", split="val")},
        format="yolo",
        reads="boxes, splits",
        used={"image": 2, "label file": 2, "manifest": 1},
        named={"other files .txt": 1},
        converted=True,
    )
    yield Case(
        "YOLO with a yaml (Ultralytics)",
        ("coco8.yaml", "images/train/x.jpg", "labels/train/x.txt", "images/val/y.jpg", "labels/val/y.txt"),
        {
            **pics("images/train/a.jpg", "images/val/b.jpg", "images/val/c.jpg"),
            "labels/train/a.txt": txt("a", "fox"),
            "labels/val/b.txt": txt("b", "hen"),
            "coco8.yaml": data_yaml(NAMES, path="../datasets/coco8", train="images/train", val="images/val"),
        },
        {
            "images/train/a.jpg": boxed("a", "fox"),
            "images/val/b.jpg": boxed("b", "hen", split="val"),
            "images/val/c.jpg": boxed("c", split="val"),
        },
        format="yolo",
        reads="boxes, splits",
        used={"image": 3, "label file": 2, "manifest": 1},
    )
    yield Case(
        "YOLO without a yaml",
        ("train/images/x.jpg", "train/labels/x.txt", "classes.txt"),
        {
            **pics("train/images/a.jpg", "valid/images/b.jpg"),
            "train/labels/a.txt": txt("a", "fox"),
            "valid/labels/b.txt": txt("b", "hen"),
            "classes.txt": names_txt(NAMES),
        },
        {"train/images/a.jpg": boxed("a", "fox"), "valid/images/b.jpg": boxed("b", "hen", split="valid")},
        format="yolo",
        reads="boxes, splits",
        used={"image": 2, "label file": 2, "manifest": 1},
    )
    yield Case(
        "YOLO without a yaml, splits inside",
        ("images/train/x.jpg", "labels/train/x.txt", "classes.txt"),
        {
            **pics("images/train/a.jpg", "images/val/b.jpg"),
            "labels/train/a.txt": txt("a", "fox"),
            "labels/val/b.txt": txt("b", "hen"),
            "classes.txt": names_txt(NAMES),
        },
        {"images/train/a.jpg": boxed("a", "fox"), "images/val/b.jpg": boxed("b", "hen", split="val")},
        format="yolo",
        reads="boxes, splits",
        used={"image": 2, "label file": 2, "manifest": 1},
    )
    yield Case(
        "YOLO without names of classes",
        ("train/images/x.jpg", "train/labels/x.txt"),
        {**pics("train/images/a.jpg"), "train/labels/a.txt": txt("a", "fox")},
        {"train/images/a.jpg": Picture()},
        format="folder",
        reads="splits; the labels are not read",
        used={"image": 1},
        named={"looks like labels": 1},
        warnings=("labels_not_read", "labels_not_read"),
    )
    yield Case(
        "images/ and labels/",
        ("images/x.jpg", "labels/x.txt", "classes.txt"),
        {
            **pics("images/a.jpg", "images/b.jpg"),
            "labels/a.txt": txt("a", "fox"),
            "labels/b.txt": txt("b"),
            "labels/z.txt": txt("z", "hen"),
            "classes.txt": names_txt(NAMES),
            "notes.docx": b"x",
        },
        {"images/a.jpg": boxed("a", "fox"), "images/b.jpg": boxed("b")},
        format="yolo",
        reads="boxes",
        used={"image": 2, "label file": 2, "manifest": 1},
        named={"label file that belongs to no image": 1, "other files .docx": 1},
        converted=True,
    )
    yield Case(
        "YOLO beside the images (LabelImg, YoloLabel)",
        ("x.jpg", "x.txt", "classes.txt"),
        {**pics("a.jpg", "b.jpg"), "a.txt": txt("a", "fox"), "b.txt": txt("b", "hen"), "classes.txt": names_txt(NAMES)},
        {"a.jpg": boxed("a", "fox"), "b.jpg": boxed("b", "hen")},
        format="yolo",
        reads="boxes",
        used={"image": 2, "label file": 2, "manifest": 1},
    )
    cvat = {
        "obj.data": b"classes = 3\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n",
        "obj.names": names_txt(NAMES),
        "train.txt": b"data/obj_train_data/a.jpg\ndata/obj_train_data/b.jpg\n",
        **pics("obj_train_data/a.jpg", "obj_train_data/b.jpg"),
        "obj_train_data/a.txt": txt("a", "fox"),
        "obj_train_data/b.txt": txt("b"),
    }
    yield Case(
        "CVAT's YOLO 1.1",
        ("obj.data", "obj.names", "train.txt", "obj_train_data/x.jpg", "obj_train_data/x.txt"),
        cvat,
        {"obj_train_data/a.jpg": boxed("a", "fox"), "obj_train_data/b.jpg": boxed("b")},
        format="yolo",
        reads="boxes, splits",
        used={"image": 2, "label file": 2, "manifest": 3},
    )
    yield Case(
        "CVAT's YOLO 1.1, zipped",
        ("cvat.zip",),
        {"cvat.zip": as_zip(cvat)},
        {"cvat.zip!/obj_train_data/a.jpg": boxed("a", "fox"), "cvat.zip!/obj_train_data/b.jpg": boxed("b")},
        format="archive",
        reads="boxes, splits",
        used={"image": 2, "label file": 2, "manifest": 3},
        inputs=("data/cvat.zip",),
        converted=True,
    )
    yield Case(
        "a yaml whose labels lie elsewhere",
        ("data.yaml", "images/x.jpg", "annots/x.txt"),
        {
            **pics("images/a.jpg", "images/b.jpg"),
            "annots/a.txt": txt("a", "fox"),
            "annots/b.txt": txt("b", "hen"),
            "data.yaml": data_yaml(NAMES, train="images"),
        },
        {"images/a.jpg": boxed("a"), "images/b.jpg": boxed("b")},
        format="yolo",
        reads="images without objects; YOLO looks for labels/x.txt",
        used={"image": 2, "manifest": 1},
        named={"label file that belongs to no image": 2},
        warnings=("no_label_files",),
    )


def _coco() -> Iterator[Case]:
    split_folders = {
        **pics("train/a.jpg", "train/b.jpg", "valid/c.jpg"),
        "train/_annotations.coco.json": in_coco(a=["fox"], b=["hen", "owl"]),
        "valid/_annotations.coco.json": in_coco(c=["owl"]),
        "README.roboflow.txt": b"read",
    }
    in_splits = {
        "train/a.jpg": boxed("a", "fox"),
        "train/b.jpg": boxed("b", "hen", "owl"),
        "valid/c.jpg": boxed("c", "owl", split="valid"),
    }
    yield Case(
        "COCO in split folders (Roboflow)",
        ("train/x.jpg", "train/_annotations.coco.json", "valid/y.jpg", "valid/_annotations.coco.json"),
        split_folders,
        in_splits,
        format="manifests",
        reads="boxes, splits",
        used={"image": 3, "manifest": 2},
        named={"other files .txt": 1},
        converted=True,
    )
    yield Case(
        "COCO in split folders (Roboflow), zipped",
        ("roboflow.zip",),
        {"roboflow.zip": as_zip(split_folders)},
        {f"roboflow.zip!/{path}": told for path, told in in_splits.items()},
        format="archive",
        reads="boxes, splits",
        used={"image": 3, "manifest": 2},
        named={"other files .txt": 1},
        inputs=("data/roboflow.zip",),
    )
    yield Case(
        "one COCO file among the images",
        ("x.jpg", "instances.json"),
        {**pics("a.jpg", "b.jpg"), "instances.json": in_coco(a=["fox"], b=[])},
        {"a.jpg": boxed("a", "fox"), "b.jpg": boxed("b")},
        format="coco",
        reads="boxes",
        used={"image": 2, "manifest": 1},
    )
    yield Case(
        "COCO as it is published",
        (
            "train2017/x.jpg",
            "val2017/y.jpg",
            "annotations/instances_train2017.json",
            "annotations/instances_val2017.json",
        ),
        {
            **pics("train2017/a.jpg", "val2017/b.jpg"),
            "annotations/instances_train2017.json": in_coco(a=["fox"]),
            "annotations/instances_val2017.json": in_coco(b=["hen"]),
        },
        {"train2017/a.jpg": boxed("a", "fox"), "val2017/b.jpg": boxed("b", "hen", split="val")},
        format="manifests",
        reads="boxes, splits",
        used={"image": 2, "manifest": 2},
        converted=True,
    )
    yield Case(
        "several COCO files of the same images",
        ("train2017/x.jpg", "annotations/instances_train2017.json", "annotations/captions_train2017.json"),
        {
            **pics("train2017/a.jpg", "val2017/b.jpg"),
            "annotations/instances_train2017.json": in_coco(a=["fox"]),
            "annotations/captions_train2017.json": in_coco(a=[]),
        },
        reads="give the one that is wanted, with --images",
        error=(
            "--input DATA/annotations/captions_train2017.json --images DATA/train2017",
            "--input DATA/annotations/instances_train2017.json --images DATA/train2017",
        ),
    )
    yield Case(
        "a COCO file beside the folder of images",
        ("images/x.jpg", "annotations.json"),
        {**pics("images/a.jpg", "images/b.jpg"), "annotations.json": in_coco(a=["fox"], b=["hen"])},
        {"images/a.jpg": boxed("a", "fox"), "images/b.jpg": boxed("b", "hen")},
        format="coco",
        reads="boxes",
        used={"image": 2, "manifest": 1},
    )


def _tables() -> Iterator[Case]:
    yield Case(
        "a table among the images (Hugging Face imagefolder)",
        ("x.jpg", "metadata.csv"),
        {
            **pics("a.jpg", "b.jpg"),
            "metadata.csv": as_csv([("file_name", "label"), ("a.jpg", "fox"), ("b.jpg", "hen")]),
        },
        {"a.jpg": Picture("fox"), "b.jpg": Picture("hen")},
        format="csv",
        reads="labels",
        used={"image": 2, "manifest": 1},
        converted=True,
    )
    yield Case(
        "a table among the images of each split (Hugging Face imagefolder)",
        ("train/x.jpg", "train/metadata.jsonl", "test/y.jpg", "test/metadata.jsonl"),
        {
            **pics("train/a.jpg", "test/a.jpg"),
            "train/metadata.jsonl": as_jsonl([{"file_name": "a.jpg", "label": "fox"}]),
            "test/metadata.jsonl": as_jsonl([{"file_name": "a.jpg", "label": "hen"}]),
        },
        {"train/a.jpg": Picture("fox"), "test/a.jpg": Picture("hen", split="test")},
        format="manifests",
        reads="labels, splits",
        used={"image": 2, "manifest": 2},
        converted=True,
    )
    yield Case(
        "a table beside the folder of images",
        ("images/x.jpg", "labels.csv"),
        {
            **pics("images/a.jpg", "images/b.jpg", "images/c.jpg"),
            "labels.csv": as_csv([("image", "label"), ("images/a.jpg", "fox"), ("images/b.jpg", "hen")]),
            "README.md": b"read",
        },
        {"images/a.jpg": Picture("fox"), "images/b.jpg": Picture("hen")},
        format="csv",
        reads="labels",
        used={"image": 2, "manifest": 1},
        named={"image that no row names": 1, "other files .md": 1},
        warnings=("images_not_named",),
    )
    yield Case(
        "a table beside class folders",
        ("class/x.jpg", "labels.csv"),
        {
            **pics("fox/a.jpg", "hen/b.jpg"),
            "labels.csv": as_csv([("image", "label"), ("fox/a.jpg", "1"), ("hen/b.jpg", "2")]),
        },
        {"fox/a.jpg": Picture("fox"), "hen/b.jpg": Picture("hen")},
        format="folder",
        reads="labels of the folders; the table is not read",
        used={"image": 2},
        named={"looks like labels": 1},
        warnings=("labels_not_read",),
    )
    yield Case(
        "a table deep below class folders",
        ("class/x.jpg", "more/deep/y.jpg", "more/list.csv"),
        {
            **pics("fox/a.jpg", "hen/b.jpg", "more/deep/c.jpg"),
            "more/list.csv": as_csv([("image", "label"), ("deep/c.jpg", "owl")]),
        },
        reads="give the table as --input, or move the images",
        error=("the folders make no layout", "more/list.csv, which names 1 of the 3 images", "give it as --input"),
    )
    yield Case(
        "a table of some images beside class folders",
        ("class/x.jpg", "y.jpg", "list.csv"),
        {**pics("fox/a.jpg", "hen/b.jpg", "c.jpg"), "list.csv": as_csv([("image", "label"), ("c.jpg", "owl")])},
        reads="give the table as --input, or move the images",
        error=("the folders make no layout", "list.csv, which names 1 of the 3 images", "give it as --input"),
    )
    yield Case(
        "a table of all images in any folders",
        ("a/b/x.jpg", "y.jpg", "list.csv"),
        {
            **pics("d/e/a.jpg", "b.jpg"),
            "list.csv": as_csv([("image", "label"), ("d/e/a.jpg", "owl"), ("b.jpg", "fox")]),
        },
        {"d/e/a.jpg": Picture("owl"), "b.jpg": Picture("fox")},
        format="csv",
        reads="labels",
        used={"image": 2, "manifest": 1},
    )
    yield Case(
        "a table that names images without their endings",
        ("images/x.jpg", "train.csv"),
        {
            **pics("images/a.jpg", "images/b.jpg"),
            "train.csv": as_csv([("image_id", "label"), ("a", "fox"), ("b", "hen")]),
        },
        {"images/a.jpg": Picture("fox"), "images/b.jpg": Picture("hen")},
        format="csv",
        reads="labels",
        used={"image": 2, "manifest": 1},
    )
    yield Case(
        "a table with a column of 0 and 1 for each class, as Roboflow and ISIC have it",
        ("images/x.jpg", "_classes.csv"),
        {
            **pics("images/a.jpg", "images/b.jpg"),
            "_classes.csv": as_csv([("filename", " fox", " hen"), ("a.jpg", " 1", " 0"), ("b.jpg", " 0", " 1")]),
        },
        {"images/a.jpg": Picture("fox"), "images/b.jpg": Picture("hen")},
        format="csv",
        reads="labels; a list where an image is of several classes",
        used={"image": 2, "manifest": 1},
    )
    yield Case(
        "a table of which no column is known but the image",
        ("images/x.jpg", "train.csv"),
        {
            **pics("images/a.jpg", "images/b.jpg"),
            "train.csv": as_csv([("image", "fox", "hen"), ("a.jpg", "1", "-1"), ("b.jpg", "0", "1")]),
        },
        {"images/a.jpg": Picture(), "images/b.jpg": Picture()},
        format="csv",
        reads="images without labels; a warning names the columns",
        used={"image": 2, "manifest": 1},
        warnings=("columns_not_read",),
    )
    yield Case(
        "labels that are others, joined",
        ("images/x.jpg", "train.csv"),
        {
            **pics("images/a.jpg", "images/b.jpg"),
            "train.csv": as_csv([("image", "label"), ("a.jpg", "fox"), ("b.jpg", "fox|hen")]),
        },
        {"images/a.jpg": Picture("fox"), "images/b.jpg": Picture("fox|hen")},
        format="csv",
        reads="labels; a warning names `--label_separator`",
        used={"image": 2, "manifest": 1},
        warnings=("doubtful_reading",),
    )
    sides = {number: "\t".join(map(str, box(number))) for number in (1, 2)}
    yield Case(
        "Tiny ImageNet",
        (
            "train/n01/images/x.JPEG",
            "train/n01/n01_boxes.txt",
            "val/images/y.JPEG",
            "val/val_annotations.txt",
            "wnids.txt",
        ),
        {
            **pics("train/n01/images/a.JPEG", "val/images/b.JPEG", "test/images/c.JPEG"),
            "train/n01/n01_boxes.txt": f"a.JPEG\t{sides[1]}\n".encode(),
            "val/val_annotations.txt": f"b.JPEG\tn02\t{sides[2]}\n".encode(),
            "wnids.txt": b"n02\nn01\n",
            "words.txt": b"n01\tgoldfish, Carassius auratus\n",
        },
        {
            "train/n01/images/a.JPEG": Picture("n01", (("n01", box(1)),)),
            "val/images/b.JPEG": Picture("n02", (("n02", box(2)),), split="val"),
            "test/images/c.JPEG": Picture("", None, split="test"),
        },
        format="tiny_imagenet",
        reads="labels, boxes, splits",
        used={"image": 3, "label file": 2, "manifest": 1},
        named={"other files .txt": 1},
    )
    yield Case(
        "a table in each folder of images (GTSRB)",
        ("00000/x.ppm", "00000/GT-00000.csv"),
        {
            **{f"0000{number}/a.ppm": picture(number, "PPM") for number in (1, 2)},
            **{
                f"0000{number}/GT-0000{number}.csv": as_csv(
                    [
                        ("Filename", "Width", "Height", "Roi.X1", "Roi.Y1", "Roi.X2", "Roi.Y2", "ClassId"),
                        ("a.ppm", *map(str, (WIDTH, HEIGHT, *box(number), number))),
                    ]
                ).replace(b",", b";")
                for number in (1, 2)
            },
        },
        {f"0000{number}/a.ppm": Picture("", ((str(number), box(number)),)) for number in (1, 2)},
        format="manifests",
        reads="boxes; the names of the folders are not read",
        used={"image": 2, "manifest": 2},
    )
    yield Case(
        "several tables of one folder",
        ("images/x.jpg", "train.csv", "val.csv"),
        {
            **pics("images/a.jpg", "images/b.jpg"),
            "train.csv": as_csv([("image", "label"), ("images/a.jpg", "fox")]),
            "val.csv": as_csv([("image", "label"), ("images/b.jpg", "hen")]),
        },
        {"images/a.jpg": Picture("fox"), "images/b.jpg": Picture("hen", split="val")},
        format="manifests",
        reads="labels, splits",
        used={"image": 2, "manifest": 2},
    )
    yield Case(
        "a table and another that only lists images (Kaggle's sample_submission.csv)",
        ("train/x.jpg", "test/y.jpg", "train.csv", "sample_submission.csv"),
        {
            **pics("train/a.jpg", "test/b.jpg"),
            "train.csv": as_csv([("image_id", "label"), ("a", "fox")]),
            "sample_submission.csv": as_csv([("image_id", "answer"), ("b", "?")]),
        },
        {"train/a.jpg": Picture("fox")},
        format="csv",
        reads="labels of the first",
        used={"image": 1, "manifest": 1},
        named={"image that no row names": 1, "other files .csv": 1},
        warnings=("images_not_named",),
    )
    yield Case(
        "several tables that tell no splits",
        ("images/x.jpg", "labels_a.csv", "labels_b.csv"),
        {
            **pics("images/a.jpg", "images/b.jpg"),
            "labels_a.csv": as_csv([("image", "label"), ("images/a.jpg", "fox")]),
            "labels_b.csv": as_csv([("image", "label"), ("images/b.jpg", "hen")]),
        },
        reads="an error that names both",
        error=("several manifests", "--input DATA/labels_a.csv --input DATA/labels_b.csv"),
    )
    yield Case(
        "several inputs with one folder of images",
        ("--input train=train.csv --input val=val.csv",),
        {
            **pics("images/a.jpg", "images/b.jpg", "images/c.jpg"),
            "train.csv": as_csv([("image", "label"), ("images/a.jpg", "fox")]),
            "val.csv": as_csv([("image", "label"), ("images/b.jpg", "hen")]),
        },
        {"images/a.jpg": Picture("fox"), "images/b.jpg": Picture("hen", split="val")},
        format="csv",
        reads="labels, splits",
        used={"image": 1, "manifest": 1},
        named={"of another input": 2, "image that no row names": 1},
        warnings=("images_not_named", "images_not_named"),
        inputs=("train=data/train.csv", "val=data/val.csv"),
    )


def _documents() -> Iterator[Case]:
    def captions(letter: str) -> bytes:
        said = {"id": 1, "image_id": 1, "category_id": 0, "caption": f"the picture {letter}"}
        document = {"images": [{"id": 1, "file_name": f"{letter}.jpg"}], "annotations": [said], "categories": []}
        return as_json(document)

    yield Case(
        "captions for each split (COCO, as Datumaro writes it)",
        ("images/train/x.jpg", "annotations/captions_train.json"),
        {
            **pics("images/train/a.jpg", "images/val/b.jpg"),
            "annotations/captions_train.json": captions("a"),
            "annotations/captions_val.json": captions("b"),
        },
        {"images/train/a.jpg": Picture(), "images/val/b.jpg": Picture(split="val")},
        format="manifests",
        reads="captions, splits",
        used={"image": 2, "manifest": 2},
    )
    yield Case(
        "a document of annotations that cannot be read",
        ("images/x.jpg", "annotations.json"),
        {
            **pics("images/a.jpg"),
            "annotations.json": as_json({"images": [], "annotations": [{"category_id": 1, "bbox": [1, 2, 3, 4]}]}),
        },
        reads="an error that says what is wrong with it",
        error=("annotations.json has no categories", "--format folder"),
    )


def _others() -> Iterator[Case]:
    yield Case(
        "a text beside each image (captions)",
        ("x.jpg", "x.txt"),
        {**pics("a.jpg", "b.jpg"), "a.txt": b"a fox in the snow", "b.txt": b"two hens, one owl"},
        {"a.jpg": Picture(), "b.jpg": Picture()},
        format="folder",
        reads="images without labels; the texts are not read",
        used={"image": 2},
        named={"looks like labels": 2},
        warnings=("labels_not_read",),
    )
    own = {
        "out/train-00000-of-00001.tfrecord": b"x" * 40,
        "out/conversion.json": as_json(dict.fromkeys(("rows", "written", "rejected", "splits", "options", "versions"))),
        "out/features.json": b"{}",
        "out/dataset_info.json": b"{}",
        "out/labels.txt": b"fox\nhen\n",
        "out/report.html": b"<html>",
    }
    yield Case(
        "a dataset of this tool among the input",
        ("class/x.jpg", "out/train-00000-of-00001.tfrecord", "out/conversion.json"),
        {**pics("fox/a.jpg", "hen/b.jpg"), **own},
        {"fox/a.jpg": Picture("fox"), "hen/b.jpg": Picture("hen")},
        format="folder",
        reads="labels",
        used={"image": 2},
        named={"output of this tool": 6},
        warnings=("own_output",),
    )
    yield Case(
        "a dataset of this tool in a class folder",
        ("class/x.jpg", "class/out/conversion.json"),
        {**pics("fox/a.jpg", "hen/b.jpg"), **{f"hen/{path}": data for path, data in own.items()}},
        {"fox/a.jpg": Picture("fox"), "hen/b.jpg": Picture("hen")},
        format="folder",
        reads="labels",
        used={"image": 2},
        named={"output of this tool": 6},
        warnings=("own_output",),
    )


def _archives() -> Iterator[Case]:
    by_name = {case.name: case for case in (*_folders(), *_voc(), *_yolo(), *_tables())}
    packed = (
        ("class folders", "photos.zip", as_zip),
        ("class folders in split folders", "photos.tar.gz", as_tar),
        ("VOC beside the images in split folders", "voc.tar", lambda files: as_tar(files, "w")),
        ("YOLO with a data.yaml (Roboflow)", "yolo.zip", as_zip),
        ("images/ and labels/", "yolo.tar.gz", as_tar),
        ("a table beside the folder of images", "table.zip", as_zip),
        ("a table among the images of each split (Hugging Face imagefolder)", "hf.zip", as_zip),
        ("masks beside images in split folders", "masks.zip", as_zip),
    )
    for name, archive, pack in packed:
        case = by_name[name]
        yield replace(
            case,
            name=f"{name}, in {archive}",
            shown=(),
            files={archive: pack(case.files)},
            pictures={
                f"{archive}!/{path}": replace(told, mask=f"{archive}!/{told.mask}" if told.mask else "")
                for path, told in case.pictures.items()
            },
            format="archive",
            inputs=(f"{ROOT}/{archive}",),
            converted=False,
        )
