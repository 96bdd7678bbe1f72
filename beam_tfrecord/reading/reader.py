"""``beam_tfrecord.read``: the records of a finished dataset as plain dicts, without numpy and TensorFlow.

The records of shards come one after another, or any of them at once; a record becomes plain values as its spec says.
"""

from __future__ import annotations

import io
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, overload

from beam_tfrecord.annotations.base import Feature, FeatureSpec
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.indexing import find_places
from beam_tfrecord.datasets.metadata import PublishedShard
from beam_tfrecord.errors import ConfigError, DatasetError, nearest
from beam_tfrecord.reading.finished import FinishedDataset, open_dataset
from beam_tfrecord.reading.names import BOXES, SHORT, STORED, box_sides, image_key, keys_named, names_by_key
from beam_tfrecord.reading.options import check_share
from beam_tfrecord.reading.selection import ShardPart, cut, select_parts
from beam_tfrecord.tfrecord import INDEX_SUFFIX, RecordFault, read_index, read_record, read_records
from beam_tfrecord.tfrecord.example import decode_example, decode_sequence_example


@dataclass
class ShardRecords:
    """Reads records of one dataset. It may be pickled, forked and used from several threads.

    Of each shard in which a record was asked for by number, the places of all records stay in memory: 8 bytes each.
    They come from the index file beside the shard; without one the headers of the frames are walked through once.

    In a compressed shard nothing can be reached but by decompressing what is before it: there the whole shard is
    decompressed, and kept until a record of another one is asked for.
    """

    dataset: FinishedDataset
    _offsets: dict[str, array[int]] = field(default_factory=dict)
    _decompressed: tuple[str, list[bytes]] = ("", [])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_decompressed": ("", [])}

    def read(self, shard: PublishedShard, number: int) -> bytes:
        """A record by its number in a shard. Raises DatasetError when the shard is damaged."""
        if self.dataset.facts.compression != "none":
            return self._all(shard)[number]
        offsets = self._offsets_of(shard)
        offset, size = offsets[number], offsets[number + 1] - offsets[number]
        data = self.dataset.storage.read_range(self.dataset.uri(shard), offset, size)
        try:
            return read_record(io.BytesIO(data), shard.file, 0, size, number)
        except RecordFault as fault:
            raise RecordFault(shard.file, number, offset, fault.cause) from None

    def stream(self, part: ShardPart) -> Iterator[bytes]:
        """The records of a part of a shard, in order. Raises DatasetError when there are fewer than are stated, or more
        behind the last of them."""
        shard = part.shard
        with self.dataset.storage.open(self.dataset.uri(shard)) as file:
            if part.start and self.dataset.facts.compression == "none":
                offsets = self._offsets_of(shard)
                for number in range(part.start, part.stop):
                    size = offsets[number + 1] - offsets[number]
                    yield read_record(file, shard.file, offsets[number], size, number)
                return
            found = 0
            for record in read_records(file, shard.file, self.dataset.facts.compression):
                if record.index >= shard.records:
                    raise DatasetError(f"{shard.file} holds more than the {shard.records:,} records that are stated")
                if record.index >= part.stop:
                    return
                found = record.index + 1
                if record.index >= part.start:
                    yield record.data
        if found < part.stop:
            raise DatasetError(f"{shard.file} holds {found:,} of the {shard.records:,} records that are stated")

    def _offsets_of(self, shard: PublishedShard) -> array[int]:
        """Where each record starts, and where the last one ends."""
        if shard.file not in self._offsets:
            self._offsets[shard.file] = self._indexed(shard) or self._walked(shard)
        return self._offsets[shard.file]

    def _indexed(self, shard: PublishedShard) -> array[int] | None:
        """From the index file; None without one, and when it is not of this shard."""
        uri = self.dataset.uri(shard) + INDEX_SUFFIX
        if not self.dataset.storage.is_file(uri):
            return None
        with self.dataset.storage.open(uri) as file:
            try:
                places = read_index(file.read(), uri)
            except DatasetError:
                return None
        offsets = array("Q", (offset for offset, _ in places))
        offsets.append(sum(places[-1]) if places else 0)
        return offsets if len(places) == shard.records and offsets[-1] == shard.bytes else None

    def _walked(self, shard: PublishedShard) -> array[int]:
        offsets = array("Q", [0])
        with self.dataset.storage.open(self.dataset.uri(shard)) as file:
            for offset, size in find_places(file, shard.file):
                offsets.append(offset + size)
        if len(offsets) != shard.records + 1:
            raise DatasetError(
                f"{shard.file} holds {len(offsets) - 1:,} records, not {shard.records:,} as conversion.json states"
            )
        return offsets

    def _all(self, shard: PublishedShard) -> list[bytes]:
        name, records = self._decompressed
        if name != shard.file:
            records = list(self.stream(ShardPart(shard, 0, shard.records)))
            self._decompressed = shard.file, records
        return records


