"""Text files as lines, whatever their encoding, line ends and compression.

Read are UTF-8 with or without a byte order mark, and UTF-16 and UTF-32 with one or told by their zero bytes, compressed
or not; what has no byte order mark is read as ``--encoding`` says when that is given. A file that is none of these is
an error that names the line: guessing among the 8-bit encodings would turn names of files and labels into others.
Small files beside a manifest (lists of names, yaml files, labels) are read by the same rules, whole.

A line ends at ``\n`` (``\r\n`` keeps its ``\r``), so that ``\r``, form feeds and Unicode's line separators inside of
a cell move no line number; where a file has no ``\n`` at all, at ``\r``.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, NamedTuple, cast

from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import Files
from beam_tfrecord.manifests.text.compression import compression_of, open_unpacked, readable, unpacking
from beam_tfrecord.options.values import AUTO_ENCODING

SAMPLE_BYTES = 2**20
MOST_BYTES = 256 * 2**20  # of a file that is read whole
_BUFFER = 2**20
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a text file is stored. encoding: a codec of Python. compression: as in :mod:`.compression`, or empty."""

    encoding: str = "utf-8"
    compression: str = ""
    newline: str = "\n"

    @property
    def can_be_cut(self) -> bool:
        """Whether reading may begin behind any line end: in what is compressed, or not UTF-8, it may not."""
        return self.encoding in ("utf-8", "utf-8-sig") and not self.compression and self.newline == "\n"

    def to_details(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


class TextSample(NamedTuple):
    """The form of a file and its first part. is_whole: there is no more than that."""

    form: TextForm
    text: str
    is_whole: bool


def look_at_text(files: Files, uri: str, encoding: str = AUTO_ENCODING) -> TextSample:
    """Find out how a text file is stored. Raises ManifestError when it cannot be read, is empty or is no text.

    encoding: that of ``--encoding``.
    """
    with readable(uri), files.open(uri) as stream:
        compression = compression_of(stream.read(6))
        stream.seek(0)
        head = _read(unpacking(stream, compression), SAMPLE_BYTES + 1)
    is_whole = len(head) <= SAMPLE_BYTES
    head = head[:SAMPLE_BYTES]
    encoding = encoding_of(head, encoding)
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=is_whole)
    except UnicodeDecodeError:
        raise _undecodable(files, uri, TextForm(encoding, compression)) from None
    if not text.strip():
        raise ManifestError(f"{uri} is empty: it holds no rows and no header")
    return TextSample(TextForm(encoding, compression, _newline_of(text)), text, is_whole)


def read_text(files: Files, uri: str, encoding: str = AUTO_ENCODING, most_bytes: int = MOST_BYTES) -> str:
    """A small text file whole. Raises ManifestError, with the line, for what is no text, and for a larger file."""
    with open_unpacked(files, uri) as stream:
        data = _read(stream, most_bytes + 1)
    if len(data) > most_bytes:
        raise ManifestError(f"{uri} has more than {most_bytes} bytes, more than such a file can have")
    try:
        return decode_text(data, encoding)
    except ValueError as error:
        raise ManifestError(f"{uri}: {error}") from None


def read_lines(files: Files, uri: str, encoding: str = AUTO_ENCODING) -> list[str]:
    """The lines of a small text file, without their ends; the first is line 1. Raises ManifestError."""
    return split_lines(read_text(files, uri, encoding))


def decode_text(data: bytes, encoding: str = AUTO_ENCODING) -> str:
    """The text of a whole file. Raises ValueError that names the line of what is no text."""
    form = TextForm(encoding_of(data, encoding))
    try:
        text = data.decode(form.encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].decode(form.encoding, "replace").count("\n") + 1
        raise ValueError(_told_byte(form, line, error.start, data[error.start])) from None
    if "\0" in text:
        raise ValueError(f"line {text[: text.index(chr(0))].count(chr(10)) + 1} holds NUL characters: it is damaged")
    return text


def split_lines(text: str) -> list[str]:
    """The lines of a text without their ends. Form feeds and Unicode's line separators end none."""
    lines = text.split(_newline_of(text))
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _newline_of(text: str) -> str:
    return "\r" if "\r" in text and "\n" not in text else "\n"


