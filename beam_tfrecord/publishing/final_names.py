"""Final names: which staged file gets which, and the moves in an order that can be broken off and repeated."""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from beam_tfrecord.conversion.writing.read_ahead import ordered_map
from beam_tfrecord.conversion.writing.staging import (
    Publication,
    beside_records,
    read_publication,
    staged_of,
    staging_folder,
    write_publication,
)
from beam_tfrecord.core.elements import WrittenShard
from beam_tfrecord.datasets.metadata import CONVERSION, DATASET_INFO
from beam_tfrecord.datasets.metadata.shape import read_listed
from beam_tfrecord.datasets.published import REJECTS_FILE, REPORT, WARNINGS_FILE
from beam_tfrecord.errors import BeamTfrecordError
from beam_tfrecord.options.config import ConvertConfig, OutputConfig
from beam_tfrecord.report import build_report
from beam_tfrecord.storage import Storage, name_of, scheme_of
from beam_tfrecord.storage.lease import turn
from beam_tfrecord.tfrecord import INDEX_SUFFIX, array_record_name, parse_shard_name, shard_name

# ---------------------------------------------------------------------------------------------------------------------
# Requests about many shards, many at a time where each of them waits for an object store.


Task = TypeVar("Task")
Result = TypeVar("Result")


def side_by_side(
    function: Callable[[Task], Result], tasks: Iterable[Task], place: str, storage: Storage
) -> Iterator[Result]:
    """The results in the order of the tasks: one after the other on a disk, else as many at a time as there are
    connections.

    place: the uri that the tasks are about. Results must be small: twice as many as there are connections may wait to
    be taken. An exception of a task is raised where its result would have been.
    """
    if scheme_of(place) in ("", "file"):
        yield from map(function, tasks)
        return
    threads = storage.options.connections
    with ThreadPoolExecutor(threads, thread_name_prefix="publish") as pool:
        yield from ordered_map(pool, function, tasks, max_tasks=2 * threads, max_bytes=1, size_of=lambda result: 0)


