"""The inputs that the examples of the documentation name, made small: each when a command first names it."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from beam_tfrecord import Feature, convert
from beam_tfrecord.tfrecord.example import encode_example
from tests import hugging_face
from tests.fruit import KINDS, as_json, fruit_folders, still_life
from tests.samples import jpeg, png, write_files, write_table
from tests.tiny_reader import frame

SCENES = {"kitchen": ["apple", "pear"], "garden": ["banana"], "market": ["plum", "lemon", "apple"]}


def photos(folder: Path) -> None:
    """Class folders."""
    write_files(folder / "photos", fruit_folders(per_class=3))


def numbered(folder: Path) -> None:
    """``fruit/apple01.jpg`` ..."""
    files = {name.split("/")[1].replace("_", ""): data for name, data in fruit_folders(per_class=2).items()}
    write_files(folder / "fruit", files)


def images(folder: Path) -> None:
    """Scenes of one to three fruits: ``images/kitchen.jpg`` ..., of 320x240 pixels."""
    files = {f"images/{name}.jpg": jpeg(still_life(fruit, 1).image) for name, fruit in SCENES.items()}
    write_files(folder, files)


def masks(folder: Path) -> None:
    """A mask for each scene."""
    values = np.zeros((240, 320), np.uint8)
    values[60:180, 80:240] = 1
    write_files(folder, {f"masks/{name}.png": png(Image.fromarray(values)) for name in SCENES})


def labels_csv(folder: Path) -> None:
    rows = [(f"photos/{name}", name.split("/")[0], name[-6]) for name in _photos(folder)]
    write_table(folder / "labels.csv", [("image", "label", "patient"), *rows])


def train_csv(folder: Path) -> None:
    rows = [(f"photos/{name}", name.split("/")[0]) for name in _photos(folder)[3:]]
    write_table(folder / "train.csv", [("image", "label"), *rows])


def val_jsonl(folder: Path) -> None:
    lines = [json.dumps({"image": f"photos/{name}", "label": name.split("/")[0]}) for name in _photos(folder)[:3]]
    (folder / "val.jsonl").write_text("\n".join(lines) + "\n")


def table_parquet(folder: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    columns = {"label": ["x", "y", "x"], "age": [3, 5, 8], "weight": [0.5, 1.5, 2.5], "note": ["a", "", "c"]}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "table.parquet")


def coco(folder: Path) -> None:
    """Instances of scenes, and the pictures."""
    document = {
        "images": [],
        "annotations": [],
        "categories": [{"id": number, "name": name} for number, name in enumerate(KINDS, start=1)],
    }
    files = {}
    for number, names in enumerate(SCENES.values(), start=1):
        scene = still_life(names, number)
        files[f"train2017/{number:012}.jpg"] = jpeg(scene.image)
        document["images"].append({"id": number, "file_name": f"{number:012}.jpg", "width": 320, "height": 240})
        for piece in scene.pieces:
            xmin, ymin, xmax, ymax = piece.box
            document["annotations"].append(
                {
                    "id": len(document["annotations"]) + 1,
                    "image_id": number,
                    "category_id": list(KINDS).index(piece.name) + 1,
                    "bbox": [xmin, ymin, xmax - xmin, ymax - ymin],
                    "area": (xmax - xmin) * (ymax - ymin),
                    "iscrowd": 0,
                }
            )
    write_files(folder, {**files, "instances_train.json": as_json(document)})


def voc(folder: Path) -> None:
    files: dict[str, bytes] = {}
    for number, (name, names) in enumerate(SCENES.items()):
        scene = still_life(names, number)
        files[f"VOC2012/JPEGImages/{name}.jpg"] = jpeg(scene.image)
        objects = "".join(
            f"<object><name>{piece.name}</name><bndbox><xmin>{piece.box[0]:.0f}</xmin><ymin>{piece.box[1]:.0f}</ymin>"
            f"<xmax>{piece.box[2]:.0f}</xmax><ymax>{piece.box[3]:.0f}</ymax></bndbox></object>"
            for piece in scene.pieces
        )
        text = f"<annotation><filename>{name}.jpg</filename>{objects}</annotation>"
        files[f"VOC2012/Annotations/{name}.xml"] = text.encode()
    write_files(folder, files)


def yolo(folder: Path) -> None:
    """``data.yaml``, and ``yolo`` with the images and labels."""
    files: dict[str, bytes] = {}
    for number, (name, names) in enumerate(SCENES.items()):
        scene = still_life(names, number)
        files[f"yolo/images/train/{name}.jpg"] = jpeg(scene.image)
        lines = []
        for piece in scene.pieces:
            xmin, ymin, xmax, ymax = piece.box
            centre = ((xmin + xmax) / 640, (ymin + ymax) / 480, (xmax - xmin) / 320, (ymax - ymin) / 240)
            lines.append(f"{list(KINDS).index(piece.name)} " + " ".join(f"{value:.6f}" for value in centre))
        files[f"yolo/labels/train/{name}.txt"] = "\n".join(lines).encode()
    names = "".join(f"  {number}: {name}\n" for number, name in enumerate(KINDS))
    files["data.yaml"] = f"path: yolo\ntrain: images/train\nnames:\n{names}".encode()
    write_files(folder, files)


def photos_zip(folder: Path) -> None:
    with zipfile.ZipFile(folder / "photos.zip", "w") as archive:
        for name, data in fruit_folders(per_class=2).items():
            archive.writestr(f"photos/{name}", data)


def photos_tar(folder: Path) -> None:
    with tarfile.open(folder / "photos.tar", "w") as archive:
        for name, data in fruit_folders(per_class=2).items():
            member = tarfile.TarInfo(f"photos/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def boxes_csv(folder: Path) -> None:
    make("images", folder)
    rows: list[tuple[object, ...]] = [("filename", "class", "xmin", "ymin", "xmax", "ymax")]
    for name, fruit in SCENES.items():
        rows += [(f"images/{name}.jpg", piece.name, *piece.box) for piece in still_life(fruit, 1).pieces]
    write_table(folder / "boxes.csv", rows)


def clips_csv(folder: Path) -> None:
    """Two clips of three pictures each."""
    rows = [("image", "label", "clip", "time")]
    for number, name in enumerate(_photos(folder)[:6]):
        rows.append((f"photos/{name}", "walk", f"clip{number // 3}", str(number)))
    write_table(folder / "clips.csv", rows)


def labels_txt(folder: Path) -> None:
    (folder / "labels.txt").write_text("".join(f"{name}\n" for name in KINDS))


def old_records(folder: Path) -> None:
    """Records of scenes with labels, without this tool's metadata."""
    features = [
        {"image": Feature("bytes", [jpeg(still_life(fruit, 1).image)]), "label": Feature("int64", [number])}
        for number, fruit in enumerate(SCENES.values())
    ]
    data = b"".join(frame(encode_example(record)) for record in features)
    write_files(folder, {"old/train-00000-of-00001.tfrecord": data})


