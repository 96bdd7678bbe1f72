"""From staged shards to the dataset under its final names, in the way of a conversion, and the metadata of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from beam_tfrecord.annotations.base import Schema
from beam_tfrecord.conversion.writing.staging import staged_of
from beam_tfrecord.conversion.writing.statistics import (
    SAMPLE_GROUPS,
    UNLABELLED,
    add_statistics,
    placed_statistics,
    told_statistics,
)
from beam_tfrecord.core.account import faults, merge_accounts
from beam_tfrecord.core.elements import Finding, WrittenShard
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import (
    CONVERSION,
    DatasetDescription,
    PublishedShard,
    dataset_files,
    finding_line,
    library_versions,
)
from beam_tfrecord.datasets.metadata.text import json_file
from beam_tfrecord.datasets.published import PUBLISHED, REJECTS_FILE, WARNINGS_FILE
from beam_tfrecord.publishing.final_names import (
    NamedShard,
    final_names,
    is_published,
    moves,
    name_shards,
    one_publication,
    publish_moves,
    staged_files,
    token_of,
)
from beam_tfrecord.publishing.gathering import Gathered, added
from beam_tfrecord.publishing.publish import ConservationError
from beam_tfrecord.storage import Storage, name_of, public_uri
from beam_tfrecord.tools.resharding.job import ReshardJob, ReshardOptions
from beam_tfrecord.tools.resharding.repeats import find_repeats
from beam_tfrecord.tools.resharding.sources import Source, account_of_metadata, merge_specs


def publish_result(gathered: Gathered, job: ReshardJob, storage: Storage) -> list[NamedShard]:
    """Check that all records are there, and publish. May run twice with the same result.

    job: with the lengths of all files. Raises ConservationError when records are missing or doubled.
    """
    gathered = replace(gathered, shards=tuple(sorted(gathered.shards, key=lambda shard: shard.key)))
    output = job.options.folder
    _check_conservation(gathered.shards, job)
    staged = staged_files(gathered.shards, output)
    shards = name_shards(staged, job.compression)
    with one_publication(output, storage):
        if not is_published(shards, output, storage):  # else this step ran before, to its end
            _publish(gathered, shards, job, storage)
    if job.lease is not None:  # last of all, and by a step that is run again too: where it is gone, all is done
        job.lease.end_of_job(storage)
    return shards


def _publish(gathered: Gathered, shards: Sequence[NamedShard], job: ReshardJob, storage: Storage) -> None:
    """Move the shards, and write what tells of them."""
    output = job.options.folder
    files: dict[str, bytes] = {}
    if job.has_metadata:
        repeats = _repeats(gathered.shards, job, storage)
        files = result_files(
            job.sources,
            job.options,
            job.compression,
            _by_split(shards),
            gathered.statistics,
            final_names(gathered.shards, shards, output),
            Counter(finding.code for finding in repeats),
        )
        files[REJECTS_FILE] = _carried(REJECTS_FILE, job.sources, storage)
        lines = "".join(map(finding_line, repeats)).encode("utf-8", "surrogateescape")
        files[WARNINGS_FILE] = _carried(WARNINGS_FILE, job.sources, storage) + lines
    moved = [move for shard in shards for move in moves(shard, job.options.publication)]
    publish_moves(moved, files, token_of(shards), output, storage, confirm=lambda: job.confirm(storage))


def _check_conservation(shards: Sequence[WrittenShard], job: ReshardJob) -> None:
    """Every record of the inputs lies in a shard of its split, and there are no others."""
    expected: Counter[str] = Counter()
    for file in job.files:
        expected[file.split] += file.records
    written: Counter[str] = Counter()
    for shard in shards:
        written[shard.split] += shard.num_records
    if +expected != +written:
        raise ConservationError(f"{dict(expected)} records by split were to be copied, {dict(written)} were written")


def _repeats(written: Sequence[WrittenShard], job: ReshardJob, storage: Storage) -> list[Finding]:
    if not job.identities:
        return []
    shards = [(shard.split, staged_of(job.options.folder, shard).items) for shard in written]
    return find_repeats(shards, [source.name for source in job.sources], storage)


def _by_split(shards: Sequence[NamedShard]) -> dict[str, list[PublishedShard]]:
    splits: dict[str, list[PublishedShard]] = {}
    for shard in shards:
        own = shard.staged
        splits.setdefault(own.split, []).append(
            PublishedShard(shard.file, own.num_records, own.num_bytes, own.payload_bytes, own.crc32c)
        )
    return splits


def _carried(name: str, sources: Sequence[Source], storage: Storage) -> bytes:
    """The lines of all inputs, as they are."""
    parts = []
    for source in sources:
        uri = f"{source.place}/{name}"
        if storage.is_file(uri):
            with storage.open(uri) as file:
                data = file.read()
            parts.append(data if data.endswith(b"\n") or not data else data + b"\n")
    return b"".join(parts)


# ---------------------------------------------------------------------------------------------------------------------
# The metadata of a result: what the inputs counted, added up, about shards that are new.


HISTORY = "resharded"
# Options that decide how records are read: where they differ and records are the same all the same, the first counts.
_DECIDING = ("columns", "rename", "image_format")
_NO_SAMPLES: Mapping[str, Any] = {**{group: {} for group in SAMPLE_GROUPS}, UNLABELLED: []}


def result_files(
    sources: Sequence[Source],
    options: ReshardOptions,
    compression: str,
    splits: Mapping[str, Sequence[PublishedShard]],
    samples: Mapping[str, Any],
    file_of: Callable[[tuple[str, int]], str],
    warnings: Mapping[str, int],
) -> dict[str, bytes]:
    """The metadata files by name, but for the lines about rejects and warnings.

    sources: all with facts. splits: the new shards. samples: the statistics of
    all of them, added up. file_of: the file of one by split and index. warnings: counts of
    those that the inputs did not have.
    """
    facts = [source.facts for source in sources if source.facts is not None]
    conversions = [own.conversion for own in facts]
    schema = _schema(facts[0])
    description = DatasetDescription(
        name=_name(conversions, options),
        schema=schema,
        specs=merge_specs([own.specs for own in facts]),
        splits={split: tuple(shards) for split, shards in sorted(splits.items())},
        compression=compression,
        rows=sum(own["rows"] for own in conversions),
        source_rows=sum(own.get("source_rows", own["rows"]) for own in conversions),
        ignored=sum(own["ignored"] for own in conversions),
        rejected=added([own["rejected"]["by_code"] for own in conversions]),
        excluded=added([own.get("excluded", {}).get("by_option", {}) for own in conversions]),
        unmatched=[told for own in conversions for told in own.get("excluded", {}).get("unmatched", ())],
        objects=added([own.get("objects", {}) for own in conversions]),
        changed=added([own["changed"] for own in conversions]),
        warnings=added([*(own["warnings"] for own in conversions), warnings]),
        classes=_classes(sources),
        formats=added([own.get("image_formats", {}) for own in conversions]),
        rows_by_input=added([own.get("rows_by_input", {}) for own in conversions]),
        inputs=[told for own in conversions for told in own.get("inputs", ())],
        options=merged_options([own["options"] for own in conversions]),
        status=PUBLISHED,
        has_array_record=options.array_record,
        statistics={
            **merged_result_statistics([source.statistics for source in sources], samples, file_of),
            **_kept_insight(sources, splits),
        },
    )
    files = dataset_files(description)
    made = json.loads(files[CONVERSION])
    made["versions"] = merged_versions([own.get("versions", {}) for own in conversions])
    made[HISTORY] = history(sources, options, compression)
    kept = conversions[0] if len(sources) == 1 else {}  # what is told there and not known here is kept
    labels = {} if "label_ids" in made else {"label_ids": None}
    told = {name: value for name, value in {**kept, **made, **labels}.items() if value is not None}
    records = sum(file.records for source in sources for file in source.files)
    written = sum(shard.records for shards in splits.values() for shard in shards)
    accounts = [source.account for source in sources]
    account = merge_accounts([*accounts, account_of_metadata(conversions, made["features"], told, records, written)])
    if broken := faults(account):
        raise ConservationError("; ".join(broken))
    made[HISTORY][-1].update(account.to_json())
    return {**files, CONVERSION: json_file(told)}


def _name(conversions: Sequence[Mapping[str, Any]], options: ReshardOptions) -> str:
    """The name given; else a dataset keeps its own, and several together are called like the output folder."""
    kept = conversions[0].get("name") if len(conversions) == 1 else None
    return options.name or kept or name_of(options.folder) or "dataset"


def _schema(facts: DatasetFacts) -> Schema:
    """As much of the schema as metadata are made from."""
    return Schema(
        kinds=(),
        vocabulary=facts.vocabulary,
        preset=facts.conversion["keys"],
        keys=facts.keys,
        has_images="encoded" in facts.keys or "raw" in facts.keys,
        is_sequence=facts.is_sequence,
        raw="raw" in facts.keys,
    )


def _classes(sources: Sequence[Source]) -> dict[str, dict[str, int]]:
    """Uses of labels by new split."""
    parts: dict[str, list[Mapping[str, int]]] = {}
    for source in sources:
        assert source.facts is not None
        for split, counts in source.facts.conversion["classes"].items():
            if split in source.split_of:
                parts.setdefault(source.split_of[split], []).append(counts)
    return {split: added(counts) for split, counts in sorted(parts.items())}


def merged_options(options: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The options of the conversions: those in which all agree, and the inputs of all.

    What decides how records are read is taken from the first, of limits the highest.
    """
    first = options[0]
    merged: dict[str, Any] = {}
    for name, value in first.items():
        others = [own.get(name) for own in options[1:]]
        if name == "input":
            merged[name] = [place for own in options for place in own.get("input") or ()]
        elif name == "max_pixels" and value is not None:
            merged[name] = max([value, *(other for other in others if other is not None)])
        elif name in _DECIDING or all(other == value for other in others):
            merged[name] = value
    return merged


