"""``--array_record``: the twins of the shards, and ``tfds.data_source`` on them."""

from __future__ import annotations

import importlib.util
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord import ConfigError, convert
from tests.end_to_end.datasets import by_name, conversion, converted, shard_bytes, shard_files
from tests.end_to_end.reading.kinds import boxes, classes
from tests.tiny_reader import read_shard

module = pytest.importorskip("array_record.python.array_record_module")
pytestmark = pytest.mark.filterwarnings("ignore")  # of TensorFlow Datasets

Find = Callable[..., Path]


def twins(out: Path) -> list[Path]:
    return sorted(out.glob("*.array_record"))


def array_records(path: Path) -> list[bytes]:
    reader = module.ArrayRecordReader(str(path))
    found: list[bytes] = reader.read_all()
    reader.close()
    return found


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_each_shard_has_a_twin_with_the_same_records(dataset: Find, compression: str) -> None:
    out = dataset("classes", array_record=True, compression=compression)
    assert [path.name for path in twins(out)] == [
        f"train-0000{number}-of-00003.array_record" for number in range(3)
    ] + ["validation-00000-of-00001.array_record"]
    for twin, shard in zip(twins(out), shard_files(out), strict=True):
        assert array_records(twin) == read_shard(shard)


def test_nothing_else_of_the_dataset_changes(dataset: Find) -> None:
    with_twins, without = dataset("classes", array_record=True), dataset("classes")
    assert shard_bytes(with_twins) == shard_bytes(without)
    told, plain = conversion(with_twins), conversion(without)
    assert told.pop("options") != plain.pop("options")
    for stated in (told, plain):
        stated.pop("rows_by_input")
        for account in stated["inputs"]:
            account.pop("uri")
    assert told == plain


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    source, options = classes(tmp_path / "in")
    for name in ("a", "b"):
        converted(source, tmp_path / name, array_record=True, **options)
    pairs = list(zip(twins(tmp_path / "a"), twins(tmp_path / "b"), strict=True))
    assert len(pairs) == 4
    assert all(one.read_bytes() == other.read_bytes() for one, other in pairs)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_data_source_reads_them_at_random(dataset: Find, compression: str) -> None:
    import tensorflow_datasets as tfds

    out = dataset("classes", array_record=True, compression=compression)
    source = tfds.builder_from_directory(out).as_data_source("train")
    stored = by_name(out)
    assert len(source) == 9
    for number in (8, 0, 4):
        example = source[number]
        record = stored[example["image/filename"].decode()]
        with Image.open(io.BytesIO(record["image/encoded"][0])) as image:  # TensorFlow Datasets asks Pillow as well
            assert np.array_equal(example["image/encoded"], np.asarray(image))
        assert example["image/class/label"] == record["image/class/label"][0]


def test_tfrecords_stay_the_first_choice(dataset: Find) -> None:
    import tensorflow_datasets as tfds

    out = dataset("classes", array_record=True)
    assert len(list(tfds.builder_from_directory(out).as_dataset("train"))) == 9
    info = json.loads((out / "dataset_info.json").read_text())
    assert (info["fileFormat"], info["alternativeFileFormats"]) == ("tfrecord", ["array_record"])


def test_boxes_through_data_source(dataset: Find) -> None:
    import tensorflow_datasets as tfds

    out = dataset("boxes", keys="tfds", array_record=True)
    source = tfds.builder_from_directory(out).as_data_source("train")
    plain = tfds.builder_from_directory(dataset("boxes", keys="tfds")).as_dataset("train")
    expected = {example["image/filename"]: example for example in tfds.as_numpy(plain)}
    assert len(source) == 2
    for example in source:
        found = expected[example["image/filename"]]["objects"]
        assert np.array_equal(example["objects"]["bbox"], found["bbox"])


def test_twins_go_when_a_dataset_without_them_takes_their_place(tmp_path: Path) -> None:
    source, options = boxes(tmp_path / "in")
    converted(source, tmp_path / "out", array_record=True, **options)
    assert len(twins(tmp_path / "out")) == 1
    converted(source, tmp_path / "out", overwrite=True, **options)
    assert twins(tmp_path / "out") == []


