"""Names of labels that only some records tell, or a file beside them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.datasets.record_view import view_record
from beam_tfrecord.tfrecord.example import encode_example
from beam_tfrecord.tools.extracting.paths import ImagePaths
from beam_tfrecord.tools.extracting.records import Place, RecordExtractor, labels_told_by
from beam_tfrecord.tools.verifying.agreement import Agreement
from beam_tfrecord.tools.verifying.agreement import Place as FirstPlace
from tests.samples import jpeg, noise

PLACE = Place(0, 1, 0, "train", "x")
KEY = "image/object/class/label"


def record(ids: list[int], texts: list[bytes] | None) -> bytes:
    sides = {f"image/object/bbox/{side}": Feature("float", [0.5] * len(ids)) for side in ("xmin", "ymin")}
    sides |= {f"image/object/bbox/{side}": Feature("float", [0.75] * len(ids)) for side in ("xmax", "ymax")}
    told = {} if texts is None else {"image/object/class/text": Feature("bytes", texts)}
    picture = {"image/encoded": Feature("bytes", [jpeg(Image.fromarray(noise(8, 8)))])}
    return encode_example({**picture, **sides, KEY: Feature("int64", ids), **told})


def extracted(records: list[bytes], listed: list[str] | None = None) -> tuple[list[list[Any]], Agreement]:
    """Classes of the objects of each record, and what all tell together."""
    names_by_key = {} if listed is None else {KEY: listed}
    views = [view_record(data) for data in records]
    agreement = Agreement()
    for number, view in enumerate(views):
        agreement.see(labels_told_by(view, names_by_key), FirstPlace("x", number, 0))
    extractor = RecordExtractor(None, ImagePaths(), names_by_key, agreement.told_names)
    lines = [extractor.extract(view, PLACE).line for view in views]
    return [[item["class"] for item in line["boxes"]] for line in lines], agreement


@pytest.mark.parametrize("missing", [None, [], [b"", b" "]])
def test_ids_without_names_are_called_as_in_other_records(missing: list[bytes] | None) -> None:
    records = [record([1, 2], [b"cat", b"dog"]), record([2, 1], missing), record([1, 2], [b"cat", b""])]
    for order in itertools.permutations(range(3)):
        classes, agreement = extracted([records[number] for number in order])
        found = dict(zip(order, classes, strict=True))
        assert [found[number] for number in range(3)] == [["cat", "dog"], ["dog", "cat"], ["cat", "dog"]]
        assert agreement.labels == {("object_label", 1): "cat", ("object_label", 2): "dog"}
        assert not list(agreement.label_faults())
        assert [note.split()[0] for note in agreement.notes()] == ["3"]


def test_ids_that_no_record_names_stay_numbers() -> None:
    classes, agreement = extracted([record([1], [b"cat"]), record([7], None)])
    assert classes == [["cat"], ["7"]]
    assert agreement.labels == {("object_label", 1): "cat", ("object_label", 7): "7"}
    assert not list(agreement.notes())
    assert extracted([record([1, 2], None)])[0] == [["1", "2"]]


def test_an_id_without_a_name_that_is_spelled_like_the_name_of_another_is_a_fault() -> None:
    _, agreement = extracted([record([1], [b"2"]), record([2], [])])
    (fault,) = agreement.label_faults()
    assert fault.cause == "among the labels of objects the id 2 has the name '2', and so has 1"


def test_an_id_with_two_names_elsewhere_is_a_fault_and_takes_neither() -> None:
    classes, agreement = extracted([record([1], [b"dog"]), record([1, 1], []), record([1], [b"cat"])])
    assert classes == [["dog"], ["1", "1"], ["cat"]]
    (fault,) = agreement.label_faults()
    assert fault.cause == "among the labels of objects the id 1 has the names 'cat' and 'dog', and 2 times none"
    assert not list(agreement.notes())


@pytest.mark.parametrize("missing", [None, [], [b"", b""], [b"cat", b""]])
def test_names_in_a_file_beside_the_records_are_taken_where_a_record_has_none(missing: list[bytes] | None) -> None:
    classes, agreement = extracted([record([1, 2], missing)], ["none", "cat", "dog"])
    assert classes == [["cat", "dog"]]
    assert not list(agreement.label_faults())
    assert agreement.labels == {("object_label", number): name for number, name in enumerate(("none", "cat", "dog"))}
