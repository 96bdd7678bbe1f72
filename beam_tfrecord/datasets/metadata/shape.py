"""Whether conversion.json and statistics.json have the shape that those need who carry them over or show them.

Types of features and shards are looked at where they are read, see :mod:`beam_tfrecord.datasets.facts`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from beam_tfrecord.conversion.writing.statistics import check_statistics
from beam_tfrecord.datasets.metadata import CONVERSION, STATISTICS
from beam_tfrecord.datasets.published import FilesToRead, read_conversion, read_object
from beam_tfrecord.errors import DatasetError

Check = Callable[[Any, str], Iterable[str]]  # value, where it stands -> what is wrong
_SHOWN = 40  # characters of a value


def _kind(kind: type | tuple[type, ...], what: str) -> Check:
    def check(value: Any, place: str) -> Iterator[str]:
        if not isinstance(value, kind) or isinstance(value, bool) or (isinstance(value, int) and value < 0):
            yield f"{place} is {json.dumps(value)[:_SHOWN]}, but must be {what}"

    return check


def _each(inner: Check, kind: type[list[Any]] | type[dict[str, Any]]) -> Check:
    """A list of such values, or an object of them."""

    def check(value: Any, place: str) -> Iterator[str]:
        wrong = list(_kind(kind, "a list" if kind is list else "an object")(value, place))
        yield from wrong
        if not wrong:
            for name, own in value.items() if kind is dict else enumerate(value):
                yield from inner(own, f"{place}.{name}" if kind is dict else f"{place}[{name}]")

    return check


def _fields(needed: Mapping[str, Check], others: Mapping[str, Check] | None = None) -> Check:
    """An object. others: fields that may be missing; what has another name is not looked at."""

    def check(value: Any, place: str) -> Iterator[str]:
        wrong = list(_object(value, place or "it"))
        yield from wrong
        for name, inner in {**needed, **(others or {})}.items() if not wrong else ():
            if name in value:
                yield from inner(value[name], f"{place}.{name}" if place else name)
            elif name in needed:
                yield f"{place or 'it'} lacks {name!r}"

    return check


_object = _kind(dict, "an object")
_text, _whole, _number = (
    _kind(str, "a text"),
    _kind(int, "a whole number of 0 or more"),
    _kind((int, float), "a number"),
)
_counts, _texts = _each(_whole, dict), _each(_text, list)


def _some(value: Any, place: str) -> Iterator[str]:
    """Counts of something that there is."""
    wrong = list(_counts(value, place))
    yield from wrong or ([] if sum(value.values()) else [f"{place} counts nothing"])


_INPUT = _fields(
    {"uri": _text, "format": _text},
    {
        "found": _counts,
        "used": _each(_counts, dict),
        "named": _each(_each(_fields({"count": _whole, "example": _text}), dict), dict),
        "decisions": _each(_fields({"what": _text, "value": _text, "why": _text}), list),
        "surprises": _each(_fields({"code": _text, "message": _text}), list),
        "category_ids": _object,
    },
)
_CONVERSION = _fields(
    {
        "status": _text,
        "rows": _whole,
        "written": _whole,
        "ignored": _whole,
        "rejected": _fields({"total": _whole, "by_code": _counts}),
        "changed": _counts,
        "warnings": _counts,
        "splits": _each(_fields({"records": _whole}), dict),
        "labels": _texts,
        "classes": _each(_counts, dict),
        "options": _fields({}, {"input": _each(_object, list)}),
    },
    {
        "name": _text,
        "source_rows": _whole,
        "rows_by_input": _counts,
        "inputs": _each(_INPUT, list),
        "excluded": _fields({"total": _whole, "by_option": _counts}, {"unmatched": _texts}),
        "objects": _counts,
        "image_formats": _counts,
        "staged": _each(_text, dict),
        "files": _texts,
        "versions": _each(_text, dict),
        "resharded": _each(_object, list),
    },
)


_PLACES = _each(_fields({"file": _text, "record": _whole, "offset": _whole, "size": _whole}, {"score": _number}), list)
# Beside what check_statistics looks at.
_STATISTICS = _fields(
    {},
    {
        "images": _fields(
            {"shapes": _some, "sizes": lambda value, place: () if value is None else _some(value, place)}
        ),
        "samples": _fields({}, dict.fromkeys(("classes", "changed", "warnings"), _each(_PLACES, dict))),
        "insight": _fields(
            {
                "pictures": _whole,
                "looked_at": _whole,
                "most_lines": _whole,
                "found": _counts,
                "clusters": _each(_PLACES, list),
                "conflicts": _each(_PLACES, list),
                "worst": _each(_PLACES, dict),
            },
            {"common": _counts},
        ),
    },
)


def shape_troubles(conversion: Mapping[str, Any]) -> Iterator[str]:
    """What is missing in a parsed conversion.json, or of another kind than it must be."""
    yield from _CONVERSION(conversion, "")


_LISTED = _fields(
    {"splits": _each(_fields({"shards": _each(_fields({"file": _text, "crc32c": _text}), list)}), dict)},
    {"files": _texts},
)


def read_listed(folder: str, storage: FilesToRead) -> dict[str, Any]:
    """The conversion.json of a dataset that is to be replaced. Raises DatasetError where it does not tell which files
    are of that dataset."""
    try:
        conversion = read_conversion(folder, storage)
        _raise_first(_LISTED(conversion, ""), f"{folder}/{CONVERSION}")
    except DatasetError as error:
        raise DatasetError(
            f"{error}; so nothing tells which files are of the dataset there: delete them, or name another --output"
        ) from None
    return conversion


def check_shape(conversion: Mapping[str, Any], uri: str) -> None:
    """Raise DatasetError for the first of :func:`shape_troubles`. uri: of the file."""
    _raise_first(shape_troubles(conversion), uri)


def _raise_first(troubles: Iterable[str], uri: str) -> None:
    trouble = next(iter(troubles), None)
    if trouble is not None:
        raise DatasetError(f"{uri} is damaged: {trouble}")


def read_statistics(folder: str, storage: FilesToRead) -> dict[str, Any]:
    """The statistics.json of a dataset; empty where there is none. Raises DatasetError when it is damaged."""
    uri = f"{folder}/{STATISTICS}"
    if not storage.is_file(uri):
        return {}
    statistics = read_object(uri, storage)
    try:
        check_statistics(statistics)
        trouble = next(iter(_STATISTICS(statistics, "")), "")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        trouble = f"{type(error).__name__}: {error}"
    if trouble:
        raise DatasetError(f"{uri} is damaged ({trouble}): delete it and run again")
    return statistics
