from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests import siblings
from beam_tfrecord.manifests.base import Ignored
from beam_tfrecord.manifests.formats.yolo import YoloFormat
from beam_tfrecord.manifests.siblings import label_path
from tests.annotation_tools import fields_by_image, parse, read_items, rejects, write
from tests.local_files import LocalFiles

FORMAT = YoloFormat()
YAML = "train: images/train\nval: images/val\nnames:\n  0: cat\n  1: dog\n"


def dataset(root: Path, yaml: str = YAML, **labels: str) -> Path:
    write(root / "data.yaml", yaml)
    for split in ("train", "val"):
        write(root / f"images/{split}/{split}_0.jpg", "pixels")
    for name, text in labels.items():
        write(root / "labels" / name.rpartition("_")[0] / f"{name}.txt", text)
    return root


def objects(items: list[Any], image: str) -> Any:
    return parse(BoxesKind(), fields_by_image(items)[image]).objects


def test_a_dataset_has_a_row_per_image_in_the_splits_of_its_yaml(tmp_path: Path) -> None:
    source, items = read_items(FORMAT, dataset(tmp_path, train_0="1 0.5 0.5 0.2 0.4\n\n0 0.1 0.1 0.2 0.2\n"))
    assert (source.labels, source.category_ids, source.base) == (("cat", "dog"), (0, 1), str(tmp_path))
    assert [(item.fields["image"], item.fields["split"]) for item in items] == [
        ("images/train/train_0.jpg", "train"),
        ("images/val/val_0.jpg", "val"),
    ]
    first, second = objects(items, "images/train/train_0.jpg")
    assert (first.name, second.name) == ("dog", "cat")
    assert tuple(first.box) == pytest.approx((0.4, 0.3, 0.6, 0.7))
    assert first.normalized
    assert first.origin == "train_0.txt:1"
    assert second.origin == "train_0.txt:3"
    assert fields_by_image(items)["images/val/val_0.jpg"]["boxes"] == []


def test_yolo_sees_the_turned_picture(tmp_path: Path) -> None:
    assert {item.fields["frame"] for item in read_items(FORMAT, dataset(tmp_path))[1]} == {"upright"}


def test_the_yaml_and_its_folder_are_the_same_input(tmp_path: Path) -> None:
    dataset(tmp_path, train_0="1 0.5 0.5 0.2 0.4")
    assert read_items(FORMAT, tmp_path)[1] == read_items(FORMAT, tmp_path / "data.yaml")[1]


def test_outlines_give_polygons_and_their_box(tmp_path: Path) -> None:
    dataset(tmp_path, train_0="0 0.1 0.2 0.5 0.2 0.5 0.6\n")
    (item,) = objects(read_items(FORMAT, tmp_path)[1], "images/train/train_0.jpg")
    assert item.mask.parts == ((0.1, 0.2, 0.5, 0.2, 0.5, 0.6),)
    assert tuple(item.box) == (0.1, 0.2, 0.5, 0.6)


@pytest.mark.parametrize(
    ("shape", "line", "points"),
    [
        ("[2, 3]", "0 0.5 0.5 0.2 0.4 0.4 0.3 2 0.6 0.7 0", ((0.4, 0.3, 2), (0.6, 0.7, 0))),
        ("[3, 2]", "0 0.5 0.5 0.2 0.4 0.4 0.3 0 0 -1 0.5", ((0.4, 0.3, 2), (0, 0, 0), (-1, 0.5, 0))),
    ],
)
def test_poses_have_keypoints(tmp_path: Path, shape: str, line: str, points: Any) -> None:
    dataset(tmp_path, YAML + f"kpt_shape: {shape}\nkpt_names:\n  0: [a, b]\n", train_0=line)
    (item,) = objects(read_items(FORMAT, tmp_path)[1], "images/train/train_0.jpg")
    assert item.keypoints.points == points
    assert item.keypoints.names == (("a", "b") if len(points) == 2 else ())


