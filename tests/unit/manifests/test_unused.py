"""What a file that was not read is told to be: by its name, and by the images that it names."""

from __future__ import annotations

import json

import pytest

from beam_tfrecord.core.account import FILES, JUNK, LOOKS_LIKE_LABELS, NAMES_IMAGES, AccountBuilder
from beam_tfrecord.manifests.leftovers import names_images, reason_unused, tell_unused

IMAGES = {"photo_17.jpg", "photo_18.jpg", "000003.png", "dog.jpg", "cat.jpg", "12.jpg"}


@pytest.mark.parametrize(
    "path",
    [
        "photo.txt",
        "labels/photo.xml",
        "photo.jpg.json",
        "gt_photo.txt",
        "res_photo.txt",
        "photo_annotations.json",
        "photo-labels.csv",
        "gt_photo.jpg.txt",
        "trainLabels.csv",
        "imagelabels.mat",
        "Anno/list_bbox_celeba.txt",
        "list_attr_celeba.txt",
        "image_class_labels.txt",
        "bounding_boxes.txt",
        "digitStruct.mat",
        "train_test_split.txt",
        "gt/gt.txt",
        "classes.txt",
        "via_export.csv",
    ],
)
def test_names_that_tools_and_authors_give_to_labels(path: str) -> None:
    assert reason_unused(path, {"photo"}) == LOOKS_LIKE_LABELS


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("README.md", "other files .md"),
        ("notes.txt", "other files .txt"),
        ("gt_other.txt", "other files .txt"),
        ("photographer.txt", "other files .txt"),
        ("a/Thumbs.db", JUNK),
        ("labels.zip", "other files .zip"),
        ("LICENSE", "other files without an ending"),
    ],
)
def test_names_that_tell_nothing_of_the_images(path: str, reason: str) -> None:
    assert reason_unused(path, {"photo"}) == reason


TEXTS = [
    "photo_17.jpg 1\nphoto_18.jpg 2\n",
    "a/b/photo_17.jpg,cat\nc\\photo_18.jpg,dog\n",
    "ImageID;Label\nphoto_17;cat\nphoto_18;dog\n",
    json.dumps({"x": ["/home/me/photo_17.jpg", {"file": "photo_18.jpg"}]}),
    "<a><b name='photo_17.jpg'/><b>000003</b></a>",
    "- dog.jpg\n- cat.jpg\n",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_texts_that_name_images(text: str, encoding: str) -> None:
    assert names_images(text.encode(encoding), IMAGES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cat\ndog\n",  # names of classes, which images may be called by
        "12 13 14 12.5\n",
        "See photo_17.jpg for how it looks.",
        "photo_99.jpg photo_98.jpg",
        json.dumps({"id": 12, "size": 3}),
    ],
)
def test_texts_that_name_none(text: str) -> None:
    assert not names_images(text.encode(), IMAGES)


def test_names_with_blanks_and_other_letters_are_found() -> None:
    names = {"my photo 1.jpg", "größe_2.jpg"}
    assert names_images("my photo 1.jpg,cat\ngröße_2.jpg,dog".encode(), names)


def test_the_only_image_is_named_once() -> None:
    assert names_images(b"dog.jpg: a dog", {"dog.jpg"})


def test_few_files_of_a_kind_are_looked_into_and_none_that_is_no_text() -> None:
    asked: list[str] = []

    def head_of(path: str) -> bytes:
        asked.append(path)
        return b"photo_17.jpg photo_18.jpg"

    told = AccountBuilder()
    paths = sorted(["files.md5.txt", "model.bin", *(f"list{number}.txt" for number in range(9)), "sub/list.csv"])
    tell_unused(told, paths, (), sorted(IMAGES), head_of)
    assert asked == ["list0.txt", "list1.txt", "list2.txt", "sub/list.csv"]
    named = told.account().named[FILES]
    assert {reason: entry.count for reason, entry in named.items()} == {
        NAMES_IMAGES: 4,
        "other files .txt": 7,
        "other files .bin": 1,
    }
    assert named[NAMES_IMAGES].example == "list0.txt"
