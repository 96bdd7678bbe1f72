from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.annotations.label import Label, LabelKind
from beam_tfrecord.errors import RowError
from tests.annotation_tools import make_schema, parse, through_tensorflow

KIND = LabelKind()


@pytest.mark.parametrize(
    ("cell", "names"),
    [("cat", ("cat",)), (" cat ", ("cat",)), ("007", ("007",)), (7, ("7",)), (np.int64(3), ("3",)), (1.0, ("1",))],
)
def test_one_label_is_text(cell: Any, names: tuple[str, ...]) -> None:
    assert parse(KIND, {"label": cell}) == Label(names)


def test_a_separator_is_text_until_it_is_asked_for() -> None:
    assert parse(KIND, {"label": "cat|dog"}) == Label(("cat|dog",))
    assert parse(KIND, {"label": "cat| dog |"}, label_separator="|") == Label(("cat", "dog"), is_list=True)


@pytest.mark.parametrize("cell", [["a", "b"], ("a", "b"), np.array(["a", "b"], object), np.array(["a", "b"])])
def test_a_list_gives_several_labels(cell: Any) -> None:
    assert parse(KIND, {"label": cell}) == Label(("a", "b"), is_list=True)


def test_an_empty_list_is_an_image_with_no_label_that_applies() -> None:
    assert parse(KIND, {"label": []}) == Label((), is_list=True)


def test_a_row_without_the_field_has_no_label() -> None:
    assert parse(KIND, {"image": "x.jpg"}) is None


@pytest.mark.parametrize("cell", ["", "  ", None, float("nan"), ["a", ""], [None]])
def test_a_blank_label_is_missing(cell: Any) -> None:
    with pytest.raises(RowError) as caught:
        parse(KIND, {"label": cell})
    assert caught.value.code == "missing_label"


def test_nothing_but_separators_is_missing() -> None:
    with pytest.raises(RowError) as caught:
        parse(KIND, {"label": " | "}, label_separator="|")
    assert caught.value.code == "missing_label"


@pytest.mark.parametrize("cell", [{"a": 1}, [["a"]]])
def test_what_cannot_be_a_label_is_a_bad_row(cell: Any) -> None:
    with pytest.raises(RowError) as caught:
        parse(KIND, {"label": cell})
    assert caught.value.code == "bad_row"


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"label": b"caf\xe9"}, {}),
        ({"label": "caf\udce9"}, {}),
        ({"label": "caf\udce9", "listed": True}, {}),
        ({"label": ["tea", b"caf\xe9"]}, {}),
        ({"label": "tea|caf\udce9"}, {"label_separator": "|"}),
    ],
)
def test_a_label_that_is_no_utf8_is_a_bad_row(fields: Any, options: Any) -> None:
    with pytest.raises(RowError, match="is not valid UTF-8") as caught:
        parse(LabelKind(), fields, **options)
    assert caught.value.code == "bad_row"


def test_the_class_of_an_object_that_is_no_utf8_is_told() -> None:
    with pytest.raises(RowError, match=r"its class .* is not valid UTF-8"):
        parse(BoxesKind(), {"boxes": [{"class": b"caf\xe9", "bbox": [1, 2, 3, 4]}]})


def test_a_repeated_label_counts_once_and_is_told() -> None:
    warnings: list[tuple[str, str]] = []
    assert parse(KIND, {"label": ["b", "a", "b"]}, warnings).names == ("b", "a")
    assert [code for code, _ in warnings] == ["annotation_ignored"]


def test_one_label_is_one_id_and_one_text_for_tensorflow() -> None:
    schema = make_schema(["label"], ["cat", "dog"], "imagenet")
    assert through_tensorflow({"label": Label(("dog",))}, schema) == {
        "image/class/label": 1,
        "image/class/text": b"dog",
    }


def test_an_image_without_a_label_has_a_mark_where_one_value_is_due() -> None:
    schema = make_schema(["label"], ["cat"], "imagenet")
    assert through_tensorflow({}, schema) == {"image/class/label": -1, "image/class/text": b""}


def test_any_list_makes_lists_of_all() -> None:
    schema = make_schema(["label", "labels"], ["cat", "dog"], "imagenet")
    assert KIND.facets(Label(("a",))) == ("label",)
    assert KIND.facets(Label(("a",), is_list=True)) == ("label", "labels")
    assert through_tensorflow({"label": Label(("dog", "cat"), is_list=True)}, schema) == {
        "image/class/label": [1, 0],
        "image/class/text": [b"dog", b"cat"],
    }
    assert through_tensorflow({"label": Label(("cat",))}, schema)["image/class/label"] == [0]
    assert through_tensorflow({}, schema) == {"image/class/label": [], "image/class/text": []}


def test_one_hot_marks_the_labels_in_id_order() -> None:
    schema = make_schema(["label", "labels"], ["a", "b", "c"], "simple", one_hot=True)
    parsed = through_tensorflow({"label": Label(("c", "a"), is_list=True)}, schema)
    assert parsed == {"label": [2, 0], "label_one_hot": [1, 0, 1]}
    assert through_tensorflow({}, schema)["label_one_hot"] == [0, 0, 0]


@pytest.mark.parametrize("preset", ["tfds", "simple"])
def test_some_presets_hold_ids_only(preset: str) -> None:
    assert through_tensorflow({"label": Label(("dog",))}, make_schema(["label"], ["cat", "dog"], preset)) == {
        "label": 1
    }


def test_the_vocabulary_learns_of_every_name() -> None:
    assert list(KIND.labels(Label(("b", "a"), True))) == ["b", "a"]
