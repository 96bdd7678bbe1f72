from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.tools.showing.printable import printable, shortened, shown_bytes


@given(st.text(st.characters(exclude_categories=[])))
def test_nothing_that_is_left_controls_a_terminal(text: str) -> None:
    shown = printable(text)
    assert {unicodedata.category(character)[0] for character in shown} <= {"L", "M", "N", "P", "S", "Z"}
    assert "\n" not in shown
    shown.encode()  # no lone surrogates either


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_letters_of_every_script_stay_as_they_are(text: str) -> None:
    assert printable(text) == text


def test_escapes_are_those_of_python() -> None:
    assert printable("a\x1b[31m\nb\u202ec\udc80") == "a\\x1b[31m\\nb\\u202ec\\udc80"


def test_long_text_is_cut_with_an_ellipsis() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"


def test_bytes_are_shown_as_text_where_they_are_text() -> None:
    assert shown_bytes("größe\t".encode()) == "größe\\t"
    assert shown_bytes(b"\xff\x00") == "b'\\xff\\x00'"
