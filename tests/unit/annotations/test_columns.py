from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.annotations.columns import Columns, ColumnsKind
from beam_tfrecord.errors import ConfigError, RowError
from tests.annotation_tools import make_config, make_schema, parse, through_tensorflow

KIND = ColumnsKind()


def values(declared: str, **cells: Any) -> tuple[tuple[Any, ...], ...]:
    parsed: Columns = parse(KIND, {"columns": cells}, columns=declared)
    return parsed.values


def test_without_declared_columns_there_is_nothing() -> None:
    assert parse(KIND, {"columns": {"a": "1"}}) is None


def test_each_type_is_read_from_text() -> None:
    found = values("n:int64,x:float,s:string,b:bytes", n="-7", x="1.5e3", s="007", b="é")
    assert found == ((-7,), (1500.0,), (b"007",), (b"\xc3\xa9",))


def test_typed_cells_are_taken() -> None:
    assert values("n:int64,x:float,s:string,b:bytes", n=np.int32(3), x=2, s=True, b=b"\xff") == (
        (3,),
        (2.0,),
        (b"true",),
        (b"\xff",),
    )


@pytest.mark.parametrize(
    ("declared", "cell"),
    [
        ("n:int64", "1.5"),
        ("n:int64", "abc"),
        ("n:int64", 2**63),
        ("n:int64", ""),
        ("n:int64", None),
        ("n:float", "1,5"),
        ("n:float", "1e39"),
        ("n:float", " "),
        ("n:int64[]", "1,x"),
        ("n:int64[]", [1, None]),
        ("n:string", ["a"]),
        ("n:string", {}),
        ("n:int64", [1]),
    ],
)
def test_a_cell_that_is_not_of_its_type_is_a_bad_row_that_names_column_and_type(declared: str, cell: Any) -> None:
    with pytest.raises(RowError) as caught:
        values(declared, n=cell)
    assert caught.value.code == "bad_row"
    assert "'n'" in caught.value.message
    assert declared.partition(":")[2].removesuffix("[]") in caught.value.message


def test_an_empty_cell_is_an_empty_text_or_an_empty_list() -> None:
    assert values("s:string,b:bytes,l:string[],n:int64[]", s="", b=None, l=" ", n="") == ((b"",), (b"",), (), ())
    assert values("s:string,n:float[]") == ((b"",), ())


@pytest.mark.parametrize(
    ("cell", "numbers"),
    [
        ("[1, 2]", (1, 2)),
        ("1 2", (1, 2)),
        ("1,2", (1, 2)),
        ("1; 2", (1, 2)),
        ([1, "2"], (1, 2)),
        (5, (5,)),
        (np.array([1, 2]), (1, 2)),
    ],
)
def test_lists_of_numbers(cell: Any, numbers: tuple[int, ...]) -> None:
    assert values("n:int64[]", n=cell) == (numbers,)


def test_lists_of_texts() -> None:
    assert values("s:string[]", s="a b|c") == ((b"a b", b"c"),)
    assert values("s:string[]", s='["a|b", "c"]') == ((b"a|b", b"c"),)
    assert values("s:string[]", s="[draft] a") == ((b"[draft] a",),)
    parsed: Columns = parse(KIND, {"columns": {"s": "a|b;c"}}, columns="s:string[]", label_separator=";")
    assert parsed.values == ((b"a|b", b"c"),)


def test_nan_is_a_number_only_where_it_is_said() -> None:
    assert math.isnan(values("x:float", x="nan")[0][0])
    assert math.isnan(values("x:float", x=float("nan"))[0][0])


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(width=32, allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(st.integers(-(2**63), 2**63 - 1)),
)
def test_tensorflow_reads_what_the_cells_say(number: int, real: float, text: str, several: list[int]) -> None:
    declared = "n:int64,x:float,s:string,l:int64[]"
    cells = {"n": str(number), "x": repr(real), "s": text, "l": several}
    schema = make_schema(["columns"], columns=declared)
    parsed = through_tensorflow({"columns": parse(KIND, {"columns": cells}, columns=declared)}, schema)
    assert parsed == {"n": number, "x": real, "s": text.encode(), "l": several}


def test_keys_are_the_names_of_the_columns() -> None:
    schema = make_schema(["columns"], columns="age:int64,tags:string[]")
    assert [(spec.key, spec.shape, spec.role) for spec in KIND.spec(schema)] == [
        ("age", (), "scalar"),
        ("tags", (None,), "text"),
    ]
    assert through_tensorflow({}, schema) == {"age": 0, "tags": []}


@pytest.mark.parametrize("cell", [None, "", " ", float("nan")])
def test_an_empty_cell_is_the_default_of_its_column(cell: Any) -> None:
    declared = "a:int64=-1,b:float=0.5,c:string=12:30,d:int64"
    cells = {"a": cell, "b": cell, "c": cell, "d": 4}
    assert parse(KIND, {"columns": cells}, columns=declared).values == ((-1,), (0.5,), (b"12:30",), (4,))


def test_an_empty_number_names_both_ways_out() -> None:
    with pytest.raises(RowError, match=r"--columns year:int64=-1.*year:int64\[\]"):
        parse(KIND, {"columns": {"year": None}}, columns="year:int64")


@pytest.mark.parametrize("declared", ["a:int64=x", "a:int64=", "a:float=1,5", "a:int64[]=1", "a:int64=1.5"])
def test_a_default_that_is_no_value_of_its_type_is_refused(declared: str) -> None:
    with pytest.raises(ConfigError, match=r"--columns"):
        make_config(columns=declared)
