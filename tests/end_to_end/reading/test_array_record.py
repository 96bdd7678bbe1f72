"""``--array_record``: the twins of the shards, and ``tfds.data_source`` on them."""

from __future__ import annotations

import importlib.util
import io
import json
from collections.abc import Callable
from pathlib import Path

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


def test_verify_has_nothing_to_say_against_them(dataset: Find, capsys: pytest.CaptureFixture[str]) -> None:
    from pipelines.main import main

    assert main(["verify", str(dataset("classes", array_record=True)), "--decoder", "pillow"]) == 0
    captured = capsys.readouterr()
    assert "array_record" not in captured.out + captured.err


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
