"""report.html as a person meets it: in Chromium, with keyboard and mouse, in the dark, on a phone and on paper."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.browser import Page
from tests.end_to_end.datasets import converted
from tests.samples import draw_shape, jpeg, png, truncated, turned_jpeg, write_files, write_table

pytestmark = pytest.mark.browser

EVIL = "<script>document.title='taken over'</script>"
EVIL_TOO = "\"'><img src=x onerror=\"document.title='taken over'\">"
TEXTS = ("h1", ".lead", ".tile dt", "#class-table td.muted", "#reject-table td", ".cure", "a[href='#rejects']")
DRAWN = ("#overview .big-bar svg", "#class-table .hbar", "#images .chart", "#boxes .chart", "#pictures .picture svg")
NAMES = ("car", "person", EVIL, EVIL_TOO, "bus", "dog", "cat", "tree", "שלום", "名前", "x" * 300)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on pictures with boxes: labels that try to get out, rejects of three kinds, changes and warnings."""
    folder = tmp_path_factory.mktemp("browser")
    files: dict[str, bytes] = {}
    rows: list[tuple[Any, ...]] = [("filename", "class", "xmin", "ymin", "xmax", "ymax")]
    for number in range(44):
        drawing = draw_shape("square", number, 96, 72)
        name = f"{number:03}.jpg"
        files[name] = jpeg(drawing.image)
        xmin, ymin, xmax, ymax = drawing.box
        rows.append((name, NAMES[number % len(NAMES)], xmin, ymin, xmax, 72.6 if number == 5 else ymax))
        rows.append((name, "car", 2, 2, 20, 20))
    files["010.jpg"] = truncated(files["010.jpg"])
    files["011.jpg"] = b"<html>" + EVIL.encode() + b"</html>"
    files["020.jpg"] = turned_jpeg(draw_shape("square", 20, 96, 72).image, 3)
    for number in range(5):
        rows.append((f"missing {number}.jpg", "car", 1, 1, 5, 5))
    write_files(folder / "in", files)
    write_table(folder / "in" / "boxes.csv", rows)
    converted(folder / "in" / "boxes.csv", folder / "out", splits="train=0.7,test=0.3", max_rejects="50%")
    return folder / "out" / "report.html"


def visible_rows(page: Page, table: str) -> int:
    shown: int = page.run(f"[...document.querySelectorAll('#{table} tbody tr')].filter(row => row.offsetHeight).length")
    return shown


def write(page: Page, selector: str, text: str) -> None:
    """Put text into a field as a person does, after what was in it is marked."""
    page.run(f"(() => {{ const field = document.querySelector({selector!r}); field.focus(); field.select(); }})()")
    page.type(text)


def is_visible(page: Page, selector: str) -> bool:
    shown: bool = page.run(
        f"(() => {{ const e = document.querySelector({selector!r}); return !!e && e.getClientRects().length > 0; }})()"
    )
    return shown


