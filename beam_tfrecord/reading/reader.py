"""``beam_tfrecord.read``: the records of a finished dataset as plain dicts, without TensorFlow."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, overload

from beam_tfrecord.annotations.base import FeatureSpec
from beam_tfrecord.errors import ConfigError, DatasetError, nearest
from beam_tfrecord.reading.finished import FinishedDataset, open_dataset
from beam_tfrecord.reading.names import SHORT, STORED, image_key, keys_named, names_by_key
from beam_tfrecord.reading.options import check_share
from beam_tfrecord.reading.selection import ShardPart, cut, select_parts
from beam_tfrecord.reading.shard_records import ShardRecords
from beam_tfrecord.reading.values import RecordValues

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
    (:meth:`beam_tfrecord.reading.values.RecordValues.of` tells which); ``image`` opens a picture.

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
