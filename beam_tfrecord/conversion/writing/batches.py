"""From items in their places to records, some at a time: what became of them, in columns."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from beam_tfrecord.annotations.base import Schema
from beam_tfrecord.conversion.choosing.chooser import count_objects
from beam_tfrecord.conversion.planning.arranging import Placed
from beam_tfrecord.conversion.planning.blocks import unpack_entry, unpack_fields
from beam_tfrecord.conversion.writing.looking import NOTHING, Looking, Seen, looking_for
from beam_tfrecord.conversion.writing.names import name_line
from beam_tfrecord.conversion.writing.plain_records import PlainRecords, is_plain
from beam_tfrecord.conversion.writing.records import STAGE, Read, RecordEncoder, read_named
from beam_tfrecord.conversion.writing.statistics import FactFields
from beam_tfrecord.conversion.writing.timing import WorkTimes
from beam_tfrecord.core.elements import ChosenAway, Entry, Finding, RejectedRow
from beam_tfrecord.errors import ElementError
from beam_tfrecord.images import convert_image
from beam_tfrecord.images.stored import StoredImage
from beam_tfrecord.images.sums import ChannelSums
from beam_tfrecord.insight.boxes import NO_BOXES
from beam_tfrecord.insight.looks import Look, LookFields
from beam_tfrecord.manifests.text.spelling import Find, as_spelled
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import public_uri


@dataclass(frozen=True, slots=True)
class Remark:
    """What is told of a record beside itself. number: of the record in its batch."""

    number: int
    warnings: tuple[Finding, ...]
    changed: tuple[str, ...]


@dataclass(slots=True)
class EncodedBatch:
    """What became of some items, in their order.

    sources: number of the input of each item. source_rows: of all items. records: serialized; and of each of them, in
    the same order, lines: of the items sidecar, names: lines that tell as what it is known, where they are wanted, and
    labels: every use of one. facts, formats: of each stored image. pictures: images of each record; empty where each
    has one. exceptions: of all records. objects: how many are stored, dropped (with a warning), lost with a reject and
    chosen away; excluded: rows that were chosen away, by option, excluded_by_input how many by the number of the input,
    and told what is told of them. looks: at each record; empty under --insight off. sums: of the pictures that were
    decoded in full. bytes_read: of images that became records. spellings: files that were found under another, by the
    number of the input and what differs. times: that it took.
    """

    sources: list[int] = field(default_factory=list)
    source_rows: int = 0
    records: list[bytes] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    labels: list[tuple[str, ...]] = field(default_factory=list)
    facts: list[FactFields] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    pictures: list[int] = field(default_factory=list)
    exceptions: list[str] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    rejects: list[Finding] = field(default_factory=list)
    objects: Counter[str] = field(default_factory=Counter)
    looks: list[LookFields] = field(default_factory=list)
    sums: list[ChannelSums] = field(default_factory=list)
    told: list[Finding] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)
    excluded_by_input: Counter[int] = field(default_factory=Counter)
    bytes_read: int = 0
    spellings: Counter[tuple[int, str]] = field(default_factory=Counter)
    times: WorkTimes = field(default_factory=WorkTimes)

    @property
    def num_bytes(self) -> int:
        """Bytes of the records."""
        return sum(map(len, self.records))

    def add_reject(self, source: int, source_rows: int, reject: Finding) -> None:
        """Take in an item of which there is no record."""
        self.sources.append(source)
        self.source_rows += source_rows
        self.rejects.append(reject)

    def add_away(self, source: int, away: ChosenAway) -> None:
        """Take in a count of what was chosen away."""
        self.source_rows += away.source_rows
        self.excluded.update(away.reasons)
        self.excluded_by_input[source] += away.rows
        self.objects["excluded"] += away.objects
        self.told += away.told


@dataclass(slots=True)
class ReadBatch:
    """Items whose bytes are read and checked. times: that it took.

    rejects: by the number of the item. images: number, entry (its annotations as they are packed), bytes that were
    read, what is stored of them, and its sha256 in hex. seen: of each image; empty where pixels are not looked at.
    spellings: as in :class:`EncodedBatch`, by item. away: numbers of items that are counts of what was chosen away, and
    those.
    """

    items: Sequence[Placed]
    source_rows: int
    rejects: dict[int, Finding]
    images: list[tuple[int, Entry, int, StoredImage, str]]
    seen: list[Seen]
    spellings: dict[int, str]
    times: WorkTimes
    away: dict[int, ChosenAway] = field(default_factory=dict)

    @property
    def num_bytes(self) -> int:
        """Bytes of the images."""
        return sum(len(image.data) for _, _, _, image, _ in self.images)


class BatchEncoder:
    """Makes the records of one dataset, from several threads if need be.

    The work has two parts. :meth:`prepare` waits for reads and for decoders, without the GIL, and may be done ahead;
    :meth:`finish` is short, and Python.
    """

    def __init__(
        self, schema: Schema, config: ConvertConfig, read: Read, find: Find = as_spelled, looking: Looking | None = None
    ) -> None:
        self._looking = looking or looking_for(config)
        self._general = RecordEncoder(schema, config, read, find, self._looking)
        self._plain = PlainRecords(schema) if is_plain(schema) else None
        self._read = read
        self._find = find
        self._policy = config.images

    @property
    def is_quick(self) -> bool:
        """Whether nothing is decoded: where reads do not wait, small images are nearly nothing but Python then."""
        return self._plain is not None and self._policy.validate == "header"

    def prepare(self, items: Sequence[Placed]) -> ReadBatch | EncodedBatch:
        """Read the items and check their images; records that are not plain are made at once."""
        return self._encoded(items) if self._plain is None else self._prepared(items)

    def finish(self, prepared: ReadBatch | EncodedBatch) -> EncodedBatch:
        """The records of prepared items."""
        return prepared if isinstance(prepared, EncodedBatch) else self._finished(prepared)

    def encode(self, items: Sequence[Placed]) -> EncodedBatch:
        """Both parts."""
        return self.finish(self.prepare(items))

    # -----------------------------------------------------------------------------------------------------------------
    # Plain records

    def _prepared(self, items: Sequence[Placed]) -> ReadBatch:
        read, find, policy = self._read, self._find, self._policy
        started = time.perf_counter_ns()
        source_rows = 0
        rejects: dict[int, Finding] = {}
        found: list[tuple[int, Entry, bytes]] = []
        spellings: dict[int, str] = {}
        away: dict[int, ChosenAway] = {}
        for number, item in enumerate(items):
            entry = unpack_fields(item.payload)
            if isinstance(entry, ChosenAway):
                away[number] = entry
                continue
            source_rows += entry.source_rows
            if isinstance(entry, RejectedRow):
                rejects[number] = entry.finding
            elif item.reject is not None:
                rejects[number] = item.reject
            else:
                try:
                    data, spelling = read_named(read, find, entry.uri or "", entry.member)
                except ElementError as error:
                    rejects[number] = _reject(entry, error)
                    continue
                found.append((number, entry, data))
                if spelling:
                    spellings[number] = spelling
        is_read = time.perf_counter_ns()
        checked: list[tuple[int, Entry, int, StoredImage, str]] = []
        for number, entry, data in found:
            try:
                image = convert_image(data, policy)
            except ElementError as error:
                rejects[number] = _reject(entry, error)
            else:
                sha256 = hashlib.sha256(image.data).hexdigest()
                checked.append((number, entry, len(data), image, sha256))
        looking = self._looking
        seen = looking.at_all([(image, sha256) for *_, image, sha256 in checked]) if looking.at_pixels else []
        times = WorkTimes(is_read - started, time.perf_counter_ns() - is_read)
        return ReadBatch(items, source_rows, rejects, checked, seen, spellings, times, away)

    def _finished(self, prepared: ReadBatch) -> EncodedBatch:
        assert self._plain is not None
        items, rejects, make = prepared.items, prepared.rejects, self._plain.make
        takes_looks, takes_names = self._looking.takes_looks, self._looking.takes_names
        started = time.perf_counter_ns()
        away = prepared.away
        sources = [item.source for number, item in enumerate(items) if not away or number not in away]
        batch = EncodedBatch(sources, prepared.source_rows)
        for number, count in away.items():
            batch.add_away(items[number].source, count)
        records, lines, labels, facts, formats = batch.records, batch.lines, batch.labels, batch.facts, batch.formats
        looks = batch.looks
        all_seen = prepared.seen or itertools.repeat(NOTHING)
        for (number, entry, bytes_read, image, sha256), seen in zip(prepared.images, all_seen, strict=False):
            item = items[number]
            source_id = entry.id if item.occurrence == 0 else f"{entry.id}#{item.occurrence}"
            try:
                data, names, kind = make(image, entry.filename, source_id, sha256, entry.annotations)
            except ElementError as error:
                rejects[number] = _reject(entry, error)
                continue
            if image.changed or image.warnings or entry.warnings or item.warnings:
                warnings = (*item.warnings, *entry.warnings, *_warnings(image, entry))
                batch.remarks.append(Remark(len(records), warnings, image.changed))
            records.append(data)
            content = sha256[:16]
            lines.append(item_line(content, entry.origin, entry.uri or "", names))
            if takes_names:
                batch.names.append(name_line(entry))
            labels.append(names)
            stored, _, height, width, *_ = image
            size = len(stored)
            facts.append((width, height, size, ()))
            formats.append(kind)
            if takes_looks:
                looks.append((content, width, height, size, names, entry.group, seen.grid, NO_BOXES))
            if seen.sums is not None:
                batch.sums.append(seen.sums)
            batch.bytes_read += bytes_read
        batch.rejects = [rejects[number] for number in sorted(rejects)]
        for number, spelling in prepared.spellings.items():
            if number not in rejects:
                batch.spellings[items[number].source, spelling] += 1
        batch.times = prepared.times
        batch.times.encode += time.perf_counter_ns() - started
        return batch

    # -----------------------------------------------------------------------------------------------------------------
    # All others

    def _encoded(self, items: Sequence[Placed]) -> EncodedBatch:
        batch = EncodedBatch()
        for item in items:
            self._encode(item, batch)
        return batch

    def _encode(self, item: Placed, batch: EncodedBatch) -> None:
        """Add the record of an item to a batch, or the reject that says why there is none."""
        entry = unpack_entry(item.payload)
        if isinstance(entry, ChosenAway):
            batch.add_away(item.source, entry)
            return
        if isinstance(entry, RejectedRow):
            batch.add_reject(item.source, entry.source_rows, entry.finding)
            return
        if item.reject is not None:
            batch.add_reject(item.source, entry.source_rows, item.reject)
            batch.objects["rejected"] += count_objects(entry)
            return
        try:
            record = self._general.encode(entry, item.occurrence, batch.times)
        except ElementError as error:
            batch.add_reject(item.source, entry.source_rows, _reject(entry, error))
            batch.objects["rejected"] += count_objects(entry)
            return
        batch.objects["stored"] += record.stored
        batch.objects["dropped"] += record.dropped
        batch.spellings.update((item.source, spelling) for spelling in record.spellings)
        batch.sources.append(item.source)
        batch.source_rows += entry.source_rows
        if record.changed or record.warnings or item.warnings:
            batch.remarks.append(Remark(len(batch.records), (*item.warnings, *record.warnings), record.changed))
        batch.records.append(record.data)
        content = record.content.hex()
        batch.lines.append(item_line(content, entry.origin, _uri_of(entry), record.labels))
        if self._looking.takes_names:
            batch.names.append(name_line(entry))
        if self._looking.takes_looks:
            width, height, num_bytes = record.facts[0][:3] if record.facts else (0, 0, 0)
            batch.looks.append(
                Look(content, width, height, num_bytes, record.labels, entry.group, record.grid, record.boxes)
            )
        batch.labels.append(record.labels)
        batch.facts += record.facts
        batch.sums += record.sums
        batch.pictures.append(len(record.facts))
        batch.formats += record.image_formats
        batch.exceptions += record.exceptions
        batch.bytes_read += record.bytes_read


def _uri_of(entry: Entry) -> str:
    return entry.uri or (entry.frames[0].uri if entry.frames else "")


def _reject(entry: Entry, error: ElementError) -> Finding:
    return Finding(entry.origin, _uri_of(entry), STAGE, error.code, error.message)


def _warnings(image: StoredImage, entry: Entry) -> list[Finding]:
    return [Finding(entry.origin, entry.uri or "", "image", code, message) for code, message in image.warnings]


def item_line(content: str, origin: str, uri: str, labels: Sequence[str] = ()) -> str:
    """A line of the items sidecar: content hash (sixteen hex digits, or none), origin, uri and the labels, each once,
    separated by tabs."""
    told = labels[0] if len(labels) == 1 else ", ".join(sorted(set(labels)))
    line = f"{content}\t{origin}\t{public_uri(uri)}\t{told}\n"
    if line.count("\t") == 3 and line.count("\n") == 1:
        return line
    origin, uri, told = (text.replace("\t", " ").replace("\n", " ") for text in (origin, public_uri(uri), told))
    return f"{content}\t{origin}\t{uri}\t{told}\n"
