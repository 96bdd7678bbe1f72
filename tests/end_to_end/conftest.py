"""Datasets to work with: each is converted once for all tests, which only read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import Page, browser
from tests.end_to_end.reading.kinds import convert_kind


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``dataset(kind, **options)``: the folder of a finished dataset."""
    made: dict[str, Path] = {}

    def find(kind: str, **options: Any) -> Path:
        name = json.dumps([kind, options], sort_keys=True)
        if name not in made:
            made[name] = convert_kind(kind, tmp_path_factory.mktemp(kind), **options)
        return made[name]

    return find


@pytest.fixture(scope="module")
def tab(chromium: str) -> Iterator[Page]:
    """A browser for all tests of a module."""
    with browser(chromium) as page:
        yield page


@pytest.fixture
def page(tab: Page, report: Path) -> Page:
    """The report of the module (its fixture ``report``), freshly loaded."""
    tab.open_anew(report)
    return tab
