"""WebDataset's tar shards: the contract of formats, and what the members of a sample become."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.core.account import KEYS
from beam_tfrecord.core.elements import Member
from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests import detect_format
from beam_tfrecord.manifests.formats.webdataset import WebDatasetFormat
from beam_tfrecord.manifests.inputs import describe_inputs
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.values import InputSpec
from beam_tfrecord.storage import Storage
from tests.annotation_tools import account_of, read_items
from tests.contracts import ManifestFormatContract, Sample, read, rejects_of, rows_of
from tests.local_files import LocalFiles
from tests.samples import draw_shape, jpeg

JPEG = jpeg(draw_shape("circle", 1, 32, 24).image)
OTHER = jpeg(draw_shape("square", 2, 32, 24).image)


def write(path: Path, members: Sequence[tuple[str, bytes]]) -> Path:
    """A tar as webdataset.TarWriter writes it: the members of a sample one after the other."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def row(path: Path, name: str, data: bytes, **fields: Any) -> tuple[str, Mapping[str, Any]]:
    member = Member(str(path), (name,), path.read_bytes().index(data), len(data))
    return f"{path}!/{name}", {"image": name, "member": member, **fields}


class TestWebDataset(ManifestFormatContract):
    format = WebDatasetFormat()

    def sample(self, folder: Path) -> Sample:
        members = [("0.cls", b"7"), ("0.jpg", JPEG), ("1.cls", b"cat"), ("1.txt", b"a cat"), ("1.jpg", OTHER)]
        path = write(folder / "a-000.tar", members)
        rows = [row(path, "0.jpg", JPEG, label="7"), row(path, "1.jpg", OTHER, label="cat", captions=["a cat"])]
        return Sample(str(path), rows)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        members = [pair for name in names for pair in ((name, JPEG), (name.removesuffix("jpg") + "cls", b"1"))]
        return Sample(str(write(folder / "a.tar", members)), [])

    def damaged(self, folder: Path) -> Sample:
        members = [("0.jpg", JPEG), ("0.cls", b"1"), ("1.cls", b"1"), ("2.jpg", OTHER), ("2.json", b"{")]
        path = write(folder / "a.tar", members)
        rejects = [(f"{path}!/{name}", "bad_row") for name in ("1.cls", "2.jpg")]
        return Sample(str(path), [row(path, "0.jpg", JPEG, label="1")], rejects)

    def empty(self, folder: Path) -> Sample:
        return Sample(str(write(folder / "a.tar", [])), [])


@pytest.mark.parametrize(
    ("members", "fields"),
    [
        ({"json": b'{"label": 3, "caption": "x", "age": 5}'}, {"label": "3", "captions": ["x"]}),
        ({"cls": b"4\n", "json": b'{"label": 3}'}, {"label": "4"}),
        ({"txt": "ein Übel".encode()}, {"captions": ["ein Übel"]}),
        ({"cls": b"4", "seg.png": b"x", "npy": b"x"}, {"label": "4"}),
    ],
)
def test_members_of_a_sample_are_its_label_caption_and_columns(
    tmp_path: Path, members: dict[str, bytes], fields: dict[str, Any]
) -> None:
    path = write(tmp_path / "a.tar", [("k.jpg", JPEG), *((f"k.{field}", data) for field, data in members.items())])
    assert detect_format(LocalFiles(), str(path)) == "webdataset"
    items = read(WebDatasetFormat(), Sample(str(path), []))
    ((_, found),) = rows_of(items)
    assert {name: value for name, value in found.items() if name not in ("image", "member")} == fields
    assert Storage().read("", found["member"]) == JPEG
    assert not rejects_of(items)


