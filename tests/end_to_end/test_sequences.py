"""Rows of one sequence become one SequenceExample, as TensorFlow's own parser reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.end_to_end.datasets import conversion, converted, findings, shard_files
from tests.samples import noise, png, write_files, write_table
from tests.tiny_reader import decode_sequence, read_shard


def clips(folder: Path, rows: list[tuple[str, ...]]) -> Path:
    """A manifest with one row for each frame; frame N is the picture noise(8, 6, N)."""
    write_files(folder, {f"f{n}.png": png(Image.fromarray(noise(8, 6, n))) for n in range(12)})
    return write_table(folder / "frames.csv", [("image", "clip", "frame", "label"), *rows])


def sequences(out: Path) -> dict[str, tuple[dict[str, list[Any]], dict[str, list[list[Any]]]]]:
    found = [decode_sequence(record) for path in shard_files(out) for record in read_shard(path)]
    return {context["image/source_id"][0].decode(): (context, lists) for context, lists in found}


def test_frames_are_gathered_and_ordered(tmp_path: Path) -> None:
    rows = [("f3.png", "b", "10", "jump"), ("f1.png", "a", "1", "run"), ("f2.png", "b", "9", "jump")]
    rows += [("f0.png", "a", "0", "run"), ("f4.png", "b", "11", "jump")]
    summary = converted(clips(tmp_path, rows), tmp_path / "out", sequence_column="clip", order_column="frame")
    assert (summary.rows, summary.written) == (2, 2)
    assert conversion(tmp_path / "out")["source_rows"] == 5
    found = sequences(tmp_path / "out")
    context, lists = found["b"]
    assert context["image/class/text"] == [b"jump"]
    assert context["image/class/label"] == [0]
    assert lists["image/filename"] == [[b"f2.png"], [b"f3.png"], [b"f4.png"]]
    assert lists["image/encoded"] == [[(tmp_path / f"f{n}.png").read_bytes()] for n in (2, 3, 4)]
    assert lists["image/width"] == [[8], [8], [8]]
    assert found["a"][1]["image/filename"] == [[b"f0.png"], [b"f1.png"]]


def test_tensorflow_parses_them_with_the_stored_spec(tmp_path: Path) -> None:
    import tensorflow as tf

    rows = [(f"f{n}.png", "one", str(n), "run") for n in range(4)]
    converted(clips(tmp_path, rows), tmp_path / "out", sequence_column="clip", order_column="frame")
    told = conversion(tmp_path / "out")
    assert told["message"] == "SequenceExample"
    types = {"int64": tf.int64, "float32": tf.float32, "string": tf.string}
    context, lists = {}, {}
    for key, spec in told["parse_spec"].items():
        dtype = types[spec["dtype"]]
        if not spec.get("feature_list"):
            fixed = spec["kind"] == "fixed"
            context[key] = tf.io.FixedLenFeature(spec["shape"], dtype) if fixed else tf.io.VarLenFeature(dtype)
        elif spec["kind"] == "sequence":
            lists[key] = tf.io.FixedLenSequenceFeature(spec["shape"], dtype)
        else:
            lists[key] = tf.io.VarLenFeature(dtype)
    (path,) = shard_files(tmp_path / "out")
    (record,) = read_shard(path)
    _, frames = tf.io.parse_single_sequence_example(record, context, lists)
    pictures = [tf.io.decode_image(data).numpy() for data in frames["image/encoded"]]
    for number, picture in enumerate(pictures):
        assert np.array_equal(picture, noise(8, 6, number))
    again = tf.train.SequenceExample.FromString(record)
    assert sorted(again.feature_lists.feature_list) == sorted(lists)
    assert sorted(again.context.feature) == sorted(context)


def test_a_sequence_with_a_bad_frame_is_one_reject_that_names_it(tmp_path: Path) -> None:
    rows = [("f0.png", "a", "0", "run"), ("gone.png", "a", "1", "run"), ("f2.png", "b", "0", "run")]
    rows += [("", "c", "0", "run"), ("f5.png", "c", "1", "run")]
    manifest = clips(tmp_path, rows)
    summary = converted(manifest, tmp_path / "out", sequence_column="clip", order_column="frame", max_rejects="100%")
    assert (summary.rows, summary.written) == (3, 1)
    told = {finding["code"]: finding for finding in findings(tmp_path / "out")}
    assert set(told) == {"missing_file", "bad_row"}
    assert "gone.png" in told["missing_file"]["message"]
    assert "'c'" in told["bad_row"]["message"]


def test_a_sequence_never_straddles_splits(tmp_path: Path) -> None:
    rows = [(f"f{n}.png", f"clip{n // 2}", str(n), "run") for n in range(12)]
    manifest = clips(tmp_path, rows)
    converted(manifest, tmp_path / "out", sequence_column="clip", order_column="frame", splits="train=1,test=1")
    for context, lists in sequences(tmp_path / "out").values():
        first = int(context["image/source_id"][0].decode().removeprefix("clip")) * 2
        assert lists["image/filename"] == [[f"f{first}.png".encode()], [f"f{first + 1}.png".encode()]]


def test_animated_images_can_become_sequences(tmp_path: Path) -> None:
    frames = [Image.fromarray(noise(8, 6, n)) for n in range(3)]
    frames[0].save(tmp_path / "moving.webp", save_all=True, append_images=frames[1:], lossless=True, duration=50)
    write_files(tmp_path, {"still.png": png(frames[0])})
    rows = [{"image": "moving.webp", "label": "a"}, {"image": "still.png", "label": "a"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    converted(tmp_path / "rows.jsonl", tmp_path / "out", animated="sequence")
    found = sequences(tmp_path / "out")
    assert len(found["moving.webp"][1]["image/encoded"]) == 3
    assert len(found["still.png"][1]["image/encoded"]) == 1
