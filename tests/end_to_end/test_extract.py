"""``beam-tfrecord extract`` as a user runs it: what comes out, and that it converts to the same bytes again."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord import convert
from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.tfrecord.example import encode_example
from pipelines.main import main
from tests.annotation_tools import write
from tests.end_to_end.datasets import conversion, records, shard_bytes, shard_files
from tests.end_to_end.reading.kinds import KINDS, convert_kind
from tests.end_to_end.test_annotations import coco_collection, voc_masks
from tests.samples import class_folders, draw_shape, jpeg, noise, png, truncated, turned_jpeg, write_files, write_table
from tests.tiny_reader import decode, frame, read_shard

Captured = pytest.CaptureFixture[str]


def extract(*arguments: object) -> int:
    return main(["extract", *map(str, arguments), "--quiet"])


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture
def datasets(dataset: Callable[..., Path]) -> Callable[..., Path]:
    """The shared datasets by kind; in these tests ``dataset`` is one of them."""
    return dataset


def check_account(account: dict[str, Any], dataset: Path) -> None:
    """Every record and feature of a dataset of this tool is kept or made anew; counted by the readers of the tests."""
    num_records = sum(len(read_shard(path)) for path in shard_files(dataset))
    assert account["unaccounted"] == []
    assert account["used"]["records"] == {"extracted": num_records}
    assert account["found"]["records"] == num_records
    assert account["found"]["features"] == sum(account["used"]["features"].values())
    if conversion(dataset)["message"] == "Example":
        assert account["found"]["features"] == sum(len(record) for record in records(dataset))
    assert account["named"] == {}


def round_trip(dataset: Path) -> Path:
    """Extract a dataset and convert that again, as the file of flags says; the shards must be the same bytes."""
    folder, again = dataset.with_name("extracted"), dataset.with_name("again")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert extract(dataset, "--output", folder, "--json") == 0
    check_account(json.loads(out.getvalue().splitlines()[-1])["account"], dataset)
    assert main(["convert", f"@{folder}/convert.args", "--output", str(again), "--quiet"]) == 0
    assert shard_bytes(again) == shard_bytes(dataset)
    assert shard_bytes(dataset)
    told, before = conversion(again), conversion(dataset)
    for name in ("labels", "label_offset", "label_ids", "keys", "message", "parse_spec", "classes", "compression"):
        assert told.get(name) == before.get(name), name
    is_raw = before["options"]["image_format"] == "raw"
    assert told["changed"] == ({"decoded_to_raw": sum(told["image_formats"].values())} if is_raw else {})
    assert not (folder / ".extract").exists()
    return folder


# The others have nothing that the collections below do not have as well.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("classes", "sizes", "raw", "boxes")])
def test_every_kind_of_dataset_comes_back_byte_for_byte(kind: str, datasets: Callable[..., Path]) -> None:
    round_trip(datasets(kind))


@pytest.mark.parametrize(
    ("kind", "preset"),
    [("objects", "tfds"), ("objects", "simple"), ("sequence", "simple")],
)
def test_every_preset_comes_back(kind: str, preset: str, tmp_path: Path) -> None:
    round_trip(convert_kind(kind, tmp_path, keys=preset, compression="gzip"))


def coco(folder: Path) -> tuple[Path, dict[str, Any]]:
    return coco_collection(folder), {"images": str(folder / "images")}


def voc(folder: Path) -> tuple[Path, dict[str, Any]]:
    return voc_masks(folder), {}


def turned(folder: Path) -> tuple[Path, dict[str, Any]]:
    for orientation in range(1, 9):
        image = draw_shape("square", orientation, 40, 30).image
        write(folder / f"in/x/{orientation}.jpg", turned_jpeg(image, orientation))
    return folder / "in", {"num_shards": 3}


def resized(folder: Path) -> tuple[Path, dict[str, Any]]:
    write_files(folder / "in", class_folders(4))
    return folder / "in", {"resize": 20, "splits": "train=0.5,test=0.5", "num_shards": "train=2", "seed": 7}


def left_as_they_are(folder: Path) -> tuple[Path, dict[str, Any]]:
    return turned(folder)[0], {"orientation": "ignore"}


def many_formats(folder: Path) -> tuple[Path, dict[str, Any]]:
    image = draw_shape("circle", 1, 40, 30).image
    for suffix in ("webp", "gif", "bmp", "tiff", "png"):
        (folder / "in/x").mkdir(parents=True, exist_ok=True)
        image.save(folder / f"in/x/a.{suffix}")
    image.convert("CMYK").save(folder / "in/x/cmyk.jpg")
    image.convert("P").save(folder / "in/x/palette.png")
    image.convert("1").save(folder / "in/x/bits.png")
    return folder / "in", {}


def raw_pixels(folder: Path) -> tuple[Path, dict[str, Any]]:
    for channels in (1, 2, 3, 4):
        pixels = noise(7, 5, channels, channels)
        image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
        write(folder / f"in/x/{channels}.png", png(image))
    return folder / "in", {"image_format": "raw", "keys": "simple", "compression": "zlib"}


def one_hot(folder: Path) -> tuple[Path, dict[str, Any]]:
    rows = [("image", "label"), ("a.png", "x"), ("b.png", "z"), ("c.png", "x")]
    write_files(folder, {f"{name}.png": png(Image.fromarray(noise(8, 6, n))) for n, name in enumerate("abc")})
    write(folder / "names.txt", "z\nunused\nx\nlast unused\n")
    options = {"one_hot": True, "labels": str(folder / "names.txt"), "label_offset": 5}
    return write_table(folder / "t.csv", rows), {**options, "rename": "image/encoded=jpg,image/class/label=y"}


def category_ids(folder: Path) -> tuple[Path, dict[str, Any]]:
    return coco_collection(folder), {"images": str(folder / "images"), "keep_category_ids": True}


def copies(folder: Path) -> tuple[Path, dict[str, Any]]:
    """One image many times, with two labels, in two splits; and another that is called like a copy."""
    names = [f"{n}.png" for n in range(12)] + ["3.png#1"]
    write_files(folder, {name: png(Image.fromarray(noise(8, 6, n))) for n, name in enumerate(names)})
    rows = [("image", "label", "split")]
    rows += [(name, "x", "train") for name in names]
    rows += [("3.png", label, split) for label in "xyx" for split in ("train", "train", "test")]
    rows += [("5.png", "y", "train")] * 4
    return write_table(folder / "t.csv", rows), {"num_shards": "train=4,test=1"}


def animated(folder: Path) -> tuple[Path, dict[str, Any]]:
    frames = [Image.fromarray(noise(8, 6, n)) for n in range(3)]
    frames[0].save(folder / "moving.webp", save_all=True, append_images=frames[1:], lossless=True, duration=50)
    write_files(folder, {"still.png": png(frames[0])})
    rows = [("image", "label"), ("moving.webp", "a"), ("still.png", "b")]
    return write_table(folder / "t.csv", rows), {"animated": "sequence"}


def columns(folder: Path) -> tuple[Path, dict[str, Any]]:
    cells = [
        {"n": 2**63 - 1, "f": 0.1, "s": " padded\n\u2028\x85 ü\0", "l": ["", "a|b", "[1]"], "g": [1e-40, 3.4e38]},
        {"n": -(2**63), "f": float("nan"), "s": "", "l": [], "g": []},
        {"n": 0, "f": float("-inf"), "s": '["x"]', "l": ["x"], "g": [float("inf"), -0.0]},
    ]
    rows = [{"image": f"{n}.png", **cells[n]} for n in range(3)]
    write_files(folder, {f"{n}.png": png(Image.fromarray(noise(8, 6, n))) for n in range(3)})
    write(folder / "t.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return folder / "t.jsonl", {"columns": "n:int64,f:float,s:string,l:string[],g:float[]"}


def plain_table(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Without ids, and with equal rows."""
    rows = [("a", "b"), (1, "x"), (1, "x"), (2, "y"), (3, "")]
    return write_table(folder / "t.csv", rows), {"columns": "a:int64,b:string"}


