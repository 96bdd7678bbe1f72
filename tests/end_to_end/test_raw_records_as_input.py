"""Records of pixels without an encoding, as StyleGAN's tool writes them, and records whose labels are numbers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beam_tfrecord import ManifestError
from tests.end_to_end.datasets import conversion, converted, findings, records, texts
from tests.end_to_end.test_tfrecords_as_input import example, write
from tests.samples import jpeg, painted_boxes

tf = pytest.importorskip("tensorflow")


def images(count: int, channels: int = 3, size: int = 16) -> list[Any]:
    """Noise, channels first."""
    random = np.random.default_rng(0)
    return [random.integers(0, 255, (channels, size, size), np.uint8) for _ in range(count)]


def stylegan(folder: Path, pictures: list[Any], labels: Any = None) -> Path:
    """As TFRecordExporter of ``dataset_tool.py``: a file for each size, the pixels of the smaller ones averaged."""
    size = pictures[0].shape[-1]
    for level in range(2, size.bit_length()):
        step = size // 2**level
        items = []
        for picture in pictures:
            channels = picture.shape[0]
            own = picture.reshape(channels, 2**level, step, 2**level, step).mean(axis=(2, 4))
            own = np.rint(own).clip(0, 255).astype(np.uint8)
            items.append(example(shape=list(own.shape), data=[own.tobytes()]))
        write(folder / f"{folder.name}-r{level:02}.tfrecords", items)
    if labels is not None:
        buffer = io.BytesIO()
        np.save(buffer, labels)
        (folder / f"{folder.name}-rxx.labels").write_bytes(buffer.getvalue())
    return folder


def decoded(output: Path) -> list[Any]:
    return [tf.io.decode_png(record["image/encoded"][0]).numpy() for record in records(output)]


def sorted_pixels(pictures: list[Any]) -> list[bytes]:
    return sorted(picture.tobytes() for picture in pictures)


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_of_stylegan_are_those_of_the_largest_file(tmp_path: Path, channels: int) -> None:
    pictures = images(5, channels)
    summary = converted(stylegan(tmp_path / "ffhq", pictures), tmp_path / "out")
    assert summary.written == 5
    expected = [picture.transpose(1, 2, 0) for picture in pictures]
    found = decoded(tmp_path / "out")
    assert found[0].shape == (16, 16, channels)
    assert sorted_pixels(found) == sorted_pixels(expected)
    told = conversion(tmp_path / "out")["inputs"][0]
    assert told["used"]["files"] == {"records": 1}
    assert told["named"]["files"]["smaller copies of the same images"]["count"] == 2


def test_one_file_that_was_named_is_read(tmp_path: Path) -> None:
    folder = stylegan(tmp_path / "ffhq", images(3))
    converted(folder / "ffhq-r03.tfrecords", tmp_path / "out")
    assert {picture.shape for picture in decoded(tmp_path / "out")} == {(8, 8, 3)}


@pytest.mark.parametrize("form", ["one_hot", "numbers"])
def test_labels_beside_the_records_follow(tmp_path: Path, form: str) -> None:
    pictures, classes = images(4), np.array([2, 0, 10, 2])
    labels = np.eye(11, dtype=np.float32)[classes] if form == "one_hot" else classes
    converted(stylegan(tmp_path / "cifar", pictures, labels), tmp_path / "out")
    by_pixels = {
        tf.io.decode_png(record["image/encoded"][0]).numpy().tobytes(): texts(record)
        for record in records(tmp_path / "out")
    }
    for picture, number in zip(pictures, classes, strict=True):
        assert by_pixels[picture.transpose(1, 2, 0).tobytes()] == [str(number)]
    told = conversion(tmp_path / "out")
    assert told["labels"] == ["0", "2", "10"]
    assert told["inputs"][0]["used"]["files"] == {"label file": 1, "records": 1}


@pytest.mark.parametrize(
    "labels", [np.zeros((4, 3), np.float32), np.full((4, 2), 0.5), np.array(["a"] * 4), np.zeros((2, 2, 2))]
)
def test_labels_that_are_no_classes_are_refused(tmp_path: Path, labels: Any) -> None:
    with pytest.raises(ManifestError, match=r"rxx.labels has not one class for each record"):
        converted(stylegan(tmp_path / "cifar", images(4), labels), tmp_path / "out")


def test_labels_of_another_number_of_records_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="4 records, but the metadata beside it state 3"):
        converted(stylegan(tmp_path / "cifar", images(4), np.eye(3, dtype=np.float32)), tmp_path / "out")


@pytest.mark.parametrize(
    ("shape", "count", "said"),
    [
        ([3, 8, 3], 72, "in two ways"),
        ([8, 8, 8], 512, "in no way"),
        ([3, 8, 8], 100, "are no pixels of 3x8x8"),
        ([3, 8], 24, "shape"),
        ([0, 8, 3], 0, ""),
    ],
)
def test_shapes_that_say_nothing_are_rejects(tmp_path: Path, shape: list[int], count: int, said: str) -> None:
    good = example(shape=[3, 8, 8], data=[bytes(192)])
    write(tmp_path / "in/a.tfrecords", [good, example(shape=shape, data=[bytes(count)])])
    converted(tmp_path / "in", tmp_path / "out", max_rejects=1)
    (reject,) = findings(tmp_path / "out")
    assert said in reject["message"]


def test_pixels_in_compressed_records_are_read(tmp_path: Path) -> None:
    pictures = images(2)
    write(tmp_path / "in/a.tfrecords", [example(shape=list(p.shape), data=[p.tobytes()]) for p in pictures], "GZIP")
    converted(tmp_path / "in", tmp_path / "out")
    assert sorted_pixels(decoded(tmp_path / "out")) == sorted_pixels([p.transpose(1, 2, 0) for p in pictures])


def test_pixels_by_rows_are_read_as_their_shape_says(tmp_path: Path) -> None:
    picture = np.random.default_rng(1).integers(0, 255, (6, 9, 3), np.uint8)
    write(tmp_path / "in/a.tfrecords", [example(shape=[6, 9, 3], data=[picture.tobytes()])])
    converted(tmp_path / "in", tmp_path / "out")
    assert np.array_equal(decoded(tmp_path / "out")[0], picture)


def test_ids_follow_the_order_of_numbers(tmp_path: Path) -> None:
    """By code point 10 would come before 2, and the ids would not be those that the records had."""
    items = [
        example(image=[jpeg(painted_boxes(40, 30, [(number, 3, 20, 15)]))], label=[number]) for number in range(12)
    ]
    write(tmp_path / "in/a.tfrecord", items)
    converted(tmp_path / "in", tmp_path / "out")
    assert conversion(tmp_path / "out")["labels"] == [str(number) for number in range(12)]
    for record in records(tmp_path / "out"):
        assert [str(record["image/class/label"][0])] == texts(record)
