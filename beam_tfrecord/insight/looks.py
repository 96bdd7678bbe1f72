"""What one look at a picture gives: a row of a table with one row for each record, small and of a fixed size."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beam_tfrecord.insight.boxes import BoxCounts
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
    labels: Sequence[str]
    group: str | None
    grid: bytes | None
    boxes: BoxCounts = BoxCounts()


def looks_of(looks: Sequence[Look]) -> Looks:
    """The rows of some records; offset and size are 0."""
    rows = np.zeros(len(looks), LOOK)
    rows["content"] = [int(look.content or "0", 16) for look in looks]
    rows["width"] = [look.width for look in looks]
    rows["height"] = [look.height for look in looks]
    rows["bytes"] = [look.num_bytes for look in looks]
    rows["labels"] = [_checksum_of_labels(tuple(look.labels)) for look in looks]
    if any(look.group is not None for look in looks):
        rows["group"] = [0 if look.group is None else checksum((look.group,)) for look in looks]
    if any(look.boxes.boxes for look in looks):
        rows["boxes"] = [look.boxes.boxes for look in looks]
        rows["covering"] = [look.boxes.covering for look in looks]
        rows["tiny"] = [look.boxes.tiny for look in looks]
        rows["stacked"] = [look.boxes.stacked for look in looks]
    seen = [
        number
        for number, look in enumerate(looks)
        if look.grid is not None and min(look.width, look.height) >= LEAST_SEEN
    ]
    if seen:
        grids = np.frombuffer(b"".join([looks[number].grid or b"" for number in seen]), np.int16)
        _measure(rows, seen, grids)
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
