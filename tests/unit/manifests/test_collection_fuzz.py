"""Some random collections; ``python -m tests.fuzz_collections`` makes as many as you have time for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.end_to_end.datasets import conversion, converted, records
from tests.end_to_end.test_layouts import picture_of
from tests.fuzz_collections import Collection, collection, fault_of, placed, run
from tests.label_files import Picture

COUNT = 200


@pytest.mark.parametrize(("count", "seed"), [(60, 15), pytest.param(COUNT, 14, marks=pytest.mark.slow)])
def test_whatever_lies_in_a_collection_is_used_or_named(count: int, seed: int) -> None:
    faults, ends = run(count, seed)
    assert faults == []
    assert ends["read"] > count / 2


@pytest.mark.parametrize(
    "change",
    [
        lambda one: replace(one, label="another"),
        lambda one: replace(one, split="elsewhere"),
        lambda one: replace(one, objects=(("fox", (1, 2, 3, 4)),)),
        lambda one: replace(one, mask="masks/other.png"),
    ],
)
def test_a_wrong_label_box_split_or_mask_is_seen(tmp_path: Path, change: object) -> None:
    """The check can fail: the truth is changed, for one picture."""
    made = next(one for one in (collection(index, 14) for index in range(COUNT)) if one.certain and one.pictures)
    path = min(made.pictures)
    made.pictures[path] = change(made.pictures[path])  # type: ignore[operator]
    assert "should be" in fault_of(made, tmp_path)[1]


def is_convertible(made: Collection) -> bool:
    return made.certain and not made.missing and not made.told.startswith("masks")


@pytest.mark.parametrize(
    "made",
    [made for made in (collection(index, 3) for index in range(24)) if is_convertible(made)][:10],
    ids=lambda made: made.told,
)
def test_what_is_planned_is_written(made: Collection, tmp_path: Path) -> None:
    for path, data in made.files.items():
        (tmp_path / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / path).write_bytes(data)
    output = tmp_path / "out"
    converted(tuple(placed(place, tmp_path / "in") for place in made.inputs), output, max_rejects="0")
    found: list[tuple[str, Picture]] = []
    for split in conversion(output)["splits"]:
        for record in records(output, split):
            found.append((record["image/filename"][0].decode(), picture_of(record, split)))
    expected = {path: told for path, told in made.pictures.items() if path not in made.unlabelled}
    assert len(found) >= len(expected)
    for name, picture in found:
        ends = [told for path, told in made.pictures.items() if f"/{path}".endswith((f"/{name}", f"!/{name}"))]
        assert with_objects(picture) in [with_objects(told) for told in ends], name


def with_objects(picture: Picture) -> Picture:
    """A record cannot tell no objects from none stated."""
    return replace(picture, objects=picture.objects or None)
