"""From what the user typed behind --input to sources.

A name that exists is taken as it stands, whatever characters it has in it. Only then ``SPLIT=PLACE`` and globs are
looked for. A glob of manifests means several sources, a glob of images one source that lists them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import ConfigError, nearest
from beam_tfrecord.manifests.base import Files, Source, from_plain
from beam_tfrecord.manifests.endings import complete_names
from beam_tfrecord.manifests.filenames import is_archive_name, is_data_name, is_image_name, is_record_name, junk_part
from beam_tfrecord.manifests.own_outputs import (
    EXTRACTED,
    EXTRACTED_MANIFEST,
    check_input,
    describe_beside,
    left_out_of,
    own_output,
    without_outputs,
)
from beam_tfrecord.manifests.registry import FORMATS, detect_format
from beam_tfrecord.manifests.text.roles import ASKED_FIELDS, PARTS
from beam_tfrecord.manifests.text.uri_text import (
    WEB_SCHEMES,
    folder_of,
    has_glob,
    literal_folder,
    name_of,
    scheme_of,
    with_slash,
    without_slash,
)
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.places import check_place
from beam_tfrecord.options.values import InputSpec, check_split_name

RECORDS = "tfrecord"  # the format
_WITH_KEYS = ("webdataset", "extracted")  # whose rows have what they have, each for itself
_WITHOUT_COLUMNS = ("folder", "glob", "voc", "yolo")
_ONLY_OBJECTS = ("voc", "yolo", "kitti", "dota", "visdrone", "wider_face")  # whose pictures have no labels of their own
_SEVERAL = "manifests"
_OF_BOXES = ("box_format", "box_units")
_SAID_OF = {
    "label_separator": "labels",
    **dict.fromkeys(_OF_BOXES, "numbers of boxes that could be meant in several ways"),
    "yolo_lines": "label files of YOLO",
    "annotator": "annotations by several people",
}


class Place(NamedTuple):
    """One place to read: its uri, its split when the user named one, and the format when it is known already."""

    uri: str
    split: str | None
    format: str = ""
    left_out: tuple[str, ...] = ()


def describe_inputs(files: Files, config: ManifestConfig, output: str = "") -> tuple[Source, ...]:
    """The sources that --input names, in the order of the options; those of one glob sorted by code point.

    What this tool wrote is left out, and the folder ``output`` of this run (see :mod:`.own_outputs`).

    Raises ConfigError for a place that does not exist (the nearest one is named) and for options that do not fit, and
    ManifestError for a source that cannot be read.
    """
    is_web = config.images is not None and scheme_of(config.images) in WEB_SCHEMES  # which knows no folders
    if config.images is not None and not is_web and not files.is_folder(config.images):
        raise ConfigError(f"--images {config.images}: {missing(files, config.images)}")
    sources = []
    for spec in config.input:
        sources += [_describe(files, place, spec, config, output) for place in find_places(files, spec, config, output)]
    _check_keys(sources, config)
    _check_columns(sources, config)
    _check_uses(sources, config)
    return tuple(sources)


def _check_keys(sources: Sequence[Source], config: ManifestConfig) -> None:
    """Raise ConfigError where an option names a feature of records and no input has any."""
    for name in ("image_key", "label_key"):
        key = getattr(config, name)
        if key is not None and not any(
            RECORDS in (source.format, source.details.get("inner", {}).get("format")) for source in sources
        ):
            column = name.replace("key", "column")
            raise ConfigError(f"--{name} {key} names a feature of TFRecords, and no input holds any: is it --{column}?")


def _check_columns(sources: Sequence[Source], config: ManifestConfig) -> None:
    """Raise ConfigError where an option names a column and no input could have it."""
    for part in PARTS:
        column = getattr(config, f"{part}_column")
        if column is None or any(_can_have(source, part) for source in sources):
            continue
        uri, name = sources[0].uri, _rows_of(sources[0])[0]
        raise ConfigError(
            f"--{part}_column {column}: {uri} (format {name}) has no columns that could be asked for it: leave the "
            "option out, or give a table with that column"
        )


def _check_uses(sources: Sequence[Source], config: ManifestConfig) -> None:
    """Raise ConfigError where an option says something of what no input has: it would be passed over in silence."""
    for option, what in _SAID_OF.items():
        value = getattr(config, option)
        if value == getattr(ManifestConfig, option) or any(_uses(source, option, config) for source in sources):
            continue
        uri, name = sources[0].uri, _rows_of(sources[0])[0]
        raise ConfigError(f"--{option} {value}: {uri} (format {name}) has no {what}: leave the option out")


def _uses(source: Source, option: str, config: ManifestConfig) -> bool:
    """Whether an option can say something of what a source has."""
    name, details = _rows_of(source)
    if name == _SEVERAL:
        return any(_uses(from_plain(part), option, config) for part in details["parts"])
    if not _is_ours(name) or option in FORMATS[name].asks:
        return True
    if option == "label_separator":
        return name not in _ONLY_OBJECTS or config.label_pattern is not None
    roles = details.get("roles")
    has_boxes = bool(details.get("boxes") or (roles and roles["boxes"]))
    return option in _OF_BOXES and (has_boxes or (roles is not None and config.box_format == "none"))


def _can_have(source: Source, part: str) -> bool:
    name, details = _rows_of(source)
    if name == _SEVERAL:
        return any(_can_have(from_plain(own), part) for own in details["parts"])
    return _has_columns(name, details) or part in FORMATS[name].asks


def _has_columns(name: str, details: Mapping[str, Any]) -> bool:
    """Whether rows have columns of their own, as far as it is known here: formats of others are believed."""
    if name == _SEVERAL:
        return any(_has_columns(own["format"], own["details"]) for own in details["parts"])
    return "roles" in details or name == RECORDS or not _is_ours(name)


def _is_ours(name: str) -> bool:
    return type(FORMATS[name]).__module__.startswith("beam_tfrecord.")


def _describe(files: Files, place: Place, spec: InputSpec, config: ManifestConfig, output: str) -> Source:
    """The source of one place."""
    is_folder = files.is_folder(place.uri)
    if is_folder:
        check_input(files, place.uri, f"--input {spec.uri}")
        if config.format == "auto" and own_output(files, place.uri) == EXTRACTED:
            place, is_folder = place._replace(uri=with_slash(place.uri) + EXTRACTED_MANIFEST), False

    def look(beside: Files) -> Source:
        name = place.format or (config.format if config.format != "auto" else detect_format(beside, place.uri))
        source = complete_names(beside, FORMATS[name].describe(beside, place.uri, place.split, config), config)
        why = "--format" if name == config.format else "its name and its first bytes"
        if is_folder and name != config.format:
            why = "what lies in the folder"
        told = Decision("format", source.format, why)
        return replace(source, decisions=(told, *source.decisions), census=_census_of(files, source, place.uri))

    root = (
        place.uri
        if is_folder
        else literal_folder(place.uri)
        if place.format in ("glob", RECORDS)
        else folder_of(place.uri)
    )
    source = describe_beside(look, files, root, output)
    if place.left_out:
        source = left_out_of(source, files, place.left_out)
    check_id_column(source, config)
    check_where(source, config)
    return source


def _census_of(files: Files, source: Source, place: str) -> str:
    """The folder whose files are told of: that of the images, or the one that was given where it holds all of them."""
    counts_files = source.details.get("counts_files", FORMATS[source.format].counts_files)
    if counts_files or scheme_of(source.base) in WEB_SCHEMES:
        return ""
    base = source.base or "."
    return place if with_slash(base).startswith(with_slash(place)) and files.is_folder(place) else base


def check_id_column(source: Source, config: ManifestConfig) -> None:
    """Raise ConfigError where --id_column names what cannot be the id of an image: every row would be a reject."""
    if config.id_column is None:
        return
    name, details = _rows_of(source)
    roles = details.get("roles")
    if isinstance(roles, Mapping) and roles.get("boxes"):
        raise ConfigError(
            f"--id_column {config.id_column}: {source.uri} has one line for each box, and the lines of an image are "
            "one record, the id of which is the path of the image: leave --id_column out"
        )
    if name in _WITHOUT_COLUMNS:
        raise ConfigError(
            f"--id_column {config.id_column}: {source.uri} (format {name}) has no columns; the id of a record is the "
            "path of its image there: leave --id_column out"
        )


def _rows_of(source: Source) -> tuple[str, Mapping[str, Any]]:
    """(format, details) of what the rows come from: of an archive, what lies in it."""
    inner = source.details.get("inner")
    return (inner["format"], inner["details"]) if isinstance(inner, Mapping) else (source.format, source.details)


def check_where(source: Source, config: ManifestConfig) -> None:
    """Raise ConfigError where --where looks at a column and the rows have none of their own."""
    name, details = _rows_of(source)
    if _has_columns(name, details) or name in _WITH_KEYS:
        return
    unknown = next((column for column in config.asked_columns if column not in ASKED_FIELDS), None)
    if unknown is not None:
        raise ConfigError(
            f"--where {unknown}: {source.uri} (format {name}) has no columns; one can ask for "
            f"{', '.join(ASKED_FIELDS)}{nearest(unknown, ASKED_FIELDS)}"
        )


def find_places(files: Files, spec: InputSpec, config: ManifestConfig, output: str = "") -> list[Place]:
    """The places that one --input names. Raises ConfigError when there are none.

    output: of this run; a glob leads neither there nor into any other output of this tool.
    """
    if not spec.uri:
        _check_place(spec.uri, spec)
    for uri, split in _readings(spec):
        if scheme_of(uri):
            _check_place(uri, spec)
        if files.is_file(uri) or files.is_folder(uri):
            _check_split(split, spec)
            return [Place(without_slash(uri) if files.is_folder(uri) else uri, split)]
        if has_glob(uri) and scheme_of(uri) not in WEB_SCHEMES:
            matched, own = without_outputs(files, uri, output)
            if matched:
                _check_split(split, spec)
                places = _places_of_glob(files, uri, matched, split, config)
                is_told = places[0].format == "glob"  # by the one source that lists them all
                return places if is_told else [places[0]._replace(left_out=own), *places[1:]]
            if own:
                check_input(files, own[0], f"--input {spec.uri}: {own[0]}")
                raise ConfigError(f"--input {spec.uri} matches nothing but what this tool wrote, in {own[0]}")
    uri, split = list(_readings(spec))[-1]
    _check_place(uri, spec)
    named = expand_braces(uri)
    if len(named) > 1:
        _check_split(split, spec)
        for one in named:
            if not files.is_file(one):
                raise ConfigError(f"--input {spec.uri}: {one}: {missing(files, one)}")
        return [Place(one, split) for one in named]
    raise ConfigError(f"--input {spec.uri}: {missing(files, uri)}")


_BRACES = re.compile(r"\{([^{}]+)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_MOST_SHARDS = 100_000


def expand_braces(text: str) -> list[str]:
    """The names that braces stand for, as in a shell: ``a-{00..02}.tar``, ``{a,b}.tar``. Raises ConfigError for too
    many."""
    found = _BRACES.search(text)
    if found is None:
        return [text]
    numbers = _RANGE.fullmatch(found[1])
    if numbers:
        first, last = int(numbers[1]), int(numbers[2])
        if abs(last - first) >= _MOST_SHARDS:
            raise ConfigError(f"{text} stands for more than {_MOST_SHARDS:,} names: name a folder or a glob")
        step = 1 if last >= first else -1
        parts = [f"{number:0{len(numbers[1])}d}" for number in range(first, last + step, step)]
    elif "," in found[1]:
        parts = found[1].split(",")
    else:
        return [text]
    return [name for part in parts for name in expand_braces(text[: found.start()] + part + text[found.end() :])]


def _readings(spec: InputSpec) -> Iterator[tuple[str, str | None]]:
    """What an input may mean, (uri, split), the more literal first."""
    uri = spec.uri
    named, mark, place = uri.partition("=")
    is_split = spec.split is None and mark and place and "/" not in named
    if not (is_split and scheme_of(place)):  # no file system knows train=gs://...
        yield uri, spec.split
    if is_split:
        yield place, named
        uri = place
    if uri.startswith("~"):  # a shell leaves it alone behind the equals sign
        yield os.path.expanduser(uri), named if is_split else spec.split


def _check_place(uri: str, spec: InputSpec) -> None:
    try:
        check_place(uri)
    except ValueError as error:
        raise ConfigError(f"--input {spec.uri}: {error}") from None


def _check_split(split: str | None, spec: InputSpec) -> None:
    if split is not None:
        try:
            check_split_name(split)
        except ValueError as error:
            raise ConfigError(f"--input {spec.uri}: {error}") from None


def _places_of_glob(
    files: Files, pattern: str, matched: Sequence[str], split: str | None, config: ManifestConfig
) -> list[Place]:
    """One place for images or files of records, one for each manifest; ConfigError for images and manifests at once."""
    base = len(literal_folder(pattern))
    kept = [uri for uri in matched if junk_part(uri[base:].lstrip("/")) is None]
    is_of_records = kept and all(is_record_name(name_of(uri)) for uri in kept)
    if config.format == RECORDS or (config.format == "auto" and is_of_records):
        return [Place(pattern, split, RECORDS)]
    if config.format not in ("auto", "glob"):
        return [Place(uri, split) for uri in matched if junk_part(name_of(uri)) is None]
    others = [uri for uri in kept if is_data_name(uri) or is_archive_name(uri)]
    images = any(map(is_image_name, kept))
    if not images and len(others) < len(kept):
        unknown = next(uri for uri in kept if uri not in set(others))
        images = detect_format(files, unknown) == "glob"
    if images and others:
        raise ConfigError(
            f"--input {pattern} matches images and other files ({name_of(others[0])}): make the pattern narrower, such "
            f"as {literal_folder(pattern)}/*.jpg, or give the manifest itself"
        )
    if images or not kept:
        return [Place(pattern, split, "glob")]
    return [Place(uri, split) for uri in kept]


HERE = "."


def missing(files: Files, uri: str) -> str:
    """What to say of a place that is not there: the nearest thing that is, or the deepest folder that exists."""
    if has_glob(uri) and scheme_of(uri) not in WEB_SCHEMES:
        folder = literal_folder(uri) or HERE
        if files.is_folder(folder):
            has_folders = any(name.endswith("/") for name in files.list_folder(folder))
            hint = " (* does not cross folders; ** does)" if "**" not in uri and has_folders else ""
            return f"no file matches{hint}; the folder {folder} holds {_contents(files, folder)}"
        uri = folder
    if scheme_of(uri) in WEB_SCHEMES:
        return f"there is no such file: {uri}"
    wanted, above = without_slash(uri), folder_of(uri) or HERE
    while above not in (wanted, HERE) and not files.is_folder(above):
        wanted, above = above, folder_of(above) or HERE
    if scheme_of(uri) and "/" not in above.partition("://")[2].rstrip("/") and not files.is_folder(above):
        return f"there is no such file or folder: {uri}"
    if above == wanted or not files.is_folder(above):
        return f"there is no such file or folder: {uri}"
    names = [name.rstrip("/") for name in files.list_folder(above)]
    close = nearest(name_of(wanted), names)
    what = "there is no such file or folder" if wanted == without_slash(uri) else f"there is no folder {wanted}"
    return f"{what}{close}; the folder {above} holds {_contents(files, above)}"


def _contents(files: Files, folder: str, limit: int = 8) -> str:
    names = [name for name in files.list_folder(folder) if junk_part(name.rstrip("/")) is None]
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "") or "nothing"
