"""What Hugging Face's datasets states of columns beside their types (source: ``features/features.py`` of datasets 5.2).

The schema of a Parquet or Arrow file has JSON under the key ``huggingface``: ``info.features`` by column. ``Image`` is
a struct of ``bytes`` and ``path``; ``ClassLabel`` a whole number whose name stands at its place in ``names``, -1 where
there is no label. Lists are ``List`` and ``LargeList`` with ``feature``, ``[...]`` and ``Sequence`` in older files, a
``Sequence`` of several columns being a struct of lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from beam_tfrecord.annotations.cells import plain, shown, whole_number
from beam_tfrecord.errors import ManifestError, RowError

_KEY = b"huggingface"
_LISTS = ("List", "LargeList", "Sequence")
_NO_LABEL = -1

Features = Mapping[str, Any]


def stated_features(metadata: Mapping[bytes, bytes] | None, uri: str) -> dict[str, Any]:
    """The features by column; empty where the schema states none. Raises ManifestError for what is no JSON."""
    text = (metadata or {}).get(_KEY)
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestError(
            f"{uri}: the metadata 'huggingface' of its schema is no JSON: {error}: write the file again with datasets"
        ) from None
    info = value.get("info") if isinstance(value, Mapping) else None
    features = info.get("features") if isinstance(info, Mapping) else None
    return dict(features) if isinstance(features, Mapping) else {}


def is_image(feature: Any) -> bool:
    """Whether a feature is that of one picture."""
    return isinstance(feature, Mapping) and feature.get("_type") == "Image"


def class_names(feature: Any) -> tuple[str, ...]:
    """The names of a ClassLabel, or of the only one within a feature; none where there is none."""
    found = list(dict.fromkeys(_all_names(feature)))
    return found[0] if len(found) == 1 else ()


def _all_names(feature: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(feature, list):
        for inner in feature:
            yield from _all_names(inner)
    elif isinstance(feature, Mapping):
        names = feature.get("names")
        if feature.get("_type") == "ClassLabel":
            if isinstance(names, Sequence) and not isinstance(names, str):
                yield tuple(map(str, names))
        else:
            for inner in feature.values():
                yield from _all_names(inner)


def is_of_names(feature: Any) -> bool:
    """Whether a feature is a ClassLabel, or a list of them."""
    inner = _of_list(feature)
    return bool(class_names(inner if inner is not None else feature)) and _is_label(inner or feature)


def _is_label(feature: Any) -> bool:
    return isinstance(feature, Mapping) and feature.get("_type") == "ClassLabel"


def _of_list(feature: Any) -> Any:
    """What a list is a list of; None for what is no list."""
    if isinstance(feature, list):
        return feature[0] if len(feature) == 1 else None
    if isinstance(feature, Mapping) and feature.get("_type") in _LISTS:
        return feature.get("feature")
    return None


def named(cell: Any, feature: Any, where: str) -> Any:
    """A cell with the names of its classes in place of their numbers.

    where: the column. Raises RowError (``unknown_category``) for a number that has no name.
    """
    if cell is None or feature is None:
        return cell
    if _is_label(feature):
        return _name(cell, feature.get("names") or (), where)
    inner = _of_list(feature)
    if inner is not None:
        if isinstance(cell, Mapping):  # a Sequence of several columns
            return {key: named(value, [inner.get(key)], f"{where}.{key}") for key, value in cell.items()}
        return [named(one, inner, where) for one in plain(cell)] if _holds_names(inner) else cell
    if isinstance(feature, Mapping) and isinstance(cell, Mapping):
        return {key: named(value, feature.get(key), f"{where}.{key}") for key, value in cell.items()}
    return cell


def _holds_names(feature: Any) -> bool:
    return next(_all_names(feature), None) is not None


def _name(cell: Any, names: Sequence[str], where: str) -> str | None:
    try:
        number = whole_number(cell)
    except ValueError:
        raise RowError("unknown_category", f"{where} is {shown(cell)}, not the number of a class") from None
    if number == _NO_LABEL:
        return None
    if not 0 <= number < len(names):
        raise RowError("unknown_category", f"{where} is {number}, and the schema names {len(names)} classes, from 0 on")
    return str(names[number])
