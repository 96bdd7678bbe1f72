"""Collections of pictures for the measurements: drawn here, the same on every machine with the same Pillow."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = 10
DRAWN = 20_000  # larger collections are copies of so many, each with a comment of its own: no two files are equal


@dataclass(frozen=True)
class Pictures:
    """A folder per class of JPEGs. count: of files. width, height: in pixels. quality: of the encoder."""

    count: int
    width: int
    height: int
    quality: int

    @property
    def name(self) -> str:
        return f"jpeg-{self.count}-{self.width}x{self.height}"


@dataclass(frozen=True)
class Rows:
    """A CSV file of many rows over a few tiny pictures. rows: of the manifest. pictures: that there are."""

    rows: int
    pictures: int = 100

    @property
    def name(self) -> str:
        return f"rows-{self.rows}"


SMALL = Pictures(20_000, 256, 256, 76)  # about 15 KB each
FEW_SMALL = Pictures(2_000, 256, 256, 76)
MANY_SMALL = Pictures(200_000, 256, 256, 76)
TINY = Pictures(50, 256, 256, 76)
LARGE = Pictures(300, 2000, 1500, 83)  # about 540 KB each
FEW_LARGE = Pictures(40, 2000, 1500, 83)
MILLION = Rows(1_000_000)


def make(wanted: Pictures | Rows, root: Path) -> Path:
    """The folder of a collection below ``root``, made when it is not there yet; the CSV for rows."""
    folder = root / wanted.name
    done = folder / ".complete"
    if not done.exists() or json.loads(done.read_text()) != asdict(wanted):
        folder.mkdir(parents=True, exist_ok=True)
        make_pictures(wanted, folder) if isinstance(wanted, Pictures) else make_rows(wanted, folder)
        done.write_text(json.dumps(asdict(wanted)))
    return folder / "rows.csv" if isinstance(wanted, Rows) else folder


def make_pictures(wanted: Pictures, folder: Path) -> None:
    """Draw a collection, on all cores; a large one from a smaller one, which is drawn first."""
    for number in range(CLASSES):
        (folder / f"class{number}").mkdir(exist_ok=True)
    if wanted.count > DRAWN:
        drawn = make(replace(wanted, count=DRAWN), folder.parent)
        for number in range(wanted.count):
            data = picture_path(drawn, number % DRAWN).read_bytes()
            picture_path(folder, number).write_bytes(data[:2] + comment(number) + data[2:])
        return
    with ProcessPoolExecutor() as pool:
        starts = range(0, wanted.count, 250)
        for _ in pool.map(draw_some, [wanted] * len(starts), [folder] * len(starts), starts):
            pass


def draw_some(wanted: Pictures, folder: Path, start: int) -> None:
    """Draw up to 250 pictures: soft shapes with grain, which compress about as photographs do."""
    for number in range(start, min(start + 250, wanted.count)):
        random = np.random.default_rng([wanted.width, number])
        coarse = random.integers(0, 256, (wanted.height // 24 + 2, wanted.width // 24 + 2, 3), dtype=np.uint8)
        soft = Image.fromarray(coarse).resize((wanted.width, wanted.height), Image.Resampling.BICUBIC)
        grain = random.normal(0, 5, (wanted.height, wanted.width, 1))
        pixels = (np.asarray(soft, np.float32) + grain).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(picture_path(folder, number), quality=wanted.quality)


def picture_path(folder: Path, number: int) -> Path:
    """Where a picture of a collection is."""
    return folder / f"class{number % CLASSES}" / f"{number:06d}.jpg"


def comment(number: int) -> bytes:
    """A comment segment of a JPEG (ITU-T T.81 B.2.4.5) that no other picture has."""
    return b"\xff\xfe\x00\x0a" + b"%08d" % number


def make_rows(wanted: Rows, folder: Path) -> None:
    """Write the tiny pictures and the manifest."""
    (folder / "images").mkdir(exist_ok=True)
    for number in range(wanted.pictures):
        random = np.random.default_rng(number)
        pixels = random.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{number:03d}.jpg", quality=75)
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "image", "label"])
        writer.writerows(
            (f"row{number:07d}", f"images/{number % wanted.pictures:03d}.jpg", f"class{number % CLASSES}")
            for number in range(wanted.rows)
        )
