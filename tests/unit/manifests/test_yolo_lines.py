"""Lines of YOLO files with more values than a box has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.errors import AmbiguousManifestError
from beam_tfrecord.manifests.formats.yolo import YoloFormat
from beam_tfrecord.manifests.registry import detect_format
from tests.annotation_tools import fields_by_image, parse, read_items, rejects, write
from tests.local_files import LocalFiles

OUTLINE = "0 0.7 0.2 0.9 0.2 0.9 0.6"  # a box around 0.7, 0.2 of 0.9 by 0.2 would lie outside
POSE = "0 0.5 0.5 0.2 0.4 0.45 0.35 0.55 0.65"
TRACK = "0 0.5 0.5 0.2 0.4 0.91 1"


def items_of(root: Path, *lines: str, yaml: str = "", **options: Any) -> list[Any]:
    write(root / "data.yaml", f"train: images\nnames: [pen]\n{yaml}")
    for number, text in enumerate(lines):
        write(root / f"images/{number}.jpg", "pixels")
        write(root / f"labels/{number}.txt", text)
    return read_items(YoloFormat(), root / "data.yaml", **options)[1]


def boxes(items: list[Any]) -> list[tuple[float, ...]]:
    found = fields_by_image(items)
    return [tuple(thing.box) for name in sorted(found) for thing in parse(BoxesKind(), found[name]).objects]


@pytest.mark.parametrize("lines", [[POSE, POSE], [TRACK], [TRACK, TRACK + "\n" + TRACK]])
def test_lines_that_can_be_outlines_or_not_are_refused(tmp_path: Path, lines: list[str]) -> None:
    told = r"labels/0\.txt:1 can be outlines, or .*--yolo_lines outline, or --yolo_lines box"
    with pytest.raises(AmbiguousManifestError, match=told):
        items_of(tmp_path, *lines)
    for box in boxes(items_of(tmp_path, *lines, yolo_lines="box")):
        assert box == pytest.approx((0.4, 0.3, 0.6, 0.7))
    assert len(boxes(items_of(tmp_path, *lines, yolo_lines="outline"))) >= 1


def test_a_stated_shape_of_keypoints_decides(tmp_path: Path) -> None:
    assert boxes(items_of(tmp_path, POSE, yaml="kpt_shape: [2, 2]\n")) == [pytest.approx((0.4, 0.3, 0.6, 0.7))]


@pytest.mark.parametrize("others", [[OUTLINE], ["0 0.5 0.5 0.1 0.1"], ["0 .1 .1 .2 .1 .2 .2 .1 .2 .05 .15"]])
def test_outlines_are_known_by_the_whole_dataset(tmp_path: Path, others: list[str]) -> None:
    quad = "0 0.5 0.5 0.6 0.5 0.6 0.6 0.5 0.6"  # by itself it can be a pose as well
    assert (0.5, 0.5, 0.6, 0.6) in boxes(items_of(tmp_path, quad, *others))


def test_a_line_that_the_sample_did_not_have_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beam_tfrecord.manifests.formats.yolo._SAMPLE_FILES", 1)
    items = items_of(tmp_path, "0 .5 .5 .1 .1", POSE, OUTLINE)
    [(code, message)] = rejects(items)
    assert code == "bad_annotation"
    assert "--yolo_lines" in message
    assert len(boxes(items)) == 2


def test_a_confidence_behind_the_box_is_told_or_passed_over(tmp_path: Path) -> None:
    [(code, message)] = rejects(items_of(tmp_path, "0 .5 .5 .2 .4 .9"))
    assert code == "bad_annotation"
    assert "has 6 values" in message
    assert "--yolo_lines box" in message
    assert boxes(items_of(tmp_path, "0 .5 .5 .2 .4 .9", yolo_lines="box")) == [pytest.approx((0.4, 0.3, 0.6, 0.7))]


def test_boxes_in_pixels_are_told(tmp_path: Path) -> None:
    with pytest.raises(AmbiguousManifestError, match="--box_units pixels"):
        items_of(tmp_path, "0 50 50 20 40")
    (item,) = items_of(tmp_path, "0 50 50 20 40", box_units="pixels")
    (thing,) = parse(BoxesKind(), item.fields).objects
    assert (tuple(thing.box), thing.normalized) == ((40, 30, 60, 70), False)


@pytest.mark.parametrize(
    ("name", "data", "known_as"),
    [
        ("annotations.xml", '<?xml version="1.0"?>\n<annotations><version>1.1</version></annotations>', "cvat"),
        ("a.json", '{"version":"5.3.1","shapes":[{"label":"x"}],"imagePath":"a.jpg"}', "labelme"),
    ],
)
def test_files_of_other_tools_are_known_as_theirs(tmp_path: Path, name: str, data: str, known_as: str) -> None:
    assert detect_format(LocalFiles(), str(write(tmp_path / name, data))) == known_as
