"""Which TFRecord files a place names: the folder of a dataset, a folder of files from elsewhere, a file, or a glob."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from beam_tfrecord.core.splits import SPLIT_FOLDERS
from beam_tfrecord.datasets.facts import DatasetFacts, facts_from
from beam_tfrecord.datasets.metadata import CONVERSION, DATASET_INFO, PublishedShard
from beam_tfrecord.datasets.published import read_conversion
from beam_tfrecord.datasets.tfds_info import LabelNames, read_label_names, read_tfds_info
from beam_tfrecord.errors import ConfigError, DatasetError, nearest
from beam_tfrecord.manifests.filenames import is_record_name
from beam_tfrecord.storage import Storage, has_glob, name_of, parent
from beam_tfrecord.tfrecord import detect_compression
from beam_tfrecord.tfrecord.compression import inflated_start
from beam_tfrecord.tfrecord.framing import HEADER_SIZE, parse_header

_HEAD = 1 << 16
_METADATA = (CONVERSION, DATASET_INFO)
_SPLIT_NAME = re.compile(r"(?:.*-)?(?P<split>[^-]+?)(?:\.tfrecords?|\.tfrec|\.records?)?[-.]\d+-of-\d+.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ShardFile:
    """One file of records.

    name: for people; in a dataset the name of the file in its folder, else as it was given. split: '' when nothing
    tells. stated: what conversion.json says of it. records: how many the metadata state, also those of TensorFlow
    Datasets; None where nothing does.
    """

    uri: str
    name: str
    split: str = ""
    stated: PublishedShard | None = None
    records: int | None = None

    @property
    def may_be_empty(self) -> bool:
        """Whether the file may have no bytes: where it is stated to hold no records."""
        return self.records == 0


class PlaceFault(NamedTuple):
    """Something wrong with the files of a place together. code: of what ``verify`` finds."""

    file: str
    code: str
    cause: str


@dataclass(frozen=True)
class FoundFiles:
    """What a place holds.

    folder: when the place is a folder, else ''. files: in the order of splits and shards. facts: of the dataset that
    the files belong to, when there are any. trouble: why the conversion.json that is there cannot be used, or ''.
    label_names: names of ids by key, told by files of TensorFlow Datasets beside records from elsewhere. faults: (file,
    code, cause) of what is wrong with the place as a whole, which all commands tell alike.
    """

    folder: str
    files: tuple[ShardFile, ...]
    facts: DatasetFacts | None = None
    trouble: str = ""
    label_names: LabelNames = field(default_factory=dict)
    faults: tuple[PlaceFault, ...] = ()

    @property
    def splits(self) -> list[str]:
        """Names of the splits that are known, in order."""
        return sorted({file.split for file in self.files} - {""})

    def of_split(self, split: str | None) -> tuple[ShardFile, ...]:
        """The files of one split, or all. Raises ConfigError for a split that is not there."""
        if split is None:
            return self.files
        if split not in self.splits:
            told = (
                f"; there are {', '.join(self.splits)}" if self.splits else "; the names of the files tell of no splits"
            )
            raise ConfigError(f"--split {split}: there is no such split{nearest(split, self.splits) or told}")
        return tuple(file for file in self.files if file.split == split)


def stated_records(files: Iterable[ShardFile]) -> int | None:
    """How many records some files of a dataset hold, as its conversion.json states; None where nothing does."""
    stated = [file.stated.records if file.stated is not None else None for file in files]
    return None if None in stated else sum(records or 0 for records in stated)


def find_files(places: Sequence[str], storage: Storage) -> FoundFiles:
    """The files at some places, each once. Raises DatasetError where nothing is at a place, or no TFRecord in it."""
    if len(places) == 1 and _is_folder(places[0], storage):
        return _in_folder(_without_slash(places[0]), storage)
    parts = [_at_place(place, storage) for place in dict.fromkeys(map(_without_slash, places))]
    files = {file.uri: file for part in reversed(parts) for file in reversed(part.files)}
    found = _with_facts(list(reversed(files.values())), storage)
    return replace(found, faults=(*(fault for part in parts for fault in part.faults), *found.faults))


def find_datasets(places: Sequence[str], storage: Storage) -> list[FoundFiles]:
    """What some places hold: each folder by itself, with all that its metadata tell, and all other files together.

    Raises what :func:`find_files` raises.
    """
    folders = [place for place in dict.fromkeys(map(_without_slash, places)) if _is_folder(place, storage)]
    others = [place for place in places if _without_slash(place) not in folders]
    found = [_in_folder(folder, storage) for folder in folders]
    return found + ([find_files(others, storage)] if others or not folders else [])


def _is_folder(place: str, storage: Storage) -> bool:
    return not storage.is_file(place) and storage.is_folder(place)


def _without_slash(uri: str) -> str:
    return uri.rstrip("/") or "/"


def _in_folder(folder: str, storage: Storage) -> FoundFiles:
    trouble = ""
    if storage.is_file(f"{folder}/{CONVERSION}"):
        try:
            facts = facts_from(read_conversion(folder, storage))
        except DatasetError as error:
            trouble = str(error)
        else:
            return FoundFiles(folder, _stated_files(folder, facts), facts)
    chosen, below = _record_files(folder, storage)
    files, names, faults = _with_tfds(folder, chosen, storage)
    faults += _mixed(folder, chosen, below, storage)
    if all(file.records is None for file in files):
        missing = missing_by_name([file.name for file in files])
        faults += [PlaceFault(name, "missing_file", cause) for name, cause in missing]
    return FoundFiles(folder, tuple(files), trouble=trouble, label_names=names, faults=tuple(faults))


def _mixed(folder: str, files: Sequence[ShardFile], below: Sequence[str], storage: Storage) -> list[PlaceFault]:
    """What lies in a folder beside the files of one dataset. below: paths of records that are not read."""
    paths = [file.name for file in files]
    roots = {without_split_folder(path.rpartition("/")[0])[0] for path in paths}
    described = [root for root in roots if any(storage.is_file(f"{folder}/{root}/{name}") for name in _METADATA)]
    faults = [PlaceFault(path, "mixed_datasets", cause) for path, cause in mixtures(paths, described)]
    if below:
        more = f", and neither are {len(below) - 1:,} more" if len(below) > 1 else ""
        cause = f"this file lies below the others and is not read{more}: name its folder as well, or a glob"
        faults.append(PlaceFault(below[0], "mixed_datasets", cause))
    return faults


def _with_tfds(
    folder: str, files: Sequence[ShardFile], storage: Storage
) -> tuple[list[ShardFile], dict[str, tuple[str, ...]], list[PlaceFault]]:
    """The files with what the metadata of TensorFlow Datasets in their own folders tell of them."""
    known: dict[str, ShardFile] = {file.uri: file for file in files}
    names: dict[str, tuple[str, ...]] = {}
    faults = []
    for place in sorted({parent(uri) for uri in known}):
        start = f"{place.removeprefix(folder).lstrip('/')}/" if place != folder else ""
        own, troubles = read_label_names(place, storage)
        for key, told in own.items():
            if names.setdefault(key, told) != told:
                troubles.append((f"{key}.labels.txt", "another folder has other names for these labels"))
        faults += [PlaceFault(start + name, "wrong_metadata", cause) for name, cause in troubles]
        try:
            info = read_tfds_info(place, storage)
        except DatasetError as error:
            faults.append(PlaceFault(start + DATASET_INFO, "wrong_metadata", str(error)))
            continue
        if info is None or info.file_format != "tfrecord":
            continue
        for split, stated in sorted(info.splits.items()):
            for name, length in zip(stated.files, stated.lengths, strict=True):
                uri = f"{place}/{name}"
                if uri in known:
                    known[uri] = replace(known[uri], split=split, records=length)
                elif length:
                    cause = f"the file is not there, but {DATASET_INFO} names it"
                    faults.append(PlaceFault(start + name, "missing_file", cause))
    return list(known.values()), names, faults


_NUMBERED = re.compile(r"(?P<start>.*)-(?P<index>\d{5,})-of-(?P<count>\d{5,})(?P<end>.*)", re.DOTALL)
_MOST_SHARDS = 1_000_000  # a larger number in a name is none of shards


def missing_by_name(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(name, cause) of the first shard that ``-00003-of-00008`` in the names of the others promises, for each set."""
    groups: dict[tuple[str, int, str], set[int]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match:
            groups.setdefault((match["start"], int(match["count"]), match["end"]), set()).add(int(match["index"]))
    for (start, count, end), present in sorted(groups.items()):
        missing = sorted(set(range(min(count, _MOST_SHARDS))) - present)
        if missing:
            more = f", and so are {len(missing) - 1:,} more" if len(missing) > 1 else ""
            yield (
                f"{start}-{missing[0]:05d}-of-{count:05d}{end}",
                f"by the names of the others this file should be there{more}; if those that are there are all that is "
                "wanted, name them with a glob",
            )


def _stated_files(folder: str, facts: DatasetFacts) -> tuple[ShardFile, ...]:
    return tuple(
        ShardFile(f"{folder}/{shard.file}", shard.file, split, shard, shard.records)
        for split in sorted(facts.splits)
        for shard in facts.splits[split]
    )


def _at_place(place: str, storage: Storage) -> FoundFiles:
    """The files at one of several places, and what is wrong there, by their uris."""
    if storage.is_file(place):
        return FoundFiles("", (ShardFile(place, place, split_of(place)),))
    if storage.is_folder(place):
        within = _in_folder(place, storage)
        faults = [fault._replace(file=f"{place}/{fault.file}") for fault in within.faults]
        if within.trouble:
            faults.append(PlaceFault(f"{place}/{CONVERSION}", "wrong_metadata", within.trouble))
        return FoundFiles("", tuple(replace(file, name=file.uri) for file in within.files), faults=tuple(faults))
    found = [info.uri for info in storage.match(place)] if has_glob(place) else []
    if found:
        records = [uri for uri in found if is_record_name(name_of(uri))]
        return FoundFiles("", tuple(ShardFile(uri, uri, split_of(uri)) for uri in records or found))
    from beam_tfrecord.manifests import missing  # seldom needed, and reading shall start fast

    raise DatasetError(f"{place}: {missing(storage, place)}")


def _record_files(folder: str, storage: Storage) -> tuple[list[ShardFile], list[str]]:
    """The files of a folder without usable metadata, by their names, or else by their first bytes; and the paths of
    files of records below it that are none of them, unless they lie in a dataset or extracted folder of this tool."""
    names = [name for name in storage.list_folder(folder) if not name.startswith(".") and not name.endswith("/")]
    chosen = [name for name in names if is_record_name(name)]
    paths = [info.uri.removeprefix(f"{folder}/") for info in storage.walk(folder)]
    below = [path for path in paths if "/" in path and is_record_name(name_of(path)) and not _is_hidden(path)]
    if chosen:
        own = {path.rpartition("/")[0] for path in paths if name_of(path) == CONVERSION}
        below = [path for path in below if not any(path.startswith(f"{place}/") for place in own)]
    else:
        chosen, below = below, []
    unread: list[str] = []
    if not chosen:
        chosen = [name for name in names if holds_records(f"{folder}/{name}", storage, unread)]
    if not chosen:
        told = f" that could be read: {unread[0]}" if unread else ""
        raise DatasetError(f"{folder} holds no TFRecord files{told}")
    return [ShardFile(f"{folder}/{name}", name, split_of(f"{name_of(folder)}/{name}")) for name in chosen], below


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def holds_records(uri: str, storage: Storage, unread: list[str]) -> bool:
    """Whether a file starts with the header of a record, compressed or not; of one that cannot be read, ``unread`` is
    told why."""
    try:
        with storage.open(uri) as file:
            head = file.read(_HEAD)
    except OSError as error:
        unread.append(f"{name_of(uri)}: {error}")
        return False
    return starts_with_record(head, detect_compression(head))


def starts_with_record(head: bytes, compression: str) -> bool:
    """Whether the first bytes of a file are a record's header with the right checksum, under a compression."""
    start = head[:HEADER_SIZE] if compression == "none" else inflated_start(compression, head, HEADER_SIZE)
    return len(start) == HEADER_SIZE and not parse_header(start)[1]


def split_of(uri: str) -> str:
    """The split that the name of a shard tells (``coco-train.tfrecord-00000-of-00008``: train), or ''.

    The name of its folder (``Split-eval``, ``train``) counts before a name that is none of the usual ones.
    """
    match = _SPLIT_NAME.fullmatch(name_of(uri))
    told = match["split"] if match else ""
    return told if told.lower() in SPLIT_FOLDERS else split_of_folder(name_of(parent(uri))) or told


def _with_facts(files: Sequence[ShardFile], storage: Storage) -> FoundFiles:
    """The files with what the conversion.json beside them says, when they are all of one dataset."""
    folders = {parent(file.uri) for file in files}
    if len(folders) != 1:
        return FoundFiles("", tuple(files))
    folder = folders.pop()
    if not storage.is_file(f"{folder}/{CONVERSION}"):
        told, names, faults = _with_tfds(folder, files, storage)
        # What was not asked for may be missing.
        wrong = tuple(fault for fault in faults if fault.code != "missing_file")
        mixed = mixtures([name_of(file.uri) for file in files])
        wrong += tuple(PlaceFault(name, "mixed_datasets", cause) for name, cause in mixed)
        return FoundFiles("", tuple(told), label_names=names, faults=wrong)
    try:
        facts = facts_from(read_conversion(folder, storage))
    except DatasetError as error:
        return FoundFiles("", tuple(files), trouble=str(error))
    stated = {file.name: file for file in _stated_files(folder, facts)}
    if not all(name_of(file.uri) in stated for file in files):
        return FoundFiles("", tuple(files))
    known = [stated[name_of(file.uri)] for file in files]
    named = [replace(own, uri=file.uri, name=file.name) for file, own in zip(files, known, strict=True)]
    return FoundFiles("", tuple(named), facts)


# ---------------------------------------------------------------------------------------------------------------------
# Which split a folder of records tells, and whether files of records are of one dataset, by their paths only.
#
# Sources: TFX writes ``Split-train/data_tfrecord-00000-of-00001.gz`` (tfx/types/artifact_utils.py); TensorFlow Datasets
# writes ``name/1.0.0/name-train.tfrecord-00000-of-00008``.


_TFX = "Split-"
_TFDS = re.compile(r"(?P<dataset>.+)-(?P<split>[^-.]+)\..*", re.DOTALL)


def split_of_folder(name: str) -> str:
    """The split that the name of a folder tells (``Split-eval``, ``Train``), or ''."""
    if name.startswith(_TFX):
        return name.removeprefix(_TFX)
    return name.lower() if name.lower() in SPLIT_FOLDERS else ""


def mixtures(paths: Iterable[str], described: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """(path, cause) of files that cannot be of the same dataset as others, the first of each kind.

    paths: below the folder that was given. described: folders, '' for that one, that hold metadata of a dataset.
    """
    counts: dict[tuple[str, str], dict[str, str]] = {}
    folders: dict[tuple[str, str, str], dict[str, str]] = {}
    datasets: dict[tuple[str, str], dict[str, str]] = {}
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        numbered = _NUMBERED.fullmatch(name)
        if numbered is None:
            continue
        start, count, end = numbered["start"], numbered["count"], numbered["end"]
        counts.setdefault((f"{folder}/{start}", end), {}).setdefault(count, path)
        root, split = without_split_folder(folder)
        folders.setdefault((start, end, split), {}).setdefault(root, path)
        told = _TFDS.fullmatch(start + end)
        if told is not None and told["split"] in SPLIT_FOLDERS:
            datasets.setdefault((folder, told["split"]), {}).setdefault(told["dataset"], path)
    how = "give the files of one, with a glob or by their folder"
    for groups, what in (
        (counts, "are of two sets of shards"),
        (datasets, "are of two datasets, by their names"),
        (folders, "are of two datasets or versions, by their folders"),
    ):
        for own in groups.values():
            if len(own) > 1:
                first, second = list(own.values())[:2]
                yield second, f"this file and {first} {what}: {how}"
                break
    roots = sorted(set(described))
    if len(roots) > 1:
        yield roots[1], f"this folder and {roots[0] or 'the one that was given'} hold a dataset each: {how}"


def without_split_folder(folder: str) -> tuple[str, str]:
    """(folder above, split) of the path of a folder of one split, else (folder, '')."""
    above, _, name = folder.rpartition("/")
    split = split_of_folder(name)
    return (above, split) if split else (folder, "")