def test_names_of_keypoints_that_do_not_fit_their_number_are_told(tmp_path: Path) -> None:
    told = YAML + "kpt_shape: [3, 2]\nkpt_names:\n  0: [a, b]\n"
    dataset(tmp_path, told, train_0="0 0.5 0.5 0.2 0.4 0.4 0.3 0 0 -1 0.5")
    ((code, message),) = read_items(FORMAT, tmp_path)[0].surprises
    assert (code, "kpt_names" in message) == ("doubtful_reading", True)


def test_a_number_of_classes_that_is_none_is_told(tmp_path: Path) -> None:
    dataset(tmp_path, YAML + "nc: two\n", train_0="")
    with pytest.raises(ManifestError, match="nc is two"):
        read_items(FORMAT, tmp_path)


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("0 0.5 0.5 0.2", "bad_annotation", "4 values"),
        ("0 0.5 0.5 0.2 0.2 0.9", "bad_annotation", "6 values"),
        ("0 0.5 x 0.2 0.2", "bad_annotation", "'x' is no number"),
        ("cat 0.5 0.5 0.2 0.2", "bad_annotation", "'cat' is no number"),
        ("2 0.5 0.5 0.2 0.2", "unknown_category", "no class 2"),
        ("0.5 0.5 0.5 0.2 0.2", "unknown_category", "no class 0.5"),
        ("-1 0.5 0.5 0.2 0.2", "unknown_category", "2 classes, 0 to 1"),
    ],
)
def test_a_line_that_is_none_rejects_its_image_and_is_named(tmp_path: Path, line: str, code: str, told: str) -> None:
    dataset(tmp_path, train_0=f"1 0.5 0.5 0.1 0.1\n{line}\n")
    _, items = read_items(FORMAT, tmp_path)
    ((found, message),) = rejects(items)
    assert found == code
    assert told in message
    assert f"{tmp_path}/labels/train/train_0.txt:2" in message
    assert sum(isinstance(item, Row) for item in items) == 1


def test_a_label_file_that_is_no_text_rejects_its_image(tmp_path: Path) -> None:
    dataset(tmp_path)
    write(tmp_path / "labels/train/train_0.txt", b"\xff\xfe\xfd")
    assert [code for code, _ in rejects(read_items(FORMAT, tmp_path)[1])] == ["bad_annotation"]


@pytest.mark.parametrize("line", ["0.0 0.5 0.5 0.2 0.2", "  0\t0.5 0.5 0.2 0.2  ", "\ufeff0 0.5 0.5 0.2 0.2\r"])
def test_harmless_spellings_are_read(tmp_path: Path, line: str) -> None:
    dataset(tmp_path, train_0=line)
    assert len(objects(read_items(FORMAT, tmp_path)[1], "images/train/train_0.jpg")) == 1


@pytest.mark.parametrize(
    ("image", "label"),
    [
        ("/d/images/train/a.jpg", "/d/labels/train/a.txt"),
        ("/images/d/images/a.b.png", "/images/d/labels/a.b.txt"),
        ("/d/train/a.jpg", "/d/train/a.txt"),
        ("/d/my_images/a.jpg", "/d/my_images/a.txt"),
    ],
)
def test_labels_lie_where_ultralytics_looks_for_them(image: str, label: str) -> None:
    assert label_path(image) == label


@pytest.mark.parametrize("names", ["[cat, dog]", "{0: cat, 1: dog}", '["cat", "dog"]'])
def test_names_are_a_list_or_a_mapping(tmp_path: Path, names: str) -> None:
    dataset(tmp_path, f"train: images/train\nnames: {names}\n")
    assert read_items(FORMAT, tmp_path)[0].labels == ("cat", "dog")


def test_ids_may_have_gaps(tmp_path: Path) -> None:
    dataset(tmp_path, "train: images/train\nnames: {7: dog, 3: cat}\n", train_0="7 0.5 0.5 0.2 0.2")
    source, items = read_items(FORMAT, tmp_path)
    assert (source.labels, source.category_ids) == (("cat", "dog"), (3, 7))
    assert objects(items, "images/train/train_0.jpg")[0].name == "dog"


