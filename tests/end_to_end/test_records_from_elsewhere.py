"""Records that others wrote: values are kept, or what is not is a fault with its place; verify and extract agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord.tools.verifying import Fault
from pipelines import extract as extract_command
from pipelines import index as index_command
from pipelines import report as report_command
from pipelines import reshard as reshard_command
from pipelines import show as show_command
from pipelines import verify as verify_command
from pipelines.main import main
from tests.end_to_end.datasets import records
from tests.samples import noise, png
from tests.tiny_reader import frame

tf = pytest.importorskip("tensorflow")

Features = dict[str, Any]  # key -> values of one type, an empty list for bytes; None for a feature without a kind


def example(seed: int, **features: Any) -> bytes:
    """A record with an image; written by TensorFlow."""
    message = tf.train.Example()
    picture = png(Image.fromarray(noise(16, 12, seed)))
    fill(message.features, {"image/encoded": [picture], "image/filename": [b"p%d.png" % seed], **features})
    return bytes(message.SerializeToString())


def fill(target: Any, features: Features) -> None:
    for key, values in features.items():
        feature = target.feature[key]
        if values is None:
            feature.SetInParent()
        elif not values:
            feature.bytes_list.SetInParent()
        elif isinstance(values[0], bytes):
            feature.bytes_list.value.extend(values)
        elif isinstance(values[0], float):
            feature.float_list.value.extend(values)
        else:
            feature.int64_list.value.extend(values)


def write(path: Path, items: list[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(frame, items)))
    return path


def run(command: Any, capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    """(exit status, what --json tells)."""
    status = command.main([*map(str, arguments), "--json", "--quiet"])
    out = capsys.readouterr().out
    return status, json.loads(out.splitlines()[-1]) if out.strip() else {}


def back(folder: Path, output: Path) -> list[dict[str, Any]]:
    assert main(["convert", f"@{folder}/convert.args", "--output", str(output), "--quiet"]) == 0
    return records(output)


def test_missing_values_without_a_kind_come_back_as_empty_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ages: list[Any] = [[30], None, [32], None]
    items = [example(n, age=age, always=[n], never=None) for n, age in enumerate(ages)]
    place = write(tmp_path / "in" / "train-00000-of-00001.tfrecord", items).parent
    assert run(verify_command, capsys, place)[0] == 0
    status, told = run(extract_command, capsys, place, "--output", tmp_path / "e")
    assert (status, told["faults"]) == (0, 0)
    features = sum(len(tf.train.Example.FromString(item).features.feature) for item in items)
    account = told["account"]
    assert account["found"] == {"features": features, "records": 4}
    assert account["used"] == {"features": {"kept": 14}, "records": {"extracted": 4}}
    assert account["named"] == {"features": {"without a value": {"count": 6, "example": "age"}}}
    assert account["unaccounted"] == []
    found = back(tmp_path / "e", tmp_path / "out")
    assert sorted((r["always"][0], tuple(r["age"])) for r in found) == [(0, (30,)), (1, ()), (2, (32,)), (3, ())]


LOST = {
    "two types": ([{"x": [1]}, {"x": [1.5]}, {"x": [2]}], "x", "float and int64", 1),
    "a name that no column has": ([{}, {"a,b": [1]}], "a,b", "no column can be called so", 1),
    "an attribute of another length": (
        [
            {
                "image/object/bbox/xmin": [0.1],
                "image/object/bbox/xmax": [0.5],
                "image/object/bbox/ymin": [0.1],
                "image/object/bbox/ymax": [0.5],
                "image/object/class/label": [1],
                "image/object/difficult": [0, 1],
            }
        ],
        "image/object/difficult",
        "2 values for 1 objects",
        0,
    ),
    "keypoints without boxes": (
        [{"image/object/keypoint/x": [0.5], "image/object/keypoint/y": [0.5]}],
        "image/object/keypoint/x",
        "cannot be told",
        0,
    ),
}


@pytest.mark.parametrize("what", LOST)
def test_what_cannot_be_kept_is_a_fault_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    rows, key, why, record = LOST[what]
    items = [example(number, **row) for number, row in enumerate(rows)]
    place = write(tmp_path / "in" / "train-00000-of-00001.tfrecord", items).parent
    status, told = run(extract_command, capsys, place, "--output", tmp_path / "e")
    assert status == 1
    assert told["records"] == len(items)
    assert told["account"]["unaccounted"] == []
    faults = [fault for fault in told["details"] if f" {key} is left out" in fault]
    assert len(faults) == 1, told["details"]
    assert f"record {record} at byte" in faults[0]
    assert why in faults[0]
    assert told["by_code"]["lost_feature"] >= 1
    assert len(back(tmp_path / "e", tmp_path / "out")) == len(items)
    status, told = run(verify_command, capsys, place)
    assert status == 1
    assert told["by_code"].keys() <= {"lost_feature", "uneven_lists", "wrong_features"}
    assert any(key in fault["cause"] for fault in told["details"])


UNEVEN = {
    "boxes": {"image/object/bbox/xmin": [0.1, 0.2], "image/object/bbox/xmax": [0.5], "image/object/bbox/ymin": [0.1],
              "image/object/bbox/ymax": [0.5]},
    "classes": {"image/object/bbox/xmin": [0.1], "image/object/bbox/xmax": [0.5], "image/object/bbox/ymin": [0.1],
                "image/object/bbox/ymax": [0.5], "image/object/class/label": [1, 2]},
    "names of labels": {"image/class/label": [1, 2], "image/class/text": [b"one"]},
}  # fmt: skip


@pytest.mark.parametrize("what", UNEVEN)
def test_lists_of_unequal_length_are_a_fault_of_both_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    place = write(tmp_path / "in" / "x.tfrecord", [example(0), example(1, **UNEVEN[what])]).parent
    for command, further in ((verify_command, ()), (extract_command, ("--output", tmp_path / "e"))):
        status, told = run(command, capsys, place, *further)
        assert status == 1
        assert told["by_code"] == {"uneven_lists": 1}


BOX = {f"image/object/bbox/{axis}{end}": [value] for axis in "xy" for end, value in (("min", 0.1), ("max", 0.5))}
DISAGREEING = {
    "a column of two types": ([{"x": [1]}, {}, {"x": [1.5]}], "x is", 2),
    "an id of two types": ([{"image/source_id": [b"a"]}, {"image/source_id": [7]}], "image/source_id is int64", 1),
    "an id with two names": (
        [{"image/class/label": [1], "image/class/text": [name]} for name in (b"cat", b"cat", b"dog")],
        "the id 1 has the names 'cat' and 'dog'",
        2,
    ),
    "an id with two names and without": (
        [
            {"image/class/label": [1], **text}
            for text in (
                {},
                {"image/class/text": [b"cat"]},
                {"image/class/text": [b""]},
                {"image/class/text": [b"dog"]},
            )
        ],
        "the id 1 has the names 'cat' and 'dog', and 2 times none",
        3,
    ),
    "a name with two ids": (
        [{**BOX, "image/object/class/label": [n], "image/object/class/text": [b"cat"]} for n in (1, 2)],
        "the id 2 has the name 'cat', and so has 1",
        1,
    ),
}


@pytest.mark.parametrize("split", [False, True], ids=["in one file", "in several files"])
@pytest.mark.parametrize("what", DISAGREEING)
def test_records_that_disagree_are_a_fault_of_both_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, split: bool
) -> None:
    rows, cause, record = DISAGREEING[what]
    items = [example(number, **row) for number, row in enumerate(rows)]
    files = [[item] for item in items] if split else [items]
    for number, own in enumerate(files):
        place = write(tmp_path / "in" / f"train-{number:05d}-of-{len(files):05d}.tfrecord", own).parent
    where = f"train-{record:05d}-of-{len(files):05d}.tfrecord: record 0" if split else f": record {record} at byte"
    for command, further in ((verify_command, ()), (extract_command, ("--output", tmp_path / "e"))):
        status, told = run(command, capsys, place, *further)
        assert (status, told["faults"]) == (1, 1), told
        (fault,) = [detail if isinstance(detail, str) else str(Fault(**detail)) for detail in told["details"]]
        assert where in fault
        assert cause in fault


@pytest.mark.parametrize("split", [False, True], ids=["in one file", "in several files"])
@pytest.mark.parametrize("missing", [{}, {"image/object/class/text": []}, {"image/object/class/text": [b" ", b""]}])
def test_ids_without_names_are_called_as_in_other_records_by_both_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: Features, split: bool
) -> None:
    boxes = {key: values * 2 for key, values in BOX.items()}
    rows = [
        {"image/object/class/label": [2, 1], **missing},
        {"image/object/class/label": [1, 2], "image/object/class/text": [b"cat", b"dog"]},
        {"image/object/class/label": [2, 7], "image/object/class/text": [b"", b""]},
    ]
    items = [example(number, **boxes, **row) for number, row in enumerate(rows)]
    files = [[item] for item in items] if split else [items]
    for number, own in enumerate(files):
        place = write(tmp_path / "in" / f"train-{number:05d}-of-{len(files):05d}.tfrecord", own).parent
    for command, further in ((verify_command, ()), (extract_command, ("--output", tmp_path / "e"))):
        status, told = run(command, capsys, place, *further)
        assert (status, told["faults"]) == (0, 0), told
        assert "3 labels have no name in their records: other records name the same ids" in told["notes"]
    lines = [json.loads(line) for line in (tmp_path / "e/manifest.jsonl").read_text().splitlines()]
    classes = [[box["class"] for box in line["boxes"]] for line in lines]
    assert classes == [["dog", "cat"], ["cat", "dog"], ["dog", "7"]]


def test_a_file_in_which_no_record_is_an_example_is_one_fault_of_both_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = write(tmp_path / "in" / "train-00000-of-00002.tfrecord", [b"\xff\xfe text", b"\x99" * 20]).parent
    write(place / "train-00001-of-00002.tfrecord", [example(0)])
    for command, further in ((verify_command, ()), (extract_command, ("--output", tmp_path / "e"))):
        status, told = run(command, capsys, place, *further)
        assert (status, told["by_code"]) == (1, {"no_example": 1})
        assert "none of its 2 records" in str(told["details"])


@pytest.mark.parametrize("missing", ["shorter list", "empty step", "step without a kind"])
def test_a_sequence_that_lacks_a_frame_is_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    message = tf.train.SequenceExample()
    fill(message.context, {"image/source_id": [b"s"]})
    for step in range(4):
        message.feature_lists.feature_list["label"].feature.add().int64_list.value.append(step)
        if step == 2 and missing == "shorter list":
            continue
        picture = message.feature_lists.feature_list["image/encoded"].feature.add()
        if step == 2:
            picture.bytes_list.value.extend([b""] if missing == "empty step" else [])
            if missing == "step without a kind":
                picture.Clear()
        else:
            picture.bytes_list.value.append(png(Image.fromarray(noise(8, 8, step))))
    place = write(tmp_path / "in" / "x.tfrecord", [bytes(message.SerializeToString())]).parent
    for command, further in ((verify_command, ()), (extract_command, ("--output", tmp_path / "e"))):
        status, told = run(command, capsys, place, *further)
        assert status == 1, command
        assert told["faults"] >= 1


@pytest.mark.parametrize("content", ["pointer", "page", "nothing"])
def test_no_command_takes_a_file_that_holds_no_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    data = {"pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "page": b"<html></html>"}
    place = write(tmp_path / "in" / "train-00000-of-00002.tfrecord", [example(0)]).parent
    (place / "train-00001-of-00002.tfrecord").write_bytes(data.get(content, b""))
    code = "empty_file" if content == "nothing" else "no_records"
    for command, further in ((verify_command, ()), (extract_command, ("--output", tmp_path / "e"))):
        status, told = run(command, capsys, place, *further)
        assert (status, told["by_code"]) == (1, {code: 1})
        assert told["records"] == 1
    assert reshard_command.main([str(place), "--output", str(tmp_path / "r"), "--quiet"]) == 1
    assert not (tmp_path / "r" / "train-00000-of-00002.tfrecord").exists()
    assert index_command.main([str(place), "--quiet"]) == 1
    assert "train-00001-of-00002.tfrecord: the file h" in capsys.readouterr().err


def test_a_folder_of_two_sets_of_shards_is_told_by_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = write(tmp_path / "in" / "train-00000-of-00001.tfrecord", [example(0)]).parent
    for number in range(2):
        write(place / f"train-{number:05d}-of-00002.tfrecord", [example(number)])
    for command, further in ((verify_command, ()), (extract_command, ("--output", tmp_path / "e"))):
        status, told = run(command, capsys, place, *further)
        assert (status, told["by_code"]) == (1, {"mixed_datasets": 1})
    assert reshard_command.main([str(place), "--output", str(tmp_path / "r"), "--quiet"]) == 1
    assert "two sets of shards" in capsys.readouterr().err
    show_command.main([str(place)])
    assert "two sets of shards" in capsys.readouterr().err
    assert report_command.main([str(place)]) == 1
    assert "two sets of shards" in capsys.readouterr().err
    assert not (place / "report.html").exists()
    for command, further in ((verify_command, ()), (extract_command, ("--output", tmp_path / "e2"))):
        other = write(tmp_path / "other" / "train-00000-of-00001.tfrecord", [example(0)]).parent
        status, told = run(command, capsys, place, other, *further)
        assert (status, told["by_code"], told["records"]) == (1, {"mixed_datasets": 1}, 4)


def test_a_shard_that_is_missing_is_a_fault_of_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = write(tmp_path / "in" / "train-00000-of-00002.tfrecord", [example(0)]).parent
    for command, further in ((verify_command, ()), (extract_command, ("--output", tmp_path / "e"))):
        status, told = run(command, capsys, place, *further)
        assert (status, told["by_code"]) == (1, {"missing_file": 1})
    assert reshard_command.main([str(place), "--output", str(tmp_path / "r"), "--quiet"]) == 1
    assert "train-00001-of-00002.tfrecord" in capsys.readouterr().err


def test_names_that_lie_beside_records_of_tensorflow_datasets_are_their_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def record(number: int, label: int) -> bytes:
        message = tf.train.Example()
        features = {"image": [png(Image.fromarray(noise(16, 12, number)))], "label": [label]}
        objects = {"objects/bbox": [0.1, 0.2, 0.5, 0.6], "objects/label": [number % 2]}
        fill(message.features, {**features, **objects})
        return bytes(message.SerializeToString())

    place = write(tmp_path / "in" / "leaf-train.tfrecord-00000-of-00001", [record(n, n % 3) for n in range(4)]).parent
    (place / "label.labels.txt").write_text("oak\nelm\nash\nunused\n")
    (place / "objects-label.labels.txt").write_text("stem\nblade\n")
    status, told = run(extract_command, capsys, place, "--output", tmp_path / "e")
    assert status == 0, told
    assert (tmp_path / "e" / "labels.txt").read_text().split() == ["oak", "elm", "ash", "unused", "stem", "blade"]
    lines = [json.loads(line) for line in (tmp_path / "e" / "manifest.jsonl").read_text().splitlines()]
    assert [line["label"] for line in lines] == ["oak", "elm", "ash", "oak"]
    assert [line["boxes"][0]["class"] for line in lines] == ["stem", "blade", "stem", "blade"]
    assert any("stem 0 -> 4, blade 1 -> 5" in note for note in told["notes"])

    write(place / "leaf-train.tfrecord-00000-of-00001", [record(0, 7)])
    for command, further in ((verify_command, ()), (extract_command, ("--output", tmp_path / "e2"))):
        status, told = run(command, capsys, place, *further)
        assert (status, told["by_code"]) == (1, {"bad_label": 1})
