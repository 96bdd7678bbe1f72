"""Which records are shown."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from beam_tfrecord.datasets.indexing import write_index_file
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord.example import encode_example, encode_sequence_example
from beam_tfrecord.tools.showing.selection import PickedRecord
from tests.handmade import Handmade, floats, small_dataset, texts, whole, write_shard
from tests.showing_tools import found_at, picked_from


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Handmade:
    """Numbers 0 to 2 are in ``test``, 3 to 8 in two shards of ``train``; the filename of each tells its number."""
    return small_dataset(tmp_path_factory.mktemp("dataset"))


def filenames(picked: list[PickedRecord]) -> list[str]:
    return [record.view.features["image/filename"].values[0].decode() for record in picked]


def numbers(picked: list[PickedRecord]) -> list[int]:
    return [record.number for record in picked]


def test_all_records_come_in_the_order_of_the_files(dataset: Handmade) -> None:
    picked = picked_from(dataset.folder)
    assert filenames(picked) == [f"photos/{number}.jpg" for number in range(9)]
    assert numbers(picked) == list(range(9))
    places = [(record.record, record.offset, record.num_bytes + 16) for record in picked]
    assert places == [(index, *place) for name in dataset.shards for index, place in enumerate(dataset.places[name])]


def test_a_limit_is_a_limit(dataset: Handmade) -> None:
    assert len(picked_from(dataset.folder, limit=4)) == 4


@pytest.mark.parametrize("wanted", [[0], [3], [8], [7, 1], [2, 3, 4], [0, 8]])
@pytest.mark.parametrize("with_index", [False, True])
def test_a_number_leads_to_its_record_with_and_without_an_index(
    tmp_path: Path, wanted: list[int], with_index: bool
) -> None:
    dataset = small_dataset(tmp_path)
    if with_index:
        for name in dataset.shards:
            write_index_file(str(tmp_path / name), name, Storage())
    picked = picked_from(tmp_path, numbers=tuple(wanted))
    assert numbers(picked) == sorted(wanted)
    assert filenames(picked) == [f"photos/{number}.jpg" for number in sorted(wanted)]


@pytest.mark.parametrize("with_index", [False, True])
def test_numbers_go_on_over_files_from_elsewhere(tmp_path: Path, with_index: bool) -> None:
    for file in range(3):
        path = tmp_path / f"{file}.tfrecord"
        write_shard(path, [encode_example({"n": whole(file * 4 + number)}) for number in range(4)])
        if with_index:
            write_index_file(str(path), path.name, Storage())
    picked = picked_from(tmp_path, numbers=(1, 6, 11))
    assert [record.view.features["n"].values for record in picked] == [[1], [6], [11]]


@pytest.mark.parametrize("number", [9, 1000])
def test_a_number_beyond_the_last_record_is_told(dataset: Handmade, number: int) -> None:
    with pytest.raises(ConfigError, match=f"--index {number}: there are 9 records"):
        picked_from(dataset.folder, numbers=(number,))


@pytest.mark.parametrize("content", ["0 100\n100 100\n200 100\n", "0 100\n", "", "no index\n"])
def test_an_index_of_another_file_is_told_and_not_used(tmp_path: Path, content: str) -> None:
    dataset = small_dataset(tmp_path)
    (tmp_path / f"{dataset.shards[0]}.idx").write_text(content)
    told: list[str] = []
    assert filenames(picked_from(tmp_path, numbers=(1,), told=told)) == ["photos/1.jpg"]
    assert told == [f"{dataset.shards[0]}.idx is not the index of {dataset.shards[0]}, and is not used: write it anew"]


def test_a_split_is_its_files(dataset: Handmade) -> None:
    found = found_at(dataset.folder)
    assert [file.name for file in found.of_split("test")] == dataset.shards[:1]
    with pytest.raises(ConfigError, match="did you mean 'train'"):
        found.of_split("trian")
    with pytest.raises(ConfigError, match="there are test, train"):
        found.of_split("x")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("image/filename=photos/4.jpg", [4]),
        ("filename=photos/4.jpg", [4]),
        ("label=cat", [0, 3, 5, 6]),
        ("label=1", [0, 3, 5, 6]),
        ("image/object/class/label=1", [0, 3, 5, 6]),
        ("image/object/class/text=cat", [0, 3, 5, 6]),
        ("width=40", list(range(9))),
        ("image/object/bbox/xmin=0.6", [1, 3, 5, 7]),
        ("image/width=41", []),
    ],
)
def test_conditions_look_at_keys_and_at_what_they_hold(dataset: Handmade, condition: str, expected: list[int]) -> None:
    assert numbers(picked_from(dataset.folder, condition)) == expected


def test_conditions_are_all_to_be_met(dataset: Handmade) -> None:
    assert numbers(picked_from(dataset.folder, "label=cat", "label=emu")) == [5]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("label=dgo", "did you mean 'dog'"),
        ("image/filname=x", "did you mean 'image/filename'"),
        ("colour=red", "no feature is called so"),
        ("label", "key=value"),
        ("=x", "key=value"),
    ],
)
def test_a_condition_that_cannot_be_met_is_an_error(dataset: Handmade, condition: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        picked_from(dataset.folder, condition)


def test_conditions_work_on_records_from_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    records = [
        encode_example({"label": whole(number), "x": floats(0.1 * number), "t": texts("a")}) for number in range(4)
    ]
    path.write_bytes(b"")
    write_shard(path, records)
    assert numbers(picked_from(path, "label=2")) == [2]
    assert numbers(picked_from(path, "x=0.3")) == [3]
    assert numbers(picked_from(path, "t=b")) == []
    with pytest.raises(ConfigError, match="no record has 'nothing'"):
        picked_from(path, "nothing=1")


def test_sequences_are_looked_through_step_by_step(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    clips = [encode_sequence_example({"id": whole(n)}, {"n": [whole(n), whole(n + 1)]}) for n in range(3)]
    write_shard(path, clips)
    assert numbers(picked_from(path, "n=1")) == [0, 1]
    assert numbers(picked_from(path, "id=2")) == [2]


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_files_are_read(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "without_an_ending"
    write_shard(path, [encode_example({"n": whole(number)}) for number in range(3)], compression)
    assert numbers(picked_from(path, "n=2")) == [2]


def test_what_can_be_read_of_a_damaged_file_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    _, places = write_shard(path, [encode_example({"n": whole(number)}) for number in range(3)])
    data = bytearray(path.read_bytes())
    data[places[1][0] + 13] ^= 1
    path.write_bytes(data)
    told: list[str] = []
    assert numbers(picked_from(path, told=told)) == [0, 2]
    assert len(told) == 1
    assert "record 1 at byte" in told[0]
    path.write_bytes(gzip.compress(bytes(data))[:-9])
    assert numbers(picked_from(path, told=told)) == [0, 2]
