"""Annotated collections, from their files to records that TensorFlow and TensorFlow Datasets read."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from tests.annotation_tools import pixels, reference_mask, write
from tests.annotation_tools import png as png_of
from tests.end_to_end.datasets import by_name, conversion, converted, findings, shard_bytes
from tests.samples import painted_boxes, png, turned_jpeg

BOX = (30, 20, 110, 70)  # of the painted object, in the upright picture of 160x120
SIZE = (160, 120)


def upright() -> Image.Image:
    return painted_boxes(*SIZE, [BOX])


def raster_box(orientation: int) -> tuple[int, int, int, int]:
    """The painted object in the raster of a file that is turned upright by an orientation."""
    with Image.open(io.BytesIO(turned_jpeg(upright(), orientation, 100))) as image:
        red = np.asarray(image.convert("RGB")).astype(int)
    rows, columns = np.nonzero((red[..., 0] > 200) & (red[..., 1] < 100))
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def boxes_of(record: Mapping[str, list[Any]]) -> list[tuple[float, ...]]:
    sides = (record[f"image/object/bbox/{side}"] for side in ("xmin", "ymin", "xmax", "ymax"))
    return list(zip(*sides, strict=True))


def check_box_on_paint(record: Mapping[str, list[Any]]) -> None:
    """The only box lies on the red paint of the stored image, within a pixel."""
    with Image.open(io.BytesIO(record["image/encoded"][0])) as image:
        assert image.getexif().get(0x0112, 1) == 1
        colours = np.asarray(image.convert("RGB")).astype(int)
    rows, columns = np.nonzero((colours[..., 0] > 180) & (colours[..., 1] < 128))
    painted = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    height, width = colours.shape[:2]
    (box,) = boxes_of(record)
    found = [side * length for side, length in zip(box, (width, height, width, height), strict=True)]
    assert found == pytest.approx(painted, abs=1.0)


def warned(output: Path) -> dict[str, int]:
    """Warnings by code; that the painted pictures are all alike is no matter here."""
    counts = conversion(output)["warnings"]
    return {code: count for code, count in counts.items() if code != "duplicate_content"}


def turned_collection(folder: Path) -> None:
    for orientation in range(1, 9):
        write(folder / f"images/{orientation}.jpg", turned_jpeg(upright(), orientation, 95))


@pytest.mark.parametrize(
    "resize",
    [{}, {"resize": 50}, {"resize": "64x80", "resize_mode": "pad"}, {"resize": "60x60", "resize_mode": "crop"}],
    ids=["as it is", "shortest", "pad", "crop"],
)
def test_boxes_lie_on_what_was_painted_whatever_the_turn_and_the_size(tmp_path: Path, resize: dict[str, Any]) -> None:
    """YOLO boxes are drawn on the turned picture."""
    turned_collection(tmp_path)
    left, top, right, bottom = BOX
    line = f"0 {(left + right) / 320} {(top + bottom) / 240} {(right - left) / 160} {(bottom - top) / 120}"
    for orientation in range(1, 9):
        write(tmp_path / f"labels/{orientation}.txt", line)
    write(tmp_path / "data.yaml", "train: images\nnames: [thing]\n")
    converted(tmp_path, tmp_path / "out", **resize, insight="off")
    found = by_name(tmp_path / "out")
    assert len(found) == 8
    for record in found.values():
        check_box_on_paint(record)


@pytest.mark.parametrize("drawn_on", ["upright", "raster"])
def test_the_stated_size_tells_on_which_picture_boxes_were_drawn(tmp_path: Path, drawn_on: str) -> None:
    turned_collection(tmp_path)
    images, annotations = [], []
    for orientation in (1, 5, 6, 7, 8):
        on_raster = drawn_on == "raster"
        left, top, right, bottom = raster_box(orientation) if on_raster else BOX
        width, height = reversed(SIZE) if on_raster and orientation > 1 else SIZE
        images.append({"id": orientation, "file_name": f"{orientation}.jpg", "width": width, "height": height})
        box = [int(left), int(top), int(right - left), int(bottom - top)]
        annotations.append({"image_id": orientation, "category_id": 1, "bbox": box})
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "thing"}]}
    converted(write(tmp_path / "a.json", document), tmp_path / "out", images=str(tmp_path / "images"), insight="off")
    found = by_name(tmp_path / "out")
    assert len(found) == 5
    for record in found.values():
        check_box_on_paint(record)
    assert warned(tmp_path / "out") == {"images_not_named": 1}  # three of the eight


def check_box_on_raster(record: Mapping[str, list[Any]]) -> None:
    """The only box lies on the red paint of the picture as TensorFlow decodes it, which does not look at EXIF."""
    colours = tf.io.decode_image(record["image/encoded"][0], channels=3).numpy().astype(int)
    rows, columns = np.nonzero((colours[..., 0] > 180) & (colours[..., 1] < 128))
    height, width = colours.shape[:2]
    assert (record["image/height"], record["image/width"]) == ([height], [width])
    (box,) = boxes_of(record)
    found = [side * length for side, length in zip(box, (width, height, width, height), strict=True)]
    assert found == pytest.approx((columns.min(), rows.min(), columns.max() + 1, rows.max() + 1), abs=1.0)


@pytest.mark.parametrize("resize", [{}, {"resize": "64x80", "resize_mode": "pad"}], ids=["as it is", "pad"])
@pytest.mark.parametrize("frame", ["upright", "stored"])
def test_boxes_lie_on_what_was_painted_where_the_turn_is_ignored(
    tmp_path: Path, frame: str, resize: dict[str, Any]
) -> None:
    turned_collection(tmp_path)
    outline = [BOX[0], BOX[1], BOX[2], BOX[1], BOX[2], BOX[3], BOX[0], BOX[3]]
    found = {"category_id": 1, "segmentation": [outline], "keypoints": [BOX[0], BOX[1], 2]}
    images, annotations = [], []
    for orientation in range(1, 9):
        left, top, right, bottom = map(int, BOX if frame == "upright" else raster_box(orientation))
        width, height = reversed(SIZE) if frame == "stored" and orientation >= 5 else SIZE
        images.append({"id": orientation, "file_name": f"{orientation}.jpg", "width": width, "height": height})
        box = {"image_id": orientation, "bbox": [left, top, right - left, bottom - top]}
        annotations.append({**(found if frame == "upright" else {"category_id": 1}), **box})
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "thing"}]}
    if frame == "upright":
        document["categories"][0]["keypoints"] = ["corner"]
    write(tmp_path / "a.json", document)
    options = {"orientation": "ignore", "box_frame": frame, "images": str(tmp_path / "images"), **resize}
    converted(tmp_path / "a.json", tmp_path / "out", **options, insight="off")
    records = by_name(tmp_path / "out")
    assert len(records) == 8
    for name, record in records.items():
        check_box_on_raster(record)
        if not resize:
            assert record["image/encoded"][0] == (tmp_path / "images" / name).read_bytes()
        if frame == "upright":
            mask = np.asarray(Image.open(io.BytesIO(record["image/object/mask"][0])))
            rows, columns = np.nonzero(mask)
            height, width = mask.shape
            assert (width, height) == (record["image/width"][0], record["image/height"][0])
            drawn = (columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height)
            assert drawn == pytest.approx(boxes_of(record)[0], abs=1.5 / min(width, height))
            corner = record["image/object/keypoint/x"][0], record["image/object/keypoint/y"][0]
            left, top, right, bottom = boxes_of(record)[0]
            assert corner[0] == pytest.approx(left, abs=1e-5) or corner[0] == pytest.approx(right, abs=1e-5)
            assert corner[1] == pytest.approx(top, abs=1e-5) or corner[1] == pytest.approx(bottom, abs=1e-5)
    assert warned(tmp_path / "out") == {}


def test_a_turn_that_nothing_tells_moves_boxes_with_the_raster_and_is_told(tmp_path: Path) -> None:
    turned_collection(tmp_path)
    lines = ["filename,class,xmin,ymin,xmax,ymax"]
    lines += [f"{n}.jpg,thing," + ",".join(str(side) for side in raster_box(n)) for n in range(1, 9)]
    converted(
        write(tmp_path / "boxes.csv", "\n".join(lines)),
        tmp_path / "out",
        images=str(tmp_path / "images"),
        insight="off",
    )
    for record in by_name(tmp_path / "out").values():
        check_box_on_paint(record)
    assert warned(tmp_path / "out") == {"ambiguous_orientation": 7}


def voc(name: str, size: tuple[int, int], *boxes: tuple[str, int, int, int, int]) -> str:
    objects = "".join(
        f"<object><name>{label}</name><pose>Unspecified</pose><difficult>0</difficult><bndbox><xmin>{a}</xmin>"
        f"<ymin>{b}</ymin><xmax>{c}</xmax><ymax>{d}</ymax></bndbox></object>"
        for label, a, b, c, d in boxes
    )
    width, height = size
    return (
        f"<annotation><filename>{name}</filename><size><width>{width}</width><height>{height}</height></size>"
        f"{objects}</annotation>"
    )


def test_the_same_boxes_through_voc_and_through_csv_are_the_same_records(tmp_path: Path) -> None:
    boxes = {
        "a.png": [("cat", 10, 8, 60, 48), ("dog", 1, 1, 161, 120)],
        "b.png": [("dog", 50, 40, 300, 70), ("cat", 5, 6, 7, 8)],
    }
    lines = ["filename,width,height,class,xmin,ymin,xmax,ymax"]
    for name, objects in boxes.items():
        write(tmp_path / "voc/JPEGImages" / name, png(upright()))
        write(tmp_path / "voc/Annotations" / name.replace("png", "xml"), voc(name, SIZE, *objects))
    for place in (0, 1):  # lines of one image apart
        lines += [f"{name},160,120,{','.join(map(str, objects[place]))}" for name, objects in boxes.items()]
    table = write(tmp_path / "boxes.csv", "\n".join(lines))
    converted(tmp_path / "voc", tmp_path / "from_voc", insight="off")
    converted(table, tmp_path / "from_csv", images=str(tmp_path / "voc/JPEGImages"), insight="off")
    assert shard_bytes(tmp_path / "from_voc") == shard_bytes(tmp_path / "from_csv")
    found = by_name(tmp_path / "from_csv")
    assert [record["image/object/class/text"] for _, record in sorted(found.items())] == [[b"cat", b"dog"], [b"cat"]]
    for output in (tmp_path / "from_voc", tmp_path / "from_csv"):
        assert warned(output) == {"box_clipped": 1, "box_dropped": 1}
    codes = {line["code"]: line["message"] for line in findings(tmp_path / "from_csv", "warnings")}
    assert "boxes.csv:3" in codes["box_dropped"]
    told = conversion(tmp_path / "from_csv")
    assert (told["rows"], told["source_rows"]) == (2, 4)


OUTLINE = [20.0, 10.0, 140.0, 12.0, 90.0, 110.0]


def coco_collection(folder: Path) -> Path:
    """Two images with masks, keypoints and captions, one without any."""
    for name in "abc":
        write(folder / f"images/{name}.png", png(upright()))
    runs = {"size": [120, 160], "counts": [120 * 20, 120 * 5, 120 * 135]}
    annotations = [
        {"image_id": 1, "category_id": 9, "bbox": [20, 10, 120, 100], "area": 5000, "segmentation": [OUTLINE]},
        {"image_id": 1, "category_id": 4, "bbox": [20, 0, 5, 120], "iscrowd": 1, "segmentation": runs},
        {
            "image_id": 2,
            "category_id": 4,
            "bbox": [20, 10, 120, 100],
            "segmentation": [OUTLINE],
            "keypoints": [30, 20, 2, 0, 0, 0],
        },
        {"image_id": 1, "caption": "red on white"},
    ]
    images = [{"id": n, "file_name": f"{name}.png", "width": 160, "height": 120} for n, name in enumerate("abc", 1)]
    categories = [{"id": 9, "name": "ape"}, {"id": 4, "name": "zebra", "keypoints": ["nose", "tail"]}]
    document = {"images": images, "annotations": annotations, "categories": categories}
    return write(folder / "instances.json", document)


def test_coco_masks_keypoints_and_captions(tmp_path: Path) -> None:
    converted(coco_collection(tmp_path), tmp_path / "out", images=str(tmp_path / "images"))
    found = by_name(tmp_path / "out")
    first, second, third = (found[f"{name}.png"] for name in "abc")
    assert conversion(tmp_path / "out")["labels"] == ["zebra", "ape"]
    assert conversion(tmp_path / "out")["category_ids"] == {"zebra": 4, "ape": 9}
    assert first["image/object/class/label"] == [2, 1]
    assert first["image/object/is_crowd"] == [0, 1]
    assert first["image/source_id"] == [b"1"]
    drawn, decoded = (pixels(mask) for mask in first["image/object/mask"])
    assert np.array_equal(drawn, reference_mask([OUTLINE], 120, 160))
    assert decoded.sum() == 120 * 5
    assert decoded[:, 20:25].all()
    assert first["image/caption"] == [b"red on white"]
    assert first["image/object/keypoint/visibility"] == [0, 0, 0, 0]
    assert second["image/object/keypoint/x"] == pytest.approx([30 / 160, 0])
    assert second["image/object/keypoint/text"] == [b"nose", b"tail"]
    assert third["image/object/mask"] == third["image/object/bbox/xmin"] == third["image/caption"] == []


def test_category_ids_can_be_kept(tmp_path: Path) -> None:
    source = coco_collection(tmp_path)
    converted(source, tmp_path / "out", images=str(tmp_path / "images"), keep_category_ids=True)
    assert by_name(tmp_path / "out")["a.png"]["image/object/class/label"] == [9, 4]


def panoptic_collection(folder: Path) -> Path:
    ids = np.zeros((120, 160), np.uint32)
    ids[20:70, 30:110] = 66_000
    colours = np.stack([ids % 256, ids // 256 % 256, ids // 65536], axis=-1).astype(np.uint8)
    write(folder / "images/a.png", png(upright()))
    write(folder / "panoptic/a.png", png_of(colours))
    segments = [{"id": 66_000, "category_id": 1, "iscrowd": 0}]
    document = {
        "images": [{"id": 1, "file_name": "a.png", "width": 160, "height": 120}],
        "annotations": [{"image_id": 1, "file_name": "a.png", "segments_info": segments}],
        "categories": [{"id": 1, "name": "thing"}],
    }
    return write(folder / "panoptic.json", document)


def test_panoptic_masks_follow_the_image(tmp_path: Path) -> None:
    converted(panoptic_collection(tmp_path), tmp_path / "out", images=str(tmp_path / "images"), resize=60)
    (record,) = by_name(tmp_path / "out").values()
    for key in ("image/panoptic/category_mask", "image/panoptic/instance_mask"):
        mask = pixels(record[key][0])
        assert mask.shape == (60, 80)
        assert mask[10:35, 15:55].all()
        assert mask.sum() == 25 * 40
    assert record["image/panoptic/segment/area"] == [25 * 40]


def voc_masks(folder: Path) -> Path:
    indices = np.zeros((120, 160), np.uint8)
    indices[20:70, 30:110], indices[0] = 15, 255
    palette = Image.frombytes("P", SIZE, indices.tobytes())
    palette.putpalette([(40 * value) % 256 for value in range(768)])
    for stem in "ab":
        write(folder / f"JPEGImages/{stem}.png", png(upright()))
        write(folder / f"Annotations/{stem}.xml", voc(f"{stem}.png", SIZE, ("thing", *BOX)))
        write(folder / f"SegmentationClass/{stem}.png", png(palette))
        write(folder / f"SegmentationObject/{stem}.png", png(palette))
    return folder


def test_voc_masks_keep_their_indices(tmp_path: Path) -> None:
    converted(voc_masks(tmp_path / "voc"), tmp_path / "out")
    record = by_name(tmp_path / "out")["a.png"]
    mask = pixels(record["image/segmentation/class/encoded"][0])
    assert (mask[0] == 255).all()
    assert (mask[20:70, 30:110] == 15).all()
    assert np.array_equal(pixels(record["image/segmentation/object/encoded"][0]), mask)


def columns_collection(folder: Path) -> Path:
    write(folder / "a.png", png(upright()))
    return write(folder / "data.csv", "image,label,age,tags\na.png,x|y,7,p|q\n")


@pytest.mark.parametrize("keys", ["od", "tfds"])
@pytest.mark.parametrize(
    ("collection", "options"),
    [
        (coco_collection, {"images": "images"}),
        (panoptic_collection, {"images": "images"}),
        (voc_masks, {}),
        (columns_collection, {"label_separator": "|", "columns": "age:int64,tags:string[]", "one_hot": True}),
    ],
    ids=["coco", "panoptic", "voc", "columns"],
)
@pytest.mark.filterwarnings("ignore")  # of TensorFlow Datasets
def test_tensorflow_datasets_loads_every_kind(
    tmp_path: Path, collection: Any, options: dict[str, Any], keys: str
) -> None:
    import tensorflow_datasets as tfds

    source = collection(tmp_path / "in")
    if "images" in options:
        options = {**options, "images": str(tmp_path / "in" / options["images"])}
    summary = converted(source, tmp_path / "out", keys=keys, **options)
    dataset = tfds.builder_from_directory(tmp_path / "out").as_dataset(split="train")
    examples = list(tfds.as_numpy(dataset))
    assert len(examples) == summary.written
    spec = json.loads((tmp_path / "out/features.json").read_text("utf-8"))
    assert set(spec["featuresDict"]["features"]) == set(examples[0])


def test_every_object_is_accounted_for(tmp_path: Path) -> None:
    for name in ("good", "gone"):
        (tmp_path / f"{name}.jpg").write_bytes(png(Image.new("RGB", (40, 30))))
    lines = [
        "image,label,xmin,ymin,xmax,ymax",
        "good.jpg,cat,1,2,20,20",
        "good.jpg,cat,35,5,39,29",
        "good.jpg,dog,90,90,99,99",  # outside
        "gone.jpg,dog,1,2,20,20",
        "gone.jpg,dog,1,2,10,20",
    ]
    (tmp_path / "boxes.csv").write_text("\n".join(lines))
    (tmp_path / "gone.jpg").write_bytes(b"no picture")
    converted(tmp_path / "boxes.csv", tmp_path / "out", max_rejects="100%", insight="off")
    told = conversion(tmp_path / "out")
    assert told["objects"] == {"dropped": 1, "found": 5, "rejected": 2, "stored": 2}
    (record,) = by_name(tmp_path / "out").values()
    assert len(record["image/object/bbox/xmin"]) == 2
    assert told["warnings"]["box_dropped"] == 1
