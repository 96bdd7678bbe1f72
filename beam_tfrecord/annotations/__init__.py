"""Kinds of annotation: from the canonical fields of a row to typed values, features and their types.

Each kind is one file and one line of the registry. A kind from outside of the package is registered with
:func:`register_kind`, in every process that converts (on a cluster: at import of a module that the workers import).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from beam_tfrecord.annotations import keys
from beam_tfrecord.annotations.base import AnnotationKind, FeatureSpec, Schema
from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.annotations.captions import CaptionsKind
from beam_tfrecord.annotations.columns import ColumnsKind
from beam_tfrecord.annotations.label import LabelKind
from beam_tfrecord.annotations.mask_file import InstanceMapKind, SemanticMaskKind
from beam_tfrecord.annotations.panoptic import PanopticKind
from beam_tfrecord.options.values import Column

# In this order values are parsed and features are listed.
_KINDS: dict[str, AnnotationKind[Any]] = {
    kind.name: kind
    for kind in (
        LabelKind(),
        BoxesKind(),
        SemanticMaskKind(),
        InstanceMapKind(),
        PanopticKind(),
        CaptionsKind(),
        ColumnsKind(),
    )
}

KINDS: Mapping[str, AnnotationKind[Any]] = _KINDS


def register_kind(kind: AnnotationKind[Any]) -> None:
    """Add a kind. Registering the same class again is fine; raises ValueError when another kind has the name."""
    known = KINDS.get(kind.name)
    if known is not None and type(known) is not type(kind):
        raise ValueError(f"there is a kind of annotation called {kind.name!r} already")
    _KINDS[kind.name] = kind


def kinds_for(fields: Iterable[str]) -> list[AnnotationKind[Any]]:
    """The kinds that may have something to parse in a row with these canonical fields."""
    names = frozenset(fields)
    found = []
    for kind in KINDS.values():
        parsing = next(base for base in type(kind).__mro__ if "parse" in vars(base))
        asked = vars(parsing).get("fields")  # those of a class that this one has its parse from say nothing otherwise
        if asked is None or asked & names:
            found.append(kind)
    return found


def feature_keys(
    preset: str, rename: Iterable[tuple[str, str]] = (), *, raw: bool = False, columns: Iterable[Column] = ()
) -> dict[str, str]:
    """Logical name -> key under a preset, those of all registered kinds included; see :mod:`~.keys` for the table."""
    own_keys = {name: key for kind in KINDS.values() for name, key in kind.own_keys.items()}
    return keys.feature_keys(preset, rename, raw=raw, columns=columns, own_keys=own_keys)


def kinds_of(schema: Schema) -> list[AnnotationKind[Any]]:
    """The kinds that the records of a dataset have features of."""
    return [kind for name, kind in KINDS.items() if name in schema.kinds]


def schema_specs(schema: Schema) -> list[FeatureSpec]:
    """The types of the features of all annotations in a dataset."""
    return [spec for kind in kinds_of(schema) for spec in kind.spec(schema)]