def encoding_of(head: bytes, asked: str = AUTO_ENCODING) -> str:
    """The codec for a file that begins with these bytes. asked: what ``--encoding`` says of files without a mark."""
    marked = next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "")
    if marked:
        return marked
    if asked != AUTO_ENCODING:
        return asked
    sample = head[:4096]
    pairs = len(sample) // 2
    # Text of mostly Latin letters has a zero byte in nearly every other place when it is UTF-16.
    if pairs and sample[1::2].count(0) > 0.6 * pairs and not sample[0::2].count(0):
        return "utf-16-le"
    if pairs and sample[0::2].count(0) > 0.6 * pairs and not sample[1::2].count(0):
        return "utf-16-be"
    return "utf-8"


def decode_head(head: bytes) -> str | None:
    """The first bytes of a file as text, or None when they are none."""
    try:
        text = codecs.getincrementaldecoder(encoding_of(head))().decode(head, final=False)
    except UnicodeDecodeError:
        return None
    return text if text.strip() and "\0" not in text else None


class TextLines:
    """The lines of a file, or of the bytes from ``start`` to ``end`` of it (-1: the end), each with its line end.

    NUL characters are taken out, and :attr:`had_nul` is set until the caller clears it; :attr:`nuls` counts them.
    Iterating raises ManifestError where the file cannot be read on.
    """

    def __init__(self, files: Files, uri: str, form: TextForm, start: int = 0, end: int = -1) -> None:
        self._files, self._form, self._start, self._end = files, form, start, end
        self.uri = uri
        self.newline = form.newline
        self.had_nul = False
        self.nuls = 0

    def __iter__(self) -> Iterator[str]:
        encoding = "utf-8" if self._start else self._form.encoding
        with readable(self.uri), self._files.open(self.uri) as stream:
            stream.seek(self._start)
            if self._end >= 0:
                stream = cast(BinaryIO, io.BufferedReader(_Part(stream, self._end - self._start), _BUFFER))
            text = io.TextIOWrapper(
                unpacking(stream, self._form.compression), encoding=encoding, newline=self._form.newline
            )
            try:
                for line in text:
                    if "\0" in line:
                        self.had_nul = True
                        self.nuls += line.count("\0")
                        line = line.replace("\0", "")
                    yield line
            except UnicodeDecodeError:
                raise _undecodable(self._files, self.uri, self._form) from None

    def numbered(self, first: int = 1) -> Iterator[tuple[int, str, str]]:
        """(number, line, what is damaged in it or '') of each line that is not blank. first: number of the first."""
        for number, line in enumerate(self, start=first):
            damage = "the line holds NUL characters: the file is damaged at this place" if self.had_nul else ""
            self.had_nul = False
            if damage or line.strip():
                yield number, line, damage


class _Part(io.RawIOBase):
    """The next bytes of a stream, as a stream of their own."""

    def __init__(self, stream: BinaryIO, length: int) -> None:
        self._stream = stream
        self._left = length

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)


def _read(stream: BinaryIO, length: int) -> bytes:
    """Up to ``length`` bytes; fewer only at the end."""
    parts = []
    while length > 0 and (part := stream.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _undecodable(files: Files, uri: str, form: TextForm) -> ManifestError:
    """The error for a file that does not decode, with the first line at fault."""
    decoder = codecs.getincrementaldecoder(form.encoding.removesuffix("-sig"))()
    place, line = 0, 1
    with readable(uri), files.open(uri) as stream:
        unpacked = unpacking(stream, form.compression)
        while block := unpacked.read(_BUFFER):
            state = decoder.getstate()
            try:
                line += decoder.decode(block).count("\n")
            except UnicodeDecodeError as error:
                before = error.start - (len(error.object) - len(block))  # in the block; what was left over is before it
                decoder.setstate(state)
                line += decoder.decode(block[: max(before, 0)]).count("\n")
                told = _told_byte(form, line, place + before, error.object[error.start])
                return ManifestError(f"{uri}: {told}")
            place += len(block)
    return ManifestError(f"{uri}: line {line} ends in the middle of a character ({form.encoding})")


def _told_byte(form: TextForm, line: int, place: int, byte: int) -> str:
    """What is wrong with a byte, and what to do."""
    if "utf-8" not in form.encoding:
        return (
            f"line {line} is no valid {form.encoding} (byte 0x{byte:02x} at offset {place}): name the encoding of the "
            f"file with --encoding"
        )
    return (
        f"line {line} is not UTF-8 (byte 0x{byte:02x} at offset {place}): name its encoding, such as --encoding "
        f"cp1252 (Windows), gbk, shift_jis or utf-16; or save it as UTF-8, for instance with: "
        f"iconv -f WINDOWS-1252 -t UTF-8"
    )
