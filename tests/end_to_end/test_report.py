"""report.html at the end of a conversion, and for what lies on disk."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from beam_tfrecord.report import build_report
from beam_tfrecord.storage import Storage
from pipelines.main import main
from tests.end_to_end.datasets import conversion, converted, records
from tests.samples import (
    CLASSES,
    class_folders,
    draw_shape,
    jpeg,
    noise,
    png,
    truncated,
    turned_jpeg,
    write_files,
    write_table,
)


def collection(folder: Path) -> Path:
    """Pictures of three classes: one turned, one cut, two sizes."""
    files = class_folders(per_class=6, width=64, height=48)
    files["square/turned.jpg"] = turned_jpeg(draw_shape("square", 50, 40, 80).image, 6)
    files["circle/cut.jpg"] = truncated(jpeg(draw_shape("circle", 51, 64, 48).image))
    write_files(folder, files)
    return folder


def page(output: Path) -> str:
    return (output / "report.html").read_text("utf-8")


def section(html: str, name: str) -> str:
    """A section of the page; nothing when it has none of that name."""
    found = re.search(rf'<section id="{name}".*?</section>', html, re.DOTALL)
    return found[0] if found else ""


def pictures(html: str) -> int:
    return html.count('href="data:image/jpeg;base64,')


def report_again(output: Path) -> str:
    """What the command makes of the dataset."""
    (output / "report.html").unlink(missing_ok=True)
    assert main(["report", str(output)]) == 0
    return page(output)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    options = {"splits": "train=0.5,test=0.5", "num_shards": "2", "max_rejects": "50%"}
    converted(collection(folder / "in"), folder / "out", **options)
    return folder / "out"


def test_a_conversion_ends_with_a_report(dataset: Path) -> None:
    html = page(dataset)
    assert pictures(html) == 19 + 1  # every record of three small classes, and the one that was turned
    assert "truncated_image" in html
    assert "Pixels turned upright" in html
    assert ">JPEG, 3 channels<" in html


def test_statistics_are_those_of_the_images_as_pillow_sees_them(dataset: Path) -> None:
    told = json.loads((dataset / "statistics.json").read_text())
    sizes = Counter("{}x{}".format(record["image/width"][0], record["image/height"][0]) for record in records(dataset))
    assert told["images"]["sizes"] == sizes
    assert told["images"]["bytes"]["total"] == sum(len(record["image/encoded"][0]) for record in records(dataset))
    assert "statistics.json" in conversion(dataset)["files"]


def test_sampled_records_lie_where_it_is_said(dataset: Path) -> None:
    told = json.loads((dataset / "statistics.json").read_text())
    found = 0
    for label, places in told["samples"]["classes"].items():
        for place in places:
            frames = tf.data.TFRecordDataset(str(dataset / place["file"]))
            record = list(frames.as_numpy_iterator())[place["record"]]
            data = (dataset / place["file"]).read_bytes()
            assert data[place["offset"] : place["offset"] + place["size"]][12:-4] == record
            example = tf.train.Example.FromString(record)
            assert example.features.feature["image/class/text"].bytes_list.value[0].decode() == label
            found += 1
    assert found == 19
    (turned,) = told["samples"]["changed"]["rotated"]
    assert turned["file"].startswith(("train", "test"))


def test_the_command_makes_the_page_that_the_conversion_made(dataset: Path, tmp_path: Path) -> None:
    expected = page(dataset)
    copy = shutil.copytree(dataset, tmp_path / "elsewhere")
    assert report_again(copy) == expected


def test_a_second_conversion_gives_the_same_page(dataset: Path, tmp_path: Path) -> None:
    options = {"splits": "train=0.5,test=0.5", "num_shards": "2", "max_rejects": "50%", "name": "out"}
    threads = ["--direct_running_mode=multi_threading"]
    converted(dataset.parent / "in", tmp_path / "again", **options, pipeline_options=threads)

    def without_options(html: str) -> str:
        return re.sub(r"<tr[^>]*><td><code>--(output|name)</code>.*?</tr>\n", "", html, flags=re.DOTALL)

    assert without_options(page(tmp_path / "again")) == without_options(page(dataset))


def test_without_statistics_records_are_read_and_the_numbers_are_the_same(dataset: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(dataset, tmp_path / "old")
    expected = page(copy)
    (copy / "statistics.json").unlink()
    html = report_again(copy)
    assert section(html, "images") == section(expected, "images") != ""
    assert pictures(html) == 19  # what was changed is not known any more
    assert "reading" not in html  # all of them were read


def test_pictures_that_cannot_be_read_are_left_out_and_counted(dataset: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(dataset, tmp_path / "damaged")
    shard = next(copy.glob("train-00000*"))
    lost = conversion(copy)["splits"]["train"]["shards"][0]["records"]
    data = bytearray(shard.read_bytes())
    data[5:] = bytes(len(data) - 5)
    shard.write_bytes(data)
    html = report_again(copy)
    assert 19 - lost <= pictures(html) <= 20 - lost
    told = json.loads((copy / "statistics.json").read_text())["samples"]
    samples = [place for group in ("classes", "changed", "warnings") for own in told[group].values() for place in own]
    failed = {place["record"] for place in [*samples, *told["unlabelled"]] if place["file"] == shard.name}
    noun = "sample picture" if len(failed) == 1 else "sample pictures"
    assert f"{len(failed)} {noun} could not be read or drawn; beam-tfrecord verify tells what is wrong." in html
    assert "could not be read or drawn" not in page(dataset)


def test_files_that_cannot_be_read_on_are_named(dataset: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(dataset, tmp_path / "damaged")
    (copy / "statistics.json").unlink()
    shard = next(copy.glob("train-*"))
    shard.write_bytes(shard.read_bytes()[:-5])
    assert f"1 file could not be read on ({shard.name})" in report_again(copy)


def test_a_report_on_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "none")]) == 1
    assert main(["report", str(tmp_path)]) == 1
    assert main(["report", str(tmp_path), str(tmp_path)]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert all(line.startswith("error: ") for line in errors)


@pytest.mark.parametrize("name", ["statistics.json", "conversion.json"])
@pytest.mark.parametrize(
    "content",
    [
        *("{", "[]", '{"samples": {}}', '{"images": {}, "samples": {"classes": {}, "changed": {}, "warnings": {}}}'),
        '{"samples": {"classes": {"a": [{"file": 3}]}, "changed": {}, "warnings": {}, "unlabelled": []}}',
    ],
)
def test_damaged_metadata_are_named(dataset: Path, tmp_path: Path, name: str, content: str, capsys: Any) -> None:
    copy = shutil.copytree(dataset, tmp_path / "damaged")
    (copy / name).write_text(content)
    assert main(["report", str(copy)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert name in error


def test_the_page_can_be_written_elsewhere(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", f"{dataset}/", "--output", str(tmp_path / "page.html"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["report"] == str(tmp_path / "page.html")
    assert told["bytes"] == (tmp_path / "page.html").stat().st_size


# ---------------------------------------------------------------------------------------------------------------------
# Other kinds of datasets


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "gzip"},
        {"compression": "zlib", "keys": "simple"},
        {"image_format": "raw"},
        {"image_format": "raw", "keys": "simple"},
        {"keys": "tfds", "rename": "image=pixels,label=kind"},
        {"writer": "beam"},
    ],
    ids=lambda options: " ".join(options.values()),
)
def test_pictures_are_found_whatever_the_dataset_is_like(options: dict[str, str], tmp_path: Path) -> None:
    files = class_folders(per_class=2, width=40, height=30)
    write_files(tmp_path / "in", files)
    converted(tmp_path / "in", tmp_path / "out", **options)
    html = section(page(tmp_path / "out"), "pictures")
    assert pictures(html) == len(files)
    for label in CLASSES:
        assert f"<bdi>{label}</bdi>" in html
    assert "40×30" in html


def test_images_without_labels(tmp_path: Path) -> None:
    write_files(tmp_path / "in", {f"{n}.png": png(Image.fromarray(noise(20, 10, n))) for n in range(5)})
    converted(tmp_path / "in", tmp_path / "out")
    html = page(tmp_path / "out")
    assert pictures(html) == 5
    assert 'id="classes"' not in html


def test_a_table_tells_of_its_columns(tmp_path: Path) -> None:
    rows = [("a", "b", "label"), *((n, f"x{n % 2}", "yes" if n % 3 else "no") for n in range(12))]
    write_table(tmp_path / "t.csv", rows)
    converted(tmp_path / "t.csv", tmp_path / "out", columns="a:int64,b:string")
    html = page(tmp_path / "out")
    assert "from 0 to 11, mean 5.5; 12 different values" in html
    assert pictures(html) == 0
    assert 'id="images"' not in html


def test_a_sequence_shows_its_first_frame(tmp_path: Path) -> None:
    files = {f"{n}.jpg": jpeg(draw_shape("circle", n, 40, 30).image) for n in range(6)}
    write_files(tmp_path / "in", files)
    rows = [
        ("image", "clip", "time", "label"),
        *((name, int(n) // 3, n, "run") for n, name in enumerate(sorted(files))),
    ]
    write_table(tmp_path / "in" / "clips.csv", rows)
    converted(tmp_path / "in" / "clips.csv", tmp_path / "out", sequence_column="clip", order_column="time")
    html = page(tmp_path / "out")
    assert pictures(html) == 2
    assert "40×30 · 3 frames" in html
    assert "Frames per record" in html


def test_boxes_are_counted_and_drawn(tmp_path: Path) -> None:
    rows: list[tuple[Any, ...]] = [("filename", "class", "xmin", "ymin", "xmax", "ymax")]
    files = {}
    for number in range(6):
        drawing = draw_shape(CLASSES[number % 3], number, 120, 90)
        files[f"{number}.jpg"] = jpeg(drawing.image)
        rows.append((f"{number}.jpg", drawing.label, *drawing.box))
        if number == 0:
            rows.append((f"{number}.jpg", "corner", 0, 0, 12, 9))
    write_files(tmp_path / "in", files)
    write_table(tmp_path / "in" / "boxes.csv", rows)
    converted(tmp_path / "in" / "boxes.csv", tmp_path / "out")
    told = json.loads((tmp_path / "out" / "statistics.json").read_text())
    assert told["objects"]["per_image"]["bins"] == [[1, 5], [2, 1]]
    areas = [(x1 - x0) * (y1 - y0) for _, _, x0, y0, x1, y1 in rows[1:]]
    assert told["objects"]["area"]["total"] == pytest.approx(sum(areas), abs=len(areas))
    assert told["objects"]["share"]["least"] == 10_000  # a hundredth of the image
    html = page(tmp_path / "out")
    assert len(re.findall(r'<rect class="box b\d"[^>]*><title>corner</title>', html)) == 2  # its group and the circle's
    assert 'id="boxes"' in html


def test_masks_and_keypoints_lie_on_the_pictures(tmp_path: Path) -> None:
    outline = [20.0, 10.0, 140.0, 12.0, 90.0, 110.0]
    found = {"category_id": 1, "bbox": [20, 10, 120, 100], "segmentation": [outline], "keypoints": [30, 20, 2]}
    write_files(tmp_path / "in", {"a.png": png(Image.new("RGB", (160, 120)))})
    document = {
        "images": [{"id": 1, "file_name": "a.png", "width": 160, "height": 120}],
        "annotations": [{**found, "image_id": 1}],
        "categories": [{"id": 1, "name": "thing", "keypoints": ["nose"]}],
    }
    (tmp_path / "in" / "instances.json").write_text(json.dumps(document))
    converted(tmp_path / "in" / "instances.json", tmp_path / "out")
    html = page(tmp_path / "out")
    (overlay,) = set(re.findall(r'<image class="drawn" href="data:image/png;base64,([^"]*)"', html))
    drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(overlay))).convert("RGBA"))
    scale = drawn.shape[1] / 160
    assert drawn[round(40 * scale), round(80 * scale), 3] > 0  # inside of the polygon
    assert drawn[round(100 * scale), round(30 * scale), 3] == 0  # outside
    assert "1 mask, keypoints of 1 object" in html
    assert "Annotations</label>" in html


def test_records_from_elsewhere_are_shown_too(tmp_path: Path) -> None:
    def example(number: int) -> bytes:
        data = jpeg(draw_shape("square", number, 60, 40).image)
        features = {
            "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
            "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 2])),
        }
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    for split, count, compression in (("train", 4, ""), ("val", 2, "GZIP")):
        with tf.io.TFRecordWriter(str(tmp_path / f"{split}-00000-of-00001"), compression) as writer:
            for number in range(count):
                writer.write(example(number))
    html = build_report(str(tmp_path), Storage()).decode()
    assert pictures(html) == 6
    assert "no conversion.json" in html
    assert html.count("<figcaption>60×40</figcaption>") == 6


def test_a_conversion_that_was_withheld_has_a_report_in_the_staging_place(tmp_path: Path, capsys: Any) -> None:
    source, output = collection(tmp_path / "in"), tmp_path / "out"
    places = ["--input", str(source), "--output", str(output), "--num_shards", "3"]
    assert main(["convert", *places, "--max_rejects", "0"]) == 3
    staged = output / ".staging" / "report.html"
    assert str(staged) in capsys.readouterr().err
    assert [path.name for path in output.iterdir()] == [".staging"]
    html = staged.read_text("utf-8")
    assert "not published" in html
    assert "--max_rejects 0 allows" in html
    assert re.search(r'<tr data-code="truncated_image">.*cut.jpg', section(html, "rejects"))
    assert 'data-filter="reject-table"' in html
    assert main(["convert", *places, "--max_rejects", "1", "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] == str(output / "report.html")
    assert not staged.exists()
    shown = section(page(output), "pictures")
    assert pictures(shown) == 19
    assert section(html, "pictures") == shown  # drawn from the staged shards
    assert section(html, "images") == section(page(output), "images")


@pytest.mark.parametrize("options", [{"compression": "gzip"}, {"writer": "beam"}], ids=["gzip", "beam"])
def test_staged_shards_are_drawn_whatever_wrote_them(options: dict[str, str], tmp_path: Path) -> None:
    summary = converted(collection(tmp_path / "in"), tmp_path / "out", max_rejects="0", **options)
    assert summary.report == str(tmp_path / "out" / ".staging" / "report.html")
    assert pictures(section(Path(summary.report).read_text("utf-8"), "pictures")) == 19


def test_without_its_staged_shards_the_report_says_that_there_are_no_pictures(tmp_path: Path) -> None:
    converted(collection(tmp_path / "in"), tmp_path / "out", max_rejects="0")
    shutil.rmtree(tmp_path / "out" / ".staging" / "shards")
    html = build_report(str(tmp_path / "out" / ".staging"), Storage()).decode()
    assert pictures(html) == 0
    assert "No pictures are shown" in html
    assert "truncated_image" in html


def test_a_conversion_of_which_nothing_could_be_written_has_a_report(tmp_path: Path, capsys: Any) -> None:
    write_files(tmp_path / "in", {f"{n}.jpg": b"no image" for n in range(3)})
    output = tmp_path / "out"
    assert main(["convert", "--input", str(tmp_path / "in"), "--output", str(output)]) == 1
    staged = output / ".staging" / "report.html"
    assert str(staged) in capsys.readouterr().err
    html = staged.read_text("utf-8")
    assert "no row could be converted" in html
    assert section(html, "rejects").count('<tr data-code="not_an_image">') == 3
    assert [path.name for path in output.iterdir()] == [".staging"]


def test_a_place_outside_of_the_folder_is_never_read(tmp_path: Path) -> None:
    converted(collection(tmp_path / "in"), tmp_path / "out", max_rejects="0", num_shards="1")
    staging = tmp_path / "out" / ".staging"
    told = conversion(staging)
    ((file, path),) = told["staged"].items()
    (staging / path).rename(tmp_path / "elsewhere")
    for place in ("../../elsewhere", str(tmp_path / "elsewhere"), "shards/../../../elsewhere"):
        (staging / "conversion.json").write_text(json.dumps({**told, "staged": {file: place}}))
        assert pictures(build_report(str(staging), Storage()).decode()) == 0


def test_grey_deep_and_transparent_pictures_are_drawn(tmp_path: Path) -> None:
    deep = Image.fromarray((np.arange(600, dtype=np.uint16) * 100).reshape(20, 30))
    files = {
        "grey/a.png": png(draw_shape("circle", 1, 40, 30).image.convert("L")),
        "deep/b.png": png(deep),
        "clear/c.png": png(draw_shape("circle", 2, 40, 30).image.convert("RGBA")),
    }
    write_files(tmp_path / "in", files)
    converted(tmp_path / "in", tmp_path / "out", insight="off")
    html = page(tmp_path / "out")
    assert pictures(html) == 3
    assert "PNG, 1 channel, uint16" in html