def captions(folder: Path) -> tuple[Path, dict[str, Any]]:
    write_files(folder / "images", {f"{n}.png": png(Image.fromarray(noise(8, 6, n))) for n in range(3)})
    document = {
        "images": [{"id": n, "file_name": f"{n}.png", "width": 8, "height": 6} for n in range(3)],
        "annotations": [
            {"id": 1, "image_id": 0, "caption": "eine schöne Küste"},
            {"id": 2, "image_id": 0, "caption": 'second "one"\nof two'},
            {"id": 3, "image_id": 2, "caption": "✓"},
        ],
    }
    return write(folder / "captions.json", document), {"images": str(folder / "images")}


@pytest.mark.parametrize(
    "make",
    [
        *(coco, voc, turned, resized, left_as_they_are, many_formats, raw_pixels, one_hot, category_ids),
        *(copies, animated, columns, plain_table, captions),
    ],
    ids=lambda make: make.__name__,
)
def test_it_comes_back_byte_for_byte(make: Callable[[Path], tuple[Path, dict[str, Any]]], tmp_path: Path) -> None:
    source, options = make(tmp_path)
    convert(str(source), tmp_path / "out", **options)
    round_trip(tmp_path / "out")


def test_shards_come_back_although_rejects_made_them_uneven(tmp_path: Path) -> None:
    files = class_folders(8)
    bad = [name for number, name in enumerate(sorted(files)) if number % 3 == 0]
    write_files(tmp_path / "in", {name: truncated(data) if name in bad else data for name, data in files.items()})
    convert(str(tmp_path / "in"), tmp_path / "out", num_shards=5, max_rejects="100%")
    lengths = [shard["records"] for shard in conversion(tmp_path / "out")["splits"]["train"]["shards"]]
    assert max(lengths) - min(lengths) > 1
    folder = round_trip(tmp_path / "out")
    assert f"--shard_records=train={'+'.join(map(str, lengths))}" in (folder / "convert.args").read_text()


