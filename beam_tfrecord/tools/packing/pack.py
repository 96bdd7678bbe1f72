"""Writing the archive of a dataset. The same dataset gives the same archive."""

from __future__ import annotations

import io
import os
import tarfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import PublishedShard
from beam_tfrecord.datasets.published import check_complete
from beam_tfrecord.errors import ConfigError, DatasetError
from beam_tfrecord.storage import Storage, name_of, parent, public_uri, scheme_of
from beam_tfrecord.storage.lease import Lease, check_free, hold
from beam_tfrecord.storage.uris import OBJECT_SCHEMES
from beam_tfrecord.tools.packing.contents import Content, check_content, check_measured, dataset_contents
from beam_tfrecord.tools.packing.members import compressing, compression_for
from beam_tfrecord.tools.verifying.measured import MeasuredFile

_CURE = "beam-tfrecord verify names all that is wrong with the dataset; nothing was packed"


@dataclass(frozen=True)
class Packed:
    """What was packed. files: how many. num_bytes: of them; packed_bytes: of the archive."""

    output: str
    files: int
    num_bytes: int
    packed_bytes: int


def pack_dataset(
    folder: str,
    facts: DatasetFacts,
    output: str,
    storage: Storage,
    *,
    overwrite: bool = False,
    progress: Callable[[int], None] = lambda size: None,
) -> Packed:
    """Write the files of a dataset into one archive, dataset_info.json as the last.

    The sizes and checksums of shards are compared with conversion.json on the way; at the first that is wrong
    DatasetError is raised, and no archive is there. progress: told of the bytes that were packed. Raises ConfigError
    for a wrong ``output``.
    """
    compression = compression_for(output)
    check_free(output, storage, is_file=True)
    check_target(output, storage, overwrite=overwrite)
    sizes = check_files(folder, facts, storage)
    with (
        hold(output, storage, "beam-tfrecord pack", is_file=True) as lease,
        _appearing(output, storage, lease) as target,
        compressing(target, compression) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8") as archive,
    ):
        for content, size in sizes:
            _add(archive, f"{folder}/{content.name}", content, size, storage)
            progress(size)
    return Packed(output, len(sizes), sum(size for _, size in sizes), storage.size(output))


def check_target(output: str, storage: Storage, *, overwrite: bool) -> None:
    """Raise ConfigError when the archive cannot have that name."""
    if storage.is_folder(output):
        raise ConfigError(f"--output {output} is a folder: name a file, such as {output.rstrip('/')}/dataset.tar.xz")
    if storage.is_file(output) and not overwrite:
        raise ConfigError(f"{output} exists: give --overwrite to replace it, or another --output")


def check_files(folder: str, facts: DatasetFacts, storage: Storage) -> list[tuple[Content, int]]:
    """(file, size) of all files that are there, in the order of the archive.

    Raises DatasetError when the dataset is not complete, or a shard has not the size that is stated.
    """
    check_complete(folder, facts.conversion, storage)
    contents = dataset_contents(facts)
    present = {name_of(name) for name in storage.list_folder(folder) if not name.endswith("/")}
    missing = [content.name for content in contents if content.is_needed and content.name not in present]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise DatasetError(f"{public_uri(folder)}: {missing[0]}{more} is not there; {_CURE}")
    found = [content for content in contents if content.name in present]
    sizes = storage.sizes(f"{folder}/{content.name}" for content in found)
    known = [(content, sizes[f"{folder}/{content.name}"]) for content in found]
    for content, size in known:
        if size > content.most or (content.stated is not None and size != content.stated.bytes):
            stated = f"{content.stated.bytes:,} are stated" if content.stated else f"{content.most:,} can be right"
            raise DatasetError(f"{public_uri(folder)}/{content.name} has {size:,} bytes, but {stated}; {_CURE}")
    return known


def _add(archive: tarfile.TarFile, uri: str, content: Content, size: int, storage: Storage) -> None:
    """Add a file under its plain name. Raises DatasetError when it is damaged or changes meanwhile."""
    name = public_uri(uri)
    member = tarfile.TarInfo(content.name)  # time 0, no owner, no group, mode 0644
    member.size = size
    try:
        with storage.open(uri) as file:
            measured = MeasuredFile(file)
            if content.is_checked_whole:
                data = measured.read()
                check_content(name, data, content)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
                return
            archive.addfile(member, cast(BinaryIO, measured))
            is_longer = bool(file.read(1))
    except OSError as error:  # what the storage raises, and tarfile for a file that ends early
        raise DatasetError(f"{name} cannot be read: {error}; {_CURE}") from None
    except DatasetError as error:
        raise DatasetError(f"{error}; {_CURE}") from None
    if is_longer:
        raise DatasetError(f"{name} was changed while it was packed: run it again")
    check_shard(name, measured, content.stated)


def check_shard(name: str, measured: MeasuredFile, stated: PublishedShard | None) -> None:
    """Raise DatasetError, with what to do, when a shard is not what conversion.json states."""
    try:
        check_measured(name, measured, stated)
    except DatasetError as error:
        raise DatasetError(f"{error}; {_CURE}") from None


@contextmanager
def _appearing(output: str, storage: Storage, lease: Lease) -> Iterator[BinaryIO]:
    """A stream for a file that shows when the block is left, and not at all when it is left by an exception or the name
    is another run's by then."""
    if scheme_of(output) in OBJECT_SCHEMES:
        with storage.open_write(output) as target:
            yield target
            lease.confirm()
        return
    temporary = f"{parent(output)}/.{name_of(output)}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp"
    try:
        with storage.open_write(temporary) as target:
            yield target
        lease.confirm()
    except BaseException:
        storage.delete([temporary])
        raise
    storage.rename(temporary, output)
