"""What names mean: of files, columns, splits and uris."""

from __future__ import annotations

import pytest

from beam_tfrecord.errors import ConfigError
from beam_tfrecord.manifests.filenames import (
    JunkCounter,
    archive_stem,
    is_archive_name,
    is_data_name,
    is_image_name,
    junk_part,
)
from beam_tfrecord.manifests.split_names import is_split_folder, is_split_word, split_of_cell
from beam_tfrecord.manifests.text.roles import Roles, find_roles, known_names
from beam_tfrecord.manifests.text.uri_text import folder_of, has_glob, literal_folder, name_of, scheme_of, without_slash
from beam_tfrecord.options.config import ManifestConfig

CONFIG = ManifestConfig(input=("x",))


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("cat/a.jpg", None),
        ("cat/a..jpg", None),
        ("../a.jpg", None),
        ("a.DS_Store/b.jpg", None),
        (".DS_Store", ".DS_Store"),
        ("cat/.DS_Store", "cat/.DS_Store"),
        ("cat/._a.jpg", "cat/._a.jpg"),
        ("cat/Thumbs.db", "cat/Thumbs.db"),
        ("THUMBS.DB", "THUMBS.DB"),
        ("desktop.ini", "desktop.ini"),
        ("__MACOSX/cat/._a.jpg", "__MACOSX"),
        ("x/__MACOSX/a.jpg", "x/__MACOSX"),
        (".git/objects/ab/cd", ".git"),
        ("cat/.ipynb_checkpoints/a.jpg", "cat/.ipynb_checkpoints"),
        ("cat/@eaDir/a.jpg/thumb.jpg", "cat/@eaDir"),
        ("my__MACOSX/a.jpg", None),
        ("x\n/.hidden", "x\n/.hidden"),
    ],
)
def test_junk(path: str, part: str | None) -> None:
    assert junk_part(path) == part


def test_junk_of_one_folder_counts_once() -> None:
    junk = JunkCounter()
    for part in (".git", ".git", "a/.x", "b/.x"):
        junk.add(part)
    assert len(junk) == 3


def test_kinds_of_files_by_name() -> None:
    assert all(map(is_image_name, ("a.jpg", "a.JPEG", "x/y.Png", "a.jfif", "a.tif")))
    assert not any(map(is_image_name, ("jpg", "a.jpg.txt", "a", "a.csv")))
    assert all(map(is_data_name, ("a.txt", "x/A.CSV", "README", "x/License", "a.csv.gz", "labels.json", "_SUCCESS")))
    assert not any(map(is_data_name, ("a.jpg", "readme.jpg", "a.gz", "textfile", "a.csvx")))
    assert all(map(is_archive_name, ("a.zip", "a.TAR.GZ", "a.tgz", "x/a.tar")))
    assert [archive_stem(name) for name in ("a.tar.gz", "n01.tar", "b.tgz", "c")] == ["a", "n01", "b", "c"]


@pytest.mark.parametrize(
    ("cell", "name", "name_in_ml_use"),
    [
        ("TRAIN", "train", "train"),
        ("TRAINING", "train", "train"),
        ("VALIDATION", "validation", "validation"),
        ("VALIDATE", "validation", "validation"),
        ("TEST", "test", "test"),
        ("UNASSIGNED", "", ""),
        ("training", "training", "train"),
        ("train", "train", "train"),
        ("val", "val", "val"),
        ("VAL", "VAL", "VAL"),
        (" test ", "test", "test"),
        ("my-split", "my-split", "my-split"),
        ("", "", ""),
    ],
)
def test_splits_of_cells(cell: str, name: str, name_in_ml_use: str) -> None:
    assert split_of_cell(cell) == name
    assert split_of_cell(cell, is_ml_use=True) == name_in_ml_use


def test_names_of_splits_are_known() -> None:
    assert all(map(is_split_word, ("train", "TRAINING", "Valid", "UNASSIGNED", "val")))
    assert not any(map(is_split_word, ("cat", "", "trains")))
    assert is_split_folder("Test")
    assert not is_split_folder("UNASSIGNED")


