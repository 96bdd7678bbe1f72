"""TFRecords of other tools are converted: what TensorFlow reads in them is what it reads in the dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord import convert
from pipelines.main import main
from tests.end_to_end.datasets import check_accounts, conversion, converted, findings, records
from tests.samples import jpeg, painted_boxes, png, turned_jpeg
from tests.tiny_reader import frame

tf = pytest.importorskip("tensorflow")

BOXES = [[(4, 3, 20, 15)], [(4, 3, 20, 15), (24, 15, 36, 27)], []]
NAMES = ["cat", "dog"]


def example(**features: Any) -> bytes:
    message = tf.train.Example()
    for key, values in features.items():
        feature = message.features.feature[key]
        if isinstance(values[0] if values else b"", bytes):
            feature.bytes_list.value.extend(values)
        elif isinstance(values[0], float):
            feature.float_list.value.extend(values)
        else:
            feature.int64_list.value.extend(values)
    return bytes(message.SerializeToString())


def detection(number: int) -> bytes:
    """As create_pascal_tf_record.py of the Object Detection API writes it."""
    width, height, boxes = 40, 30, BOXES[number]
    masks = []
    for box in boxes:
        mask = np.zeros((height, width), np.uint8)
        mask[box[1] : box[3], box[0] : box[2]] = 1
        masks.append(png(Image.fromarray(mask)))
    features: dict[str, Any] = {
        "image/encoded": [jpeg(painted_boxes(width, height, boxes))],
        "image/format": [b"jpeg"],
        "image/filename": [b"%d.jpg" % number],
        "image/source_id": [b"%d" % (1000 + number)],
        "image/height": [height],
        "image/width": [width],
    }
    if boxes:
        features |= {
            "image/object/bbox/xmin": [box[0] / width for box in boxes],
            "image/object/bbox/ymin": [box[1] / height for box in boxes],
            "image/object/bbox/xmax": [box[2] / width for box in boxes],
            "image/object/bbox/ymax": [box[3] / height for box in boxes],
            "image/object/class/text": [NAMES[place].encode() for place in range(len(boxes))],
            "image/object/class/label": [place + 1 for place in range(len(boxes))],
            "image/object/mask": masks,
        }
    return example(**features)


def write(path: Path, items: list[bytes], compression: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=compression)) as writer:
        for item in items:
            writer.write(item)
    return path


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records_of_the_object_detection_api(tmp_path: Path, compression: str) -> None:
    for part in range(2):
        name = f"pets_train.record-{part:05d}-of-00002"
        write(tmp_path / "old" / name, [detection(number) for number in ((0, 1) if part else (2,))], compression)
    summary = converted(tmp_path / "old", tmp_path / "out")
    assert (summary.written, summary.rejected) == (3, {})
    told = conversion(tmp_path / "out")
    assert told["labels"] == NAMES
    assert list(told["splits"]) == ["pets_train"]
    old = {1000 + number: tf.train.Example.FromString(detection(number)).features.feature for number in range(3)}
    for new in records(tmp_path / "out"):
        (name,) = new["image/source_id"]
        was = old[int(name)]
        assert new["image/encoded"] == list(was["image/encoded"].bytes_list.value)
        for side in ("xmin", "ymin", "xmax", "ymax"):
            key = f"image/object/bbox/{side}"
            assert np.allclose(new[key], list(was[key].float_list.value), atol=1e-6)
        assert new["image/object/class/text"] == list(was["image/object/class/text"].bytes_list.value)
        masks = [tf.io.decode_png(mask).numpy() for mask in new["image/object/mask"]]
        assert len(masks) == len(was["image/object/mask"].bytes_list.value)
        for mask, given in zip(masks, was["image/object/mask"].bytes_list.value, strict=True):
            assert np.array_equal(mask, tf.io.decode_png(given).numpy())


def test_a_dataset_of_tensorflow_datasets_keeps_the_ids_of_its_labels(tmp_path: Path) -> None:
    """The files are what tensorflow_datasets 4.9 writes, but for what is not looked at."""
    folder = tmp_path / "shapes" / "1.0.0"
    names = [f"class_{number}" for number in (5, 3, 11, 2, 1, 7, 9, 4, 8, 6, 0)]
    items = [example(image=[png(Image.new("RGB", (8, 8), (n, 0, 0)))], label=[n % 11]) for n in range(22)]
    write(folder / "shapes-train.tfrecord-00000-of-00001", items[:20])
    write(folder / "shapes-test.tfrecord-00000-of-00001", items[20:])
    (folder / "label.labels.txt").write_text("\n".join(names) + "\n")
    label = {"pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel"}
    features = {
        "pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
        "featuresDict": {"features": {"label": {**label, "classLabel": {"numClasses": "11"}}}},
    }
    (folder / "features.json").write_text(json.dumps(features))
    split = {"filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"}
    info = {
        "name": "shapes",
        "version": "1.0.0",
        "fileFormat": "tfrecord",
        "splits": [
            {**split, "name": "train", "shardLengths": ["20"], "numBytes": "1"},
            {**split, "name": "test", "shardLengths": ["2"], "numBytes": "1"},
        ],
    }
    (folder / "dataset_info.json").write_text(json.dumps(info))
    summary = converted(folder.parent, tmp_path / "out")
    assert (summary.written, summary.rejected) == (22, {})
    told = conversion(tmp_path / "out")
    assert told["labels"] == names
    assert {name: split["records"] for name, split in told["splits"].items()} == {"train": 20, "test": 2}
    for new in records(tmp_path / "out"):
        number = int(tf.io.decode_png(new["image/encoded"][0]).numpy()[0, 0, 0])
        assert new["image/class/label"] == [number % 11]
        assert new["image/class/text"] == [names[number % 11].encode()]
    (folder / "shapes-test.tfrecord-00000-of-00001").write_bytes(frame(items[20]))
    status = main(["convert", "--input", str(folder), "--output", str(tmp_path / "short"), "--quiet"])
    assert status == 1


def test_boxes_of_turned_pictures_are_those_of_the_stored_pixels(tmp_path: Path) -> None:
    """TensorFlow turns no picture, so the boxes of such records lie in the pixels as they are stored."""
    upright = painted_boxes(40, 30, [(4, 3, 20, 15)])
    data = turned_jpeg(upright, 6)
    stored = np.asarray(Image.open(__import__("io").BytesIO(data)).convert("RGB")).astype(int)
    rows, columns = np.nonzero((stored[..., 0] > 180) & (stored[..., 1] < 90) & (stored[..., 2] < 90))
    height, width = stored.shape[:2]
    sides = {
        "xmin": columns.min() / width,
        "xmax": (columns.max() + 1) / width,
        "ymin": rows.min() / height,
        "ymax": (rows.max() + 1) / height,
    }
    given: dict[str, Any] = {f"image/object/bbox/{side}": [float(value)] for side, value in sides.items()}
    given["image/object/class/text"] = [b"red"]
    place = write(tmp_path / "a.tfrecord", [example(**{"image/encoded": [data], **given})])
    converted(place, tmp_path / "out")
    (new,) = records(tmp_path / "out")
    pixels = tf.io.decode_jpeg(new["image/encoded"][0]).numpy().astype(int)
    y1, y2 = (round(new[f"image/object/bbox/{side}"][0] * pixels.shape[0]) for side in ("ymin", "ymax"))
    x1, x2 = (round(new[f"image/object/bbox/{side}"][0] * pixels.shape[1]) for side in ("xmin", "xmax"))
    inside = pixels[y1 + 2 : y2 - 2, x1 + 2 : x2 - 2]
    assert inside.size
    assert (inside[..., 0] > inside[..., 1] + 80).all()


def test_damage_is_a_reject_and_everything_is_accounted_for(tmp_path: Path) -> None:
    path = write(tmp_path / "old" / "a.tfrecord", [detection(number) for number in range(3)])
    (path.parent / "notes.txt").write_text("old\n")
    data = bytearray(path.read_bytes())
    data[len(frame(detection(0))) + 200] ^= 1
    path.write_bytes(bytes(data))
    assert convert(path.parent, tmp_path / "out", max_rejects="50%").rejected == {"damaged_record": 1}
    (reject,) = findings(tmp_path / "out")
    assert (reject["code"], reject["origin"]) == ("damaged_record", f"{path}:1")
    told = conversion(tmp_path / "out")
    check_accounts(told)
    (account,) = told["inputs"]
    assert account["found"]["records"] == 3
    assert account["used"]["records"] == {"row": 2}
    assert account["found"]["files"] == 2
    assert account["found"]["features"] == sum(
        len(tf.train.Example.FromString(detection(number)).features.feature) for number in (0, 2)
    )
    keys = {decision["what"]: decision["value"] for decision in account["decisions"]}
    assert keys["key of the image"] == "image/encoded"


def test_a_dataset_of_this_tool_is_no_input_of_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "old" / "a.tfrecord", [detection(0)])
    converted(tmp_path / "old", tmp_path / "out")
    for place in (tmp_path / "out", next((tmp_path / "out").glob("*.tfrecord"))):
        assert main(["convert", "--input", str(place), "--output", str(tmp_path / "again"), "--quiet"]) == 2
        assert "reshard" in capsys.readouterr().err


def test_keys_are_named_for_records_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jpg").write_bytes(jpeg(painted_boxes(8, 8, [])))
    (tmp_path / "a.csv").write_text("image,label\na.jpg,x\n")
    flags = ["--input", str(tmp_path / "a.csv"), "--output", str(tmp_path / "out"), "--label_key", "label", "--quiet"]
    assert main(["convert", *flags]) == 2
    assert "--label_column" in capsys.readouterr().err


def test_a_glob_is_one_input(tmp_path: Path) -> None:
    for part in range(3):
        write(tmp_path / "old" / f"val-{part:05d}-of-00003", [detection(part)])
    converted(f"{tmp_path}/old/val-*", tmp_path / "out")
    told = conversion(tmp_path / "out")
    assert [account["format"] for account in told["inputs"]] == ["tfrecord"]
    assert told["splits"]["val"]["records"] == 3
