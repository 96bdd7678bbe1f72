"""``beam-tfrecord reshard`` and ``merge`` as a user runs them; the results are read by the tests' own reader."""

from __future__ import annotations

import itertools
import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord import convert
from pipelines.main import main
from tests.end_to_end.datasets import SHARD, break_renaming, conversion, findings, shard_bytes, shard_files
from tests.samples import noise, png, write_files, write_table
from tests.tiny_reader import crc32c, decode, frame, read_shard
from tests.verifying_tools import is_faultless

Captured = pytest.CaptureFixture[str]


def run(command: str, *arguments: str | Path) -> int:
    return main([command, *(str(argument) for argument in arguments)])


def payloads(folder: Path, split: str) -> list[bytes]:
    """The records of a split as they lie in its shards, in order."""
    return [record for path in shard_files(folder) if path.name.startswith(f"{split}-") for record in read_shard(path)]


def sizes(folder: Path, split: str) -> list[int]:
    return [len(read_shard(path)) for path in shard_files(folder) if path.name.startswith(f"{split}-")]


def collection(folder: Path, count: int, *, first: int = 0, labels: str = "ab") -> Path:
    """Pictures that differ in size and content, one of them broken, as a manifest."""
    names = [f"{number:03d}.png" for number in range(first, first + count)]
    images = {name: png(Image.fromarray(noise(8 + number % 7, 6, first + number))) for number, name in enumerate(names)}
    images[names[3]] = b"no picture"
    write_files(folder, images)
    rows = [(name, labels[number % len(labels)]) for number, name in enumerate(names)]
    return write_table(folder / "data.csv", [("image", "label"), *rows])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """53 records in 3 + 2 shards, one reject."""
    folder = tmp_path_factory.mktemp("made")
    source = collection(folder / "photos", 54)
    convert(str(source), folder / "out", splits="train=0.7,validation=0.3", num_shards="train=3,validation=2")
    return folder / "out"


