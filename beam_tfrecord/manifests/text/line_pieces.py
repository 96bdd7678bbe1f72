"""Pieces of a text file, for all formats whose rows are lines."""

from __future__ import annotations

from collections.abc import Iterator

from beam_tfrecord.manifests.base import Files, Piece, Source
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.cuts import BLOCK_BYTES, PIECE_BYTES, QuoteScanner, cut_text
from beam_tfrecord.manifests.text.lines import TextForm


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