@dataclass(frozen=True)
class RecordValues:
    """Takes serialized records of one dataset apart. style: see :mod:`beam_tfrecord.reading.names`."""

    facts: DatasetFacts
    style: str = STORED

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return names_by_key(self.facts, self.style)

    @cached_property
    def _sides(self) -> tuple[str, ...]:
        return box_sides(self.facts) if self.style == SHORT else ()

    def of(self, data: bytes) -> dict[str, Any]:
        """The values of a serialized record by name.

        A feature of one value is that value, a list is a list, and rows are lists of lists. Feature lists of a
        SequenceExample are a list with an item for each step. Whole numbers are int, the others float, text is str
        (what is not UTF-8 in it stays as surrogates, so that ``os.fsencode`` gives the bytes back), all else is bytes.

        Raises DatasetError when the record is not what the spec says.
        """
        try:
            if self.facts.is_sequence:
                context, steps = decode_sequence_example(data)
            else:
                context, steps = decode_example(data), {}
        except ValueError as error:
            raise DatasetError(str(error)) from None
        values: dict[str, Any] = {}
        for key, spec in self.facts.specs.items():
            if spec.in_sequence:
                values[key] = [_plain(feature, spec) for feature in _found(steps, key)]
            else:
                values[key] = _plain(_found(context, key), spec)
        named = {name: values[key] for key, name in self._names.items() if key not in self._sides}
        if self._sides:
            lists = [values[key] for key in self._sides]
            in_steps = self.facts.specs[self._sides[0]].in_sequence
            named[BOXES] = [_boxes(step) for step in zip(*lists, strict=True)] if in_steps else _boxes(lists)
        return named


def _found(features: Mapping[str, Any], key: str) -> Any:
    if key not in features:
        raise DatasetError(f"it has no feature {key!r}, which every record of the dataset must have")
    return features[key]


def _plain(feature: Feature, spec: FeatureSpec) -> Any:
    values: Sequence[Any] = feature.values
    if values and feature.dtype != spec.dtype:
        raise DatasetError(f"its feature {spec.key!r} holds {feature.dtype}, not {spec.dtype}")
    if spec.role == "text":
        values = [value.decode("utf-8", "surrogateescape") for value in values]
    shape = spec.shape
    if shape == ():
        if len(values) != 1:
            raise DatasetError(f"its feature {spec.key!r} holds {len(values)} values, not one")
        return values[0]
    expected = 1
    for size in shape:
        expected *= 0 if size is None else size
    if None not in shape and len(values) != expected:
        raise DatasetError(f"its feature {spec.key!r} holds {len(values)} values, not {expected}")
    if len(shape) == 2 and shape[1] is not None:
        return _rows(values, shape[1], spec.key)
    return list(values)


def _rows(values: Sequence[Any], width: int, key: str) -> list[list[Any]]:
    if len(values) % width:
        raise DatasetError(f"its feature {key!r} holds {len(values)} values, which are no rows of {width}")
    return [list(values[start : start + width]) for start in range(0, len(values), width)]


def _boxes(sides: Sequence[Sequence[float]]) -> list[list[float]]:
    """Rows of [ymin, xmin, ymax, xmax] from four lists."""
    try:
        return [list(box) for box in zip(*sides, strict=True)]
    except ValueError:
        raise DatasetError(f"its boxes have {', '.join(str(len(side)) for side in sides)} sides") from None


if TYPE_CHECKING:
    from PIL import Image

PlainRecord = dict[str, Any]


def read(
    directory: str | os.PathLike[str],
    split: str | None = None,
    *,
    names: str = STORED,
    shard: tuple[int, int] = (0, 1),
) -> Reader:
    """A :class:`Reader` of the records of a finished dataset. TensorFlow is not needed, and not imported.

    directory: a path or a uri of any storage. split: ``train``, ``train[:80%]``, ``train[100:200]+validation``, or all
    splits in the order of their names. names: ``stored`` for the keys of the records, ``short`` for ``image``,
    ``label``, ``boxes`` ... whatever the keys of the dataset are. shard: (index, count) of a worker that reads its
    share only; the shares of all workers have each record once.

    Raises DatasetError when the folder holds no finished dataset, ConfigError for a split that is not there.
    """
    if names not in (STORED, SHORT):
        raise ConfigError(f"names={names!r}: must be {STORED!r} or {SHORT!r}{nearest(str(names), (STORED, SHORT))}")
    check_share(shard)
    dataset = open_dataset(directory)
    return Reader(dataset, select_parts(dataset.facts.splits, split, shard), names)


