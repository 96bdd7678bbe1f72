"""Valid annotation documents with odd values in them, by the hundred thousand.

Whatever stands in a document, it ends in records, rejects, or an error that names its file; nothing else is raised, no
object is lost, and the other pictures are not changed by it.

``python -m tests.fuzz_documents --count 100000 --seed 0`` runs it at length (``make fuzz``); the suite runs a sample.
Everything but Beam is done as a conversion does it: manifest, entries, survey, schema, records.
"""

from __future__ import annotations

import copy
import functools
import io
import json
import math
import random
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, BinaryIO

from beam_tfrecord.annotations.boxes import Objects
from beam_tfrecord.conversion.entries import EntryParser
from beam_tfrecord.conversion.planning.accounts import account_inputs
from beam_tfrecord.conversion.planning.dataset_plan import plan_schema
from beam_tfrecord.conversion.planning.survey import BlockBuilder
from beam_tfrecord.conversion.writing.records import EncodedRecord, RecordEncoder
from beam_tfrecord.core.account import LABEL_FILES
from beam_tfrecord.core.elements import Entry, Finding, Member, RejectedRow
from beam_tfrecord.datasets.metadata.findings import finding_line
from beam_tfrecord.errors import ConfigError, ElementError, ImageError, ManifestError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.options.config import ConvertConfig
from tests import image_samples as samples
from tests.document_seeds import PICTURES, ROOT, Parts, Path, Seed, seeds
from tests.fuzzing import Found, fuzz


class _Again(str):
    """A key that is spelled like another one of the same dict, so that JSON has it twice."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        2,
        7,
        -1,
        -1000,
        0.0,
        -0.0,
        0.5,
        1.5,
        3.0,
        1e308,
        -1e308,
        1e-320,
        2**31,
        2**63,
        -(2**63),
    ),
    *(
        10**30,
        10**308,
        10**400,
        math.nan,
        math.inf,
        -math.inf,
        "",
        " ",
        "x",
        "1",
        "1.0",
        "-1",
        "--1",
        "1e5",
        "nan",
        "inf",
    ),
    *("²", "٣", "true", "null", "none", "\ud800", "\udc80", "a\ud83d", "\0", "a\nb", "a,b", '"', "9" * 5000, "é" * 300),
    *([], {}, [[]], [None], [{}], {"": None}, {"id": 1}, {"1": 2, "3": 4}, [1], [1, 2, 3, 4], ["1", "2", "3", "4"]),
    *([1, 2, 3, 4, 5, 6], [[1, 2, 3, 4, 5, 6]], [[1, 2, 3, None, 5, 6]], [[math.nan] * 6], ["123456"], "123456"),
    *({"size": [48, 64], "counts": "x"}, {"size": "24", "counts": "0"}, {"size": [10**9] * 2, "counts": [10**18]}),
    *(nested(20), nested(300), nested(5000 if sys.version_info < (3, 12) else 900), "a.png", "b.png", "../../x.png"),
    *("gs://b/x.png", "http://x/y.png", "file:///x", "C:\\x\\a.png", "/m/a.png", "[" * 3000, "[1, [2"),
)


DEEPEST = 12


@dataclass(frozen=True)
class Mutant:
    """A changed document. owners: the pictures that the changed nodes speak of; None: any."""

    seed: Seed
    tree: Any
    owners: frozenset[str] | None
    told: str


def nodes(tree: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all nodes, the outermost first; of what is nested without end, of the first ones."""
    yield path
    if len(path) > DEEPEST:
        return
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield from nodes(value, (*path, key))


def changed(tree: Any, path: Path, change: str, value: Any) -> Any:
    """The tree with one node replaced, taken out, put there twice, or (a key) spelled twice."""
    if not path:
        return value if change == "replace" else tree
    tree = copy.copy(tree)
    if len(path) > 1:
        tree[path[0]] = changed(tree[path[0]], path[1:], change, value)
    elif change == "replace":
        tree[path[0]] = value
    elif change == "remove":
        del tree[path[0]]
    elif isinstance(tree, list):
        tree.insert(path[0], tree[path[0]] if change == "repeat" else value)
    elif change == "repeat" and isinstance(path[0], str):
        tree[_Again(path[0])] = tree[path[0]]
    elif isinstance(path[0], str):
        tree[_Again(path[0])] = value
    return tree


