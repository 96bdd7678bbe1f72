"""Where a large text file may be cut."""

from __future__ import annotations

import csv
import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.manifests.text.cuts import Cut, QuoteScanner, cut_text


def rows_begin(text: str, delimiter: str, skip_spaces: bool) -> tuple[set[int], bool]:
    """(numbers of the lines with which csv begins a row, whether it ends inside of quotes)."""
    starts = {1}
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, skipinitialspace=skip_spaces, strict=True)
    while True:
        try:
            next(reader)
        except StopIteration:
            return starts, False
        except csv.Error as error:
            if "unexpected end" in str(error):
                return starts, True
        starts.add(reader.line_num + 1)


@given(
    lines=st.lists(st.text(st.sampled_from('a",;\r '), max_size=8), min_size=1, max_size=10),
    delimiter=st.sampled_from(",;|"),
    skip_spaces=st.booleans(),
)
def test_quotes_are_followed_as_the_csv_module_does(lines: list[str], delimiter: str, skip_spaces: bool) -> None:
    text = "".join(line + "\n" for line in lines)
    starts, ends_open = rows_begin(text, delimiter, skip_spaces)
    scanner = QuoteScanner(delimiter, skip_spaces)
    is_open = False
    for number, line in enumerate(lines, start=1):
        is_open = scanner.is_open_after(line.encode() + b"\n", is_open)
        assert (not is_open) == (number + 1 in starts), f"behind line {number} of {text!r}"
    assert is_open == ends_open
    assert scanner.is_open_after(text.encode(), False) == ends_open


def test_cuts_lie_behind_line_ends_and_know_their_line() -> None:
    text = b"".join(b"line %d\n" % number for number in range(1, 101))
    cuts = list(cut_text(io.BytesIO(text), None, piece_bytes=50, block_bytes=16))
    assert cuts[0] == Cut(0, 1)
    assert len(cuts) > 10
    for cut in cuts:
        assert text[cut.start :].startswith(b"line %d\n" % cut.line)
    assert all(later.start - cut.start >= 50 for cut, later in itertools.pairwise(cuts))


def test_quoted_line_ends_are_no_places_to_cut() -> None:
    text = b'a,"' + b"x\n" * 100 + b'"\nb,c\n'
    cuts = list(cut_text(io.BytesIO(text), QuoteScanner(","), piece_bytes=10, block_bytes=4))
    assert [text[cut.start :] for cut in cuts] == [text, b"b,c\n"]


@pytest.mark.parametrize("block_bytes", [1, 3, 7, 1000])
def test_a_text_without_a_line_end_behind_is_not_cut_there(block_bytes: int) -> None:
    assert list(cut_text(io.BytesIO(b"a\nb"), None, piece_bytes=1, block_bytes=block_bytes))[-1].start in (0, 2)
