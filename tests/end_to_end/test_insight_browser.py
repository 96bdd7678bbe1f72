"""What the pictures tell, as a person meets it in report.html: by keyboard, in Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.near_duplicates import scene
from tests.browser import Page
from tests.end_to_end.datasets import converted
from tests.end_to_end.test_report_browser import contrast, is_visible, visible_rows
from tests.samples import jpeg, write_files

pytestmark = pytest.mark.browser

TABLE = "insight-table"
STOP = "(e => e.dataset.filter ?? e.dataset.by ?? e.dataset.copy ?? (e.id || e.ariaLabel || e.tagName))"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two splits of three classes: copies in one split, leaks, a contradiction, blank and dark pictures."""
    folder = tmp_path_factory.mktemp("insight")
    files: dict[str, bytes] = {}
    for seed in range(12):
        split = "train" if seed < 8 else "test"
        files[f"{split}/{'abc'[seed % 3]}/{seed:02}.jpg"] = jpeg(scene(seed, 160, 120))
    files["train/a/again.jpg"] = jpeg(scene(0, 160, 120), 40)
    files["test/b/leak.jpg"] = jpeg(scene(1, 160, 120), 40)
    files["train/c/other.jpg"] = jpeg(scene(3, 160, 120), 40)
    files["train/a/blank.jpg"] = jpeg(Image.new("RGB", (160, 120), "teal"))
    files["test/b/blank.jpg"] = jpeg(Image.new("RGB", (160, 120), "navy"))
    files["train/b/dark.jpg"] = jpeg(scene(30, 160, 120).point(lambda value: value // 8))
    write_files(folder / "in", files)
    converted(folder / "in", folder / "out")
    return folder / "out" / "report.html"


@pytest.fixture
def page(page: Page) -> Page:
    page.run("document.querySelector('#insight [data-filter]').focus()")
    return page


def names(page: Page) -> list[str]:
    """Of the pictures in the rows of the table that are shown, in their order."""
    shown: list[str] = page.run(
        f"[...document.querySelectorAll('#{TABLE} tbody tr')].filter(row => !row.hidden)"
        ".map(row => row.querySelector('[data-name]').textContent.split('/').slice(-1)[0])"
    )
    return shown


def chosen(page: Page) -> str:
    """The choice that has the focus, as it stands."""
    value: str = page.run("document.activeElement.value")
    return value


def to_table(page: Page) -> None:
    page.run("document.getElementById('tab-panel-insight-pictures').focus()")
    page.press("ArrowRight")


def test_tab_goes_through_the_tools_the_tabs_and_the_table_in_the_order_of_the_page(page: Page) -> None:
    to_table(page)
    page.run("document.querySelector('#insight [data-filter]').focus()")
    stops = [page.run(f"{STOP}(document.activeElement)")]
    outlines = []
    for _ in range(6):
        page.press("Tab")
        stops.append(page.run(f"{STOP}(document.activeElement)"))
        outlines.append(page.run("getComputedStyle(document.activeElement).outlineStyle"))
    tools = ["insight-found", "code", "splits", "labels"]
    assert stops == [*tools, "tab-panel-insight-table", TABLE, "Table of what the pictures tell"]
    assert "none" not in outlines  # the focus can be seen


def test_arrows_change_between_pictures_and_table(page: Page) -> None:
    assert is_visible(page, "#insight-rows .picture")
    assert not is_visible(page, f"#{TABLE}")
    to_table(page)
    assert is_visible(page, f"#{TABLE}")
    assert not is_visible(page, "#insight-rows .picture")


def test_rows_are_chosen_by_finding_split_and_class_with_the_keyboard(page: Page) -> None:
    to_table(page)
    everything = names(page)
    assert visible_rows(page, TABLE) == len(everything) >= 6

    def choose(by: str, value: str) -> None:
        page.run(f"document.querySelector('#insight [data-by={by}]').focus()")
        page.press("Home")
        for _ in range(20):
            if chosen(page) == value:
                return
            page.press("ArrowDown")
        raise AssertionError(f"{value} cannot be chosen")

    choose("code", "blank_image")
    assert sorted(names(page)) == ["blank.jpg", "blank.jpg"]
    choose("splits", "test")
    assert names(page) == ["blank.jpg"]
    choose("labels", "a")
    assert names(page) == []
    choose("splits", "")
    assert names(page) == ["blank.jpg"]
    choose("code", "near_leak")
    assert names(page) == []
    choose("labels", "b")
    assert len(names(page)) == 1
    choose("labels", "")
    choose("code", "")
    assert names(page) == everything


def test_pictures_are_chosen_as_the_table_is(page: Page) -> None:
    page.type("blank test")
    rows = "[...document.querySelectorAll('#insight-rows [data-row]')]"
    shown = f"{rows}.filter(row => row.offsetHeight).map(row => row.dataset.code)"
    assert page.run(shown) == ["blank_image"]
    assert page.run("document.querySelector('#insight output').value").endswith("findings")
    page.press("Escape")
    assert len(page.run(shown)) >= 5


def test_what_contradicts_itself_comes_first_and_the_worst_of_each_finding_too(page: Page) -> None:
    rows: list[list[Any]] = page.run(
        f"[...document.querySelectorAll('#{TABLE} tbody tr')].map(row => [row.dataset.code, +row.cells[1].textContent])"
    )
    codes = list(dict.fromkeys(code for code, _ in rows))
    assert codes[:3] == ["label_conflict", "near_leak", "near_duplicate"]
    for code in codes:
        scores = [score for own, score in rows if own == code]
        assert scores == sorted(scores, reverse=True)


def test_the_names_that_are_shown_are_copied_once_each(page: Page) -> None:
    to_table(page)
    # What the clipboard gets, without one: a test machine may have none.
    page.run(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}})"
    )
    page.run("document.querySelector('#insight [data-copy]').focus()")
    page.press(" ")
    copied = page.run("window.copied").split("\n")
    assert copied.pop() == ""
    assert [name.rpartition("/")[2] for name in copied] == [Path(name).name for name in dict.fromkeys(copied)]
    assert {Path(name).name for name in copied} == set(names(page))
    assert page.run("document.querySelector('[data-copy]').nextElementSibling.value") == f"{len(copied)} copied"