def single_changes() -> Iterator[tuple[Seed, Path, str, Any]]:
    """Each node of each document replaced by each odd value, taken out, put twice, and put twice with each value."""
    for seed in seeds():
        for path in nodes(seed.tree):
            for value in ODD:
                yield seed, path, "replace", value
                if path:
                    yield seed, path, "insert", value
            if path:
                yield seed, path, "remove", None
                yield seed, path, "repeat", None


def random_changes(rng: random.Random) -> Iterator[Mutant]:
    """One to four changes at once, without end."""
    every = list(seeds())
    while True:
        seed = rng.choice(every)
        mutant = unchanged(seed)
        for _ in range(rng.choice((1, 2, 2, 3, 4))):
            path = rng.choice([path for path in nodes(mutant.tree) if path] or [()])
            change = rng.choice(("replace", "replace", "replace", "remove", "repeat", "insert"))
            mutant = _mutated(mutant, path, change, rng.choice(ODD))
        yield mutant


def unchanged(seed: Seed) -> Mutant:
    return Mutant(seed, seed.tree, frozenset(), seed.name)


def _mutated(mutant: Mutant, path: Path, change: str, value: Any) -> Mutant:
    told = f"{mutant.told}; {change} {'.'.join(map(str, path))} by {_short(value)}"
    tree = changed(mutant.tree, path, change, value)
    before, after = _owners(mutant.seed, mutant.tree, path), _owners(mutant.seed, tree, path)
    if change == "remove":
        after = frozenset()
    is_open = before is None or after is None or mutant.owners is None
    return Mutant(mutant.seed, tree, None if is_open else before | after | mutant.owners, told)


def _owners(seed: Seed, tree: Any, path: Path) -> frozenset[str] | None:
    try:
        return seed.owners(tree, path)
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError):
        return None  # nothing is said of what a changed node speaks of


def _short(value: Any) -> str:
    try:
        return repr(value)[:60]
    except (RecursionError, ValueError):
        return type(value).__name__


# ---------------------------------------------------------------------------------------------------------------------
# A conversion without Beam


