"""Names and labels that are meant to take over a page or a terminal stay what they are: text."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from pipelines.main import main
from tests.samples import jpeg, noise, truncated, write_files, write_table

SCRIPT = "<script>document.title='taken over'</script>"
ATTRIBUTE = "\"'><img src=x onerror=\"document.title='taken over'\">"
CONTROL = "a\x1b[2J\x07\u202eb"
Captured = pytest.CaptureFixture[str]


class Page(HTMLParser):
    """How often each tag occurs, attributes that run something, and addresses that are loaded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.handlers: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        values = [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        self.loaded += [value for value in values if not value.startswith(("data:image/", "#"))]


def page_of(folder: Path, labels: tuple[str, str, str]) -> str:
    """The report of three pictures with these labels and names, the second of which is damaged."""
    pictures = {f"{n}.jpg": jpeg(Image.fromarray(noise(24, 24, n))) for n in range(3)}
    write_files(folder / "in", {**pictures, "1.jpg": truncated(pictures["1.jpg"], 0.3)})
    rows = [(f"{n}.jpg", label, label, label) for n, label in enumerate(labels)]
    table = write_table(folder / "in" / "table.csv", [("image", "label", "id", "note"), *rows])
    flags = ["--columns", "note:string", "--id_column", "id", "--max_rejects", "1"]
    assert main(["convert", "--input", str(table), "--output", str(folder / "out"), *flags]) == 0
    return (folder / "out" / "report.html").read_text("utf-8")


def test_a_report_of_hostile_names_has_the_elements_of_any_other(tmp_path: Path) -> None:
    hostile, harmless = (
        Page(page_of(tmp_path / "a", (SCRIPT, ATTRIBUTE, CONTROL))),
        Page(page_of(tmp_path / "b", ("x", "y", "z"))),
    )
    assert hostile.tags["script"] == harmless.tags["script"]
    assert hostile.tags["img"] == harmless.tags["img"]
    assert hostile.handlers == harmless.handlers == []
    assert hostile.loaded == []


def test_hostile_names_do_not_reach_the_terminal_or_a_sheet(tmp_path: Path, capsys: Captured) -> None:
    page_of(tmp_path, (CONTROL, SCRIPT, CONTROL + "2"))
    out = str(tmp_path / "out")
    assert main(["show", out]) == 0
    assert main(["show", out, "--sheet", str(tmp_path / "sheet.png")]) == 0
    assert main(["verify", out, "--decoder", "pillow"]) == 0
    assert main(["extract", out, "--output", str(tmp_path / "folder")]) == 0
    told = "".join(capsys.readouterr())
    assert not set("\x1b\x07\u202e") & set(told)
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size > (24, 24)
        assert not sheet.info.get("Comment")
