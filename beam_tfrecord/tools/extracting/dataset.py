"""What all files together give: the manifest, the labels and the flags; and the checks before anything is written."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from beam_tfrecord.annotations import feature_keys
from beam_tfrecord.core.account import AccountBuilder, merge_accounts
from beam_tfrecord.core.account import faults as law_faults
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import CONVERSION, labels_file
from beam_tfrecord.datasets.shard_files import FoundFiles, PlaceFault
from beam_tfrecord.errors import ConfigError, DatasetError
from beam_tfrecord.storage import Storage
from beam_tfrecord.storage.lease import LEASE_NAME, LeaseKey
from beam_tfrecord.tools.extracting.command import (
    ARGUMENTS,
    LABELS,
    MANIFEST,
    Told,
    arguments_file,
    convert_flags,
    joint_vocabulary,
    likely_keys,
    told_by_facts,
    undeclared_columns,
)
from beam_tfrecord.tools.extracting.layout import Layout, guess_for_extraction, layout_of, unknown_features
from beam_tfrecord.tools.extracting.paths import IMAGES, MASKS
from beam_tfrecord.tools.extracting.records import FEATURES, WITHOUT_VALUE
from beam_tfrecord.tools.extracting.shards import (
    STAGING,
    ColumnUse,
    LeftOut,
    Seen,
    ShardExtract,
    ShardToExtract,
)
from beam_tfrecord.tools.verifying.agreement import joint
from beam_tfrecord.tools.verifying.faults import Fault, FaultCounts

RESULT = f"{STAGING}/result.json"
_OWN_FILES = (MANIFEST, LABELS, ARGUMENTS)
_OWN_FOLDERS = (IMAGES, MASKS, STAGING)
_COPY_BYTES = 1 << 22


@dataclass(frozen=True)
class Extraction(FaultCounts):
    """What was extracted.

    flags: with which convert makes the same records. account: what became of all records and features, as JSON has it
    (see :mod:`beam_tfrecord.core.account`). notes: what could not be known or kept. unlisted: faults that are
    counted only, by code.
    """

    records: int = 0
    shards: int = 0
    faults: tuple[Fault, ...] = ()
    unlisted: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    account: Mapping[str, Any] = field(default_factory=dict)


def extraction_from_json(data: bytes) -> Extraction:
    """The extraction in the JSON that :func:`finish` wrote."""
    values = json.loads(data)
    lists = {name: tuple(values[name]) for name in ("notes", "flags")}
    return Extraction(**{**values, **lists, "faults": tuple(Fault(**fault) for fault in values["faults"])})


# ---------------------------------------------------------------------------------------------------------------------
# Before


def shards_to_extract(found: FoundFiles, split: str | None = None) -> list[ShardToExtract]:
    """The files in the order of the manifest: by split, then by shard.

    split: only this one; raises ConfigError when it is not there.
    """
    by_split: dict[str, list[Any]] = {}
    for file in found.of_split(split):
        by_split.setdefault(file.split, []).append(file)
    ordered = [(file, index, len(files)) for _, files in sorted(by_split.items()) for index, file in enumerate(files)]
    return [ShardToExtract(file, number, index, count) for number, (file, index, count) in enumerate(ordered)]


def known_layout(found: FoundFiles) -> Layout | None:
    """What is known of the records; None when nothing tells."""
    return layout_of(found.facts) if found.facts is not None else None


def clear_output(output: str, found: FoundFiles, storage: Storage, *, overwrite: bool) -> None:
    """Make the folder ready. Raises what :func:`check_output` raises."""
    names = check_output(output, found, storage, overwrite=overwrite)
    storage.delete([f"{output}/{name}" for name in _OWN_FILES if name in names])
    for name in _OWN_FOLDERS:
        if name in names:
            storage.delete_tree(f"{output}/{name}")


def check_output(output: str, found: FoundFiles, storage: Storage, *, overwrite: bool) -> set[str]:
    """The names of what lies in the folder. Raises ConfigError when it holds something that must not be replaced, and
    StorageError while another run writes there, unless that is this one."""
    if not output:
        raise ConfigError("--output is needed: the folder of the images and the manifest")
    if output == found.folder:
        raise ConfigError(f"--output {output} is the dataset itself: name another folder")
    if storage.is_file(output):
        raise ConfigError(f"--output {output} is a file: name a folder")
    names = {name.rstrip("/") for name in storage.list_folder(output)} if storage.is_folder(output) else set()
    names.discard(LEASE_NAME)
    if not names:
        return names
    if not names & {MANIFEST, STAGING}:
        told = ", ".join(sorted(names)[:3])
        raise ConfigError(f"{output} holds other files ({told}): name an empty or new folder")
    if not overwrite:
        raise ConfigError(f"{output} holds an extracted dataset already: give --overwrite to replace it")
    return names


# ---------------------------------------------------------------------------------------------------------------------
# After


def finish(
    reports: Iterable[ShardExtract],
    shards: Sequence[ShardToExtract],
    facts: DatasetFacts | None,
    output: str,
    storage: Storage,
    place_faults: Sequence[PlaceFault] = (),
    lease: LeaseKey | None = None,
) -> Extraction:
    """Put the parts together and write what belongs to them; the manifest gets its name last.

    place_faults: what is wrong with the files together, as far as it was seen before. lease: of the folder. Raises
    StorageError when that is another run's by now.
    """
    if lease is not None:
        lease.confirm(storage)
    ordered = sorted(reports, key=lambda report: report.number)
    notes: list[str] = []
    counts: dict[str, list[int]] = {}
    for report in ordered:
        counts.setdefault(report.split or "train", []).append(report.records)
    account = AccountBuilder()
    account.add(merge_accounts(report.account for report in ordered))
    further = [Fault(fault.file, None, None, fault.code, fault.cause) for fault in place_faults]
    if facts is not None:
        told = told_by_facts(facts, counts)
        further += [
            _lost(key, "it is of a kind of annotation that is not known here") for key in unknown_features(facts)
        ]
    else:
        told = _told_by_records(ordered, [shard.file.name for shard in shards], counts, notes, further, account)
    flags = convert_flags(told, output)
    unlisted: Counter[str] = Counter()
    for report in ordered:
        unlisted.update(report.unlisted)
    extraction = Extraction(
        records=sum(report.records for report in ordered),
        shards=len(shards),
        faults=(*(fault for report in ordered for fault in report.faults), *further),
        unlisted=dict(sorted(unlisted.items())),
        notes=tuple(notes),
        flags=tuple(flags),
        account={**account.account().to_json(), "unaccounted": law_faults(account.account())},
    )
    if told.vocabulary is not None:
        storage.write_bytes(f"{output}/{LABELS}", labels_file(told.vocabulary))
    storage.write_bytes(f"{output}/{ARGUMENTS}", arguments_file(flags).encode("utf-8", "surrogateescape"))
    _join_parts(shards, output, storage)
    storage.write_bytes(f"{output}/{RESULT}", json.dumps(dataclasses.asdict(extraction)).encode())
    if lease is not None:
        lease.end_of_job(storage)
    return extraction


def _join_parts(shards: Sequence[ShardToExtract], output: str, storage: Storage) -> None:
    whole = f"{output}/{STAGING}/{MANIFEST}"
    with storage.open_write(whole) as manifest:
        for shard in shards:
            with storage.open(f"{output}/{shard.part}") as part:
                while data := part.read(_COPY_BYTES):
                    manifest.write(data)
    storage.rename(whole, f"{output}/{MANIFEST}")


def _lost(key: str, why: str, place: Seen | None = None, files: Sequence[str] = (), records: int = 0) -> Fault:
    """The fault about a feature that is left out."""
    times = f" ({records:,} records)" if records else ""
    cause = f"{key} is left out{times}: {why}"
    if place is None:
        return Fault(CONVERSION, None, None, "lost_feature", cause)
    return Fault(files[place.file], place.record, place.offset, "lost_feature", cause)


def _told_by_records(
    reports: Sequence[ShardExtract],
    files: Sequence[str],
    counts: Mapping[str, Sequence[int]],
    notes: list[str],
    faults: list[Fault],
    account: AccountBuilder,
) -> Told:
    """What the records themselves tell, where there is no conversion.json; notes about what was guessed, and faults
    about what cannot be kept."""
    notes.append("no conversion.json tells of these files: what is not named below was guessed from their keys")
    uses: dict[str, ColumnUse] = {}
    lost: dict[str, LeftOut] = {}
    for report in reports:
        for key, left in report.left_out.items():
            if key in lost:
                lost[key].add(left)
            else:
                lost[key] = replace(left)
        for name, use in report.columns.items():
            uses.setdefault(name, ColumnUse()).add(use)
    keys = {key for report in reports for key in report.keys}
    is_raw = "raw" in guess_for_extraction(keys)
    preset, renames = likely_keys(keys)
    taken = set(feature_keys(preset, renames, raw=is_raw).values())
    columns, left_out = undeclared_columns(uses, sum(report.rows for report in reports), taken)
    for key, use in uses.items():
        account.name(FEATURES, WITHOUT_VALUE, key, use.count - use.valued)
        if key in left_out:
            account.name(FEATURES, left_out[key], key, use.valued)
        else:
            account.use(FEATURES, "kept", use.valued)
    for key, why in left_out.items():
        place = max(uses[key].dtypes.values())  # with several types that where the second one was seen
        faults.append(_lost(key, why, place, files, uses[key].valued))
    faults += [_lost(key, left.why, left.place, files, left.count) for key, left in sorted(lost.items())]
    agreement = joint(report.agreement for report in reports)
    faults += agreement.type_faults(besides=left_out)
    wrong_labels = list(agreement.label_faults())
    faults += wrong_labels
    vocabulary, moved = joint_vocabulary(agreement.labels) if not wrong_labels else (None, [])
    notes += [*moved, *agreement.notes()]
    if wrong_labels:
        notes.append("the ids of the labels are no vocabulary: conversion numbers the names anew")
    has_images = any(report.has_images for report in reports)
    tables = [report.first_table for report in reports if report.first_table is not None]
    if has_images and tables:
        cause = (
            "the record has no image and others have one: convert cannot mix them, so take the lines of one kind out"
        )
        first = min(tables)
        faults.append(Fault(files[first.file], first.record, first.offset, "wrong_features", cause))
    options = {"rename": renames, "image_format": "raw" if is_raw else "keep"}
    return Told(columns, vocabulary, preset, "none", options, counts, has_images)


def read_result(output: str, storage: Storage) -> Extraction:
    """What the pipeline left for the process that started it; the staging place is deleted."""
    uri = f"{output}/{RESULT}"
    try:
        with storage.open(uri) as file:
            extraction = extraction_from_json(file.read())
    except FileNotFoundError:
        raise DatasetError(f"the pipeline ended, but what it did is not told at {uri}") from None
    storage.delete_tree(f"{output}/{STAGING}")
    return extraction