@pytest.mark.parametrize(
    ("yaml", "told"),
    [
        ("train: images/train\n", "needs names"),
        ("train: images/train\nnames: [cat, cat]\n", "classes 0 and 1 are both called 'cat'"),
        ("train: images/train\nnames: {a: cat}\n", "no class id"),
        ("train: images/gone\nnames: [cat]\n", "gone, which does not exist"),
        ("names: [cat]\n", "neither train nor val nor test"),
        ("names: [cat\n", "no valid YAML"),
        ("- cat\n", "no mapping"),
        ("names: [cat]\ntrain: images/train\nkpt_shape: 17\n", "kpt_shape"),
        ("names: !!python/object/apply:os.system [ls]\n", "no valid YAML"),
    ],
)
def test_a_yaml_that_describes_no_dataset_ends_the_job(tmp_path: Path, yaml: str, told: str) -> None:
    dataset(tmp_path, yaml)
    with pytest.raises(ManifestError, match=told):
        read_items(FORMAT, tmp_path / "data.yaml")


@pytest.mark.parametrize("path", ["", "path:\n", "path: ../elsewhere\n", "path: /not/there\n", "path: .\n"])
def test_a_path_of_another_machine_gives_way_to_the_folder_of_the_yaml(tmp_path: Path, path: str) -> None:
    assert len(read_items(FORMAT, dataset(tmp_path, path + YAML))[1]) == 2


def test_the_path_of_the_yaml_and_the_option_say_where_images_are(tmp_path: Path) -> None:
    dataset(tmp_path / "a" / "coco")
    write(tmp_path / "a/coco.yaml", "path: coco\n" + YAML)
    assert read_items(FORMAT, tmp_path / "a/coco.yaml")[0].base == f"{tmp_path}/a/coco"
    write(tmp_path / "b/coco.yaml", YAML)
    source, items = read_items(FORMAT, tmp_path / "b/coco.yaml", images=f"{tmp_path}/a/coco")
    assert (source.base, len(items)) == (f"{tmp_path}/a/coco", 2)


def test_roboflows_layout_is_understood(tmp_path: Path) -> None:
    write(tmp_path / "data.yaml", "train: ../train/images\nval: ../valid/images\nnames: [cat]\n")
    for split in ("train", "valid"):
        write(tmp_path / split / "images/a.jpg", "pixels")
        write(tmp_path / split / "labels/a.txt", "0 0.5 0.5 0.1 0.1")
    _, items = read_items(FORMAT, tmp_path)
    assert [(item.fields["split"], item.fields["image"]) for item in items] == [
        ("train", "train/images/a.jpg"),
        ("val", "valid/images/a.jpg"),
    ]
    assert all(len(item.fields["boxes"]) == 1 for item in items)


def test_lists_of_images_and_several_places(tmp_path: Path) -> None:
    dataset(tmp_path, "train: [train.txt, images/val]\nnames: [cat, dog]\n", train_0="0 0.5 0.5 0.1 0.1")
    write(tmp_path / "train.txt", "./images/train/train_0.jpg\n\nimages\\train\\other.jpg\n/abs/images/x.jpg\n")
    _, items = read_items(FORMAT, tmp_path)
    assert [item.fields["image"] for item in items] == [
        "images/train/train_0.jpg",
        "images/train/other.jpg",
        "/abs/images/x.jpg",
        "images/val/val_0.jpg",
    ]
    assert len(items[0].fields["boxes"]) == 1


def test_a_list_is_an_input_of_its_own(tmp_path: Path) -> None:
    dataset(tmp_path)
    source, items = read_items(FORMAT, write(tmp_path / "val.txt", "./images/val/val_0.jpg\n"))
    assert source.labels == ("cat", "dog")
    assert [item.fields["image"] for item in items] == ["images/val/val_0.jpg"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("classes.txt", "obj.names"),
        ("labels.txt", "_darknet.labels"),
        ("predefined_classes.txt", "classes.txt"),
        ("data/obj.names", "data/classes.txt"),  # both below
        ("a/classes.txt", "b/classes.txt"),
    ],
)
@pytest.mark.parametrize(
    ("names", "others", "told"),
    [
        ("cat\ndog\n", "dog\ncat\n", "class 0 is '(cat|dog)' in one and '(cat|dog)' in the other"),
        ("cat\ndog\n", "cat\ndog\nhen\n", "class 2 is ('hen'|not there) in one and ('hen'|not there) in the other"),
        ("cat\ndog\n", "cat\n\ndog\n", "class 1 is ('dog'|not there) in one"),
    ],
)
def test_files_of_names_that_disagree_are_an_error(
    tmp_path: Path, one: str, other: str, names: str, others: str, told: str
) -> None:
    write(tmp_path / "a.jpg", "pixels")
    write(tmp_path / "a.txt", "0 0.5 0.5 0.5 0.5\n")
    write(tmp_path / one, names)
    write(tmp_path / other, others)
    with pytest.raises(ManifestError, match=told) as caught:
        read_items(FORMAT, tmp_path)
    assert str(tmp_path / one) in str(caught.value)
    assert str(tmp_path / other) in str(caught.value)
    write(tmp_path / other, "\ufeff" + names.replace("\n", "\r\n") + "\n")  # the same names, written otherwise
    assert read_items(FORMAT, tmp_path)[0].labels == ("cat", "dog")


