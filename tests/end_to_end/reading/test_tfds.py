"""TensorFlow Datasets loads what was written, of every kind, with the values that the collections have."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from beam_tfrecord.conversion.planning.survey import SAMPLE_SIZE
from beam_tfrecord.core.splits import order_hash
from tests.annotation_tools import write
from tests.end_to_end.datasets import converted, records
from tests.end_to_end.reading.kinds import BOXES, KINDS
from tests.samples import noise, png, write_table

tfds = pytest.importorskip("tensorflow_datasets")
pytestmark = pytest.mark.filterwarnings("ignore")  # of TensorFlow Datasets

Find = Callable[..., Path]


def examples(out: Path, split: str = "train", **options: Any) -> list[Any]:
    builder = tfds.builder_from_directory(out)
    config = tfds.ReadConfig(interleave_cycle_length=1)
    return list(tfds.as_numpy(builder.as_dataset(split, read_config=config, **options)))


def names(found: list[Any], key: str = "image/filename") -> list[str]:
    return [example[key].decode() for example in found]


def test_class_folders(dataset: Find) -> None:
    out = dataset("classes")
    info = tfds.builder_from_directory(out).info
    assert {name: split.num_examples for name, split in info.splits.items()} == {"train": 9, "validation": 3}
    assert info.features["image/class/label"].names == ["circle", "square", "triangle"]
    assert names(examples(out)) == [record["image/filename"][0].decode() for record in records(out, "train")]
    for image, label in examples(out, as_supervised=True):
        assert image.shape == (24, 32, 3)
        assert label in (0, 1, 2)


@pytest.mark.parametrize("split", ["train[:80%]", "train[33%:66%]", "train[-20%:]", "train[2:5]+validation", "all"])
def test_the_same_words_select_the_same_records(dataset: Find, split: str) -> None:
    from beam_tfrecord import read

    out = dataset("classes")
    assert names(examples(out, split)) == [record["image/filename"] for record in read(out, split)]


def test_boxes_are_a_sequence_of_dicts(dataset: Find) -> None:
    out = dataset("boxes", keys="tfds")
    feature = tfds.builder_from_directory(out).info.features["objects"]
    assert isinstance(feature.feature["bbox"], tfds.features.BBoxFeature)
    for example in examples(out):
        objects = BOXES[example["image/filename"].decode()]
        expected = [[top / 120, left / 160, bottom / 120, right / 160] for _, left, top, right, bottom in objects]
        np.testing.assert_allclose(example["objects"]["bbox"], expected, atol=1e-7)
        assert [feature.feature["label"].int2str(label) for label in example["objects"]["label"]] == [
            name for name, *_ in objects
        ]


def test_object_detection_keys_stay_as_they_are(dataset: Find) -> None:
    for example in examples(dataset("boxes", keys="od")):
        objects = BOXES[example["image/filename"].decode()]
        np.testing.assert_allclose(example["image/object/bbox/xmin"], [left / 160 for _, left, *_ in objects])
        assert [name.decode() for name in example["image/object/class/text"]] == [name for name, *_ in objects]


def test_masks_and_keypoints_of_objects(dataset: Find) -> None:
    counts = {}
    for example in examples(dataset("objects", keys="tfds")):
        masks = example["objects"]["mask"]
        counts[example["image/filename"].decode()] = len(masks)
        assert all(set(np.unique(mask)) == {0, 1} for mask in masks)
    assert counts == {"a.png": 1, "b.png": 2, "c.png": 0}


def test_whole_image_masks(dataset: Find) -> None:
    for example in examples(dataset("masks", keys="tfds"), "train"):
        number = int(example["image/filename"].decode()[0])
        mask = example["segmentation_mask"]
        assert mask.shape == (6, 8, 1)
        assert (mask[0] == (40_000 if number == 2 else 255)).all()
        assert (mask[1:] == 7 + number).all()


def many_masks(folder: Path, deep: str) -> Path:
    """More images than those whose masks are looked at beforehand, one of them with a mask of 16 bits."""
    lines = [("image", "label", "mask")]
    for number in range(SAMPLE_SIZE + 12):
        name = f"{number:03}.png"
        write(folder / name, png(Image.fromarray(noise(4, 3, number))))
        value = np.full((3, 4), 1000 if name == deep else number % 256, np.uint16 if name == deep else np.uint8)
        write(folder / f"mask_{name}", png(Image.fromarray(value)))
        lines.append((name, "x", f"mask_{name}"))
    return write_table(folder / "data.csv", lines)


def test_a_deep_mask_that_comes_late_makes_all_of_them_bytes_unless_16_bits_are_asked_for(tmp_path: Path) -> None:
    names = [f"{number:03}.png" for number in range(SAMPLE_SIZE + 12)]
    last = max(names, key=lambda name: order_hash(0, name))
    source = many_masks(tmp_path / "in", last)
    key = "image/segmentation/class/encoded"
    for bits, dtype in (("auto", object), ("16", np.uint16)):
        converted(source, tmp_path / bits, mask_column="mask", mask_bits=bits)
        assert tfds.builder_from_directory(tmp_path / bits).info.features[key].dtype == dtype
        for example in examples(tmp_path / bits):
            name = example["image/filename"].decode()
            mask = example[key]
            if bits == "auto":
                mask = np.asarray(Image.open(io.BytesIO(mask)))
            assert (mask == (1000 if name == last else int(name[:3]) % 256)).all()


def test_masks_of_8_bits_stay_what_they_are(tmp_path: Path) -> None:
    source, options = KINDS["masks"](tmp_path / "in")
    summary = converted(source, tmp_path / "out", **options, mask_bits="8", max_rejects="1")
    assert summary.rejected == {"bad_mask": 1}
    feature = tfds.builder_from_directory(tmp_path / "out").info.features["image/segmentation/class/encoded"]
    assert feature.dtype == np.uint8
    masks = [example["image/segmentation/class/encoded"] for example in examples(tmp_path / "out")]
    assert sorted((int(mask[0, 0, 0]), int(mask[1, 0, 0])) for mask in masks) == [(255, 7), (255, 8)]


def test_masks_that_some_images_lack_are_bytes(dataset: Find) -> None:
    for example in examples(dataset("masks_of_some")):
        number = int(example["image/filename"].decode()[0])
        data = example["image/segmentation/class/encoded"]
        assert example["image/segmentation/class/format"] == (b"" if number % 2 else b"png")
        if number % 2:
            assert data == b""
        else:
            values = tf.io.decode_png(data, dtype=tf.uint16).numpy()
            assert values.shape == (6, 8, 1)
            assert (values == 300 + number).all()


@pytest.mark.parametrize("keys", ["od", "tfds"])
def test_panoptic_masks_of_more_than_255_segments_and_classes(dataset: Find, keys: str) -> None:
    (example,) = examples(dataset("panoptic", keys=keys))
    prefix = "image/panoptic" if keys == "od" else "panoptic"
    numbers = np.arange(1, 301).reshape(15, 20)
    assert np.array_equal(example[f"{prefix}/instance_mask"][..., 0], numbers)
    offset = 1 if keys == "od" else 0
    assert np.array_equal(example[f"{prefix}/category_mask"][..., 0], numbers - 1 + offset)


def test_several_labels_and_columns(dataset: Find) -> None:
    found = {example["image/filename"].decode(): example for example in examples(dataset("several"))}
    assert {name: example["image/class/label"].tolist() for name, example in found.items()} == {
        "a.png": [0, 2],
        "b.png": [1],
        "c.png": [2],
    }
    assert [found[f"{name}.png"]["age"] for name in "abc"] == [7, 8, 9]
    assert found["a.png"]["tags"].tolist() == [b"p", b"q"]


def test_tables(dataset: Find) -> None:
    found = examples(dataset("table"))
    assert sorted(example["age"] for example in found) == list(range(10))
    assert all(example["weight"] == example["age"] / 4 for example in found)


def test_of_a_sequence_it_sees_the_context(dataset: Find) -> None:
    out = dataset("sequence")
    found = {example["image/source_id"].decode(): example for example in examples(out)}
    label = tfds.builder_from_directory(out).info.features["image/class/label"]
    assert {name: label.int2str(example["image/class/label"]) for name, example in found.items()} == {
        "m": "walk",
        "n": "run",
    }


def test_sixteen_bits_and_raw_pixels(dataset: Find) -> None:
    for example in examples(dataset("deep")):
        number = int(Path(example["image/filename"].decode()).stem)
        values = np.random.default_rng(number).integers(0, 65536, (6, 8)).astype(np.uint16)
        assert np.array_equal(example["image/encoded"][..., 0], values)
    for example in examples(dataset("raw")):
        number = int(Path(example["image/filename"].decode()).stem)
        shape = (example["image/height"], example["image/width"], example["image/channels"])
        pixels = np.frombuffer(example["image/raw"], np.uint8).reshape(shape)
        assert np.array_equal(pixels, noise(8 + number, 6, number))
