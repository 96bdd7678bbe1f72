"""Which files a place names."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from beam_tfrecord.datasets.shard_files import FoundFiles, find_files, is_record_name, split_of
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage
from tests.handmade import small_dataset
from tests.tiny_reader import frame


def find(*places: Path | str) -> FoundFiles:
    return find_files([str(place) for place in places], Storage())


def names(found: FoundFiles) -> list[str]:
    return [file.name for file in found.files]


def write(folder: Path, *files: str, content: bytes = frame(b"x")) -> None:
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def test_a_dataset_is_what_its_conversion_json_lists(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path)
    write(tmp_path, "train-00007-of-00009.tfrecord", "notes.tfrecord")
    for place in (tmp_path, f"{tmp_path}/"):
        found = find(place)
        assert names(found) == dataset.shards
        assert found.facts is not None
        assert [file.stated.records for file in found.files if file.stated] == [3, 3, 3]
        assert found.splits == ["test", "train"]
        assert found.folder == str(tmp_path)


def test_a_file_that_cannot_be_read_is_named_where_no_records_are_found(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "notes").write_text("no records")
    with pytest.raises(DatasetError, match="holds no TFRecord files that could be read: loop: "):
        find(tmp_path)


def test_a_folder_from_elsewhere_is_its_record_files(tmp_path: Path) -> None:
    wanted = [
        "a.tfrecord",
        "b.tfrecords.gz",
        "c-train.tfrecord-00000-of-00002",
        "d.tfrec",
        "train-00000-of-00128",
        "e.record",
    ]
    write(tmp_path, *wanted, "a.tfrecord.idx", "info.json", ".hidden.tfrecord", "labels.txt", "sub/f.tfrecord")
    found = find(tmp_path)
    assert names(found) == sorted(wanted)
    assert found.facts is None
    assert "sub/f.tfrecord" in [fault.file for fault in found.faults if fault.code == "mixed_datasets"]


def test_without_a_telling_name_the_first_bytes_decide(tmp_path: Path) -> None:
    write(tmp_path, "records", "other")
    write(tmp_path, "packed", content=gzip.compress(frame(b"y")))
    write(tmp_path, "text", content=b"nothing of the kind, but long enough to be one")
    write(tmp_path, "empty", content=b"")
    assert names(find(tmp_path)) == ["other", "packed", "records"]


def test_record_files_below_a_folder_are_found_when_there_are_none_in_it(tmp_path: Path) -> None:
    write(tmp_path, "x/1.0.0/x-train.tfrecord-00000-of-00001", ".staging/y.tfrecord")
    assert names(find(tmp_path)) == ["x/1.0.0/x-train.tfrecord-00000-of-00001"]


def test_a_glob_takes_the_record_files_that_match(tmp_path: Path) -> None:
    write(tmp_path, "a-1.tfrecord", "a-2.tfrecord", "a-2.tfrecord.idx", "b.tfrecord", "a.json")
    assert names(find(tmp_path / "a*")) == [str(tmp_path / "a-1.tfrecord"), str(tmp_path / "a-2.tfrecord")]


def test_a_name_with_special_characters_is_taken_literally_first(tmp_path: Path) -> None:
    write(tmp_path, "a[1].tfrecord", "a1.tfrecord")
    assert names(find(tmp_path / "a[1].tfrecord")) == [str(tmp_path / "a[1].tfrecord")]


def test_files_of_a_dataset_know_what_is_stated_of_them(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path)
    found = find(*(tmp_path / name for name in dataset.shards[1:]))
    assert found.facts is not None
    assert found.folder == ""
    assert [file.split for file in found.files] == ["train", "train"]
    assert all(file.stated is not None for file in found.files)


def test_files_of_several_folders_belong_to_no_dataset(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path / "made")
    write(tmp_path, "x.tfrecord")
    found = find(dataset.folder / dataset.shards[0], tmp_path / "x.tfrecord")
    assert found.facts is None
    assert len(found.files) == 2


@pytest.mark.parametrize("place", ["nothing", "nothing*.tfrecord", "empty"])
def test_a_place_without_records_is_an_error_that_names_it(tmp_path: Path, place: str) -> None:
    write(tmp_path, "empty/readme.txt", content=b"text")
    with pytest.raises(DatasetError, match=place.replace("*", r"\*")):
        find(tmp_path / place)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train-00000-of-00008.tfrecord", "train"),
        ("out/val-00001-of-00008.tfrecord.gz", "val"),
        ("coco-test.tfrecord-00000-of-00008", "test"),
        ("validation-00000-of-00128", "validation"),
        ("data.tfrecord", ""),
        ("x.record-00000-of-00010", "x"),
    ],
)
def test_the_name_of_a_shard_tells_its_split(name: str, split: str) -> None:
    assert split_of(name) == split
    assert is_record_name(name.rpartition("/")[2])


SPLIT_TREES = {
    "TFX": {
        "Split-train/data_tfrecord-00000-of-00001.gz": "train",
        "Split-eval/data_tfrecord-00000-of-00001.gz": "eval",
    },
    "folders": {"train/a.tfrecord": "train", "train/b.tfrecord": "train", "eval/a.tfrecord": "eval"},
    "numbered": {"train/data-00000-of-00001": "train", "validation/data-00000-of-00001": "validation"},
    "names before folders": {"train/val-00000-of-00001.tfrecord": "val"},
}


@pytest.mark.parametrize("tree", SPLIT_TREES)
def test_folders_of_shards_tell_their_splits(tmp_path: Path, tree: str) -> None:
    write(tmp_path / "in", *SPLIT_TREES[tree])
    found = find(tmp_path / "in")
    assert {file.name: file.split for file in found.files} == SPLIT_TREES[tree]
    assert found.faults == ()
    for name, split in SPLIT_TREES[tree].items():
        assert [file.split for file in find((tmp_path / "in" / name).parent).files][:1] == [split]
        assert [file.split for file in find(tmp_path / "in" / name).files] == [split]


MIXED = {
    "two sets of shards": [
        "train-00000-of-00001.tfrecord",
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
    ],
    "versions": ["x/1.0.0/x-train.tfrecord-00000-of-00001", "x/2.0.0/x-train.tfrecord-00000-of-00001"],
    "runs of TFX": ["1/Split-train/d-00000-of-00001.gz", "2/Split-train/d-00000-of-00001.gz"],
    "two datasets": ["a-train.tfrecord-00000-of-00001", "b-train.tfrecord-00000-of-00001"],
    "described folders": ["a/x.tfrecord", "a/conversion.json", "b/y.tfrecord", "b/dataset_info.json"],
    "files below": ["a.tfrecord", "further/b.tfrecord"],
}


@pytest.mark.parametrize("tree", MIXED)
def test_a_folder_that_mixes_datasets_is_a_fault(tmp_path: Path, tree: str) -> None:
    write(tmp_path / "in", *MIXED[tree])
    faults = [fault for fault in find(tmp_path / "in").faults if fault.code == "mixed_datasets"]
    assert len(faults) == 1
    assert "/in" not in faults[0].cause


def test_a_glob_that_mixes_sets_of_shards_is_a_fault(tmp_path: Path) -> None:
    write(tmp_path, *MIXED["two sets of shards"])
    assert [fault.code for fault in find(tmp_path / "train*").faults] == ["mixed_datasets"]
    assert find(tmp_path / "train*of-00002*").faults == ()


def test_datasets_of_this_tool_below_records_are_none_of_them(tmp_path: Path) -> None:
    write(tmp_path, "a.tfrecord", "out/train-00000-of-00001.tfrecord", "out/conversion.json")
    assert find(tmp_path).faults == ()
