"""What is resharded: the inputs, looked at before anything starts; whether they can be one dataset; and the account of
what lay in them."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from beam_tfrecord.annotations.base import FeatureSpec
from beam_tfrecord.core.account import FILES, JUNK, NO_ACCOUNT, Account, AccountBuilder
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import CONVERSION
from beam_tfrecord.datasets.metadata.shape import check_shape, read_statistics
from beam_tfrecord.datasets.published import REJECTS_FILE, REPORT, WARNINGS_FILE, check_complete
from beam_tfrecord.datasets.shard_files import FoundFiles, find_files
from beam_tfrecord.errors import ConfigError, DatasetError, nearest
from beam_tfrecord.manifests import missing
from beam_tfrecord.options.places import check_place
from beam_tfrecord.options.values import InputSpec, check_split_name
from beam_tfrecord.storage import Storage, has_glob, parent, public_uri, scheme_of
from beam_tfrecord.storage.lease import LEASE_NAME
from beam_tfrecord.tfrecord import INDEX_SUFFIX, parse_shard_name
from beam_tfrecord.tools.resharding.ranges import SourceFile
from beam_tfrecord.tools.verifying.dataset import own_names


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
        _check_dataset(place, facts, storage)
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


def _check_dataset(folder: str, facts: DatasetFacts, storage: Storage) -> None:
    """Raise DatasetError unless a dataset is complete, with as many lines of findings as it states."""
    check_complete(folder, facts.conversion, storage)
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


# ---------------------------------------------------------------------------------------------------------------------
# What lay in the inputs of a resharding, and what became of it: records, features, files and what metadata say.


RECORDS, FEATURES, OPTIONS, METADATA = "records", "features", "options", "metadata"
_ANEW = "made anew where it is asked for"
LEFTOVER = f"looks like a shard, and {CONVERSION} does not name it"
STRANGER = "no part of the dataset"


def account_of_folder(names: Iterable[str], facts: DatasetFacts) -> Account:
    """The account of the files in the folder of a dataset. names: of all; those of folders end in ``/``."""
    told = AccountBuilder()
    shards, own = {shard.file for shard in facts.shards}, own_names(facts)
    for name in names:
        if name == LEASE_NAME:
            continue
        told.find(FILES)
        if name in shards:
            told.use(FILES, "shard")
        elif name in own and (name == REPORT or name.endswith(INDEX_SUFFIX) or parse_shard_name(name) is not None):
            told.name(FILES, _ANEW, name)
        elif name in own:
            told.use(FILES, "metadata")
        elif name.startswith("."):
            told.name(FILES, JUNK, name)
        elif parse_shard_name(name.removesuffix(INDEX_SUFFIX)) is not None:
            told.name(FILES, LEFTOVER, name)
        else:
            told.name(FILES, STRANGER, name)
    return told.account()


def account_of_metadata(
    conversions: Sequence[Mapping[str, Any]], features: Iterable[str], made: Mapping[str, Any], records: int, kept: int
) -> Account:
    """The account of what the metadata of the inputs say.

    features: keys that the result states. made: the conversion.json of the result. records: that the inputs have; kept:
    that lie in the new shards.
    """
    told = AccountBuilder()
    told.find(RECORDS, records)
    told.use(RECORDS, "copied", kept)
    stated = {key for own in conversions for key in own["features"]}
    _tell(told, FEATURES, stated, set(features), "no input agrees")
    options = {name for own in conversions for name in own["options"]}
    _tell(told, OPTIONS, options, set(made["options"]), "differs between the inputs")
    keys = {name for own in conversions for name in own}
    _tell(told, METADATA, keys, set(made), "not known, and not of one input alone")
    return told.account()


def _tell(told: AccountBuilder, kind: str, found: Iterable[str], used: set[str], reason: str) -> None:
    for name in sorted(found):
        told.find(kind)
        if name in used:
            told.use(kind, "kept")
        else:
            told.name(kind, reason, name)


def notes_about(name: str, account: Account) -> list[str]:
    """What a person should know of the files of an input."""
    files = account.named.get(FILES, {})
    return [
        f"{name}: {files[reason].count:,} file{'s' * (files[reason].count != 1)} left out: {reason} (such as "
        f"{files[reason].example})"
        for reason in (LEFTOVER, STRANGER)
        if reason in files
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Whether the records of several datasets are of one kind, so that they can be one dataset.


Value = TypeVar("Value")

# What may differ: it tells what the images of one dataset have in common. Of masks the depth must be one: their values
# mean something, and a reader decodes all of them alike.
_COMMON = ("channels", "encoding", "description")
_TOGETHER = "or convert the inputs of both in one run"


def check_agreement(datasets: Sequence[tuple[str, DatasetFacts]]) -> None:
    """Raise DatasetError, naming the first difference and how to mend it, unless the datasets can be one.

    datasets: (name, facts); each is compared with the first.
    """
    (first, known), *others = datasets
    for name, facts in others:
        difference = find_difference(known, facts, first, name)
        if difference:
            raise DatasetError(f"{first} and {name} cannot be one dataset: {difference}")


def find_difference(one: DatasetFacts, two: DatasetFacts, first: str, second: str) -> str:
    """The first difference between two datasets, called ``first`` and ``second``, and its cure; '' for none."""
    if one.message != two.message:
        return (
            f"the records of {first} are tf.train.{one.message}, those of {second} tf.train.{two.message}; convert "
            "both with --sequence_column, or none"
        )
    return _label_difference(one, two, first, second) or _feature_difference(one, two, first, second)


def _label_difference(one: DatasetFacts, two: DatasetFacts, first: str, second: str) -> str:
    cure = f"convert both with the same --labels labels.txt, {_TOGETHER}"
    names = itertools.zip_longest(one.vocabulary.names, two.vocabulary.names)
    for number, (own, other) in enumerate(names):
        if own != other:
            told = [
                f"{name!r} in {place}" if name is not None else f"missing in {place}"
                for name, place in ((own, first), (other, second))
            ]
            return f"label {number} (counted from 0) is {told[0]} and {told[1]}; {cure}"
    for label, own_id, other_id in zip(one.vocabulary.names, one.vocabulary.ids, two.vocabulary.ids, strict=True):
        if own_id != other_id:
            return (
                f"the label {label!r} has the id {own_id} in {first} and {other_id} in {second}; convert both with the "
                "same --label_offset (and --keep_category_ids for both or none)"
            )
    return ""


def _feature_difference(one: DatasetFacts, two: DatasetFacts, first: str, second: str) -> str:
    names = {key: name for facts in (one, two) for name, key in facts.keys.items()}
    for key in sorted(one.specs.keys() | two.specs.keys()):
        own, other = one.specs.get(key), two.specs.get(key)
        if own is None or other is None:
            there, missing = (first, second) if other is None else (second, first)
            return f"records have {key!r} in {there} but not in {missing}; {_cure(names.get(key, ''))}"
        for field in dataclasses.fields(FeatureSpec):
            values = getattr(own, field.name), getattr(other, field.name)
            may_differ = field.name in _COMMON or (field.name == "pixel_dtype" and names.get(key) == "encoded")
            if values[0] != values[1] and not may_differ:
                told = f"{field.name} {_spelled(values[0])} in {first} and {_spelled(values[1])} in {second}"
                return f"{key!r} has the {told}; {_cure(names.get(key, ''))}"
    for name in sorted(one.keys.keys() & two.keys.keys()):
        if one.keys[name] != two.keys[name]:
            return (
                f"{name} is called {one.keys[name]!r} in {first} and {two.keys[name]!r} in {second}; convert both with "
                "the same --keys and --rename"
            )
    return ""


def _cure(name: str) -> str:
    if name.startswith("column/"):
        return "convert both with the same --columns"
    if "mask" in name:
        return f"convert both with the same --mask_bits, --keys and --rename, {_TOGETHER}"
    if name in ("raw", "encoded", "dtype", "shape"):
        return "convert both with the same --image_format, --keys and --rename"
    return f"convert both with the same --keys and --rename, {_TOGETHER}: then all records have the same features"


def _spelled(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join("any" if size is None else str(size) for size in value) + "]"
    return str(value)


def merge_specs(datasets: Sequence[Mapping[str, FeatureSpec]]) -> tuple[FeatureSpec, ...]:
    """The types of the features of datasets that agree, sorted by key: what differs between images is left open."""
    merged = []
    for key in sorted(datasets[0]):
        own = [specs[key] for specs in datasets]
        merged.append(
            dataclasses.replace(
                own[0],
                channels=_common([spec.channels for spec in own]),
                encoding=_common([spec.encoding for spec in own]),
                pixel_dtype=_common([spec.pixel_dtype for spec in own]) or "uint8",
            )
        )
    return tuple(merged)


def _common(values: Sequence[Value]) -> Value | None:
    """The one value that all have, or None."""
    return values[0] if len(set(values)) == 1 else None