def test_without_a_yaml_names_come_from_classes_txt(tmp_path: Path) -> None:
    write(tmp_path / "images/a.jpg", "pixels")
    write(tmp_path / "labels/a.txt", "1 0.5 0.5 0.1 0.1")
    with pytest.raises(ManifestError, match=r"classes\.txt"):
        read_items(FORMAT, tmp_path)
    write(tmp_path / "classes.txt", "cat\ndog\n\n")
    source, items = read_items(FORMAT, tmp_path)
    assert source.labels == ("cat", "dog")
    assert "split" not in items[0].fields
    assert objects(items, "images/a.jpg")[0].name == "dog"


def test_without_a_yaml_folders_may_be_splits(tmp_path: Path) -> None:
    write(tmp_path / "classes.txt", "cat\n")
    for split in ("train", "val"):
        write(tmp_path / f"images/{split}/a.jpg", "pixels")
    assert [item.fields["split"] for item in read_items(FORMAT, tmp_path)[1]] == ["train", "val"]


def test_one_of_several_yamls_must_be_named(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", YAML)
    write(tmp_path / "b.yaml", YAML)
    write(tmp_path / "hyp.yaml", "lr0: 0.01\n")
    with pytest.raises(ConfigError, match=r"several yaml files.*a\.yaml"):
        read_items(FORMAT, tmp_path)


def test_only_images_are_rows_and_junk_is_counted(tmp_path: Path) -> None:
    dataset(tmp_path)
    write(tmp_path / "images/train/.DS_Store", "junk")
    write(tmp_path / "images/train/notes.txt", "text")
    _, items = read_items(FORMAT, tmp_path)
    assert [item for item in items if isinstance(item, Ignored)] == [Ignored(1)]
    assert len(items) == 3


def test_pieces_together_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset(tmp_path, train_0="0 0.5 0.5 0.1 0.1")
    for number in range(6):
        write(tmp_path / f"images/val/{number}.jpg", "pixels")
    _, whole = read_items(FORMAT, tmp_path)
    monkeypatch.setattr(siblings, "ITEMS_PER_PIECE", 3)
    assert read_items(FORMAT, tmp_path)[1] == whole
    assert len(whole) == 8


def test_recognised_by_content(tmp_path: Path) -> None:
    files = LocalFiles()
    dataset(tmp_path / "yolo")
    write(tmp_path / "bare/images/a.jpg", "pixels")
    write(tmp_path / "bare/labels/a.txt", "0 0 0 1 1")
    write(tmp_path / "classes/images/a.jpg", "pixels")
    write(tmp_path / "classes/labels/a.jpg", "pixels")
    names = ("yolo", "bare", "classes", "yolo/images")
    assert [name for name in names if FORMAT.recognises(files, str(tmp_path / name), b"")] == ["yolo", "bare"]
    assert FORMAT.recognises(files, str(tmp_path / "yolo/data.yaml"), YAML.encode())
    assert not FORMAT.recognises(files, str(tmp_path / "yolo/data.yaml"), b"a: b")


@pytest.mark.parametrize("key", ["validation", "valid"])
def test_other_names_of_the_split_val_in_a_yaml_are_read(tmp_path: Path, key: str) -> None:
    for split in ("train", "valid"):
        write(tmp_path / f"{split}/images/{split}.jpg", "pixels")
    uri = write(
        tmp_path / "data.yaml", f"names: [fox]\ntrain: train/images\n{key}: valid/images\ntrain2: valid/images\n"
    )
    source, items = read_items(FORMAT, uri)
    assert [item.fields["split"] for item in items] == ["train", "val"]
    assert [told for code, told in source.surprises if "train2 is not read" in told]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("val: train/images\nvalid: train/images", "val and valid, which are one split"),
        ("path: [a]", "path is"),
        ("test: {a: b}", "not a folder, a list of images"),
    ],
)
def test_a_yaml_whose_places_are_open_is_refused(tmp_path: Path, text: str, told: str) -> None:
    write(tmp_path / "train/images/a.jpg", "pixels")
    uri = write(tmp_path / "data.yaml", f"names: [fox]\ntrain: train/images\n{text}\n")
    with pytest.raises(ManifestError, match=told):
        read_items(FORMAT, uri)