@pytest.fixture(scope="module")
def packed(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, compressed."""
    folder = tmp_path_factory.mktemp("packed")
    source = made.parent / "photos" / "data.csv"
    options: dict[str, Any] = {"splits": "train=0.7,validation=0.3", "num_shards": "train=3,validation=2"}
    convert(str(source), folder / "out", compression="gzip", **options)
    return folder / "out"


def test_nothing_asked_for_gives_the_same_bytes(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("reshard", made, "--output", out) == 0
    assert shard_bytes(out) == shard_bytes(made)
    same = ("dataset_info.json", "features.json", "statistics.json", "labels.txt", "label_map.pbtxt", "rejects.jsonl")
    for name in (*same, "warnings.jsonl", "image.class.label.labels.txt"):
        assert (out / name).read_bytes() == (made / name).read_bytes(), name
    before, after = conversion(made), conversion(out)
    assert [step["output"] for step in after.pop("resharded")] == [str(out)]
    assert after == before
    assert (out / "report.html").is_file()
    assert not (out / ".staging").exists()
    assert is_faultless(out)


def test_another_number_of_shards(made: Path, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "out"
    assert run("reshard", made, "--output", out, "--num_shards", "train=5,validation=1", "--index", "--json") == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    for split, count in (("train", 5), ("validation", 1)):
        assert payloads(out, split) == payloads(made, split)
        own = sizes(out, split)
        assert len(own) == count
        assert max(own) - min(own) <= 1
        assert told["splits"][split] == sum(own)
    assert (told["records"], told["shards"], told["published"]) == (53, 6, True)
    after = conversion(out)
    for split in after["splits"].values():
        for shard in split["shards"]:
            data = (out / shard["file"]).read_bytes()
            assert (shard["bytes"], shard["crc32c"]) == (len(data), f"{crc32c(data):08x}")
            offsets = [0, *itertools.accumulate(16 + len(record) for record in read_shard(out / shard["file"]))]
            lines = [f"{start} {stop - start}" for start, stop in itertools.pairwise(offsets)]
            assert (out / (shard["file"] + ".idx")).read_text().splitlines() == lines
    unchanged = ("rows", "written", "rejected", "classes", "changed", "warnings", "features", "options", "versions")
    assert {name: after[name] for name in unchanged} == {name: conversion(made)[name] for name in unchanged}
    assert findings(out) == findings(made)
    assert is_faultless(out)


def test_samples_of_the_report_are_found_in_the_new_shards(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("reshard", made, "--output", out, "--num_shards", "2") == 0

    def sampled(folder: Path) -> dict[str, set[bytes]]:
        samples = json.loads((folder / "statistics.json").read_text())["samples"]["classes"]
        found: dict[str, set[bytes]] = {}
        for label, places in samples.items():
            for place in places:
                data = (folder / place["file"]).read_bytes()[place["offset"] :][: place["size"]]
                record = read_shard(folder / place["file"])[place["record"]]
                assert data == frame(record)
                found.setdefault(label, set()).add(record)
        return found

    assert sampled(out) == sampled(made)
    before, after = (json.loads((folder / "statistics.json").read_text()) for folder in (made, out))
    assert after["images"] == before["images"]


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_compressions_lead_to_one_another(made: Path, packed: Path, tmp_path: Path, compression: str) -> None:
    for number, source in enumerate((made, packed)):
        out = tmp_path / f"out{number}"
        assert run("reshard", source, "--output", out, "--compression", compression, "--num_shards", "train=4") == 0
        assert payloads(out, "train") == payloads(made, "train")
        assert payloads(out, "validation") == payloads(made, "validation")
        assert conversion(out)["compression"] == compression
        assert is_faultless(out)
    assert shard_bytes(tmp_path / "out0") == shard_bytes(tmp_path / "out1")


def test_what_is_compressed_stays_so_with_the_same_bytes(packed: Path, tmp_path: Path) -> None:
    assert run("reshard", packed, "--output", tmp_path / "out") == 0
    assert shard_bytes(tmp_path / "out") == shard_bytes(packed)


def test_the_result_is_the_conversion_with_those_options(made: Path, tmp_path: Path) -> None:
    """One broken image is no part of the plan of a conversion: so of whole collections only."""
    source = collection(tmp_path / "photos", 20)
    (tmp_path / "photos" / "003.png").write_bytes(png(Image.fromarray(noise(9, 9, 3))))
    convert(str(source), tmp_path / "two", num_shards=2)
    convert(str(source), tmp_path / "seven", num_shards=7, compression="zlib", index=True)
    assert run("reshard", tmp_path / "two", "--output", tmp_path / "out", "--num-shards=7", "--compression=zlib") == 0
    assert shard_bytes(tmp_path / "out") == shard_bytes(tmp_path / "seven")


@pytest.mark.parametrize("kind", ["channels", "raw_deep", "objects", "masks_of_some", "panoptic", "table", "sequence"])
def test_datasets_of_every_kind_keep_their_metadata(kind: str, dataset: Callable[..., Path], tmp_path: Path) -> None:
    """Nothing of what they tell depends on the shards; merged with one of its kind, all records are there."""
    source, out = dataset(kind), tmp_path / "out"
    assert run("reshard", source, "--output", out, "--num_shards", "2") == 0
    names = {path.name for path in source.iterdir() if not SHARD.fullmatch(path.name)}
    assert names == {path.name for path in out.iterdir() if not SHARD.fullmatch(path.name)}
    for name in names - {"conversion.json", "dataset_info.json", "statistics.json", "report.html"}:
        assert (out / name).read_bytes() == (source / name).read_bytes(), name
    before, after = conversion(source), conversion(out)
    told = {"splits", "resharded"}
    assert {name: after[name] for name in after if name not in told} == {
        name: before[name] for name in before if name not in told
    }
    assert is_faultless(out)

    again = shutil.copytree(source, tmp_path / "again")
    assert run("merge", f"one={source}", f"two={again}", "--output", tmp_path / "both") == 0
    both = conversion(tmp_path / "both")
    assert both["features"] == before["features"]
    assert payloads(tmp_path / "both", "one") == payloads(tmp_path / "both", "two")
    assert both["warnings"]["duplicate_id"] == len(payloads(tmp_path / "both", "two"))
    assert is_faultless(tmp_path / "both")


def test_splits_get_other_names_and_are_joined(made: Path, tmp_path: Path) -> None:
    assert run("reshard", made, "--output", tmp_path / "renamed", "--rename_splits", "train=training") == 0
    told = conversion(tmp_path / "renamed")
    assert set(told["splits"]) == set(told["classes"]) == {"training", "validation"}
    assert payloads(tmp_path / "renamed", "training") == payloads(made, "train")
    assert is_faultless(tmp_path / "renamed")

    renames = "validation=all_of_it,train=all_of_it"
    assert run("reshard", made, "--output", tmp_path / "joined", "--rename_splits", renames, "--num_shards", "4") == 0
    assert payloads(tmp_path / "joined", "all_of_it") == payloads(made, "train") + payloads(made, "validation")
    assert sizes(tmp_path / "joined", "all_of_it") == [13, 13, 13, 14]
    classes = conversion(made)["classes"]
    both = {label: classes["train"][label] + classes["validation"][label] for label in "ab"}
    assert conversion(tmp_path / "joined")["classes"] == {"all_of_it": both}
    assert is_faultless(tmp_path / "joined")

    assert run("reshard", f"whole={made}", "--output", tmp_path / "whole") == 0
    assert payloads(tmp_path / "whole", "whole") == payloads(tmp_path / "joined", "all_of_it")


def test_tfds_loads_the_result(made: Path, tmp_path: Path) -> None:
    tfds = pytest.importorskip("tensorflow_datasets")
    out = tmp_path / "out"
    assert run("reshard", made, "--output", out, "--num_shards", "train=2", "--rename_splits", "validation=val") == 0
    builder = tfds.builder_from_directory(str(out))
    in_order = tfds.ReadConfig(interleave_cycle_length=1)
    for split, origin in (("train", "train"), ("val", "validation")):
        ids = [example["image/source_id"] for example in tfds.as_numpy(builder.as_dataset(split, read_config=in_order))]
        assert ids == [decode(record)["image/source_id"][0] for record in payloads(made, origin)]


def test_twins_are_written_where_they_are_asked_for(made: Path, tmp_path: Path) -> None:
    reader = pytest.importorskip("array_record.python.array_record_module")
    out = tmp_path / "out"
    assert run("reshard", made, "--output", out, "--num_shards", "train=2", "--array_record") == 0
    for path in shard_files(out):
        twin = reader.ArrayRecordReader(str(path).replace(".tfrecord", ".array_record"))
        assert twin.read_all() == read_shard(path)
    assert is_faultless(out)


@pytest.mark.parametrize("has_index", [False, True])
def test_a_damaged_record_ends_the_job_loudly(made: Path, tmp_path: Path, capsys: Captured, has_index: bool) -> None:
    source = shutil.copytree(made, tmp_path / "source")
    if has_index:
        assert run("index", source) == 0
    name = "train-00001-of-00003.tfrecord"
    records = read_shard(source / name)
    start = sum(16 + len(record) for record in records[:7])
    data = bytearray((source / name).read_bytes())
    data[start + 12 + 5] ^= 4
    (source / name).write_bytes(data)
    out = tmp_path / "out"
    capsys.readouterr()
    assert run("reshard", source, "--output", out, "--num_shards", "train=4") == 1
    said = capsys.readouterr().err
    assert f"{source / name}: record 7 at byte {start}: the checksum of its data is" in said
    assert "verify" in said
    assert "Traceback" not in said
    assert not shard_files(out)
    assert not (out / "conversion.json").exists()


@pytest.mark.parametrize("change", ["cut", "longer"])
def test_a_file_of_another_length_ends_the_job(made: Path, tmp_path: Path, capsys: Captured, change: str) -> None:
    source = shutil.copytree(made, tmp_path / "source")
    path = source / "train-00001-of-00003.tfrecord"
    records = read_shard(path)
    kept = records[:-1] if change == "cut" else [*records, records[0]]
    path.write_bytes(b"".join(map(frame, kept)))
    assert run("reshard", source, "--output", tmp_path / "out", "--num_shards", "train=2") == 1
    assert f"holds {len(kept)} records, but {len(records)} are stated" in capsys.readouterr().err


def test_an_index_of_another_file_leads_nobody_astray(made: Path, tmp_path: Path) -> None:
    source = shutil.copytree(made, tmp_path / "source")
    assert run("index", source) == 0
    shutil.copy(source / "train-00000-of-00003.tfrecord.idx", source / "train-00001-of-00003.tfrecord.idx")
    assert run("reshard", source, "--output", tmp_path / "out", "--num_shards", "train=9") == 0
    assert payloads(tmp_path / "out", "train") == payloads(made, "train")


def test_what_must_not_be_replaced_stays(made: Path, tmp_path: Path, capsys: Captured) -> None:
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    out = tmp_path / "out"
    assert run("reshard", made, "--output", out) == 0
    assert run("reshard", made, "--output", out, "--num_shards", "1") == 2
    assert "--overwrite" in capsys.readouterr().err
    assert run("reshard", made, "--output", out, "--num_shards", "train=1,validation=1", "--overwrite") == 0
    assert len(shard_files(out)) == 2
    assert is_faultless(out)

    (tmp_path / "link").symlink_to(made)
    for place in (made, tmp_path / "link", f"{made}/"):
        assert run("reshard", made, "--output", place, "--overwrite") == 2
        assert "is one of the inputs" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--rename_splits", "tran=x"], "did you mean 'train'"),
        (["--rename_splits", "train=a/b"], "cannot be the name of a split"),
        (["--num_shards", "test=2"], "names the split 'test'"),
        (["--num_shards", "0"], "at least 1"),
        (["--compression", "xz"], "must be one of none, gzip, zlib"),
        (["--quality", "3"], "there is no flag --quality"),
    ],
)
def test_wrong_options_are_told_before_anything_is_written(
    made: Path, tmp_path: Path, capsys: Captured, flags: list[str], told: str
) -> None:
    assert run("reshard", made, "--output", tmp_path / "out", *flags) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_dataset_without_its_last_file_is_refused(made: Path, tmp_path: Path, capsys: Captured) -> None:
    source = shutil.copytree(made, tmp_path / "source")
    (source / "dataset_info.json").unlink()
    assert run("reshard", source, "--output", tmp_path / "out") == 1
    assert "is not complete" in capsys.readouterr().err


@pytest.mark.slow
def test_processes_give_the_same_bytes(made: Path, tmp_path: Path) -> None:
    flags = ["--num_shards", "train=7,validation=3", "--compression", "gzip"]
    assert run("reshard", made, "--output", tmp_path / "one", *flags) == 0
    runner = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    assert run("reshard", made, "--output", tmp_path / "two", *flags, *runner) == 0
    assert shard_bytes(tmp_path / "one") == shard_bytes(tmp_path / "two")
    ours = {path.name for path in (tmp_path / "one").iterdir()} - {"conversion.json"}
    for name in ours:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_a_failed_publication_leaves_nothing_that_looks_finished(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the machine had gone away after the third move; then the same command is run again."""
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        break_renaming(patched, at=8)  # five shards are staged first
        assert run("reshard", made, "--output", out) == 1
    assert not (out / "dataset_info.json").exists()
    assert len(shard_files(out)) == 2
    assert run("reshard", made, "--output", out) == 0
    assert shard_bytes(out) == shard_bytes(made)
    assert is_faultless(out)


# ---------------------------------------------------------------------------------------------------------------------
# Files from elsewhere


def write_elsewhere(folder: Path) -> list[bytes]:
    """TFRecords of another tool, one of them compressed, whose records are no messages; the records in order."""
    folder.mkdir()
    records = [bytes([number]) * (number * 3 % 11) for number in range(25)]
    (folder / "data-train.tfrecord-00000-of-00002").write_bytes(b"".join(map(frame, records[:20])))
    (folder / "data-train.tfrecord-00001-of-00002").write_bytes(zlib.compress(b"".join(map(frame, records[20:]))))
    return records


def test_files_from_elsewhere_become_shards(tmp_path: Path, capsys: Captured) -> None:
    records = write_elsewhere(tmp_path / "elsewhere")
    out = tmp_path / "out"
    flags = ["--num_shards", "3", "--compression", "none", "--json"]
    assert run("reshard", tmp_path / "elsewhere", "--output", out, *flags) == 0
    output = capsys.readouterr()
    told = json.loads(output.out.splitlines()[-1])
    assert (told["records"], told["shards"], told["splits"]) == (25, 3, {"train": 25})
    assert "no metadata" in output.err
    assert [path.name for path in shard_files(out)] == [f"train-{number:05d}-of-00003.tfrecord" for number in range(3)]
    assert sizes(out, "train") == [8, 8, 9]
    assert payloads(out, "train") == records
    assert not list(out.glob("*.json"))
    assert not (out / ".staging").exists()


def test_a_glob_takes_some_files_of_a_dataset(made: Path, tmp_path: Path) -> None:
    assert run("reshard", made / "train-*.tfrecord", "--output", tmp_path / "out", "--shard_size", "1KiB") == 0
    assert payloads(tmp_path / "out", "train") == payloads(made, "train")
    assert not (tmp_path / "out" / "conversion.json").exists()


def test_files_of_no_split_need_one(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "records.tfrecord").write_bytes(frame(b"abc"))
    assert run("reshard", tmp_path / "records.tfrecord", "--output", tmp_path / "out") == 2
    assert "train=" in capsys.readouterr().err
    assert run("reshard", f"test={tmp_path}/records.tfrecord", "--output", tmp_path / "out") == 0
    assert payloads(tmp_path / "out", "test") == [b"abc"]


def test_damage_in_a_file_from_elsewhere_is_told(tmp_path: Path, capsys: Captured) -> None:
    write_elsewhere(tmp_path / "elsewhere")
    path = tmp_path / "elsewhere" / "data-train.tfrecord-00000-of-00002"
    path.write_bytes(path.read_bytes()[:-1])
    assert run("reshard", tmp_path / "elsewhere", "--output", tmp_path / "out", "--num_shards", "2") == 1
    assert "data-train.tfrecord-00000-of-00002: record 19 at byte" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------------------
# Several datasets


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """29 records with other ids, one reject; one picture is also in ``made``."""
    folder = tmp_path_factory.mktemp("other")
    source = collection(folder / "photos", 30, first=500)
    convert(str(source), folder / "out", splits="train=0.5,test=0.5", num_shards=2)
    return folder / "out"


def test_datasets_become_one(made: Path, other: Path, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "out"
    assert run("merge", other, made, "--output", out, "--num_shards", "train=3", "--json") == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["records"] == 82
    assert payloads(out, "train") == payloads(other, "train") + payloads(made, "train")
    assert payloads(out, "validation") == payloads(made, "validation")
    assert payloads(out, "test") == payloads(other, "test")
    own = sizes(out, "train")
    assert len(own) == 3
    assert max(own) - min(own) <= 1
    after, parts = conversion(out), [conversion(other), conversion(made)]
    for name in ("rows", "source_rows", "written", "ignored"):
        assert after[name] == sum(part[name] for part in parts)
    assert after["rejected"] == {"total": 2, "by_code": {"not_an_image": 2}}
    assert after["rows_by_input"] == {**parts[0]["rows_by_input"], **parts[1]["rows_by_input"]}
    train = {label: sum(part["classes"]["train"][label] for part in parts) for label in "ab"}
    assert after["classes"]["train"] == train
    assert after["options"]["input"] == parts[0]["options"]["input"] + parts[1]["options"]["input"]
    assert [place["uri"] for place in after["resharded"][0]["inputs"]] == [str(other), str(made)]
    assert (out / "rejects.jsonl").read_bytes() == b"".join((p / "rejects.jsonl").read_bytes() for p in (other, made))
    statistics = [json.loads((folder / "statistics.json").read_text()) for folder in (other, made, out)]
    assert statistics[2]["images"]["pixels"]["count"] == 82
    assert statistics[2]["images"]["pixels"]["total"] == sum(s["images"]["pixels"]["total"] for s in statistics[:2])
    assert is_faultless(out)


def test_inputs_get_splits_of_their_own(made: Path, other: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("merge", f"train={made}", f"test={other}", "--output", out) == 0
    assert payloads(out, "train") == payloads(made, "train") + payloads(made, "validation")
    assert payloads(out, "test") == payloads(other, "test") + payloads(other, "train")
    assert sizes(out, "train") == sizes(made, "train") + sizes(made, "validation")  # the shards stay
    assert is_faultless(out)


def test_shared_ids_and_images_are_warned_of(tmp_path: Path) -> None:
    pictures = [png(Image.fromarray(noise(8, 8, seed))) for seed in range(5)]
    folders = [tmp_path / "one", tmp_path / "two"]
    write_files(folders[0], {"a.png": pictures[0], "b.png": pictures[1], "c.png": pictures[2], "c2.png": pictures[2]})
    write_files(folders[1], {"a.png": pictures[3], "x.png": pictures[1], "c.png": pictures[2], "d.png": pictures[4]})
    for folder in folders:
        names = sorted(path.name for path in folder.iterdir())
        rows = [(name, "cat", "test" if name == "c.png" and folder.name == "two" else "train") for name in names]
        table = write_table(folder / "data.csv", [("image", "label", "split"), *rows])
        convert(str(table), tmp_path / f"{folder.name}.out")
    before = findings(tmp_path / "one.out", "warnings")
    assert [line["code"] for line in before] == ["duplicate_content"]
    out = tmp_path / "out"
    assert run("merge", tmp_path / "one.out", tmp_path / "two.out", "--output", out) == 0
    lines = findings(out, "warnings")
    assert lines[0] == before[0]
    told = {(line["code"], line["uri"]) for line in lines[1:]}
    expected = {("duplicate_id", "a.png"), ("duplicate_content", "x.png"), ("duplicate_id", "c.png")}
    assert expected < told
    assert {code for code, _ in told - expected} == {"split_leak"}
    assert conversion(out)["warnings"]["split_leak"] == len(told - expected)
    assert len(lines) == sum(conversion(out)["warnings"].values())
    assert all(str(tmp_path) in line["origin"] for line in lines[1:])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"labels": "abc"}, "label 2 (counted from 0) is missing in {made} and 'c' in {second}"),
        ({"label_offset": 1}, "the label 'a' has the id 0 in {made} and 1 in {second}"),
        ({"keys": "tfds"}, "records have 'image' in {second} but not in {made}"),
        ({"rename": "image/filename=name"}, "records have 'image/filename' in {made} but not in {second}"),
        ({"image_format": "raw"}, "records have 'image/dtype' in {second} but not in {made}"),
    ],
)
def test_the_first_difference_is_named_with_its_cure(
    made: Path, tmp_path: Path, capsys: Captured, options: dict[str, Any], told: str
) -> None:
    source, second = collection(tmp_path / "photos", 6), tmp_path / "second"
    options = {name: tuple(value) if name == "labels" else value for name, value in options.items()}
    convert(str(source), second, max_rejects="50%", **options)
    assert run("merge", made, second, "--output", tmp_path / "out") == 1
    said = capsys.readouterr().err
    assert told.format(made=made, second=second) in said
    assert "convert both" in said
    assert not (tmp_path / "out").exists()


