"""CSV and TSV: one row per image, or per table row, with named columns.

Quoting is that of RFC 4180, read by the csv module in strict mode. The delimiter is found among comma, semicolon, tab
and ``|``, and the columns by their names (:mod:`.roles`). A file with box columns has one row per box: those are
gathered by :mod:`..tables`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.columns import told_of_table
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.tables import rows_of_cells
from beam_tfrecord.manifests.text.box_columns import Samples
from beam_tfrecord.manifests.text.csv_text import (
    DELIMITERS,
    LONGEST_CELL,
    Dialect,
    line_among,
    line_within,
    sample_rows,
    sniff_dialect,
    swallowed,
)
from beam_tfrecord.manifests.text.cuts import BLOCK_BYTES, PIECE_BYTES, QuoteScanner, text_pieces
from beam_tfrecord.manifests.text.lines import TextForm, TextLines, decode_head, look_at_text
from beam_tfrecord.manifests.text.roles import Roles, check_has_image, find_roles, known_names, with_metadata_columns
from beam_tfrecord.manifests.text.row_fields import NoRow
from beam_tfrecord.manifests.text.uri_text import folder_of
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.values import AUTO_ENCODING, InputSpec

Table = Iterator[tuple[str, list[str] | str]]
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab"}
_HEADER_AGAIN = "the line is the header once more, as in files that were put together: take it out"


class CsvFormat(ManifestFormat):
    """Comma-separated values, and what else is called so.

    piece_bytes, block_bytes: size from which a file is cut into pieces, and of the blocks that it is looked at in.
    """

    name = "csv"
    suffixes: tuple[str, ...] = (".csv",)
    delimiters = DELIMITERS

    def __init__(self, piece_bytes: int = PIECE_BYTES, block_bytes: int = BLOCK_BYTES) -> None:
        self._piece_bytes = piece_bytes
        self._block_bytes = block_bytes

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether there are several columns with usual names, or such as speak for themselves."""
        text = decode_head(head)
        if text is None or text.lstrip().startswith(("{", "[", "<")):
            return False
        config = ManifestConfig(input=(InputSpec(uri),))
        dialect = sniff_dialect(text, False, config, self.delimiters)
        if not dialect.has_header:
            return len(dialect.header) > 1
        return len(dialect.header) > 1 and known_names(dialect.header, config) > 0

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        sample = look_at_text(files, uri, config.encoding)
        dialect = sniff_dialect(sample.text, sample.is_whole, config, self.delimiters)
        rows = sample_rows(sample.text, sample.is_whole, dialect.delimiter, dialect.skip_spaces)
        roles = find_roles(dialect.header, config, uri, _samples(dialect.header, rows))
        roles = with_metadata_columns(roles, dialect.header, config, uri)
        if not dialect.has_header and roles.boxes is not None:
            roles = replace(roles, boxes=replace(roles.boxes, is_assumed=True))
        check_has_image(roles, dialect.header, config, uri, dialect.first_row)
        base = config.images if config.images is not None else folder_of(uri)
        details = {"text": sample.form.to_details(), "dialect": dialect.to_details(), "roles": roles.to_details()}
        told = [
            Decision(
                "encoding", sample.form.encoding, "its bytes" if config.encoding == AUTO_ENCODING else "--encoding"
            ),
            Decision("delimiter", _NAMES.get(dialect.delimiter, dialect.delimiter), "the first lines"),
        ]
        if not dialect.has_header:
            told.append(Decision("header", "none", f"the first line, {dialect.first_row[:80]!r}, names no columns"))
        fields = told_of_table(dialect.header, roles, config, *told)
        return Source(uri, self.name, split, base, details=details, **fields)

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        form, dialect, roles = _layout(source)
        if roles.is_whole:
            yield Piece(source)
            return
        scanner = QuoteScanner(dialect.delimiter, dialect.skip_spaces)
        yield from text_pieces(files, source, form, scanner, self._piece_bytes, self._block_bytes)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        source = piece.source
        form, dialect, roles = _layout(source)
        lines = TextLines(files, source.uri, form, piece.start, piece.end)
        table = _table(lines, piece, dialect, None if roles.image is None else dialect.header.index(roles.image))
        names = dialect.header if roles.has_boxes else roles.needed()
        yield from rows_of_cells(_by_name(table, names, dialect.header), roles, files, source.base)


class TsvFormat(CsvFormat):
    """Tab-separated values."""

    name = "tsv"
    suffixes = (".tsv", ".tab")
    delimiters = "\t,;|"


