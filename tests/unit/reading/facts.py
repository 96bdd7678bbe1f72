"""Facts of datasets that were never written."""

from __future__ import annotations

from typing import Any

from beam_tfrecord.datasets.facts import DatasetFacts, facts_from


def make_facts(features: dict[str, dict[str, Any]], **stated: Any) -> DatasetFacts:
    """Facts with these features, each ``{"dtype", "shape", ...}`` as in conversion.json."""
    conversion = {
        "features": features,
        "labels": ["x", "y"],
        "label_offset": 0,
        "message": "Example",
        "compression": "none",
        "splits": {},
        "keys": "imagenet",
        "options": {},
        "image_formats": {"jpeg/3/uint8": 1},
        **stated,
    }
    return facts_from(conversion)


def spec(dtype: str = "int64", shape: list[int | None] | None = None, **more: Any) -> dict[str, Any]:
    """One feature."""
    return {"dtype": dtype, "shape": shape or [], "role": "scalar", **more}


SIDES = {f"image/object/bbox/{side}": spec("float", [None]) for side in ("xmin", "xmax", "ymin", "ymax")}
IMAGE = {"image/encoded": spec("bytes", role="image", channels=3)}
LABEL = {"image/class/label": spec(role="label")}
OBJECTS = {**IMAGE, **SIDES, "image/object/class/label": spec("int64", [None], role="label")}
