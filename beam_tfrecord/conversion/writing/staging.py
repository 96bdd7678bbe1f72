"""Where an unfinished dataset lies: names of the files under ``DIR/.staging``.

A shard is complete when its ``.info.json`` is there; that file is written last. Everything under the staging place is
ours and may be deleted.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, Protocol

from beam_tfrecord.conversion.planning.blocks import REJECTS
from beam_tfrecord.core.elements import ShardInfo, WrittenShard

STAGING_NAME = ".staging"
PUBLISHING = "publishing.json"
INFO_SUFFIX = ".info.json"


class StagingStorage(Protocol):
    """What staging needs of :class:`beam_tfrecord.storage.Storage`."""

    def open(self, uri: str) -> BinaryIO: ...
    def is_file(self, uri: str) -> bool: ...
    def size(self, uri: str) -> int: ...
    def open_write(self, uri: str) -> BinaryIO: ...
    def write_bytes(self, uri: str, data: bytes) -> None: ...
    def rename(self, old: str, new: str) -> None: ...
    def delete(self, uris: Iterable[str]) -> None: ...


@dataclass(frozen=True)
class StagedShard:
    """The files of one staged shard.

    owner: of the lease under which they are written, '' where there is none. It is part of all names but that of the
    info: a run that lost its lease, and writes on because it does not know yet, touches nothing of whoever has it now.
    """

    folder: str
    split: str
    index: int
    owner: str = ""

    def _path(self, ending: str, owner: str | None = None) -> str:
        name = self.split if self.split != REJECTS else "_rejects"
        owner = self.owner if owner is None else owner
        return f"{self.folder}/{name}-{self.index:05d}.{owner}{'.' * bool(owner)}{ending}"

    @cached_property
    def records(self) -> str:
        """The TFRecord file itself."""
        return self._path("tfrecord")

    @cached_property
    def index_file(self) -> str:
        return beside_records(self.records, "index")

    @property
    def array_record(self) -> str:
        """The ArrayRecord file with the same records, when it is asked for."""
        return beside_records(self.records, "array_record")

    @property
    def info(self) -> str:
        """The ShardInfo; its presence says that the shard is complete."""
        return self._path(INFO_SUFFIX[1:], owner="")

    @property
    def rejects(self) -> str:
        return self._path("left_out.jsonl")

    @property
    def warnings(self) -> str:
        return self._path("warnings.jsonl")

    @cached_property
    def items(self) -> str:
        """One line for each record, in order: content hash, origin, uri, labels."""
        return self._path("items.jsonl")

    @cached_property
    def looks(self) -> str:
        """What the look at each record gave, in order (:data:`beam_tfrecord.insight.looks.LOOK`)."""
        return self._path("looks")

    @cached_property
    def names(self) -> str:
        """As what each record is known, in order (:mod:`.names`); only where records are looked at and not kept."""
        return self._path("names.jsonl")

    @property
    def all(self) -> frozenset[str]:
        """Everything that may be there of a shard but for its info."""
        sidecars = (self.rejects, self.warnings, self.items, self.looks, self.names)
        return frozenset({self.records, self.index_file, self.array_record, *sidecars})

    def of(self, kind: str) -> str:
        """The sidecar with findings of a kind (``rejects`` or ``warnings``)."""
        return {"rejects": self.rejects, "warnings": self.warnings}[kind]


def staging_folder(output: str) -> str:
    """The staging place of an output folder."""
    return f"{output.rstrip('/')}/{STAGING_NAME}"


def shards_folder(output: str) -> str:
    """Where staged shards lie."""
    return f"{staging_folder(output)}/shards"


def staged_shard(output: str, split: str, index: int, owner: str = "") -> StagedShard:
    """The staged files of a shard of an output folder. owner: see :class:`StagedShard`."""
    return StagedShard(shards_folder(output), split, index, owner)


def staged_of(output: str, shard: ShardInfo | WrittenShard) -> StagedShard:
    """The staged files of a shard."""
    return staged_shard(output, shard.split, shard.index, shard.owner)


def beside_records(records: str, ending: str) -> str:
    """A file of a staged shard from the uri of its records."""
    return records.removesuffix("tfrecord") + ending


def info_to_json(info: ShardInfo) -> bytes:
    """A ShardInfo as JSON."""
    return json.dumps(dataclasses.asdict(info), ensure_ascii=False, sort_keys=True).encode()


def info_from_json(data: bytes) -> ShardInfo:
    """The ShardInfo in JSON made by :func:`info_to_json`. Raises ValueError when it is damaged or of another
    version."""
    values: Mapping[str, Any] = json.loads(data)
    names = {field.name for field in dataclasses.fields(ShardInfo)}
    if not isinstance(values, dict) or set(values) != names:
        raise ValueError("not the info of a shard of this version")
    by_input = {
        name: {int(number): told for number, told in values[name].items()} for name in ("rows_by_input", "spellings")
    }
    return ShardInfo(**{**values, **by_input})


@dataclass(frozen=True)
class Publication:
    """A publication that was begun: it is noted before the first file gets its final name.

    token: of the shards that are published. names: of all files in the output folder that are ours: those about to
    come, and those of the dataset that goes.
    """

    token: str = ""
    names: tuple[str, ...] = ()


def read_publication(storage: StagingStorage, output: str) -> Publication:
    """The publication that was begun and not ended; an empty one when there is none."""
    uri = f"{staging_folder(output)}/{PUBLISHING}"
    if not storage.is_file(uri):
        return Publication()
    with storage.open(uri) as file:
        try:
            values = json.load(file)
            return Publication(str(values["token"]), tuple(map(str, values["names"])))
        except (ValueError, KeyError, TypeError):
            return Publication()


def write_publication(storage: StagingStorage, output: str, publication: Publication) -> None:
    """Note that a publication begins."""
    data = json.dumps(dataclasses.asdict(publication), ensure_ascii=False).encode("utf-8", "surrogateescape")
    storage.write_bytes(f"{staging_folder(output)}/{PUBLISHING}", data)


def read_lines(storage: StagingStorage, uri: str) -> Iterator[bytes]:
    """The lines of a file, without their ends; none when there is no file."""
    if storage.is_file(uri):
        with storage.open(uri) as file:
            for line in file:
                yield line.rstrip(b"\n")
