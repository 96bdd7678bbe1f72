"""Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.formats.parquet import ParquetFormat
from tests.contracts import ManifestFormatContract, Sample, describe, read, rows_of
from tests.local_files import LocalFiles

FORMAT = ParquetFormat(piece_rows=1)


def written(folder: Path, table: Any, name: str = "data.parquet", **options: Any) -> Sample:
    path = folder / name
    pq.write_table(pa.table(table), path, row_group_size=2)
    return Sample(str(path), [], options=options)


class TestParquet(ManifestFormatContract):
    format = FORMAT

    def sample(self, folder: Path) -> Sample:
        columns = {
            "unused": list(range(5)),
            "image": [f"{i}.jpg" for i in range(5)],
            "label": pa.array([7, 8, None, 7, 9], pa.int16()),
            "split": pa.array(["train", "test", None, "TRAIN", "train"]).dictionary_encode(),
        }
        sample = written(folder, columns)
        labels, splits = ["7", "8", "", "7", "9"], ["train", "test", None, "train", "train"]
        rows = []
        for i in range(5):
            fields = {"image": f"{i}.jpg", "label": labels[i]}
            rows.append((f"{sample.uri}:{i + 1}", fields if splits[i] is None else {**fields, "split": splits[i]}))
        return Sample(sample.uri, rows)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return written(folder, {"filename": list(names)})

    def damaged(self, folder: Path) -> Sample:
        sample = written(folder, {"image": ["a.jpg", None, "", "b.jpg"]})
        good = [(f"{sample.uri}:{row}", {"image": image}) for row, image in ((1, "a.jpg"), (4, "b.jpg"))]
        return Sample(sample.uri, good, [(f"{sample.uri}:{row}", "bad_row") for row in (2, 3)])

    def empty(self, folder: Path) -> Sample:
        return written(folder, {"image": pa.array([], pa.string())})


def test_each_piece_is_some_row_groups(tmp_path: Path) -> None:
    sample = written(tmp_path, {"image": [f"{i}.jpg" for i in range(9)]})
    source = describe(FORMAT, sample)
    assert [(p.start, p.end, p.first_line) for p in FORMAT.pieces(LocalFiles(), source)] == [
        (0, 1, 1),
        (1, 2, 3),
        (2, 3, 5),
        (3, 4, 7),
        (4, 5, 9),
    ]
    assert [(p.start, p.end, p.first_line) for p in ParquetFormat(4).pieces(LocalFiles(), source)] == [
        (0, 2, 1),
        (2, 4, 5),
        (4, 5, 9),
    ]
    assert len(list(ParquetFormat().pieces(LocalFiles(), source))) == 1


def test_typed_columns_keep_their_values(tmp_path: Path) -> None:
    columns = {"age": [1, 2], "weight": [0.5, float("nan")], "tags": [["a", "b"], []], "image": ["a.jpg", "b.jpg"]}
    sample = written(tmp_path, columns, columns="age:int64,weight:float,tags:string[]")
    rows = [fields["columns"] for _, fields in rows_of(read(FORMAT, sample))]
    assert rows[0] == {"age": 1, "weight": 0.5, "tags": ["a", "b"]}
    assert rows[1]["age"] == 2
    assert rows[1]["weight"] != rows[1]["weight"]
    assert rows[1]["tags"] == []


def test_labels_may_be_lists_or_bytes(tmp_path: Path) -> None:
    lists = written(tmp_path, {"image": ["a.jpg", "b.jpg"], "label": [["x", "y"], []]})
    assert [fields["label"] for _, fields in rows_of(read(FORMAT, lists))] == [["x", "y"], []]
    raw = written(tmp_path, {"image": ["a.jpg"], "label": [b"caf\xc3\xa9"]})
    assert rows_of(read(FORMAT, raw))[0][1]["label"] == "café"


def test_a_table_without_images_is_fine_with_declared_columns(tmp_path: Path) -> None:
    sample = written(tmp_path, {"age": [1]}, columns={"age": "int64"})
    assert rows_of(read(FORMAT, sample)) == [(f"{sample.uri}:1", {"columns": {"age": 1}})]


def test_a_column_of_something_else_than_pictures_is_explained(tmp_path: Path) -> None:
    sample = written(tmp_path, {"image": [{"data": b"x", "format": "jpg"}]})
    with pytest.raises(ConfigError, match=r"'image' is a struct.*neither the path"):
        describe(FORMAT, sample)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = Path(written(tmp_path, {"image": ["a.jpg"]}).uri)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ManifestError, match=r"data.parquet cannot be read as Parquet"):
        describe(FORMAT, Sample(str(path), []))


def test_one_row_per_box_is_read_as_boxes_in_one_piece(tmp_path: Path) -> None:
    columns = {"image": ["a.jpg", "b.jpg", "a.jpg"], "class": ["x"] * 3}
    columns |= {name: [1, 2, 3] for name in ("xmin", "ymin", "xmax", "ymax")}
    sample = written(tmp_path, columns)
    assert [(f["image"], len(f["boxes"])) for _, f in rows_of(read(FORMAT, sample))] == [("a.jpg", 2), ("b.jpg", 1)]
    assert len(list(FORMAT.pieces(LocalFiles(), describe(FORMAT, sample)))) == 1


def test_columns_that_are_not_read_come_with_what_reads_them(tmp_path: Path) -> None:
    sample = written(tmp_path, {"image": ["a.jpg", "b.jpg"], "night": [0, 2], "rain": [1, 0]})
    ((code, message),) = describe(FORMAT, sample).surprises
    assert code == "columns_not_read"
    assert "2 are not read at all" in message
    assert "are read where these hold nothing but 0 and 1" in message


def test_columns_of_zeros_and_ones_are_classes_as_in_csv(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "image": ["a.jpg", "b.jpg", "c.jpg"],
        "cat": [1, 0, 0],
        "dog": [0.0, 1.0, 1.0],
        "index": [0, 1, 0],
    }
    sample = written(tmp_path, columns)
    assert [fields["label"] for _, fields in rows_of(read(FORMAT, sample))] == ["cat", "dog", "dog"]
    assert describe(FORMAT, sample).surprises == ()
    named = written(tmp_path, {**columns, "label": ["x", "y", "z"]}, "named.parquet")
    assert [fields["label"] for _, fields in rows_of(read(FORMAT, named))] == ["x", "y", "z"]


def test_a_table_without_rows_has_no_classes(tmp_path: Path) -> None:
    empty = {"image": pa.array([], pa.string()), "cat": pa.array([], pa.int64()), "dog": pa.array([], pa.int64())}
    assert rows_of(read(FORMAT, written(tmp_path, empty))) == []
