"""``load`` against TensorFlow used by hand, Pillow, and what the collections hold."""

from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord import ConfigError, DatasetError, load
from beam_tfrecord.reading import loader, tensorflow_import
from beam_tfrecord.reading.finished import open_dataset
from tests.end_to_end.datasets import by_name, records
from tests.end_to_end.reading.kinds import BOXES, KEYPOINTS
from tests.samples import noise

tf = pytest.importorskip("tensorflow")

Find = Callable[..., Path]


def elements(data: Any) -> list[Any]:
    return list(data.as_numpy_iterator())


def filenames(data: Any) -> list[str]:
    names = [name.decode() for element in elements(data) for name in np.ravel(element["image/filename"])]
    assert all(names)
    return names


def by_file(data: Any, key: str = "filename") -> dict[str, Any]:
    return {element[key].decode(): element for element in elements(data)}


def stored_names(output: Path, split: str | None = None) -> list[str]:
    return [record["image/filename"][0].decode() for record in records(output, split)]


def as_tensorflow_decodes(data: bytes, **options: Any) -> Any:
    return tf.io.decode_image(data, **options).numpy()


# ---------------------------------------------------------------------------------------------------------------------
# Which records, how many, in which order


def test_records_come_as_they_are_stored(dataset: Find) -> None:
    out = dataset("classes")
    for split in ("train", "validation"):
        stored = records(out, split)
        loaded = elements(load(out, split))
        assert len(loaded) == len(stored) == {"train": 9, "validation": 3}[split]
        for element, record in zip(loaded, stored, strict=True):
            assert set(element) == set(record)
            for key, (value,) in record.items():
                if key == "image/encoded":
                    assert np.array_equal(element[key], as_tensorflow_decodes(value))
                else:
                    assert element[key] == value


@pytest.mark.parametrize(
    ("split", "expected", "compression"),
    [
        ("train[:80%]", slice(0, 7), "none"),
        ("train[2:5]", slice(2, 5), "none"),
        ("train[2:5]", slice(2, 5), "gzip"),
        ("train[2:5]", slice(2, 5), "zlib"),
        ("train[-1:]", slice(8, 9), "none"),
        ("all", slice(0, 12), "none"),
        ("train+validation", slice(0, 12), "none"),
    ],
)
def test_slices_are_slices_of_the_stored_records(dataset: Find, split: str, expected: slice, compression: str) -> None:
    out = dataset("classes", compression=compression)
    data = load(out, split, decode=False)
    assert filenames(data) == stored_names(out)[expected]
    assert data.cardinality().numpy() == len(stored_names(out)[expected])


def test_only_the_files_that_are_needed_are_opened(dataset: Find, tmp_path: Path) -> None:
    out = dataset("classes")
    for path in out.iterdir():
        if not path.name.startswith(("train-00000", "train-00002")):
            (tmp_path / path.name).symlink_to(path)
    names = stored_names(out)
    assert filenames(load(tmp_path, "train[3:6]")) == names[3:6]
    with pytest.raises(DatasetError, match=r"train-00000-of-00003\.tfrecord is not there"):
        load(tmp_path, "train")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 9),
        ({"batch_size": 4}, 3),
        ({"batch_size": 4, "drop_remainder": True}, 2),
        ({"batch_size": 4, "repeat": 3}, 7),
        ({"repeat": True}, tf.data.INFINITE_CARDINALITY),
        ({"shuffle": True, "seed": 1}, 9),
        ({"shard": (1, 4)}, 2),
        ({"decode": False, "batch_size": 4}, 3),
        ({"image_size": 8, "batch_size": 4, "prefetch": 0}, 3),
    ],
)
def test_it_knows_its_length(dataset: Find, options: dict[str, Any], expected: int) -> None:
    data = load(dataset("classes"), **options)
    assert data.cardinality().numpy() == expected
    if expected > 0:
        assert len(elements(data)) == expected


def test_no_iterator_waits_for_autotune_unless_that_is_asked_for(dataset: Find) -> None:
    data = load(dataset("classes"), batch_size=4, shuffle=True)
    assert data.options().autotune.enabled is False
    wanted = tf.data.Options()
    wanted.autotune.enabled = True
    assert data.with_options(wanted).options().autotune.enabled is True


