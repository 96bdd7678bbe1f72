"""JSON Lines."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.formats.jsonl import JsonlFormat
from tests.contracts import ManifestFormatContract, Sample, describe, read, rejects_of, rows_of

FORMAT = JsonlFormat(piece_bytes=20, block_bytes=8)


def written(folder: Path, lines: Sequence[Any], name: str = "data.jsonl", **options: Any) -> Sample:
    """Lines are written as they are when they are texts, everything else as JSON."""
    path = folder / name
    texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
    path.write_text("".join(text + "\n" for text in texts), "utf-8")
    return Sample(str(path), [], options=options)


def first_fields(folder: Path, row: Any, **options: Any) -> dict[str, Any]:
    return rows_of(read(FORMAT, written(folder, [row], **options)))[0][1]


class TestJsonl(ManifestFormatContract):
    format = FORMAT

    def sample(self, folder: Path) -> Sample:
        lines = [
            {"image": "a.jpg", "label": "cat", "split": "train"},
            "",
            {"image": "b.jpg", "label": 7},
            {"label": ["x", "y"], "image": "line\u2028 separator.jpg"},
            {"image": "c.jpg", "label": None, "more": {"deep": 1}},
        ]
        sample = written(folder, lines)
        rows = [
            (1, {"image": "a.jpg", "label": "cat", "split": "train"}),
            (3, {"image": "b.jpg", "label": "7"}),
            (4, {"image": "line\u2028 separator.jpg", "label": ["x", "y"]}),
            (5, {"image": "c.jpg", "label": ""}),
        ]
        return Sample(sample.uri, [(f"{sample.uri}:{line}", fields) for line, fields in rows])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return written(folder, [{"path": name} for name in names])

    def damaged(self, folder: Path) -> Sample:
        lines = [
            {"image": "a.jpg"},
            "[1, 2]",
            "{cut",
            '"text"',
            "null",
            "[" * 100_000,
            {"other": 1},
            {"image": {"bytes": "x"}},
            '{"image": "\\ud800.jpg"}',
            {"image": ""},
            {"image": "b.jpg"},
        ]
        sample = written(folder, lines)
        return Sample(
            sample.uri,
            [(f"{sample.uri}:{line}", {"image": image}) for line, image in ((1, "a.jpg"), (11, "b.jpg"))],
            [(f"{sample.uri}:{line}", "bad_row") for line in range(2, 11)],
        )

    def empty(self, folder: Path) -> Sample:
        return written(folder, [])


def test_numbers_become_text_and_declared_columns_stay_what_they_are(tmp_path: Path) -> None:
    row = {"image": "a.jpg", "label": 3, "id": 12, "age": 7, "weights": [0.5, 1], "note": None}
    fields = first_fields(tmp_path, row, id_column="id", columns="age:int64,weights:float[],note:string")
    assert fields == {
        "image": "a.jpg",
        "label": "3",
        "id": "12",
        "columns": {"age": 7, "weights": [0.5, 1], "note": None},
    }


def test_true_and_false_are_spelled_as_in_json(tmp_path: Path) -> None:
    assert first_fields(tmp_path, {"image": "a.jpg", "label": True})["label"] == "true"


def test_keys_of_all_first_rows_are_columns(tmp_path: Path) -> None:
    sample = written(tmp_path, [{"image": "a.jpg"}, {"image": "b.jpg", "class": "cat"}])
    assert [fields.get("label") for _, fields in rows_of(read(FORMAT, sample))] == ["", "cat"]


def test_a_column_that_no_row_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--label_column lable.*'label'"):
        describe(FORMAT, written(tmp_path, [{"image": "a.jpg", "label": 1}], label_column="lable"))


@pytest.mark.parametrize("lines", [['[{"image": "a.jpg"}]'], ["[", '{"image": "a.jpg"},', "]"]])
def test_a_json_array_is_explained(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(ManifestError, match="array: write one object per line"):
        describe(FORMAT, written(tmp_path, lines))


def test_a_text_without_any_object_is_no_json_lines(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="no line is a JSON object; the first one is: hello"):
        describe(FORMAT, written(tmp_path, ["hello"]))


def test_compressed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"image": "a.jpg"}\n'))
    assert rows_of(read(FORMAT, Sample(str(path), []))) == [(f"{path}:1", {"image": "a.jpg"})]


def test_objects_with_box_columns_are_boxes(tmp_path: Path) -> None:
    box = {"image": "a.jpg", "label": "cat", "xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}
    items = read(FORMAT, written(tmp_path, [box, "no json", box]))
    assert [len(fields["boxes"]) for _, fields in rows_of(items)] == [2]
    assert [code for _, code in rejects_of(items)] == ["bad_row"]
