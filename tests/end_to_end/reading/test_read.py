"""``read``: plain dicts without TensorFlow, at random, and from where another reader stopped."""

from __future__ import annotations

import io
import json
import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from beam_tfrecord import ConfigError, DatasetError, Reader, read
from beam_tfrecord.reading import reader
from tests.end_to_end.datasets import records, shard_files
from tests.end_to_end.reading.kinds import BOXES
from tests.samples import noise
from tests.tiny_reader import decode_sequence, read_shard

Find = Callable[..., Path]


def plain(record: dict[str, list[Any]]) -> dict[str, Any]:
    """What a reader must give for a record of single values, of which only the image is no text."""
    return {
        key: value.decode() if isinstance(value, bytes) and key != "image/encoded" else value
        for key, (value,) in record.items()
    }


def copy(folder: Path, target: Path) -> Path:
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_records_are_what_the_files_hold_in_order(dataset: Find, compression: str) -> None:
    out = dataset("classes", compression=compression)
    expected = [plain(record) for record in records(out)]
    reader = read(out)
    assert len(reader) == len(expected) == 12
    assert list(reader) == list(reader) == expected
    assert [reader[number] for number in range(12)] == expected
    assert [reader[number] for number in range(-12, 0)] == expected
    assert list(read(out, "train")) == expected[:9]
    assert list(read(out, "validation+train[4:]")) == expected[9:] + expected[4:9]


@pytest.mark.parametrize("index", [False, True])
@given(st.slices(12), st.integers(0, 11))
@settings(max_examples=25)
def test_slices_are_those_of_a_list(dataset: Find, index: bool, chosen: slice, number: int) -> None:
    out = dataset("classes", index=index)
    names = [record["image/filename"][0].decode() for record in records(out)]
    part = read(out)[chosen]
    assert isinstance(part, Reader)
    assert [record["image/filename"] for record in part] == names[chosen]
    assert [part[place]["image/filename"] for place in range(len(part))] == names[chosen]
    assert [record["image/filename"] for record in part[1:]] == names[chosen][1:]
    assert read(out)[number]["image/filename"] == names[number]


def test_beyond_the_last_record_is_an_index_error(dataset: Find) -> None:
    reader = read(dataset("classes"), "train")
    for index in (9, -10, 10**9):
        with pytest.raises(IndexError, match=f"record {index} of 9"):
            reader[index]


# ---------------------------------------------------------------------------------------------------------------------
# Position


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("stop", [0, 1, 3, 4, 9, 12])
def test_another_reader_goes_on_where_one_stopped(dataset: Find, compression: str, stop: int) -> None:
    out = dataset("classes", compression=compression)
    first = read(out)
    iterator = iter(first)
    seen = [next(iterator) for _ in range(stop)]
    position = json.loads(json.dumps(first.position))
    assert position == stop
    second = read(out).resume(position)
    assert second.position == stop
    rest = list(second)
    assert seen + rest == list(first)
    assert second.position == 12
    assert len(list(second)) == 12, "the next iteration starts at the beginning again"


def test_slices_have_positions_of_their_own(dataset: Find) -> None:
    part = read(dataset("classes"))[10:2:-2]
    iterator = iter(part)
    seen = [next(iterator), next(iterator)]
    assert part.position == 2
    assert seen + list(part.resume(2)) == [part[number] for number in range(4)]


def test_positions_outside_are_told(dataset: Find) -> None:
    for position in (-1, 13):
        with pytest.raises(ConfigError, match=f"position {position} does not lie within the 12 records"):
            read(dataset("classes")).resume(position)


# ---------------------------------------------------------------------------------------------------------------------
# Random access


def test_with_an_index_no_frame_is_walked_through(dataset: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    out = dataset("classes", index=True)
    expected = [plain(record) for record in records(out)]
    monkeypatch.setattr(reader, "find_places", None)
    assert [read(out)[number] for number in (11, 0, 5)] == [expected[number] for number in (11, 0, 5)]


@pytest.mark.parametrize("content", [b"", b"0 5\n", b"0 100\n100 100\n", b"rubbish\n", b"\xff"])
def test_an_index_of_another_file_is_not_believed(dataset: Find, tmp_path: Path, content: bytes) -> None:
    out = copy(dataset("classes"), tmp_path)
    for shard in shard_files(out):
        shard.with_name(shard.name + ".idx").write_bytes(content)
    reader = read(out)
    assert [reader[number] for number in range(12)] == [plain(record) for record in records(out)]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # of Python 3.12 and later, about fork
def test_it_may_be_pickled_shared_by_threads_and_forked(dataset: Find) -> None:
    for compression in ("none", "gzip"):
        reader = read(dataset("classes", compression=compression))
        expected = list(reader)
        assert list(pickle.loads(pickle.dumps(reader))) == expected
        numbers = [11, 3, 7, 0] * 25
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(reader.__getitem__, numbers)) == [expected[number] for number in numbers]
    with multiprocessing.get_context("fork").Pool(2) as processes:
        assert processes.map(reader.__getitem__, range(12), chunksize=1) == expected