# ---------------------------------------------------------------------------------------------------------------------
# Names, and moves


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A complete TFRecord file under its staged name, and what it holds."""

    split: str
    path: str
    num_records: int
    num_bytes: int
    payload_bytes: int
    crc32c: str


def staged_files(shards: Iterable[WrittenShard], output: str) -> list[StagedFile]:
    """The files that the shard writers left. A shard all of whose entries were rejected has none."""
    return [
        StagedFile(
            shard.split,
            staged_of(output, shard).records,
            shard.num_records,
            shard.num_bytes,
            shard.payload_bytes,
            shard.crc32c,
        )
        for shard in shards
        if shard.has_file
    ]


@dataclass(frozen=True, slots=True)
class NamedShard:
    """A written shard and its final name."""

    staged: StagedFile
    file: str


def name_shards(files: Sequence[StagedFile], compression: str) -> list[NamedShard]:
    """Final names, numbered without gaps in the order of the staged files; empty files are left out."""
    named = []
    for split in sorted({file.split for file in files}):
        own = [file for file in files if file.split == split and file.num_records]
        named += [NamedShard(file, shard_name(split, number, len(own), compression)) for number, file in enumerate(own)]
    return named


def final_names(
    written: Sequence[WrittenShard], named: Sequence[NamedShard], output: str
) -> Callable[[tuple[str, int]], str]:
    """How the final name of a shard is found by split and index; '' where it has none. written: sorted by these."""
    file_of = {shard.staged.path: shard.file for shard in named}

    def final_name(key: tuple[str, int]) -> str:
        shard = written[bisect.bisect_left(written, key, key=lambda shard: shard.key)]
        return file_of.get(staged_of(output, shard).records, "") if shard.has_file else ""

    return final_name


def one_publication(output: str, storage: Storage) -> contextlib.AbstractContextManager[None]:
    """One at a time publishes a dataset in a folder, and whoever comes second sees what the first has done.

    An engine may run a step again while it still runs, on a machine that it takes for lost or slow. Two that publish at
    once would take each other's files for those of an older dataset.
    """
    return turn(f"{output}/publication", storage, "the publication of a dataset")


def publish_files(
    shards: Sequence[NamedShard],
    files: Mapping[str, bytes],
    config: ConvertConfig,
    storage: Storage,
    confirm: Callable[[], None] = lambda: None,
) -> None:
    """Move the shards and write the metadata: :func:`publish_moves` of a conversion."""
    moved = [move for shard in shards for move in moves(shard, config.output)]
    publish_moves(moved, files, token_of(shards), config.output.output, storage, confirm=confirm)


def publish_moves(
    moved: Sequence[tuple[str, str]],
    files: Mapping[str, bytes],
    token: str,
    output: str,
    storage: Storage,
    *,
    has_report: bool = False,
    confirm: Callable[[], None] = lambda: None,
) -> None:
    """Move staged files to their final names and write the metadata; the old dataset goes first,
    ``dataset_info.json`` comes last.

    moved: (staged uri, final name), shards first. files: metadata by name. token: of what is published. has_report:
    whether the report is among the files that are moved; otherwise it is made here. confirm: raises when the folder is
    another run's by now; asked before anything is touched and before the last file.

    May be broken off anywhere and repeated, in the same run or after ``--resume``: what is deleted is decided once, and
    noted before anything is touched.
    """
    confirm()
    names = {*(name for _, name in moved), *files, REPORT}
    begun = read_publication(storage, output)
    going = set(begun.names)
    if begun.token == token:
        going -= names  # some of these may be the new ones already
    else:
        going |= dataset_file_names(output, storage)
        write_publication(storage, output, Publication(token, tuple(sorted(names | going))))
    storage.delete([f"{output}/{DATASET_INFO}"])
    storage.delete(f"{output}/{name}" for name in sorted(going - {DATASET_INFO}))
    deque(side_by_side(lambda move: storage.rename(move[0], f"{output}/{move[1]}"), moved, output, storage), maxlen=0)
    for name in sorted(set(files) - {DATASET_INFO}):
        storage.write_bytes(f"{output}/{name}", files[name])
    if not has_report:
        write_report(output, storage)
    if DATASET_INFO in files:
        confirm()
        storage.write_bytes(f"{output}/{DATASET_INFO}", files[DATASET_INFO])
    storage.delete_tree(staging_folder(output))


def moves(shard: NamedShard, output: OutputConfig) -> Iterator[tuple[str, str]]:
    """(staged uri, final name) of a shard and of the files that belong to it."""
    yield shard.staged.path, shard.file
    if output.index:
        yield beside_records(shard.staged.path, "index"), shard.file + INDEX_SUFFIX
    if output.array_record:
        yield beside_records(shard.staged.path, "array_record"), array_record_name(shard.file)


def token_of(shards: Sequence[NamedShard]) -> str:
    """What tells one publication from another: the final names of the shards and their checksums."""
    told = [(shard.file, shard.staged.crc32c) for shard in shards]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def is_published(shards: Sequence[NamedShard], output: str, storage: Storage) -> bool:
    """Whether exactly these shards are published already and nothing of them is staged any more."""
    if not shards or any(storage.is_file(shard.staged.path) for shard in shards):
        return False
    if not all(storage.is_file(f"{output}/{name}") for name in (DATASET_INFO, CONVERSION)):
        return False
    listed = {(shard["file"], shard["crc32c"]) for shard in _shards_listed(read_listed(output, storage))}
    return listed == {(shard.file, shard.staged.crc32c) for shard in shards}


def write_report(output: str, storage: Storage) -> None:
    """Write report.html. A place that cannot be read back is no reason to lose the dataset: there is no page then, and
    the command says so."""
    with contextlib.suppress(OSError, BeamTfrecordError):
        storage.write_bytes(f"{output}/{REPORT}", build_report(output, storage))


def dataset_file_names(output: str, storage: Storage) -> set[str]:
    """Names of the files of the dataset in a folder: those that its conversion.json lists, and its metadata.

    Raises DatasetError where that is damaged.
    """
    present = {name_of(uri) for uri in storage.list_folder(output)} if storage.is_folder(output) else set()
    if CONVERSION not in present:
        return set()
    return present & set(_files_named(read_listed(output, storage)))


def _shards_listed(conversion: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for split in conversion["splits"].values():
        yield from split["shards"]


def _files_named(conversion: Mapping[str, Any]) -> Iterator[str]:
    yield from (CONVERSION, DATASET_INFO, REJECTS_FILE, WARNINGS_FILE, REPORT)
    yield from conversion.get("files", ())
    for shard in _shards_listed(conversion):
        yield shard["file"]
        yield shard["file"] + INDEX_SUFFIX
        if parse_shard_name(shard["file"]) is not None:
            yield array_record_name(shard["file"])
