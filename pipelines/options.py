"""Flags to config: the command line is generated from the options that the config dataclasses declare."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.errors import ConfigError, is_nearly, nearest
from beam_tfrecord.options.config import SECTIONS, ConvertConfig, option_fields
from beam_tfrecord.options.places import expand_flag
from pipelines.parsers import ArgumentParser, add_help_flag, choices_metavar
from pipelines.terminal import say

# What most users need, which the short help of convert shows.
COMMON = frozenset(
    (
        *("input", "format", "images", "label_column", "columns", "labels"),
        *("splits", "num_shards", "image_format", "resize", "keys"),
        *("output", "max_rejects", "resume", "overwrite"),
    )
)
LONGEST_CHOICES = 60  # characters; more are told behind the text
SECTION_TITLES = {
    "manifest": "what is read",
    "choosing": "what of it is taken, in this order",
    "labels": "labels",
    "splits": "splits and order",
    "shards": "shards",
    "images": "images",
    "insight": "what is told of the pictures (never changes a byte)",
    "features": "features and annotations",
    "output": "output",
    "run": "speed (never changes a byte)",
}


@dataclass(frozen=True)
class TerminalOptions:
    """How a command talks: not part of what it does."""

    plan: bool = False
    quiet: bool = False
    json: bool = False
    no_wait: bool = False


def add_terminal_flags(parser: ArgumentParser) -> argparse._ArgumentGroup:
    """--quiet, --json and --help, which every command has."""
    group = parser.add_topic("terminal", "terminal") if parser.topics else parser.add_argument_group("terminal")
    group.add_argument("--quiet", action="store_true", help="say nothing but errors and the last line")
    group.add_argument("--json", action="store_true", help="end with one JSON object on stdout")
    add_help_flag(group, parser)
    parser.common |= {"quiet", "json", "help"}
    return group


def add_config_flags(
    parser: ArgumentParser, sections: Iterable[str] = SECTIONS, without: Collection[str] = frozenset()
) -> None:
    """One flag for each option of the config; each section is a topic of the help.

    sections: those whose options the command has. without: options of them that it does not have.
    """
    groups = {name: parser.add_topic(name, SECTION_TITLES[name]) for name in sections}
    for section, field in option_fields():
        if section in groups and field.name not in without:
            add_option(groups[section], field)
    parser.common |= COMMON


def add_option(group: argparse._ArgumentGroup, field: dataclasses.Field[Any]) -> None:
    """The flag of one option. Values stay text: the config parses and checks them."""
    about = field.metadata
    default = default_text(field)
    text = about["help"] + (f" (default: {default})" if default else "")
    if isinstance(field.default, bool):
        group.add_argument(f"--{field.name}", action="store_true", default=None, help=text)
        return
    choices = choices_metavar(about["choices"]) if about["choices"] else ""
    if len(choices) > LONGEST_CHOICES:
        choices, text = "", f"{text}; one of {', '.join(about['choices'])}"
    group.add_argument(
        f"--{field.name}",
        action="append" if about["repeated"] else "store",
        default=None,
        metavar=choices or about["metavar"] or field.name.upper(),
        help=text.replace("%", "%%"),
    )


def default_text(field: dataclasses.Field[Any]) -> str:
    """The default of an option as a user would write it; '' where there is none, and for switches."""
    default: Any = field.default
    if default in (None, "", ()) or isinstance(default, bool):
        return ""
    if field.name in ("shard_size", "read_ahead"):
        default = f"{default // 2**20}MiB"
    elif isinstance(default, float):
        default = f"{default:.0%}"
    elif isinstance(default, tuple):
        default = ",".join(map(str, default))
    return str(default)


def config_from(arguments: argparse.Namespace, **others: Any) -> ConvertConfig:
    """The config for parsed flags, and for other options where these flags are not given. Raises ConfigError."""
    names = {field.name for _, field in option_fields()}
    given = {name: value for name, value in vars(arguments).items() if name in names and value is not None}
    return ConvertConfig.from_options({**others, **given})


def with_underscores(arguments: Iterable[str], known: Iterable[str]) -> list[str]:
    """``--num-shards=2`` as ``--num_shards=2``, for flags that are known so; everything else stays."""
    names = set(known)
    changed = []
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        other = "--" + flag[2:].replace("-", "_")
        changed.append(other + equals + value if flag.startswith("--") and other in names else argument)
    return changed


def flags_of(parser: argparse.ArgumentParser) -> list[str]:
    """All flags of a parser."""
    return [flag for action in parser._actions for flag in action.option_strings]


def split_beam_flags(parser: ArgumentParser, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """(our flags, the rest for Beam). Raises ConfigError for a flag that neither knows, with the nearest match.

    What only the job server of an engine can know is passed on, and told.
    """
    ours = flags_of(parser)
    arguments = with_underscores(arguments, ours)
    namespace, rest = parser.parse_known_args(arguments)
    if rest:
        tell_passed_on(check_beam_flags(rest, ours), namespace)
    return namespace, [expand_flag(argument) for argument in rest]


def make_beam_parser() -> ArgumentParser:
    """A parser of all flags of Beam's PipelineOptions."""
    import beam_tfrecord.transforms  # noqa: F401 - Beam, without its words about clients that are not needed

    # isort: split
    from apache_beam.options.pipeline_options import PipelineOptions

    parser = ArgumentParser(add_help=False)
    for options in [PipelineOptions, *PipelineOptions.__subclasses__()]:
        adder = getattr(options, "_add_argparse_args", None)
        if adder is not None:
            try:
                adder(parser)
            except (argparse.ArgumentError, TypeError):
                continue  # two option classes of Beam declare one flag
    return parser


