"""Cutting large text files where a row ends, in one quick pass.

Whether a line end also ends a row of a CSV depends on every quote before it, so the pass follows the quotes exactly as
the csv module reads them. A block without quotes costs one count; one with quotes a scan by a regular expression.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from beam_tfrecord.manifests.base import Files, Piece, Source
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.lines import TextForm

PIECE_BYTES = 16 * 2**20
BLOCK_BYTES = 4 * 2**20
_LONGEST_LINE = 64 * 2**20


class Cut(NamedTuple):
    """A place where a row begins: offset in bytes, and the number of the line that begins there."""

    start: int
    line: int


class QuoteScanner:
    """Follows the quotes of a CSV, as ``csv.reader(strict=True)`` does, over whole lines.

    A quote opens at the start of a cell only, and closes at the next one that is not doubled. After a closing quote the
    reader gives the rest of the line up when anything but a delimiter follows; so it does behind a lone ``\\r``.
    """

    def __init__(self, delimiter: str, skip_spaces: bool = False) -> None:
        mark = re.escape(delimiter.encode())
        body = rb'[^"]*(?:""[^"]*)*'
        # The closing quote, and what follows it on its line when that is neither a delimiter nor the end of the line.
        end = rb'"(?:(?!' + mark + rb')[^\r\n"][^\n]*)?'
        cell = body + rb"(?:(" + end + rb")|\Z)"
        # Beginning with the quote lets the search run at the speed of memchr; the second one knows all the rare cases.
        self._quick = None if skip_spaces else re.compile(rb'"(?<=[\n' + mark + rb']")' + cell)
        opening = rb"(?:(?<=\n)|(?<=" + mark + rb"))" + (rb' *"' if skip_spaces else rb'"')
        self._exact = re.compile(opening + cell + rb"|(\r[^\n][^\n]*)")
        self._rest = re.compile(cell)

    def is_open_after(self, block: bytes, is_open: bool) -> bool:
        """Whether a quote is open behind a block of whole lines; ``is_open``: before it."""
        if b'"' not in block:
            return is_open
        start = 0
        if is_open:
            rest = self._rest.match(block)
            if rest is None or rest[1] is None:
                return True
            start = rest.end()
        else:
            block = b"\n" + block
        has_lone_return = block.count(b"\r") != block.count(b"\r\n")
        cells = self._exact if self._quick is None or has_lone_return else self._quick
        last = deque(cells.finditer(block, start), maxlen=1)
        if not last:
            return False
        closing, *lone_return = last[0].groups()
        return closing is None and not any(lone_return)


def cut_text(
    stream: BinaryIO, scanner: QuoteScanner | None, piece_bytes: int = PIECE_BYTES, block_bytes: int = BLOCK_BYTES
) -> Iterator[Cut]:
    """Places where the text may be cut, from its start on (which is the first), at least ``piece_bytes`` apart.

    scanner: for rows that may contain line ends; None when each line is a row. A stretch without line ends of more than
    64 MiB ends the cutting: what follows is one piece.
    """
    yield Cut(0, 1)
    position = last = 0
    line = 1
    is_open = False
    while block := stream.read(block_bytes):
        if not block.endswith(b"\n"):
            block += stream.readline(_LONGEST_LINE)
        if not block.endswith(b"\n"):
            return
        position += len(block)
        line += block.count(b"\n")
        if scanner is not None:
            is_open = scanner.is_open_after(block, is_open)
        if not is_open and position - last >= piece_bytes:
            last = position
            yield Cut(position, line)


def text_pieces(
    files: Files,
    source: Source,
    form: TextForm,
    scanner: QuoteScanner | None = None,
    piece_bytes: int = PIECE_BYTES,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[Piece]:
    """Pieces of at least ``piece_bytes`` that begin and end between rows; one for a file that cannot be cut.

    scanner: for rows that may go over several lines.
    """
    with readable(source.uri):
        is_large = form.can_be_cut and files.size(source.uri) > piece_bytes
    if not is_large:
        yield Piece(source)
        return
    with readable(source.uri), files.open(source.uri) as stream:
        cuts = list(cut_text(stream, scanner, piece_bytes, block_bytes))
    ends = [cut.start for cut in cuts[1:]] + [-1]
    for cut, end in zip(cuts, ends, strict=True):
        yield Piece(source, cut.start, end, cut.line)
