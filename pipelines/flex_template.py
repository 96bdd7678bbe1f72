"""The Flex Template of Dataflow: its metadata, made from the flags of ``convert``, and what its launcher runs.

``python -m pipelines.flex_template --metadata`` prints the metadata. Without that flag the arguments are those that
Dataflow's launcher gives: each parameter of the template as ``--NAME=VALUE``, and Beam's options of the job. The job is
described and handed over; the launcher must not wait for it.

A parameter has one value. Those that a flag takes several times over (``--input``) are separated by commas or by line
breaks; a comma only separates where a uri follows, because names of files may hold commas. Switches take true or false.
"""

from __future__ import annotations

import sys

if not __package__ and sys.path[0] == __file__.rpartition("/")[0]:
    # The launcher starts this file by its path, which puts its folder first, and a module of ours is called inspect.
    del sys.path[0]

import argparse
import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from beam_tfrecord.errors import ConfigError
from beam_tfrecord.options.config import option_fields
from beam_tfrecord.options.values import parse_count, parse_flag, parse_positive, parse_quality
from pipelines import convert
from pipelines.exits import end_of_process, guarded
from pipelines.options import default_text

NAME = "beam-tfrecord convert"
DESCRIPTION = (
    "Converts labelled images, or a table, to TFRecords that are complete, reproducible and self-describing. Every "
    "place is a uri, such as gs://BUCKET/photos."
)
SWITCH = "^(true|false)$"
# What the launcher shall check before it starts. Never narrower than the parser of the flag.
REGEXES: dict[Callable[[Any], Any], str] = {
    parse_flag: SWITCH,
    parse_count: "^[0-9][0-9_,]*$",
    parse_positive: "^[0-9][0-9_,]*$",
    parse_quality: "^[0-9]{1,3}$",
}
REGEXES_OF: dict[str, str] = {
    "input": r"^([A-Za-z0-9][A-Za-z0-9_.-]*=)?[a-z][a-z0-9+.-]*://[\s\S]+$",
    "output": r"^[a-z][a-z0-9+.-]*://.+$",
    "images": r"^[a-z][a-z0-9+.-]*://.+$",
    "labels": r"^[a-z][a-z0-9+.-]*://.+$",
    "shard_size": r"^\s*[0-9]+(\.[0-9]+)?\s*[A-Za-z]*\s*$",
    "read_ahead": r"^\s*[0-9]+(\.[0-9]+)?\s*[A-Za-z]*\s*$",
    "max_rejects": r"^[0-9][0-9_,.]*\s*%?$",
}
REQUIRED = ("input", "output")
SEVERAL = "several are separated by commas or line breaks"
# Options of Beam that a user of the template may want, beside those that `flex-template run` has itself.
ENGINE_PARAMETERS: tuple[dict[str, Any], ...] = (
    {
        "name": "sdk_container_image",
        "label": "Image of the workers",
        "helpText": "the image that the template was built with: it serves launcher and workers",
        "isOptional": False,
        "paramType": "TEXT",
        "regexes": [r"^\S+$"],
    },
    {
        "name": "number_of_worker_harness_threads",
        "label": "Shards at a time",
        "helpText": "shards that each worker process writes at a time (default: as many as Dataflow chooses)",
        "isOptional": True,
        "paramType": "TEXT",
        "regexes": ["^[0-9]+$"],
    },
    {
        "name": "dataflow_service_options",
        "label": "Service options",
        "helpText": "options of the Dataflow service, separated by commas",
        "isOptional": True,
        "paramType": "TEXT",
    },
)


def metadata() -> dict[str, Any]:
    """The metadata of the template: one parameter for each option of a conversion, and those of the engine."""
    parameters = [parameter(field) for _, field in option_fields()]
    return {
        "name": NAME,
        "description": DESCRIPTION,
        "streaming": False,
        "parameters": [*sorted(parameters, key=lambda found: found["isOptional"]), *ENGINE_PARAMETERS],
    }


def metadata_text() -> str:
    """The content of flex_template.json."""
    return json.dumps(metadata(), indent=2, ensure_ascii=False) + "\n"


def parameter(field: dataclasses.Field[Any]) -> dict[str, Any]:
    """One option as a parameter."""
    about = field.metadata
    help_text = about["help"].replace("may be repeated", SEVERAL) if about["repeated"] else about["help"]
    made: dict[str, Any] = {
        "name": field.name,
        "label": field.name.replace("_", " ").capitalize(),
        "helpText": help_text,
        "isOptional": field.name not in REQUIRED,
    }
    choices: Sequence[str] = about["choices"]
    if choices:
        made["paramType"] = "ENUM"
        made["enumOptions"] = [{"value": choice, "label": choice} for choice in choices]
        made["regexes"] = [f"^({'|'.join(map(re.escape, choices))})$"]
    else:
        # No parameter is a place in Cloud Storage of which the service may demand that it is one: all may be of
        # another store as well.
        made["paramType"] = "BOOLEAN" if isinstance(field.default, bool) else "TEXT"
        regex = REGEXES_OF.get(field.name) or REGEXES.get(about["parse"])
        if regex:
            made["regexes"] = [regex]
    default = "false" if field.default is False else default_text(field)
    if default:
        made["defaultValue"] = default
    return made


# ---------------------------------------------------------------------------------------------------------------------
# The launcher

_NEXT_PLACE = re.compile(r"\s*\n\s*|\s*,\s*(?=(?:[A-Za-z0-9][A-Za-z0-9_.-]*=)?[a-z][a-z0-9+.-]*://)")


def places(value: str) -> list[str]:
    """The places in a parameter that holds several: ``gs://b/a, b.csv,test=gs://b/c`` are two."""
    return [place for place in _NEXT_PLACE.split(value.strip()) if place]


def convert_flags(arguments: Sequence[str]) -> list[str]:
    """The flags of ``convert`` for the arguments of the launcher. Raises ConfigError for a switch that is neither."""
    fields = {field.name: field for _, field in option_fields()}
    flags: list[str] = []
    for argument in arguments:
        name, equals, value = argument.removeprefix("--").partition("=")
        field = fields.get(name)
        if field is None or not equals:
            flags.append(argument)
        elif not value:
            continue  # a form that was left empty
        elif isinstance(field.default, bool):
            flags += [f"--{name}"] * _is_on(name, value)
        elif field.metadata["repeated"]:
            flags += [f"--{name}={place}" for place in places(value)]
        else:
            flags.append(argument)
    if not any(flag.partition("=")[0] == "--runner" for flag in flags):
        flags.append("--runner=DataflowRunner")
    return [*flags, "--no_wait"]


def _is_on(name: str, value: str) -> bool:
    try:
        return bool(parse_flag(value))
    except ValueError as error:
        raise ConfigError(f"--{name} {value}: {error}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the metadata, or do what the launcher asks; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--metadata", action="store_true")
    own, rest = parser.parse_known_args(given)
    if own.metadata:
        print(metadata_text(), end="")
        return 0
    return guarded(lambda: convert.convert(convert_flags(rest)), convert.NOTHING_WRITTEN)


if __name__ == "__main__":
    sys.exit(end_of_process(main()))
