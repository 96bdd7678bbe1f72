"""Command lines on which places stand beside flags, of which some are Beam's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from beam_tfrecord.errors import ConfigError, DatasetError, nearest
from beam_tfrecord.manifests import missing
from beam_tfrecord.options.places import expand_flag, parse_place
from beam_tfrecord.storage import Storage, public_uri
from pipelines.options import (
    flags_of,
    is_for_job_server,
    make_beam_parser,
    parse_for_beam,
    tell_passed_on,
    with_underscores,
)
from pipelines.parsers import ArgumentParser

PLACE_HELP = "a dataset's folder, a TFRecord file, or a glob; several files are fine"


def parse_places(parser: ArgumentParser, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """(our flags, places) of a command without Beam. Raises ConfigError for a flag that is not known, or no place."""
    namespace, rest = parser.parse_known_args(with_underscores(arguments, flags_of(parser)))
    return namespace, _places(rest, flags_of(parser))


def parse_places_and_beam_flags(
    parser: ArgumentParser, arguments: Sequence[str]
) -> tuple[argparse.Namespace, list[str], list[str]]:
    """(our flags, places, Beam's flags). Beam's parser tells its flags and their values from the places.

    What only the job server of an engine can know is one of Beam's flags as well: a switch, or ``--flag=value``.
    """
    namespace, rest = parser.parse_known_args(with_underscores(arguments, flags_of(parser)))
    if not any(argument.startswith("-") for argument in rest):
        return namespace, _places(rest, []), []  # and Beam need not be asked
    beam_parser = make_beam_parser()
    options, unknown = parse_for_beam(beam_parser, rest)
    known = [*flags_of(parser), *flags_of(beam_parser)]
    before = unknown[: unknown.index("--")] if "--" in unknown else unknown
    flags = [part for part in before if is_for_job_server(part.partition("=")[0], options.runner, known)]
    tell_passed_on([flag.partition("=")[0] for flag in flags], namespace)
    unknown = _without(unknown, flags)
    places = _places(unknown, known)
    return namespace, places, [expand_flag(flag) for flag in _without(rest, unknown)]


def _places(rest: Sequence[str], flags: Sequence[str]) -> list[str]:
    """What is left of the arguments: places, and behind ``--`` also places that begin with a dash."""
    places: list[str] = []
    for number, argument in enumerate(rest):
        if argument == "--":
            places += map(_place, rest[number + 1 :])
            break
        if argument.startswith("-") and argument != "-":
            flag = argument.partition("=")[0]
            raise ConfigError(f"there is no flag {flag}{nearest(flag, flags)}; --help lists all")
        places.append(_place(argument))
    if not places:
        raise ConfigError("name a dataset's folder, a TFRecord file or a glob; see --help")
    return places


def _place(text: str) -> str:
    try:
        return parse_place(text)
    except ValueError as error:
        raise ConfigError(f"{public_uri(text) or repr(text)}: {error}") from None


def dataset_folder(place: str, storage: Storage) -> str:
    """A folder without the slash at its end. Raises DatasetError for what is none."""
    folder = place.rstrip("/") or "/"
    if not storage.is_folder(folder):
        what = "is a file" if storage.is_file(folder) else missing(storage, folder)
        raise DatasetError(f"{public_uri(folder)}: {what}; name the folder of a dataset")
    return folder


def _without(arguments: Sequence[str], unknown: Sequence[str]) -> list[str]:
    """The arguments but for those that are not known, which are some of them in the same order."""
    left = list(unknown)
    kept = []
    for argument in arguments:
        if left and argument == left[0]:
            left.pop(0)
        else:
            kept.append(argument)
    return kept
