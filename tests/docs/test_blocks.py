"""Every block of the README and of the documentation does what it says."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

import beam_tfrecord
from tests.conftest import ROOT
from tests.docs.blocks import PAGES, Block, blocks, commands, headings
from tests.docs.places import make
from tests.docs.running import handle

# Blocks that another test runs, which has more of what they need. Its text names the page.
ELSEWHERE = {
    ("docs/reading.md", "python"): "tests/end_to_end/reading/test_docs.py",
    ("docs/annotations.md", "python"): "tests/unit/annotations/test_docs.py",
}
# Kinds of blocks that are no commands: what a file holds, or what a command says.
SHOWN = {"text", "csv", "tsv", "json", "jsonl", "xml", "yaml", "console"}
MASKED = re.compile(r"\d+\.\d+ s\b")
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[[^\]\n]*\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.filterwarnings("ignore")  # of packages that examples use
def test_the_blocks_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGINT)
    names: dict[str, Any] = {"__name__": "page"}
    variables: dict[str, str] = {}
    said = ""
    for block in blocks(page):
        try:
            if block.title:
                write_shown(block, tmp_path)
            elif block.language == "sh":
                capfd.readouterr()
                for words in commands(block.text, variables):
                    handle(words, tmp_path)
                said = capfd.readouterr().out
            elif block.language == "python":
                run_python(block, tmp_path, names)
            elif block.language == "text" and follows_commands(block):
                compare(block.text, said, tmp_path)
            else:
                assert block.language in SHOWN, f"a block in {block.language or 'no language'}: say sh, python or text"
        except Exception as error:
            raise AssertionError(f"{block.place}: {type(error).__name__}: {error}") from error
    signal.signal(signal.SIGINT, before)


def write_shown(block: Block, folder: Path) -> None:
    """The file that a block shows the content of, and the pictures that it names."""
    path = folder / block.title
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, "utf-8")
    for name in re.findall(r"\b(images|photos|masks)/", block.text + block.title):
        make(name, folder)


def run_python(block: Block, folder: Path, names: dict[str, Any]) -> None:
    if (block.page, block.language) in ELSEWHERE:
        return
    for name in re.findall(r'"([^"\n]+)"', block.text):
        make(name.split("/")[0], folder)
    exec(compile(block.text, block.place, "exec"), names)


def follows_commands(block: Block) -> bool:
    """Whether a block of text comes right behind commands, with nothing but a blank line between."""
    lines = (ROOT / block.page).read_text("utf-8").splitlines()[: block.line - 2]
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines or lines[-1].strip() != "```":
        return False
    earlier = [other for other in blocks(block.page) if other.line < block.line]
    return bool(earlier) and earlier[-1].language == "sh"


def compare(shown: str, said: str, folder: Path) -> None:
    """Whether a command said what is shown; times may differ, and ``...`` stands for any lines."""
    parts = [re.escape(mask(part.strip("\n"))) for part in shown.split("...\n")]
    assert re.search(r"^" + r"\n(?:.*\n)*?".join(parts) + r"$", mask(said), re.MULTILINE), said


def mask(text: str) -> str:
    return MASKED.sub("0.0 s", text)


def test_blocks_that_run_elsewhere_are_named_there() -> None:
    for (page, language), place in ELSEWHERE.items():
        assert page in (ROOT / place).read_text("utf-8").replace('" / "', "/")
        assert any(block.language == language for block in blocks(page))


def test_a_block_that_does_not_work_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (
        "beam-tfrecord convert --input photos --output out --no_such_flag 3",
        "beam-tfrecord convert --input nowhere --output out",
        "beam-tfrecord convert --input gs://b/a.csv --output gs://b/out --runner DataflowRunner",
        "beam-tfrecord convert ... --runner FlinkRunner --no_such_flag 3",
        "beam-tfrecord convrt --input photos --output out",
        "make no-such-target",
        "pip install 'beam-tfrecord[no_such_extra]'",
        "python -m no_such_module",
        "frobnicate",
    ):
        (words,) = commands(text)
        with pytest.raises(Exception):  # noqa: B017, PT011  (ConfigError, AssertionError, SystemExit ...)
            handle(words, tmp_path)


def test_words_of_commands_are_those_of_a_shell() -> None:
    text = "A=x B=$A-1\nrun $B 'a # b' \\\n  --flag  # comment\n# nothing\nserve --port 1 &\n"
    assert list(commands(text)) == [["run", "x-1", "a # b", "--flag"], ["serve", "--port", "1"]]


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_lead_somewhere(page: str) -> None:
    """From where the page lies, so on GitHub; ``make docs`` checks those of the site."""
    text = (ROOT / page).read_text("utf-8")
    found = [*LINK.findall(text), *(place for pair in IMAGE.findall(text) for place in pair if place)]
    for link in found:
        if re.match(r"https?:|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), f"{page}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in headings(target.resolve().relative_to(ROOT).as_posix()), f"{page}: {link}"


def test_every_page_is_in_the_site() -> None:
    listed = set(re.findall(r"\b([a-z_]+\.md)\b", (ROOT / "mkdocs.yml").read_text("utf-8")))
    from_the_root = {"changelog.md", "security.md"}  # they become pages when the site is built
    assert {Path(page).name for page in PAGES if page.startswith("docs/")} == listed - from_the_root


def test_every_public_name_is_in_the_api() -> None:
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    documented = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)}
    assert documented == set(beam_tfrecord.__all__) - {"__version__"}
    assert all(getattr(beam_tfrecord, name).__doc__ for name in documented)


def test_the_files_that_the_readme_lists_are_those_of_a_dataset(tmp_path: Path) -> None:
    make("photos", tmp_path)
    beam_tfrecord.convert(str(tmp_path / "photos"), tmp_path / "out")
    (listing,) = [block.text for block in blocks("README.md") if block.text.startswith("out/\n")]
    listed = set(re.findall(r"[\w.-]+\.(?:tfrecord|json|jsonl|txt|pbtxt|html)\b", listing))
    assert listed == {path.name for path in (tmp_path / "out").iterdir()}


def test_pictures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs/pictures").iterdir()}
    assert sizes
    assert max(sizes.values()) < 200_000, json.dumps(sizes)
