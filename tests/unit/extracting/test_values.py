"""Values as cells that become the same values again."""

from __future__ import annotations

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.annotations.columns import ColumnsKind
from beam_tfrecord.datasets.metadata.text import json_line
from beam_tfrecord.tools.extracting.values import UnextractableError, cell_of, needed, optional_text, values_of
from tests.annotation_tools import parse

TYPES = {"int64": "int64", "float": "float", "bytes": "string"}
VALUES = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "bytes": st.one_of(st.binary(), st.text().map(str.encode)),
}


@given(st.sampled_from(sorted(VALUES)), st.data())
def test_every_value_comes_back_through_a_line_of_the_manifest(dtype: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[dtype])
    line = json_line({"columns": {"single": cell_of(value), "list": [cell_of(value), cell_of(value)]}})
    assert line.count("\n") == 1
    kind = TYPES[dtype]
    single, several = parse(ColumnsKind(), json.loads(line), columns=f"single:{kind},list:{kind}[]").values
    assert len(several) == 2
    for again in (*single, *several):
        if dtype == "float":
            assert math.isnan(again) if math.isnan(value) else struct.pack("f", again) == struct.pack("f", value)
        else:
            assert again == value


def test_values_of_another_type_or_number_are_told() -> None:
    features = {"a": Feature("int64", [1, 2])}
    assert values_of(features, "a", "int64", 2) == [1, 2]
    assert values_of(features, "b", "int64") is None
    assert values_of(features, None, "int64") is None
    with pytest.raises(UnextractableError, match="a is int64, not float"):
        values_of(features, "a", "float")
    with pytest.raises(UnextractableError, match="a has 2 values, not 1"):
        values_of(features, "a", "int64", 1)
    with pytest.raises(UnextractableError, match="no feature b"):
        needed(features, "b", "int64")


def test_a_text_is_optional() -> None:
    features = {"a": Feature("bytes", [b"\xff"]), "b": Feature("bytes", []), "c": Feature("int64", [1])}
    assert [optional_text(features, key) for key in ("a", "b", "c", "d", None)] == ["\udcff", None, None, None, None]
