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
