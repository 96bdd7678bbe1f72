"""What the looks at all pictures of a conversion say together: findings, and what the report shows of them.

Pictures are numbered in the order of the shards. Of each, 40 bytes are held while pairs are looked for (the hash of its
content and, of the first of its copies, its fingerprint); all else is read again from the looks that the writers left,
for those that need it. Above MOST_PICTURES memory does not grow any more: copies are found through temporary files,
nobody looks for near pairs, and what is usual is told from a part of the pictures.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beam_tfrecord.conversion.writing.names import Name, read_name
from beam_tfrecord.conversion.writing.staging import read_lines, staged_of
from beam_tfrecord.core.elements import Finding, WrittenShard
from beam_tfrecord.insight.fingerprints import BITS, Fingerprints
from beam_tfrecord.insight.looks import LOOK, Looks
from beam_tfrecord.insight.neighbours import (
    MOST_PICTURES,
    NEAR_BITS,
    NO_PAIRS,
    Nearest,
    Pairs,
    alike,
    clusters_of,
    near_pairs,
    numbers_of,
    pairs_of_copies,
    with_copies,
)
from beam_tfrecord.insight.rules import Odd, Outlines, is_common, odd_pictures, outliers, usual_in
from beam_tfrecord.publishing.leaks import repeated_hashes
from beam_tfrecord.storage import Storage

STAGE = "insight"
MOST_LINES = 50_000  # of warnings.jsonl for each code: the worst
SHOWN_CLUSTERS, SHOWN_OF_CLUSTER, SHOWN_WORST = 40, 6, 12  # of the report, as pictures
LISTED = 200  # of each code, in its table
_LOOKS_AT_ONCE = 1 << 14  # that are read together: 6 MB
_THUMBNAILS_AT_ONCE = 1 << 17  # pairs whose thumbnails are held together: 64 MB at most

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Insights:
    """findings: for warnings.jsonl. told: for statistics.json."""

    findings: list[Finding] = field(default_factory=list)
    told: dict[str, Any] = field(default_factory=dict)


class Item(NamedTuple):
    """A record by its number, and how people know it."""

    split: str
    origin: str
    uri: str
    labels: str


@dataclass(frozen=True)
class LookFiles:
    """The looks of all shards with records, in order. starts: number of the first picture of each."""

    shards: Sequence[WrittenShard]
    output: str
    storage: Storage
    starts: Sequence[int]

    @property
    def total(self) -> int:
        """How many pictures there are."""
        return sum(shard.num_records for shard in self.shards)

    def rows(self, wanted: Numbers | None = None) -> Iterator[tuple[int, Looks]]:
        """Looks at pictures that follow one another, some thousands at a time, and the number of the first of them.

        wanted: sorted numbers; shards without any of these are left out.
        """
        for shard, start in zip(self.shards, self.starts, strict=True):
            if wanted is not None and not len(_within(wanted, start, shard.num_records)):
                continue
            uri = staged_of(self.output, shard).looks
            if not self.storage.is_file(uri):
                continue
            with self.storage.open(uri) as file:
                while data := file.read(_LOOKS_AT_ONCE * LOOK.itemsize):
                    rows = np.frombuffer(data, LOOK)
                    yield start, rows
                    start += len(rows)

    def column(self, name: str, numbers: Numbers) -> npt.NDArray[Any]:
        """What the looks at some pictures, whose numbers are sorted, tell under a name of LOOK."""
        found: npt.NDArray[Any] = np.zeros(len(numbers), LOOK[name])
        for start, rows in self.rows(numbers):
            own = _within(numbers, start, len(rows))
            place = np.searchsorted(numbers, start)
            found[place : place + len(own)] = rows[name][own - start]
        return found

    def shard_numbers(self, numbers: Numbers) -> Numbers:
        """Which shard each picture lies in."""
        return np.searchsorted(np.array(self.starts), numbers, side="right") - 1

    def items(self, numbers: Iterable[int]) -> dict[int, Item]:
        """How the records with these numbers are known."""
        wanted = np.array(sorted(set(numbers)), np.int64)
        found: dict[int, Item] = {}
        for shard, start in zip(self.shards, self.starts, strict=True):
            own = _within(wanted, start, shard.num_records)
            if not len(own):
                continue
            places = set((own - start).tolist())
            lines = read_lines(self.storage, staged_of(self.output, shard).items)
            for place, line in enumerate(itertools.islice(lines, max(places) + 1)):
                if place in places:
                    _, origin, uri, labels = line.decode("utf-8", "surrogateescape").split("\t")
                    found[start + place] = Item(shard.split, origin, uri, labels)
        return found

    def names(self, numbers: Iterable[int]) -> dict[int, Name]:
        """As what the records with these numbers are known, where it was noted."""
        wanted = set(numbers)
        found: dict[int, Name] = {}
        for shard, start in zip(self.shards, self.starts, strict=True):
            if wanted.isdisjoint(range(start, start + shard.num_records)):
                continue
            for number, line in enumerate(read_lines(self.storage, staged_of(self.output, shard).names), start):
                if number in wanted:
                    found[number] = read_name(line)
        return found


def _within(numbers: Numbers, start: int, count: int) -> Numbers:
    """Those of sorted numbers that are among so many from ``start`` on."""
    return numbers[np.searchsorted(numbers, start) : np.searchsorted(numbers, start + count)]


def look_files(written: Sequence[WrittenShard], output: str, storage: Storage) -> LookFiles:
    """The looks that the writers of these shards left."""
    shards = [shard for shard in written if shard.num_records]
    starts = [0, *itertools.accumulate(shard.num_records for shard in shards)][: len(shards)]
    return LookFiles(shards, output, storage, starts)


def find_insights(
    shards: Sequence[WrittenShard],
    output: str,
    storage: Storage,
    file_of: Callable[[tuple[str, int]], str],
    classes: Mapping[str, Mapping[str, int]],
    most_lines: int = MOST_LINES,
) -> Insights:
    """Everything that stands out, in findings and for the report.

    shards: sorted by split and index. file_of: the final name of a shard by these. classes: uses of labels by split.
    Of up to MOST_PICTURES pictures 40 bytes of each are held; of more, only those that are copies.
    """
    files = look_files(shards, output, storage)
    odd, seen = _odd_ones(files, most_lines)
    common = {code: odd.pop(code).count for code in sorted(odd) if is_common(code, odd[code].count, seen)}
    near, conflicts = _near_ones(files)
    counts: Counter[str] = Counter({code: found.count for code, found in odd.items() if found.count})
    wanted = {number for found in odd.values() for number in found.numbers.tolist()}
    told_pairs = {code: _worst(pairs, most_lines) for code, pairs in (*near.items(), ("label_conflict", conflicts))}
    counts.update({code: len(pairs) for code, pairs in (*near.items(), ("label_conflict", conflicts)) if len(pairs)})
    for pairs in told_pairs.values():
        wanted.update(pairs.first.tolist(), pairs.second.tolist())
    clusters = clusters_of(near["near_duplicate"].joined(near["near_leak"]))
    shown = sorted(clusters, key=lambda own: (-len(own), own[0]))[:SHOWN_CLUSTERS]
    wanted.update(number for own in shown for number in own[:SHOWN_OF_CLUSTER].tolist())
    items = files.items(wanted)
    listed: dict[str, list[dict[str, Any]]] = {
        code: [
            {**_known_as(items[number]), "score": score}
            for number, score in zip(found.numbers[:LISTED].tolist(), found.scores.tolist(), strict=False)
        ]
        for code, found in odd.items()
    }
    findings = [
        Finding(item.origin, item.uri, STAGE, code, f"in split {item.split}: {text}", score)
        for code, found in odd.items()
        for number, score, text in zip(found.numbers.tolist(), found.scores.tolist(), found.texts, strict=True)
        for item in (items[number],)
    ]
    for code, pairs in told_pairs.items():
        findings += _told_pairs(code, pairs, items)
        listed[code] = [
            {**_known_as(items[second]), "score": _score(distance), "other": _known_as(items[first])}
            for first, second, distance in zip(
                *(column[:LISTED].tolist() for column in (pairs.first, pairs.second, pairs.distance)), strict=True
            )
        ]
    one_sided = _one_sided_classes(shards, classes)
    if one_sided:
        counts["class_only_in_one_split"] = len(one_sided)
    counts.update(dict.fromkeys(common, 1))
    groups = [own[:SHOWN_OF_CLUSTER].tolist() for own in shown]
    told_conflicts = told_pairs["label_conflict"]
    beside = np.stack((told_conflicts.first, told_conflicts.second), axis=1)[:SHOWN_WORST].tolist()
    worst = {code: found.numbers[:SHOWN_WORST].tolist() for code, found in sorted(odd.items()) if len(found.numbers)}
    place = _places(files, itertools.chain(*groups, *beside, *worst.values()), items, file_of)
    told = {
        "pictures": files.total,
        "looked_at": seen,
        "found": dict(sorted(counts.items())),
        "common": common,
        "most_lines": most_lines,
        "clusters": [[place[number] for number in own] for own in groups],
        "conflicts": [[place[number] for number in own] for own in beside],
        "worst": {
            code: [
                {**place[number], "score": float(score)} for number, score in zip(own, odd[code].scores, strict=False)
            ]
            for code, own in worst.items()
        },
        "listed": {code: rows for code, rows in sorted(listed.items()) if rows},
    }
    return Insights([*findings, *one_sided, *_common_findings(common, seen)], told)


# ---------------------------------------------------------------------------------------------------------------------
# Pictures that stand out


@dataclass
class _Found:
    """The worst pictures of a code, the worst first. count: of all."""

    count: int = 0
    numbers: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    scores: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    texts: list[str] = field(default_factory=list)

    def add(self, odd: Odd, start: int, most: int) -> None:
        """Take in what a rule found among the pictures from a number on."""
        if not len(odd.numbers):
            return
        self.count += len(odd.numbers)
        numbers = np.concatenate((self.numbers, odd.numbers + start))
        scores = np.concatenate((self.scores, odd.scores))
        texts = [*self.texts, *(odd.text.format(value) for value in odd.values.tolist())]
        order = np.lexsort((numbers, -scores))[:most]
        self.numbers, self.scores, self.texts = numbers[order], scores[order], [texts[place] for place in order]


def _odd_ones(files: LookFiles, most: int) -> tuple[dict[str, _Found], int]:
    """What the rules find, by code, and how many pictures were looked at."""
    found: dict[str, _Found] = {}
    outlines, seen = [], 0
    step = max(1, -(-files.total // MOST_PICTURES))  # of more pictures every other one, and so on, tells what is usual
    for start, rows in files.rows():
        for odd in odd_pictures(rows):
            found.setdefault(odd.code, _Found()).add(odd, start, most)
        outlines.append(_outlines_of(rows[-start % step :: step]))
        seen += int(rows["seen"].sum())
    if not outlines:
        return found, seen
    together = Outlines(*map(np.concatenate, zip(*outlines, strict=True)))
    del outlines
    usual = usual_in(together)
    if usual is None:
        return found, seen
    parts = [(0, together)] if step == 1 else ((start, _outlines_of(rows)) for start, rows in files.rows())
    for start, own in parts:
        for odd in outliers(own, usual):
            found.setdefault(odd.code, _Found()).add(odd, start, most)
    return found, seen


def _outlines_of(rows: Looks) -> Outlines:
    return Outlines(*(rows[name].copy() for name in Outlines._fields))


# ---------------------------------------------------------------------------------------------------------------------
# Pictures that are nearly the same


class Alike(NamedTuple):
    """near: pairs of pictures that are nearly the same, each the first one of all with its content. copies: pictures
    with the same content, each beside the first of them."""

    near: Pairs
    copies: Pairs


def find_alike(files: LookFiles) -> Alike:
    """All pairs that are found; above MOST_PICTURES copies only."""
    if files.total > MOST_PICTURES:
        return Alike(NO_PAIRS, _found_copies(files))
    contents = np.zeros(files.total, np.uint64)
    is_wanted = np.zeros(files.total, np.bool_)
    for start, rows in files.rows():
        own = slice(start, start + len(rows))
        contents[own], is_wanted[own] = rows["content"], rows["alike"] == 1
    copies = pairs_of_copies(contents)
    del contents
    is_wanted[copies.second] = False
    wanted = np.flatnonzero(is_wanted)
    prints: Fingerprints = files.column("fingerprint", wanted)
    near = near_pairs(prints, np.arange(len(wanted)), NEAR_BITS).numbered(lambda places: wanted[places])
    return Alike(near.of(_look_alike(near, files)), copies)


def _look_alike(pairs: Pairs, files: LookFiles) -> npt.NDArray[np.bool_]:
    """Which pairs have thumbnails that are alike."""
    found = np.zeros(len(pairs), np.bool_)
    for start in range(0, len(pairs), _THUMBNAILS_AT_ONCE):
        own = slice(start, start + _THUMBNAILS_AT_ONCE)
        part = pairs.of(np.arange(len(pairs))[own])
        numbers = numbers_of(part)
        first, second = np.searchsorted(numbers, part.first), np.searchsorted(numbers, part.second)
        local = Pairs(first, second, part.distance, part.is_mirrored)
        found[own] = alike(local, files.column("thumbnail", numbers))
    return found


def _near_ones(files: LookFiles) -> tuple[dict[str, Pairs], Pairs]:
    """The pairs to tell, by code; those whose labels contradict one another.

    Each picture is told once, beside the nearest one before it; a leak goes before a duplicate.
    """
    near, copies = find_alike(files)
    members = numbers_of(near.joined(copies))
    labels, groups = files.column("labels", members), files.column("group", members)
    number_of_split = {split: number for number, split in enumerate(sorted({shard.split for shard in files.shards}))}
    splits = np.array([number_of_split[shard.split] for shard in files.shards], np.int32)[files.shard_numbers(members)]

    def differ(values: npt.NDArray[Any], pairs: Pairs, none: Any = None) -> npt.NDArray[np.bool_]:
        one, other = (values[np.searchsorted(members, numbers)] for numbers in (pairs.first, pairs.second))
        found: npt.NDArray[np.bool_] = one != other
        return found if none is None else found & (one != none) & (other != none)

    def kinds(numbers: Numbers) -> list[npt.NDArray[Any]]:
        places = np.searchsorted(members, numbers)
        return [splits[places], groups[places], labels[places]]

    leaks, duplicates, conflicts = Nearest(members), Nearest(members), Nearest(members)
    conflicts.add(copies.of(differ(labels, copies, 0)))
    for pairs in with_copies(near, copies, kinds):
        is_leak = differ(splits, pairs) | differ(groups, pairs, 0)
        leaks.add(pairs.of(is_leak))
        duplicates.add(pairs.of(~is_leak))
        conflicts.add(pairs.of(differ(labels, pairs, 0)))
    told, others = leaks.pairs(), duplicates.pairs()
    others = others.of(~np.isin(others.second, told.second))
    return {"near_leak": told, "near_duplicate": others}, conflicts.pairs()


def _found_copies(files: LookFiles) -> Pairs:
    """Pairs of pictures with the same content: memory grows with these, not with the number of pictures."""
    known = (rows["content"][rows["content"] != 0] for _, rows in files.rows())
    repeated = np.array(sorted(repeated_hashes(known)), np.uint64)
    numbers, contents = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
    for start, rows in files.rows():
        own = np.flatnonzero(np.isin(rows["content"], repeated))
        numbers.append(own + start)
        contents.append(rows["content"][own])
    which = np.concatenate(numbers)
    return pairs_of_copies(np.concatenate(contents)).numbered(lambda places: which[places])


def _worst(pairs: Pairs, most: int) -> Pairs:
    """The nearest pairs."""
    return pairs.of(np.lexsort((pairs.second, pairs.distance))[:most])


def _told_pairs(code: str, pairs: Pairs, items: Mapping[int, Item]) -> Iterator[Finding]:
    columns = (pairs.first, pairs.second, pairs.distance, pairs.is_mirrored)
    for first, second, distance, is_mirrored in zip(*(column.tolist() for column in columns), strict=True):
        one, other = items[second], items[first]
        if one.uri == other.uri:
            continue  # one picture, listed twice
        how = "nearly the same" if distance or is_mirrored or code != "label_conflict" else "the same"
        mirrored = ", mirrored" if is_mirrored else ""
        where = "another group" if code == "near_leak" and one.split == other.split else f"split {other.split}"
        text = f"in split {one.split}: {how} picture as {other.uri} ({other.origin}) in {where}{mirrored}"
        if code == "label_conflict":
            text += f": here it is {one.labels}, there {other.labels}"
        yield Finding(one.origin, one.uri, STAGE, code, text, _score(distance), other.uri)


def _score(distance: int) -> float:
    return round(1 - distance / BITS, 4)


def _known_as(item: Item) -> dict[str, Any]:
    return {"uri": item.uri, "split": item.split, "labels": item.labels}


# ---------------------------------------------------------------------------------------------------------------------


def _common_findings(common: Mapping[str, int], seen: int) -> Iterator[Finding]:
    """What holds for a large part of a collection, once for all."""
    for code, count in common.items():
        text = (
            f"{count:,} of {seen:,} pictures are so: that is how this collection is, and they are not told one by one"
        )
        yield Finding("whole collection", "", STAGE, code, text, round(count / seen, 4))


def _one_sided_classes(shards: Sequence[WrittenShard], classes: Mapping[str, Mapping[str, int]]) -> list[Finding]:
    """Labels that are used in one of several splits only."""
    uses: dict[str, dict[str, int]] = {}
    splits = sorted({shard.split for shard in shards if shard.num_records})
    for split, counts in classes.items():
        for label, count in counts.items():
            uses.setdefault(label, {})[split] = count
    return [
        Finding(
            f"split {split}",
            "",
            STAGE,
            "class_only_in_one_split",
            f"the label {label!r} is used in split {split} only ({count:,} of {count:,} uses), of {', '.join(splits)}",
            float(count),
        )
        for label, own in sorted(uses.items())
        if len(own) == 1 and len(splits) > 1
        for split, count in own.items()
    ]


def _places(
    files: LookFiles, numbers: Iterable[int], items: Mapping[int, Item], file_of: Callable[[tuple[str, int]], str]
) -> dict[int, dict[str, Any]]:
    """Where records lie and how they are known, for the report."""
    wanted = np.array(sorted(set(numbers)), np.int64)
    columns = zip(
        wanted.tolist(),
        files.shard_numbers(wanted).tolist(),
        *(files.column(name, wanted).tolist() for name in ("offset", "size")),
        strict=True,
    )
    return {
        number: {
            "file": file_of(files.shards[shard].key),
            "record": number - files.starts[shard],
            "offset": offset,
            "size": size,
            **_known_as(items[number]),
        }
        for number, shard, offset, size in columns
    }
