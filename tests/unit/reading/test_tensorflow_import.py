"""TensorFlow is imported once, in what a program surrounds the import with, whichever threads need it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from beam_tfrecord.reading.tensorflow_import import import_tensorflow, surrounded_import
from pipelines.verify import loading_tensorflow


@pytest.fixture
def slow_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module of the name that takes a while and talks below Python, in place of the real one."""
    (tmp_path / "tensorflow.py").write_text(
        "import os, time\ntime.sleep(0.2)\nos.write(2, b'no graphics card')\n__version__ = '0'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    real = sys.modules.pop("tensorflow", None)
    import_tensorflow.cache_clear()
    yield
    sys.modules.pop("tensorflow", None)
    import_tensorflow.cache_clear()
    if real is not None:
        sys.modules["tensorflow"] = real


@pytest.mark.usefixtures("slow_module")
def test_the_surroundings_are_entered_once_and_hold_until_they_are_left() -> None:
    log: list[str] = []

    @contextlib.contextmanager
    def surroundings() -> Iterator[None]:
        log.append("entered")
        yield
        log.append("left")

    with ThreadPoolExecutor(4) as pool:
        with surrounded_import(surroundings):
            results = [pool.submit(import_tensorflow) for _ in range(8)]
            while not log:
                time.sleep(0.01)
        assert log == ["entered", "left"]  # it was waited for
    assert log == ["entered", "left"]
    assert {result.result().__version__ for result in results} == {"0"}


@pytest.mark.usefixtures("slow_module")
def test_the_surroundings_are_over_with_their_program() -> None:
    with surrounded_import(lambda: pytest.fail("entered")):
        pass
    assert import_tensorflow().__version__ == "0"


@pytest.mark.usefixtures("slow_module")
@pytest.mark.parametrize("quiet", [False, True])
def test_a_word_is_said_and_the_library_is_not_heard(quiet: bool, capfd: pytest.CaptureFixture[str]) -> None:
    def surroundings() -> contextlib.AbstractContextManager[None]:
        return loading_tensorflow("tensorflow", quiet=quiet)

    with surrounded_import(surroundings), ThreadPoolExecutor(1) as pool:
        pool.submit(import_tensorflow).result()
        os.write(2, b"heard again\n")
    _, err = capfd.readouterr()
    assert err == ("" if quiet else "loading TensorFlow, which decodes the images\n") + "heard again\n"