def _samples(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Samples:
    """Cells of a column in the first rows, that of the header among them."""
    return lambda name: (row[header.index(name)] for row in rows if len(row) == len(header))


def _layout(source: Source) -> tuple[TextForm, Dialect, Roles]:
    details = source.details
    return TextForm(**details["text"]), Dialect(**details["dialect"]), Roles.from_details(details["roles"])


def _by_name(table: Table, names: Sequence[str], header: Sequence[str]) -> Iterator[tuple[str, dict[str, str] | str]]:
    """The cells of the columns that are needed, by their names."""
    places = [(name, header.index(name)) for name in names]
    for origin, cells in table:
        yield origin, cells if isinstance(cells, str) else {name: cells[place] for name, place in places}


def _table(lines: TextLines, piece: Piece, dialect: Dialect, image: int | None) -> Table:
    """(origin, cells) of each row of a piece, without the header; for a row that is none, a text that says why.

    image: place of the column of the images. Blank lines are skipped. Raises ManifestError for a quote that is never
    closed, and for one that takes in other rows.
    """
    uri, width = piece.source.uri, len(dialect.header)
    header = list(dialect.header) if dialect.has_header else None
    text = iter(lines)
    line = piece.first_line
    awaits_header = piece.start == 0 and dialect.has_header
    if piece.start == 0:
        for _ in range(dialect.preamble):
            next(text, None)
            line += 1
    first = line
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(text, delimiter=dialect.delimiter, skipinitialspace=dialect.skip_spaces, strict=True)
    while True:
        try:
            for cells in reader:
                start, line = line, first + reader.line_num
                if line - start > 1 and (within := line_within(cells, dialect, image, lines.newline)):
                    raise swallowed(uri, start, start + within - 1)
                if lines.had_nul:
                    lines.had_nul = False
                    yield f"{uri}:{start}", "the row holds NUL characters: the file is damaged at this place"
                    continue
                if not cells or (len(cells) < width and len(cells) == 1 and not cells[0].strip()):
                    continue
                if awaits_header:
                    awaits_header = False
                elif len(cells) == width:
                    yield f"{uri}:{start}", _HEADER_AGAIN if cells == header else cells
                elif len(cells) > width and not any(cells[width:]):  # delimiters at the end of the line
                    yield f"{uri}:{start}", cells[:width]
                else:
                    reason = _wrong_width(len(cells), dialect, line - start)
                    yield f"{uri}:{start}", NoRow(reason, _image_among(cells, image))
            return
        except csv.Error as error:
            start, line = line, first + reader.line_num
            cause = str(error)
            if cause.startswith("unexpected end"):
                raise ManifestError(
                    f"{uri}: the file ends inside of a quoted cell. The quote stands in the row that begins on line "
                    f"{start}: close it, or double it if it is part of the text"
                ) from None
            if cause.startswith("field larger"):
                raise ManifestError(
                    f"{uri}: the row that begins on line {start} has a cell of more than {LONGEST_CELL // 2**20}"
                    f" million characters: probably a quote that is not closed"
                ) from None
            if line - start > 1:
                taken = list(islice(lines, start - piece.first_line, line - piece.first_line))
                if within := line_among(taken, dialect, image):
                    raise swallowed(uri, start, start + within - 1) from None
                cause += f" ({line - start} lines)"
            awaits_header = False
            yield f"{uri}:{start}", _badly_quoted(cause)


def _image_among(cells: Sequence[str], place: int | None) -> str:
    """The image cell of a row with the wrong number of cells: where it should be, else the only one that looks so."""
    if place is not None and place < len(cells) and is_image_name(cells[place]):
        return cells[place]
    named = [cell for cell in cells if is_image_name(cell)]
    return named[0] if len(named) == 1 else ""


def _wrong_width(found: int, dialect: Dialect, lines: int) -> str:
    """Message for a row with the wrong number of cells, which takes up so many lines."""
    cells = "1 cell" if found == 1 else f"{found} cells"
    over = f" and goes over {lines} lines, so that a quote may not be closed" if lines > 1 else ""
    return (
        f"the row has {cells} where the header has {len(dialect.header)}{over}; a cell with a "
        f"{_NAMES.get(dialect.delimiter, repr(dialect.delimiter))} in it must be put in quotes"
    )


def _badly_quoted(cause: str) -> str:
    if "new-line" in cause:
        return (
            "a carriage return stands in the middle of the line: put the cell in quotes, or end the line with a newline"
        )
    lines = cause.partition(" (")[2].rstrip(")")
    over = f" (the row goes over {lines})" if lines else ""
    return f"text follows the closing quote of a cell{over}: double the quotes that are part of the text"
