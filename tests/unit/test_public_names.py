"""The public names: listed once, imported when they are used, and known to type checkers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import beam_tfrecord
from tests.conftest import ROOT


def test_every_name_is_there_and_star_and_dir_give_all_of_them() -> None:
    """docs/api.md names the same ones: tests/docs holds that, and a name that goes is missed there."""
    names: dict[str, object] = {}
    exec("from beam_tfrecord import *", names)
    del names["__builtins__"]
    assert sorted(names) == dir(beam_tfrecord) == beam_tfrecord.__all__
    assert {"__version__", "ConvertConfig", "convert", "load"} <= set(names)
    assert all(names[name] is getattr(beam_tfrecord, name) for name in names)
    assert beam_tfrecord.ManifestError.__module__ == "beam_tfrecord.errors"


def test_a_name_that_is_not_there_is_an_attribute_error_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match="module 'beam_tfrecord' has no attribute 'conver'"):
        beam_tfrecord.conver  # type: ignore[attr-defined]  # noqa: B018
    script = "import beam_tfrecord; beam_tfrecord.conver"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Did you mean: 'convert'?" in done.stderr


def test_importing_the_package_loads_nothing_else_of_it() -> None:
    script = """
import sys, beam_tfrecord
assert [name for name in sys.modules if name.startswith("beam_tfrecord.")] == []
beam_tfrecord.ConfigError, beam_tfrecord.Row, beam_tfrecord.load
assert not {"apache_beam", "tensorflow"} & set(sys.modules), sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


@pytest.mark.slow
def test_a_type_checker_knows_every_name_and_refuses_others(tmp_path: Path) -> None:
    """As a program that has the package installed is checked: strictly, with names that must be exported."""
    program = tmp_path / "program.py"
    uses = "\n".join(f"reveal_type({name})" for name in beam_tfrecord.__all__)
    program.write_text(
        f"from beam_tfrecord import {', '.join(beam_tfrecord.__all__)}\n{uses}\nfrom beam_tfrecord import nothing\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path / 'cache'}", "--config-file="]
    done = subprocess.run([*mypy, str(program)], cwd=ROOT, capture_output=True, text=True, check=False)
    told = done.stdout.splitlines()
    about = [line for line in told if line.startswith(str(program))]
    assert sum("Revealed type is" in line for line in about) == len(beam_tfrecord.__all__), done.stdout
    assert not any("Any" in line.partition("Revealed")[2].split("(")[0] for line in about)
    (error,) = [line for line in about if "error:" in line]
    assert 'Module "beam_tfrecord" has no attribute "nothing"' in error