def test_images_of_other_formats_are_no_difference(made: Path, tmp_path: Path) -> None:
    source, second = collection(tmp_path / "photos", 6, first=900), tmp_path / "second"
    convert(str(source), second, max_rejects="50%", image_format="jpeg", color="gray")
    out = tmp_path / "out"
    assert run("merge", made, second, "--output", out) == 0
    spec = conversion(out)["features"]["image/encoded"]
    assert "channels" not in spec
    assert "encoding" not in spec
    assert is_faultless(out)


def test_merge_refuses_what_it_cannot_compare(made: Path, tmp_path: Path, capsys: Captured) -> None:
    write_elsewhere(tmp_path / "elsewhere")
    assert run("merge", made, tmp_path / "elsewhere", "--output", tmp_path / "out") == 1
    assert "nothing tells whether its records are like" in capsys.readouterr().err
    assert run("merge", made, "--output", tmp_path / "out") == 2
    assert run("merge", made, f"{made}/", "--output", tmp_path / "out") == 2
    assert "is given twice" in capsys.readouterr().err
    assert run("reshard", made, made, "--output", tmp_path / "out") == 2
    assert "merge joins datasets" in capsys.readouterr().err


def test_what_is_resharded_again_tells_of_both_times(made: Path, other: Path, tmp_path: Path) -> None:
    assert run("merge", made, other, "--output", tmp_path / "both") == 0
    assert run("reshard", tmp_path / "both", "--output", tmp_path / "out", "--num_shards", "3") == 0
    steps = conversion(tmp_path / "out")["resharded"]
    assert [len(step["inputs"]) for step in steps] == [2, 1]
    assert steps[1]["num_shards"] == 3
    assert {SHARD.fullmatch(path.name)["split"] for path in shard_files(tmp_path / "out")} == {  # type: ignore[index]
        "test",
        "train",
        "validation",
    }


