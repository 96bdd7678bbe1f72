"""The manifest that extract writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests import detect_format
from beam_tfrecord.manifests.formats.extracted import ExtractedFormat, rank_of
from tests.annotation_tools import read_items, rejects, write
from tests.contracts import ManifestFormatContract, Sample
from tests.local_files import LocalFiles

FORMAT = ExtractedFormat()


def lines(*objects: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in objects)


class TestExtracted(ManifestFormatContract):
    format = FORMAT

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        rows = [{"place": [0, 1, number], "image": name} for number, name in enumerate(names)]
        return Sample(str(write(folder / "manifest.jsonl", lines(*rows))), [])

    def empty(self, folder: Path) -> Sample:
        return Sample(str(write(folder / "manifest.jsonl", "\n")), [])

    def sample(self, folder: Path) -> Sample:
        first = {"place": [0, 2, 0], "split": "test", "id": "1", "image": "images/a", "filename": "a", "label": ["x"]}
        second = {"id": "s", "frames": [{"image": "b", "mask": "m/b.png", "boxes": []}], "kinds": ["captions"]}
        third = {"image": "c", "columns": {"n": [1], "l": [1]}, "panoptic": {"mask": "p", "segments": []}}
        uri = str(write(folder / "manifest.jsonl", lines(first, second, third)))
        columns = {"columns": {"n": 1, "l": [1]}}
        del first["place"]
        return Sample(
            uri,
            [
                (f"{uri}:1", {**first, "rank": rank_of([0, 2, 0], "test"), "columns": {}}),
                (
                    f"{uri}:2",
                    {
                        **second,
                        "frames": [{**second["frames"][0], "mask": f"{folder}/m/b.png", "columns": {}}],
                        "columns": {},
                    },
                ),  # type: ignore[index, dict-item]
                (f"{uri}:3", {**third, **columns, "panoptic": {"mask": f"{folder}/p", "segments": []}}),
            ],
            options={"columns": "n:int64,l:int64[]"},
        )

    def damaged(self, folder: Path) -> Sample:
        good, bad = {"place": [0, 1, 0], "image": "a"}, {"image": "b", "lable": "x"}
        uri = str(write(folder / "manifest.jsonl", lines(good, bad, [1], {"image": 5}) + "{\n"))
        fields = {"image": "a", "rank": rank_of([0, 1, 0], "")}
        return Sample(uri, [(f"{uri}:1", fields)], [(f"{uri}:{line}", "bad_row") for line in (2, 3, 4, 5)])


def rows_of(folder: Path, *objects: Any, **options: Any) -> list[Any]:
    return read_items(FORMAT, write(folder / "manifest.jsonl", lines(*objects)), **options)[1]


def test_it_is_told_by_its_first_key_only(tmp_path: Path) -> None:
    extracted = write(tmp_path / "a.jsonl", '{"place": [0, 1, 0], "image": "a.png"}\n')
    other = write(tmp_path / "b.jsonl", '{"image": "a.png", "place": [0, 1, 0]}\n')
    assert detect_format(LocalFiles(), str(extracted)) == "extracted"
    assert detect_format(LocalFiles(), str(other)) == "jsonl"


def test_a_misspelt_field_is_told(tmp_path: Path) -> None:
    items = rows_of(tmp_path, {"image": "a", "lable": "x"}, {"frames": [{"image": "a", "label": "x"}]})
    assert rejects(items) == [
        ("bad_row", "there is no field 'lable' here (did you mean 'label'?)"),
        ("bad_row", "there is no field 'label' here"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        {"image": 5},
        {"image": "a", "mask": None},
        {"frames": "a"},
        {"frames": [1]},
        {"image": "a", "kinds": "captions"},
        {"image": "a", "kinds": [1]},
        *(
            {"image": "a", "place": place}
            for place in (1, [1], [0, 1, "0"], [1, 1, 0], [0, 0, 0], [0, 1, -1], [0, 1, 2**28])
        ),
        {"image": "a", "place": [True, 2, 0]},
    ],
)
def test_values_that_cannot_be_are_rejects(tmp_path: Path, value: dict[str, Any]) -> None:
    assert [code for code, _ in rejects(rows_of(tmp_path, value))] == ["bad_row"]


def test_paths_start_from_the_images_option(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, {"image": "a", "mask": "m", "instance_mask": ""}, images="/data")
    assert isinstance(row, Row)
    assert (row.fields["mask"], row.fields["instance_mask"]) == ("/data/m", "")


PLACES = st.integers(1, 2**20).flatmap(
    lambda shards: st.tuples(st.integers(0, shards - 1), st.just(shards), st.integers(0, 2**28 - 1))
)


@given(PLACES, st.data())
def test_ranks_are_in_the_order_of_places_and_shards_are_spread_evenly(
    place: tuple[int, int, int], data: st.DataObject
) -> None:
    shard, shards, _ = place
    other = (data.draw(st.integers(0, shards - 1)), shards, data.draw(st.integers(0, 2**28 - 1)))
    first, second = rank_of(list(place), "train"), rank_of(list(other), "train")
    assert (first < second) == (place < other)
    assert 0 <= first < 2**64
    assert first * shards // 2**64 == shard


def test_ranks_of_different_splits_differ() -> None:
    ranks = {split: {rank_of([0, 1, record], split) for record in range(100)} for split in ("train", "test", "val")}
    assert len(set.union(*ranks.values())) == 300


def test_a_place_names_what_is_wrong() -> None:
    with pytest.raises(RowError, match="from 0"):
        rank_of([3, 3, 0], "train")