def test_workers_share_all_records(dataset: Find) -> None:
    out = dataset("classes")
    shares = [list(read(out, shard=(index, 5))) for index in range(5)]
    assert [record for share in shares for record in share] == list(read(out))
    assert {len(share) for share in shares} == {2, 3}


# ---------------------------------------------------------------------------------------------------------------------
# Values


def test_boxes_have_the_same_short_names_under_every_preset(dataset: Find) -> None:
    for keys in ("od", "tfds", "simple"):
        reader = read(dataset("boxes", keys=keys), names="short")
        assert len(reader) == 2
        for record in reader:
            expected = [
                [top / 120, left / 160, bottom / 120, right / 160]
                for _, left, top, right, bottom in BOXES[record["filename"]]
            ]
            np.testing.assert_allclose(record["boxes"], expected, atol=1e-7)
            names = [reader.label_names[number] for number in record["object_label"]]
            assert names == [name for name, *_ in BOXES[record["filename"]]]


def test_labels_are_named_in_the_order_of_their_ids(dataset: Find) -> None:
    reader = read(dataset("classes", label_offset=5))
    assert reader.labels == ("circle", "square", "triangle")
    assert reader.label_names == {5: "circle", 6: "square", 7: "triangle"}
    assert all(record["image/class/text"] == reader.label_names[record["image/class/label"]] for record in reader)
    assert reader.features["image/encoded"].role == "image"


def test_lists_and_columns_of_a_table(dataset: Find) -> None:
    for record in read(dataset("table")):
        number = int(record["image/source_id"][1:])
        assert record["age"] == number
        assert record["weight"] == number / 4
        assert record["tags"] == list("pqr"[: number % 4])
        assert {type(value) for value in record.values()} == {int, float, str, list}


def test_clips_are_lists_with_an_item_for_each_step(dataset: Find) -> None:
    out = dataset("sequence")
    stored = [decode_sequence(record) for shard in shard_files(out) for record in read_shard(shard)]
    reader = read(out)
    for record, (context, steps) in zip(reader, stored, strict=True):
        assert record["image/source_id"] == context["image/source_id"][0].decode()
        assert record["image/encoded"] == [step[0] for step in steps["image/encoded"]]
        assert record["speed"] == [step[0] for step in steps["speed"]]
        pictures = reader.image(record)
        assert isinstance(pictures, list)
        assert [picture.size for picture in pictures] == [(8, 6)] * len(steps["speed"])


# ---------------------------------------------------------------------------------------------------------------------
# Pictures


def test_images_are_those_of_pillow(dataset: Find) -> None:
    for keys in ("imagenet", "simple"):
        reader = read(dataset("sizes", keys=keys))
        for record, stored in zip(reader, records(dataset("sizes", keys=keys)), strict=True):
            data = stored["image/encoded" if keys == "imagenet" else "image"][0]
            with Image.open(io.BytesIO(data)) as expected:
                assert np.array_equal(np.asarray(reader.image(record)), np.asarray(expected))


@pytest.mark.parametrize("names", ["stored", "short"])
def test_raw_pixels_are_pictures_too(dataset: Find, names: str) -> None:
    reader = read(dataset("raw"), names=names)
    pictures = {record["filename" if names == "short" else "image/filename"]: reader.image(record) for record in reader}
    for number in range(4):
        assert np.array_equal(np.asarray(pictures[f"{'xy'[number % 2]}/{number}.png"]), noise(8 + number, 6, number))


def test_raw_pixels_of_sixteen_bits(dataset: Find) -> None:
    reader = read(dataset("raw_deep"), names="short")
    pictures = {record["filename"]: np.asarray(reader.image(record)) for record in reader}
    values = np.random.default_rng(1).integers(0, 65536, (6, 8)).astype(np.uint16)
    assert np.array_equal(pictures["x/1.png"], values)
    assert np.array_equal(pictures["x/narrow.png"], noise(8, 6, 9, 1)[:, :, 0])