def test_a_browser_without_a_clipboard_says_how_to_copy(page: Page) -> None:
    to_table(page)
    page.run("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.run("document.querySelector('#insight [data-copy]').focus()")
    page.press(" ")
    assert "mark the names" in page.run("document.querySelector('[data-copy]').nextElementSibling.value")


def test_its_texts_can_be_read_in_light_and_dark(page: Page) -> None:
    to_table(page)
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for selector in (f"#{TABLE} td", "#insight .tools label", "[data-copy]", "#insight .shares td.muted"):
            assert contrast(page, selector) >= 4.5, (scheme, selector)
    assert page.complaints() == []


def test_on_a_phone_the_page_does_not_scroll_sideways_and_names_can_be_seen(page: Page) -> None:
    to_table(page)
    page.resize(400, 800)
    assert page.run("document.documentElement.scrollWidth") == 400
    assert page.run(f"document.querySelector('#{TABLE} [data-name]').getBoundingClientRect().left") < 300
    below = "(row => row.cells[2].getBoundingClientRect().top >= row.cells[0].getBoundingClientRect().bottom)"
    assert page.run(f"[...document.querySelectorAll('#insight .meanings tr')].every({below})")  # the meaning has room


def test_flags_and_names_of_files_are_not_broken_at_the_end_of_a_line(page: Page) -> None:
    flags = "[...document.querySelectorAll('.flag')].filter(flag => flag.getClientRects().length)"
    assert page.run(f"{flags}.map(flag => flag.textContent)").count("--near_duplicates") >= 2
    for width in range(400, 1200, 100):
        page.resize(width, 800)
        assert page.run(f"Math.max(...{flags}.map(flag => flag.getClientRects().length))") == 1, width
    assert page.run("document.querySelectorAll('#insight figcaption wbr').length") > 0