@pytest.mark.parametrize(("path", "count"), [("../datasets/foxes", 1), (".", 0), ("train", 0), ("~", 0)])
def test_a_path_of_the_yaml_that_is_not_there_is_decided_on(tmp_path: Path, path: str, count: int) -> None:
    write(tmp_path / "train/images/a.jpg", "pixels")
    below = "images" if path == "train" else "train/images"
    uri = write(tmp_path / "data.yaml", f"names: [fox]\npath: {path}\ntrain: {below}\n")
    source, items = read_items(FORMAT, uri)
    assert len(items) == 1
    assert len([one for one in source.decisions if one.what == "where the paths of the yaml start"]) == count


def notes(*names: str) -> dict[str, Any]:
    """As label_studio_sdk 2.1 writes it beside classes.txt."""
    return {
        "categories": [{"id": number, "name": name} for number, name in enumerate(names)],
        "info": {"year": 2026, "version": "1.0", "contributor": "Label Studio"},
    }


def label_studio(folder: Path, classes: str, own: Any) -> Path:
    write(folder / "images/a.jpg", "pixels")
    write(folder / "labels/a.txt", "1 0.5 0.5 0.2 0.2\n")
    if classes:
        write(folder / "classes.txt", classes)
    write(folder / "notes.json", own)
    return folder


def test_names_in_the_notes_of_label_studio_are_held_against_classes_txt(tmp_path: Path) -> None:
    source, items = read_items(FORMAT, label_studio(tmp_path / "same", "cat\ndog\n", notes("cat", "dog")))
    assert source.labels == ("cat", "dog")
    assert source.details["manifests"] == (f"{tmp_path}/same/classes.txt", f"{tmp_path}/same/notes.json")
    assert items[0].fields["boxes"][0]["class"] == "dog"
    with pytest.raises(ManifestError, match="class 0 is 'cat' in one and 'dog' in the other"):
        read_items(FORMAT, label_studio(tmp_path / "other", "cat\ndog\n", notes("dog", "cat")))


def test_the_notes_of_label_studio_alone_name_the_classes(tmp_path: Path) -> None:
    assert read_items(FORMAT, label_studio(tmp_path, "", notes("cat", "dog")))[0].labels == ("cat", "dog")


@pytest.mark.parametrize("own", ["to do: label more", {"by": "me"}, "[1]"])
def test_notes_of_somebody_name_no_classes(tmp_path: Path, own: Any) -> None:
    folder = label_studio(tmp_path, "cat\ndog\n", own)
    assert read_items(FORMAT, folder)[0].details["manifests"] == (f"{folder}/classes.txt",)
    (folder / "classes.txt").unlink()
    with pytest.raises(ManifestError, match="names no classes"):
        read_items(FORMAT, folder)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        ({"id": "x", "name": "cat"}, "categories[0].id is 'x'"),
        ({"id": 0}, "categories[0] needs an id and a name"),
        ({"name": "cat"}, "categories[0] needs an id and a name"),
        ("cat", "categories[0] is 'cat', not an object"),
    ],
)
def test_damaged_notes_of_label_studio_are_told(tmp_path: Path, one: Any, told: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_items(FORMAT, label_studio(tmp_path, "cat\n", {"categories": [one]}))
    assert told in str(caught.value)
