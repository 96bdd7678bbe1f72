"""The image tests run as where pillow-heif is not installed, unless a test asks for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from beam_tfrecord.images import opened


@pytest.fixture(autouse=True)
def without_heif(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hides pillow-heif, which is an extra: what is stored by default must not depend on it."""
    if "heif" not in request.fixturenames:
        monkeypatch.setitem(sys.modules, "pillow_heif", None)
    opened.plugin.cache_clear()
    yield
    opened.plugin.cache_clear()


@pytest.fixture
def heif() -> None:
    """For tests that need pillow-heif; they are skipped where it is not installed."""
    pytest.importorskip(
        "pillow_heif", reason="needs pillow-heif: pip install 'beam-tfrecord[heif]'"
    ).register_heif_opener()
