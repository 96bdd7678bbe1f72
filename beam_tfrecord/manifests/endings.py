"""Tables that name images without the endings of their files: ``ISIC_0000003`` for ``ISIC_0000003.jpg``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from beam_tfrecord.core.account import Decision
from beam_tfrecord.core.elements import Row
from beam_tfrecord.manifests.base import Files, Piece, Source
from beam_tfrecord.manifests.filenames import USUAL_ENDINGS, is_image_name
from beam_tfrecord.manifests.registry import FORMATS
from beam_tfrecord.manifests.text.uri_text import scheme_of
from beam_tfrecord.options.config import ManifestConfig

ENDING = "ending"  # among the details of a source: what the names of its images lack
_ENDINGS = (*USUAL_ENDINGS, *map(str.upper, USUAL_ENDINGS))
_ROWS_TRIED = 5
_TABLES = frozenset({"csv", "tsv", "jsonl", "parquet", "list"})


def missing_ending(files: Files, base: str, names: Sequence[str]) -> str:
    """The one ending with which files of these names are there; '' where names have endings, or are there without.

    base: the folder that the names start from.
    """
    if not names or any(is_image_name(name) or scheme_of(name) for name in names):
        return ""
    if any(_is_there(files, base, name) for name in names):
        return ""
    fitting = [ending for ending in _ENDINGS if all(_is_there(files, base, name + ending) for name in names)]
    return fitting[0] if len(fitting) == 1 else ""


def with_ending(source: Source, ending: str) -> Source:
    """The source, whose images have names with this ending from now on."""
    told = Decision("endings of names", ending, "the first images are there with it, and not without")
    return replace(source, details={**source.details, ENDING: ending}, decisions=(*source.decisions, told))


def complete_names(files: Files, source: Source, config: ManifestConfig) -> Source:
    """The source of a table, with the ending that the names of its first images lack, if they do."""
    if source.format not in _TABLES or ENDING in source.details:
        return source
    rows = FORMATS[source.format].rows(files, Piece(source), config)
    names = [
        str(item.fields["image"]).strip()
        for item in islice(rows, _ROWS_TRIED)
        if isinstance(item, Row) and item.fields.get("image") and "member" not in item.fields
    ]
    ending = missing_ending(files, source.base, names)
    return with_ending(source, ending) if ending else source


def named_file(name: str, ending: str) -> str:
    """The name of an image, with the ending that a source lacks."""
    return name if not ending or is_image_name(name) else f"{name.rstrip()}{ending}"


def _is_there(files: Files, base: str, name: str) -> bool:
    with suppress(ValueError):  # of join, for a path that leads out of a bucket
        return files.is_file(files.join(base, name.replace("\\", "/")))
    return False