def shards(folder: Path) -> None:
    """Two tars of WebDataset."""
    (folder / "shards").mkdir()
    for number in range(2):
        with tarfile.open(folder / "shards" / f"train-{number:03d}.tar", "w") as tar:
            for key, fruit in enumerate(("apple", "pear")):
                picture = jpeg(still_life([fruit], number).image)
                for field, data in (("jpg", picture), ("cls", fruit.encode())):
                    member = tarfile.TarInfo(f"{number}{key}.{field}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def city(folder: Path) -> None:
    """Cityscapes with one picture."""
    stem = "ulm_000000_000019"
    polygon = [[20, 40], [140, 40], [140, 200], [20, 200]]
    document = {"imgHeight": 240, "imgWidth": 320, "objects": [{"label": "cargroup", "polygon": polygon}]}
    files = {
        f"city/leftImg8bit/train/ulm/{stem}_leftImg8bit.png": png(still_life(["apple"], 1).image),
        f"city/gtFine/train/ulm/{stem}_gtFine_polygons.json": as_json(document),
        f"city/gtFine/train/ulm/{stem}_gtFine_labelIds.png": png(Image.new("L", (320, 240), 7)),
    }
    write_files(folder, files)


def ade(folder: Path) -> None:
    """ADE20K with one picture."""
    one = {"id": 0, "name": "apple", "occluded": "no", "polygon": {"x": [20, 140, 140], "y": [40, 40, 200]}}
    document = {"annotation": {"filename": "kitchen.jpg", "imsize": [240, 320, 3], "object": [one]}}
    picture = jpeg(still_life(["apple"], 1).image)
    write_files(folder, {"ADE/training/home/kitchen.jpg": picture, "ADE/training/home/kitchen.json": as_json(document)})


def saved(folder: Path) -> None:
    """A DatasetDict of Hugging Face's datasets."""
    feature = hugging_face.classes("pear", "apple")
    for split, fruits in (("train", ("apple", "pear")), ("test", ("apple",))):
        own = hugging_face.pictures(*[jpeg(still_life([fruit], len(split)).image) for fruit in fruits])
        labels = [int(fruit == "apple") for fruit in fruits]
        content = hugging_face.table({"image": (hugging_face.IMAGE, own), "label": (feature, labels)})
        hugging_face.saved(folder / "saved" / split, content)
    write_files(folder, {"saved/dataset_dict.json": as_json({"splits": ["train", "test"]})})


def dataset(name: str) -> Callable[[Path], None]:
    """A finished dataset."""

    def make_dataset(folder: Path) -> None:
        make("photos", folder)
        convert(str(folder / "photos"), folder / name, splits="train=0.8,validation=0.2")

    return make_dataset


def season(name: str, first: int) -> Callable[[Path], None]:
    """A finished dataset with pictures that no other one has."""

    def make_season(folder: Path) -> None:
        files = {
            f"{fruit}/{fruit}_{number}.jpg": jpeg(still_life([fruit], number, 96, 72).image)
            for fruit in KINDS
            for number in (first, first + 1)
        }
        write_files(folder / f"in_{name}", files)
        convert(str(folder / f"in_{name}"), folder / name)

    return make_season


PLACES: dict[str, Callable[[Path], None]] = {
    "photos": photos,
    "fruit": numbered,
    "images": images,
    "masks": masks,
    "labels.csv": labels_csv,
    "train.csv": train_csv,
    "val.jsonl": val_jsonl,
    "table.parquet": table_parquet,
    "instances_train.json": coco,
    "VOC2012": voc,
    "data.yaml": yolo,
    "photos.zip": photos_zip,
    "photos.tar": photos_tar,
    "boxes.csv": boxes_csv,
    "clips.csv": clips_csv,
    "labels.txt": labels_txt,
    "old": old_records,
    "shards": shards,
    "saved": saved,
    "city": city,
    "ADE": ade,
    "out": dataset("out"),
    "spring": season("spring", 100),
    "summer": season("summer", 200),
}


def make(name: str, folder: Path) -> None:
    """Make a place unless it is there."""
    if name in PLACES and not (folder / name).exists():
        PLACES[name](folder)


def _photos(folder: Path) -> list[str]:
    make("photos", folder)
    return sorted(path.relative_to(folder / "photos").as_posix() for path in (folder / "photos").rglob("*.jpg"))
