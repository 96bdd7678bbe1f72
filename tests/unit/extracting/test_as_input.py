"""The format ``tfrecord``: the contract of formats, and which key of foreign records is taken for what."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.core.elements import Member, RejectedRow, Row
from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests import detect_format
from beam_tfrecord.manifests.base import Source
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord.example import encode_example
from beam_tfrecord.tools.extracting.as_input import TfrecordFormat
from tests.contracts import ManifestFormatContract, Sample, describe, read, rejects_of, rows_of
from tests.handmade import floats, texts, whole
from tests.local_files import LocalFiles
from tests.samples import draw_shape, jpeg, png
from tests.tiny_reader import frame

PICTURES = [jpeg(draw_shape("circle", seed, 32, 24).image) for seed in range(3)]
PNG = png(draw_shape("square", 1, 16, 16).image)


def write(path: Path, *records: Mapping[str, Any], packed: str = "") -> Path:
    """A file of records."""
    data = b"".join(frame(encode_example(record)) for record in records)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes({"": bytes, "gzip": gzip.compress, "zlib": zlib.compress}[packed](data))
    return path


def imagenet(number: int, name: str = "") -> dict[str, Any]:
    return {
        "image/encoded": texts(PICTURES[number]),
        "image/filename": texts(name or f"{number}.jpg"),
        "image/class/label": whole(number + 1),
        "image/class/text": texts(f"class {number}"),
        "image/height": whole(24),
        "image/width": whole(32),
    }


def row(path: Path, number: int, data: bytes, **fields: Any) -> tuple[str, dict[str, Any]]:
    """The row of a record; where its image lies is looked for in the file itself."""
    name = fields["image"]
    offset = path.read_bytes().index(data)
    member = Member(str(path), (f"{number}/{name}",), offset, len(data))
    return f"{path}:{number}", {"filename": name, "member": member, "frame": "stored", **fields}


class TestTfrecord(ManifestFormatContract):
    format = TfrecordFormat()

    def sample(self, folder: Path) -> Sample:
        place = folder / "old"
        first = write(place / "train-00000-of-00002", imagenet(0), imagenet(1))
        second = write(place / "train-00001-of-00002", imagenet(2))
        rows = [
            row(path, place, PICTURES[n], image=f"{n}.jpg", label=f"class {n}", split="train", size=(32, 24))
            for path, place, n in ((first, 0, 0), (first, 1, 1), (second, 0, 2))
        ]
        return Sample(str(place), rows)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(str(write(folder / "a.tfrecord", *(imagenet(0, name) for name in names))), [])

    def damaged(self, folder: Path) -> Sample:
        path = write(folder / "a.tfrecord", imagenet(0), imagenet(1), imagenet(2))
        data = bytearray(path.read_bytes())
        data[data.index(PICTURES[1]) + 100] ^= 1
        path.write_bytes(bytes(data) + frame(b"\xff no Example"))
        rows = [row(path, n, PICTURES[n], image=f"{n}.jpg", label=f"class {n}", size=(32, 24)) for n in (0, 2)]
        return Sample(str(path), rows, [(f"{path}:{n}", "damaged_record") for n in (1, 3)])

    def empty(self, folder: Path) -> Sample:
        return Sample(str(write(folder / "a.tfrecord")), [])


def first_row(path: Path, **options: Any) -> dict[str, Any]:
    items = read(TfrecordFormat(), Sample(str(path), [], options=options))
    assert not rejects_of(items)
    return rows_of(items)[0][1]


def source_of(path: Path, **options: Any) -> Source:
    return describe(TfrecordFormat(), Sample(str(path), [], options=options))


@pytest.mark.parametrize("packed", ["", "gzip", "zlib"])
def test_images_are_read_where_they_lie(tmp_path: Path, packed: str) -> None:
    path = write(tmp_path / "a.tfrecord", imagenet(0), imagenet(1), imagenet(2), packed=packed)
    assert detect_format(LocalFiles(), str(path)) == "tfrecord"
    items = read(TfrecordFormat(), Sample(str(path), []))
    storage = Storage()
    found = [storage.read("", item.fields["member"]) for item in items if isinstance(item, Row)]
    assert found == PICTURES


@pytest.mark.parametrize(
    ("features", "label"),
    [
        ({"image": texts(PNG), "label": whole(7)}, "7"),  # TensorFlow Datasets
        ({"image_raw": texts(PNG), "label": whole(7)}, "7"),
        ({"picture": texts(PNG), "the_class": whole(3), "n": whole(1)}, "3"),
        ({"x": texts(PNG), "target_species": texts("oak"), "score": floats(0.5)}, "oak"),
        ({"image": texts(PNG), "image_name": texts("ISIC_1"), "target": whole(1)}, "1"),  # TFRecords on Kaggle
        ({"image": texts("no image"), "jpeg_bytes": texts(PNG), "label": texts("a")}, "a"),
        ({"image": texts(PNG), "class": texts("daisy")}, "daisy"),
    ],
)
def test_keys_are_told_by_their_names_and_by_what_they_hold(
    tmp_path: Path, features: dict[str, Any], label: str
) -> None:
    fields = first_row(write(tmp_path / "a.tfrecord", features))
    assert fields["label"] == label
    assert Storage().read("", fields["member"]) == PNG


def test_keys_are_named_with_options(tmp_path: Path) -> None:
    two = {"left": texts(PNG), "right": texts(PICTURES[0]), "kind": whole(4), "label": whole(1), "patient": texts("p")}
    path = write(tmp_path / "a.tfrecord", two)
    with pytest.raises(ConfigError, match=r"left, right hold an image each.*--image_key"):
        source_of(path)
    named = {"image_key": "right", "label_key": "kind", "group_column": "patient", "id_column": "patient"}
    fields = first_row(path, **named)
    assert (fields["label"], fields["id"]) == ("4", "p")
    assert Storage().read("", fields["member"]) == PICTURES[0]
    with pytest.raises(ConfigError, match=r"--label_key kine: .*did you mean 'kind'"):
        source_of(path, image_key="left", label_key="kine")


def test_a_split_group_or_mask_that_no_record_has_is_refused_with_the_nearest(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", {**imagenet(0), "part": texts("test"), "shape": texts(PNG)})
    for flag in ("split_column", "group_column", "mask_column"):
        with pytest.raises(ConfigError, match=rf"--{flag} prt: .*did you mean 'part'"):
            source_of(path, **{flag: "prt"})
    fields = first_row(path, split_column="part", group_column="part", mask_column="shape")
    assert (fields["split"], fields["group"]) == ("test", "test")
    assert Storage().read("", fields["mask_member"]) == PNG


@pytest.mark.parametrize("flag", ["split_column", "group_column"])
def test_a_record_with_several_splits_or_groups_is_rejected_and_one_with_none_has_none(
    tmp_path: Path, flag: str
) -> None:
    path = write(tmp_path / "a.tfrecord", {**imagenet(0), "part": texts("a", "b")}, {**imagenet(1), "part": texts()})
    items = read(TfrecordFormat(), Sample(str(path), [], options={flag: "part"}))
    assert rejects_of(items) == [(f"{path}:0", "bad_row")]
    (message,) = [item.finding.message for item in items if isinstance(item, RejectedRow)]
    assert f"--{flag} part has 2 values" in message
    ((_, fields),) = rows_of(items)
    assert not {"split", "group"} & fields.keys()


def test_options_of_tables_are_told_to_say_nothing_of_records(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", imagenet(0))
    assert source_of(path).surprises == ()
    options = {"label_pattern": "(?P<label>.)", "label_separator": ",", "sequence_column": "a", "order_column": "b"}
    told = source_of(path, **options).surprises
    assert [code for code, _ in told] == ["columns_not_read"] * 4
    assert all(f"--{name} is not used" in text for name, (_, text) in zip(options, told, strict=True))


def test_records_without_an_image_are_refused_unless_columns_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", {"age": whole(3), "name": texts("x")})
    with pytest.raises(ConfigError, match=r"no feature .* holds an image \(there are age, name\).*--image_key"):
        source_of(path)


def test_a_folder_of_images_and_records_is_no_folder_of_records(tmp_path: Path) -> None:
    write(tmp_path / "f" / "a.tfrecord", imagenet(0))
    assert detect_format(LocalFiles(), str(tmp_path / "f")) == "tfrecord"
    (tmp_path / "f" / "b.jpg").write_bytes(PICTURES[0])
    assert detect_format(LocalFiles(), str(tmp_path / "f")) == "folder"


def test_a_shard_that_the_names_of_the_others_promise_is_missed(tmp_path: Path) -> None:
    write(tmp_path / "f" / "train-00001-of-00003.tfrecord", imagenet(0))
    with pytest.raises(ManifestError, match=r"train-00000-of-00003\.tfrecord: by the names of the others"):
        source_of(tmp_path / "f")


def test_files_that_are_none_of_records_are_called_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"<!DOCTYPE html><html><body>404 not found</body></html>" * 3)
    with pytest.raises(ManifestError, match="HTML page"):
        source_of(path)


def test_columns_follow_when_they_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", {**imagenet(0), "age": whole(3), "sizes": floats(1, 2.5), "more": whole(1)})
    config = ManifestConfig(input=(str(path),), columns="age:int64,sizes:float[]")
    fields = first_row(path, columns=config.columns)
    assert fields["columns"] == {"age": 3, "sizes": [1.0, 2.5]}
