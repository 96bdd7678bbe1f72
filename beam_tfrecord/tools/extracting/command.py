"""The flags with which ``convert`` makes the same records of what was extracted."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.annotations import feature_keys
from beam_tfrecord.annotations.base import Vocabulary
from beam_tfrecord.annotations.keys import PRESETS
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.options.values import Column
from beam_tfrecord.tools.extracting.layout import columns_of, guess_for_extraction
from beam_tfrecord.tools.extracting.shards import ColumnUse
from beam_tfrecord.tools.verifying.agreement import can_be_column

MANIFEST = "manifest.jsonl"
LABELS = "labels.txt"
ARGUMENTS = "convert.args"
# Options that are told again as they were: what they decide is not in the records, or the same for them.
_KEPT = ("seed", "max_pixels", "validate", "shard_size", "name")
_SWITCHES = ("one_hot", "index", "array_record")
_DEFAULTS: Mapping[str, Any] = {"seed": 0, "max_pixels": 150_000_000, "validate": "full", "shard_size": 128 * 2**20}


@dataclass(frozen=True)
class Told:
    """What the flags are made of.

    columns: that become features. vocabulary: of labels.txt, or None when there is no such file. preset, rename: of
    the keys. options: of the conversion, as conversion.json has them. shards: records of each shard by split.
    """

    columns: tuple[Column, ...]
    vocabulary: Vocabulary | None
    preset: str
    compression: str
    options: Mapping[str, Any]
    shards: Mapping[str, Sequence[int]]
    has_images: bool = True


def told_by_facts(facts: DatasetFacts, shards: Mapping[str, Sequence[int]]) -> Told:
    """What a conversion.json tells."""
    return Told(
        columns=columns_of(facts),
        vocabulary=facts.vocabulary if len(facts.vocabulary) else None,
        preset=str(facts.conversion["keys"]),
        compression=facts.compression,
        options=facts.conversion["options"],
        shards=shards,
        has_images="encoded" in facts.keys or "raw" in facts.keys,
    )


def likely_keys(present: Iterable[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """(preset, renames) under which conversion calls most features as records from elsewhere do."""
    found = guess_for_extraction(present)
    own_keys = {preset: feature_keys(preset, raw="raw" in found) for preset in PRESETS[1:]}
    fitting = {preset: sum(own.get(name) == key for name, key in found.items()) for preset, own in own_keys.items()}
    best = max(PRESETS[1:], key=fitting.__getitem__)
    own = own_keys[best]
    renames = tuple(
        (own[name], key)
        for name, key in sorted(found.items())
        if name in own and own[name] != key and not {",", "="} & {*own[name], *key}
    )
    return ("imagenet" if best == "od" and "object_label" not in found else best), renames


def undeclared_columns(
    uses: Mapping[str, ColumnUse], rows: int, taken: Container[str] = ()
) -> tuple[tuple[Column, ...], dict[str, str]]:
    """(columns that can be declared, why others cannot, by name), from what records from elsewhere hold.

    A feature without any value in any record is neither. rows: how many could have them. taken: keys of other features.
    """
    columns, left_out = [], {}
    for name, use in sorted(uses.items()):
        if not use.dtypes and len(use.empty) != 1:
            continue
        if len(use.dtypes) > 1:
            left_out[name] = f"it holds {' and '.join(sorted(use.dtypes))}, and a column has one type"
            continue
        if not can_be_column(name):
            left_out[name] = "no column can be called so"
            continue
        if name in taken:
            left_out[name] = "convert makes a feature of that name itself"
            continue
        (dtype,) = use.dtypes or use.empty
        columns.append(Column(name, "string" if dtype == "bytes" else dtype, not (use.is_single and use.count == rows)))
    return tuple(columns), left_out


def joint_vocabulary(labels: Mapping[tuple[str, int], str]) -> tuple[Vocabulary | None, list[str]]:
    """(the one vocabulary of a dataset, what had to be changed for it), from names by (list of ids, id).

    A conversion has one vocabulary, other datasets may have one for the images and another for their objects: where an
    id has two names in them, that of the image keeps its ids, and what is new in the others is numbered behind them.
    None when there are no names or they cannot be a vocabulary.
    """
    lists: dict[str, dict[int, str]] = {}
    for (name, number), label in sorted(labels.items(), key=lambda item: (item[0][0] != "label", item[0])):
        lists.setdefault(name, {})[number] = label
    merged: dict[int, str] = {}
    moved = []
    for own in lists.values():
        ids = {label: number for number, label in merged.items()}
        is_clash = any(
            merged.get(number, label) != label or ids.get(label, number) != number for number, label in own.items()
        )
        for number, label in own.items():
            new = number
            if is_clash:
                new = ids[label] if label in ids else max(merged, default=-1) + 1
            merged[new] = label
            if new != number:
                moved.append(f"{label} {number} -> {new}")
    told = [f"the objects have a vocabulary of their own, and get other ids: {', '.join(moved)}"] if moved else []
    return told_vocabulary(merged), told


def told_vocabulary(labels: Mapping[int, str]) -> Vocabulary | None:
    """The vocabulary of names by id; None when there are none, or they cannot be one."""
    ids = tuple(sorted(labels))
    names = tuple(labels[number] for number in ids)
    if not ids or ids[0] < 0 or len(set(names)) < len(names) or not all(names):
        return None
    return Vocabulary(names, ids[0], ids)


def convert_flags(told: Told, output: str) -> list[str]:
    """The flags but for --output. output: folder of the manifest."""
    options = told.options
    flags = [f"--input={output}/{MANIFEST}", "--format=extracted", f"--keys={told.preset}"]
    renames = [(str(old), str(new)) for old, new in options.get("rename") or ()]
    if renames:
        flags.append("--rename=" + ",".join(f"{old}={new}" for old, new in renames))
    if told.columns:
        flags.append("--columns=" + ",".join(f"{c.name}:{c.type}{'[]' * c.is_list}" for c in told.columns))
    flags += _label_flags(told, output)
    if told.has_images:
        flags.append("--orientation=ignore")  # what was turned is turned
        if options.get("image_format") == "raw":
            flags.append("--image_format=raw")
    flags += shard_flags(told.shards)
    if told.compression != "none":
        flags.append(f"--compression={told.compression}")
    for name in _KEPT:
        value = options.get(name)
        if value is not None and value != _DEFAULTS.get(name):
            flags.append(f"--{name}={value}")
    return flags + [f"--{name}" for name in _SWITCHES if options.get(name)]


def _label_flags(told: Told, output: str) -> list[str]:
    vocabulary = told.vocabulary
    if vocabulary is None:
        return []
    labels = f"--labels={output}/{LABELS}"
    first = vocabulary.ids[0]
    if vocabulary.ids == tuple(range(first, first + len(vocabulary))):
        return [labels, f"--label_offset={first}"]
    return [labels, "--label_ids=" + ",".join(map(str, vocabulary.ids))]


def shard_flags(shards: Mapping[str, Sequence[int]]) -> list[str]:
    """--num_shards where that cuts the records as they were cut, else the numbers of records themselves."""
    lengths = {split: [count for count in counts if count] for split, counts in sorted(shards.items())}
    lengths = {split: counts for split, counts in lengths.items() if counts}
    if not lengths:
        return []
    if all(_is_even(counts) for counts in lengths.values()):
        return ["--num_shards=" + ",".join(f"{split}={len(counts)}" for split, counts in lengths.items())]
    return ["--shard_records=" + ",".join(f"{split}={'+'.join(map(str, counts))}" for split, counts in lengths.items())]


def _is_even(counts: Sequence[int]) -> bool:
    total, end = sum(counts), 0
    for number, count in enumerate(counts, start=1):
        end += count
        if end != total * number // len(counts):
            return False
    return True


def arguments_file(flags: Iterable[str]) -> str:
    """convert.args: the flags, quoted as in a shell, one per line."""
    return "".join(f"{shlex.quote(flag)}\n" for flag in flags)


def command_line(flags: Iterable[str]) -> str:
    """The whole command for a person to copy."""
    return shlex.join(["beam-tfrecord", "convert", *flags, "--output=NEW_FOLDER"])
