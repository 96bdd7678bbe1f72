"""From an archive to a dataset in a folder, everything checked before it gets its final name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from beam_tfrecord.conversion.job import owned_folder
from beam_tfrecord.conversion.writing.staging import staging_folder
from beam_tfrecord.datasets.facts import DatasetFacts, facts_from
from beam_tfrecord.datasets.metadata import CONVERSION, DATASET_INFO
from beam_tfrecord.datasets.published import REPORT
from beam_tfrecord.errors import ConfigError, DatasetError
from beam_tfrecord.manifests import missing
from beam_tfrecord.options.config import OutputConfig
from beam_tfrecord.publishing.final_names import publish_moves
from beam_tfrecord.storage import Storage, public_uri
from beam_tfrecord.tools.packing.contents import (
    LARGEST_CONVERSION,
    Content,
    check_content,
    check_measured,
    dataset_contents,
)
from beam_tfrecord.tools.packing.members import BROKEN, decompressed, read_members
from beam_tfrecord.tools.verifying.measured import MeasuredFile

PIECE = 1 << 20
_MOST_PADDING = 1 << 20  # bytes of zeros behind the last file of an archive


@dataclass(frozen=True)
class Unpacked:
    """What was unpacked. records, shards: as stated and checked. num_bytes: of all files."""

    output: str
    files: int
    shards: int
    records: int
    num_bytes: int


def unpack_dataset(
    archive: str,
    output: str,
    storage: Storage,
    *,
    overwrite: bool = False,
    progress: Callable[[int], None] = lambda size: None,
) -> Unpacked:
    """Unpack the archive of a dataset into a folder. progress: told of the bytes of each file.

    Files are written to the staging place of the folder; sizes and checksums are compared with the conversion.json that
    comes first, and more than it allows is never written. They get their names when all is there and right,
    dataset_info.json as the last. Raises DatasetError for an archive that is damaged or was not made by pack, and
    ConfigError for a folder that holds something else.
    """
    output = output.rstrip("/") or "/"
    if not storage.is_file(archive):
        what = "a folder, not an archive" if storage.is_folder(archive) else missing(storage, archive)
        raise ConfigError(f"{public_uri(archive)}: {what}; name an archive that pack made")
    options = OutputConfig(output=output, overwrite=overwrite)
    with owned_folder(options, storage, "beam-tfrecord unpack") as lease:
        staged = f"{staging_folder(output)}/unpacked"
        try:
            facts, sizes, info = _stage(archive, staged, storage, progress)
        except BaseException:
            storage.delete_tree(staging_folder(output))
            raise
        moved = [(f"{staged}/{name}", name) for name in _in_order(sizes, facts)]
        checksums = sorted(f"{shard.file} {shard.crc32c}" for shard in facts.shards)
        token = hashlib.sha256(json.dumps([sorted(sizes.items()), checksums]).encode()).hexdigest()
        has_report = REPORT in sizes
        publish_moves(moved, {DATASET_INFO: info}, token, output, storage, has_report=has_report, confirm=lease.confirm)
    records = sum(shard.records for shard in facts.shards)
    return Unpacked(output, len(sizes), len(facts.shards), records, sum(sizes.values()))


def _in_order(sizes: dict[str, int], facts: DatasetFacts) -> list[str]:
    """Names of the files to move: shards first, as a conversion publishes them."""
    shards = {shard.file for shard in facts.shards}
    return sorted(set(sizes) - {DATASET_INFO}, key=lambda name: (name not in shards, name))


def _stage(
    archive: str, staged: str, storage: Storage, progress: Callable[[int], None]
) -> tuple[DatasetFacts, dict[str, int], bytes]:
    """(facts, size by name, dataset_info.json) of an archive whose files lie in the staging place now."""
    sizes: dict[str, int] = {}
    info = b""
    with _faults_told(public_uri(archive)), storage.open(archive) as file:
        plain = decompressed(file)
        members = read_members(plain)
        facts, conversion = _read_conversion(members)
        storage.write_bytes(f"{staged}/{CONVERSION}", conversion)
        sizes[CONVERSION] = len(conversion)
        allowed = {content.name: content for content in dataset_contents(facts)}
        for member, size, data in members:
            content = allowed.get(member)
            if content is None:
                raise DatasetError(f"{member!r} is no file of the dataset: the archive was not made by pack")
            if member in sizes:
                raise DatasetError(f"{member} is there twice: the archive was not made by pack")
            _check_size(content, size)
            sizes[member] = size
            if member == DATASET_INFO:
                info = _whole(content, data)
                break
            _write(content, data, f"{staged}/{member}", storage)
            progress(size)
        missing = [content.name for content in allowed.values() if content.is_needed and content.name not in sizes]
        if missing:
            raise DatasetError(f"it ends early, or was not made by pack: it lacks {', '.join(missing[:3])}")
        _check_end(plain)
    return facts, sizes, info


@contextmanager
def _faults_told(name: str) -> Iterator[None]:
    """Whatever is wrong with the archive as a DatasetError that names it."""
    try:
        yield
    except DatasetError as error:
        raise DatasetError(f"{name}: {error}") from None
    except BROKEN as error:
        raise DatasetError(f"{name} is damaged or ends early ({error}): copy it again") from None
    except OSError as error:
        raise DatasetError(f"{name} cannot be read: {error}") from None


def _read_conversion(members: Iterator[tuple[str, int, BinaryIO]]) -> tuple[DatasetFacts, bytes]:
    """The first file of the archive: what all others are compared with."""
    for member, size, data in members:
        if member != CONVERSION:
            break
        content = Content(CONVERSION, LARGEST_CONVERSION, True)
        _check_size(content, size)
        conversion = _whole(content, data)
        parsed = json.loads(conversion)
        if not isinstance(parsed, dict):
            raise DatasetError(f"{CONVERSION} is damaged: it holds no JSON object")
        return facts_from(parsed), conversion
    raise DatasetError(f"it does not start with {CONVERSION}: it was not made by pack")


def _check_size(content: Content, size: int) -> None:
    """Raise DatasetError when a file is larger than it can be, before any of it is unpacked."""
    if content.stated is not None and size != content.stated.bytes:
        raise DatasetError(f"{content.name} has {size:,} bytes, but {CONVERSION} states {content.stated.bytes:,}")
    if size > content.most:
        raise DatasetError(f"{content.name} has {size:,} bytes, more than can be right ({content.most:,})")


def _whole(content: Content, data: BinaryIO) -> bytes:
    """A file that is looked at as a whole."""
    pieces = []
    while piece := data.read(PIECE):
        pieces.append(piece)
    read = b"".join(pieces)
    check_content(content.name, read, content)
    return read


def _write(content: Content, data: BinaryIO, uri: str, storage: Storage) -> None:
    """Unpack a file into the staging place."""
    if content.is_checked_whole:
        storage.write_bytes(uri, _whole(content, data))
        return
    measured = MeasuredFile(data)
    with storage.open_write(uri) as target:
        while piece := measured.read(PIECE):
            target.write(piece)
    check_measured(content.name, measured, content.stated)


def _check_end(plain: BinaryIO) -> None:
    """Read what is behind the last file, zeros as a rule: the checksum of the compressed stream is looked at there."""
    left = _MOST_PADDING
    while piece := plain.read(min(PIECE, left + 1)):
        left -= len(piece)
        if left < 0 or any(piece):
            raise DatasetError("something follows the dataset: the archive was not made by pack")