def parse_for_beam(parser: ArgumentParser, arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Beam's options, and the arguments that are not Beam's. Raises ConfigError for a value that Beam cannot read."""
    try:
        return parser.parse_known_args(list(arguments))
    except (TypeError, AttributeError) as error:  # of an option whose JSON is of another kind than Beam expects
        raise ConfigError(
            f"an option of Beam has a value that it cannot read ({error}); see its documentation"
        ) from None


def check_beam_flags(arguments: Sequence[str], ours: Sequence[str]) -> list[str]:
    """The flags that are no option of Beam's either, but may be one of the engine's job server: ``--flag=value``.

    Raises ConfigError where the engine has none, for what is nearly a flag that is known, and for words that belong to
    no flag.
    """
    parser = make_beam_parser()
    options, unknown = parse_for_beam(parser, arguments)
    known = [*ours, *flags_of(parser)]
    passed_on: list[str] = []
    for argument in unknown:
        if not argument.startswith("-"):
            cure = f"; for an option of the job server: {passed_on[-1]}={argument}" if passed_on else "; see --help"
            raise ConfigError(f"{argument!r} belongs to no flag{cure}")
        flag = argument.partition("=")[0]
        if not is_for_job_server(flag, options.runner, known):
            raise ConfigError(f"there is no flag {flag}{nearest(flag, known)}; --help lists all")
        passed_on.append(flag)
    return passed_on


def is_for_job_server(flag: str, runner: str | None, known: Sequence[str]) -> bool:
    """Whether a flag that is not known can be an option of the job server through which jobs reach an engine.

    What is nearly a known flag is a slip of the pen: Beam's client would drop it in silence.
    """
    from beam_tfrecord.transforms.engines import engine_named

    if not flag.startswith("--") or len(flag) < 3 or is_nearly(flag, known):
        return False
    return engine_named(runner or "DirectRunner").has_job_server


def tell_passed_on(flags: Sequence[str], namespace: argparse.Namespace) -> None:
    """Say which flags only the job server can know."""
    if flags and not namespace.quiet:
        say(f"note: neither this tool nor Beam knows {', '.join(flags)}: passed on to the job server")