class Reader(Sequence[PlainRecord]):
    """The selected records of a dataset, each a dict by feature name; a sequence that reads when it is asked.

    ``len(reader)``, ``reader[17]``, ``reader[-1]``, ``reader[10:20]`` (a reader again, any step) and iteration, which
    streams through the files. Values are str, bytes, int, float and lists of them
    (:meth:`beam_tfrecord.reading.reader.RecordValues.of` tells which); ``image`` opens a picture.

    ``position`` says how many records the iteration that runs, or ran last, has given out. After ``resume(position)``,
    of this reader or of one that was made anew in the same way, the next iteration starts there.

    It can be pickled, forked, and indexed from several threads. A record that is damaged or not as the metadata says
    raises DatasetError with the name of its file and its number there.
    """

    def __init__(self, dataset: FinishedDataset, parts: Sequence[ShardPart], names: str = STORED) -> None:
        self._dataset = dataset
        self._parts = tuple(parts)
        self._ends = list(accumulate(map(len, self._parts)))
        self._order = range(self._ends[-1] if self._ends else 0)
        self._records = ShardRecords(dataset)
        self._values = RecordValues(dataset.facts, names)
        self._names = names_by_key(dataset.facts, names)
        self._start = 0
        self._position = 0

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels in the order of their ids; see :attr:`label_names` for the ids themselves."""
        return self._dataset.facts.vocabulary.names

    @property
    def label_names(self) -> dict[int, str]:
        """Label names by id."""
        return dict(self._dataset.facts.label_names)

    @property
    def features(self) -> dict[str, FeatureSpec]:
        """What each feature is, by key as it is stored."""
        return dict(self._dataset.facts.specs)

    @property
    def position(self) -> int:
        """How many records the iteration that was in use last has given out; a number to store and to resume from."""
        return self._position

    def resume(self, position: int) -> Reader:
        """Let the next iteration start at a position. Returns the reader itself.

        Raises ConfigError for a position beyond the last record.
        """
        if not 0 <= position <= len(self):
            raise ConfigError(f"position {position} does not lie within the {len(self):,} records that are selected")
        self._start = self._position = position
        return self

    def __len__(self) -> int:
        return len(self._order)

    def __repr__(self) -> str:
        return f"<Reader of {len(self):,} records in {self._dataset.folder}>"

    @overload
    def __getitem__(self, index: int) -> PlainRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Reader: ...
    def __getitem__(self, index: int | slice) -> PlainRecord | Reader:
        if isinstance(index, slice):
            return self._of(self._order[index])
        try:
            place = self._order[index]
        except IndexError:
            raise IndexError(f"record {index} of {len(self):,}") from None
        return self._record(place)

    def __iter__(self) -> Iterator[PlainRecord]:
        start, self._start = self._start, 0
        self._position = start
        return self._iterate(start)

    def image(self, record: PlainRecord, name: str | None = None) -> Image.Image | list[Image.Image]:
        """The picture of a record, or another feature of it that holds pictures, decoded by Pillow.

        name: of the feature; by default the image itself, encoded or raw. A feature with several pictures (the frames
        of a sequence, a mask for each object) gives a list. Raw pixels of 16 bits are reduced to 8 where they have
        colours. Raises DatasetError when there is none or it does not decode, ConfigError for an unknown name.
        """
        from beam_tfrecord.reading.pictures import open_picture

        facts = self._dataset.facts
        if name is None:
            key = image_key(facts)
            if not key:
                raise DatasetError(f"the records in {self._dataset.folder} have no image")
        else:
            key = keys_named([name], self._names, "image")[0]
        if key == facts.keys.get("raw"):
            return self._raw_image(record)
        value = record[self._names[key]]
        return [open_picture(data) for data in value] if isinstance(value, list) else open_picture(value)

    # -----------------------------------------------------------------------------------------------------------------

    def _of(self, order: range) -> Reader:
        """A reader of some of the records; what is known of the files is shared."""
        reader = Reader(self._dataset, self._parts, self._values.style)
        reader._records = self._records
        reader._order = order
        return reader

    def _record(self, place: int) -> PlainRecord:
        number = bisect_right(self._ends, place)
        part = self._parts[number]
        local = part.start + place - (self._ends[number] - len(part))
        return self._valued(self._records.read(part.shard, local), part, local)

    def _valued(self, data: bytes, part: ShardPart, number: int) -> PlainRecord:
        try:
            return self._values.of(data)
        except DatasetError as error:
            raise DatasetError(f"{part.shard.file}: record {number}: {error}") from None

    def _iterate(self, start: int) -> Iterator[PlainRecord]:
        for position, record in enumerate(self._from(start), start=start + 1):
            self._position = position
            yield record

    def _from(self, start: int) -> Iterator[PlainRecord]:
        order = self._order[start:]
        if order.step != 1:
            yield from map(self._record, order)
            return
        for part in cut(self._parts, order.start, order.stop):
            for number, data in enumerate(self._records.stream(part), start=part.start):
                yield self._valued(data, part, number)

    def _raw_image(self, record: PlainRecord) -> Image.Image | list[Image.Image]:
        from beam_tfrecord.reading.pictures import picture_of_pixels

        keys, names = self._dataset.facts.keys, self._names
        columns = [record[names[keys[name]]] for name in ("raw", "height", "width", "channels", "dtype")]
        if self._dataset.facts.is_sequence:
            return [picture_of_pixels(*frame) for frame in zip(*columns, strict=True)]
        return picture_of_pixels(*columns)
