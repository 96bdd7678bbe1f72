"""What is resharded: the inputs, looked at before anything starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.core.account import NO_ACCOUNT, Account
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import CONVERSION, DATASET_INFO
from beam_tfrecord.datasets.metadata.shape import check_shape
from beam_tfrecord.datasets.published import PUBLISHED, REJECTS_FILE, WARNINGS_FILE
from beam_tfrecord.datasets.shard_files import FoundFiles, find_files
from beam_tfrecord.errors import ConfigError, DatasetError, nearest
from beam_tfrecord.manifests import missing
from beam_tfrecord.options.places import check_place
from beam_tfrecord.options.values import InputSpec, check_split_name
from beam_tfrecord.report.dataset import read_statistics
from beam_tfrecord.storage import Storage, has_glob, parent, public_uri, scheme_of
from beam_tfrecord.tools.resharding.accounts import account_of_folder
from beam_tfrecord.tools.resharding.ranges import SourceFile


@dataclass(frozen=True)
class Source:
    """One input.

    place: as it was given, without the name of a split. files: in order. facts: None for files from elsewhere, or for
    some of the files of a dataset. statistics: its statistics.json, empty where there is none. split_of: the split that
    each of its splits becomes. account: of the files in its folder, where it is a dataset.
    """

    place: str
    files: tuple[SourceFile, ...]
    facts: DatasetFacts | None
    statistics: Mapping[str, Any]
    split_of: Mapping[str, str]
    account: Account = NO_ACCOUNT

    @property
    def name(self) -> str:
        """The place as it may be shown."""
        return public_uri(self.place)


def open_sources(
    inputs: Sequence[InputSpec], renames: Sequence[tuple[str, str]], storage: Storage
) -> tuple[Source, ...]:
    """Look at the inputs. Raises ConfigError or DatasetError with all that a user can mend."""
    places = [_place(spec, storage) for spec in inputs]
    repeated = [
        uri for number, (uri, _) in enumerate(places) if same_place(uri, [other for other, _ in places[:number]])
    ]
    if repeated:
        raise ConfigError(f"{public_uri(repeated[0])} is given twice")
    found = [find_files([uri], storage) for uri, _ in places]
    _check_renames(found, renames)
    return tuple(
        _open_source(number, uri, split, own, dict(renames), storage)
        for number, ((uri, split), own) in enumerate(zip(places, found, strict=True))
    )


def _place(spec: InputSpec, storage: Storage) -> tuple[str, str | None]:
    """(uri without a slash at its end, split) of an input; a place that exists is never cut at an equals sign."""
    for uri, split in _readings(spec):
        try:
            check_place(uri)
        except ValueError as error:
            raise ConfigError(f"{public_uri(spec.uri)}: {error}") from None
        if storage.is_folder(uri) or storage.is_file(uri) or (has_glob(uri) and storage.match(uri)):
            if split is not None:
                try:
                    check_split_name(split)
                except ValueError as error:
                    raise ConfigError(f"{spec.uri}: {error}") from None
            return uri.rstrip("/") or "/", split
    uri = list(_readings(spec))[-1][0]
    raise ConfigError(f"{public_uri(uri)}: {missing(storage, uri)}")


def _readings(spec: InputSpec) -> Iterator[tuple[str, str | None]]:
    """What an input may mean, the more literal first."""
    named, mark, place = spec.uri.partition("=")
    is_split = spec.split is None and bool(mark and place) and "/" not in named
    if not (is_split and scheme_of(place)):
        yield spec.uri, spec.split
    if is_split:
        yield os.path.expanduser(place), named
    elif spec.uri.startswith("~"):
        yield os.path.expanduser(spec.uri), spec.split


def same_place(uri: str, others: Sequence[str]) -> bool:
    """Whether a folder is one of some others, whatever the links that lead to it."""
    return _resolved(uri) in {_resolved(other) for other in others}


def _resolved(uri: str) -> str:
    return uri.rstrip("/") if scheme_of(uri) else os.path.realpath(uri.removeprefix("file://"))


def check_output(output: str, sources: Sequence[Source]) -> None:
    """Raise ConfigError when the output is where an input lies."""
    folders = [source.place for source in sources]
    folders += [parent(file.uri) for source in sources for file in source.files]
    if same_place(output, sorted(set(folders))):
        raise ConfigError(f"--output {output} is one of the inputs: name another folder")


def _check_renames(found: Sequence[FoundFiles], renames: Sequence[tuple[str, str]]) -> None:
    known = sorted({split for own in found for split in own.splits})
    for old, _ in renames:
        if old not in known:
            raise ConfigError(
                f"--rename_splits {old}=...: there is no split {old!r}; there are {', '.join(known) or 'none'}"
                f"{nearest(old, known)}"
            )


def _open_source(
    number: int, place: str, split: str | None, found: FoundFiles, renames: Mapping[str, str], storage: Storage
) -> Source:
    if found.trouble:
        raise DatasetError(f"{public_uri(place)}: {found.trouble.removeprefix(f'{place}/')}; convert it again")
    if found.faults:
        fault = found.faults[0]
        raise DatasetError(f"{public_uri(place)}: {fault.file}: {fault.cause}")
    facts = found.facts if found.folder else None
    if facts is not None:
        _check_complete(place, facts, storage)
    nameless = [file for file in found.files if not file.split]
    if nameless and split is None:
        raise ConfigError(
            f"nothing tells the split of {public_uri(nameless[0].uri)}: name it in front of the place, as in "
            f"train={public_uri(place)}"
        )
    split_of = {name: split or renames.get(name, name) for name in {file.split for file in found.files}}
    for name in sorted(split_of):
        _check_name(split_of[name], place)
    files = tuple(
        SourceFile(
            source=number,
            split=split_of[file.split],
            origin_split=file.split,
            uri=file.uri,
            name=public_uri(file.uri),
            records=file.stated.records if file.stated is not None else -1,
            payload_bytes=file.stated.payload_bytes if file.stated is not None else -1,
            stated=file.records,
        )
        for file in found.files
    )
    account = account_of_folder(storage.list_folder(place), facts) if facts is not None else NO_ACCOUNT
    statistics = read_statistics(place, storage) if facts is not None else {}
    return Source(place, files, facts, statistics, dict(sorted(split_of.items())), account)


def _check_name(split: str, place: str) -> None:
    try:
        check_split_name(split)
    except ValueError as error:
        raise ConfigError(f"{public_uri(place)}: {error}; give it one with --rename_splits") from None


def _check_complete(folder: str, facts: DatasetFacts, storage: Storage) -> None:
    """Raise DatasetError unless the publication of a dataset came to its end."""
    status = facts.conversion.get("status", PUBLISHED)
    if status != PUBLISHED or not storage.is_file(f"{folder}/{DATASET_INFO}"):
        raise DatasetError(
            f"{public_uri(folder)} is not complete: it has a {CONVERSION} but no {DATASET_INFO}, which comes last; run "
            "what made it again"
        )
    check_shape(facts.conversion, f"{public_uri(folder)}/{CONVERSION}")
    for name, counts in (
        (REJECTS_FILE, facts.conversion["rejected"]["by_code"]),
        (WARNINGS_FILE, facts.conversion["warnings"]),
    ):
        stated, found = sum(counts.values()), _lines(f"{folder}/{name}", storage)
        if found != stated:
            raise DatasetError(
                f"{public_uri(folder)}/{name} has {found:,} lines, but {CONVERSION} counts {stated:,}: beam-tfrecord "
                "verify names all that is wrong with the dataset"
            )


def _lines(uri: str, storage: Storage) -> int:
    if not storage.is_file(uri):
        return 0
    with storage.open(uri) as file:
        return sum(1 for _ in file)
