"""What lay in the inputs of a resharding, and what became of it: records, features, files and what metadata say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from beam_tfrecord.core.account import FILES, JUNK, Account, AccountBuilder
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import CONVERSION
from beam_tfrecord.datasets.published import REPORT
from beam_tfrecord.storage.lease import LEASE_NAME
from beam_tfrecord.tfrecord import INDEX_SUFFIX, parse_shard_name
from beam_tfrecord.tools.verifying.folder import own_names, shard_names

RECORDS, FEATURES, OPTIONS, METADATA = "records", "features", "options", "metadata"
_ANEW = "made anew where it is asked for"
LEFTOVER = f"looks like a shard, and {CONVERSION} does not name it"
STRANGER = "no part of the dataset"


def account_of_folder(names: Iterable[str], facts: DatasetFacts) -> Account:
    """The account of the files in the folder of a dataset. names: of all; those of folders end in ``/``."""
    told = AccountBuilder()
    shards, own = set(shard_names(facts)), own_names(facts)
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
