"""argparse as every command uses it: errors of ours, a help that fits a screen, and the whole of it on request."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from beam_tfrecord.errors import ConfigError, nearest
from beam_tfrecord.options.places import parse_target

ALL = "all"
_WIDTH = 98  # a line that is longer is hard to read
_FLAG_WIDTH = 30


class ArgumentParser(argparse.ArgumentParser):
    """argparse that raises ConfigError instead of leaving the process, and never guesses from prefixes.

    A parser with topics (named groups of options) has a short help of the options in ``common``, and ``--help TOPIC``.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        self.topics: dict[str, argparse._ArgumentGroup] = {}
        self.common: set[str] = set()

    def add_topic(self, name: str, title: str) -> argparse._ArgumentGroup:
        """A group of options that ``--help NAME`` shows."""
        self.topics[name] = self.add_argument_group(title)
        return self.topics[name]

    def error(self, message: str) -> NoReturn:
        raise ConfigError(message)

    def help_on(self, topic: str = "") -> str:
        """The help: '' for the common options (all, where there are no topics), ``all``, a topic, or a flag's name.

        Raises ConfigError for a topic that there is not, with the nearest.
        """
        name = topic.lstrip("-").replace("-", "_")
        actions = {action.dest: action for action in self._actions}
        if name and name != ALL and name not in self.topics and name not in actions:
            groups = f"; there are {', '.join([ALL, *self.topics])}"
            told = nearest(name, [ALL, *self.topics, *actions])
            raise ConfigError(f"--help {topic}: there is no such group of options{told}{groups}")
        formatter = self._get_formatter()
        if not name or name == ALL:
            formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
            formatter.add_text(self.description)
        if name in actions and name not in self.topics:
            formatter.add_arguments([actions[name]])
            return formatter.format_help()
        is_short = bool(self.topics) and not name
        for group in self._action_groups:
            if name in self.topics and group is not self.topics[name]:
                continue
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(
                [action for action in group._group_actions if not is_short or action.dest in self.common]
            )
            formatter.end_section()
        if is_short:
            formatter.add_text(self._further_text())
        if not name or name == ALL:
            formatter.add_text(self.epilog)
        return formatter.format_help()

    def _further_text(self) -> str:
        """Which options a short help leaves out, and how they are seen."""
        lines = ["further options:"]
        for name, group in self.topics.items():
            left = " ".join(f"--{action.dest}" for action in group._group_actions if action.dest not in self.common)
            for line in textwrap.wrap(left, _width() - 14, break_on_hyphens=False):
                lines.append(f"  {name:10}  {line}")
                name = ""
        lines.append(f"  --help {ALL} shows all options, --help GROUP a group of them, --help OPTION one")
        return "\n".join(lines)


def command_parser(prog: str, arguments: str, description: str, epilog: str) -> ArgumentParser:
    """The parser of a command, with its --help. arguments: what stands behind the command in the usage."""
    parser = ArgumentParser(
        prog=prog,
        usage=f"{prog} {arguments}",
        description=description,
        epilog=epilog,
        formatter_class=_HelpFormatter,
        add_help=False,
    )
    return parser


def add_help_flag(group: argparse._ActionsContainer, parser: ArgumentParser) -> None:
    """-h and --help; with a topic behind it where the parser has topics."""
    has_topics = bool(parser.topics)
    group.add_argument(
        "-h",
        "--help",
        action=_Help,
        nargs="?" if has_topics else 0,
        metavar="GROUP" if has_topics else None,
        help="show this help, or all options, or those of a group" if has_topics else "show this help",
    )


def count_of(text: str) -> int:
    """A whole number from 0, for argparse."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def one_of(*choices: str) -> Callable[[str], str]:
    """For ``type=`` of a flag: one of some words. The nearest is named for any other."""

    def check(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(f"{text!r} must be one of {', '.join(choices)}{nearest(text, choices)}")
        return text

    return check


def place_to_write(text: str) -> str:
    """For ``type=`` of a flag: a place that is written."""
    try:
        return parse_target(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def choices_metavar(choices: Sequence[str]) -> str:
    """``{a,b,c}``."""
    return "{" + ",".join(choices) + "}"


class _Help(argparse.Action):
    """Prints the help and ends the command."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, default=argparse.SUPPRESS, **options)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *flag: str | None
    ) -> None:
        assert isinstance(parser, ArgumentParser)
        print(parser.help_on(values if isinstance(values, str) else ""), end="")
        parser.exit()


class _HelpFormatter(argparse.HelpFormatter):
    """Paragraphs are wrapped to the terminal; those with indented lines (examples) stay as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_FLAG_WIDTH, width=_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.strip("\n").split("\n\n")
        return "\n\n".join(
            paragraph
            if "\n  " in paragraph
            else textwrap.fill(" ".join(paragraph.split()), width, break_on_hyphens=False)
            for paragraph in paragraphs
        )


def _width() -> int:
    return min(shutil.get_terminal_size().columns - 2, _WIDTH)
