"""What --input may name."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests import FORMATS, describe_inputs
from beam_tfrecord.manifests.base import FileInfo, Piece, Source
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.values import InputSpec
from tests.contracts import rows_of
from tests.local_files import LocalFiles
from tests.samples import write_files

JPEG = b"\xff\xd8\xff\xe0"
TABLE = b"image,label\na.jpg,cat\n"


def sources(*inputs: Any, **options: Any) -> tuple[Source, ...]:
    return describe_inputs(LocalFiles(), ManifestConfig(input=inputs, **options))


def told(*inputs: Any, **options: Any) -> str:
    """What is said of inputs that are refused."""
    with pytest.raises(ConfigError) as caught:
        sources(*inputs, **options)
    return str(caught.value)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a bit of everything, which is also the working directory."""
    files = {
        "fruit/apple01.jpg": JPEG,
        "fruit/pear02.jpg": JPEG,
        "fruit/.DS_Store": b"x",
        "photos/cat/a.jpg": JPEG,
        "photos/dog/b.jpg": JPEG,
        "train.csv": TABLE,
        "val.csv": TABLE,
        "hashes/0a1b": JPEG,
        "hashes/2c3d": JPEG,
        "mixed/a.jpg": JPEG,
        "mixed/labels.csv": TABLE,
    }
    write_files(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_place_is_taken_as_it_is_spelled(place: Path) -> None:
    found = sources("photos", "photos/", f"{place}/train.csv")
    assert [(s.uri, s.format, s.split, s.base) for s in found] == [
        ("photos", "folder", None, "photos"),
        ("photos", "folder", None, "photos"),
        (f"{place}/train.csv", "csv", None, str(place)),
    ]


def test_a_split_is_named_in_front_of_the_place(place: Path) -> None:
    found = sources("train=train.csv", "validation=val.csv", "x=photos", InputSpec("val.csv", "test"))
    assert [(s.uri, s.split) for s in found] == [
        ("train.csv", "train"),
        ("val.csv", "validation"),
        ("photos", "x"),
        ("val.csv", "test"),
    ]
    assert sources(f"train={place}/photos")[0].split == "train"


@pytest.mark.parametrize("name", ["a=b.csv", "train=x.csv", "[ab].csv", "what?.csv", "*.csv", "100%20.csv", "~x.csv"])
def test_an_existing_name_is_literal_whatever_it_looks_like(place: Path, name: str) -> None:
    write_files(place, {name: TABLE, "b.csv": TABLE, "x.csv": TABLE})
    assert [(s.uri, s.split) for s in sources(name)] == [(name, None)]
    assert [(s.uri, s.split) for s in sources(f"test={name}")] == [(name, "test")]


def test_a_folder_with_an_equals_sign_in_its_path_is_no_split(place: Path) -> None:
    write_files(place, {"run=1/photos/cat/a.jpg": JPEG, "run=1/x.csv": TABLE})
    assert sources(f"{place}/run=1/x.csv")[0].split is None
    assert [(s.uri, s.split) for s in sources("run=1/*.csv")] == [("run=1/x.csv", None)]


def test_a_glob_of_images_is_one_source(place: Path) -> None:
    (found,) = sources("fruit/*.jpg", label_pattern=r"(?P<label>[a-z]+)\d+")
    assert (found.uri, found.format, found.base) == ("fruit/*.jpg", "glob", "fruit")
    rows = rows_of(list(FORMATS["glob"].rows(LocalFiles(), Piece(found), ManifestConfig(input=("x",)))))
    assert [fields["image"] for _, fields in rows] == ["apple01.jpg", "pear02.jpg"]
    assert sources("test=fruit/*")[0].split == "test"
    assert [s.format for s in sources("**/*.jpg")] == ["glob"]


def test_images_without_suffixes_are_told_by_their_bytes(place: Path) -> None:
    assert [s.format for s in sources("hashes/*")] == ["glob"]
    assert [s.format for s in sources("hashes/0a1b", "fruit/apple01.jpg")] == ["glob", "glob"]


def test_a_glob_of_manifests_is_a_source_for_each(place: Path) -> None:
    assert [(s.uri, s.format, s.split) for s in sources("train=*.csv")] == [
        ("train.csv", "csv", "train"),
        ("val.csv", "csv", "train"),
    ]
    assert [s.uri for s in sources("*.csv", format="csv")] == ["train.csv", "val.csv"]


def test_a_glob_of_images_and_manifests_is_a_question(place: Path) -> None:
    assert "labels.csv" in told("mixed/*")
    assert "mixed/*.jpg" in told("mixed/*")


def test_the_home_folder_is_known_behind_a_split_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place))
    assert [(s.uri, s.split) for s in sources("train=~/train.csv", "~/val.csv")] == [
        (f"{place}/train.csv", "train"),
        (f"{place}/val.csv", None),
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("photoz", ["photoz", "no such file or folder", "did you mean 'photos'", "train.csv"]),
        ("train.cvs", ["did you mean 'train.csv'"]),
        ("validation=vall.csv", ["validation=vall.csv", "did you mean 'val.csv'"]),
        ("photos/cats/a.jpg", ["no folder ", "photos/cats", "did you mean 'cat'"]),
        ("fruit/*.png", ["no file matches", "fruit holds apple01.jpg, pear02.jpg"]),
        ("photos/*.jpg", ["no file matches", "** does"]),
        ("nowhere/at/all", ["no folder ", "nowhere;", "holds fruit/"]),
        ("fruits/*.jpg", ["fruits", "did you mean 'fruit'"]),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(place: Path, given: str, said: list[str]) -> None:
    for message in (told(given), told(given if "=" in given else f"{place}/{given}")):
        assert [text for text in said if text not in message] == []


def test_a_split_must_be_a_name(place: Path) -> None:
    assert "cannot be the name of a split" in told("my split=train.csv")


def test_the_folder_of_images_must_exist(place: Path) -> None:
    assert "--images photoz: there is no such file or folder (did you mean 'photos'?)" in told(
        "val.csv", images="photoz"
    )


def test_a_format_that_is_asked_for_is_taken(place: Path) -> None:
    write_files(place, {"list.csv": b"a.jpg 1\nb.jpg 2\n"})
    assert sources("list.csv", format="list")[0].format == "list"
    with pytest.raises(ManifestError, match="is a file, not a folder"):
        sources("list.csv", format="folder")


def test_several_inputs_keep_their_order(place: Path) -> None:
    assert [s.uri for s in sources("val.csv", "photos", "train.csv", "val.csv")] == [
        "val.csv",
        "photos",
        "train.csv",
        "val.csv",
    ]


class Bucket(LocalFiles):
    """An object store: knows its own scheme only, and lists nothing that it does not have."""

    def is_file(self, uri: str) -> bool:
        assert uri.startswith("gs://"), uri
        return uri == "gs://bucket/a b/train.csv"

    is_folder = lambda self, uri: uri in ("gs://bucket", "gs://bucket/a b")  # noqa: E731

    def match(self, pattern: str) -> list[FileInfo]:
        assert pattern.startswith("gs://"), pattern
        return []

    def list_folder(self, uri: str) -> list[str]:
        return {"gs://bucket": ["a b/"], "gs://bucket/a b": ["train.csv"]}.get(uri, [])

    def open(self, uri: str) -> Any:
        return io.BytesIO(TABLE)

    def size(self, uri: str) -> int:
        return len(TABLE)


def test_uris_of_object_stores(tmp_path: Path) -> None:
    (found,) = describe_inputs(Bucket(), ManifestConfig(input=("train=gs://bucket/a b/train.csv",)))
    assert (found.split, found.base) == ("train", "gs://bucket/a b")
    for wrong, said in {
        "gs://bucket/a b/trian.csv": "did you mean 'train.csv'",
        "gs://bucket/a  b/x/train.csv": "did you mean 'a b'",
        "train=gs://bukket/x.csv": "no such file or folder: gs://bukket/x.csv",
        "gs://bucket/a b/*.jpg": "holds train.csv",
    }.items():
        with pytest.raises(ConfigError) as caught:
            describe_inputs(Bucket(), ManifestConfig(input=(wrong,)))
        assert said in str(caught.value)


class Web(LocalFiles):
    """Web addresses: files only."""

    def is_file(self, uri: str) -> bool:
        return uri == "https://host/data.csv?key=[1]"

    def is_folder(self, uri: str) -> bool:
        return False

    def open(self, uri: str) -> Any:
        return io.BytesIO(TABLE)


def test_web_addresses_have_no_folders_and_no_globs() -> None:
    config = ManifestConfig(input=("https://host/data.csv?key=[1]",), images="https://host/images", format="csv")
    assert describe_inputs(Web(), config)[0].base == "https://host/images"
    with pytest.raises(ConfigError, match="there is no such file: https://host/other"):
        describe_inputs(Web(), ManifestConfig(input=("x=https://host/other?a=*",)))


COLUMNS = [f"{part}_column" for part in ("image", "label", "split", "group", "mask", "sequence")]


@pytest.mark.parametrize("option", COLUMNS)
def test_an_option_that_names_a_column_is_refused_where_no_input_can_have_one(place: Path, option: str) -> None:
    write_files(place, {"coco.json": b'{"images": [], "annotations": [], "categories": []}'})
    write_files(
        place, {"yolo/classes.txt": b"fox\n", "yolo/images/a.jpg": b"x", "yolo/labels/a.txt": b"0 0.5 0.5 1 1\n"}
    )
    for given in ("photos", "fruit/*.jpg", "coco.json", "yolo"):
        said = told(InputSpec(given), **{option: "patient"})
        assert said.startswith(f"--{option} patient: {given} (format "), said
        assert "no columns" in said


@pytest.mark.parametrize("option", COLUMNS)
def test_an_option_that_names_a_column_needs_one_input_that_has_it(place: Path, option: str) -> None:
    write_files(place, {"named.csv": b"image,patient\na.jpg,7\n"})
    assert len(sources(InputSpec("photos"), InputSpec("named.csv"), **{option: "patient"})) == 2


SAYING = {
    "label_separator": "|",
    "box_format": "xywh",
    "box_units": "pixels",
    "yolo_lines": "outline",
    "annotator": "first",
}
USING = {
    "plain.csv": {"label_separator"},
    "boxed.csv": {"label_separator", "box_format", "box_units"},
    "boxed.txt": {"label_separator", "box_format", "box_units"},
    "yolo": {"box_units", "yolo_lines"},
    "photos": {"label_separator"},
    "coco.json": {"label_separator"},
    "tasks.json": {"label_separator", "annotator"},
}


@pytest.mark.parametrize("option", SAYING)
@pytest.mark.parametrize("given", USING)
def test_an_option_that_says_nothing_of_any_input_is_refused(place: Path, given: str, option: str) -> None:
    write_files(
        place,
        {
            "plain.csv": b"image,label\na.jpg,7\n",
            "boxed.csv": b'image,class,bbox\na.jpg,fox,"[30, 20, 5, 6]"\n',
            "boxed.txt": b"a.jpg 1,2,30,40,0\n",
            "coco.json": b'{"images": [], "annotations": [], "categories": []}',
            "tasks.json": b'[{"data": {"image": "a.jpg"}, "annotations": [{"result": []}]}]',
            "yolo/classes.txt": b"fox\n",
            "yolo/labels/a.txt": b"0 0.5 0.5 0.1 0.1\n",
            "yolo/images/a.jpg": b"x",
        },
    )
    if option in USING[given]:
        assert len(sources(InputSpec(given), **{option: SAYING[option]})) == 1
        return
    said = told(InputSpec(given), **{option: SAYING[option]})
    assert said.startswith(f"--{option} {SAYING[option]}: {given} (format "), said
    assert said.endswith(": leave the option out")
    assert len(sources(InputSpec(given))) == 1


def test_columns_of_boxes_can_be_passed_over_where_a_table_has_none(place: Path) -> None:
    write_files(place, {"plain.csv": b"image,label\na.jpg,7\n"})
    assert len(sources(InputSpec("plain.csv"), box_format="none")) == 1
    assert "no numbers of boxes" in told(InputSpec("photos"), box_format="none")