def contrast(page: Page, selector: str) -> float:
    """The contrast ratio of a text and the nearest background that is not transparent (WCAG 2.2, 1.4.3)."""
    colours = page.run(
        f"""(() => {{
          const element = document.querySelector({selector!r});
          let behind = element;
          while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
          return [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
        }})()"""
    )
    light, dark = sorted((luminance(colour) for colour in colours), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# ---------------------------------------------------------------------------------------------------------------------


def test_it_renders_without_an_error_and_without_asking_for_anything(page: Page, report: Path) -> None:
    assert page.run("document.querySelector('h1').textContent") == "out"
    assert page.run("document.querySelectorAll('main > section').length") >= 8
    assert page.run("[...document.images, ...document.querySelectorAll('image')].length") > 20
    assert page.requests() == [report.absolute().as_uri()]
    assert page.complaints() == []


def test_a_label_that_is_a_script_stays_text(page: Page) -> None:
    assert page.run("document.title") == "out · dataset report"
    assert page.run("document.querySelectorAll('script').length") == 1
    assert page.run("document.querySelectorAll('img, iframe, object, embed').length") == 0
    names = page.run("[...document.querySelectorAll('#class-table tbody th')].map(cell => cell.textContent)")
    assert {EVIL, EVIL_TOO, "שלום", "名前"} <= set(names)
    attributes = page.run("[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())")
    assert not [name for name in attributes if name.startswith("on")]


def test_every_sample_picture_is_drawn(page: Page) -> None:
    sizes = page.run(
        """Promise.all([...document.querySelectorAll('#pictures image')].map(async (image) => {
          const picture = new Image();
          picture.src = image.getAttribute('href');
          await picture.decode();
          return [picture.naturalWidth, picture.naturalHeight];
        }))"""
    )
    assert len(sizes) > 20
    assert all(width > 50 and height > 40 for width, height in sizes)


def test_boxes_are_shown_where_they_are_and_can_be_hidden(page: Page) -> None:
    box = "#pictures rect.box"
    assert is_visible(page, box)
    inside = page.run(
        """[...document.querySelectorAll('#pictures rect.box')].every((box) => {
          const inner = box.getBoundingClientRect(), outer = box.ownerSVGElement.getBoundingClientRect();
          return inner.left >= outer.left - 2 && inner.right <= outer.right + 2
            && inner.top >= outer.top - 2 && inner.bottom <= outer.bottom + 2;
        })"""
    )
    assert inside
    page.run("document.getElementById('show-drawings').focus()")
    page.press(" ")
    assert not is_visible(page, box)
    page.press(" ")
    assert is_visible(page, box)


def test_masks_lie_on_their_picture_and_can_be_hidden(tab: Page, tmp_path: Path) -> None:
    mask = Image.new("L", (96, 72))
    mask.paste(1, (24, 18, 72, 54))
    write_files(tmp_path / "in", {"a.png": png(Image.new("RGB", (96, 72))), "m.png": png(mask)})
    write_table(tmp_path / "in" / "t.csv", [("image", "label", "mask"), ("a.png", "x", "m.png")])
    converted(tmp_path / "in" / "t.csv", tmp_path / "out", mask_column="mask")
    tab.call("Emulation.setScriptExecutionDisabled", value=False)
    tab.call("Emulation.setEmulatedMedia", media="", features=[])
    tab.open(tmp_path / "out" / "report.html")
    under, over = tab.run(
        """[...document.querySelectorAll('#pictures image')].map((image) => {
          const place = image.getBoundingClientRect();
          return [place.left, place.top, place.width, place.height];
        })"""
    )
    assert over == pytest.approx(under)
    assert is_visible(tab, "#pictures .drawn")
    tab.run("document.getElementById('show-drawings').click()")
    assert not is_visible(tab, "#pictures .drawn")
    assert tab.complaints() == []


def test_rejects_are_filtered_by_words_and_by_code(page: Page) -> None:
    total = visible_rows(page, "reject-table")
    assert total == 7
    write(page, '[data-filter="reject-table"]', "MISSING 3.jpg")
    assert visible_rows(page, "reject-table") == 1
    assert page.run("""document.querySelector('[data-count="reject-table"]').value""") == "1 of 7"
    page.press("Escape")
    assert visible_rows(page, "reject-table") == total
    choose = """(() => { const field = document.querySelector('[data-choose="reject-table"]');
      field.value = %r; field.dispatchEvent(new Event("change")); })()"""
    page.run(choose % "missing_file")
    assert visible_rows(page, "reject-table") == 5
    write(page, '[data-filter="reject-table"]', "html")
    assert visible_rows(page, "reject-table") == 0
    page.run(choose % "not_an_image")
    assert visible_rows(page, "reject-table") == 1
    write(page, '[data-filter="reject-table"]', "<script>")
    assert page.run("document.title") == "out · dataset report"


def test_pictures_are_found_by_the_name_of_their_class(page: Page) -> None:
    groups = "[...document.querySelectorAll('#picture-groups .picture-group')]"
    shown = f"{groups}.filter(g => g.offsetHeight).map(g => g.dataset.row)"
    assert len(page.run(shown)) == len(NAMES)
    write(page, '[data-filter="picture-groups"]', "onerror")
    assert page.run(shown) == [EVIL_TOO]
    write(page, '[data-filter="picture-groups"]', "nothing like it")
    assert page.run(shown) == []


def test_tabs_obey_mouse_and_arrows(page: Page) -> None:
    names = "#tab-panel-changed, #tab-panel-warnings"
    tabs = f"[...document.querySelectorAll('{names}')]"
    selected = f"{tabs}.map(tab => tab.getAttribute('aria-selected'))"
    assert page.run(selected) == ["true", "false"]
    assert is_visible(page, "#panel-changed")
    assert not is_visible(page, "#panel-warnings")
    page.run(f"{tabs}[0].focus()")
    page.press("ArrowRight")
    assert page.run(selected) == ["false", "true"]
    assert page.run(f"document.activeElement === {tabs}[1]")
    assert is_visible(page, "#panel-warnings")
    assert not is_visible(page, "#panel-changed")
    page.press("Home")
    assert page.run(selected) == ["true", "false"]
    page.run(f"{tabs}[1].click()")
    assert is_visible(page, "#panel-warnings")
    controlled = page.run(f"{tabs}.map(tab => document.getElementById(tab.getAttribute('aria-controls')).role)")
    assert controlled == ["tabpanel", "tabpanel"]


def test_the_keyboard_reaches_everything_that_does_something(page: Page) -> None:
    reached = set()
    for _ in range(60):
        page.press("Tab")
        told = "document.activeElement.id || document.activeElement.hash || document.activeElement.tagName"
        reached.add(page.run(told))
    assert {"#overview", "#rejects", "show-drawings", "tab-panel-changed", "SUMMARY", "SELECT", "INPUT"} <= reached


def test_the_bar_at_the_top_leads_to_the_sections(page: Page) -> None:
    page.run("document.documentElement.style.scrollBehavior = 'auto'")
    page.run("document.querySelector('.sections a[href=\"#shards\"]').click()")
    top = page.run("document.getElementById('shards').getBoundingClientRect().top")
    at_end = page.run("innerHeight + scrollY >= document.documentElement.scrollHeight - 2")
    assert at_end or 0 <= top < 200
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.run("document.querySelectorAll('.sections a.here').length") == 1


def test_texts_can_be_read_in_light_and_dark(page: Page) -> None:
    backgrounds = set()
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        backgrounds.add(page.run("getComputedStyle(document.body).backgroundColor"))
        for selector in TEXTS:
            assert contrast(page, selector) >= 4.5, (scheme, selector)
    assert len(backgrounds) == 2
    assert max(map(luminance, backgrounds)) > 0.8
    assert min(map(luminance, backgrounds)) < 0.05


@pytest.mark.parametrize("width", [360, 768, 1600])
def test_it_fits_into_any_window(page: Page, width: int) -> None:
    page.resize(width, 800)
    assert page.run("document.documentElement.scrollWidth") <= width
    too_wide = page.run(
        f"""[...document.querySelectorAll('.card, .tile, .notices li, h1')]
          .filter(part => part.getBoundingClientRect().right > {width} + 1).map(part => part.outerHTML.slice(0, 80))"""
    )
    assert too_wide == []


def test_without_scripts_everything_is_there(page: Page, report: Path) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open(report)
    for panel in ("#panel-changed", "#panel-warnings"):
        assert node_height(page, panel) > 0
    assert node_height(page, ".tools") == 0


def node_height(page: Page, selector: str) -> float:
    """The height of an element, asked of the browser and not of a script; 0 when it is not shown."""
    document = page.call("DOM.getDocument")["root"]["nodeId"]
    node = page.call("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
    page.call("CSS.enable")
    style = page.call("CSS.getComputedStyleForNode", nodeId=node)["computedStyle"]
    height = next(entry["value"] for entry in style if entry["name"] == "height")
    return float(height.removesuffix("px")) if height.endswith("px") else 0.0


def test_it_prints_all_of_it_and_none_of_its_tools(page: Page) -> None:
    page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert is_visible(page, "#panel-changed")
    assert is_visible(page, "#panel-warnings")
    for tool in (".sections", ".tools", ".tablist"):
        assert not is_visible(page, tool)
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    pdf = base64.b64decode(page.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
    assert pdf.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12


def test_charts_and_pictures_have_colour_on_the_screen(page: Page) -> None:
    """Looked at as a picture: each part is there and is not blank."""
    for selector in DRAWN:
        clip = page.run(
            f"""(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: "center"}});
              const box = e.getBoundingClientRect();
              const place = {{x: box.x + scrollX, y: box.y + scrollY}};
              return {{...place, width: box.width, height: box.height, scale: 1}}; }})()"""
        )
        data = page.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("HSV")).astype(int)
        is_coloured = (pixels[..., 1] > 70) & (pixels[..., 2] > 60)
        assert is_coloured.mean() > 0.02, selector


def test_words_tell_what_charts_show(page: Page) -> None:
    told = page.run("[...document.querySelectorAll('svg[role=img]')].map(e => e.ariaLabel || e.firstChild.textContent)")
    assert all(told)
    assert any(words.startswith("Encoded size: 42 images, ") for words in told), json.dumps(told)[:500]