def test_features_stay_of_which_the_only_row_was_rejected(tmp_path: Path) -> None:
    """All records have the lists of masks and poses, though no record has an object with one."""
    good = {"image": "good.png", "boxes": []}
    item = {"bbox": [1, 1, 5, 5], "pose": "left", "keypoints": [1, 1, 2], "polygons": [[1, 1, 5, 1, 5, 5]]}
    lines = [good, {"image": "bad.png", "boxes": [item], "label": ["a", "b"], "captions": ["c"], "mask": "m.png"}]
    write(tmp_path / "rows.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    write_files(tmp_path, {"good.png": png(Image.fromarray(noise(8, 6))), "bad.png": b"no image"})
    write(tmp_path / "names.txt", "a\nb\nobject\n")
    convert(
        str(tmp_path / "rows.jsonl"),
        tmp_path / "out",
        format="extracted",
        max_rejects="100%",
        labels=str(tmp_path / "names.txt"),
    )
    (record,) = records(tmp_path / "out")
    assert record["image/object/mask"] == record["image/object/view"] == record["image/caption"] == []
    round_trip(tmp_path / "out")


# ---------------------------------------------------------------------------------------------------------------------
# What the folder holds


def test_images_lie_under_their_names_and_lines_tell_everything(datasets: Callable[..., Path]) -> None:
    files = class_folders(4)
    folder = round_trip(datasets("classes"))
    assert {str(path.relative_to(folder / "images")): path.read_bytes() for path in folder.rglob("*.jpg")} == files
    lines = lines_of(folder)
    stored = records(datasets("classes"))
    assert [line["filename"].encode() for line in lines] == [record["image/filename"][0] for record in stored]
    assert [line["label"].encode() for line in lines] == [record["image/class/text"][0] for record in stored]
    assert [line["split"] for line in lines] == sorted(line["split"] for line in lines)
    places = [(line["split"], *line["place"]) for line in lines]
    assert places == sorted(places)
    assert [place for place in places if place[3] == 0] == [
        ("train", 0, 3, 0),
        ("train", 1, 3, 0),
        ("train", 2, 3, 0),
        ("validation", 0, 1, 0),
    ]
    assert (folder / "labels.txt").read_text() == "circle\nsquare\ntriangle\n"


def test_names_that_are_not_safe_or_not_unique_go_by_content(tmp_path: Path) -> None:
    pictures = iter(png(Image.fromarray(noise(8, 6, seed))) for seed in range(100))
    folder, other, odd = tmp_path / "in", tmp_path / "other", tmp_path / "odd"
    inner = [
        "a.png",
        "A.png",
        "b/c.png",
        "x.png",
        "l" * 230 + ".png",
        "same.png",
        "100%#?*.png",
    ]
    inner += ["images/by_content/z.png", "by_content/y.png", "tab\t.png"]
    files = {name: next(pictures) for name in inner}
    write_files(folder, files)
    write_files(other, {"x.png/y.png": next(pictures), "b/c.png": next(pictures), "same.png": files["same.png"]})
    write_files(odd, {"ends with a blank .png ": next(pictures), "n\new line.png": next(pictures)})
    with open(os.path.join(os.fsencode(odd), b"\xff\xe4.png"), "wb") as file:
        file.write(next(pictures))
    spelled = [*inner, "../in/a.png", "./A.png", str(folder / "b/c.png")]
    spelled += [f"file://{folder}/x.png", "b//c.png", "b\\c.png"]
    table = write_table(folder / "t.csv", [("image",), *((name,) for name in spelled)])
    further = write_table(other / "t.csv", [("image",), ("x.png/y.png",), ("b/c.png",), ("same.png",)])
    convert([f"train={table}", f"test={further}", f"odd={odd}"], tmp_path / "out", num_shards="train=3,test=1,odd=1")
    extracted = round_trip(tmp_path / "out")
    image_of = {(line["split"], line["filename"]): line["image"] for line in lines_of(extracted)}
    assert len(image_of) == len(records(tmp_path / "out")) - 1  # one spelling of b/c.png is a copy of another
    assert image_of["train", "same.png"] == image_of["test", "same.png"] == "images/same.png"
    assert image_of["train", "100%#?*.png"] == "images/100%#?*.png"
    assert image_of["train", "by_content/y.png"].startswith("images/by_content/")
    for name in ("a.png", "A.png", "b/c.png", "x.png"):  # also a file of another content, or a folder, is called so
        assert image_of["train", name].startswith("images/by_content/"), name
    assert all(image.startswith("images/by_content/") for (split, _), image in image_of.items() if split == "odd")
    assert image_of["test", "x.png/y.png"] == "images/x.png/y.png"
    for (_, name), image in image_of.items():
        path = extracted / image
        assert path.resolve().is_relative_to(extracted.resolve() / "images"), name
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert image in (f"images/{name}", f"images/by_content/{digest}.png")


def test_one_split_is_extracted_alone_and_a_wrong_one_is_told(
    datasets: Callable[..., Path], tmp_path: Path, capsys: Captured
) -> None:
    dataset = datasets("classes")
    assert extract(dataset, "--output", tmp_path / "e", "--split", "validation") == 0
    assert main(["convert", f"@{tmp_path}/e/convert.args", "--output", str(tmp_path / "again"), "--quiet"]) == 0
    wanted = {name: data for name, data in shard_bytes(dataset).items() if name.startswith("validation")}
    assert shard_bytes(tmp_path / "again") == wanted
    assert extract(dataset, "--output", tmp_path / "f", "--split", "valdation") == 2
    assert "did you mean 'validation'?" in capsys.readouterr().err
    assert not (tmp_path / "f").exists()


def test_a_folder_that_is_not_empty_is_left_alone_unless_told(
    datasets: Callable[..., Path], tmp_path: Path, capsys: Captured
) -> None:
    dataset = datasets("boxes")
    assert extract(dataset, "--output", dataset) == 2
    assert "is the dataset itself" in capsys.readouterr().err
    mine = write(tmp_path / "mine/images/holiday.jpg", b"mine")
    assert extract(dataset, "--output", tmp_path / "mine", "--overwrite") == 2
    assert "holds other files (images)" in capsys.readouterr().err
    assert [path for path in (tmp_path / "mine").rglob("*") if path.is_file()] == [mine]
    assert extract(dataset) == 2
    assert extract(dataset, "--output", tmp_path / "e") == 0
    before = (tmp_path / "e/manifest.jsonl").read_bytes()
    write(tmp_path / "e/images/left.jpg", b"of an earlier run")
    assert extract(dataset, "--output", tmp_path / "e") == 2
    assert "--overwrite" in capsys.readouterr().err
    assert extract(dataset, "--output", f"{tmp_path}/e/", "--overwrite") == 0
    assert (tmp_path / "e/manifest.jsonl").read_bytes() == before
    assert not (tmp_path / "e/images/left.jpg").exists()


def test_a_damaged_record_is_named_and_the_others_are_extracted(
    datasets: Callable[..., Path], tmp_path: Path, capsys: Captured
) -> None:
    dataset = shutil.copytree(datasets("classes"), tmp_path / "out")
    shard = sorted(dataset.glob("train-*.tfrecord"))[1]
    data = bytearray(shard.read_bytes())
    start = 16 + int.from_bytes(data[:8], "little")
    data[start + 40] ^= 1
    shard.write_bytes(data)
    assert extract(dataset, "--output", tmp_path / "e") == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"{shard.name}: record 1 at byte {start}: the checksum of its data is ")
    assert out[-1].startswith("11 records from 4 shards to ")
    assert ", 1 fault, " in out[-1]
    assert len(lines_of(tmp_path / "e")) == 11
    assert main(["convert", f"@{tmp_path}/e/convert.args", "--output", str(tmp_path / "again"), "--quiet"]) == 0
    untouched = [name for name in shard_bytes(dataset) if name != shard.name]
    assert all(shard_bytes(tmp_path / "again")[name] == shard_bytes(dataset)[name] for name in untouched)


