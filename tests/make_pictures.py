"""The pictures of the documentation: a conversion of drawn fruit, its report in Chromium, and a contact sheet.

``python -m tests.make_pictures FOLDER`` writes them there (``make pictures``: into docs/pictures).
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

from pipelines.main import main as beam_tfrecord
from tests.browser import Page, browser
from tests.fruit import as_json, fruit_table
from tests.samples import write_files

WIDTH = 1100
MOST_BYTES = 200_000
COLOURS = 256


def make_dataset(folder: Path) -> None:
    """Convert the collection into ``fruit`` below the folder, with relative names as a person would give them."""
    files, document = fruit_table()
    write_files(folder / "photos", files)
    write_files(folder, {"instances.json": as_json(document)})
    os.chdir(folder)
    flags = ["--input", "instances.json", "--images", "photos", "--output", "fruit", "--quiet"]
    flags += ["--splits", "train=0.8,validation=0.2", "--num_shards", "train=2,validation=1"]
    assert beam_tfrecord(["convert", *flags]) == 0


def screenshot(page: Page, report: Path, scheme: str, height: int) -> Image.Image:
    """The upper part of a report. scheme: ``light`` or ``dark``."""
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.resize(WIDTH, height)
    page.open(report)
    data = base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])
    return Image.open(io.BytesIO(data)).convert("RGB")


def save_page(image: Image.Image, path: Path) -> None:
    """As PNG with a palette: a page has few colours."""
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path.with_suffix(".png"), optimize=True)


def save_photos(image: Image.Image, path: Path) -> None:
    """As JPEG of the best quality that is small enough."""
    for quality in range(92, 40, -4):
        image.save(path.with_suffix(".jpg"), quality=quality, optimize=True)
        if path.with_suffix(".jpg").stat().st_size <= MOST_BYTES:
            return


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the pictures of the documentation.")
    parser.add_argument("folder", type=Path)
    target = parser.parse_args().folder.absolute()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        print("Chromium is needed: apt-get install chromium", file=sys.stderr)
        return 1
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_dataset(folder)
        with browser(chromium) as page:
            for scheme in ("light", "dark"):
                image = screenshot(page, folder / "fruit" / "report.html", scheme, 900)
                save_page(image, target / f"report_{scheme}")
        sheet = ["fruit", "--sheet", "sheet.png", "--limit", "12", "--columns", "4", "--quiet"]
        assert beam_tfrecord(["show", *sheet]) == 0
        picture = Image.open("sheet.png").convert("RGB")
        picture.thumbnail((WIDTH, WIDTH), Image.Resampling.LANCZOS)
        save_photos(picture, target / "sheet")
        os.chdir(target)
    for path in sorted(target.iterdir()):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
