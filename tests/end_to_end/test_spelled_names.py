"""Names that a manifest spells otherwise than the files are called: found where one file is meant, and told."""

from __future__ import annotations

import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.end_to_end.datasets import by_name, conversion, converted, findings, shard_bytes, texts
from tests.samples import jpeg, noise, png, write_files, write_table


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def picture(number: int) -> bytes:
    return jpeg(Image.fromarray(noise(16, 16, number)))


def spellings(output: Path) -> dict[str, str]:
    """What conversion.json tells of them."""
    (told,) = conversion(output)["inputs"]
    return {made["value"]: made["why"].split()[0] for made in told["decisions"] if made["what"] == "spelling of names"}


def stored(output: Path) -> dict[str, bytes]:
    return {name: record["image/encoded"][0] for name, record in by_name(output).items()}


@pytest.fixture
def oddly_spelled(tmp_path: Path) -> tuple[Path, list[bytes]]:
    """A table that spells names in other ways than its folder does, and the pictures in the order of its rows."""
    pictures = {
        "imgs/a.jpg": picture(1),
        "imgs/b\\c.jpg": picture(2),
        nfd("süd/é.jpg"): picture(3),
        "imgs/d.jpg": picture(4),
        " e.jpg": picture(5),
    }
    write_files(tmp_path / "in", pictures)
    names = ["imgs\\a.jpg", "imgs/b\\c.jpg", "süd\\é.jpg", "imgs/d.jpg ", " e.jpg"]
    table = write_table(tmp_path / "in" / "t.csv", [("image", "label"), *((name, "x") for name in names)])
    return table, list(pictures.values())


def test_a_table_names_files_with_backslashes_blanks_and_composed_letters(
    tmp_path: Path, oddly_spelled: tuple[Path, list[bytes]]
) -> None:
    table, pictures = oddly_spelled
    converted(table, tmp_path / "out", num_shards=1)
    names = ("imgs/a.jpg", "imgs/b/c.jpg", "süd/é.jpg", "imgs/d.jpg", "e.jpg")
    assert stored(tmp_path / "out") == dict(zip(names, pictures, strict=True))
    assert spellings(tmp_path / "out") == {
        "with / for \\": "1",
        "with / for \\ and in another form of Unicode": "1",
        "without blanks at the ends": "1",
    }
    (told,) = conversion(tmp_path / "out")["inputs"]
    assert told["used"]["files"] == {"image": 5, "manifest": 1}  # the census knows them by what they are called


@pytest.mark.slow
def test_processes_find_files_of_other_spellings_as_one_does(
    tmp_path: Path, oddly_spelled: tuple[Path, list[bytes]]
) -> None:
    table, _ = oddly_spelled
    converted(table, tmp_path / "out", num_shards=1)
    processes = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    converted(table, tmp_path / "again", num_shards=1, pipeline_options=processes)
    assert shard_bytes(tmp_path / "again") == shard_bytes(tmp_path / "out")
    assert spellings(tmp_path / "again") == spellings(tmp_path / "out") != {}


def test_a_table_names_files_percent_encoded_and_in_another_case_of_letters(tmp_path: Path) -> None:
    pictures = {"a b.jpg": picture(1), "IMG_2.JPG": picture(2), "pear.jpg": picture(3), "caf\u00e9.jpg": picture(4)}
    write_files(tmp_path / "in", {**pictures, "PEAR.PNG": picture(5)})
    names = ["a%20b.jpg", "IMG_2.jpg", "Pear.jpg", "caf%C3%A9.JPG"]
    table = write_table(tmp_path / "in" / "t.csv", [("image", "label"), *((name, "x") for name in names)])
    converted(table, tmp_path / "out", num_shards=1)
    assert sorted(stored(tmp_path / "out").values()) == sorted(pictures.values())
    assert spellings(tmp_path / "out") == {
        "without percent-encoding": "1",
        "in another case of letters": "2",
        "without percent-encoding and in another case of letters": "1",
    }
    (told,) = conversion(tmp_path / "out")["inputs"]
    assert told["used"]["files"] == {"image": 4, "manifest": 1}
    assert told["named"]["files"]["image that no row names"] == {"count": 1, "example": "PEAR.PNG"}


def test_a_file_in_another_case_is_no_other_files_image(tmp_path: Path) -> None:
    write_files(tmp_path / "in", {"a.jpg": picture(1), "A.JPG": picture(2), "B.JPG": picture(3), "b.JPG": picture(4)})
    table = write_table(tmp_path / "in" / "t.csv", [("image", "label"), ("a.jpg", "x"), ("b.jpg", "x")])
    converted(table, tmp_path / "out", max_rejects="1")
    assert stored(tmp_path / "out") == {"a.jpg": picture(1)}
    (reject,) = findings(tmp_path / "out")
    assert (reject["code"], "B.JPG" in reject["message"], "b.JPG" in reject["message"]) == ("missing_file", True, True)