@pytest.mark.parametrize(
    "members",
    [
        [("a.jpg", JPEG), ("a.txt", b"0 0.5 0.5 0.1 0.1\n")],
        [("a.jpg", JPEG), ("a.json", json.dumps({"shapes": [], "imagePath": "a.jpg"}).encode())],
        [("cat/a.jpg", JPEG), ("dog/b.jpg", OTHER)],
        [("labels.csv", b"image,label\na.jpg,x\n"), ("a.jpg", JPEG)],
    ],
)
def test_other_archives_are_not_taken_for_samples(tmp_path: Path, members: list[tuple[str, bytes]]) -> None:
    assert detect_format(LocalFiles(), str(write(tmp_path / "a.tar", members))) == "archive"


def test_shards_are_named_with_braces(tmp_path: Path) -> None:
    for number in (8, 9, 10):
        write(tmp_path / f"t-{number:03d}.tar", [(f"{number}.jpg", JPEG), (f"{number}.cls", b"1")])
    sources = describe_inputs(LocalFiles(), _config(f"{tmp_path}/t-{{008..010}}.tar"))
    assert [Path(source.uri).name for source in sources] == ["t-008.tar", "t-009.tar", "t-010.tar"]
    sources = describe_inputs(LocalFiles(), _config(f"val={tmp_path}/t-{{008,010}}.tar"))
    assert [(Path(source.uri).name, source.split) for source in sources] == [("t-008.tar", "val"), ("t-010.tar", "val")]
    with pytest.raises(ConfigError, match=r"t-011\.tar"):
        describe_inputs(LocalFiles(), _config(f"{tmp_path}/t-{{010..011}}.tar"))


def _config(place: str) -> ManifestConfig:
    return ManifestConfig(input=(InputSpec(place),))


@pytest.mark.parametrize(
    ("text", "label"),
    [('{"label": ["a", 2]}', ["a", "2"]), ('["a", "b"]', ["a", "b"]), ("7", "7"), ('{"label": null}', "")],
)
def test_labels_in_the_json_of_a_sample_are_all_read(text: str, label: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", [("0.jpg", JPEG), ("0.json", text.encode())])
    assert [fields["label"] for _, fields in rows_of(read(WebDatasetFormat(), Sample(str(path), [])))] == [label]


def test_what_cannot_be_the_label_of_a_sample_is_a_reject(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", [("0.jpg", JPEG), ("0.json", b'{"label": {"id": 3}}')])
    assert rejects_of(read(WebDatasetFormat(), Sample(str(path), []))) == [(f"{path}!/0.jpg", "bad_row")]


def test_a_label_that_an_option_names_and_a_sample_does_not_have_is_empty_which_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", [("0.jpg", JPEG), ("0.json", b'{"kind": "x"}')])
    _, (found,) = read_items(WebDatasetFormat(), path, label_column="species")
    assert found.fields["label"] == ""


def test_keys_of_the_json_of_samples_are_read_or_named(tmp_path: Path) -> None:
    members = [("0.jpg", JPEG), ("0.json", b'{"label": 1, "bbox": [1, 2, 3, 4], "url": "x"}'), ("1.jpg", OTHER)]
    path = write(tmp_path / "a.tar", [*members, ("1.json", b'{"caption": ["a", "b"]}')])
    account = account_of(WebDatasetFormat(), path)
    assert account.found[KEYS] == 4
    assert account.uses(KEYS, "read") == 2
    assert {reason: told.example for reason, told in account.named[KEYS].items()} == {
        "looks like boxes": "bbox",
        "not asked for": "url",
    }


@pytest.mark.parametrize("option", ["id_column", "split_column", "group_column"])
def test_a_key_that_an_option_names_must_be_in_the_json_of_some_sample(option: str, tmp_path: Path) -> None:
    members = [("0.jpg", JPEG), ("0.json", b'{"patient": "a"}'), ("1.jpg", OTHER)]
    path = write(tmp_path / "a.tar", members)
    _, rows = read_items(WebDatasetFormat(), path, **{option: "patient"})
    assert [row.fields.get(option.removesuffix("_column")) for row in rows] == ["a", None]
    with pytest.raises(ManifestError, match=rf"--{option} patients: .*did you mean 'patient'"):
        read_items(WebDatasetFormat(), path, **{option: "patients"})