def test_a_resumed_run_adds_twins_to_the_shards_that_are_there(tmp_path: Path) -> None:
    source, options = classes(tmp_path / "in")
    (tmp_path / "in/circle/circle_0.jpg").write_bytes(b"")
    withheld = converted(source, tmp_path / "out", max_rejects=0, **options)
    assert withheld.status == "withheld"
    published = converted(source, tmp_path / "out", max_rejects=1, resume=True, array_record=True, **options)
    assert published.status == "published"
    for twin, shard in zip(twins(tmp_path / "out"), shard_files(tmp_path / "out"), strict=True):
        assert array_records(twin) == read_shard(shard)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_verify_has_nothing_to_say_against_them(
    dataset: Find, compression: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from pipelines.main import main

    out = dataset("classes", array_record=True, compression=compression)
    assert main(["verify", str(out), "--decoder", "pillow"]) == 0
    captured = capsys.readouterr()
    assert "array_record" not in captured.out + captured.err


# ---------------------------------------------------------------------------------------------------------------------
# verify looks into them


def verified(out: Path | str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    from pipelines.main import main

    status = main(["verify", str(out), "--decoder", "pillow", "--json"])
    return status, json.loads(capsys.readouterr().out)


def written_anew(twin: Path, records: list[bytes]) -> None:
    twin.unlink()
    writer = module.ArrayRecordWriter(str(twin), "group_size:1")
    for record in records:
        writer.write(record)
    writer.close()


@pytest.fixture
def copy(dataset: Find, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dataset("classes", array_record=True, compression="gzip"), tmp_path / "copy"))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_first_record_that_differs_is_named(copy: Path, number: int, capsys: Any) -> None:
    twin = twins(copy)[1]
    records = array_records(twin)
    assert len(records) == 3
    changed = bytearray(records[number])
    changed[7] ^= 1
    written_anew(twin, [*records[:number], bytes(changed), *(b"?" for _ in records[number + 1 :])])
    status, told = verified(copy, capsys)
    assert status == 1
    (fault,) = told["details"]
    assert (fault["file"], fault["record"], fault["code"]) == (twin.name, number, "wrong_twin")
    assert "byte 7 of the record" in fault["cause"]


@pytest.mark.parametrize(
    ("change", "record", "cause"),
    [
        (lambda records: records[:-1], 2, "the file has 2 records, but its shard has 3"),
        (lambda records: [*records, b"more"], 3, "the file has 4 records, but its shard has 3"),
        (lambda records: [], 0, "the file has 0 records, but its shard has 3"),
        (lambda records: [records[1], records[0], records[2]], 0, "that of the shard"),
        (lambda records: [records[0], records[1] + b"!", records[2]], 1, "bytes, but that of the shard"),
    ],
    ids=["one too few", "one too many", "none", "another order", "longer"],
)
def test_records_that_are_missing_or_too_many_are_told(
    copy: Path, change: Any, record: int, cause: str, capsys: Any
) -> None:
    twin = twins(copy)[0]
    written_anew(twin, change(array_records(twin)))
    status, told = verified(copy, capsys)
    assert status == 1
    (fault,) = told["details"]
    assert (fault["file"], fault["record"], fault["code"]) == (twin.name, record, "wrong_twin")
    assert cause in fault["cause"]


def test_damage_is_told_and_the_rest_is_checked_all_the_same(copy: Path, capsys: Any) -> None:
    good = twins(copy)[0].read_bytes()
    used = [place for place, value in enumerate(good) if value]
    for place in (len(used) // 3, len(used) // 2, 2 * len(used) // 3):
        place = used[place]
        twins(copy)[0].write_bytes(good[:place] + bytes([good[place] ^ 0x10]) + good[place + 1 :])
        with pytest.raises(RuntimeError):
            array_records(twins(copy)[0])
        status, told = verified(copy, capsys)
        assert status == 1
        (fault,) = told["details"]
        assert (fault["file"], fault["code"]) == (twins(copy)[0].name, "wrong_twin")
        assert told["records"] == 12
    for length in (0, 100, used[-1]):
        twins(copy)[0].write_bytes(good[:length])
        status, told = verified(copy, capsys)
        assert (status, [fault["code"] for fault in told["details"]]) == (1, ["wrong_twin"])


def test_twins_in_other_places_are_looked_into_as_well(copy: Path, capsys: Any) -> None:
    twin = twins(copy)[1]
    written_anew(twin, array_records(twin)[:-1])
    status, told = verified(f"file://{copy}", capsys)
    assert status == 1
    assert [(fault["file"], fault["record"]) for fault in told["details"]] == [(twin.name, 2)]


def test_a_twin_that_is_not_there_is_missed(copy: Path, capsys: Any) -> None:
    twin = twins(copy)[2]
    twin.unlink()
    status, told = verified(copy, capsys)
    assert status == 1
    assert [(fault["file"], fault["code"]) for fault in told["details"]] == [(twin.name, "missing_file")]


def test_a_damaged_shard_is_told_once_and_not_by_its_twin(copy: Path, dataset: Find, capsys: Any) -> None:
    out = shutil.copytree(dataset("classes", array_record=True), copy.parent / "plain")
    shard = shard_files(out)[0]
    data = bytearray(shard.read_bytes())
    data[40] ^= 1
    shard.write_bytes(data)
    status, told = verified(out, capsys)
    assert status == 1
    assert {fault["file"] for fault in told["details"]} & {path.name for path in twins(out)} == set()
    assert "damaged_record" in {fault["code"] for fault in told["details"]}


def test_without_the_package_a_note_says_that_they_were_not_looked_into(
    copy: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, told = verified(copy, capsys)
    assert (status, told["notes"]) == (0, [])
    assert "ArrayRecord files" in told["checked"]
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "array_record" else find(name, *rest)
    )
    status, told = verified(copy, capsys)
    assert status == 0
    assert "ArrayRecord files" not in told["checked"]
    (note,) = told["notes"]
    assert note.startswith("4 ArrayRecord files beside the shards were not looked into")


def test_a_missing_package_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, options = boxes(tmp_path / "in")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "array_record" else find(name, *rest)
    )
    with pytest.raises(ConfigError, match=r"pip install 'beam-tfrecord\[array_record\]'"):
        convert(str(source), tmp_path / "out", array_record=True, **options)
    assert not (tmp_path / "out").exists()


def test_the_sink_of_beam_has_no_shards_to_make_twins_of(tmp_path: Path) -> None:
    source, options = boxes(tmp_path / "in")
    with pytest.raises(ConfigError, match="--writer beam goes with none of --resume, --index and --array_record"):
        convert(str(source), tmp_path / "out", array_record=True, writer="beam", **options)