def test_what_the_inputs_hold_is_copied_or_named(
    made: Path, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = tmp_path / "one"
    shutil.copytree(made, one)
    (one / "README.md").write_bytes(b"of my own")
    (one / "old-00000-of-00001.tfrecord").write_bytes(b"")
    told = conversion(one)
    (one / "conversion.json").write_text(json.dumps({**told, "my_note": 1}), "utf-8")
    assert run("merge", one, other, "--output", tmp_path / "out") == 0
    (step,) = conversion(tmp_path / "out")["resharded"]
    inputs = [conversion(one), conversion(other)]
    assert step["found"]["records"] == step["used"]["records"]["copied"] == sum(own["written"] for own in inputs)
    assert step["used"]["features"] == {"kept": len(told["features"])}
    assert step["found"]["files"] == sum(len(list(folder.iterdir())) for folder in (one, other))
    assert step["used"]["files"]["shard"] == len(shard_files(one)) - 1 + len(shard_files(other))
    named = {reason: (own["count"], own["example"]) for reason, own in step["named"]["files"].items()}
    assert named["no part of the dataset"] == (1, "README.md")
    assert named["looks like a shard, and conversion.json does not name it"] == (1, "old-00000-of-00001.tfrecord")
    assert [own["example"] for own in step["named"]["metadata"].values()] == ["my_note"]
    for kind, count in step["found"].items():
        named_count = sum(own["count"] for own in step["named"].get(kind, {}).values())
        assert count == sum(step["used"].get(kind, {}).values()) + named_count, kind
    err = capsys.readouterr().err
    assert "README.md" in err
    assert "old-00000-of-00001.tfrecord" in err