class MemoryFiles:
    """Files that are held in memory, as manifests see them."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def open(self, uri: str) -> BinaryIO:
        if uri not in self._files:
            raise FileNotFoundError(uri)
        return io.BytesIO(self._files[uri])

    def size(self, uri: str) -> int:
        return len(self.open(uri).read())

    def is_file(self, uri: str) -> bool:
        return uri in self._files

    def is_folder(self, uri: str) -> bool:
        return any(name.startswith(uri.rstrip("/") + "/") for name in self._files)

    def walk(self, uri: str) -> Iterator[FileInfo]:
        yield from (FileInfo(name) for name in sorted(self._files) if name.startswith(uri.rstrip("/") + "/"))

    def match(self, pattern: str) -> list[FileInfo]:
        return [FileInfo(pattern)] if pattern in self._files else []

    def list_folder(self, uri: str) -> list[str]:
        below = (name.removeprefix(uri.rstrip("/") + "/") for name in self._files if self.is_folder(uri))
        parts = (name.partition("/")[:2] for name in below if not name.startswith("/"))
        return sorted({"".join(part) for part in parts})

    def join(self, base: str, path: str) -> str:
        return path if path.startswith("/") or "://" in path else f"{base.rstrip('/')}/{path}"


@dataclass
class Converted:
    """What a conversion gave. rejects: also of what was found only when the record was made. unused_label_files: that
    the account of the input names."""

    entries: list[Entry]
    records: list[tuple[Entry, EncodedRecord, Any]]
    rejects: list[Finding]
    source_rows: int
    unused_label_files: int = 0


@functools.cache
def _picture() -> bytes:
    return samples.save(samples.gradient(64, 48), "PNG")


@functools.cache
def _mask() -> bytes:
    import numpy as np

    return samples.png(np.repeat(np.array([[[1, 0, 0]], [[2, 0, 0]]], np.uint8), 24, 0).repeat(64, 1), 8, 2)


def _read(uri: str, member: Member | None) -> bytes:
    if uri.rpartition("/")[2] == "m.png":
        return _mask()
    if _short_name(uri) not in PICTURES:
        raise ImageError("missing_file", f"{uri} does not exist")
    return _picture()


def _short_name(uri: str) -> str:
    """The picture that a place ends in; Open Images has .jpg for all."""
    return uri.rpartition("/")[2].replace(".jpg", ".png")


@functools.cache
def _config(options: tuple[tuple[str, str], ...]) -> ConvertConfig:
    return ConvertConfig.from_options({"input": "in", "output": "out", "seed": 1, **dict(options)})


def convert(seed: Seed, files: Mapping[str, bytes]) -> Converted:
    """Raises ManifestError and ConfigError, as a conversion does."""
    config = _config(seed.options)
    memory = MemoryFiles(files)
    source = seed.format.describe(memory, seed.uri, None, config.manifest)
    parser = EntryParser(source, config, memory.join)
    builder = BlockBuilder(config.splits, 0)
    done = Converted([], [], [], 0)
    for piece in seed.format.pieces(memory, source):
        for item in parser.parse(seed.format.rows(memory, piece, config.manifest)):
            if isinstance(item, Entry | RejectedRow):
                builder.add(item)
                done.source_rows += item.source_rows
            else:
                builder.tell(item)
            if isinstance(item, Entry):
                done.entries.append(item)
            elif isinstance(item, RejectedRow):
                done.rejects.append(item.finding)
    survey = builder.survey()
    (told,) = account_inputs([source], survey, config, memory.walk)
    done.unused_label_files = told.account.unused(LABEL_FILES)
    schema = plan_schema(survey, [source], None, config)
    encoder = RecordEncoder(schema, config, _read)
    for entry in done.entries:
        try:
            done.records.append((entry, encoder.encode(entry), schema))
        except ElementError as error:
            done.rejects.append(Finding(entry.origin, entry.uri or "", "encode", error.code, error.message))
    return done


# ---------------------------------------------------------------------------------------------------------------------
# What must hold


def fault_of(mutant: Mutant) -> tuple[str, str]:
    """(how the document ended, what is wrong or '')."""
    try:
        files = mutant.seed.render(mutant.tree)
    except (RecursionError, ValueError, TypeError, KeyError, AttributeError):
        return "not a document", ""  # the tree has no form that could be written
    try:
        done = convert(mutant.seed, files)
    except (ManifestError, ConfigError) as error:
        is_told = ROOT in str(error) and "a fault of beam-tfrecord" not in str(error)
        return "refused", "" if is_told else f"the error names no file, or a fault of ours: {error}"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "exception", f"{type(error).__name__} at {where.filename}:{where.lineno}: {str(error)[:200]}"
    return ("rejects" if done.rejects else "converted"), next(iter(_faults(mutant, files, done)), "")


def _faults(mutant: Mutant, files: Mapping[str, bytes], done: Converted) -> Iterator[str]:
    for finding in (*done.rejects, *(finding for _, record, _ in done.records for finding in record.warnings)):
        finding_line(finding).encode("utf-8", "surrogateescape")
        if len(finding.message) < 10 or len(finding.message) > 20_000 or not finding.origin.startswith(ROOT):
            yield f"a message that says too little or too much: {finding}"[:300]
    yield from _lost_objects(mutant.seed, files, done)
    yield from _other_rows(mutant, done)


def _lost_objects(seed: Seed, files: Mapping[str, bytes], done: Converted) -> Iterator[str]:
    """Objects in the document are in records, dropped with a warning, or in rejects."""
    if seed.uri.endswith(".csv"):
        yield from _lost_lines(seed, files, done)
        return
    expected = seed.objects(files)
    stored: Parts = Counter()
    told: Counter[str] = Counter()
    written = set()
    for entry, record, schema in done.records:
        key = entry.filename.removeprefix(f"{ROOT}/images/").removeprefix("images/") if seed.by_picture else _key(entry)
        written.add(key)
        for kind, count in _parts(record, schema).items():
            stored[key, kind] += count
        told[key] += sum(finding.code in ("annotation_ignored", "box_dropped") for finding in record.warnings)
    for (key, kind), count in expected.items():
        if key in written and not stored[key, kind] <= count <= stored[key, kind] + told[key]:
            yield f"{key} has {count} {kind} in the document, {stored[key, kind]} in its record, {told[key]} warnings"
    rejected = {_key_of_origin(finding.origin) for finding in done.rejects}
    for key in {key for (key, _), count in expected.items() if count and key not in written}:
        named = key.removeprefix("image ") if seed.name.startswith("coco") else key
        if key not in rejected and "image (no image_id)" not in rejected and not seed.by_picture:
            yield f"the objects of {named} are nowhere"
        elif not rejected and not done.unused_label_files:
            yield f"the objects of {named} are nowhere, and there are no rejects"


def _key(entry: Entry) -> str:
    return _key_of_origin(entry.origin)


def _key_of_origin(origin: str) -> str:
    for start in (f"{ROOT}/a.json:", f"{ROOT}/a.jsonl:"):
        origin = origin.removeprefix(start)
    return origin


def _lost_lines(seed: Seed, files: Mapping[str, bytes], done: Converted) -> Iterator[str]:
    """Each line that is not blank is in a row or in a reject, and each box of a row in its record."""
    if "\\n" in json.dumps(seed.tree):
        return
    text = files[seed.uri].decode("utf-8")
    lines = sum(bool(line.strip("\r ,")) for line in text.split("\n"))
    lines -= seed.name != "vertex csv"
    if '"' not in text and done.source_rows != lines:
        yield f"{lines} lines, but {done.source_rows} in rows and rejects"
    for entry, record, schema in done.records:
        boxes = entry.annotations.get("boxes")
        count = len(boxes.objects) if isinstance(boxes, Objects) else 0
        dropped = sum(finding.code == "box_dropped" for finding in record.warnings)
        if count != _parts(record, schema)["boxes"] + dropped:
            yield f"{entry.origin}: {count} boxes are neither stored nor dropped with a warning"


def _parts(record: EncodedRecord, schema: Any) -> Counter[str]:
    """How many objects of each kind a record holds."""
    import tensorflow as tf

    feature = tf.train.Example.FromString(record.data).features.feature
    keys = schema.keys
    labels = [value for value in feature[keys["label"]].int64_list.value if value != -1]
    return Counter(
        boxes=len(feature[keys.get("object_label", "none")].int64_list.value),
        captions=len(feature[keys["captions"]].bytes_list.value),
        labels=len(labels),
        segments=len(feature[keys["panoptic_segment_label"]].int64_list.value),
    )


@functools.cache
def _baseline(name: str) -> Mapping[str, list[Any]]:
    seed = next(seed for seed in seeds() if seed.name == name)
    done = convert(seed, seed.render(seed.tree))
    assert not done.rejects
    assert len(done.records) == len(PICTURES)
    return _by_picture(done)


def _by_picture(done: Converted) -> dict[str, list[Any]]:
    """What is known of each picture, places in the document aside."""
    found: dict[str, list[Any]] = {}
    for entry in done.entries:
        annotations = dict(entry.annotations)
        if "boxes" in annotations:
            annotations["boxes"] = tuple(replace(item, origin="") for item in annotations["boxes"].objects)
        found.setdefault(entry.filename, []).append((entry.id, entry.split, entry.stated_size, annotations))
    return found


def _other_rows(mutant: Mutant, done: Converted) -> Iterator[str]:
    """Pictures that the changed nodes do not speak of are as they were, or rejected."""
    if mutant.owners is None:
        return
    found, before = _by_picture(done), _baseline(mutant.seed.name)
    for name, rows in before.items():
        if _short_name(name) in mutant.owners:
            continue
        after = found.get(name, [])
        if not after:
            if not done.rejects:
                yield f"{name} is gone without a reject"
        elif after[0] != rows[0] and not (len(after) > 1 and rows[0] in after):
            yield f"{name} was {rows[0]}, is {after[0]}"[:600]


# ---------------------------------------------------------------------------------------------------------------------


def mutants(count: int, seed: int) -> Iterator[Mutant]:
    """All single changes in an order that the seed decides, then several changes at once."""
    rng = random.Random(seed)
    singles = list(single_changes())
    rng.shuffle(singles)
    several = random_changes(rng)
    for index in range(count):
        if singles and index % 4:
            changed_seed, *change = singles.pop()
            yield _mutated(unchanged(changed_seed), *change)
        else:
            yield next(several)


def run(count: int, seed: int, keep: FilePath | None = None) -> Found:
    """(faults, how many ended how) of so many documents. keep: a folder for those that show a fault."""
    faults: list[str] = []
    ends: Counter[str] = Counter()
    for index, mutant in enumerate(mutants(count, seed)):
        end, fault = fault_of(mutant)
        ends[end] += 1
        if fault:
            faults.append(f"document {index}: {mutant.told}: {fault}")
            for name, data in (mutant.seed.render(mutant.tree) if keep else {}).items():
                place = (keep or FilePath()) / f"{seed}-{index}" / name.removeprefix(f"{ROOT}/")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
    return faults, ends


if __name__ == "__main__":
    sys.exit(fuzz(__doc__, "documents", 100_000, run))
