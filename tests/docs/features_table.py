"""The table of features in docs/output.md, made from what the library states of them.

``python -m tests.docs.features_table`` puts it into the page; a test compares the two.
"""

from __future__ import annotations

from beam_tfrecord.annotations import KINDS
from beam_tfrecord.annotations.base import Schema, Vocabulary
from beam_tfrecord.annotations.keys import feature_keys
from beam_tfrecord.annotations.objects import ATTRIBUTES
from beam_tfrecord.conversion.writing.records import record_specs
from tests.conftest import ROOT
from tests.docs.blocks import put_between

PAGE = ROOT / "docs" / "output.md"
START, END = "<!-- features: made by python -m tests.docs.features_table -->\n", "<!-- end of features -->"
DTYPES = {"int64": "int64", "float": "float32", "bytes": "bytes"}
EVERYTHING = (
    *(kind for kind in KINDS if kind != "columns"),
    *(f"boxes/{name}" for name in ATTRIBUTES),
    *("instance_masks", "keypoints", "keypoints/17"),
)


def table() -> str:
    """One line for each feature that any record can have: as ``od`` calls it, or the first other preset that has it."""
    lines = ["| feature | dtype | values | what |", "|---|---|---|---|"]
    seen: set[str] = set()
    for preset in ("od", "tfds", "simple"):
        for raw in (False, True):
            names = {key: name for name, key in feature_keys(preset, raw=raw).items()}
            for spec in record_specs(_schema(preset, raw), ["jpeg/3/uint8"]):
                name = names[spec.key]
                if name not in seen:
                    values = "labels" if name == "label_one_hot" else _values(spec.shape)
                    about = spec.description.replace("17 points", "K points")
                    lines.append(f"| `{spec.key}` | {DTYPES[spec.dtype]} | {values} | {about} |")
                seen.add(name)
    return "\n".join(lines) + "\n"


def _schema(preset: str, raw: bool) -> Schema:
    keys = feature_keys(preset, raw=raw)
    vocabulary = Vocabulary(("a", "b"))
    return Schema(tuple(sorted(EVERYTHING)), vocabulary, preset, keys, (), raw=raw, one_hot=True)


def _values(shape: tuple[int | None, ...]) -> str:
    if shape == ():
        return "1"
    return " × ".join("n" if size is None else str(size) for size in shape)


def with_table(text: str) -> str:
    """The page with the table as it should be."""
    return put_between(text, START, f"\n{table()}\n", END)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
