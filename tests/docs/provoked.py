"""Conversions that go wrong in every way that has a code: where the messages on docs/errors.md come from."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageFilter

from beam_tfrecord import Feature, convert
from beam_tfrecord.tfrecord.example import encode_example
from benchmarks.near_duplicates import scene
from tests import image_samples
from tests.image_kinds import KINDS
from tests.loopback import Answer, serving
from tests.samples import HTML_ERROR_PAGE, draw_shape, jpeg, png, truncated, turned_jpeg, write_files, write_table
from tests.tiny_reader import frame

Messages = dict[tuple[str, str], str]
SQUARE = jpeg(draw_shape("square", 1, 64, 48).image)


def provoke(folder: Path) -> Messages:
    """A message of each code, by ("reject" or "warning", code). Changes the working folder."""
    found: Messages = {}
    for conversion in (
        _images,
        _tables,
        _duplicates,
        _labels,
        _objects,
        _canonical,
        _coco,
        _archive,
        _storage,
        _voc,
        _accounts,
        _records,
        _outputs,
        _insight,
    ):
        own = folder / conversion.__name__.strip("_")
        own.mkdir()
        os.chdir(own)
        for kind, code, message in conversion():
            found.setdefault((kind, code), message)
    return found


def _told(source: Any, **options: Any) -> Iterable[tuple[str, str, str]]:
    """Convert into ``out`` of the working folder, and give its findings."""
    output = Path(f"out{len(list(Path().glob('out*')))}")
    convert(source, output, max_rejects="100%", **options)
    folder = output if (output / "conversion.json").exists() else output / ".staging"
    for kind in ("reject", "warning"):
        for line in (folder / f"{kind}s.jsonl").read_text("utf-8").splitlines():
            finding = json.loads(line)
            yield kind, finding["code"], re.sub(r"127\.0\.0\.1:\d+|localhost:\d+", "example.org", finding["message"])


def _images() -> Iterable[tuple[str, str, str]]:
    large = png(Image.new("L", (200, 100)))
    files = {
        "good.jpg": SQUARE,
        "empty.jpg": b"",
        "page.jpg": HTML_ERROR_PAGE,
        "drawing.jpg": b'<svg xmlns="http://www.w3.org/2000/svg"></svg>',
        "cut.jpg": truncated(SQUARE),
        "damaged.png": KINDS["PNG, pixels damaged"](),
        "large.png": large,
        "moving.gif": KINDS["GIF, animated"](),
        "exif.jpg": KINDS["JPEG, EXIF damaged"](),
        "profile.png": KINDS["PNG, RGB of 16 bits"](),
        "noisy.jpg": KINDS["JPEG, decoder complains"](),
        "tail.jpg": KINDS["JPEG, data behind its end"](),
    }
    write_files(Path("photos/x"), files)
    yield from _told("photos", max_pixels=10_000, animated="reject")
    swapped = image_samples.swapped_profile()
    deep = image_samples.save(np.zeros((8, 8, 3), np.uint8), "PNG", icc_profile=b"no profile at all")
    write_files(Path("profiles/x"), {"a.png": deep, "b.jpg": KINDS["JPEG, ICC profile damaged"]()})
    wide = image_samples.png_chunk(b"iCCP", b"p\0\0" + image_samples.compressed(swapped))
    write_files(Path("profiles/x"), {"c.png": image_samples.png(_deep(), 16, 2, before=wide)})
    yield from _told("profiles", image_format="raw")


def _accounts() -> Iterable[tuple[str, str, str]]:
    write_files(Path("pictures"), {"cat.jpg": SQUARE, "cat.txt": b"a cat on a mat"})
    yield from _told("pictures")
    write_files(Path("unlabelled"), {f"images/{name}.jpg": SQUARE for name in "abc"})
    write_files(Path("unlabelled"), {"labels/x.txt": b"0 0.5 0.5 0.2 0.2\n", "classes.txt": b"cat\n"})
    yield from _told("unlabelled")
    write_files(Path("unlabelled"), {f"labels/{name}.txt": b"0 0.5 0.5 0.2 0.2\n" for name in "ayz"})
    yield from _told("unlabelled")
    write_files(Path("listed"), {"cat.jpg": SQUARE, "dog.jpg": SQUARE, "list.csv": b"image,label\ncat.jpg,cat\n"})
    yield from _told("listed/list.csv")
    write_files(Path("unread"), {"cat.jpg": SQUARE, "list.csv": b"image,species_tag\ncat.jpg,cat\n"})
    yield from _told("unread/list.csv")
    voc = "<annotation><filename>{}.jpg</filename><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
    voc += "<xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>"
    write_files(Path("renamed"), {f"{name}.jpg": SQUARE for name in "ab"})
    write_files(Path("renamed"), {f"{name}.xml": voc.format(stated).encode() for name, stated in ("ab", "ba")})
    yield from _told("renamed")
    yield from _told("listed/list.csv", drop_labels="dgo", keep_labels="cat")


def _insight() -> Iterable[tuple[str, str, str]]:
    """Findings of pixels and boxes: twenty ordinary pictures, and what is wrong with others."""
    good = [scene(seed, 160, 120) for seed in range(26)]
    framed = Image.new("RGB", (160, 120))
    framed.paste(good[20].resize((160, 80)), (0, 20))
    train = {f"{'ab'[seed % 2]}/{seed}.jpg": jpeg(picture) for seed, picture in enumerate(good[:20])}
    train |= {"a/copy.jpg": jpeg(good[0], 40), "b/other.jpg": jpeg(good[2], 40), "c/only.jpg": jpeg(good[25])}
    train |= {"a/blank.jpg": jpeg(Image.new("RGB", (160, 120), "teal")), "a/framed.jpg": jpeg(framed)}
    train |= {
        "b/dark.jpg": jpeg(good[21].point(lambda value: value // 16)),
        "b/white.jpg": jpeg(good[22].point(lambda value: 230 + value // 16)),
        "a/blurred.jpg": jpeg(good[23].filter(ImageFilter.GaussianBlur(30))),
        "a/large.jpg": jpeg(good[24].resize((800, 600))),
        "b/wide.jpg": jpeg(good[24].resize((400, 48))),
    }
    write_files(Path("pictures/train"), train)
    write_files(Path("pictures/test"), {"a/leak.jpg": jpeg(good[1], 40), "b/4.jpg": jpeg(scene(99, 160, 120))})
    yield from _told("pictures")
    yield from _told("pictures", near_duplicates="drop")
    yield from _told("pictures", near_duplicates="group")
    lines = ["image,label,xmin,ymin,xmax,ymax"]
    for number, picture in enumerate(good[:20]):
        write_files(Path("boxed"), {f"{number}.jpg": jpeg(picture)})
        lines.append(f"{number}.jpg,cat,10,10,50,60")
    lines += ["0.jpg,cat,0,0,160,120", "1.jpg,cat,70,70,72,90", "2.jpg,cat,10,10,50,61"]
    lines += [f"3.jpg,cat,{number},5,{number + 30},50" for number in range(0, 120, 5)]
    Path("boxed/boxes.csv").write_text("\n".join(lines) + "\n")
    yield from _told("boxed/boxes.csv")


def _records() -> Iterable[tuple[str, str, str]]:
    good = frame(encode_example({"image": Feature("bytes", [SQUARE]), "label": Feature("int64", [1])}))
    Path("old.tfrecord").write_bytes(good + good[:-20] + bytes([good[-20] ^ 1]) + good[-19:])
    yield from _told("old.tfrecord")


def _deep() -> Any:
    return np.random.default_rng(0).integers(0, 65_536, (8, 8, 3)).astype(np.uint16)


def _tables() -> Iterable[tuple[str, str, str]]:
    write_files(Path(), {"a.jpg": SQUARE, "b.jpg": jpeg(draw_shape("circle", 1, 64, 48).image)})
    Path("t.csv").write_text(
        "image,label,split\na.jpg,x,train\nnowhere.jpg,x,train\nb.jpg,,train\nb.jpg,x\nb.jpg,x,a/b\n"
    )
    yield from _told("t.csv")
    write_table(Path("groups.csv"), [("image", "label", "patient"), ("a.jpg", "x", "7"), ("b.jpg", "x", "")])
    yield from _told("groups.csv", group_column="patient")


def _duplicates() -> Iterable[tuple[str, str, str]]:
    other = jpeg(draw_shape("circle", 1, 64, 48).image)
    write_files(Path(), {"a.jpg": SQUARE, "b.jpg": SQUARE, "c.jpg": other, "d.jpg": other})
    rows = [("image", "label", "split"), ("a.jpg", "x", "train"), ("a.jpg", "y", "train"), ("b.jpg", "x", "test")]
    write_table(Path("t.csv"), [*rows, ("c.jpg", "x", "train"), ("d.jpg", "x", "train")])
    yield from _told("t.csv")
    yield from _told("t.csv", duplicates="drop")


def _labels() -> Iterable[tuple[str, str, str]]:
    write_files(Path(), {"a.jpg": SQUARE, "b.jpg": SQUARE, "labels.txt": b"apple\npear\n"})
    write_table(Path("t.csv"), [("image", "label"), ("a.jpg", "apple"), ("b.jpg", "aple")])
    yield from _told("t.csv", labels="labels.txt")


def _objects() -> Iterable[tuple[str, str, str]]:
    files = {f"{name}.jpg": SQUARE for name in "abcde"}
    files["turned.jpg"] = turned_jpeg(draw_shape("square", 1, 64, 48).image, 6)
    files["m.png"] = png(Image.new("L", (10, 10)))
    write_files(Path(), files)
    head = ("filename", "width", "height", "class", "xmin", "ymin", "xmax", "ymax")
    rows = [head, ("a.jpg", 64, 48, "x", 30, 10, 20, 40), ("b.jpg", 64, 48, "x", 2, 2, 64.7, 20)]
    rows += [("c.jpg", 640, 480, "x", 2, 2, 20, 20), ("turned.jpg", "", "", "x", 2, 2, 20, 20)]
    write_table(Path("boxes.csv"), rows)
    write_table(Path("retina.csv"), [("a.jpg", 2, 2, 20, 20, "x"), ("b.jpg", 5, 8, 20, 20, "x")])
    yield from _told("retina.csv")
    yield from _told("boxes.csv", bad_boxes="reject")
    yield from _told("boxes.csv")
    write_table(Path("masks.csv"), [("image", "label", "mask"), ("a.jpg", "x", "m.png")])
    yield from _told("masks.csv", mask_column="mask")


def _canonical() -> Iterable[tuple[str, str, str]]:
    write_files(Path(), {f"{name}.jpg": SQUARE for name in "abcde"})
    box = {"class": "x", "bbox": [2, 2, 40, 40]}
    lines: list[Mapping[str, Any]] = [
        {"image": "a.jpg", "boxes": [{**box, "keypoints": [1, 2]}]},
        {"image": "b.jpg", "boxes": [{**box, "difficult": "maybe"}]},
        {"image": "c.jpg", "boxes": [{**box, "keypoints": [900, 20, 2], "keypoint_names": ["nose"]}]},
        {"image": "d.jpg", "boxes": [{**box, "polygons": [[1, 1, 2, 2]]}]},
        {"image": "e.jpg", "boxes": [{**box, "polygons": [[3, 3, 30, 3, 30, 30]]}]},
    ]
    Path("t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    yield from _told("t.jsonl", format="extracted")


def _coco() -> Iterable[tuple[str, str, str]]:
    write_files(Path(), {"a.jpg": SQUARE, "b.jpg": SQUARE})
    images = [{"id": number, "file_name": f"{name}.jpg"} for number, name in enumerate("ab")]
    found = [{"id": n, "image_id": n, "category_id": 1 + 8 * n, "bbox": [1, 1, 20, 20], "iscrowd": 0} for n in range(2)]
    document = {"images": images, "annotations": found, "categories": [{"id": 1, "name": "x"}]}
    Path("i.json").write_text(json.dumps(document))
    yield from _told("i.json")


def _archive() -> Iterable[tuple[str, str, str]]:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("x/good.jpg", "../outside.jpg", "x/secret.jpg", "x/spoilt.jpg"):
            archive.writestr(name, jpeg(draw_shape("square", len(name), 64, 48).image))
    data = bytearray(buffer.getvalue())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = -1
        while (place := data.find(mark, place + 1)) >= 0:
            if data.find(b"x/secret.jpg", place) - place < 60:
                data[place + flags] |= 1
                break
    place = data.find(b"x/spoilt.jpg") + 100
    data[place] ^= 1
    Path("photos.zip").write_bytes(data)
    yield from _told("photos.zip")


def _storage() -> Iterable[tuple[str, str, str]]:
    with serving(lambda request: Answer(403)) as server:
        write_table(Path("t.csv"), [("image", "label"), (f"{server.url}/a.jpg", "x")])
        yield from _told("t.csv")


def _outputs() -> Iterable[tuple[str, str, str]]:
    write_files(Path("photos"), {"a/1.jpg": SQUARE, "b/2.jpg": jpeg(draw_shape("circle", 2, 64, 48).image)})
    convert("photos", "photos/out")
    yield from _told("photos")


def _voc() -> Iterable[tuple[str, str, str]]:
    box = "<bndbox><xmin>2</xmin><ymin>2</ymin><xmax>20</xmax><ymax>20</ymax></bndbox>"
    part = f"<part><name>head</name>{box}</part>"
    text = f"<annotation><filename>a.jpg</filename><object><name>x</name>{box}{part}</object></annotation>"
    write_files(Path("v"), {"Annotations/a.xml": text.encode(), "JPEGImages/a.jpg": SQUARE})
    yield from _told("v")
