"""WIDER FACE, SageMaker Ground Truth and Tiny ImageNet, as they are published or exported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import AmbiguousManifestError, ConfigError, ManifestError
from beam_tfrecord.manifests.formats.sagemaker import SagemakerFormat
from beam_tfrecord.manifests.formats.tiny_imagenet import TinyImagenetFormat
from beam_tfrecord.manifests.formats.wider_face import WiderFaceFormat
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS, ATTRIBUTES
from tests.annotation_tools import account_of, fields_by_image, read_items, rejects, write
from tests.contracts import ManifestFormatContract, Sample
from tests.end_to_end.datasets import conversion, converted, records, texts
from tests.samples import jpeg, painted_boxes

# ---------------------------------------------------------------------------------------------------------------------
# WIDER FACE

FACE = "449 330 122 149 0 0 0 0 0 0 \n"


class TestWiderFace(ManifestFormatContract):
    format = WiderFaceFormat()

    def write(self, folder: Path, names: Sequence[str], more: str = "") -> str:
        text = "".join(f"{name}\n1\n{FACE}" for name in names) + more
        return str(write(folder / "wider_face_train_bbx_gt.txt", text))

    def row(self, uri: str, name: str, line: int) -> tuple[str, dict[str, Any]]:
        box = {"class": "face", "bbox_xywh": [449, 330, 122, 149], "occluded": 0, "origin": f"line {line + 2}"}
        return f"{uri}:{line}", {"image": name, "boxes": [box]}

    def sample(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a/b.jpg", "c.jpg"], "d.jpg\n0\n0 0 0 0 0 0 0 0 0 0 \n")
        none = (f"{uri}:7", {"image": "d.jpg", "boxes": []})
        return Sample(uri, [self.row(uri, "a/b.jpg", 1), self.row(uri, "c.jpg", 4), none])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names), [])

    def damaged(self, folder: Path) -> Sample:
        more = f"b.jpg\n2\n{FACE}c.jpg\n1\n1 2 x 4 0 0 0 0 0 0\nd.jpg\ne.jpg\n1\n1 2 3\nf.jpg\n1\n{FACE}"
        uri = self.write(folder, ["a.jpg"], more)
        rows = [self.row(uri, "a.jpg", 1), self.row(uri, "f.jpg", 14)]
        return Sample(uri, rows, [(f"{uri}:{line}", "bad_annotation") for line in (4, 7, 10, 11)])

    def empty(self, folder: Path) -> Sample:
        return Sample(str(write(folder / "a_bbx_gt.txt", "\n")), [])


def test_attributes_of_faces_are_told(tmp_path: Path) -> None:
    uri = write(tmp_path / "a_bbx_gt.txt", "a.jpg\n2\n1 2 3 4 1 1 1 1 2 1\n5 6 7 8\n")
    (row,) = read_items(WiderFaceFormat(), uri)[1]
    assert [box.get("occluded") for box in row.fields["boxes"]] == [1, None]
    ((code, message),) = row.fields["notes"]
    assert (code, "invalid" in message) == ("annotation_ignored", True)
    account = account_of(WiderFaceFormat(), uri)
    assert (account.found[ANNOTATIONS], account.found[ATTRIBUTES]) == (2, 6)


def test_wider_face_as_it_is_downloaded(tmp_path: Path) -> None:
    """Two events, so that their folders could be classes; lists of both splits beside the images."""
    for number, split in enumerate(("train", "val")):
        text = ""
        for event in ("0--Parade", "1--Handshaking"):
            name = f"{event}/{event.replace('--', '_')}_{number}.jpg"
            place = (10 + number, 20, 40, 60)
            picture = painted_boxes(120, 90, [place, (80, 70, 90 + len(event), 80)])
            write(tmp_path / f"wider/WIDER_{split}/images/{name}", jpeg(picture))
            text += f"{name}\n1\n{place[0]} 20 {40 - place[0]} 40 0 0 0 0 0 0 \n"
        write(tmp_path / f"wider/wider_face_split/wider_face_{split}_bbx_gt.txt", text)
    summary = converted(tmp_path / "wider", tmp_path / "out")
    assert summary.splits == {"train": 2, "val": 2}
    for split, left in (("train", 10), ("val", 11)):
        for record in records(tmp_path / "out", split):
            assert texts(record, "image/object/class/text") == ["face"]
            sides = [record[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
            assert np.allclose(sides, [left / 120, 20 / 90, 40 / 120, 60 / 90])


# ---------------------------------------------------------------------------------------------------------------------
# SageMaker; the lines are those of its documentation

DETECTION: dict[str, Any] = {
    "source-ref": "s3://bucket/images/a.jpg",
    "bounding-box": {
        "image_size": [{"width": 500, "height": 400, "depth": 3}],
        "annotations": [
            {"class_id": 0, "left": 111, "top": 134, "width": 61, "height": 128},
            {"class_id": 5, "left": 161, "top": 250, "width": 30, "height": 30},
        ],
    },
    "bounding-box-metadata": {
        "objects": [{"confidence": 0.8}, {"confidence": 0.9}],
        "class-map": {"0": "dog", "5": "bone"},
        "type": "groundtruth/object-detection",
        "human-annotated": "yes",
        "creation-date": "2018-10-18T22:18:13.527256",
        "job-name": "identify-dogs-and-toys",
    },
}
CLASSIFICATION: dict[str, Any] = {
    "source-ref": "s3://bucket/images/a.jpg",
    "species": 0,
    "species-metadata": {
        "class-name": "dog",
        "confidence": 0.00,
        "type": "groundtruth/image-classification",
        "job-name": "identify-animal-species",
        "human-annotated": "yes",
        "creation-date": "2018-10-18T22:18:13.527256",
    },
}
MULTI: dict[str, Any] = {
    "source-ref": "s3://bucket/images/a.jpg",
    "species": [0, 1],
    "species-metadata": {
        "class-map": {"0": "dog", "1": "cat"},
        "confidence-map": {"0": 0.95, "1": 0.77},
        "type": "groundtruth/image-classification-multilabel",
    },
}


def manifest(folder: Path, *lines: Any) -> str:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    return str(write(folder / "output.manifest", text))


class TestSagemaker(ManifestFormatContract):
    format = SagemakerFormat()

    def write(self, folder: Path, names: Sequence[str]) -> str:
        return manifest(folder, *[{**CLASSIFICATION, "source-ref": name} for name in names])

    def sample(self, folder: Path) -> Sample:
        uri = manifest(folder, {**CLASSIFICATION, "source-ref": "a.jpg"}, "", {**CLASSIFICATION, "source-ref": "b.jpg"})
        return Sample(uri, [(f"{uri}:{n}", {"image": f"{c}.jpg", "label": "dog"}) for n, c in ((1, "a"), (3, "b"))])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names), [])

    def damaged(self, folder: Path) -> Sample:
        good = {**CLASSIFICATION, "source-ref": "a.jpg"}
        uri = manifest(folder, good, '{"source-ref": ', {**good, "source-ref": 3}, {"species": 0}, [1], good)
        codes = [(f"{uri}:{line}", "bad_row") for line in (2, 3, 4, 5)]
        return Sample(uri, [(f"{uri}:{line}", {"image": "a.jpg", "label": "dog"}) for line in (1, 6)], codes)

    def empty(self, folder: Path) -> Sample:
        return Sample(manifest(folder, ""), [])


def fields_of(folder: Path, line: Any, **options: Any) -> dict[str, Any]:
    (row,) = read_items(SagemakerFormat(), manifest(folder, line), **options)[1]
    assert isinstance(row, Row), row
    return dict(row.fields)


def test_boxes_of_ground_truth_have_names_and_confidences(tmp_path: Path) -> None:
    fields = fields_of(tmp_path, DETECTION)
    assert fields["size"] == (500, 400)
    assert [(box["class"], box["bbox_xywh"], box["confidence"]) for box in fields["boxes"]] == [
        ("dog", [111, 134, 61, 128], 0.8),
        ("bone", [161, 250, 30, 30], 0.9),
    ]


def test_several_classes_are_several_labels(tmp_path: Path) -> None:
    assert fields_of(tmp_path, MULTI)["label"] == ["dog", "cat"]


def test_manifests_to_train_from_need_no_metadata(tmp_path: Path) -> None:
    assert fields_of(tmp_path, {"source-ref": "s3://b/a.jpg", "class": "7"})["label"] == "7"


def test_two_attributes_of_one_kind_are_asked_about(tmp_path: Path) -> None:
    line = {
        **CLASSIFICATION,
        "colour": 1,
        "colour-metadata": {"class-name": "red", "type": "groundtruth/image-classification"},
    }
    with pytest.raises(AmbiguousManifestError, match="--label_column colour"):
        fields_of(tmp_path, line)
    assert fields_of(tmp_path, line, label_column="colour")["label"] == "red"
    with pytest.raises(ConfigError, match=r"color.*'colour'"):
        fields_of(tmp_path, line, label_column="color")


def test_a_manifest_of_masks_only_is_refused(tmp_path: Path) -> None:
    line = {
        "source-ref": "s3://b/a.jpg",
        "city-ref": "s3://b/a.png",
        "city-ref-metadata": {"internal-color-map": {}, "type": "groundtruth/semantic-segmentation"},
    }
    with pytest.raises(ManifestError, match="neither boxes nor labels"):
        fields_of(tmp_path, line)


def test_a_class_without_name_is_a_reject(tmp_path: Path) -> None:
    line = json.loads(json.dumps(DETECTION))
    del line["bounding-box-metadata"]["class-map"]["5"]
    ((code, message),) = rejects(read_items(SagemakerFormat(), manifest(tmp_path, line))[1])
    assert (code, "5" in message) == ("unknown_category", True)


def test_ground_truth_beside_its_images(tmp_path: Path) -> None:
    """The images were in a bucket, and lie in a folder by now."""
    picture = painted_boxes(500, 400, [(111, 134, 172, 262), (161, 250, 191, 280)])
    write(tmp_path / "job/images/a.jpg", jpeg(picture))
    manifest(tmp_path / "job", DETECTION)
    summary = converted(tmp_path / "job", tmp_path / "out")
    assert summary.written == 1
    (record,) = records(tmp_path / "out")
    assert texts(record, "image/object/class/text") == ["dog", "bone"]
    assert np.allclose(record["image/object/bbox/xmax"], [172 / 500, 191 / 500])
    assert conversion(tmp_path / "out")["inputs"][0]["decisions"][0]["value"] == "sagemaker"


# ---------------------------------------------------------------------------------------------------------------------
# Tiny ImageNet


SIDES = "1\t2\t30\t40\n"


def tiny_imagenet(folder: Path, boxes: str, annotations: str, *images: str) -> str:
    for image in images:
        write(folder / image, b"")
    write(folder / "train/n01/n01_boxes.txt", boxes)
    write(folder / "val/val_annotations.txt", annotations)
    write(folder / "wnids.txt", "n02\nn01\n")
    return str(folder)


class TestTinyImagenet(ManifestFormatContract):
    format = TinyImagenetFormat()

    def row(self, uri: str, path: str, line: int, split: str, code: str, image: str) -> tuple[str, dict[str, Any]]:
        origin = f"{uri}/{path}:{line}"
        box = {"class": code, "bbox": ["1", "2", "30", "40"], "origin": origin}
        return origin, {"image": image, "split": split, "label": code, "boxes": [box]}

    def sample(self, folder: Path) -> Sample:
        images = ("train/n01/images/n01_0.JPEG", "val/images/val_0.JPEG", "test/images/test_0.JPEG")
        uri = tiny_imagenet(folder / "t", f"n01_0.JPEG\t{SIDES}", f"val_0.JPEG\tn02\t{SIDES}", *images)
        rows = [
            (f"{uri}/test/images/test_0.JPEG", {"image": "test/images/test_0.JPEG", "split": "test"}),
            self.row(uri, "train/n01/n01_boxes.txt", 1, "train", "n01", images[0]),
            self.row(uri, "val/val_annotations.txt", 1, "val", "n02", images[1]),
        ]
        return Sample(uri, rows)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        lines = "".join(f"{name}\tn02\t{SIDES}" for name in names)
        return Sample(tiny_imagenet(folder / "t", "", lines, *(f"val/images/{name}" for name in names)), [])

    def damaged(self, folder: Path) -> Sample:
        images = ("train/n01/images/a.JPEG", "train/n01/images/b.JPEG")
        uri = tiny_imagenet(folder / "t", f"a.JPEG\t1\t2\nb.JPEG\t{SIDES}", "", *images)
        boxes = "train/n01/n01_boxes.txt"
        return Sample(uri, [self.row(uri, boxes, 2, "train", "n01", images[1])], [(f"{uri}/{boxes}:1", "bad_row")])

    def empty(self, folder: Path) -> Sample:
        return Sample(tiny_imagenet(folder / "t", "", ""), [])


def test_tiny_imagenet_tells_of_images_that_are_not_there_and_of_lines_that_cannot_be_read(tmp_path: Path) -> None:
    images = ("train/n01/images/a.JPEG", "train/n01/images/c.JPEG", "val/images/v.JPEG", "val/images/w.JPEG")
    uri = tiny_imagenet(tmp_path / "t", "a.JPEG\t1\t2\t3\t4\nb.JPEG\t1\t2\t3\t4\n", "v.JPEG\tn02\t1\t2\t3\n", *images)
    rows, rejects = {}, []
    for item in read_items(TinyImagenetFormat(), uri)[1]:
        if isinstance(item, Row):
            rows[item.fields["image"]] = (
                item.fields.get("label"),
                item.fields["split"],
                len(item.fields.get("boxes", ())),
            )
        else:
            rejects.append(item.finding)
    assert rows == {
        "train/n01/images/a.JPEG": ("n01", "train", 1),
        "train/n01/images/b.JPEG": ("n01", "train", 1),
        "train/n01/images/c.JPEG": ("n01", "train", 0),
        "val/images/w.JPEG": (None, "val", 0),
    }
    assert [(reject.uri, reject.origin.rpartition("/")[2]) for reject in rejects] == [
        ("val/images/v.JPEG", "val_annotations.txt:1")
    ]
    account = account_of(TinyImagenetFormat(), uri)
    assert account.found["files"] == 7
    assert account.uses("images", "with a label file") == 2


def test_a_class_of_tiny_imagenet_without_its_text_of_boxes_is_told(tmp_path: Path) -> None:
    images = ("train/n01/images/a.JPEG", "train/n02/images/b.JPEG", "val/images/v.JPEG", "test/images/t.JPEG")
    uri = tiny_imagenet(tmp_path / "t", f"a.JPEG\t{SIDES}", f"v.JPEG\tn02\t{SIDES}", *images)
    source, items = read_items(TinyImagenetFormat(), uri)
    ((code, message),) = source.surprises
    assert code == "no_label_files"
    assert message.startswith("train/n02/n02_boxes.txt is not there, and so it is with 1 of 2 classes")
    assert fields_by_image(items)["train/n02/images/b.JPEG"] == {
        "image": "train/n02/images/b.JPEG",
        "split": "train",
        "label": "n02",
    }
