"""Labelled images to TFRecords that are complete, reproducible, verified and self-describing.

The names that ``__init__.pyi`` imports are the public surface. Each is imported when it is first used, so that
importing the package costs nothing: neither Apache Beam nor TensorFlow is loaded for it.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
from functools import cache
from typing import Any


@cache
def _places() -> dict[str, str]:
    """The module of each public name."""
    stub = pkgutil.get_data(__name__, "__init__.pyi")
    if stub is None:
        raise ImportError(f"{__name__} was loaded by something that cannot read __init__.pyi, which names what it has")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_places())
    if name not in _places():
        module = sys.modules[__name__]  # Python names the nearest of its public names
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=module)
    return getattr(importlib.import_module(_places()[name]), name)


def __dir__() -> list[str]:
    return sorted(_places())
