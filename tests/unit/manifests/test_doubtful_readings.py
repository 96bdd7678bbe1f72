"""What an input says may be read in two ways: one is taken for the whole source, and the other is told with a count."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord import prepare
from beam_tfrecord.conversion.planning.block_reading import read_entries
from beam_tfrecord.core.elements import Entry
from beam_tfrecord.storage import Storage
from beam_tfrecord.transforms.reading import split_sources
from tests.end_to_end.datasets import conversion, converted
from tests.label_files import box, coco, data_yaml, names_txt, picture, voc_xml, yolo_txt
from tests.layouts import NAMES, Seen, files_of, seen
from tests.samples import write_files


def looked_at(folder: Path, files: Mapping[str, bytes | str], place: str = "", **options: Any) -> Seen:
    write_files(folder, {name: data.encode() if isinstance(data, str) else data for name, data in files.items()})
    found = seen([str(folder / place) if place else str(folder)], **options)
    assert not found.error, found.error
    return found


def messages(found: Seen, code: str) -> list[str]:
    return [told["message"] for one in found.inputs for told in one["surprises"] if told["code"] == code]


def pictures(*paths: str) -> dict[str, bytes]:
    return {path: picture(number) for number, path in enumerate(paths, start=1)}


def test_a_label_file_that_names_another_image_than_its_own_is_told(tmp_path: Path) -> None:
    names = {"a": "b", "b": "a", "c": "c"}
    xml = {f"{own}.xml": voc_xml(f"{stated}.jpg", 1, "fox") for own, stated in names.items()}
    found = looked_at(tmp_path, {**pictures("a.jpg", "b.jpg", "c.jpg"), **xml})
    assert set(found.pictures) == {str(tmp_path / f"{name}.jpg") for name in names}
    (message,) = messages(found, "doubtful_reading")
    assert message.startswith("2 label files that name another image")


def test_a_label_file_that_names_an_image_which_is_not_there_belongs_to_its_own(tmp_path: Path) -> None:
    found = looked_at(tmp_path, {**pictures("a.jpg"), "a.xml": voc_xml("IMG_0001.jpg", 1, "fox")})
    assert found.warnings == ()
    assert found.inputs[0]["used"]["images that label files call otherwise than themselves"] == {
        "the image that is called like the label file": 1
    }


@pytest.mark.parametrize(("scale", "told"), [(1.0, 0), (0.01, 1)])
def test_boxes_of_coco_that_are_fractions_are_told(tmp_path: Path, scale: float, told: int) -> None:
    document = json.loads(coco({"a.jpg": (1, ["fox"]), "b.jpg": (2, ["hen", "owl"])}, NAMES))
    for annotation in document["annotations"]:
        annotation["bbox"] = [side * scale for side in annotation["bbox"]]
    found = looked_at(tmp_path, {**pictures("a.jpg", "b.jpg"), "c.json": json.dumps(document)}, "c.json")
    assert len(messages(found, "doubtful_reading")) == told


def test_a_yolo_folder_in_which_most_images_have_no_label_file_is_told_with_the_other_way(tmp_path: Path) -> None:
    files = {**pictures(*(f"{name}/{number}.jpg" for name in ("fox", "hen") for number in range(3)))}
    files |= {"fox/0.txt": yolo_txt(1, NAMES, "fox"), "classes.txt": names_txt(NAMES)}
    found = looked_at(tmp_path, files)
    (message,) = messages(found, "no_label_files")
    assert message.startswith("5 of 6 images have no label file")
    assert "--format folder" in message


def test_a_yolo_dataset_with_some_images_without_objects_is_nothing_to_tell(tmp_path: Path) -> None:
    files = {f"images/{number}.jpg": picture(number) for number in range(4)}
    files |= {f"labels/{number}.txt": yolo_txt(number, NAMES, "fox") for number in range(2)}
    assert looked_at(tmp_path, {**files, "data.yaml": data_yaml(NAMES, train="images")}).warnings == ()


def test_documents_of_another_format_among_label_files_are_told(tmp_path: Path) -> None:
    left, top, right, bottom = box(1)
    shape = {"label": "fox", "points": [[left, top], [right, bottom]], "shape_type": "rectangle"}
    labelme = {
        "version": "5.0.1",
        "shapes": [shape],
        "imagePath": "a.jpg",
        "imageData": None,
        "imageHeight": 48,
        "imageWidth": 64,
    }
    files = {**pictures("a.jpg"), "a.json": json.dumps(labelme), "other.json": coco({"a.jpg": (1, ["hen"])}, NAMES)}
    (message,) = messages(looked_at(tmp_path, files, format="labelme"), "labels_not_read")
    assert "other.json" in message


@pytest.mark.parametrize(
    ("header", "count"), [("image,fox,hen", 1), ("image,label,note", 0), ("image,bbox_note", 1), ("image", 0)]
)
def test_a_table_of_which_nothing_but_the_images_is_read_is_told(tmp_path: Path, header: str, count: int) -> None:
    row = ",".join(["a.jpg", *["1"] * header.count(",")])
    found = looked_at(tmp_path, {**pictures("a.jpg"), "t.csv": f"{header}\n{row}\n"}, "t.csv")
    assert len(messages(found, "columns_not_read")) == count


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("image,class,class_name", "column 'class', and 'class_name' is called"),
        ("image,class,label,category", "column 'label', and 'class', 'category' are called"),
        ("image,label,label_id", ""),
        ("image,label,note", ""),
        ("image,xmin,ymin,xmax,ymax,class,label_name", "column 'class', and 'label_name' is called"),
    ],
)
def test_several_columns_that_are_called_like_labels_are_told(tmp_path: Path, header: str, told: str) -> None:
    row = ",".join(["a.jpg", "1", "2", "3", "4", "fox", "hen"] if "xmin" in header else ["a.jpg", "1", "fox", "hen"])
    row = ",".join(row.split(",")[: header.count(",") + 1])
    files = {**pictures("a.jpg"), "t.csv": f"{header}\n{row}\n"}
    found = looked_at(tmp_path, files, "t.csv")
    assert told in "".join(messages(found, "doubtful_reading"))
    assert len(messages(found, "doubtful_reading")) == bool(told)
    assert (
        messages(looked_at(tmp_path, files, "t.csv", label_column=header.rpartition(",")[2]), "doubtful_reading") == []
    )


@pytest.mark.parametrize("column", ["EncodedPixels", "PredictionString", "BoxesString"])
def test_columns_of_masks_and_boxes_as_kaggle_has_them_are_told(tmp_path: Path, column: str) -> None:
    found = looked_at(tmp_path, {**pictures("a.jpg"), "t.csv": f"image,label,{column}\na.jpg,fox,5 6\n"}, "t.csv")
    (message,) = messages(found, "columns_not_read")
    assert column in message


def test_a_header_that_comes_again_is_no_row(tmp_path: Path) -> None:
    table = "image,label\na.jpg,fox\nimage,label\nb.jpg,hen\n"
    found = looked_at(tmp_path, {**pictures("a.jpg", "b.jpg"), "t.csv": table}, "t.csv")
    assert found.rejects == ((f"{tmp_path}/t.csv:3", "bad_row"),)
    assert found.labels == ("fox", "hen")


def test_a_table_whose_labels_are_in_the_paths_is_nothing_to_tell(tmp_path: Path) -> None:
    files = {**pictures("a.jpg"), "t.csv": "image,note\na.jpg,x\n"}
    assert looked_at(tmp_path, files, "t.csv", label_pattern="(?P<label>a)").warnings == ()


@pytest.mark.parametrize("column", ["x_pct", "w_percent", "xmin_norm", "height_px"])
def test_columns_of_sides_in_other_units_look_like_boxes(tmp_path: Path, column: str) -> None:
    found = looked_at(tmp_path, {**pictures("a.jpg"), "t.csv": f"image,label,{column}\na.jpg,fox,5\n"}, "t.csv")
    assert found.inputs[0]["named"]["columns"] == {"looks like boxes": {"count": 1, "example": column}}


def test_names_without_the_ending_of_their_image_are_found(tmp_path: Path) -> None:
    files = {**pictures("a.jpg", "b.PNG", "c.jpg", "c.png"), "t.csv": "image,label\na,fox\nb,hen\nc,owl\n"}
    found = looked_at(tmp_path, files, "t.csv")
    used, named = files_of(found.inputs[0])
    assert (used, named) == ({"image": 4, "manifest": 1}, {})


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (("Fox", "fox", "FOX"), "'FOX' (1), 'Fox' (1), 'fox' (1)"),
        (("f\u00fcchs", "fu\u0308chs", "hen"), r"'f\xfcchs' (1)"),
        (("fox", "hen", "NaN"), "called 'NaN'"),
        (("a", "A", "none"), ""),
        (("1", "1.0", "2.0"), "'1' (1), '1.0' (1)"),
        (("7", "007", "0.7"), "'007' (1), '7' (1)"),
        (("10", "100", "0"), ""),
        (("fox;hen", "hen", "owl"), "'fox;hen'"),
        (("['fox']", "['hen']", "['owl']"), "3 labels seem to be several"),
        (("salt, pepper", "fox", "red hen"), ""),
        (('"salt, pepper"', "pepper", "red hen"), ""),
        (('"fox, hen"', "fox", "hen"), "'fox, hen'"),
        (('"fox,hen"', '"hen,owl"', '"owl,fox"'), "3 labels seem to be several"),
    ],
)
def test_labels_that_are_hardly_classes_of_their_own_are_told(
    tmp_path: Path, labels: tuple[str, ...], told: str
) -> None:
    rows = "".join(f"{name}.jpg,{label}\n" for name, label in zip("abc", labels, strict=True))
    found = looked_at(tmp_path, {**pictures("a.jpg", "b.jpg", "c.jpg"), "t.csv": f"image,label\n{rows}"}, "t.csv")
    doubts = messages(found, "doubtful_reading")
    assert len(doubts) == bool(told)
    assert told in "".join(doubts)


def test_images_of_two_splits_and_with_one_label_file_are_counted_once(tmp_path: Path) -> None:
    files = {**pictures("images/a.jpg", "images/a.png", "images/b.jpg")}
    files |= {f"labels/{name}.txt": yolo_txt(1, NAMES, "fox") for name in "ab"}
    found = looked_at(tmp_path, {**files, "data.yaml": data_yaml(NAMES, train="images", val="images")})
    assert len(found.repeated) == 3
    assert found.inputs[0]["used"]["label files"] == {"read": 2}
    assert found.inputs[0]["used"]["images"] == {"with a label file": 3}


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("other.yaml", data_yaml(NAMES[::-1], train="images"), 1),
        ("classes.txt", names_txt(NAMES[:2]), 1),
        ("classes.txt", names_txt(NAMES), 0),
        ("args.yaml", b"epochs: 3\nlr: 0.1\n", 0),
    ],
)
def test_files_that_name_other_classes_than_the_one_that_counts_are_told(
    tmp_path: Path, name: str, content: bytes, told: int
) -> None:
    files = {**pictures("images/a.jpg"), "labels/a.txt": yolo_txt(1, NAMES, "fox"), name: content}
    found = looked_at(tmp_path, {**files, "data.yaml": data_yaml(NAMES, train="images")})
    assert [objects[0] for picture in found.pictures.values() for objects in picture.objects or ()] == ["fox"]
    doubts = messages(found, "doubtful_reading")
    assert len(doubts) == told
    assert all(name in doubt and "data.yaml" in doubt for doubt in doubts)


def test_two_data_files_of_darknet_are_refused(tmp_path: Path) -> None:
    files = {**pictures("a.jpg"), "a.txt": yolo_txt(1, NAMES, "fox"), "obj.names": names_txt(NAMES)}
    write_files(tmp_path, {**files, "obj.data": b"names = obj.names\n", "old.data": b"names = obj.names\n"})
    found = seen([str(tmp_path)], format="yolo")
    assert "several .data files" in found.error
    assert "--input" in found.error


def test_a_line_of_json_with_a_key_twice_says_so(tmp_path: Path) -> None:
    write_files(tmp_path, {**pictures("a.jpg"), "m.jsonl": b'{"image": "a.jpg", "label": "fox", "label": "hen"}\n'})
    assert "twice" in seen([str(tmp_path / "m.jsonl")]).error


VOC_LISTS = [
    ({"train": "abc", "val": "d"}, {"a": "train", "d": "val"}, ""),
    ({"training": "abc", "Validation": "d"}, {"a": "training", "d": "validation"}, ""),
    ({"fox_train": "abc", "fox_val": "d", "hen_train": "abc"}, {"a": "train", "d": "val"}, ""),
    ({"trainval": "abcd", "test": ""}, {"a": "trainval", "d": "trainval"}, ""),
    ({"default": "abcd"}, {"a": "train", "d": "train"}, ""),
    (
        {"train": "abc", "val": "cd"},
        {"c": "train", "d": "val"},
        "1 images are in the lists of several splits (such as c",
    ),
    ({"train": "ab"}, {"a": "train", "d": "train"}, "2 of 4 annotation files (such as c.xml) are in none of the lists"),
    ({"fold1": "ab", "fold2": "cd"}, {"a": "train"}, "none of the lists in"),
]


@pytest.mark.parametrize(("lists", "splits", "told"), VOC_LISTS)
def test_lists_of_splits_of_voc(tmp_path: Path, lists: Mapping[str, str], splits: Mapping[str, str], told: str) -> None:
    files: dict[str, bytes | str] = {f"JPEGImages/{name}.jpg": picture(n) for n, name in enumerate("abcd", start=1)}
    files.update({f"Annotations/{name}.xml": voc_xml(f"{name}.jpg", 1, "fox") for name in "abcd"})
    for name, stems in lists.items():
        flag = " -1" if "_" in name else ""
        files[f"ImageSets/Main/{name}.txt"] = "".join(f"{stem}{flag}\n" for stem in stems)
    found = looked_at(tmp_path, files)
    for name, split in splits.items():
        assert found.pictures[str(tmp_path / f"JPEGImages/{name}.jpg")].split == split
    assert len(messages(found, "doubtful_reading")) == bool(told)
    assert told in "".join(messages(found, "doubtful_reading"))


def test_lists_of_splits_beside_a_voc_folder_are_told(tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {f"JPEGImages/{name}.jpg": picture(n) for n, name in enumerate("ab", start=1)}
    files.update({f"Annotations/{name}.xml": voc_xml(f"{name}.jpg", 1, "fox") for name in "ab"})
    files |= {"train.txt": "JPEGImages/a.jpg Annotations/a.xml\n", "valid.txt": "JPEGImages/b.jpg Annotations/b.xml\n"}
    (message,) = messages(looked_at(tmp_path, files), "labels_not_read")
    assert message.startswith("2 files called like splits: not read (such as train.txt)")


def test_a_label_file_whose_name_differs_in_case_from_that_of_its_image_is_told(tmp_path: Path) -> None:
    names = {"images/a.jpg": picture(1), "images/b.jpg": picture(2), "images/c.jpg": picture(3)}
    labels = {f"labels/{name}.txt": yolo_txt(1, NAMES, NAMES[0]) for name in ("a", "B", "c")}
    found = looked_at(tmp_path, {**names, **labels, "classes.txt": names_txt(NAMES)})
    (message,) = messages(found, "label_files_unused")
    assert "labels/B.txt" in message


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("place", ["", "all.json"])
def test_a_document_in_another_unicode_encoding_is_read(tmp_path: Path, encoding: str, place: str) -> None:
    document = coco({"a.jpg": (1, [NAMES[0]]), "b.jpg": (2, [NAMES[1]])}, NAMES).decode().replace("fox", "f\u00fcchs")
    found = looked_at(tmp_path, {**pictures("a.jpg", "b.jpg"), "all.json": document.encode(encoding)}, place)
    assert found.inputs[0]["format"] == "coco"
    assert [len(one.objects or ()) for one in found.pictures.values()] == [1, 1]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"images": [{"id": 1},], "annotations": []}', "near line 1"),
        ('{"images": [], "annotations": [{"caption": "f\u00fcchs"}], "categories": []}'.encode("cp1252"), "byte 0xfc"),
        (b'{"photos": [],\n"marks": []}', "its members are 'photos', 'marks'"),
        (b'[{"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 0.5}]', "results of a detector"),
    ],
)
def test_json_that_is_not_read_says_why(tmp_path: Path, content: bytes, told: str) -> None:
    write_files(tmp_path, {"a.jpg": picture(1), "all.json": content})
    assert told in seen([str(tmp_path / "all.json")]).error


def test_annotations_that_are_marked_with_ignore_are_no_objects_and_told(tmp_path: Path) -> None:
    document = json.loads(coco({"a.jpg": (1, [NAMES[0], NAMES[1]]), "b.jpg": (2, [NAMES[0]])}, NAMES))
    for annotation, mark in zip(document["annotations"], (1, 0, False), strict=True):
        annotation["ignore"] = mark
    found = looked_at(tmp_path, {**pictures("a.jpg", "b.jpg"), "all.json": json.dumps(document)}, "all.json")
    assert [len(one.objects or ()) for one in found.pictures.values()] == [1, 1]
    assert found.inputs[0]["named"]["annotations"] == {"marked with ignore": {"count": 1, "example": "images[0]"}}
    assert "ignore" not in found.inputs[0]["named"].get("keys", {})


@pytest.mark.parametrize(
    ("name", "marks", "told"),
    [
        ("t.csv", ("1,0,0", "0,1,0", "0,0,1"), 0),
        ("t.csv", ("1,0,1", "0,1,0", "0,0,1"), 1),
        ("t.csv", ("1,0,0", "0,0,0", "0,0,1"), 1),
        ("_classes.csv", ("1,0,1", "0,1,0", "0,0,0"), 0),
    ],
)
def test_columns_of_0_and_1_that_may_be_attributes_are_told_and_one_hot_ones_are_not(
    tmp_path: Path, name: str, marks: tuple[str, ...], told: int
) -> None:
    lines = ["filename,night,rain,snow", *(f"{place}.jpg,{own}" for place, own in enumerate(marks))]
    found = looked_at(tmp_path, {**pictures("0.jpg", "1.jpg", "2.jpg"), name: "\n".join(lines)}, name)
    assert len(messages(found, "doubtful_reading")) == told


@pytest.mark.parametrize(("stated", "is_right"), [("2", False), ("3", True)])
def test_the_number_of_classes_that_darknet_states_must_be_that_of_the_names(
    tmp_path: Path, stated: str, is_right: bool
) -> None:
    files = {"obj.names": "fox\nhen\nowl\n", "obj.data": f"classes = {stated}\nnames = obj.names\n"}
    files |= {"a.txt": "0 0.5 0.5 0.2 0.2\n"}
    write_files(tmp_path, {**pictures("a.jpg"), **{name: text.encode() for name, text in files.items()}})
    found = seen([str(tmp_path)])
    assert ("classes is 2, but there are 3 names" in found.error) is not is_right


@pytest.mark.parametrize(("other", "told"), [("[nose, tail]", 0), ("[beak, claw]", 1)])
def test_names_of_keypoints_that_differ_by_class_are_none_which_is_told(tmp_path: Path, other: str, told: int) -> None:
    text = f"names: [fox, hen]\ntrain: images\nkpt_shape: [2, 3]\nkpt_names:\n  0: [nose, tail]\n  1: {other}\n"
    files = {"images/a.jpg": picture(1), "data.yaml": text, "labels/a.txt": "0 0.5 0.5 0.4 0.4 0.5 0.5 2 0.4 0.4 2\n"}
    found = looked_at(tmp_path, files)
    assert len(messages(found, "doubtful_reading")) == told


@pytest.mark.parametrize(
    ("folders", "options", "told"),
    [
        (("train", "val"), {}, 1),
        (("train", "val"), {"splits": "train=0.5,test=0.5"}, 0),
        (("a", "b"), {}, 0),
        (("train", "train"), {}, 0),
    ],
)
def test_a_manifest_of_images_in_folders_called_like_splits_that_tells_none(
    tmp_path: Path, folders: tuple[str, str], options: Mapping[str, Any], told: int
) -> None:
    paths = [f"{folder}/{name}.jpg" for folder, name in zip(folders, "xy", strict=True)]
    for name, head in (("metadata.csv", "file_name,label"), ("split.csv", "file_name,label,split")):
        rows = "".join(f"{path},fox{',test' if 'split,' in head + ',' else ''}\n" for path in paths)
        write_files(tmp_path, {f"{name[:-4]}/{path}": picture(n) for n, path in enumerate(paths, start=1)})
        write_files(tmp_path, {f"{name[:-4]}/{name}": f"{head}\n{rows}".encode()})
    found = seen([str(tmp_path / "metadata" / "metadata.csv")], **options)
    assert ["called like splits" in message for message in messages(found, "doubtful_reading")] == [True] * told
    assert messages(seen([str(tmp_path / "split" / "split.csv")], **options), "doubtful_reading") == []


def test_labels_that_are_measured_are_told(tmp_path: Path) -> None:
    rows = "".join(f"{name}.jpg,{value}\n" for name, value in zip("abc", ("0.25", "1.75", "2"), strict=True))
    found = looked_at(tmp_path, {**pictures("a.jpg", "b.jpg", "c.jpg"), "t.csv": f"image,label\n{rows}"}, "t.csv")
    (message,) = messages(found, "doubtful_reading")
    assert message.startswith("2 of 3 labels are numbers with a fraction, such as '0.25'")


def test_a_table_of_splits_that_was_left_out_is_told(tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {**pictures("images/a.jpg", "images/b.jpg")}
    files |= {
        "labels.csv": "image_id,label\na.jpg,fox\nb.jpg,hen\n",
        "eval.csv": "image_id,partition\na.jpg,0\nb.jpg,1\n",
    }
    (message,) = messages(looked_at(tmp_path, files), "columns_not_read")
    assert message.startswith("eval.csv was left out, though its column 'partition' looks like splits")


def test_no_rows_says_what_was_there_instead(tmp_path: Path) -> None:
    task = {"id": 1, "annotations": [], "predictions": [{"id": 1, "result": []}], "data": {"image": "a.jpg"}}
    write_files(tmp_path, {"a.jpg": picture(1), "p.json": json.dumps([task]).encode()})
    error = seen([str(tmp_path / "p.json")]).error
    assert "no rows were found" in error
    assert error.endswith("not used are pictures not annotated, or skipped: 1, such as a.jpg")


def test_the_header_of_the_first_version_of_via_is_one(tmp_path: Path) -> None:
    head = "#filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes"
    shape = '"{""name"":""rect"",""x"":1,""y"":2,""width"":10,""height"":20}"'
    row = f'a.jpg,1200,"{{}}",1,0,{shape},"{{""type"":""fox""}}"'
    found = looked_at(tmp_path, {**pictures("a.jpg"), "via.csv": f"{head}\n{row}\n"}, "via.csv")
    assert found.pictures[str(tmp_path / "a.jpg")].objects == (("fox", (1, 2, 11, 22)),)


@pytest.mark.parametrize(("cells", "count"), [(("7", "8"), 0), (("7", ""), 1), (("", "  "), 2)])
def test_rows_without_a_group_are_told(tmp_path: Path, cells: tuple[str, str], count: int) -> None:
    table = "image,label,patient\n" + "".join(
        f"{name}.jpg,fox,{cell}\n" for name, cell in zip("ab", cells, strict=True)
    )
    options = {"splits": "train=0.5,test=0.5", "insight": "off"}
    write_files(tmp_path / "in", {**pictures("a.jpg", "b.jpg"), "t.csv": table.encode()})
    converted(tmp_path / "in/t.csv", tmp_path / "out", group_column="patient", **options)
    assert conversion(tmp_path / "out")["warnings"].get("no_group", 0) == count


def test_zero_is_a_group_and_a_gap_of_a_data_frame_is_none(tmp_path: Path) -> None:
    write_files(tmp_path, pictures("a.jpg", "b.jpg", "c.jpg", "d.jpg"))
    groups = {"a": 0, "b": 0, "c": float("nan"), "d": False}
    rows = [
        {"image": str(tmp_path / f"{name}.jpg"), "label": "fox", "patient": group} for name, group in groups.items()
    ]
    job = prepare(rows=rows, output=str(tmp_path / "out"), group_column="patient", splits="train=0.5,test=0.5")
    pieces = split_sources(job.sources, Storage())
    found = {}
    for numbered in pieces:
        for entry in read_entries(numbered.piece, job.config, Storage()):
            assert isinstance(entry, Entry)
            found[Path(entry.uri or "").stem] = (entry.group, [warning.code for warning in entry.warnings])
    assert found == {"a": ("0", []), "b": ("0", []), "c": (None, ["no_group"]), "d": ("false", [])}
