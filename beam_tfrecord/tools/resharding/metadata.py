"""The metadata of a result: what the inputs counted, added up, about shards that are new."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from beam_tfrecord.annotations.base import Schema
from beam_tfrecord.conversion.writing.statistics import (
    SAMPLE_GROUPS,
    add_statistics,
    placed_statistics,
    told_statistics,
)
from beam_tfrecord.core.account import faults, merge_accounts
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import (
    CONVERSION,
    DatasetDescription,
    PublishedShard,
    dataset_files,
    library_versions,
)
from beam_tfrecord.datasets.metadata.text import json_file
from beam_tfrecord.datasets.published import PUBLISHED
from beam_tfrecord.publishing.gathering import added
from beam_tfrecord.publishing.publish import ConservationError
from beam_tfrecord.storage import name_of, public_uri
from beam_tfrecord.tools.resharding.accounts import account_of_metadata
from beam_tfrecord.tools.resharding.agreement import merge_specs
from beam_tfrecord.tools.resharding.options import ReshardOptions
from beam_tfrecord.tools.resharding.sources import Source

HISTORY = "resharded"
# Options that decide how records are read: where they differ and records are the same all the same, the first counts.
_DECIDING = ("columns", "rename", "image_format")
_NO_SAMPLES: Mapping[str, Any] = {**{group: {} for group in SAMPLE_GROUPS}, "unlabelled": []}


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