def test_a_file_of_exactly_the_name_wins_and_the_other_one_is_told_as_named_by_no_row(tmp_path: Path) -> None:
    write_files(
        tmp_path / "in", {"é.jpg": picture(1), nfd("é.jpg"): picture(2), "a\\b.jpg": picture(3), "a/b.jpg": picture(4)}
    )
    table = write_table(tmp_path / "in" / "t.csv", [("image", "label"), ("é.jpg", "x"), ("a\\b.jpg", "x")])
    converted(table, tmp_path / "out")
    assert stored(tmp_path / "out") == {"é.jpg": picture(1), "a/b.jpg": picture(3)}
    assert spellings(tmp_path / "out") == {}
    (told,) = conversion(tmp_path / "out")["inputs"]
    assert told["named"]["files"]["image that no row names"]["count"] == 2


def test_where_two_files_may_be_meant_the_row_is_a_reject_that_names_both(tmp_path: Path) -> None:
    write_files(tmp_path / "in", {"a/é.jpg": picture(1), nfd("a/é.jpg"): picture(2), "b.jpg": picture(3)})
    table = write_table(tmp_path / "in" / "t.csv", [("image", "label"), ("a\\é.jpg", "x"), ("b.jpg", "x")])
    converted(table, tmp_path / "out", max_rejects="1")
    (reject,) = findings(tmp_path / "out")
    assert reject["code"] == "missing_file"
    assert ascii("a/é.jpg")[1:-1] in reject["message"]
    assert ascii(nfd("a/é.jpg"))[1:-1] in reject["message"]


def test_masks_that_a_table_names_are_found_as_images_are(tmp_path: Path) -> None:
    mask = png(Image.fromarray(noise(16, 16, 9)[..., 0] // 64))
    write_files(tmp_path / "in", {"é.jpg": picture(1), nfd("masks/é.png"): mask})
    table = write_table(tmp_path / "in" / "t.csv", [("image", "mask"), ("é.jpg", "masks\\é.png")])
    converted(table, tmp_path / "out", mask_column="mask")
    (record,) = by_name(tmp_path / "out").values()
    assert record["image/segmentation/class/encoded"][0]
    assert spellings(tmp_path / "out") == {"with / for \\ and in another form of Unicode": "1"}
    (told,) = conversion(tmp_path / "out")["inputs"]
    assert told["used"]["files"] == {"image": 2, "manifest": 1}


def box(name: str) -> str:
    part = "<object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object>"
    return f"<annotation><filename>{name}</filename>{part}</annotation>"


def yolo_folder(image: str, label: str, train: str = "images") -> dict[str, Any]:
    data = {"data.yaml": f"names: [cat]\ntrain: {train}\n".encode(), f"images/{image}.jpg": picture(1)}
    return {**data, f"labels/{label}.txt": b"0 0.5 0.5 0.2 0.2\n"}


@pytest.mark.parametrize(
    ("files", "entry"),
    [
        ({"é.jpg": picture(1), nfd("é.xml"): box("é.jpg").encode()}, ""),
        ({nfd("images/é.jpg"): picture(1), "xml/é.xml": box("imgs\\é.jpg").encode()}, ""),
        (yolo_folder("é", nfd("é")), ""),
        (yolo_folder(nfd("é"), "é"), "data.yaml"),
        ({**yolo_folder(nfd("é"), nfd("é"), "t.txt"), "t.txt": "images\\é.jpg".encode()}, ""),
    ],
    ids=["xml beside its image", "xml in a folder of its own", "yolo", "yolo by yaml", "list of images"],
)
def test_label_files_belong_to_images_in_whatever_form_the_names_of_both_are(
    tmp_path: Path, files: dict[str, bytes], entry: str
) -> None:
    write_files(tmp_path / "in", files)
    converted(tmp_path / "in" / entry if entry else tmp_path / "in", tmp_path / "out")
    (record,) = by_name(tmp_path / "out").values()
    assert texts(record, "image/object/class/text") == ["cat"]
    assert record["image/encoded"] == [picture(1)]
    assert "no_label_files" not in conversion(tmp_path / "out")["warnings"]


def test_a_manifest_in_an_archive_names_members_in_another_spelling(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("t.csv", "image,label\nimgs\\é.jpg,x\nimgs\\b.jpg,y\n")
        archive.writestr(nfd("imgs/é.jpg"), picture(1))
        archive.writestr("imgs/b.jpg", picture(2))
    converted(tmp_path / "in.zip", tmp_path / "out")
    assert stored(tmp_path / "out") == {"imgs/é.jpg": picture(1), "imgs/b.jpg": picture(2)}
    assert spellings(tmp_path / "out") == {
        "with / for \\": "1",
        "with / for \\ and in another form of Unicode": "1",
    }


def test_names_without_the_ending_of_an_image_are_found_unless_two_may_be_meant(tmp_path: Path) -> None:
    write_files(tmp_path / "in", {"a.jpg": picture(1), "b.JPG": picture(2), "c.jpg": picture(3), "c.jpeg": picture(4)})
    table = write_table(tmp_path / "in" / "t.csv", [("image", "label"), ("a", "x"), ("b", "x"), ("c", "x")])
    converted(table, tmp_path / "out", max_rejects="1")
    assert stored(tmp_path / "out") == {"a": picture(1), "b": picture(2)}
    (reject,) = findings(tmp_path / "out")
    assert "c.jpeg" in reject["message"]
    assert spellings(tmp_path / "out") == {"with the ending of an image": "2"}
