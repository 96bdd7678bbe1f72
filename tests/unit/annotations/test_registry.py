from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from beam_tfrecord import annotations
from beam_tfrecord.annotations import KINDS, feature_keys, kinds_of, register_kind, schema_specs
from beam_tfrecord.annotations.base import AnnotationKind, Feature, FeatureSpec, Schema
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.options.config import ConvertConfig
from tests.annotation_tools import make_schema, parse, through_tensorflow


class QualityKind(AnnotationKind[float]):
    """A grade of the picture: all that a kind from outside needs."""

    name = "quality"
    own_keys = {"quality": "image/quality"}  # noqa: RUF012 - as a user would write it

    def parse(self, fields: Mapping[str, Any], config: ConvertConfig, warn: Callable[[str, str], None]) -> float | None:
        return float(fields["quality"]) if "quality" in fields else None

    def features(self, value: float | None, schema: Schema) -> dict[str, Feature]:
        return {schema.keys["quality"]: Feature("float", [] if value is None else [value])}

    def spec(self, schema: Schema) -> list[FeatureSpec]:
        return [FeatureSpec(schema.keys["quality"], "float", (None,))]


@pytest.fixture
def quality() -> Iterator[QualityKind]:
    kind = QualityKind()
    register_kind(kind)
    yield kind
    annotations._KINDS.pop("quality")


def test_a_kind_from_outside_works_like_any_other(quality: QualityKind) -> None:
    assert KINDS["quality"] is quality
    schema = make_schema(["quality"])
    assert kinds_of(schema) == [quality]
    assert [spec.key for spec in schema_specs(schema)] == ["image/quality"]
    value = parse(quality, {"quality": "0.5"})
    assert quality.facets(value) == ("quality",)
    assert through_tensorflow({"quality": value}, schema) == {"image/quality": [0.5]}
    assert through_tensorflow({}, schema) == {"image/quality": []}
    assert feature_keys("tfds", [("image/quality", "grade")])["quality"] == "grade"


def test_a_name_is_taken_once_but_the_same_kind_may_come_again(quality: QualityKind) -> None:
    register_kind(QualityKind())
    other = type("OtherKind", (QualityKind,), {})()
    with pytest.raises(ValueError, match="'quality' already"):
        register_kind(other)


def test_the_key_of_a_kind_may_not_be_taken(quality: QualityKind) -> None:
    with pytest.raises(ConfigError, match="two features would be called 'image/width'"):
        feature_keys("od", [("image/quality", "image/width")])


def test_kinds_have_a_fixed_order() -> None:
    assert list(KINDS) == ["label", "boxes", "semantic_mask", "instance_map", "panoptic", "captions", "columns"]
    assert all(kind.name == name for name, kind in KINDS.items())


def test_every_kind_gives_nothing_for_a_row_with_an_image_only() -> None:
    for kind in KINDS.values():
        assert parse(kind, {"image": "a.jpg"}) is None
