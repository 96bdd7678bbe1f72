"""Create ML's JSON, as Apple's documentation shows it and Roboflow exports it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.manifests.formats.createml import CreateMLFormat
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS
from tests.annotation_tools import account_of, read_items, rejects, write
from tests.contracts import ListedPicturesContract, Sample
from tests.end_to_end.datasets import converted, records
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes


def box(x: Any, y: Any, width: Any, height: Any, label: Any = "fox") -> dict[str, Any]:
    return {"label": label, "coordinates": {"x": x, "y": y, "width": width, "height": height}}


def picture(name: str, *boxes: Any) -> dict[str, Any]:
    return {"image": name, "annotations": list(boxes)}


def document(folder: Path, *pictures: Any, name: str = "_annotations.createml.json") -> str:
    return str(write(folder / name, json.dumps(list(pictures))))


class TestCreateML(ListedPicturesContract):
    format = CreateMLFormat()

    def write(self, folder: Path, names: Sequence[str]) -> str:
        for name in names:
            write(folder / name, "pixels")
        return document(folder, *map(picture, names))

    def row(self, uri: str, name: str, place: int) -> tuple[str, dict[str, Any]]:
        return f"{uri}:[{place}]", {"boxes": [], "image": name}

    def damaged(self, folder: Path) -> Sample:
        self.write(folder, ["a.jpg", "b.jpg"])
        uri = document(folder, picture("a.jpg"), picture("b.jpg", {"label": "x"}), 3, picture(""))
        rejects = [(f"{uri}:[1]", "bad_box"), (f"{uri}:[2]", "bad_row"), (f"{uri}:[3]", "bad_row")]
        return Sample(uri, [self.row(uri, "a.jpg", 0)], rejects)

    def empty(self, folder: Path) -> Sample:
        return Sample(document(folder), [])


def test_coordinates_are_those_of_the_centre(tmp_path: Path) -> None:
    """In split folders, as Roboflow exports them: a file in each."""
    for split, label in (("train", "fox"), ("valid", "hen")):
        write(tmp_path / f"in/{split}/a.jpg", jpeg(painted_boxes(160, 120, [(10, 20, 60, 70)])))
        document(tmp_path / "in" / split, picture("a.jpg", box(35, 45, 50, 50, label)))
    converted(tmp_path / "in", tmp_path / "out")
    for split, label in (("train", b"fox"), ("valid", b"hen")):
        (record,) = records(tmp_path / "out", split)
        assert record["image/object/class/text"] == [label]
        sides = [record[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
        assert sides == pytest.approx([10 / 160, 20 / 120, 60 / 160, 70 / 120])


def test_what_is_read_is_counted(tmp_path: Path) -> None:
    uri = document(tmp_path, picture("a.jpg", box(1, 2, 3, 4)), picture("b.jpg", {"label": "x"}))
    account = account_of(CreateMLFormat(), uri)
    assert (account.found[ANNOTATIONS], account.uses(ANNOTATIONS), account.unused(ANNOTATIONS)) == (2, 1, 1)


@pytest.mark.parametrize(
    "one",
    [
        {"image": "a.jpg", "annotations": "fox"},
        {"image": 3, "annotations": []},
        picture("a.jpg", box(1, 2, 3, 4, label=["x"])),
        picture("a.jpg", {"label": "x", "coordinates": [1, 2, 3, 4]}),
        picture("a.jpg", "fox"),
    ],
)
def test_what_cannot_be_right_is_a_reject(tmp_path: Path, one: Mapping[str, Any]) -> None:
    items = read_items(CreateMLFormat(), document(tmp_path, one, picture("b.jpg")))[1]
    ((code, message),) = rejects(items)
    assert code in ("bad_annotation", "bad_row", "bad_box")
    assert "[0]" in message


@pytest.mark.parametrize("text", ['[{"image": "a.jpg", "label": "x"}]', "[]", '{"annotations": []}', '[{"image": 1}]'])
def test_other_json_is_not_taken_for_it(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "x.json", text)
    assert not CreateMLFormat().recognises(LocalFiles(), str(path), text.encode())
