"""docs/annotations.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from beam_tfrecord.annotations import KINDS
from beam_tfrecord.annotations.keys import KEYS, feature_keys
from beam_tfrecord.annotations.objects import ATTRIBUTES
from beam_tfrecord.errors import REJECT_CODES, WARNING_CODES

PAGE = (Path(__file__).parents[3] / "docs" / "annotations.md").read_text("utf-8")


def table(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its header, backquotes taken off."""
    lines = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0].splitlines()
    rows = [line for line in lines if line.startswith("|")][2:]
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize(("column", "preset"), [(1, "imagenet"), (1, "od"), (2, "tfds"), (3, "simple")])
def test_the_table_of_keys_is_that_of_the_code(column: int, preset: str) -> None:
    told = {row[0]: row[column] for row in table("Keys")}
    assert list(told) == list(KEYS)
    stored = {**feature_keys(preset, raw=True), **feature_keys(preset)}
    assert {name: key for name, key in stored.items() if told[name] != key} == {}
    assert {name for name in told if told[name] != "–"} == set(stored)


def test_every_kind_and_attribute_is_described() -> None:
    assert [row[0] for row in table("Kinds and their fields")] == list(KINDS)
    assert all(f"`{attribute}`" in PAGE for attribute in ATTRIBUTES)


def test_codes_that_are_named_exist() -> None:
    codes = set(re.findall(r"\(`?([a-z]+_[a-z_]+)`?[),]", PAGE))
    assert codes
    assert codes <= {*REJECT_CODES, *WARNING_CODES}


def test_the_example_of_a_kind_works() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    from beam_tfrecord import annotations

    try:
        exec(code, names)
        assert KINDS["quality"].parse({"quality": "2"}, None, None) == 2.0  # type: ignore[arg-type]
    finally:
        annotations._KINDS.pop("quality", None)
