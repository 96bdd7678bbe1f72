"""Choosing rows, labels and objects as a user does it, from the input to the published dataset and its tools."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord import ConfigError, convert
from beam_tfrecord.conversion.job import plan_job, prepare_job
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage
from pipelines.main import main
from tests.end_to_end.datasets import by_name, conversion, converted, findings, records, shard_bytes, texts
from tests.samples import draw_shape, jpeg, noise, png, truncated, turned_jpeg, write_files, write_table
from tests.verifying_tools import is_faultless

Captured = pytest.CaptureFixture[str]
SHAPE = draw_shape("square", 1, 64, 48).image


def run(command: str, *arguments: str | Path) -> int:
    return main([command, *(str(argument) for argument in arguments)])


def table(folder: Path, rows: Sequence[Sequence[Any]], *head: str) -> Path:
    """A manifest of as many pictures as rows; the first cell of each is left out."""
    write_files(folder, {f"{n:03d}.png": png(Image.fromarray(noise(6, 6, n))) for n in range(len(rows))})
    lines = [(f"{n:03d}.png", *row) for n, row in enumerate(rows)]
    return write_table(folder / "data.csv", [("image", *head), *lines])


def excluded(output: Path) -> dict[str, int]:
    told: dict[str, int] = conversion(output)["excluded"]["by_option"]
    return told


# ---------------------------------------------------------------------------------------------------------------------
# Rows


def test_conditions_and_lists_choose_rows_and_every_summary_tells_their_number(
    tmp_path: Path, capsys: Captured
) -> None:
    rows = [(["cat", "dog", ""][n % 3], n / 10, "ab"[n % 2]) for n in range(30)]
    manifest = table(tmp_path / "in", rows, "label", "score", "site")
    (tmp_path / "without.txt").write_text("000.png\n./003.png\n", "utf-8")
    chosen = ["--where", "score < 2", "--where", "label != ", "--exclude", tmp_path / "without.txt"]
    expected = {n for n, (label, score, _) in enumerate(rows) if score < 2 and label and n not in (0, 3)}
    counts = {"exclude": 2, "where": 28 - len(expected)}

    out = tmp_path / "out"
    assert run("convert", "--input", manifest, "--output", out, "--plan", "--json", *chosen) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["rows"], plan["rejected"], plan["excluded"]) == (30, 0, 30 - len(expected))
    assert plan["excluded_by_option"] == counts
    assert plan["splits"]["train"]["records"] == len(expected)
    assert run("convert", "--input", manifest, "--output", out, "--plan", *chosen) == 0
    assert f"excluded {30 - len(expected)} rows: where {counts['where']}, exclude 2" in capsys.readouterr().out

    assert run("convert", "--input", manifest, "--output", out, "--json", *chosen) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["rows"], told["written"], told["rejected"], told["excluded"]) == (
        *(30, len(expected), 0),
        30 - len(expected),
    )
    assert told["excluded_by_option"] == counts
    assert sorted(by_name(out)) == [f"{n:03d}.png" for n in sorted(expected)]
    assert excluded(out) == counts
    assert findings(out) == []
    page = (out / "report.html").read_text("utf-8")
    assert f"exclude 2, where {counts['where']}" in page
    assert is_faultless(out)


def test_rejects_of_one_run_are_what_the_next_one_leaves_out(tmp_path: Path) -> None:
    """Of every stage: a cell that is empty, a label that is unknown, a file that is missing, a picture cut short."""
    manifest = table(tmp_path / "in", [("a",)] * 12, "label")
    lines = manifest.read_text("utf-8").splitlines()
    lines[2], lines[4], lines[6] = "001.png,", ",a", "gone.png,a"
    lines[8] = "007.png,unknown"
    lines.append("003.png,a")  # once more, and the first of them is fine
    manifest.write_text("\n".join(lines) + "\n", "utf-8")
    (tmp_path / "in/005.png").unlink()
    (tmp_path / "in/009.png").write_bytes(truncated((tmp_path / "in/009.png").read_bytes()))
    (tmp_path / "labels.txt").write_text("a\n", "utf-8")
    options: dict[str, Any] = {"labels": str(tmp_path / "labels.txt"), "duplicates": "drop", "max_rejects": "100%"}
    first = converted(manifest, tmp_path / "one", **options)
    rejects = findings(tmp_path / "one")
    assert Counter(one["code"] for one in rejects) == first.rejected
    assert len(first.rejected) >= 5, first.rejected

    options["max_rejects"] = 0
    second = converted(manifest, tmp_path / "two", exclude=str(tmp_path / "one/rejects.jsonl"), strict=True, **options)
    assert second.excluded == {"exclude": len(rejects)}
    assert shard_bytes(tmp_path / "two").keys() == shard_bytes(tmp_path / "one").keys()
    assert records(tmp_path / "two") == records(tmp_path / "one")
    codes = f"{tmp_path / 'one/rejects.jsonl'}:missing_file,bad_row"
    third = converted(manifest, tmp_path / "three", **{**options, "max_rejects": "100%"}, exclude=codes)
    assert third.excluded == {"exclude": 2}
    assert third.rejected == {code: n for code, n in first.rejected.items() if code not in ("missing_file", "bad_row")}


def test_warnings_of_one_code_choose_rows_as_well(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [("a",)] * 6, "label")
    (tmp_path / "in/002.png").write_bytes((tmp_path / "in/002.png").read_bytes() + b"more")
    (tmp_path / "in/004.png").write_bytes((tmp_path / "in/005.png").read_bytes())
    converted(manifest, tmp_path / "one")
    warned = {one["code"]: one["uri"] for one in findings(tmp_path / "one", "warnings")}
    assert set(warned) == {"trailing_data", "duplicate_content"}
    place = tmp_path / "one/warnings.jsonl"
    converted(manifest, tmp_path / "two", exclude=f"{place}:trailing_data", strict=True)
    assert sorted(by_name(tmp_path / "two")) == ["000.png", "001.png", "003.png", "004.png", "005.png"]
    converted(manifest, tmp_path / "three", exclude=str(place), strict=True)
    assert len(by_name(tmp_path / "three")) == 4
    assert not conversion(tmp_path / "three")["warnings"]


def test_a_sequence_goes_with_any_of_its_frames(tmp_path: Path) -> None:
    rows = [(f"clip{n // 4}", n % 4, "ab"[n // 4 % 2]) for n in range(16)]
    manifest = table(tmp_path / "in", rows, "clip", "place", "label")
    (tmp_path / "in/005.png").write_bytes(b"")
    (tmp_path / "without.txt").write_text("clip0\n014.png\n", "utf-8")
    options: dict[str, Any] = {"sequence_column": "clip", "order_column": "place", "max_rejects": "100%"}
    first = converted(manifest, tmp_path / "one", exclude=str(tmp_path / "without.txt"), strict=True, **options)
    assert (first.written, first.excluded, first.rejected) == (1, {"exclude": 2}, {"empty_file": 1})
    second = converted(manifest, tmp_path / "two", exclude=str(tmp_path / "one/rejects.jsonl"), strict=True, **options)
    assert (second.written, second.excluded, second.rejected) == (3, {"exclude": 1}, {})
    assert conversion(tmp_path / "two")["source_rows"] == 16
    kept = converted(manifest, tmp_path / "three", drop_labels="a", where="place < 9", **options)
    assert (kept.written, kept.excluded) == (1, {"drop_labels": 2}) or kept.rejected == {"empty_file": 1}


def test_what_is_asked_of_a_row_must_be_there(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [("a", 1)] * 4, "label", "score")
    with pytest.raises(ConfigError, match=r"--where scor: .*did you mean 'score'"):
        convert(str(manifest), tmp_path / "out", where="scor > 1")
    write_files(tmp_path / "photos", {"a/1.png": png(SHAPE), "b/2.png": png(SHAPE)})
    with pytest.raises(ConfigError, match=r"--where labels: .*has no columns.*did you mean 'label'"):
        convert(str(tmp_path / "photos"), tmp_path / "out", where="labels = a")
    converted(tmp_path / "photos", tmp_path / "out", where="label = a")
    assert list(by_name(tmp_path / "out")) == ["a/1.png"]


def test_a_cell_that_cannot_be_compared_is_a_reject(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [("a", cell) for cell in ("1", "", "n/a", "3")], "label", "score")
    summary = converted(manifest, tmp_path / "out", where="score > 0", max_rejects=1)
    assert (summary.written, summary.rejected, summary.excluded) == (2, {"bad_row": 1}, {"where": 1})
    assert "'n/a' is no number" in findings(tmp_path / "out")[0]["message"]


def test_tables_of_boxes_choose_images_by_cells_that_all_lines_share(tmp_path: Path) -> None:
    write_files(tmp_path, {f"{n}.png": png(SHAPE) for n in range(3)})
    head = ("filename", "class", "xmin", "ymin", "xmax", "ymax", "site")
    lines = [("0.png", "cat", 1, 1, 9, 9, "x"), ("1.png", "cat", 1, 1, 9, 9, "y"), ("0.png", "dog", 2, 2, 9, 9, "x")]
    lines += [("2.png", "dog", 1, 1, 9, 9, "x"), ("2.png", "dog", 3, 3, 9, 9, "y")]
    manifest = write_table(tmp_path / "boxes.csv", [head, *lines])
    summary = converted(manifest, tmp_path / "out", where="site = x", max_rejects=1)
    assert (summary.written, summary.rejected, summary.excluded) == (1, {"bad_row": 1}, {"where": 1})
    assert conversion(tmp_path / "out")["objects"] == {
        **{"found": 3, "stored": 2, "dropped": 0},
        **{name: n for name, n in conversion(tmp_path / "out")["objects"].items() if name == "rejected"},
        "excluded": 1,
    }
    with pytest.raises(ConfigError, match="each line is a box"):
        convert(str(manifest), tmp_path / "other", where="class = cat")


# ---------------------------------------------------------------------------------------------------------------------
# Labels and objects


def coco(folder: Path, count: int = 6) -> Path:
    """Pictures of 64x48; picture n has n objects of the categories in turn, the k-th of 4 + 2k pixels."""
    write_files(folder, {f"{n}.jpg": jpeg(SHAPE, quality=90 - n) for n in range(count)})
    categories = [
        {"id": 9, "name": "ape"},
        {"id": 4, "name": "zebra", "keypoints": ["nose"]},
        {"id": 6, "name": "ant"},
    ]
    annotations = []
    for n in range(count):
        for k in range(n):
            category = categories[k % 3]
            side = 4 + 2 * k
            one = {"id": len(annotations), "image_id": n, "category_id": category["id"], "bbox": [1, 2, side, side]}
            one["segmentation"] = [[1, 2, 1 + side, 2, 1 + side, 2 + side, 1, 2 + side]]
            if category["name"] == "zebra":
                one["keypoints"] = [3, 4, 2]
            annotations.append({**one, "area": side * side, "iscrowd": 0})
    images = [{"id": n, "file_name": f"{n}.jpg", "width": 64, "height": 48} for n in range(count)]
    document = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "coco.json").write_text(json.dumps(document), "utf-8")
    return folder / "coco.json"


def test_objects_are_renamed_merged_and_dropped_with_their_masks_and_keypoints(tmp_path: Path) -> None:
    manifest = coco(tmp_path / "in")
    out = tmp_path / "out"
    summary = converted(manifest, out, map_labels="ape=animal,ant=animal", drop_labels="zebra", min_box="6px")
    told = conversion(out)
    assert told["labels"] == ["animal"]
    assert told["category_ids"] == {"animal": 6}  # of ant, which comes first: COCO goes by category id
    # Picture n has the objects k < n, of 4 + 2k pixels; k = 1 and 4 are zebras, and k = 0 is too small.
    kept = {n: [k for k in range(n) if k not in (0, 1, 4)] for n in range(6)}
    stored = sum(map(len, kept.values()))
    assert told["objects"] == {"found": 15, "stored": stored, "dropped": 0, "excluded": 15 - stored}
    for name, record in by_name(out).items():
        own = kept[int(name[0])]
        assert texts(record, "image/object/class/text") == ["animal"] * len(own)
        widths = [
            b - a for a, b in zip(record["image/object/bbox/xmin"], record["image/object/bbox/xmax"], strict=True)
        ]
        assert [round(width * 64) for width in widths] == [4 + 2 * k for k in own]
        assert len(record["image/object/mask"]) == len(own)
    assert "image/object/keypoint/x" not in by_name(out)["5.jpg"], "no zebra is left"
    assert (summary.written, summary.excluded) == (6, {})
    assert is_faultless(out)

    without = converted(manifest, tmp_path / "two", keep_labels="zebra", drop_unlabelled=True)
    assert (without.written, without.excluded) == (4, {"drop_unlabelled": 2})
    assert conversion(tmp_path / "two")["objects"]["excluded"] == 15 - 4 - 1
    assert is_faultless(tmp_path / "two")


def test_ids_of_categories_stay_what_they_are(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options: dict[str, Any] = {"map_labels": {"ape": "animal", "zebra": "animal"}, "keep_category_ids": True}
    converted(coco(tmp_path / "in"), out, **options)
    assert conversion(out)["labels"] == ["animal", "ant"]
    assert set(by_name(out)["5.jpg"]["image/object/class/label"]) == {4, 6}
    assert is_faultless(out)


def test_one_label_takes_its_row_along_and_lists_only_get_shorter(tmp_path: Path) -> None:
    rows = [("a",), ("b",), ("c",), ("a|b",), ("b|c",), ("c|c2",)]
    manifest = table(tmp_path / "in", rows, "label")
    listed = converted(manifest, tmp_path / "lists", label_separator="|", keep_labels="a,b", map_labels="c=b")
    found = {name: texts(record) for name, record in by_name(tmp_path / "lists").items()}
    expected = {0: ["a"], 1: ["b"], 2: ["b"], 3: ["a", "b"], 4: ["b"], 5: ["b"]}
    assert found == {f"{n:03d}.png": names for n, names in expected.items()}
    assert (listed.excluded, conversion(tmp_path / "lists")["labels"]) == ({}, ["a", "b"])
    shorter = converted(manifest, tmp_path / "shorter", label_separator="|", drop_labels="a")
    assert (shorter.written, shorter.excluded) == (6, {})
    assert texts(by_name(tmp_path / "shorter")["000.png"]) == []
    labelled = converted(manifest, tmp_path / "labelled", label_separator="|", drop_labels="a", drop_unlabelled=True)
    assert (labelled.written, labelled.excluded) == (5, {"drop_unlabelled": 1})
    single = converted(manifest, tmp_path / "single", drop_labels="a,c", map_labels="a|b=,b|c=b", keep_labels="b")
    assert (single.written, single.excluded) == (2, {"keep_labels": 3, "map_labels": 1})
    assert conversion(tmp_path / "single")["labels"] == ["b"]
    for name in ("lists", "shorter", "labelled", "single"):
        assert is_faultless(tmp_path / name)


def test_a_row_whose_label_goes_stays_for_the_sake_of_its_objects(tmp_path: Path) -> None:
    boxes = [{"class": "cat", "bbox": [1, 1, 9, 9]}, {"class": "hen", "bbox": [1, 1, 5, 5]}]
    write_files(tmp_path / "in", {f"{n}.png": png(SHAPE) for n in range(4)})
    rows: list[dict[str, Any]] = [
        {"image": "0.png", "label": "good", "boxes": boxes},
        {"image": "1.png", "label": "bad", "boxes": boxes},
        {"image": "2.png", "label": "bad", "boxes": boxes[1:]},
        {"image": "3.png", "label": "bad"},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "in/data.jsonl").write_text(lines, "utf-8")
    out = tmp_path / "out"
    options: dict[str, Any] = {"format": "extracted", "images": str(tmp_path / "in"), "drop_labels": "bad"}
    summary = converted(tmp_path / "in/data.jsonl", out, min_box="6px", **options)
    assert (summary.written, summary.excluded) == (2, {"drop_labels": 2})
    assert {name: texts(record) for name, record in by_name(out).items()} == {"0.png": ["good"], "1.png": [""]}
    assert conversion(out)["objects"] == {"found": 5, "stored": 2, "dropped": 0, "excluded": 3}
    assert conversion(out)["labels"] == ["cat", "good"]


def test_captions_are_labels_too_and_boxes_without_a_class_are_objects(tmp_path: Path) -> None:
    write_files(tmp_path / "in", {f"{n}.png": png(SHAPE) for n in range(3)})
    document = {
        "images": [{"id": n, "file_name": f"{n}.png", "width": 64, "height": 48} for n in range(3)],
        "annotations": [{"id": n, "image_id": n, "caption": text} for n, text in ((0, "a square"), (2, "another"))],
    }
    (tmp_path / "in/captions.json").write_text(json.dumps(document), "utf-8")
    summary = converted(tmp_path / "in/captions.json", tmp_path / "out", drop_unlabelled=True)
    assert (summary.written, summary.excluded) == (2, {"drop_unlabelled": 1})
    assert sorted(by_name(tmp_path / "out")) == ["0.png", "2.png"]
    head = ("filename", "xmin", "ymin", "xmax", "ymax")
    boxes = write_table(tmp_path / "in/boxes.csv", [head, ("0.png", 1, 1, 9, 9), ("1.png", "", "", "", "")])
    converted(boxes, tmp_path / "boxes", drop_unlabelled=True, map_labels="object=thing")
    (record,) = records(tmp_path / "boxes")
    assert texts(record, "image/object/class/text") == ["thing"]


def test_fractions_are_measured_in_the_picture_that_the_boxes_were_drawn_in(tmp_path: Path) -> None:
    """A YOLO file states no size: 0.1 of 64 pixels is 6.4, of 48 it is 4.8; a turned picture has its sides swapped."""
    upright = turned_jpeg(SHAPE, 6)  # a raster of 48x64
    write_files(
        tmp_path,
        {
            "data.yaml": b"names: [cat]\ntrain: images\n",
            "images/flat.jpg": jpeg(SHAPE),
            "labels/flat.txt": b"0 0.5 0.5 0.1 0.2\n0 0.5 0.5 0.2 0.1\n",
            "images/turned.jpg": upright,
            "labels/turned.txt": b"0 0.5 0.5 0.1 0.2\n0 0.5 0.5 0.2 0.1\n",
            "images/none.jpg": jpeg(SHAPE, quality=70),
            "labels/none.txt": b"",
        },
    )
    for frame, expected in (("upright", [[0.1, 0.2]]), ("stored", [[0.2, 0.1]])):
        out = tmp_path / f"out-{frame}"
        summary = converted(tmp_path / "data.yaml", out, min_box="6px", box_frame=frame, orientation="ignore")
        found = {}
        for name, record in by_name(out).items():
            box = [record[f"image/object/bbox/{side}"] for side in ("xmin", "ymin", "xmax", "ymax")]
            found[name.rpartition("/")[2]] = [
                [round(x1 - x0, 3), round(y1 - y0, 3)] for x0, y0, x1, y1 in zip(*box, strict=True)
            ]
        assert found["flat.jpg"] == [[0.1, 0.2]]
        assert len(found["turned.jpg"]) == 1
        assert found["none.jpg"] == []
        assert conversion(out)["objects"] == {"found": 4, "stored": 2, "dropped": 0, "excluded": 2}
        assert summary.written == 3
        if frame == "stored":
            assert found["turned.jpg"] == expected


def test_segments_that_are_dropped_become_void(tmp_path: Path) -> None:
    colours = Image.new("RGB", (40, 30), (1, 0, 0))
    colours.paste((2, 0, 0), (0, 0, 10, 30))
    write_files(tmp_path, {"images/a.jpg": jpeg(SHAPE.resize((40, 30))), "panoptic/a.png": png(colours)})
    document = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 40, "height": 30}],
        "annotations": [
            {
                "image_id": 1,
                "file_name": "a.png",
                "segments_info": [{"id": 1, "category_id": 7}, {"id": 2, "category_id": 8}],
            }
        ],
        "categories": [{"id": 7, "name": "sky"}, {"id": 8, "name": "sea"}],
    }
    (tmp_path / "panoptic.json").write_text(json.dumps(document), "utf-8")
    converted(
        tmp_path / "panoptic.json", tmp_path / "out", images=str(tmp_path / "images"), map_labels="sky=,sea=water"
    )
    (record,) = records(tmp_path / "out")
    assert texts(record, "image/panoptic/segment/class/text") == ["water"]
    assert record["image/panoptic/segment/area"] == [300]
    assert conversion(tmp_path / "out")["labels"] == ["water"]
    assert is_faultless(tmp_path / "out")


def test_a_given_vocabulary_stays_and_chosen_away_labels_are_no_rejects(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [(name,) for name in "abcd"], "label")
    (tmp_path / "labels.txt").write_text("z\nb\nx\n", "utf-8")
    labels = str(tmp_path / "labels.txt")
    summary = converted(manifest, tmp_path / "out", labels=labels, map_labels="a=x", drop_labels="c,d")
    assert (summary.written, summary.rejected, summary.excluded) == (2, {}, {"drop_labels": 2})
    assert conversion(tmp_path / "out")["labels"] == ["z", "b", "x"]
    assert by_name(tmp_path / "out")["000.png"]["image/class/label"] == [2]


# ---------------------------------------------------------------------------------------------------------------------
# Samples


def test_a_sample_is_the_same_however_it_is_made_and_part_of_every_larger_one(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [("abc"[n % 3],) for n in range(60)], "label")
    names: dict[int, set[str]] = {}
    for limit in (7, 20, 41):
        converted(manifest, tmp_path / str(limit), limit=limit, splits="train=3,test=1")
        names[limit] = set(by_name(tmp_path / str(limit)))
        assert len(names[limit]) == limit
        assert excluded(tmp_path / str(limit)) == {"limit": 60 - limit}
        assert conversion(tmp_path / str(limit))["labels"] == ["a", "b", "c"]
        assert is_faultless(tmp_path / str(limit))
    assert names[7] < names[20] < names[41]
    whole = tmp_path / "whole"
    converted(manifest, whole, splits="train=3,test=1")
    of_split = {split: set(map(str, _names(whole, split))) for split in ("train", "test")}
    assert set(map(str, _names(tmp_path / "41", "test"))) <= of_split["test"]
    flags: dict[str, Any] = {"limit": "34%", "splits": "train=3,test=1"}
    converted(manifest, tmp_path / "one", **flags)
    threads = ["--direct_running_mode=multi_threading", "--direct_num_workers=2"]
    converted(manifest, tmp_path / "two", pipeline_options=threads, **flags)
    converted(manifest, tmp_path / "beam", writer="beam", **flags)
    assert shard_bytes(tmp_path / "one") == shard_bytes(tmp_path / "two")
    assert set(by_name(tmp_path / "beam")) == set(by_name(tmp_path / "one")) == names[20]
    lines = manifest.read_text("utf-8").splitlines()
    manifest.write_text("\n".join([lines[0], *reversed(lines[1:])]), "utf-8")
    converted(manifest, tmp_path / "turned", **flags)
    assert shard_bytes(tmp_path / "turned") == shard_bytes(tmp_path / "one")


def _names(folder: Path, split: str) -> list[str]:
    return [texts(record, "image/filename")[0] for record in records(folder, split)]


def test_a_sample_comes_last_and_of_each_class_its_share(tmp_path: Path) -> None:
    rows = [("abcd"[min(3, n // 10) if n < 38 else 3], "s" if n % 2 else "t") for n in range(70)]
    counts = Counter(label for label, _ in rows)
    manifest = table(tmp_path / "in", [*rows, ("e", "t")], "label", "site")
    out = tmp_path / "out"
    summary = converted(manifest, out, limit=20, stratify=True, drop_labels="d")
    assert (summary.written, summary.excluded) == (20, {"drop_labels": counts["d"], "limit": 11})
    found = Counter(texts(record)[0] for record in records(out))
    assert found["e"] == 1
    assert {found[name] for name in "abc"} <= {6, 7}
    both = converted(manifest, tmp_path / "both", limit=20, stratify=True, splits="train=1,test=1", drop_labels="d")
    assert sum(both.splits.values()) == 20
    assert abs(both.splits["train"] - 10) <= 2
    assert Counter(texts(record)[0] for record in records(tmp_path / "both")) == found
    own = converted(manifest, tmp_path / "own", limit=10, stratify=True, split_column="site")
    assert sum(own.splits.values()) == 10
    groups = converted(manifest, tmp_path / "groups", limit=10, group_column="site", splits="train=1,test=1")
    assert sum(groups.splits.values()) == 10


@pytest.mark.parametrize("duplicates", ["keep", "drop"])
def test_copies_of_an_id_count_like_all_rows(tmp_path: Path, duplicates: str) -> None:
    table(tmp_path, [("a",)] * 3, "label")
    rows = [(f"{n % 3:03d}.png", "ab"[n // 3 % 2]) for n in range(18)]
    manifest = write_table(tmp_path / "copies.csv", [("image", "label"), *rows])
    for limit in range(1, 18):
        options: dict[str, Any] = {"limit": limit, "duplicates": duplicates, "max_rejects": "100%"}
        config = ConvertConfig.from_options({"input": str(manifest), "output": str(tmp_path / "out"), **options})
        plan = plan_job(prepare_job(config, Storage()), Storage())
        assert (plan.rows_left, plan.excluded) == (limit, {"limit": 18 - limit})
        if limit in (1, 6, 7, 17):
            summary = converted(manifest, tmp_path / f"{duplicates}{limit}", **options)
            assert summary.written + sum(summary.rejected.values()) == limit
            assert summary.excluded == {"limit": 18 - limit}
            if duplicates == "drop":
                assert summary.written == len(by_name(tmp_path / f"drop{limit}")) == -(-limit // 6)


def test_rows_that_cannot_become_records_have_their_share_of_a_sample_and_no_more(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [("a" if n % 4 else "",) for n in range(80)], "label")
    summary = converted(manifest, tmp_path / "out", limit=40, max_rejects="30%")
    assert (summary.written, sum(summary.rejected.values())) == (30, 10)
    single = table(tmp_path / "single", [("a" if n else "",) for n in range(80)], "label")
    summary = converted(single, tmp_path / "two", limit=5, max_rejects=0)
    assert (summary.written, summary.rejected) == (5, {})


def test_an_interrupted_sample_goes_on_where_it_was(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [("a",)] * 30, "label")
    names = {f"{n:03d}.png" for n in range(30)}
    for name in sorted(names)[:8]:
        (tmp_path / "in" / name).write_bytes(b"no picture")
    options: dict[str, Any] = {"limit": 20, "num_shards": 3}
    held = converted(manifest, tmp_path / "out", max_rejects=0, **options)
    assert held.status == "withheld"
    went = converted(manifest, tmp_path / "out", resume=True, max_rejects="100%", **options)
    fresh = converted(manifest, tmp_path / "fresh", max_rejects="100%", **options)
    assert (went.rows, went.written, went.excluded) == (30, fresh.written, {"limit": 10})
    assert shard_bytes(tmp_path / "out") == shard_bytes(tmp_path / "fresh")
    (tmp_path / "without.txt").write_text("010.png\n", "utf-8")
    options["exclude"] = str(tmp_path / "without.txt")
    assert converted(manifest, tmp_path / "second", max_rejects=0, **options).status == "withheld"
    (tmp_path / "without.txt").write_text("011.png\n012.png\n", "utf-8")
    went = converted(manifest, tmp_path / "second", resume=True, max_rejects="100%", **options)
    converted(manifest, tmp_path / "again", max_rejects="100%", **options)
    assert went.excluded == {"exclude": 2, "limit": 8}
    assert shard_bytes(tmp_path / "second") == shard_bytes(tmp_path / "again")


def test_the_share_of_rejects_is_one_of_the_rows_that_were_taken(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [("a" if n < 90 else "b",) for n in range(100)], "label")
    for n in range(90, 95):
        (tmp_path / f"in/{n:03d}.png").write_bytes(b"")
    assert converted(manifest, tmp_path / "all").status == "published"
    assert converted(manifest, tmp_path / "some", keep_labels="b").status == "withheld"


# ---------------------------------------------------------------------------------------------------------------------
# What matches nothing


def test_what_matches_nothing_is_told_with_the_nearest_name_and_refused_when_strict(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [(name,) for name in ("apple", "pear", "plum", "fig")], "label")
    (tmp_path / "without.txt").write_text("001.png\n003.pngg\n", "utf-8")
    options: dict[str, Any] = {
        "exclude": str(tmp_path / "without.txt"),
        "map_labels": "plumm=plum,fig=figs",
        "keep_labels": "aple,apple,fig",
    }
    summary = converted(manifest, tmp_path / "out", **options)
    messages = [one["message"] for one in findings(tmp_path / "out", "warnings")]
    assert [one["code"] for one in findings(tmp_path / "out", "warnings")] == ["choice_unmatched"] * 4
    assert sorted(messages) == [
        "no record has the label 'aple' (did you mean 'apple'?)",
        "no record has the label 'fig' any more: --map_labels comes first",
        "no record has the label 'plumm' (did you mean 'plum'?)",
        "no row is called '003.pngg' (did you mean '003.png'?)",
    ]
    assert len(summary.surprises) == 4
    assert conversion(tmp_path / "out")["excluded"]["unmatched"] == list(summary.surprises)
    with pytest.raises(ConfigError, match=r"--strict refuses[\s\S]*did you mean 'plum'"):
        convert(str(manifest), tmp_path / "strict", strict=True, **options)
    assert not (tmp_path / "strict/conversion.json").exists()


def test_a_choice_that_leaves_nothing_is_refused_and_says_what_there_was(tmp_path: Path, capsys: Captured) -> None:
    manifest = table(tmp_path / "in", [("apple",), ("pear",)], "label")
    for further in (["--plan"], []):
        assert (
            run("convert", "--input", manifest, "--output", tmp_path / "out", "--keep_labels", "Apple", *further) == 2
        )
        told = capsys.readouterr().err
        assert "nothing is left to convert: all of 2 rows were chosen away (--keep_labels 2)" in told
        assert "did you mean 'apple'?" in told
        assert "'apple', 'pear'" in told
    assert not (tmp_path / "out/conversion.json").exists()


# ---------------------------------------------------------------------------------------------------------------------
# Tools on the dataset


def test_counts_go_along_when_datasets_are_merged_and_resharded(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [("abc"[n % 3],) for n in range(30)], "label")
    converted(manifest, tmp_path / "one", drop_labels="c,d", limit=15)
    converted(manifest, tmp_path / "two", keep_labels="a,b", where="label = a", name="two")
    assert run("reshard", tmp_path / "one", "--output", tmp_path / "other", "--num_shards", "2", "--quiet") == 0
    assert excluded(tmp_path / "other") == {"drop_labels": 10, "limit": 5}
    assert conversion(tmp_path / "other")["excluded"]["unmatched"] == ["--drop_labels: no record has the label 'd'"]
    assert is_faultless(tmp_path / "other")


def test_a_dataset_from_before_there_was_a_count_is_read_as_ever(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [("ab"[n % 2],) for n in range(8)], "label")
    converted(manifest, tmp_path / "out")
    told = conversion(tmp_path / "out")
    del told["excluded"]
    (tmp_path / "out/conversion.json").write_text(json.dumps(told), "utf-8")
    assert is_faultless(tmp_path / "out")
    assert run("report", tmp_path / "out") == 0
    assert run("reshard", tmp_path / "out", "--output", tmp_path / "other", "--quiet") == 0
    assert excluded(tmp_path / "other") == {}


def test_a_count_that_does_not_add_up_is_a_fault(tmp_path: Path, capsys: Captured) -> None:
    manifest = table(tmp_path / "in", [("ab"[n % 2],) for n in range(8)], "label")
    converted(manifest, tmp_path / "out", keep_labels="a")
    told = conversion(tmp_path / "out")
    told["excluded"] = {"total": 3, "by_option": {"keep_labels": 4}, "unmatched": []}
    (tmp_path / "out/conversion.json").write_text(json.dumps(told), "utf-8")
    assert run("verify", tmp_path / "out", "--decoder", "pillow") == 1
    captured = capsys.readouterr()
    assert "excluded.total is 3, but by_option adds up to 4" in captured.out + captured.err
    assert "written, rejected and excluded add up to 7" in captured.out + captured.err


def test_records_and_extracted_folders_are_chosen_from_as_well(tmp_path: Path) -> None:
    manifest = table(tmp_path / "in", [("abc"[n % 3], n) for n in range(12)], "label", "score")
    converted(manifest, tmp_path / "one", columns="score:int64")
    options: dict[str, Any] = {"where": "score >= 3", "map_labels": "a=x", "drop_labels": "b", "limit": 3}
    write_files(tmp_path / "elsewhere", shard_bytes(tmp_path / "one"))
    assert run("extract", tmp_path / "one", "--output", tmp_path / "files", "--quiet") == 0
    for source in ("elsewhere", "files"):
        out = tmp_path / f"from {source}"
        converted(tmp_path / source, out, **options)
        assert excluded(out) == {"where": 3, "drop_labels": 3, "limit": 3}
        assert {texts(record)[0] for record in records(out)} <= {"c", "x"}
        assert set(conversion(out)["labels"]) - {"a", "b"} == {"c", "x"}
        assert is_faultless(out)
    with pytest.raises(ConfigError, match="no row has a value in 'scores'"):
        convert(str(tmp_path / "elsewhere"), tmp_path / "none", where="scores > 1")
