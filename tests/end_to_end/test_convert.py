"""The main job, from what people have to a published dataset, looked at with readers of the tests' own."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from beam_tfrecord import ConfigError, ManifestError
from tests.end_to_end.datasets import (
    by_name,
    conversion,
    converted,
    findings,
    records,
    shard_bytes,
    shard_files,
    texts,
)
from tests.samples import class_folders, jpeg, noise, png, truncated, write_files, write_table


def picture(number: int, size: int = 16) -> bytes:
    return jpeg(Image.fromarray(noise(size, size, number)))


def numbered(folder: Path, count: int, label: Any = lambda n: "ab"[n % 2]) -> Path:
    """``count`` pictures and a manifest data.csv beside them."""
    write_files(folder, {f"{n:03d}.jpg": picture(n) for n in range(count)})
    return write_table(folder / "data.csv", [("image", "label"), *((f"{n:03d}.jpg", label(n)) for n in range(count))])


def test_class_folders_become_records_of_the_files_as_they_are(photos: Path, tmp_path: Path) -> None:
    summary = converted(photos, tmp_path / "out")
    files = {str(path.relative_to(photos)): path.read_bytes() for path in photos.rglob("*.jpg")}
    found = by_name(tmp_path / "out")
    assert sorted(found) == sorted(files)
    labels = sorted({name.split("/")[0] for name in files})
    for name, record in found.items():
        data = files[name]
        assert record["image/encoded"] == [data]
        assert texts(record, "image/key/sha256") == [hashlib.sha256(data).hexdigest()]
        assert texts(record) == [name.split("/")[0]]
        assert record["image/class/label"] == [labels.index(name.split("/")[0])]
        with Image.open(io.BytesIO(data)) as image:
            assert (record["image/width"], record["image/height"]) == ([image.width], [image.height])
        assert record["image/channels"] == [3]
        assert texts(record, "image/format") == ["jpeg"]
        assert texts(record, "image/source_id") == [name]
    assert (tmp_path / "out" / "labels.txt").read_text().split() == labels
    assert summary.splits == {"train": len(files)}


def test_split_folders_are_splits(tmp_path: Path) -> None:
    files = {f"{split}/{name}": data for split in ("train", "val", "test") for name, data in class_folders().items()}
    write_files(tmp_path / "in", files)
    summary = converted(tmp_path / "in", tmp_path / "out")
    assert set(summary.splits) == {"train", "val", "test"}
    assert sum(summary.splits.values()) == len(files)


def test_a_glob_with_a_label_pattern(tmp_path: Path) -> None:
    write_files(tmp_path / "fruit", {f"{kind}{n}.jpg": picture(n) for kind in ("apple", "pear") for n in range(3)})
    converted(f"{tmp_path}/fruit/*.jpg", tmp_path / "out", label_pattern=r"(?P<label>[a-z]+)\d+\.jpg")
    assert conversion(tmp_path / "out")["labels"] == ["apple", "pear"]
    assert all(texts(r)[0] in texts(r, "image/filename")[0] for r in records(tmp_path / "out"))


def test_several_inputs_with_splits_of_their_own(tmp_path: Path) -> None:
    train = numbered(tmp_path / "a", 20)
    write_files(tmp_path / "b", {f"v{n}.jpg": picture(100 + n) for n in range(4)})
    rows = [{"path": f"v{n}.jpg", "class": "c"} for n in range(4)]
    (tmp_path / "b" / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = converted(
        (train, f"validation={tmp_path}/b/val.jsonl"), tmp_path / "out", num_shards="train=4,validation=2"
    )
    assert summary.splits == {"train": 20, "validation": 4}
    names = [path.name for path in shard_files(tmp_path / "out")]
    assert names == [
        *(f"train-0000{n}-of-00004.tfrecord" for n in range(4)),
        *(f"validation-0000{n}-of-00002.tfrecord" for n in range(2)),
    ]
    assert conversion(tmp_path / "out")["labels"] == ["a", "b", "c"]


def test_a_table_without_images(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [3, 41], "weight": [1.5, 70.25], "note": ["small", "größer"], "rest": [0, 0]})
    frame.to_parquet(tmp_path / "table.parquet")
    converted(tmp_path / "table.parquet", tmp_path / "out", columns="age:int64,weight:float,note:string")
    rows = sorted(records(tmp_path / "out"), key=lambda record: record["age"])
    assert [(r["age"], r["weight"], texts(r, "note")) for r in rows] == [
        ([3], [1.5], ["small"]),
        ([41], [70.25], ["größer"]),
    ]
    assert all(set(r) == {"age", "weight", "note", "image/source_id"} for r in rows)


@pytest.mark.parametrize("kind", [list, pd.DataFrame])
def test_rows_in_memory(tmp_path: Path, kind: Any) -> None:
    numbered(tmp_path / "in", 6)
    rows = [{"image": f"{tmp_path}/in/{n:03d}.jpg", "label": str(n % 2)} for n in range(6)]
    summary = converted(kind(rows), tmp_path / "out")
    assert summary.written == 6
    assert conversion(tmp_path / "out")["labels"] == ["0", "1"]


def test_what_cannot_be_used_is_told_row_by_row(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "good.jpg": picture(1),
            "good.png": png(Image.fromarray(noise(9, 7, 2))),
            "cut.jpg": truncated(picture(3, 64)),
            "empty.jpg": b"",
            "page.jpg": b"<!DOCTYPE html><html><body>404</body></html>",
        },
    )
    rows = [("image", "label"), ("good.jpg", "a"), ("cut.jpg", "a"), ("good.png", "b"), ("empty.jpg", "b")]
    rows += [("page.jpg", "a"), ("gone.jpg", "a"), ("", "a"), ("good.jpg", "")]
    manifest = write_table(tmp_path / "data.csv", rows)
    summary = converted(manifest, tmp_path / "out", max_rejects="100%")
    assert summary.written == 2
    told = {(f["origin"].rpartition(":")[2], f["code"]) for f in findings(tmp_path / "out")}
    assert told == {
        ("3", "truncated_image"),
        ("5", "empty_file"),
        ("6", "not_an_image"),
        ("7", "missing_file"),
        ("8", "bad_row"),
        ("9", "missing_label"),
    }


def test_too_many_rejects_are_not_published_until_it_is_asked_for(tmp_path: Path) -> None:
    manifest = numbered(tmp_path / "in", 8)
    (tmp_path / "in" / "003.jpg").write_bytes(b"")
    out = tmp_path / "out"
    assert converted(manifest, out).status == "withheld"
    staged = {path.name: path.stat().st_mtime_ns for path in (out / ".staging" / "shards").glob("*.tfrecord")}
    assert staged
    summary = converted(manifest, out, resume=True, max_rejects=1)
    assert summary.status == "published"
    assert [path.stat().st_mtime_ns for path in shard_files(out)] == list(staged.values())


def test_nothing_written_is_no_dataset(tmp_path: Path) -> None:
    write_files(tmp_path / "in", {"a/1.jpg": b"no image", "a/2.jpg": b"nor this"})
    summary = converted(tmp_path / "in", tmp_path / "out", max_rejects="100%")
    assert summary.status == "empty"
    assert not (tmp_path / "out" / "dataset_info.json").exists()


# ---------------------------------------------------------------------------------------------------------------------
# The same bytes


@pytest.mark.parametrize(
    "flags",
    [
        ["--direct_running_mode=multi_threading", "--direct_num_workers=2"],
        ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
    ],
    ids=["multi_threading", "multi_processing"],
)
def test_bytes_do_not_depend_on_the_running_mode(tmp_path: Path, flags: list[str]) -> None:
    manifest = numbered(tmp_path / "in", 40)
    options: dict[str, Any] = {"num_shards": 3, "splits": "train=0.8,validation=0.2"}
    converted(manifest, tmp_path / "one", **options)
    converted(manifest, tmp_path / "two", pipeline_options=flags, **options)
    assert shard_bytes(tmp_path / "one") == shard_bytes(tmp_path / "two")
    assert conversion(tmp_path / "one")["splits"] == conversion(tmp_path / "two")["splits"]


def test_bytes_do_not_depend_on_threads_or_the_order_of_rows(tmp_path: Path) -> None:
    manifest = numbered(tmp_path / "in", 40)
    header, *rows = manifest.read_text().splitlines()
    random.Random(3).shuffle(rows)
    shuffled = tmp_path / "in" / "shuffled.csv"
    shuffled.write_text("\n".join([header, *rows]) + "\n")
    results = []
    for number, (source, threads) in enumerate([(manifest, 1), (manifest, 8), (shuffled, 4)]):
        converted(source, tmp_path / str(number), num_shards=3, read_threads=threads, stratify=True, splits="a=3,b=1")
        results.append(shard_bytes(tmp_path / str(number)))
    assert results[0] == results[1] == results[2]


def test_another_seed_gives_another_order(tmp_path: Path) -> None:
    manifest = numbered(tmp_path / "in", 12)
    converted(manifest, tmp_path / "0")
    converted(manifest, tmp_path / "1", seed=1)
    first, second = (records(tmp_path / name) for name in "01")
    assert first != second
    assert sorted(map(str, first)) == sorted(map(str, second))


def test_bytes_are_those_of_another_hash_seed(tmp_path: Path, run_cli: Any) -> None:
    manifest = numbered(tmp_path / "in", 12)
    for seed in "12":
        done = run_cli("convert", "--input", manifest, "--output", tmp_path / seed, env={"PYTHONHASHSEED": seed})
        assert done.returncode == 0, done.stderr
    assert shard_bytes(tmp_path / "1") == shard_bytes(tmp_path / "2")


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_shards_hold_the_same_records(tmp_path: Path, compression: str) -> None:
    import tensorflow as tf

    manifest = numbered(tmp_path / "in", 10)
    converted(manifest, tmp_path / "plain")
    converted(manifest, tmp_path / "packed", compression=compression)
    (path,) = shard_files(tmp_path / "packed")
    unpack = gzip.decompress if compression == "gzip" else zlib.decompress
    assert unpack(path.read_bytes()) == next(iter(shard_bytes(tmp_path / "plain").values()))
    dataset = tf.data.TFRecordDataset(str(path), compression_type=compression.upper())
    assert sum(1 for _ in dataset) == 10


def test_the_beam_sink_writes_the_same_records(tmp_path: Path) -> None:
    manifest = numbered(tmp_path / "in", 30)
    (tmp_path / "in" / "007.jpg").write_bytes(b"")
    options: dict[str, Any] = {"splits": "train=0.7,validation=0.3", "num_shards": "train=3,validation=1"}
    planned = converted(manifest, tmp_path / "planned", **options)
    beam = converted(manifest, tmp_path / "beam", writer="beam", **options)
    assert (beam.rows, beam.written, beam.rejected) == (planned.rows, planned.written, planned.rejected)
    for split in ("train", "validation"):
        both = [sorted(map(str, records(tmp_path / name, split))) for name in ("planned", "beam")]
        assert both[0] == both[1]
    assert findings(tmp_path / "beam") == findings(tmp_path / "planned")


# ---------------------------------------------------------------------------------------------------------------------
# Ids, labels, content


def test_copies_of_an_id_are_kept_and_told(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.jpg": picture(1), "b.jpg": picture(2)})
    rows = [("image", "label"), ("a.jpg", "x"), ("b.jpg", "x"), ("a.jpg", "x"), ("a.jpg", "y")]
    converted(write_table(tmp_path / "data.csv", rows), tmp_path / "out")
    ids = sorted(texts(record, "image/source_id")[0] for record in records(tmp_path / "out"))
    assert ids == ["a.jpg", "a.jpg#1", "a.jpg#2", "b.jpg"]
    assert conversion(tmp_path / "out")["warnings"] == {"conflicting_label": 1, "duplicate_id": 2}


def test_copies_of_an_id_can_be_dropped_or_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.jpg": picture(1), "b.jpg": picture(2)})
    rows = [("image", "label", "split"), ("a.jpg", "x", "test"), ("b.jpg", "x", "train"), ("a.jpg", "x", "train")]
    manifest = write_table(tmp_path / "data.csv", rows)
    summary = converted(manifest, tmp_path / "out", duplicates="drop", max_rejects="100%")
    assert summary.rejected == {"duplicate_id": 1}
    with pytest.raises(ManifestError, match=r"'a.jpg' is used by .*data.csv:4"):
        converted(manifest, tmp_path / "fail", duplicates="fail")


def test_the_same_bytes_in_two_splits_are_a_leak(tmp_path: Path) -> None:
    pictures = {"a.jpg": 1, "copy.jpg": 1, "b.jpg": 2, "twin.jpg": 2, "c.jpg": 3}
    write_files(tmp_path, {name: picture(number) for name, number in pictures.items()})
    splits = {"a.jpg": "train", "copy.jpg": "test", "b.jpg": "train", "twin.jpg": "train", "c.jpg": "test"}
    converted(write_table(tmp_path / "data.csv", [("image", "split"), *splits.items()]), tmp_path / "out")
    assert conversion(tmp_path / "out")["warnings"] == {"duplicate_content": 1, "split_leak": 1}
    by_code = {finding["code"]: finding for finding in findings(tmp_path / "out", "warnings")}
    leak, copy = (by_code[code]["uri"] + by_code[code]["message"] for code in ("split_leak", "duplicate_content"))
    assert "a.jpg" in leak
    assert "copy.jpg" in leak
    assert "b.jpg" in copy
    assert "twin.jpg" in copy


def test_a_vocabulary_decides_the_ids(tmp_path: Path) -> None:
    manifest = numbered(tmp_path / "in", 6, label=lambda n: ["owl", "cat", "Cat"][n % 3])
    (tmp_path / "names.txt").write_bytes(b"\xef\xbb\xbfowl\r\ncat\r\n\r\n")
    converted(manifest, tmp_path / "out", labels=str(tmp_path / "names.txt"), label_offset=5, max_rejects="50%")
    assert {texts(r)[0]: r["image/class/label"][0] for r in records(tmp_path / "out")} == {"owl": 5, "cat": 6}
    assert {f["code"] for f in findings(tmp_path / "out")} == {"unknown_label"}
    assert all("did you mean 'cat'" in f["message"] for f in findings(tmp_path / "out"))


def test_numbers_are_not_taken_for_ids_of_the_vocabulary(tmp_path: Path) -> None:
    manifest = numbered(tmp_path / "in", 4, label=lambda n: str(n % 2))
    (tmp_path / "classes.csv").write_text("cat,0\nowl,1\n")
    options = {"labels": str(tmp_path / "classes.csv"), "max_rejects": "100%"}
    converted(manifest, tmp_path / "refused", **options)
    assert {f["code"] for f in findings(tmp_path / "refused/.staging")} == {"unknown_label"}
    assert all("say for which: --map_labels " in f["message"] for f in findings(tmp_path / "refused/.staging"))
    converted(manifest, tmp_path / "out", map_labels="0=cat,1=owl", **options)
    assert {texts(r)[0]: r["image/class/label"][0] for r in records(tmp_path / "out")} == {"cat": 0, "owl": 1}


def test_stratified_splits_hold_every_class(tmp_path: Path) -> None:
    manifest = numbered(tmp_path / "in", 30, label=lambda n: "rare" if n % 10 == 0 else "common")
    converted(manifest, tmp_path / "out", splits="train=0.8,validation=0.1,test=0.1", stratify=True)
    classes = conversion(tmp_path / "out")["classes"]
    assert {split: counts["rare"] for split, counts in classes.items()} == {"train": 1, "validation": 1, "test": 1}
    assert Counter({split: counts["common"] for split, counts in classes.items()}) == {
        "train": 21,
        "validation": 3,
        "test": 3,
    }


# ---------------------------------------------------------------------------------------------------------------------
# The output folder


def test_a_dataset_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    manifest = numbered(tmp_path / "in", 12)
    out = tmp_path / "out"
    converted(manifest, out, num_shards=4)
    (out / "notes.md").write_text("mine")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(ConfigError, match="--overwrite"):
        converted(manifest, out, num_shards=2)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    converted(manifest, out, num_shards=2, overwrite=True)
    assert len(shard_files(out)) == 2
    assert (out / "notes.md").read_text() == "mine"


@pytest.mark.parametrize("flag", ["overwrite", "resume"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"splits": []}',
        b'{"splits": {"train": {"shards": [{"file": 3, "crc32c": ""}]}}}',
        None,
    ],
)
def test_a_dataset_of_which_nothing_tells_the_files_is_not_replaced(
    flag: str, content: bytes | None, tmp_path: Path
) -> None:
    manifest = numbered(tmp_path / "in", 12)
    out = tmp_path / "out"
    converted(manifest, out, num_shards=4)
    if content is None:
        (out / "conversion.json").unlink()
    else:
        (out / "conversion.json").write_bytes(content)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(
        ConfigError, match=r"conversion\.json.*nothing tells which files .*delete them, or name another"
    ):
        converted(manifest, out, num_shards=2, **{flag: True})
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    manifest = numbered(tmp_path / "in", 2)
    for name, word in (("thesis.tex", "thesis.tex"), ("train-00000-of-00001.tfrecord", "shards of something else")):
        out = tmp_path / name.partition(".")[0]
        write_files(out, {name: b"x"})
        with pytest.raises(ConfigError, match=word):
            converted(manifest, out, overwrite=True)
        assert [path.name for path in out.iterdir()] == [name]


def test_tfds_loads_every_record(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    manifest = numbered(tmp_path / "in", 20)
    converted(manifest, tmp_path / "out", splits="train=0.8,validation=0.2", num_shards=2)
    builder = tfds.builder_from_directory(str(tmp_path / "out"))
    assert builder.info.features["image/class/label"].names == ["a", "b"]
    seen = 0
    for split in builder.info.splits:
        for record in builder.as_dataset(split=split):
            assert np.asarray(record["image/encoded"]).shape == (16, 16, 3)
            seen += 1
    assert seen == 20


@pytest.mark.parametrize(
    ("file", "text", "ids"),
    [
        ("map.pbtxt", 'item { id: 4 name: "oak" } item { id: 2 name: "elm" }', {"elm": 2, "oak": 4}),
        ("ids.json", '{"oak": 1, "elm": 2}', {"oak": 1, "elm": 2}),
        ("names.json", '["oak", "elm"]', {"oak": 0, "elm": 1}),
    ],
)
def test_labels_have_the_ids_that_a_label_map_gives(tmp_path: Path, file: str, text: str, ids: dict[str, int]) -> None:
    write_files(tmp_path / "in", {f"{name}/a.png": png(Image.fromarray(noise(8, 6))) for name in ("oak", "elm")})
    (tmp_path / file).write_text(text)
    converted(tmp_path / "in", tmp_path / "out", labels=str(tmp_path / file))
    found = {r["image/class/text"][0].decode(): r["image/class/label"][0] for r in records(tmp_path / "out")}
    assert found == ids
    # The label map that this wrote gives the same ids again.
    converted(tmp_path / "in", tmp_path / "again", labels=str(tmp_path / "out" / "label_map.pbtxt"))
    assert records(tmp_path / "again") == records(tmp_path / "out")
