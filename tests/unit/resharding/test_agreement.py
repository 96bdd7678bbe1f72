"""Which datasets can be one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from beam_tfrecord.annotations.base import FeatureSpec, Vocabulary
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.tools.resharding.sources import check_agreement, merge_specs

SPECS = (
    FeatureSpec("image/encoded", "bytes", (), "image", channels=3, encoding="jpeg"),
    FeatureSpec("image/class/label", "int64", (), "label"),
    FeatureSpec("age", "int64"),
    FeatureSpec("mask", "bytes", (), "image", channels=1, encoding="png"),
)
KEYS = {"encoded": "image/encoded", "label": "image/class/label", "column/age": "age", "semantic_mask": "mask"}


def facts(specs: tuple[FeatureSpec, ...] = SPECS, **changes: Any) -> DatasetFacts:
    given: dict[str, Any] = {
        "conversion": {},
        "specs": {spec.key: spec for spec in specs},
        "keys": KEYS,
        "vocabulary": Vocabulary(("cat", "dog")),
        "message": "Example",
        "compression": "none",
        "splits": {},
    }
    return DatasetFacts(**{**given, **changes})


def with_spec(key: str, **changes: Any) -> tuple[FeatureSpec, ...]:
    return tuple(replace(spec, **changes) if spec.key == key else spec for spec in SPECS)


DIFFERENCES: dict[str, tuple[DatasetFacts, str]] = {
    "message": (facts(message="SequenceExample"), "--sequence_column"),
    "name of a label": (
        facts(vocabulary=Vocabulary(("cat", "emu"))),
        "label 1 .* is 'dog' in a and 'emu' in b.*--labels",
    ),
    "order of labels": (facts(vocabulary=Vocabulary(("dog", "cat"))), "label 0 .* is 'cat' in a and 'dog' in b"),
    "a further label": (
        facts(vocabulary=Vocabulary(("cat", "dog", "emu"))),
        "label 2 .* is missing in a and 'emu' in b",
    ),
    "offset": (facts(vocabulary=Vocabulary(("cat", "dog"), 1)), "'cat' has the id 0 in a and 1 in b.*--label_offset"),
    "own ids": (facts(vocabulary=Vocabulary(("cat", "dog"), 0, (0, 9))), "'dog' has the id 1 in a and 9 in b"),
    "a feature less": (
        facts((*SPECS[:2], SPECS[3])),
        "have 'age' in a but not in b; convert both with the same --columns",
    ),
    "a feature more": (facts((*SPECS, FeatureSpec("bbox", "float", (None,)))), "have 'bbox' in b but not in a"),
    "type": (facts(with_spec("age", dtype="float")), "'age' has the dtype int64 in a and float in b.*--columns"),
    "shape": (facts(with_spec("age", shape=(None,))), r"'age' has the shape \[\] in a and \[any\] in b"),
    "role": (facts(with_spec("age", role="text")), "'age' has the role scalar in a and text in b"),
    "depth of masks": (
        facts(with_spec("mask", pixel_dtype="uint16")),
        "pixel_dtype uint8 in a and uint16 in b.*mask_bits",
    ),
    "meaning": (facts(keys={**KEYS, "label": "age"}), "label is called 'image/class/label' in a and 'age' in b"),
}


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_a_difference_is_named_and_how_to_mend_it(difference: str) -> None:
    other, told = DIFFERENCES[difference]
    with pytest.raises(DatasetError, match=f"a and b cannot be one dataset: .*{told}") as raised:
        check_agreement([("a", facts()), ("same", facts()), ("b", other)])
    assert "convert both" in str(raised.value)


def test_what_images_are_like_may_differ() -> None:
    gray = facts(with_spec("image/encoded", channels=1, encoding="jpeg"))
    deep = facts(with_spec("image/encoded", encoding="png", pixel_dtype="uint16"))
    check_agreement([("a", facts()), ("b", gray), ("c", deep)])
    merged = {spec.key: spec for spec in merge_specs([facts().specs, gray.specs])}
    assert list(merged) == sorted(merged)
    assert (merged["image/encoded"].channels, merged["image/encoded"].encoding) == (None, "jpeg")
    merged = {spec.key: spec for spec in merge_specs([facts().specs, deep.specs])}
    assert (merged["image/encoded"].channels, merged["image/encoded"].encoding) == (3, None)
    assert merged["image/encoded"].pixel_dtype == "uint8"
    assert merged["age"] == SPECS[2]
