"""Which files lie in the folder of a dataset: those that are missing, left over, or no part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from beam_tfrecord.conversion.writing.staging import PUBLISHING, STAGING_NAME
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import CONVERSION, DATASET_INFO
from beam_tfrecord.datasets.published import REJECTS_FILE, REPORT, WARNINGS_FILE
from beam_tfrecord.tfrecord import INDEX_SUFFIX, array_record_name, parse_shard_name
from beam_tfrecord.tools.verifying.faults import Fault

_SHOWN_STRANGERS = 5


def shard_names(facts: DatasetFacts) -> list[str]:
    """File names of all shards, in order."""
    return [shard.file for split in sorted(facts.splits) for shard in facts.splits[split]]


def own_names(facts: DatasetFacts) -> set[str]:
    """Names of all files that belong to a dataset."""
    shards = shard_names(facts)
    return {
        *shards,
        *(name + INDEX_SUFFIX for name in shards),
        *(array_record_name(name) for name in shards if parse_shard_name(name) is not None),
        *stated_metadata(facts),
        CONVERSION,
        DATASET_INFO,
        REJECTS_FILE,
        WARNINGS_FILE,
        REPORT,
    }


def stated_metadata(facts: DatasetFacts) -> list[str]:
    """Names of the metadata files that a dataset was made with; none where a damaged conversion.json tells of none."""
    files = facts.conversion.get("files")
    return [str(name) for name in files] if isinstance(files, list) else []


def stated_twins(facts: DatasetFacts) -> set[str]:
    """Names of the ArrayRecord files that a dataset was made with."""
    options = facts.conversion.get("options")
    if not isinstance(options, Mapping) or options.get("array_record") is not True:
        return set()
    return {array_record_name(name) for name in shard_names(facts) if parse_shard_name(name) is not None}


def check_files(names: Iterable[str], facts: DatasetFacts) -> Iterator[Fault]:
    """Files that are missing or left over. names: of everything in the folder; those of folders end in ``/``.

    Missing shards are not told here: whoever opens them does.
    """
    present = set(names)
    stated = {*stated_metadata(facts), DATASET_INFO, *stated_twins(facts)}
    for name in sorted(stated - present):
        last = ", which comes last: the publication did not end" if name == DATASET_INFO else ""
        yield Fault(name, None, None, "missing_file", f"the file is not there{last}")
    own = own_names(facts)
    for name in sorted(present - own):
        if parse_shard_name(name.removesuffix(INDEX_SUFFIX)) is not None:
            cause = f"the file looks like a shard, but {CONVERSION} does not name it: readers that match names take it"
            yield Fault(name, None, None, "leftover_file", cause)


def check_staging(names: Iterable[str], staged: Sequence[str]) -> tuple[list[Fault], list[str]]:
    """(faults, notes) about what an interrupted conversion left. staged: names in the staging place."""
    if f"{STAGING_NAME}/" not in set(names):
        return [], []
    if PUBLISHING in staged:
        cause = "a publication was interrupted: run the command that made the dataset once more, and it ends that"
        return [Fault(f"{STAGING_NAME}/{PUBLISHING}", None, None, "unfinished", cause)], []
    return [], [f"an unfinished conversion lies in {STAGING_NAME}; a reader does not see it"]


def strangers(names: Iterable[str], facts: DatasetFacts) -> list[str]:
    """A note about files that are no part of the dataset; hidden ones are passed over."""
    own = own_names(facts)
    found = sorted(
        name
        for name in names
        if name not in own and not name.startswith(".") and parse_shard_name(name.removesuffix(INDEX_SUFFIX)) is None
    )
    if not found:
        return []
    more = f" and {len(found) - _SHOWN_STRANGERS:,} more" if len(found) > _SHOWN_STRANGERS else ""
    verb = "is" if len(found) == 1 else "are"
    return [f"{', '.join(found[:_SHOWN_STRANGERS])}{more} {verb} no part of the dataset"]
