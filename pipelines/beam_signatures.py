"""Beam builds a pipeline of ours in two thirds of the time when it looks at the signature of a function only once.

It looks at all methods of each DoFn again whenever it asks whether the DoFn has state: some thousand times for one
conversion, a tenth of the time that a small one takes.
"""

from __future__ import annotations

import sys
from types import FunctionType, MethodType
from typing import Any

Arguments = tuple[list[str], list[Any]]  # names, and values of the defaults


def remember_signatures() -> None:
    """From now on, where Beam is imported and has the function that this stands before. May be called again."""
    core: Any = sys.modules.get("apache_beam.transforms.core")
    look = getattr(core, "get_function_args_defaults", None)
    if look is None or hasattr(look, "look"):
        return
    known: dict[FunctionType, Arguments] = {}

    def remembered(function: Any) -> Arguments:
        if type(function) is not MethodType or type(function.__func__) is not FunctionType:
            found: Arguments = look(function)
            return found
        if function.__func__ not in known:
            known[function.__func__] = look(function)
        names, defaults = known[function.__func__]
        return list(names), list(defaults)

    remembered.look = look  # type: ignore[attr-defined]
    core.get_function_args_defaults = remembered
