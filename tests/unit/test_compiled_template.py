"""The compiled template of the report: kept where Python keeps what it compiles, and never needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHOW = (
    "import jinja2; compiled = []; compile = jinja2.Environment.compile\n"
    "jinja2.Environment.compile = lambda self, *args, **more: compiled.append(1) or compile(self, *args, **more)\n"
    "from beam_tfrecord.report.compiled_template import load_template\n"
    "template = load_template('report.html.j2')\n"
    "print(len(compiled), len(template.root_render_func.__code__.co_code))"
)


def loaded(cache: Path, **environment: str) -> tuple[int, int]:
    """How often the template was compiled by a fresh process, and how long the code is."""
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        env={**given, "PYTHONPYCACHEPREFIX": str(cache), **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    compiled, length = done.stdout.split()
    return int(compiled), int(length)


def kept(cache: Path) -> list[Path]:
    return list(cache.rglob("*.cache"))


def test_it_is_compiled_once(tmp_path: Path) -> None:
    first = loaded(tmp_path)
    assert first[0] == 1
    assert len(kept(tmp_path)) == 1
    assert loaded(tmp_path) == (0, first[1])


def test_nothing_is_kept_where_python_keeps_nothing(tmp_path: Path) -> None:
    assert loaded(tmp_path, PYTHONDONTWRITEBYTECODE="1")[0] == 1
    assert not kept(tmp_path)


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0x40]) + data[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:30],
        lambda data: data[: len(data) // 2],
        lambda data: flipped(data, 5),
        lambda data: flipped(data, 40),
        lambda data: flipped(data, len(data) // 2),
    ],
)
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: object) -> None:
    first = loaded(tmp_path)
    [file] = kept(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))  # type: ignore[operator]
    assert loaded(tmp_path) == first
    assert file.read_bytes() == whole


def test_a_place_that_cannot_be_written_to_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert loaded(tmp_path / "file")[0] == 1
