"""Modules from outside of the package that add manifest formats and kinds of annotation.

They are named, never looked for: what is installed must not decide what a dataset holds. A module registers what it has
when it is imported, by :func:`beam_tfrecord.register_format` and :func:`beam_tfrecord.register_kind`. Every process
that converts imports it: the config carries the names, and imports the modules where it arrives.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any

from beam_tfrecord.errors import ConfigError
from beam_tfrecord.options.values import parse_names

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def parse_modules(value: Any) -> tuple[str, ...]:
    """Names of modules separated by commas, or a sequence of them. Raises ValueError for what can be none."""
    names = parse_names(value)
    for name in names:
        if not _MODULE.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a module, such as my_formats or my_package.formats")
    return names


def load_plugins(names: Iterable[str]) -> None:
    """Import some modules. Raises ConfigError for one that there is not; what is wrong inside of one stays a bug."""
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            raise ConfigError(
                f"--plugins {name}: there is no module {error.name!r}; install it here and for the workers, or name "
                "its folder in PYTHONPATH"
            ) from None