def test_masks_are_pictures_by_their_name(dataset: Find) -> None:
    reader = read(dataset("masks"), names="short")
    for record in reader:
        mask = np.asarray(reader.image(record, "semantic_mask"))
        assert (mask[1:] == 7 + int(record["filename"][0])).all()
    with pytest.raises(ConfigError, match="did you mean 'semantic_mask'"):
        reader.image(reader[0], "semantic_msk")
    objects = read(dataset("objects"))
    counts = {record["image/filename"]: objects.image(record, "image/object/mask") for record in objects}
    assert {name: len(masks) for name, masks in counts.items()} == {"a.png": 1, "b.png": 2, "c.png": 0}


def test_a_table_has_no_picture(dataset: Find) -> None:
    reader = read(dataset("table"))
    with pytest.raises(DatasetError, match="have no image"):
        reader.image(reader[0])


# ---------------------------------------------------------------------------------------------------------------------
# Faults


def test_damage_is_told_with_file_record_and_offset(dataset: Find, tmp_path: Path) -> None:
    out = copy(dataset("classes"), tmp_path)
    shard = out / "train-00001-of-00003.tfrecord"
    sizes = [len(record) + 16 for record in read_shard(shard)]
    whole = shard.read_bytes()
    place = sizes[0] + 50
    shard.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    told = rf"train-00001-of-00003\.tfrecord: record 1 at byte {sizes[0]}: the checksum of its data"
    reader = read(out, "train")
    first = len(read_shard(out / "train-00000-of-00003.tfrecord"))
    assert reader[first]
    with pytest.raises(DatasetError, match=told):
        reader[first + 1]
    with pytest.raises(DatasetError, match=told):
        list(reader)
    with pytest.raises(DatasetError, match=told):
        list(read(out, "train").resume(first + 1))


def test_missing_records_are_told(dataset: Find, tmp_path: Path) -> None:
    out = copy(dataset("classes"), tmp_path)
    shard = out / "train-00002-of-00003.tfrecord"
    count = len(read_shard(shard))
    shard.write_bytes(shard.read_bytes()[: len(read_shard(shard)[0]) + 16])
    with pytest.raises(DatasetError, match=f"holds 1 of the {count} records that are stated"):
        list(read(out, "train"))
    with pytest.raises(DatasetError, match=f"holds 1 records, not {count} as conversion.json states"):
        read(out, "train")[-1]


@pytest.mark.parametrize("name", ["classes", "table"])
def test_records_beyond_the_stated_ones_are_told(dataset: Find, tmp_path: Path, name: str) -> None:
    out = copy(dataset(name), tmp_path)
    shard = max(out.glob("train-*.tfrecord"))
    count = len(read_shard(shard))
    shard.write_bytes(shard.read_bytes() + shard.read_bytes()[: len(read_shard(shard)[0]) + 16])
    with pytest.raises(DatasetError, match=f"holds more than the {count} records that are stated"):
        list(read(out, "train"))
    assert len(list(read(out, f"train[:{len(read(out, 'train')) - 1}]"))) == len(read(out, "train")) - 1


def test_records_of_another_dataset_are_told(dataset: Find, tmp_path: Path) -> None:
    out = copy(dataset("classes"), tmp_path)
    told = json.loads((out / "conversion.json").read_text())
    told["features"]["further"] = {"dtype": "int64", "shape": [], "role": "scalar"}
    (out / "conversion.json").write_text(json.dumps(told))
    with pytest.raises(DatasetError, match=r"train-00000-of-00003\.tfrecord: record 0: it has no feature 'further'"):
        read(out, "train")[0]


def test_what_cannot_be_read_is_told(dataset: Find, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no split 'tran' \\(did you mean 'train'"):
        read(dataset("classes"), "tran")
    with pytest.raises(ConfigError, match="names='shrt': must be 'stored' or 'short'"):
        read(dataset("classes"), names="shrt")
    with pytest.raises(ConfigError, match=r"shard=\(3, 2\)"):
        read(dataset("classes"), shard=(3, 2))
    with pytest.raises(DatasetError, match=r"holds no conversion\.json"):
        read(tmp_path)


def test_neither_tensorflow_nor_beam_is_imported(dataset: Find) -> None:
    script = (
        "import sys, beam_tfrecord\n"
        f"reader = beam_tfrecord.read({str(dataset('classes'))!r})\n"
        "reader.image(reader[3])\n"
        "print(sorted({'tensorflow', 'apache_beam', 'keras'} & set(sys.modules)), len(list(reader)))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "[] 12\n"
