"""What ``beam-tfrecord extract`` writes: JSON Lines whose objects are rows with canonical fields.

One object per record, with the fields that :mod:`beam_tfrecord.manifests.base` lists, and these differences:

``place``     in place of ``rank``: [shard, number of shards, record], all from 0, where the record was. It keeps the
              order of the records; a row without it gets a place from its id, as everywhere
``image``     and ``mask``, ``instance_mask`` and ``panoptic.mask``: paths relative to the manifest, or to --images
``columns``   a cell may be a list of one value where --columns declares a single value

A file is told by its first key, ``place``. Other formats have no nested values for boxes, captions or frames: this one
is also for manifests that are written by hand, with ``--format extracted``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import RowError, nearest
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.formats.jsonl import json_objects
from beam_tfrecord.manifests.text.cuts import BLOCK_BYTES, PIECE_BYTES, text_pieces
from beam_tfrecord.manifests.text.lines import TextForm, decode_head, look_at_text
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import folder_of
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.values import Column

_FIRST_KEY = re.compile(r'\s*\{\s*"place"\s*:\s*\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]')
_TEXTS = ("image", "filename", "id", "split", "group", "mask", "instance_mask")
_MASKS = ("mask", "instance_mask")
_OF_PICTURE = ("image", "filename", "boxes", "mask", "instance_mask", "panoptic", "captions", "columns")
_OF_ROW = (*_OF_PICTURE, "place", "id", "label", "split", "group", "kinds", "frames")
_RANKS = 2**64
_RECORDS = 2**28  # of one shard, at most


class ExtractedFormat(ManifestFormat):
    """One object with canonical fields per line."""

    name = "extracted"
    counts_files = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether the first object begins with its place."""
        return _FIRST_KEY.match(decode_head(head) or "") is not None

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        form = look_at_text(files, uri, config.encoding).form
        base = config.images if config.images is not None else folder_of(uri)
        return Source(uri, self.name, split, base, details={"text": form.to_details()})

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        yield from text_pieces(files, source, TextForm(**source.details["text"]), None, PIECE_BYTES, BLOCK_BYTES)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        base = piece.source.base
        for origin, value in json_objects(files, piece):
            if isinstance(value, str):
                yield rejected(origin, "bad_row", value)
                continue
            try:
                yield Row(origin, _row_fields(value, files, base, config.columns))
            except RowError as error:
                yield rejected(origin, error.code, error.message, str(value.get("image") or ""))


def _row_fields(value: Mapping[str, Any], files: Files, base: str, columns: tuple[Column, ...]) -> dict[str, Any]:
    """The canonical fields of an object. Raises RowError for one that is not as it must be."""
    fields = _picture_fields(value, _OF_ROW, files, base, columns)
    place = fields.pop("place", None)
    if place is not None:
        fields["rank"] = rank_of(place, str(fields.get("split", "")))
    frames = fields.get("frames")
    if frames is not None:
        if not isinstance(frames, list) or not all(isinstance(frame, dict) for frame in frames):
            raise RowError("bad_row", "frames must be a list of objects")
        fields["frames"] = [_picture_fields(frame, _OF_PICTURE, files, base, columns) for frame in frames]
    kinds = fields.get("kinds", [])
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise RowError("bad_row", "kinds must be a list of texts")
    return fields


def _picture_fields(
    value: Mapping[str, Any], known: Sequence[str], files: Files, base: str, columns: tuple[Column, ...]
) -> dict[str, Any]:
    """The fields of one picture; paths of masks joined to the folder that they start from."""
    unknown = [name for name in value if name not in known]
    if unknown:
        raise RowError("bad_row", f"there is no field {unknown[0]!r} here{nearest(unknown[0], known)}")
    fields = dict(value)
    for name in _TEXTS:
        if name in fields and not isinstance(fields[name], str):
            raise RowError("bad_row", f"{name} must be a text, not {fields[name]!r}")
    for name in _MASKS:
        if fields.get(name):
            fields[name] = _joined(files, base, fields[name])
    panoptic = fields.get("panoptic")
    if isinstance(panoptic, dict) and isinstance(panoptic.get("mask"), str) and panoptic["mask"]:
        fields["panoptic"] = {"mask": _joined(files, base, panoptic["mask"]), "segments": panoptic.get("segments")}
    if columns:
        fields["columns"] = _cells(fields.get("columns", {}), columns)
    return fields


def _joined(files: Files, base: str, path: str) -> str:
    try:
        return files.join(base, path)
    except ValueError as error:
        raise RowError("unsafe_path", f"the mask: {error}") from None


def _cells(cells: Any, columns: tuple[Column, ...]) -> dict[str, Any]:
    if not isinstance(cells, dict):
        raise RowError("bad_row", "columns must be an object with a cell for each column")
    single = {column.name for column in columns if not column.is_list}
    return {
        name: cell[0] if name in single and isinstance(cell, list) and len(cell) == 1 else cell
        for name, cell in cells.items()
    }


def rank_of(place: Any, split: str) -> int:
    """Where a record stands among those of its split: 0 to 2**64 - 1, in the order of shards and records.

    Shards are spread evenly, so that also splits that are too large for exact cuts fall into the same ones. Ranks of
    different splits differ, because equal ones would be taken for copies of one id. Raises RowError.
    """
    if not (isinstance(place, list) and len(place) == 3 and all(type(number) is int for number in place)):
        raise RowError("bad_row", f"place must be [shard, number of shards, record], not {place!r}")
    shard, shards, record = map(int, place)
    if not (0 <= shard < shards <= 2**24 and 0 <= record < _RECORDS):
        raise RowError("bad_row", f"place {place} is not possible: count shards and records from 0")
    step = _RANKS // shards // _RECORDS
    own = int.from_bytes(hashlib.sha256(split.encode("utf-8", "surrogatepass")).digest()[:8], "big") % step
    start: int = -(-_RANKS * shard // shards)
    return start + record * step + own