def merged_versions(versions: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The versions that made the records; several where they differ."""
    names = dict.fromkeys(name for own in versions for name in own)
    return {name: " and ".join(dict.fromkeys(own[name] for own in versions if name in own)) for name in names}


def history(sources: Sequence[Source], options: ReshardOptions, compression: str) -> list[dict[str, Any]]:
    """What was done to the inputs before, and what was done now."""
    before = [step for source in sources if source.facts for step in source.facts.conversion.get(HISTORY) or ()]
    told = options.to_json()
    step = {
        "inputs": [
            {
                "uri": source.name,
                "records": sum(file.records for file in source.files),
                "splits": dict(source.split_of),
            }
            for source in sources
        ],
        "output": public_uri(options.folder),
        **{name: told[name] for name in ("num_shards", "shard_size", "rename_splits", "index", "array_record")},
        "compression": compression,
        "versions": library_versions(),
    }
    return [*before, step]


def _kept_insight(sources: Sequence[Source], splits: Mapping[str, Sequence[PublishedShard]]) -> dict[str, Any]:
    """What is known of the pictures of one dataset: the places in its shards only where these are the same; nothing of
    several datasets, whose pictures were never held against each other."""
    told = sources[0].statistics.get("insight")
    if len(sources) > 1 or not told:
        return {}
    before = sorted((name_of(file.uri), file.split, file.records) for file in sources[0].files)
    after = sorted((shard.file, split, shard.records) for split, shards in splits.items() for shard in shards)
    return {"insight": told if before == after else {**told, "clusters": [], "conflicts": [], "worst": {}}}


def merged_result_statistics(
    statistics: Sequence[Mapping[str, Any]], samples: Mapping[str, Any], file_of: Callable[[tuple[str, int]], str]
) -> dict[str, Any]:
    """The statistics of the result; none unless all inputs have them.

    samples: the places in the new shards of records that were sampled before.
    """
    if not all(statistics):
        return {}
    totals = [placed_statistics("", {**own, "samples": _NO_SAMPLES}) for own in statistics]
    return told_statistics(add_statistics([*totals, samples]), file_of)