# ---------------------------------------------------------------------------------------------------------------------
# Columns


@pytest.mark.parametrize(
    ("header", "image", "label", "split"),
    [
        (["split", "image_uri", "label"], "image_uri", "label", "split"),
        (["Image Path", "CLASS", "Set"], "Image Path", "CLASS", "Set"),
        (["filename", "width", "height", "class"], "filename", "class", None),
        (["path", "image", "category", "target"], "image", "category", None),
        (["uri", "ml_use"], "uri", None, "ml_use"),
        (["file-name", "species"], "file-name", None, None),
        (["a", "b"], None, None, None),
        ([" image ", "subset"], " image ", None, "subset"),
    ],
)
def test_columns_are_found_by_their_usual_names(
    header: list[str], image: str | None, label: str | None, split: str | None
) -> None:
    roles = find_roles(header, CONFIG, "x")
    assert (roles.image, roles.label, roles.split) == (image, label, split)
    assert roles.is_ml_use == (split == "ml_use")
    assert Roles.from_details(roles.to_details()) == roles


def test_a_column_plays_one_part_only() -> None:
    config = ManifestConfig(input=("x",), label_column="path", columns="class:string")
    roles = find_roles(["path", "class", "file"], config, "x")
    assert (roles.image, roles.label, roles.columns) == ("file", "path", (("class", "class"),))


def test_boxes_are_noticed_by_their_columns() -> None:
    assert find_roles(["filename", "class", "XMin", "YMin", "XMax", "YMax"], CONFIG, "x").has_boxes
    assert not find_roles(["filename", "class", "xmin", "ymin"], CONFIG, "x").has_boxes
    with pytest.raises(ConfigError, match=r"xmin, ymin, xmax are three sides of a box, and there is no ymax"):
        find_roles(["filename", "class", "xmin", "ymin", "xmax"], CONFIG, "x")


def test_names_that_options_give_count_as_known() -> None:
    config = ManifestConfig(input=("x",), group_column="patient", columns="age:int64")
    assert known_names(["Patient", "AGE", "image", "other"], config) == 3
    assert known_names(["a.jpg", "cat"], config) == 0


# ---------------------------------------------------------------------------------------------------------------------
# Uris


@pytest.mark.parametrize(
    ("uri", "folder", "name"),
    [
        ("a.csv", "", "a.csv"),
        ("x/a.csv", "x", "a.csv"),
        ("/a.csv", "/", "a.csv"),
        ("/x/y/a.csv", "/x/y", "a.csv"),
        ("/x/y/", "/x", "y"),
        ("gs://bucket/a.csv", "gs://bucket", "a.csv"),
        ("gs://bucket/x/a?b.csv", "gs://bucket/x", "a?b.csv"),
        ("x.zip!/a.csv", "x.zip!", "a.csv"),
        ("https://host/x/a.csv?signed=a/b", "https://host/x", "a.csv"),
    ],
)
def test_folders_and_names_of_uris(uri: str, folder: str, name: str) -> None:
    assert (folder_of(uri), name_of(uri)) == (folder, name)


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [
        ("*.jpg", ""),
        ("x/*.jpg", "x"),
        ("x/y*/z.jpg", "x"),
        ("/*.jpg", "/"),
        ("/x/[ab]/c", "/x"),
        ("gs://b/x/**/a?.jpg", "gs://b/x"),
        ("gs://b/*.jpg", "gs://b"),
    ],
)
def test_the_literal_folder_of_a_glob(pattern: str, folder: str) -> None:
    assert literal_folder(pattern) == folder
    assert has_glob(pattern)


def test_small_things_about_uris() -> None:
    assert [without_slash(uri) for uri in ("a/", "a//", "/", "a", "gs://b/x/")] == ["a", "a", "/", "a", "gs://b/x"]
    assert [scheme_of(uri) for uri in ("gs://b", "HTTPS://h/x", "/a://b", "a=gs://x")] == ["gs", "https", "", ""]
    assert not has_glob("a.jpg")
