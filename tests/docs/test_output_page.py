"""docs/output.md and docs/splits.md say what a conversion leaves and what decides its bytes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from beam_tfrecord import convert
from beam_tfrecord.options.config import option_fields
from tests.conftest import ROOT
from tests.docs.features_table import PAGE, with_table
from tests.docs.places import boxes_csv

TEXT = PAGE.read_text("utf-8")


def first_column(text: str, heading: str) -> set[str]:
    """What stands in backquotes in the first column of the table below a heading."""
    part = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    cells = [line.split("|")[1] for line in part.splitlines() if line.startswith("|")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_the_table_of_features_is_that_of_the_code() -> None:
    assert with_table(TEXT) == TEXT, "python -m tests.docs.features_table writes it anew"


def test_every_file_and_every_field_is_described(tmp_path: Path) -> None:
    pytest.importorskip("array_record.python.array_record_module")
    boxes_csv(tmp_path)
    convert(str(tmp_path / "boxes.csv"), tmp_path / "out", index=True, array_record=True)
    patterns = first_column(TEXT, "Files")
    regular = [re.sub(r"[A-Z]+", ".+", re.escape(pattern).replace(r"\*", ".*")) for pattern in patterns]
    names = [path.name for path in (tmp_path / "out").iterdir()]
    assert [name for name in names if not any(re.fullmatch(pattern, name) for pattern in regular)] == []
    conversion = json.loads((tmp_path / "out" / "conversion.json").read_text("utf-8"))
    fields = first_column(TEXT, "conversion.json")
    assert set(conversion) - fields == set()
    assert fields - set(conversion) == {"staged", "label_ids", "category_ids", "resharded"}  # not of every dataset
    (shard,) = conversion["splits"]["train"]["shards"]
    assert all(f"`{name}`" in TEXT for name in shard)


def test_options_that_change_no_byte_are_listed() -> None:
    text = (ROOT / "docs" / "splits.md").read_text("utf-8")
    listed = {flag for name in first_column(text, "What changes no byte") for flag in re.findall(r"--(\w+)", name)}
    free = {field.name for _, field in option_fields() if not field.metadata["decides_bytes"]}
    # input and output name places; writer beam leaves the order to the engine.
    assert listed == free - {"input", "output", "writer"}
