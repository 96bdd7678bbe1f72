"""Formats with a text file for each image, each of its lines being an object."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence

from beam_tfrecord.annotations.cells import real_number, shown
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.label_files import LabelFileFormat, NotOfFormatError
from beam_tfrecord.manifests.picture_labels import Picture, PictureLabels, gather
from beam_tfrecord.manifests.text.lines import decode_head, decode_text, split_lines

_LOOKED_AT = 50


class LabelLinesFormat(LabelFileFormat):
    """Label files in lines. A subclass tells what a line is; an empty file says that there are no objects."""

    suffix = ".txt"
    beside = (".txt",)
    claims = True

    @abstractmethod
    def cells(self, line: str) -> list[str] | None:
        """The cells of a line that is an object; [] for one that says something else; None when it is no such line."""

    @abstractmethod
    def add(self, cells: Sequence[str], where: str, labels: PictureLabels) -> None:
        """Add an object. where: ``file:line``. Raises RowError."""

    def annotates(self, head: bytes) -> bool:
        """Whether every line (the last may be cut) can be one of this format, and one is an object."""
        lines = [line for line in split_lines(decode_head(head) or "")[:_LOOKED_AT] if line.strip()]
        whole = lines[:-1] if len(lines) > 1 and not head.endswith((b"\n", b"\r")) else lines
        found = [self.cells(line) for line in whole]
        return None not in found and any(found)

    def read(self, data: bytes, name: str, encoding: str) -> Picture:
        try:
            lines = split_lines(decode_text(data, encoding))
        except ValueError as error:
            raise RowError("bad_annotation", f"{name} is no text: {error}") from None
        found = [(number, line, self.cells(line)) for number, line in enumerate(lines, start=1) if line.strip()]
        if found and all(cells is None for _, _, cells in found):
            raise NotOfFormatError

        def read(labels: PictureLabels) -> None:
            labels.found = sum(cells != [] for _, _, cells in found)
            for number, line, cells in found:
                if cells is None:
                    raise RowError("bad_annotation", f"{name}:{number} is no line of the format {self.name}: {line!r}")
                if cells:
                    self.add(cells, f"{name}:{number}", labels)

        return gather(name, "", read)


def numbers_of(cells: Sequence[str], where: str) -> Iterator[float]:
    """Finite numbers. Raises RowError."""
    for cell in cells:
        try:
            number = real_number(cell)
        except ValueError as error:
            raise RowError("bad_annotation", f"{where}: {shown(cell)} {error}") from None
        if not math.isfinite(number):
            raise RowError("bad_annotation", f"{where}: {shown(cell)} is no place in a picture")
        yield number
