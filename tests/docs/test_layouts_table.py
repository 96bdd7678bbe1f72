"""docs/formats.md says of each layout what the tests of layouts say."""

from __future__ import annotations

from tests.docs.layouts_table import END, PAGE, START, with_table


def test_the_table_of_layouts_is_made_from_the_cases() -> None:
    text = PAGE.read_text("utf-8")
    assert (text.count(START), text.count(END)) == (1, 1)
    assert with_table(text) == text, "python -m tests.docs.layouts_table writes it anew"
