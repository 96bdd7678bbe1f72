"""Rows in memory."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.manifests import FORMATS, describe_rows
from beam_tfrecord.manifests.base import Item, Source
from beam_tfrecord.manifests.formats import memory
from beam_tfrecord.options.config import ManifestConfig
from tests.contracts import rejects_of, rows_of
from tests.local_files import LocalFiles


def config(**options: Any) -> ManifestConfig:
    return ManifestConfig(input=("rows",), **options)


def items_of(source: Source, **options: Any) -> list[Item]:
    files, manifest = LocalFiles(), FORMATS[source.format]
    pieces = list(manifest.pieces(files, source))
    return [
        item for piece in pickle.loads(pickle.dumps(pieces)) for item in manifest.rows(files, piece, config(**options))
    ]


def fields_of(rows: Any, **options: Any) -> list[dict[str, Any]]:
    return [fields for _, fields in rows_of(items_of(describe_rows(rows, config(**options)), **options))]


@pytest.mark.parametrize("kind", ["dicts", "pandas", "arrow"])
def test_tables_of_all_kinds_give_the_same_rows(kind: str) -> None:
    rows = [{"image": "a.jpg", "label": "cat", "n": 1}, {"image": "b.jpg", "label": "dog", "n": 2}]
    table = {"dicts": rows, "pandas": pd.DataFrame(rows), "arrow": pa.Table.from_pylist(rows)}[kind]
    assert fields_of(table, columns="n:int64") == [
        {"image": "a.jpg", "label": "cat", "columns": {"n": 1}},
        {"image": "b.jpg", "label": "dog", "columns": {"n": 2}},
    ]


def test_gaps_of_a_data_frame_are_empty_cells() -> None:
    frame = pd.DataFrame({"image": ["a.jpg", None, "c.jpg"], "label": [1, 2, None], "split": [None, "x", "test"]})
    items = items_of(describe_rows(frame, config()))
    assert [fields for _, fields in rows_of(items)] == [
        {"image": "a.jpg", "label": "1"},
        {"image": "c.jpg", "label": "", "split": "test"},
    ]
    assert rejects_of(items) == [("rows:2", "bad_row")]


def test_values_of_all_kinds_become_text() -> None:
    rows = [{"image": Path("x/a.jpg"), "label": np.int64(7)}, {"image": "b.jpg", "label": np.array(["u", "v"])}]
    assert fields_of(rows) == [{"image": "x/a.jpg", "label": "7"}, {"image": "b.jpg", "label": ["u", "v"]}]


def test_rows_are_parted_and_numbered_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PIECE_ROWS", 10)
    rows = [{"image": f"{number}.jpg"} for number in range(25)]
    source = describe_rows(rows, config())
    pieces = list(FORMATS["rows"].pieces(LocalFiles(), source))
    assert [len(piece.source.rows) for piece in pieces] == [10, 10, 5]
    items = items_of(source)
    assert [item.origin for item in items if isinstance(item, Row)] == [f"rows:{n}" for n in range(1, 26)]
    assert [item.fields["image"] for item in items if isinstance(item, Row)] == [row["image"] for row in rows]


def test_boxes_and_sequences_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PIECE_ROWS", 2)
    box = {"image": "a.jpg", "label": "x", "xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4, "clip": "c"}
    source = describe_rows([box] * 5, config())
    assert len(list(FORMATS["rows"].pieces(LocalFiles(), source))) == 1
    assert [len(item.fields["boxes"]) for item in items_of(source) if isinstance(item, Row)] == [5]
    frames = describe_rows([{"image": "a.jpg", "clip": "c"}] * 5, config(sequence_column="clip"))
    assert len(list(FORMATS["rows"].pieces(LocalFiles(), frames))) == 1


def test_keys_may_differ_from_row_to_row() -> None:
    assert fields_of([{"image": "a.jpg"}, {"image": "b.jpg", "label": "x"}]) == [
        {"image": "a.jpg", "label": ""},
        {"image": "b.jpg", "label": "x"},
    ]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "no rows"),
        ([1], "row 1 is a int"),
        ("a.jpg", "not a str"),
        ([{"name": "a"}], "--image_column"),
        ([{"image": "a.jpg", "label": 1}], "--label_column lable"),
    ],
)
def test_what_is_no_table_of_images_is_explained(rows: Any, said: str) -> None:
    options = {"label_column": "lable"} if "lable" in said else {}
    with pytest.raises(ConfigError, match=said):
        describe_rows(rows, config(**options))
