from __future__ import annotations

import itertools
import random

import pytest

from beam_tfrecord.annotations.label import LabelKind
from beam_tfrecord.conversion.planning.arranging import DuplicateRule, Placed, arrange
from beam_tfrecord.conversion.planning.blocks import BlockItem, pack_entry, unpack_entry
from beam_tfrecord.core.elements import Entry
from beam_tfrecord.core.splits import order_hash
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.options.config import ConvertConfig

CONFIG = ConvertConfig.from_options({"input": "in", "output": "out"})


def item(entry_id: str, line: int, label: str = "cat") -> BlockItem:
    value = LabelKind().parse({"label": label}, CONFIG, lambda code, message: None)
    entry = Entry(entry_id, f"data.csv:{line}", entry_id, entry_id, annotations={"label": value})
    return BlockItem(order_hash(0, entry_id), "train", 0, "", 0, pack_entry(entry))


def rule(policy: str = "keep", straddling: dict[int, str] | None = None) -> DuplicateRule:
    return DuplicateRule(policy, 0, straddling or {})


def facts(placed: list[Placed]) -> list[tuple[str, int, bool]]:
    entries = [unpack_entry(each.payload) for each in placed]
    return [(entry.id, each.occurrence, each.reject is not None) for entry, each in zip(entries, placed, strict=True)]


def test_records_lie_in_the_order_of_their_hashes() -> None:
    names = [f"{n}.jpg" for n in range(20)]
    expected = sorted(names, key=lambda name: order_hash(0, name))
    assert [name for name, _, _ in facts(arrange([item(name, 2) for name in names], "train", rule()))] == expected


def test_the_order_of_arrival_does_not_show() -> None:
    rows = [("a", "cat"), ("a", "dog"), ("b", "cat"), ("a", "cat"), *((f"x{n}", "cat") for n in range(10))]
    seen = set()
    for seed in range(10):
        shuffled = random.Random(seed).sample(rows, len(rows))
        placed = arrange([item(name, line, label) for line, (name, label) in enumerate(shuffled)], "train", rule())
        seen.add(
            tuple(
                (name, occurrence, unpack_entry(each.payload).annotations["label"])
                for (name, occurrence, _), each in zip(facts(placed), placed, strict=True)
            )
        )
    assert len(seen) == 1


def test_copies_are_kept_numbered_told_and_spread() -> None:
    items = [item(f"x{n}", n) for n in range(200)] + [item("again", 1000 + n) for n in range(20)]
    placed = arrange(items, "train", rule())
    copies = [(place, number) for place, (name, number, _) in enumerate(facts(placed)) if name == "again"]
    assert sorted(number for _, number in copies) == list(range(20))
    places = [place for place, _ in copies]
    assert max(places) - min(places) > 100
    assert sum(b - a == 1 for a, b in itertools.pairwise(places)) < 10
    warned = [warning.code for each in placed for warning in each.warnings]
    assert warned == ["duplicate_id"] * 19


def test_copies_with_other_labels_are_a_conflict() -> None:
    placed = arrange([item("a", 2, "cat"), item("a", 3, "dog")], "train", rule())
    assert sorted(w.code for each in placed for w in each.warnings) == ["conflicting_label", "duplicate_id"]


def test_drop_keeps_the_first_of_the_file() -> None:
    placed = arrange([item("a", 10, "late"), item("a", 9, "early")], "train", rule("drop"))
    kept = [unpack_entry(each.payload).origin for each in placed if each.reject is None]
    assert kept == ["data.csv:9"]
    (reject,) = [each.reject for each in placed if each.reject is not None]
    assert (reject.code, reject.origin) == ("duplicate_id", "data.csv:10")


def test_fail_names_both_rows() -> None:
    with pytest.raises(ManifestError, match=r"'a' is used by data.csv:2 and by data.csv:5"):
        arrange([item("a", 5), item("a", 2)], "train", rule("fail"))


def test_an_id_of_an_earlier_split_is_told_or_dropped() -> None:
    straddling = {order_hash(0, "a"): "test"}
    (kept,) = arrange([item("a", 2)], "train", rule("keep", straddling))
    assert [w.code for w in kept.warnings] == ["duplicate_id"]
    (dropped,) = arrange([item("a", 2)], "train", rule("drop", straddling))
    assert dropped.reject is not None
    (first,) = arrange([item("a", 2)], "test", rule("drop", straddling))
    assert first.reject is None


def test_equal_rows_of_a_table_are_nothing_to_warn_of() -> None:
    row = Entry("row-0123456789abcdef", "t.csv:2", None)
    packed = BlockItem(order_hash(0, row.id), "train", 0, "", 0, pack_entry(row))
    assert [each.warnings for each in arrange([packed, packed], "train", rule())] == [(), ()]
