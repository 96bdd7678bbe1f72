"""The first rows of a manifest, read by a helper before the pipeline is there.

Importing Beam and making the graph keep one core busy for about a second, in which another one can read some twenty
thousand rows. A guess: whatever is wrong with it is found again, and told, where the pipeline reads the manifest.
"""

from __future__ import annotations

import itertools
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from beam_tfrecord.conversion.entries import EntryParser
from beam_tfrecord.conversion.helpers import Tell
from beam_tfrecord.conversion.planning.block_reading import Block, NumberedPiece, items_of, pack_entries
from beam_tfrecord.conversion.shared_work import Errand
from beam_tfrecord.errors import BeamTfrecordError
from beam_tfrecord.manifests import FORMATS
from beam_tfrecord.manifests.base import Files, Item, Source
from beam_tfrecord.options.config import ConvertConfig

HEAD_ITEMS = 24_576  # rows that are read while Beam is imported
HEAD_BLOCK = 4_096  # of them in a block: a job of few rows is not to take the room of one with many


@dataclass
class Passed:
    """Rows that went by: how many, and a checksum of what they say."""

    count: int = 0
    checksum: int = 0

    def watch(self, items: Iterable[Item]) -> Iterator[Item]:
        """The same items, each noted."""
        for item in items:
            self.count += 1
            self.checksum = zlib.crc32(repr(item).encode("utf-8", "surrogatepass"), self.checksum)
            yield item


@dataclass(frozen=True)
class Head:
    """The first rows of a piece in blocks. passed: which rows they are; is_all: the piece has no more."""

    numbered: NumberedPiece
    blocks: tuple[Block, ...]
    passed: Passed
    is_all: bool


@dataclass(frozen=True)
class ReadHead:
    """Reads the first rows of the first piece of a source, in whatever process it finds itself."""

    config: ConvertConfig
    files: Files

    def __call__(self, number: int, source: Source, tell: Tell = lambda *told: None) -> Head:
        piece = next(FORMATS[source.format].pieces(self.files, source))
        passed = Passed()
        items = passed.watch(itertools.islice(items_of(piece, self.config, self.files), HEAD_ITEMS))
        entries = EntryParser(source, self.config, self.files.join).parse(items)
        blocks = tuple(pack_entries(entries, number, self.config, HEAD_BLOCK))
        return Head(NumberedPiece(number, piece), blocks, passed, passed.count < HEAD_ITEMS)


_UNDER_WAY: dict[int, Errand[Head]] = {}  # by the number of the source


@contextmanager
def head_start(number: int, source: Source, config: ConvertConfig, files: Files) -> Iterator[None]:
    """Let a helper read the first rows of a source; nothing of them is kept behind the block.

    number: of the source among the inputs. Does nothing where rows cannot be passed over quickly afterwards.
    """
    try:
        if FORMATS[source.format].passes_over_quickly:
            _UNDER_WAY[number] = Errand(ReadHead(config, files), number, source)
    except OSError:  # no more processes can be had
        pass
    try:
        yield
    finally:
        errand = _UNDER_WAY.pop(number, None)
        if errand is not None:
            errand.close()


def head_of(numbered: NumberedPiece) -> Head | None:
    """The first rows of a piece where a helper has read them, or soon will have; only once."""
    errand = _UNDER_WAY.pop(numbered.number, None)
    if errand is None:
        return None
    try:
        head = errand.result()
    except (BeamTfrecordError, OSError):
        return None
    return head if head.numbered == numbered else None


def pass_over(items: Iterator[Item], head: Head) -> bool:
    """Go past the rows of a head. False when others are there now: the source was changed after the head was read."""
    passed = Passed()
    deque(passed.watch(itertools.islice(items, head.passed.count)), maxlen=0)
    return passed == head.passed
