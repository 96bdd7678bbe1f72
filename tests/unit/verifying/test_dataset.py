"""Datasets whose files do not agree with one another."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.annotations.base import FeatureSpec
from beam_tfrecord.tfrecord.example import encode_example
from beam_tfrecord.tools.verifying import FAULT_CODES, Fault
from beam_tfrecord.tools.verifying.dataset import verdict_from_json
from tests.handmade import Handmade, Record, make_dataset, picture_record, small_dataset, texts, whole, write_shard
from tests.verifying_tools import codes_of, faults_of, verdict_of

FIRST = "train-00000-of-00002.tfrecord"


@pytest.fixture
def dataset(tmp_path: Path) -> Handmade:
    return small_dataset(tmp_path / "dataset")


def set_value(*path: str | int, value: Any) -> Callable[[Any], None]:
    """A change that sets one value deep in a JSON file."""

    def change(content: Any) -> None:
        for step in path[:-1]:
            content = content[step]
        content[path[-1]] = value

    return change


SHARD = ("splits", "train", "shards", 0)
CONVERSION_EDITS: dict[str, tuple[Callable[[Any], None], str, str]] = {
    "rows": (set_value("rows", value=10), "wrong_metadata", "rows is 10"),
    "written": (set_value("written", value=8), "wrong_metadata", "written is 8"),
    "rejected": (set_value("rejected", "total", value=1), "wrong_metadata", "rejected.total is 1"),
    "split records": (set_value("splits", "train", "records", value=7), "wrong_metadata", "7 records are stated"),
    "shard records": (set_value(*SHARD, "records", value=4), "wrong_count", "3 whole records, but 4 are stated"),
    "shard bytes": (set_value(*SHARD, "bytes", value=1), "wrong_size", "but 1 are stated"),
    "shard payload": (set_value(*SHARD, "payload_bytes", value=1), "wrong_size", "but 1 are stated"),
    "shard crc": (set_value(*SHARD, "crc32c", value="00000000"), "wrong_checksum", "00000000"),
    "shard file": (set_value(*SHARD, "file", value="other.tfrecord"), "missing_file", "not there"),
    "classes": (set_value("classes", "train", "cat", value=99), "wrong_count", "'cat'"),
    "labels": (set_value("labels", value=["cat", "hen", "emu"]), "bad_label", "'hen'"),
    "label offset": (set_value("label_offset", value=0), "bad_label", "the id 3"),
    "a label too many": (set_value("labels", value=["cat", "dog", "emu", "fox"]), "wrong_metadata", "4"),
    "status": (set_value("status", value="withheld"), "wrong_metadata", "withheld"),
    "a feature": (
        set_value("features", "image/more", value={"dtype": "int64", "shape": [], "role": "scalar"}),
        "wrong_features",
        "lacks the feature image/more",
    ),
    "a feature's type": (set_value("features", "image/height", "dtype", value="float"), "wrong_features", "float"),
    "message": (set_value("message", value="SequenceExample"), "wrong_features", "SequenceExample"),
    "compression": (set_value("compression", value="gzip"), "wrong_compression", "gzip"),
    "a metadata file": (set_value("files", value=["more.json"]), "missing_file", "not there"),
}


@pytest.mark.parametrize("what", CONVERSION_EDITS)
def test_an_edit_of_conversion_json_is_found(dataset: Handmade, what: str) -> None:
    change, code, cause = CONVERSION_EDITS[what]
    dataset.edit("conversion.json", change)
    found = faults_of(dataset.folder)
    assert any(fault.code == code and cause in fault.cause for fault in found), found


@pytest.mark.parametrize(
    "key", ["features", "splits", "labels", "label_offset", "compression", "message", "keys", "options"]
)
def test_a_conversion_json_that_lacks_something_is_told_and_the_records_are_checked(
    dataset: Handmade, key: str
) -> None:
    dataset.edit("conversion.json", lambda conversion: conversion.pop(key))
    verdict = verdict_of(dataset.folder)
    assert [(fault.file, fault.code) for fault in verdict.faults] == [("conversion.json", "wrong_metadata")]
    assert f"'{key}'" in verdict.faults[0].cause
    assert verdict.records == 9


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"splits": 3}', '{"splits": {"train": []}}'])
def test_a_damaged_conversion_json_is_told(dataset: Handmade, content: str) -> None:
    (dataset.folder / "conversion.json").write_text(content)
    assert codes_of(dataset.folder) == ["wrong_metadata"]


@pytest.mark.parametrize("key", ["rows", "written", "rejected", "status", "classes"])
def test_counts_that_are_missing_are_told(dataset: Handmade, key: str) -> None:
    dataset.edit("conversion.json", lambda conversion: conversion.pop(key))
    assert "wrong_metadata" in codes_of(dataset.folder)


TFDS_EDITS: dict[str, Callable[[Any], None]] = {
    "lengths": set_value("splits", 1, "shardLengths", value=["3", "4"]),
    "a shard less": set_value("splits", 1, "shardLengths", value=["6"]),
    "bytes": set_value("splits", 1, "numBytes", value="17"),
    "template": set_value("splits", 1, "filepathTemplate", value="{SPLIT}.{SHARD_X_OF_Y}"),
    "split": set_value("splits", 1, "name", value="validation"),
    "no lengths": lambda info: info["splits"][0].pop("shardLengths"),
    "no version": lambda info: info.pop("version"),
    "text": set_value("splits", 1, "shardLengths", value=["three"]),
}


@pytest.mark.parametrize("what", TFDS_EDITS)
def test_an_edit_of_dataset_info_json_is_found(dataset: Handmade, what: str) -> None:
    dataset.edit("dataset_info.json", TFDS_EDITS[what])
    found = faults_of(dataset.folder)
    assert found
    assert {(fault.file, fault.code) for fault in found} == {("dataset_info.json", "wrong_metadata")}


def test_label_files_must_tell_the_names_of_the_conversion(dataset: Handmade) -> None:
    for name in ("labels.txt", "label_map.pbtxt"):
        path = dataset.folder / name
        good = path.read_text()
        for wrong in (good.replace("dog", "cow"), good[: len(good) // 2], ""):
            path.write_text(wrong)
            assert [(fault.file, fault.code) for fault in faults_of(dataset.folder)] == [(name, "wrong_metadata")]
        path.write_text(good)
    (tfds,) = dataset.folder.glob("*.labels.txt")
    tfds.write_text(tfds.read_text() + "one more\n")
    (fault,) = faults_of(dataset.folder)
    assert (fault.file, fault.code) == (tfds.name, "wrong_metadata")


def test_names_of_labels_may_hold_anything_printable(tmp_path: Path) -> None:
    from tests import handmade

    names = ('"quoted"', "back\\slash", "tab\there ")
    original, handmade.LABELS = handmade.LABELS, names  # type: ignore[misc, assignment]
    try:
        dataset = small_dataset(tmp_path)
    finally:
        handmade.LABELS = original
    assert faults_of(dataset.folder) == ()


def test_findings_must_have_a_line_each(dataset: Handmade) -> None:
    (dataset.folder / "rejects.jsonl").write_text("{}\n")
    (dataset.folder / "warnings.jsonl").write_text("{}\n{}\n")
    assert [(fault.file, fault.code) for fault in faults_of(dataset.folder)] == [
        ("rejects.jsonl", "wrong_count"),
        ("warnings.jsonl", "wrong_count"),
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Files in the folder


def test_a_leftover_shard_is_a_fault_and_a_stray_file_a_note(dataset: Handmade) -> None:
    leftovers = ["train-00000-of-00004.tfrecord", "old-00000-of-00001.tfrecord.gz", "train-00003-of-00004.tfrecord.idx"]
    for name in leftovers:
        (dataset.folder / name).write_bytes(b"")
    (dataset.folder / "placeholder").write_bytes(b"placeholder")
    (dataset.folder / ".hidden").write_bytes(b"")
    verdict = verdict_of(dataset.folder)
    assert [(fault.file, fault.code) for fault in verdict.faults] == [
        (name, "leftover_file") for name in sorted(leftovers)
    ]
    assert verdict.notes == ("placeholder is no part of the dataset",)


def test_many_stray_files_make_one_short_note(dataset: Handmade) -> None:
    for number in range(30):
        (dataset.folder / f"stray{number:02d}").write_bytes(b"")
    (note,) = verdict_of(dataset.folder).notes
    assert "stray00, stray01" in note
    assert "and 25 more" in note


def test_missing_metadata_files_are_named(dataset: Handmade) -> None:
    for name in ("dataset_info.json", "labels.txt", "features.json"):
        (dataset.folder / name).unlink()
    faults = faults_of(dataset.folder)
    assert [(fault.file, fault.code) for fault in faults] == [
        ("dataset_info.json", "missing_file"),
        ("features.json", "missing_file"),
        ("labels.txt", "missing_file"),
    ]
    assert "did not end" in faults[0].cause


def test_what_an_interrupted_run_left_is_told(dataset: Handmade) -> None:
    (dataset.folder / ".staging").mkdir()
    (dataset.folder / ".staging" / "shards").mkdir()
    (dataset.folder / ".staging" / "shards" / "x").write_bytes(b"1")
    verdict = verdict_of(dataset.folder)
    assert verdict.faults == ()
    assert ".staging" in verdict.notes[0]
    (dataset.folder / ".staging" / "publishing.json").write_text("[]")
    assert [fault.code for fault in faults_of(dataset.folder)] == ["unfinished"]


# ---------------------------------------------------------------------------------------------------------------------
# Ids


def dataset_with_ids(folder: Path, ids: dict[str, list[list[str]]], **options: Any) -> Handmade:
    shards = {
        split: [[{**picture_record(0), "image/source_id": texts(name)} for name in shard] for shard in files]
        for split, files in ids.items()
    }
    return make_dataset(folder, shards, **options)


def test_an_id_in_two_splits_is_a_fault_at_the_later_record(tmp_path: Path) -> None:
    dataset = dataset_with_ids(tmp_path, {"test": [["a", "b"]], "train": [["c", "d"], ["e", "b"]]})
    (fault,) = faults_of(dataset.folder)
    assert (fault.file, fault.record, fault.code) == ("train-00001-of-00002.tfrecord", 1, "duplicate_id")
    assert fault.offset == dataset.places[fault.file][1][0]
    assert "'b'" in fault.cause
    assert "record 1 of test-00000-of-00001.tfrecord" in fault.cause
    assert "test and train" in fault.cause


def test_an_id_twice_in_one_split_is_a_fault_each_time(tmp_path: Path) -> None:
    dataset = dataset_with_ids(tmp_path, {"train": [["a", "b", "a"], ["a", "c"]]})
    assert [(fault.file, fault.record) for fault in faults_of(dataset.folder)] == [
        ("train-00000-of-00002.tfrecord", 2),
        ("train-00001-of-00002.tfrecord", 0),
    ]


def test_ids_that_the_conversion_kept_on_purpose_are_a_note(tmp_path: Path) -> None:
    dataset = dataset_with_ids(tmp_path, {"test": [["a"]], "train": [["a", "b"]]}, warnings={"duplicate_id": 1})
    verdict = verdict_of(dataset.folder)
    assert verdict.faults == ()
    assert any("share their id" in note for note in verdict.notes)


def test_a_damaged_record_does_not_shift_the_numbers_of_the_others(tmp_path: Path) -> None:
    dataset = dataset_with_ids(tmp_path, {"test": [["x"]], "train": [["a", "b", "x"]]})
    name = "train-00000-of-00001.tfrecord"
    data = bytearray((tmp_path / name).read_bytes())
    data[dataset.places[name][0][0] + 100] ^= 1
    (tmp_path / name).write_bytes(data)
    assert [(fault.record) for fault in faults_of(tmp_path) if fault.code == "duplicate_id"] == [2]


def test_equal_rows_of_a_table_may_share_their_id(tmp_path: Path) -> None:
    specs = (FeatureSpec("image/source_id", "bytes", (), "text"), FeatureSpec("n", "int64"))
    row: Record = {"image/source_id": texts("row-0123456789abcdef"), "n": whole(1)}
    named: Record = {"image/source_id": texts("seven"), "n": whole(7)}
    make_dataset(tmp_path / "derived", {"test": [[row]], "train": [[row]]}, specs=specs)
    make_dataset(tmp_path / "named", {"test": [[named]], "train": [[named]]}, specs=specs)
    assert codes_of(tmp_path / "derived") == []
    assert codes_of(tmp_path / "named") == ["duplicate_id"]


# ---------------------------------------------------------------------------------------------------------------------
# Datasets of TensorFlow Datasets


def test_a_dataset_of_tfds_is_checked_against_its_own_metadata(tmp_path: Path) -> None:
    examples = [encode_example({"n": whole(number)}) for number in range(5)]
    names = [f"things-train.tfrecord-{number:05d}-of-00002" for number in range(2)]
    write_shard(tmp_path / names[0], examples[:2])
    write_shard(tmp_path / names[1], examples[2:])
    split = {"name": "train", "shardLengths": ["2", "3"], "numBytes": str(sum(map(len, examples)))}
    info = {"name": "things", "version": "1.0.0", "fileFormat": "tfrecord", "splits": [split]}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    verdict = verdict_of(tmp_path)
    assert verdict.faults == ()
    assert any("dataset_info.json is there" in note for note in verdict.notes)
    write_shard(tmp_path / names[1], examples[2:4])
    assert [(fault.file, fault.code) for fault in faults_of(tmp_path)] == [
        (names[1], "wrong_count"),
        ("dataset_info.json", "wrong_size"),
    ]
    (tmp_path / names[0]).unlink()
    assert ("missing_file", names[0]) in [(fault.code, fault.file) for fault in faults_of(tmp_path)]


# ---------------------------------------------------------------------------------------------------------------------


def test_a_verdict_survives_its_json(dataset: Handmade) -> None:
    shutil.copy(dataset.folder / FIRST, dataset.folder / "train-00000-of-00009.tfrecord")
    dataset.edit("conversion.json", set_value("rows", value=1))
    verdict = verdict_of(dataset.folder)
    assert verdict.num_faults == 2
    assert verdict_from_json(json.dumps(verdict.to_json()).encode()) == verdict


def test_every_fault_has_a_known_code() -> None:
    with pytest.raises(ValueError, match="FAULT_CODES"):
        Fault("file", None, None, "something", "cause")
    assert all(meaning.endswith(".") for meaning in FAULT_CODES.values())


def test_a_fault_says_where_it_is() -> None:
    assert (
        str(Fault("a.tfrecord", 3, 120, "bad_box", "box 0 is empty"))
        == "a.tfrecord: record 3 at byte 120: box 0 is empty"
    )
    assert str(Fault("a.tfrecord", None, None, "missing_file", "not there")) == "a.tfrecord: not there"
