"""What one look at a picture gives: a row of a table with one row for each record, small and of a fixed size."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beam_tfrecord.insight.boxes import NO_BOXES, BoxCounts
from beam_tfrecord.insight.fingerprints import WORDS, fingerprints_of
from beam_tfrecord.insight.grids import CELLS, Grids
from beam_tfrecord.insight.likeness import SIDE, has_contrast, thumbnails_of
from beam_tfrecord.insight.measures import bars_of, bright_share, brightness_of, dark_share, edge_of, range_of

LEAST_SEEN = 16  # pixels of the shorter side: smaller pictures are not judged by their pixels

# seen: whether the pixels were looked at; alike: whether the picture has what another can be like. labels, group:
# checksums of the labels and of the group, 0 for none. offset, size: where the record lies. The measures are those of
# beam_tfrecord.insight.measures.
LOOK = np.dtype(
    [
        ("content", "<u8"),
        ("fingerprint", "<u8", (WORDS,)),
        ("thumbnail", "u1", (SIDE, SIDE)),
        ("seen", "u1"),
        ("alike", "u1"),
        ("brightness", "u1"),
        ("dark", "<u2"),
        ("bright", "<u2"),
        ("range", "<u2"),
        ("edge", "<u2"),
        ("bars", "<u2"),
        ("width", "<u4"),
        ("height", "<u4"),
        ("bytes", "<u4"),
        ("labels", "<u4"),
        ("group", "<u4"),
        ("boxes", "<u4"),
        ("covering", "<u4"),
        ("tiny", "<u4"),
        ("stacked", "<u4"),
        ("offset", "<u8"),
        ("size", "<u4"),
    ]
)
Looks = npt.NDArray[np.void]


class Look(NamedTuple):
    """What is known of a record and its (first) picture.

    content: eight bytes of the hash of its images, in hex, or ''. grid: its 16-bit values, as bytes;
    None when the pixels were not looked at.
    """

    content: str
    width: int
    height: int
    num_bytes: int
    labels: tuple[str, ...]
    group: str | None
    grid: bytes | None
    boxes: BoxCounts = NO_BOXES


# The same without names: a tuple is made in an eighth of the time.
LookFields = tuple[str, int, int, int, tuple[str, ...], str | None, bytes | None, BoxCounts]


def looks_of(looks: Sequence[LookFields]) -> Looks:
    """The rows of some records, one at least; offset and size are 0."""
    rows = np.zeros(len(looks), LOOK)
    contents, width, height, num_bytes, labels, groups, grids, boxes = zip(*looks, strict=True)
    rows["content"] = [int(content or "0", 16) for content in contents]
    rows["width"] = width
    rows["height"] = height
    rows["bytes"] = num_bytes
    rows["labels"] = [_checksum_of_labels(own) for own in labels]
    if any(group is not None for group in groups):
        rows["group"] = [0 if group is None else checksum((group,)) for group in groups]
    if any(own.boxes for own in boxes):
        rows["boxes"], rows["covering"], rows["tiny"], rows["stacked"] = zip(*boxes, strict=True)
    if any(grids):
        sides = np.minimum(rows["width"], rows["height"]) >= LEAST_SEEN
        seen = [number for number, grid in enumerate(grids) if grid and sides[number]]
        if seen:
            _measure(rows, seen, np.frombuffer(b"".join([grids[number] for number in seen]), np.int16))
    return rows


def _measure(rows: Looks, seen: Sequence[int], grids: Grids) -> None:
    grids = grids.reshape(-1, CELLS, CELLS)
    thumbnails = thumbnails_of(grids)
    rows["seen"][seen] = 1
    rows["fingerprint"][seen] = fingerprints_of(grids)
    rows["thumbnail"][seen] = thumbnails
    rows["alike"][seen] = has_contrast(thumbnails)
    rows["brightness"][seen] = brightness_of(grids)
    rows["dark"][seen] = dark_share(grids)
    rows["bright"][seen] = bright_share(grids)
    rows["range"][seen] = range_of(grids)
    rows["edge"][seen] = edge_of(grids)
    rows["bars"][seen] = bars_of(grids)


@functools.lru_cache(maxsize=1024)
def _checksum_of_labels(labels: tuple[str, ...]) -> int:
    return checksum(sorted(set(labels)))


def checksum(texts: Iterable[str]) -> int:
    """Of some texts; 0 of none."""
    joined = "\0".join(texts)
    return (zlib.crc32(joined.encode("utf-8", "surrogateescape")) or 1) if joined else 0
