"""Records that are not what they must be, one thing wrong at a time."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord.annotations.base import FeatureSpec
from beam_tfrecord.tfrecord.example import encode_example, encode_sequence_example
from beam_tfrecord.tools.verifying.records import NO_ID, RecordRules
from tests.handmade import (
    SPECS,
    Record,
    decode_for_tests,
    floats,
    make_dataset,
    picture_record,
    small_dataset,
    texts,
    whole,
)
from tests.samples import jpeg, noise, png
from tests.verifying_tools import faults_of, verdict_of

FOREIGN = RecordRules(None, decode_for_tests)

Change = Callable[[Record], Mapping[str, Any]]


def changed(change: Change) -> list[tuple[str, str]]:
    """(code, cause) of what is found in a good record of the dataset after a change."""
    record = picture_record(1)
    return problems({**record, **change(record)})


def problems(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    present = {key: value for key, value in record.items() if value is not None}
    return [tuple(problem) for problem in rules().check(encode_example(present)).problems]


def rules() -> RecordRules:
    import tempfile

    from beam_tfrecord.datasets.shard_files import find_files
    from beam_tfrecord.storage import Storage

    with tempfile.TemporaryDirectory() as folder:
        small_dataset(Path(folder), per_shard=1)
        return RecordRules(find_files([folder], Storage()).facts, decode_for_tests)


def test_a_good_record_has_no_problems() -> None:
    checked = rules().check(encode_example(picture_record(1)))
    assert checked.problems == ()
    assert (checked.message, checked.images, checked.labels) == ("Example", 1, (2, 3))
    assert checked.id_hash not in (NO_ID, rules().check(encode_example(picture_record(2))).id_hash)


WRONG: dict[str, tuple[Change, str, str]] = {
    "a feature is missing": (lambda r: {"image/width": None}, "wrong_features", "lacks the feature image/width"),
    "a feature too many": (lambda r: {"extra": whole(1)}, "wrong_features", "extra"),
    "another type": (lambda r: {"image/height": floats(30)}, "wrong_features", "holds float, but int64"),
    "two values for one": (lambda r: {"image/filename": texts("a", "b")}, "wrong_features", "has 2 values"),
    "no value for one": (lambda r: {"image/filename": texts()}, "wrong_features", "has 0 values"),
    "height": (lambda r: {"image/height": whole(31)}, "wrong_image_facts", "image/height says 31"),
    "width": (lambda r: {"image/width": whole(41)}, "wrong_image_facts", "has width 40"),
    "channels": (lambda r: {"image/channels": whole(1)}, "wrong_image_facts", "has channels 3"),
    "format": (lambda r: {"image/format": texts("png")}, "wrong_image_facts", "the image is JPEG"),
    "hash": (lambda r: {"image/key/sha256": texts("0" * 64)}, "wrong_image_facts", "image/key/sha256"),
    "inverted box": (lambda r: {"image/object/bbox/xmax": floats(0.01, 0.9)}, "bad_box", "box 0"),
    "empty box": (lambda r: {"image/object/bbox/ymax": floats(0.5, 0.5)}, "bad_box", "box 1"),
    "box outside": (lambda r: {"image/object/bbox/xmax": floats(0.5, 1.01)}, "bad_box", "out of the image"),
    "negative box": (lambda r: {"image/object/bbox/xmin": floats(-0.1, 0.6)}, "bad_box", "out of the image"),
    "NaN box": (lambda r: {"image/object/bbox/xmin": floats(math.nan, 0.6)}, "bad_box", "not a finite number"),
    "a box too few": (lambda r: {"image/object/bbox/xmin": floats(0.1)}, "uneven_lists", "bbox/xmin 1"),
    "a name too few": (lambda r: {"image/object/class/text": texts("dog")}, "uneven_lists", "class/text 1"),
    "unknown label id": (lambda r: {"image/object/class/label": whole(9, 3)}, "bad_label", "the id 9"),
    "a label below the offset": (lambda r: {"image/object/class/label": whole(0, 3)}, "bad_label", "the id 0"),
    "wrong label name": (lambda r: {"image/object/class/text": texts("cat", "emu")}, "bad_label", "'cat'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_one_thing_wrong_is_named(what: str) -> None:
    change, code, cause = WRONG[what]
    found = changed(change)
    assert code in [own for own, _ in found], found
    assert any(cause in text for own, text in found if own == code), found


def test_a_box_may_miss_the_edge_by_rounding_only() -> None:
    assert changed(lambda r: {"image/object/bbox/xmax": floats(0.5, 1 + 1e-7)}) == []
    assert [code for code, _ in changed(lambda r: {"image/object/bbox/xmax": floats(0.5, 1 + 1e-5)})] == ["bad_box"]


@pytest.mark.parametrize("length", [0, 3, 100, 400])
def test_a_cut_image_is_named(length: int) -> None:
    def cut(record: Record) -> Mapping[str, Any]:
        data = record["image/encoded"].values[0][:length]
        return {"image/encoded": texts(data), "image/key/sha256": texts(hashlib.sha256(data).hexdigest())}

    assert "bad_image" in [code for code, _ in changed(cut)]


def test_bytes_that_are_no_message_are_named() -> None:
    for data in (b"\x99" * 9, b"\x0a\x05ab", b"\x12\x03\x0a\x01\xff\x0a"):
        (problem,) = rules().check(data).problems
        assert problem.code == "no_example"


def test_the_wrong_message_type_is_named() -> None:
    data = encode_sequence_example(picture_record(1), {"x": [whole(1)]})
    assert any("SequenceExample" in problem.cause for problem in rules().check(data).problems)


# ---------------------------------------------------------------------------------------------------------------------
# Raw pixels, masks, keypoints: records from elsewhere go by the names of the presets


def foreign(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [tuple(problem) for problem in FOREIGN.check(encode_example(record)).problems]


RAW = {
    "data": texts(noise(5, 4).tobytes()),
    "height": whole(4),
    "width": whole(5),
    "channels": whole(3),
    "shape": whole(4, 5, 3),
    "dtype": texts("uint8"),
    "label": whole(1),
}


def test_raw_pixels_need_as_many_bytes_as_their_shape() -> None:
    assert foreign(RAW) == []
    for change in (
        {"data": texts(b"x" * 59)},
        {"height": whole(5), "shape": whole(5, 5, 3)},
        {"dtype": texts("uint16")},
        {"dtype": texts("float64")},
        {"shape": whole(5, 4, 3)},
    ):
        assert [code for code, _ in foreign({**RAW, **change})] == ["bad_raw"], change
    assert foreign({**RAW, "data": texts(b"x" * 120), "dtype": texts("uint16")}) == []


def test_masks_have_the_size_of_the_image() -> None:
    image = {"image/encoded": texts(jpeg(Image.new("RGB", (8, 6))))}
    good, turned = (png(Image.fromarray(noise(*size, channels=1)[:, :, 0])) for size in ((8, 6), (6, 8)))
    key = "image/segmentation/class/encoded"
    assert foreign({**image, key: texts(good)}) == []
    assert foreign({**image, key: texts(b"")}) == []
    assert [code for code, _ in foreign({**image, key: texts(turned)})] == ["bad_mask"]
    assert [code for code, _ in foreign({**image, key: texts(good[:60])})] == ["bad_mask"]
    objects = {
        "image/object/bbox/ymin": floats(0, 0),
        "image/object/bbox/xmin": floats(0, 0),
        "image/object/bbox/ymax": floats(1, 1),
        "image/object/bbox/xmax": floats(1, 1),
    }
    found = foreign({**image, **objects, "image/object/mask": texts(good, turned)})
    assert [code for code, _ in found] == ["bad_mask"]
    assert "image/object/mask[1]" in found[0][1]


def test_keypoints_lie_in_the_image_and_are_counted() -> None:
    objects = {
        "image/object/bbox/ymin": floats(0, 0),
        "image/object/bbox/xmin": floats(0, 0),
        "image/object/bbox/ymax": floats(1, 1),
        "image/object/bbox/xmax": floats(1, 1),
        "image/object/keypoint/x": floats(0.1, 0.2, 0.0, 0.4),
        "image/object/keypoint/y": floats(0.1, 0.2, 0.0, 0.4),
        "image/object/keypoint/visibility": whole(2, 1, 0, 2),
        "image/object/keypoint/num": whole(2, 1),
    }
    assert foreign(objects) == []
    for change, code in (
        ({"image/object/keypoint/x": floats(0.1, 0.2, 0.0, 1.4)}, "bad_keypoints"),
        ({"image/object/keypoint/y": floats(0.1, math.nan, 0.0, 0.4)}, "bad_keypoints"),
        ({"image/object/keypoint/num": whole(2, 2)}, "bad_keypoints"),
        ({"image/object/keypoint/x": floats(0.1, 0.2, 0.0)}, "uneven_lists"),
    ):
        assert [own for own, _ in foreign({**objects, **change})] == [code], change


def test_boxes_and_keypoints_from_elsewhere_of_which_a_side_is_missing_are_told() -> None:
    box = {
        f"image/object/bbox/{side}": floats(0.1 if "min" in side else 0.5) for side in ("ymin", "xmin", "ymax", "xmax")
    }
    for key in box:
        (code, cause), *more = foreign({name: feature for name, feature in box.items() if name != key})
        assert (code, more) == ("uneven_lists", []), key
        assert f"no {key.rpartition('/')[2]} that belongs to it" in cause
        assert [own for own, _ in foreign({**box, key: texts("0.1")})] == ["uneven_lists"]
    points = {"image/object/keypoint/x": floats(0.5), "image/object/keypoint/visibility": whole(2)}
    assert "uneven_lists" in [own for own, _ in foreign({**box, **points})]


def test_boxes_in_rows_are_checked_as_well() -> None:
    rows = {"objects/bbox": floats(0.1, 0.1, 0.5, 0.5, 0.2, 0.6, 0.9, 0.4), "objects/label": whole(1, 2)}
    assert [(code, cause.split(" ")[1]) for code, cause in foreign(rows)] == [("bad_box", "1")]
    assert [code for code, _ in foreign({**rows, "objects/label": whole(1)})] == ["uneven_lists", "bad_box"]


def test_images_from_elsewhere_are_found_by_their_bytes() -> None:
    good = png(Image.fromarray(noise(6, 5)))
    assert foreign({"some_key": texts(good), "other": texts("text")}) == []
    (code, cause), *more = foreign({"some_key": texts(good[:60]), "other": texts("text")})
    assert (code, more) == ("bad_image", [])
    assert "some_key" in cause
    assert foreign({"image": texts(b"a tensor of some kind")}) == []
    assert [code for code, _ in foreign({"image/encoded": texts(b"no image")})] == ["bad_image"]


def test_lists_may_be_left_empty_by_other_writers() -> None:
    boxes = {
        f"image/object/bbox/{side}": floats(0.1 if "min" in side else 0.5) for side in ("xmin", "ymin", "xmax", "ymax")
    }
    assert foreign({**boxes, "image/object/class/label": whole(1), "image/object/class/text": texts()}) == []


# ---------------------------------------------------------------------------------------------------------------------
# Sequences

SEQUENCE_SPECS = (
    FeatureSpec("image/source_id", "bytes", (), "text"),
    FeatureSpec("image/encoded", "bytes", (), "image", in_sequence=True),
    FeatureSpec("image/height", "int64", in_sequence=True),
    FeatureSpec("image/object/bbox/xmin", "float", (None,), in_sequence=True),
)


def sequence(number: int, heights: list[int], keys: int = 3) -> tuple[Record, dict[str, list[Any]]]:
    image = jpeg(Image.new("RGB", (8, 6)))
    lists = {
        "image/encoded": [texts(image)] * 3,
        "image/height": [whole(height) for height in heights],
        "image/object/bbox/xmin": [floats(), floats(0.1), floats(0.1, 0.2)],
    }
    return {"image/source_id": texts(f"clip{number}")}, dict(list(lists.items())[:keys])


def write_sequences(folder: Path, *clips: tuple[Record, dict[str, list[Any]]]) -> None:
    make_dataset(
        folder,
        {"train": [list(clips)]},  # type: ignore[list-item]
        specs=SEQUENCE_SPECS,
        encode=lambda clip: encode_sequence_example(*clip),
        is_sequence=True,
    )


def test_sequences_are_checked_step_by_step(tmp_path: Path) -> None:
    write_sequences(
        tmp_path, sequence(0, [6, 6, 6]), sequence(1, [6, 7, 6]), sequence(2, [6, 6]), sequence(3, [6] * 3, 2)
    )
    found = [(fault.record, fault.code, fault.cause) for fault in faults_of(tmp_path)]
    assert [(record, code) for record, code, _ in found] == [
        (1, "wrong_image_facts"),
        (2, "uneven_lists"),
        (3, "wrong_features"),
    ]
    assert found[0][2].startswith("step 1: image/height says 7")
    assert "feature list image/object/bbox/xmin" in found[2][2]
    assert verdict_of(tmp_path).images == 12


def test_the_specs_of_the_test_are_those_of_the_records() -> None:
    assert sorted(spec.key for spec in SPECS) == sorted(picture_record(0))
    assert np.isclose(picture_record(0)["image/object/bbox/xmax"].values[0], 0.5)
