"""What the features of a record are called when it is given out.

``stored``: the keys of the record, as ``--keys`` and ``--rename`` decided them. ``short``: the same names for every
dataset, whatever its keys: ``image``, ``label``, ``boxes`` and the other names of
:data:`beam_tfrecord.annotations.keys.KEYS`; a column of the manifest keeps its own name, or gets ``column/`` before it
when that is taken. Boxes that are stored as four lists become rows of [ymin, xmin, ymax, xmax], as they are elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.errors import ConfigError, nearest

STORED, SHORT = "stored", "short"
BOXES = "boxes"
# Sides of a box in the order of a row.
SIDES = ("bbox_ymin", "bbox_xmin", "bbox_ymax", "bbox_xmax")

_SHORT_NAMES: Mapping[str, str] = MappingProxyType(
    {"encoded": "image", "raw": "image", "bbox": BOXES, **dict.fromkeys(SIDES, BOXES)}
)
_COLUMN = "column/"


def names_by_key(facts: DatasetFacts, style: str) -> dict[str, str]:
    """Key -> name for every feature of the records; with ``short`` the four sides of boxes share one name."""
    if style == STORED:
        return {key: key for key in facts.specs}
    short = {
        key: _SHORT_NAMES.get(logical, logical)
        for logical, key in facts.keys.items()
        if not logical.startswith(_COLUMN)
    }
    taken = set(short.values())
    columns = {key: logical for logical, key in facts.keys.items() if logical.startswith(_COLUMN)}
    for key in facts.specs:
        if key not in short:
            short[key] = columns.get(key, key) if key in taken else key
    return {key: short[key] for key in facts.specs}


def box_sides(facts: DatasetFacts) -> tuple[str, ...]:
    """Keys of the four lists that boxes are stored as, in the order of a row; empty when they are stored otherwise."""
    keys = tuple(facts.keys.get(side, "") for side in SIDES)
    return keys if all(keys) else ()


def image_key(facts: DatasetFacts) -> str:
    """Key of the picture, encoded or raw; '' when the dataset has none."""
    return facts.keys.get("encoded") or facts.keys.get("raw", "")


def keys_named(wanted: Iterable[str], names: Mapping[str, str], option: str) -> list[str]:
    """The keys of the features that are asked for by name. Raises ConfigError for a name that no feature has."""
    keys: list[str] = []
    for name in wanted:
        found = [key for key, own in names.items() if own == name]
        if not found:
            known = sorted(set(names.values()))
            told = nearest(name, known) or f"; there are {', '.join(known)}"
            raise ConfigError(f"{option}: no feature is called {name!r}{told}")
        keys += [key for key in found if key not in keys]
    return keys


def default_target(facts: DatasetFacts) -> Sequence[str]:
    """Keys of what a model is most likely to learn: the label of the image, else its mask, else its objects."""
    keys = facts.keys
    for logical in ("label", "semantic_mask"):
        if logical in keys:
            return [keys[logical]]
    boxes = [keys["bbox"]] if "bbox" in keys else list(box_sides(facts))
    return [*boxes, keys["object_label"]] if boxes and "object_label" in keys else []
