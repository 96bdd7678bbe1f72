"""The contract of manifest formats, for those that come with annotations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from beam_tfrecord.manifests import siblings
from beam_tfrecord.manifests.formats.coco import CocoFormat
from beam_tfrecord.manifests.formats.openimages import OpenImagesFormat
from beam_tfrecord.manifests.formats.vertex import VertexFormat
from beam_tfrecord.manifests.formats.voc import VocFormat
from beam_tfrecord.manifests.formats.yolo import YoloFormat
from tests.annotation_tools import write
from tests.contracts import ManifestFormatContract, Sample


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "ITEMS_PER_PIECE", 2)


class TestCoco(ManifestFormatContract):
    format = CocoFormat()

    def write(self, folder: Path, names: Sequence[str], annotations: Sequence[Any] = ()) -> str:
        images = [{"id": number, "file_name": name} for number, name in enumerate(names)]
        categories = [{"id": 1, "name": "cat"}]
        document = {"images": images, "annotations": list(annotations), "categories": categories}
        return str(write(folder / "a.json", document))

    def sample(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg"], [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}])
        box = {"origin": "annotations[0]", "class": "cat", "bbox_xywh": [1, 2, 3, 4]}
        return Sample(
            uri,
            [
                (f"{uri}:image 0", {"boxes": [], "image": "a.jpg", "id": "0"}),
                (f"{uri}:image 1", {"boxes": [box], "image": "b.jpg", "id": "1"}),
            ],
        )

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names), [])

    def damaged(self, folder: Path) -> Sample:
        uri = self.write(
            folder,
            ["a.jpg", "", "c.jpg", "d.jpg"],
            [
                {"image_id": 2, "category_id": 9, "bbox": [1, 2, 3, 4]},
                "text",
                {"image_id": 77, "category_id": 1, "bbox": [1, 2, 3, 4]},
            ],
        )
        good = [(f"{uri}:image {n}", {"boxes": [], "image": f"{c}.jpg", "id": str(n)}) for n, c in ((0, "a"), (3, "d"))]
        codes = (
            ("1", "bad_row"),
            ("2", "unknown_category"),
            ("77", "bad_annotation"),
            ("(no image_id)", "bad_annotation"),
        )
        return Sample(uri, good, [(f"{uri}:image {image}", code) for image, code in codes])

    def empty(self, folder: Path) -> Sample:
        return Sample(self.write(folder, []), [])


class TestVoc(ManifestFormatContract):
    format = VocFormat()

    def write(self, folder: Path, names: Sequence[str]) -> str:
        for name in names:
            text = f"<annotation><filename>{escape(name)}</filename></annotation>"
            write(folder / "Annotations" / f"{name.rpartition('.')[0]}.xml", text)
            write(folder / "JPEGImages" / name, "pixels")
        return str(folder)

    def sample(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg"])
        write(folder / "Annotations/.DS_Store", "junk")
        return Sample(
            uri, [(f"{uri}/Annotations/{n}.xml", {"boxes": [], "image": f"{n}.jpg"}) for n in "abc"], ignored=1
        )

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names), [])

    def damaged(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg"])
        write(folder / "Annotations/b.xml", "<annotation>")
        return Sample(
            uri,
            [(f"{uri}/Annotations/{n}.xml", {"boxes": [], "image": f"{n}.jpg"}) for n in "ac"],
            [(f"{uri}/Annotations/b.xml", "bad_annotation")],
        )

    def empty(self, folder: Path) -> Sample:
        (folder / "Annotations").mkdir()
        return Sample(str(folder), [])


class TestYolo(ManifestFormatContract):
    format = YoloFormat()

    def write(self, folder: Path, names: Sequence[str]) -> str:
        write(folder / "data.yaml", "train: images\nnames: [cat]\n")
        (folder / "images").mkdir(exist_ok=True)
        for name in names:
            write(folder / "images" / name, "pixels")
        return str(folder)

    def rows(self, uri: str, stems: str) -> list[tuple[str, dict[str, Any]]]:
        more = {"boxes": [], "frame": "upright", "split": "train"}
        return [(f"{uri}/images/{stem}.jpg", {"image": f"images/{stem}.jpg", **more}) for stem in stems]

    def sample(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg"])
        write(folder / "images/.DS_Store", "junk")
        return Sample(uri, self.rows(uri, "abc"), ignored=1)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names), [])

    def damaged(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg", "d.jpg"])
        write(folder / "labels/b.txt", "0 1 2")
        write(folder / "labels/d.txt", "5 0.5 0.5 0.1 0.1")
        rejects = [(f"{uri}/images/b.jpg", "bad_annotation"), (f"{uri}/images/d.jpg", "unknown_category")]
        return Sample(uri, self.rows(uri, "ac"), rejects)

    def empty(self, folder: Path) -> Sample:
        return Sample(self.write(folder, []), [])


class TestVertex(ManifestFormatContract):
    format = VertexFormat()

    def sample(self, folder: Path) -> Sample:
        uri = str(write(folder / "import.csv", "TRAINING,gs://b/a.jpg,cat\ngs://b/b.jpg\n"))
        return Sample(
            uri,
            [
                (f"{uri}:1", {"image": "gs://b/a.jpg", "split": "train", "label": "cat"}),
                (f"{uri}:2", {"image": "gs://b/b.jpg"}),
            ],
        )

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(str(write(folder / "import.csv", "".join(f"gs://b/{name},cat\n" for name in names))), [])

    def damaged(self, folder: Path) -> Sample:
        uri = str(write(folder / "import.csv", 'TEST,gs://b/a.jpg,cat\nTEST,,cat\nTEST,"gs://b/b.jpg"x,cat\n'))
        row = (f"{uri}:1", {"image": "gs://b/a.jpg", "split": "test", "label": "cat"})
        return Sample(uri, [row], [(f"{uri}:2", "bad_row"), (f"{uri}:3", "bad_row")])

    def empty(self, folder: Path) -> Sample:
        return Sample(str(write(folder / "import.csv", "\n")), [])


class TestOpenImages(ManifestFormatContract):
    format = OpenImagesFormat()
    header = "ImageID,LabelName,XMin,XMax,YMin,YMax\n"

    def row(self, uri: str, name: str, line: int) -> tuple[str, dict[str, Any]]:
        box = {"class": "/m/1", "bbox": ["0", "0", "1", "1"], "normalized": True, "origin": f"{uri}:{line}"}
        return f"{uri}:{line}", {"image": f"{name}.jpg", "id": name, "boxes": [box]}

    def sample(self, folder: Path) -> Sample:
        uri = str(write(folder / "boxes.csv", f"{self.header}a,/m/1,0,1,0,1\nb,/m/1,0,1,0,1\n"))
        return Sample(uri, [self.row(uri, "a", 2), self.row(uri, "b", 3)])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        lines = "".join(f"{name.removesuffix('.jpg')},/m/1,0,1,0,1\n" for name in names)
        return Sample(str(write(folder / "boxes.csv", self.header + lines)), [])

    def damaged(self, folder: Path) -> Sample:
        uri = str(write(folder / "boxes.csv", f"{self.header}a,/m/1,0,1,0,1\nb,/m/1\n,/m/1,0,1,0,1\n"))
        return Sample(uri, [self.row(uri, "a", 2)], [(f"{uri}:3", "bad_row"), (f"{uri}:4", "bad_row")])

    def empty(self, folder: Path) -> Sample:
        return Sample(str(write(folder / "boxes.csv", self.header)), [])
