"""Dataclasses whose fields are also flags: declared once, parsed and checked when an instance is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.errors import ConfigError, nearest


def option(
    default: Any,
    help: str,
    *,
    parse: Callable[[Any], Any] = str,
    choices: Sequence[str] = (),
    metavar: str = "",
    repeated: bool = False,
    decides_bytes: bool = True,
) -> Any:
    """A field that is also a flag.

    parse: turns text or a Python value into the field's value; raises ValueError with a short reason.
    decides_bytes: False for options that cannot change what is written (they stay out of the fingerprint).
    """
    return dataclasses.field(
        default=default,
        metadata={
            "help": help,
            "parse": parse,
            "choices": choices,
            "metavar": metavar,
            "repeated": repeated,
            "decides_bytes": decides_bytes,
        },
    )


@dataclass(frozen=True)
class ConfigSection:
    """Base of the config dataclasses: parses and checks each option when an instance is made."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if "parse" in field.metadata:
                object.__setattr__(self, field.name, _parsed(field, getattr(self, field.name)))
        self.check()

    def check(self) -> None:
        """Checks of several options together; raises ConfigError."""

    def to_json(self) -> dict[str, Any]:
        """The options as plain JSON values, in the order in which they are declared."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if "parse" in field.metadata
        }


def _parsed(field: dataclasses.Field[Any], value: Any) -> Any:
    if value is None or value is field.default:
        return value
    choices = field.metadata["choices"]
    try:
        parsed = field.metadata["parse"](value)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"--{field.name} {value!s}: {error}") from None
    if choices and parsed not in choices:
        raise ConfigError(f"--{field.name} {value}: must be one of {', '.join(choices)}{nearest(str(value), choices)}")
    return parsed


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return str(value) if hasattr(value, "_fields") else [_plain(item) for item in value]
    if isinstance(value, ConfigSection):
        return value.to_json()
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