def test_python_is_not_searched_for_branches(dataset: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflow.python.autograph.impl import api

    converted: list[Any] = []
    convert = api._convert_actual
    monkeypatch.setattr(
        api, "_convert_actual", lambda entity, *rest: converted.append(entity) or convert(entity, *rest)
    )
    assert elements(load(dataset("classes"), image_size=8, shuffle=True))
    assert converted == []


def test_an_empty_slice_is_an_empty_dataset(dataset: Find) -> None:
    data = load(dataset("classes"), "train[:0]", batch_size=2, shuffle=True)
    assert data.cardinality().numpy() == 0
    assert elements(data) == []


def test_a_seed_gives_the_same_order_in_every_run_and_another_in_every_epoch(dataset: Find) -> None:
    out = dataset("classes", num_shards="train=9,validation=1")
    options: dict[str, Any] = {"shuffle": True, "repeat": 2, "features": "image/filename"}
    first, again, other = (filenames(load(out, "all", seed=seed, **options)) for seed in (1, 1, 2))
    assert first == again != other
    assert first[:12] != first[12:]
    assert sorted(first[:12]) == sorted(first[12:]) == sorted(stored_names(out)) != first[:12]


def test_without_a_seed_the_order_differs(dataset: Find) -> None:
    orders = {tuple(filenames(load(dataset("classes"), "all", shuffle=True))) for _ in range(5)}
    assert len(orders) > 1


@pytest.mark.parametrize("shuffle", [False, True])
def test_workers_share_all_records(dataset: Find, shuffle: bool) -> None:
    out = dataset("classes")
    shares = [filenames(load(out, "all", shard=(index, 5), shuffle=shuffle)) for index in range(5)]
    assert sorted(name for share in shares for name in share) == sorted(stored_names(out))
    assert sorted(map(len, shares)) == [2, 2, 2, 3, 3]


# ---------------------------------------------------------------------------------------------------------------------
# Pictures


def test_images_of_one_size_make_dense_batches_and_others_ragged_ones(dataset: Find) -> None:
    dense = next(iter(load(dataset("classes"), batch_size=9)))["image/encoded"]
    assert dense.shape == (9, 24, 32, 3)
    out = dataset("sizes")
    ragged = next(iter(load(out, batch_size=6)))["image/encoded"]
    assert isinstance(ragged, tf.RaggedTensor)
    for image, record in zip(ragged, records(out), strict=True):
        assert np.array_equal(image.to_tensor().numpy(), as_tensorflow_decodes(record["image/encoded"][0]))


@pytest.mark.parametrize("scale", [False, True])
def test_stretching_is_the_antialiased_bilinear_resize_of_tensorflow(dataset: Find, scale: bool) -> None:
    out = dataset("sizes")
    data = load(out, image_size=(20, 30), scale=scale)
    assert data.element_spec["image/encoded"].shape == (20, 30, 3)
    for element, record in zip(elements(data), records(out), strict=True):
        pixels = as_tensorflow_decodes(record["image/encoded"][0])
        expected = tf.image.resize(pixels, (20, 30), antialias=True).numpy()
        image = element["image/encoded"]
        if scale:
            assert image.dtype == np.float32
            assert image.max() <= 1
            np.testing.assert_allclose(image, expected / 255, atol=1e-6)
        else:
            assert np.array_equal(image, np.clip(np.round(expected), 0, 255).astype(np.uint8))


def test_resized_images_look_as_those_of_pillow(dataset: Find) -> None:
    out = dataset("sizes")
    for element in elements(load(out, image_size=(20, 30))):
        encoded = by_name(out)[element["image/filename"].decode()]["image/encoded"][0]
        with Image.open(io.BytesIO(encoded)) as image:
            expected = np.asarray(image.resize((30, 20), Image.Resampling.BILINEAR)).astype(int)
        assert np.abs(element["image/encoded"].astype(int) - expected).mean() < 1.5


def test_cropping_keeps_the_middle(dataset: Find) -> None:
    out = dataset("boxes")
    element = next(iter(load(out, image_size=60, resize_mode="crop", features="image/encoded")))
    encoded = records(out)[0]["image/encoded"][0]
    middle = as_tensorflow_decodes(encoded)[:, 20:140]
    assert np.array_equal(element["image/encoded"], np.round(tf.image.resize(middle, (60, 60), antialias=True)))


def painted_box(image: Any) -> list[int]:
    """(ymin, xmin, ymax, xmax) of the pixels that are red."""
    rows, columns = np.nonzero((image[..., 0] > 128) & (image[..., 1] < 128))
    return [rows.min(), columns.min(), rows.max() + 1, columns.max() + 1]


@pytest.mark.parametrize(
    ("keys", "mode", "size"),
    [
        ("od", "stretch", (60, 60)),
        ("od", "pad", (200, 100)),
        ("tfds", "pad", (64, 256)),
        ("simple", "stretch", (30, 80)),
    ],
)
def test_boxes_stay_on_what_was_painted(dataset: Find, keys: str, mode: str, size: tuple[int, int]) -> None:
    out = dataset("boxes", keys=keys)
    element = by_file(load(out, image_size=size, resize_mode=mode, names="short"))["b.png"]
    assert element["image"].shape == (*size, 3)
    (box,) = element["boxes"] * np.tile(size, 2)
    assert box == pytest.approx(painted_box(element["image"]), abs=1.0)
    if mode == "pad":
        top, left = (size - np.array((120, 160)) * min(size[0] / 120, size[1] / 160)) / 2
        assert (element["image"][: int(top)] == 0).all()
        assert (element["image"][:, : int(left)] == 0).all()


def test_boxes_are_rows_of_sides_in_ragged_batches(dataset: Find) -> None:
    for keys in ("od", "tfds", "simple"):
        out = dataset("boxes", keys=keys)
        batch = next(iter(load(out, batch_size=2, names="short")))
        for name, boxes in zip(batch["filename"].numpy(), batch["boxes"], strict=True):
            expected = [
                [top / 120, left / 160, bottom / 120, right / 160]
                for _, left, top, right, bottom in BOXES[name.decode()]
            ]
            np.testing.assert_allclose(boxes.numpy(), expected, atol=1e-7)


def test_masks_and_keypoints_of_objects_follow_padding(dataset: Find) -> None:
    out = dataset("objects")
    found = by_file(load(out, image_size=100, resize_mode="pad", names="short"))
    counts = {name: len(element["object_mask"]) for name, element in found.items()}
    assert counts == {"a.png": 1, "b.png": 2, "c.png": 0}
    assert found["c.png"]["object_mask"].shape == (0, 100, 100, 1)
    element = found["a.png"]  # 160 x 120 in 100 x 100: 100 x 75, with 12 rows above
    mask = element["object_mask"][0, :, :, 0]
    assert set(np.unique(mask)) == {0, 1}
    assert not mask[:12].any()
    (box,) = element["boxes"] * 100
    rows, columns = np.nonzero(mask)
    assert [rows.min(), columns.min(), rows.max() + 1, columns.max() + 1] == pytest.approx(list(box), abs=1.5)
    points = np.array(KEYPOINTS).reshape(2, 3)
    np.testing.assert_allclose(element["keypoint_x"], points[:, 0] / 160, atol=1e-6)
    np.testing.assert_allclose(element["keypoint_y"], (12 + points[:, 1] * 100 / 160) / 100, atol=1e-6)
    np.testing.assert_array_equal(element["keypoint_visibility"], points[:, 2])


def test_masks_of_objects_batch_without_a_size_too(dataset: Find) -> None:
    batch = next(iter(load(dataset("objects"), batch_size=3, names="short")))
    sizes = {}
    for name, masks in zip(batch["filename"].numpy(), batch["object_mask"], strict=True):
        sizes[name.decode()] = [mask.to_tensor().shape for mask in masks]
    assert sizes == {"a.png": [(120, 160, 1)], "b.png": [(120, 200, 1)] * 2, "c.png": []}


def test_masks_that_some_images_lack_are_their_bytes(dataset: Find) -> None:
    for element in elements(load(dataset("masks_of_some"), names="short")):
        number = int(element["filename"].decode()[0])
        data = element["semantic_mask"]
        if number % 2:
            assert data == b""
        else:
            assert (tf.io.decode_png(data, dtype=tf.uint16).numpy() == 300 + number).all()


def test_values_of_masks_are_exact_whatever_their_depth(dataset: Find) -> None:
    out = dataset("masks")
    found = by_file(load(out, names="short"))
    for number in range(3):
        mask = found[f"{number}.png"]["semantic_mask"]
        assert mask.shape == (6, 8, 1)
        assert (mask[0] == (40_000 if number == 2 else 255)).all()
        assert (mask[1:] == 7 + number).all()
    for _, mask in elements(load(out, image_size=4, as_supervised=True, label="image/segmentation/class/encoded")):
        assert set(np.unique(mask)) <= {7, 8, 9, 255, 40_000}


def test_channels_that_differ_become_three_or_what_is_asked_for(dataset: Find) -> None:
    out = dataset("channels")
    sources = {"grey": noise(8, 6, 1, 1), "colour": noise(8, 6, 2, 3), "alpha": noise(8, 6, 3, 4)}
    found = by_file(load(out), "image/filename")
    for name, pixels in sources.items():
        expected = np.repeat(pixels, 3, axis=2) if name == "grey" else pixels[..., :3]
        assert np.array_equal(found[f"x/{name}.png"]["image/encoded"], expected)
    grey = by_file(load(out, channels=1), "image/filename")
    assert np.array_equal(grey["x/grey.png"]["image/encoded"], sources["grey"])
    assert {element["image/encoded"].shape for element in grey.values()} == {(6, 8, 1)}


def test_sixteen_bits_stay_and_scale_to_one(dataset: Find) -> None:
    out = dataset("deep")
    for number in range(3):
        values = np.random.default_rng(number).integers(0, 65536, (6, 8)).astype(np.uint16)[..., None]
        kept = by_file(load(out), "image/filename")[f"x/{number}.png"]["image/encoded"]
        assert kept.dtype == np.uint16
        assert np.array_equal(kept, values)
        scaled = by_file(load(out, scale=True), "image/filename")[f"x/{number}.png"]["image/encoded"]
        np.testing.assert_allclose(scaled, values / 65535, atol=1e-6)


@pytest.mark.parametrize("keys", ["imagenet", "simple"])
def test_raw_pixels_get_their_shape(dataset: Find, keys: str) -> None:
    found = by_file(load(dataset("raw", keys=keys), names="short"))
    for number in range(4):
        image = found[f"{'xy'[number % 2]}/{number}.png"]["image"]
        assert np.array_equal(image, noise(8 + number, 6, number))


def test_raw_pixels_of_both_depths_are_reduced_to_eight_bits(dataset: Find) -> None:
    found = by_file(load(dataset("raw_deep"), names="short"))
    values = np.random.default_rng(0).integers(0, 65536, (6, 8)).astype(np.uint16)
    assert np.array_equal(found["x/0.png"]["image"][..., 0], values >> 8)
    assert np.array_equal(found["x/narrow.png"]["image"], noise(8, 6, 9, 1))


# ---------------------------------------------------------------------------------------------------------------------
# Other features


def test_lists_are_dense_in_a_record_and_ragged_in_a_batch(dataset: Find) -> None:
    out = dataset("several")
    tags = {"a.png": [b"p", b"q"], "b.png": [], "c.png": [b"r"]}
    found = by_file(load(out), "image/filename")
    assert {name: list(element["tags"]) for name, element in found.items()} == tags
    for options in ({}, {"decode": False}):
        batch = next(iter(load(out, batch_size=3, **options)))
        assert isinstance(batch["tags"], tf.RaggedTensor)
        rows = dict(zip(batch["image/filename"].numpy(), batch["tags"].to_list(), strict=True))
        assert {name.decode(): row for name, row in rows.items()} == tags


def test_tables_are_parsed_in_batches_to_the_same_values_as_one_by_one(dataset: Find) -> None:
    out = dataset("table")
    single = elements(load(out))
    assert [element["age"] for element in single] == [record["age"][0] for record in records(out)]
    batches = list(load(out, batch_size=4))
    assert [len(batch["age"]) for batch in batches] == [4, 4, 2]
    for key in ("age", "weight", "source_id"):
        key = "image/source_id" if key == "source_id" else key
        assert np.concatenate([batch[key] for batch in batches]).tolist() == [element[key] for element in single]
    tags = [row for batch in batches for row in batch["tags"].to_list()]
    assert tags == [list(element["tags"]) for element in single]


def test_a_table_supervises_with_its_columns(dataset: Find) -> None:
    for features, label in load(dataset("table"), as_supervised=True, label="weight", batch_size=5):
        assert label.dtype == tf.float32
        assert "weight" not in features
        assert np.array_equal(features["age"] / 4, label)


def test_one_hot_has_a_one_for_each_label(dataset: Find) -> None:
    out = dataset("several")
    expected = {"a.png": [1, 0, 1], "b.png": [0, 1, 0], "c.png": [0, 0, 1]}
    options: dict[str, Any] = {"as_supervised": True, "one_hot": True, "features": ["image/filename"]}
    for more in ({}, {"batch_size": 3}):
        found = {}
        for features, target in load(out, **options, **more):
            assert target.dtype == tf.float32
            for name, row in zip(np.ravel(features["image/filename"]), np.reshape(target, (-1, 3)), strict=True):
                found[name.decode()] = row.tolist()
        assert found == expected


def test_one_hot_finds_ids_that_do_not_start_at_zero(dataset: Find) -> None:
    out = dataset("classes", label_offset=5)
    for features, target in load(out, as_supervised=True, one_hot=True, features=["image/class/label"]):
        label = elements(load(out, "train", features="image/class/label"))
        assert target.shape == (3,)
        assert {int(element["image/class/label"]) for element in label} <= {5, 6, 7}
        assert features == {}
    pairs = zip(load(out, as_supervised=True), load(out, as_supervised=True, one_hot=True), strict=True)
    assert all(int(label) - 5 == int(tf.argmax(row)) for (_, label), (_, row) in pairs)


def test_a_name_of_the_label_works_under_every_preset(dataset: Find) -> None:
    for keys in ("imagenet", "tfds", "simple"):
        image, label = next(iter(load(dataset("classes", keys=keys), as_supervised=True, label="label")))
        assert image.shape == (24, 32, 3)
        assert label.dtype == tf.int64


def test_detection_supervises_with_boxes_and_labels(dataset: Find) -> None:
    image, target = next(iter(load(dataset("boxes"), as_supervised=True, names="short", batch_size=2, image_size=32)))
    assert image.shape == (2, 32, 32, 3)
    assert set(target) == {"boxes", "object_label"}
    assert [len(boxes) for boxes in target["boxes"]] == [len(labels) for labels in target["object_label"]]


def test_clips_have_a_dimension_more(dataset: Find) -> None:
    out = dataset("sequence")
    found = by_file(load(out, names="short"), "source_id")
    for clip, length in (("m", 3), ("n", 2)):
        element = found[clip]
        assert [name.decode() for name in element["filename"]] == [f"{clip}{place}.png" for place in range(length)]
        assert element["speed"].tolist() == [place / 2 for place in range(length)]
        assert element["image"].shape == (length, 6, 8, 3)
        for place in range(length):
            assert np.array_equal(element["image"][place], noise(8, 6, 10 * place + length))
    batch = next(iter(load(out, names="short", batch_size=2, image_size=4, scale=True)))
    assert batch["image"].bounding_shape().numpy().tolist() == [2, 3, 4, 4, 3]
    assert batch["label"].shape == (2,)


def test_clips_of_raw_pixels(dataset: Find) -> None:
    found = by_file(load(dataset("sequence", image_format="raw"), names="short"), "source_id")
    assert np.array_equal(found["n"]["image"][1], noise(8, 6, 12))


# ---------------------------------------------------------------------------------------------------------------------
# What goes wrong


def test_what_cannot_be_loaded_is_told(dataset: Find, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no split 'trian' \\(did you mean 'train'"):
        load(dataset("classes"), "trian")
    with pytest.raises(DatasetError, match=r"holds no conversion\.json"):
        load(tmp_path)
    with pytest.raises(DatasetError, match="there is no such file or folder"):
        load(tmp_path / "nothing")
    (tmp_path / "conversion.json").write_text("{}")
    with pytest.raises(DatasetError, match="damaged"):
        load(tmp_path)


def test_a_damaged_shard_does_not_pass_as_data(dataset: Find, tmp_path: Path) -> None:
    for path in dataset("classes").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    shard = tmp_path / "train-00001-of-00003.tfrecord"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    with pytest.raises(tf.errors.DataLossError):
        elements(load(tmp_path))
    shard.write_bytes(b"")
    with pytest.raises(tf.errors.FailedPreconditionError, match="expected to contain"):
        elements(load(tmp_path))


def test_a_place_that_tensorflow_cannot_read_is_told(dataset: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dataclasses.replace(open_dataset(dataset("classes")), folder="s3://bucket/shapes")
    monkeypatch.setattr(loader, "open_dataset", lambda directory: found)
    with pytest.raises(DatasetError, match=r"cannot read s3://bucket/shapes/train-.*: install tensorflow-io"):
        load("s3://bucket/shapes")


def test_without_tensorflow_the_message_names_the_package(dataset: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    tensorflow_import.import_tensorflow.cache_clear()
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ImportError, match=r"pip install 'beam-tfrecord\[tensorflow\]'") as caught:
        load(dataset("classes"))
    assert isinstance(caught.value, ConfigError)
    monkeypatch.undo()
    tensorflow_import.import_tensorflow.cache_clear()


def test_options_are_checked_before_tensorflow_is_imported() -> None:
    script = (
        "import sys, beam_tfrecord\n"
        "try: beam_tfrecord.load('nowhere', batch_size=0)\n"
        "except beam_tfrecord.ConfigError: print('tensorflow' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
