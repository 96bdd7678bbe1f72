"""What ``make test-engines`` has fetched, for tests that need it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fetch_engines import named_jar

FOLDER = os.environ.get("ENGINES", "")


def fetched(name: str) -> Path:
    """A program or a jar; the test is skipped where it could not be had."""
    if not FOLDER:
        pytest.skip("engines are tested by make test-engines, which fetches them")
    found = named_jar(name) or Path(FOLDER).resolve() / name
    if not found.exists():
        pytest.skip(f"{name} could not be fetched; see the output of make test-engines")
    return found
