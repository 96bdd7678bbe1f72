"""Sources within a source: of an archive what lies inside, of a folder the manifests that it is read by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from beam_tfrecord.core.account import NO_ACCOUNT
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import Source


def to_plain(source: Source) -> dict[str, Any]:
    """A source as plain values; what it tells people is told by the source around it."""
    return asdict(replace(source, account=NO_ACCOUNT, decisions=(), surprises=())) | {"account": NO_ACCOUNT}


def from_plain(values: Mapping[str, Any]) -> Source:
    """The source that :func:`to_plain` gave."""
    return Source(**values)


def stated_labels(sources: Sequence[Source]) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """Names in id order of all sources together, and their ids when all state them.

    sources: those that state labels. Raises ManifestError where they contradict each other.
    """
    first = sources[0]
    if all((source.labels, source.category_ids) == (first.labels, first.category_ids) for source in sources):
        return first.labels or (), first.category_ids
    if any(source.category_ids is None for source in sources):
        names = dict.fromkeys(name for source in sources for name in source.labels or ())
        return tuple(names), None
    name_of: dict[int, tuple[str, str]] = {}
    for source in sources:
        for number, name in zip(source.category_ids or (), source.labels or (), strict=True):
            known, where = name_of.setdefault(number, (name, source.uri))
            if known != name:
                raise ManifestError(
                    f"category {number} is {known!r} in {where} and {name!r} in {source.uri}: the inputs must agree"
                )
    ids = tuple(sorted(name_of))
    names_in_order = tuple(name_of[number][0] for number in ids)
    if len(set(names_in_order)) < len(ids):
        raise ManifestError("the inputs give one category name several ids: they must agree")
    return names_in_order, ids
