"""Lists of images: one path per line, with or without a label behind it, as Caffe and ImageNet use them.

Whether the lines have labels is found from the first ones. A label is what stands behind the last blanks of a line: a
whole number, or, where the paths in front of it end as those of images do, any text. Paths may have blanks in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.filenames import IMAGE_SUFFIXES, is_image_name
from beam_tfrecord.manifests.text.cuts import BLOCK_BYTES, PIECE_BYTES
from beam_tfrecord.manifests.text.line_pieces import text_pieces
from beam_tfrecord.manifests.text.lines import TextForm, TextLines, decode_head, look_at_text
from beam_tfrecord.manifests.text.roles import named_columns
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import folder_of
from beam_tfrecord.options.config import ManifestConfig

_SAMPLE_LINES = 1_000
_NUMBERED = re.compile(r"(.*\S)[ \t]+([+-]?\d+)")
_NAMED = re.compile(
    r"(.*(?:" + "|".join(re.escape(suffix) for suffix in IMAGE_SUFFIXES) + r"))[ \t]+(\S.*)", re.IGNORECASE
)


class ListFormat(ManifestFormat):
    """One path per line, and a label behind it or not."""

    name = "list"
    suffixes = (".txt", ".lst", ".list")

    def __init__(self, piece_bytes: int = PIECE_BYTES, block_bytes: int = BLOCK_BYTES) -> None:
        self._piece_bytes = piece_bytes
        self._block_bytes = block_bytes

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether every line is the name of an image, with or without a label."""
        lines = _lines(decode_head(head) or "", False)
        return bool(lines) and all(is_image_name(line) or _NAMED.fullmatch(line) for line in lines)

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        if named_columns(config):
            raise ConfigError(
                f"{uri} is read as a list of paths, which has no columns: leave --{_first_option(config)} out, or name "
                f"another --format"
            )
        sample = look_at_text(files, uri, config.encoding)
        labels = label_form(_lines(sample.text, sample.is_whole))
        base = config.images if config.images is not None else folder_of(uri)
        return Source(uri, self.name, split, base, details={"text": sample.form.to_details(), "labels": labels})

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        form = TextForm(**source.details["text"])
        yield from text_pieces(files, source, form, None, self._piece_bytes, self._block_bytes)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        source = piece.source
        lines = TextLines(files, source.uri, TextForm(**source.details["text"]), piece.start, piece.end)
        labels = source.details["labels"]
        for number, line in enumerate(lines, start=piece.first_line):
            origin = f"{source.uri}:{number}"
            if lines.had_nul:
                lines.had_nul = False
                yield rejected(origin, "bad_row", "the line holds NUL characters: the file is damaged at this place")
            elif line := line.rstrip():
                yield Row(origin, _fields(line, labels))


def label_form(lines: Sequence[str]) -> str:
    """``number`` or ``name`` for lines with labels, empty for lines of paths only."""
    named = [_NAMED.fullmatch(line) for line in lines]
    numbered = [_NUMBERED.fullmatch(line) for line in lines]
    if any(found and is_image_name(found[1]) for found in numbered):
        return "number"
    if lines and all(numbered):
        return "number"
    if lines and all(found and not is_image_name(line) for found, line in zip(named, lines, strict=True)):
        return "name"
    return ""


def _fields(line: str, labels: str) -> dict[str, str]:
    """The path and, in a list with labels, the label of a line; the label is empty where the line has none."""
    if not labels:
        return {"image": line}
    found = (_NUMBERED if labels == "number" else _NAMED).fullmatch(line)
    return {"image": found[1], "label": found[2]} if found else {"image": line, "label": ""}


def _lines(text: str, is_whole: bool) -> list[str]:
    """The first lines that are not blank; the last line of a cut text is left out when there are others."""
    lines = [line.rstrip() for line in text.split("\n")]
    if not is_whole and len(lines) > 1:
        lines.pop()
    return [line for line in lines if line][:_SAMPLE_LINES]


def _first_option(config: ManifestConfig) -> str:
    named = (part for part in ("image", "label", "split", "group", "id", "mask", "sequence", "order"))
    return next((f"{part}_column" for part in named if getattr(config, f"{part}_column")), "columns")
