from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.text import json_text
from beam_tfrecord.manifests.text.json_text import iterate_members

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def members(data: bytes) -> dict[str, Any]:
    """The object that the items make."""
    found: dict[str, Any] = {}
    for item in iterate_members(io.BytesIO(data), "a.json"):
        if item.place < 0:
            found[item.key] = item.value
        else:
            assert item.place == len(found.setdefault(item.key, []))
            found[item.key].append(item.value)
    return found


@given(
    st.dictionaries(st.text(max_size=5), json_values, max_size=4),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.integers(1, 9),
)
def test_any_object_is_read_as_the_json_module_reads_it(
    value: dict[str, Any], indent: int | None, ascii_only: bool, chunk: int
) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")
    whole, json_text.CHUNK = json_text.CHUNK, chunk
    try:
        assert members(data) == json.loads(data)
        assert members(b"\xef\xbb\xbf \n" + data + b"\n ") == json.loads(data)
    finally:
        json_text.CHUNK = whole


def test_only_one_element_is_in_memory_at_a_time() -> None:
    data = b'{"images": [' + b",".join(b'{"id": %d}' % number for number in range(10_000)) + b"]}"
    stream = io.BytesIO(data)
    whole, json_text.CHUNK = json_text.CHUNK, 100
    try:
        first = next(iterate_members(stream, "a.json"))
        assert (first.key, first.place, first.value) == ("images", 0, {"id": 0})
        assert stream.tell() < 20_000  # text is decoded in blocks of some thousand bytes
    finally:
        json_text.CHUNK = whole


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "line 1: it does not begin"),
        (b"[1]", "does not begin"),
        (b'{"a": 1', "the end of the file"),
        (b'{"a": [1, 2', "the end of the file"),
        (b'{"a": [1 2]}', "is expected"),
        (b'{"a" 1}', "is expected"),
        (b'{\n"a": 1,\n"b": tru}', "line 3"),
        (b'{"a": 1,}', "a name in double quotes"),
        (b'{"a": 1} x', "follows the end"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": ' + b"[" * 200_000, "JSON"),
    ],
)
def test_what_is_no_json_object_is_told_with_its_line(data: bytes, told: str) -> None:
    with pytest.raises(ManifestError, match=told) as caught:
        members(data)
    assert "a.json" in str(caught.value)