def test_a_record_that_is_not_as_stated_is_a_fault(
    datasets: Callable[..., Path], tmp_path: Path, capsys: Captured
) -> None:
    dataset = shutil.copytree(datasets("boxes"), tmp_path / "out")
    (shard,) = dataset.glob("*.tfrecord")
    good = read_shard(shard)
    strange = [good[0], b"\x0a\x00", b"\xff\xff", good[1].replace(b"image/encoded", b"image/encodee")]
    shard.write_bytes(b"".join(map(frame, strange)))
    assert extract(dataset, "--output", tmp_path / "e", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["records"] == 1
    assert told["by_code"] == {"no_example": 1, "wrong_features": 2}
    assert any(": record 1 at byte" in line and "image/source_id" in line for line in told["details"])
    assert any(": record 3 at byte" in line and "no image" in line for line in told["details"])


def test_a_missing_shard_is_told(datasets: Callable[..., Path], tmp_path: Path, capsys: Captured) -> None:
    dataset = shutil.copytree(datasets("classes"), tmp_path / "out")
    sorted(dataset.glob("train-*.tfrecord"))[0].unlink()
    assert extract(dataset, "--output", tmp_path / "e") == 1
    assert "train-00000-of-00003.tfrecord: the file is not there" in capsys.readouterr().out


def test_the_last_lines_are_the_command_and_the_sum(
    datasets: Callable[..., Path], tmp_path: Path, capsys: Captured
) -> None:
    dataset = datasets("boxes")
    folder = tmp_path / "with blank and 'quote'"
    assert extract(dataset, "--output", folder) == 0
    command, total = capsys.readouterr().out.splitlines()
    words = shlex.split(command)
    assert words[:2] == ["beam-tfrecord", "convert"]
    assert words[-1] == "--output=NEW_FOLDER"
    assert total.startswith(f"2 records from 1 shard to {folder}, no faults, ")
    assert shlex.split((folder / "convert.args").read_text()) == words[2:-1]
    again = [*words[1:-1], f"--output={tmp_path / 'again'}", "--quiet"]
    assert main(again) == 0
    assert shard_bytes(tmp_path / "again") == shard_bytes(dataset)


def test_flags_of_a_file_that_is_not_there_or_not_quoted_are_told(tmp_path: Path, capsys: Captured) -> None:
    assert main(["convert", f"@{tmp_path}/none.args", "--output", str(tmp_path / "out")]) == 2
    assert "no file of flags is there" in capsys.readouterr().err
    write(tmp_path / "bad.args", "--input='open")
    assert main(["convert", f"@{tmp_path}/bad.args"]) == 2
    assert "quoted as in a shell" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------------------
# Records from elsewhere


def foreign(folder: Path) -> Path:
    """Two files as another tool writes them: photos with a label, its name, and further features."""
    import tensorflow as tf

    def feature(value: Any) -> Any:
        values = value if isinstance(value, list) else [value]
        if isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    folder.mkdir()
    for number, name in enumerate(("train-00000-of-00002", "train-00001-of-00002")):
        with tf.io.TFRecordWriter(str(folder / name)) as writer:
            for place in range(3):
                picture = 3 * number + place
                features = {
                    "image/encoded": jpeg(Image.fromarray(noise(16, 12, picture))),
                    "image/class/label": 10 + picture % 2,
                    "image/class/text": [b"cat", b"dog"][picture % 2],
                    "image/colorspace": b"RGB",
                    "score": picture / 4,
                    "codes": list(range(1, picture + 2)),
                }
                example = tf.train.Example(
                    features=tf.train.Features(feature={k: feature(v) for k, v in features.items()})
                )
                writer.write(example.SerializeToString())
    return folder


def test_records_from_elsewhere_give_images_labels_and_columns(tmp_path: Path, capsys: Captured) -> None:
    dataset = foreign(tmp_path / "foreign")
    assert main(["extract", str(dataset), "--output", str(tmp_path / "e")]) == 0
    assert "note: no conversion.json tells of these files" in capsys.readouterr().err
    lines = lines_of(tmp_path / "e")
    assert [line["label"] for line in lines] == ["cat", "dog"] * 3
    assert lines[4]["columns"] == {"codes": [1, 2, 3, 4, 5], "image/colorspace": ["RGB"], "score": [1.0]}
    assert lines[4]["image"] == "images/train-00001-of-00002/000001.jpg"
    assert (tmp_path / "e/labels.txt").read_text() == "cat\ndog\n"
    flags = shlex.split((tmp_path / "e/convert.args").read_text())
    assert "--columns=codes:int64[],image/colorspace:string,score:float" in flags
    assert main(["convert", f"@{tmp_path}/e/convert.args", "--output", str(tmp_path / "again"), "--quiet"]) == 0
    originals = [decode(record) for path in sorted(dataset.iterdir()) for record in read_shard(path)]
    for before, after in zip(originals, records(tmp_path / "again"), strict=True):
        assert {key: after[key] for key in before} == before
    assert [path.name for path in sorted((tmp_path / "again").glob("*.tfrecord"))] == [
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
    ]


def test_a_file_of_records_without_names_of_labels_takes_those_of_the_others(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "in"
    for number, texts in enumerate(([[b"cat"], [b"dog"]], [[], [b""]])):
        data = b""
        for place, text in enumerate(texts):
            label = {"image/class/label": Feature("int64", [1 + place]), "image/class/text": Feature("bytes", text)}
            picture = jpeg(Image.fromarray(noise(16, 12, 2 * number + place)))
            data += frame(encode_example({"image/encoded": Feature("bytes", [picture]), **label}))
        write(folder / f"train-{number:05d}-of-00002.tfrecord", data)
    assert main(["extract", str(folder), "--output", str(tmp_path / "e")]) == 0
    assert [line["label"] for line in lines_of(tmp_path / "e")] == ["cat", "dog", "cat", "dog"]
    assert (tmp_path / "e/labels.txt").read_text().split() == ["cat", "dog"]
    assert "note: 2 labels have no name in their records: other records name the same ids" in capsys.readouterr().err


def test_our_own_records_without_metadata_come_back_with_their_images_and_boxes(
    datasets: Callable[..., Path], tmp_path: Path
) -> None:
    dataset = datasets("objects")
    alone = tmp_path / "alone"
    alone.mkdir()
    (shard,) = dataset.glob("*.tfrecord")
    shutil.copy(shard, alone)
    assert extract(alone, "--output", tmp_path / "e") == 0
    assert main(["convert", f"@{tmp_path}/e/convert.args", "--output", str(tmp_path / "again"), "--quiet"]) == 0
    assert shard_bytes(tmp_path / "again") == shard_bytes(alone)


def test_a_table_from_elsewhere_is_a_manifest_alone(tmp_path: Path) -> None:
    write(
        tmp_path / "in/rows.tfrecord", frame(encode_example({"a": Feature("int64", [5]), "b": Feature("float", [0.1])}))
    )
    assert extract(tmp_path / "in/rows.tfrecord", "--output", tmp_path / "e") == 0
    (line,) = lines_of(tmp_path / "e")
    assert line["columns"] == {"a": [5], "b": [pytest.approx(0.1)]}
    assert sorted(path.name for path in (tmp_path / "e").iterdir()) == ["convert.args", "manifest.jsonl"]
    assert main(["convert", f"@{tmp_path}/e/convert.args", "--output", str(tmp_path / "again"), "--quiet"]) == 0
    (record,) = records(tmp_path / "again")
    assert record["a"] == [5]
