"""Hugging Face: saved datasets, Parquet shards with pictures in their cells, and metadata files among images."""

from __future__ import annotations

import pickle
import random
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import AmbiguousManifestError, BeamTfrecordError, ConfigError, ManifestError
from beam_tfrecord.manifests import detect_format
from beam_tfrecord.manifests.archives.members import read_member
from beam_tfrecord.manifests.formats.huggingface import HuggingFaceFormat
from beam_tfrecord.manifests.formats.parquet import ParquetFormat
from beam_tfrecord.storage import Storage
from tests.annotation_tools import pixels, read_items, rejects, write
from tests.contracts import ManifestFormatContract, Sample
from tests.end_to_end.datasets import conversion, converted, records, texts
from tests.hugging_face import (
    IMAGE,
    TEXT,
    WHOLE,
    classes,
    list_of,
    parquet,
    pictures,
    saved,
    saved_dict,
    sequence_of,
    struct,
    table,
)
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes, png

LABEL = classes("owl", "fox", "hen")  # in no alphabetical order


def photo(number: int) -> bytes:
    return jpeg(painted_boxes(60, 40, [(number, 5, 20 + number, 30)]))


def labelled(*labels: int) -> pa.Table:
    own = [photo(number) for number in range(len(labels))]
    return table({"image": (IMAGE, pictures(*own)), "label": (LABEL, list(labels))})


def rows_in(manifest: Any, path: Path, **options: Any) -> list[dict[str, Any]]:
    return [dict(item.fields) for item in read_items(manifest, path, **options)[1] if isinstance(item, Row)]


class TestHuggingFace(ManifestFormatContract):
    format = HuggingFaceFormat()

    def write(self, folder: Path, names: Sequence[str], labels: Sequence[int]) -> str:
        """Cells that hold nothing but the path of a file."""
        cells = [{"bytes": None, "path": name} for name in names]
        return str(saved(folder, table({"image": (IMAGE, cells), "label": (LABEL, labels)}), shards=2))

    def sample(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg"], [0, 1, 2])
        write(folder / ".DS_Store", "junk")
        places = [(0, 1), (0, 2), (1, 1)]
        rows = [
            (f"{uri}/data-{shard:05}-of-00002.arrow:{row}", {"image": f"{name}.jpg", "label": label})
            for (shard, row), name, label in zip(places, "abc", ("owl", "fox", "hen"), strict=True)
        ]
        return Sample(uri, rows, ignored=1)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names, [0] * len(names)), [])

    def damaged(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "", "d.jpg"], [0, 3, 0, 2])
        first, second = (f"{uri}/data-0000{number}-of-00002.arrow" for number in (0, 1))
        rows = [
            (f"{first}:1", {"image": "a.jpg", "label": "owl"}),
            (f"{second}:2", {"image": "d.jpg", "label": "hen"}),
        ]
        return Sample(uri, rows, [(f"{first}:2", "unknown_category"), (f"{second}:1", "bad_row")])

    def empty(self, folder: Path) -> Sample:
        return Sample(self.write(folder, [], []), [])


SHARDS: dict[str, dict[str, Any]] = {
    "as_datasets_writes_it": {},
    "compressed": {"compression": "snappy", "use_dictionary": True},
    "zstd_pages": {"compression": "zstd", "data_page_version": "2.0"},
    "dictionary": {"compression": "none", "use_dictionary": True},
    "delta": {"compression": "none", "column_encoding": {"image.bytes": "DELTA_LENGTH_BYTE_ARRAY"}},
}


@pytest.mark.parametrize("kind", SHARDS)
def test_pictures_in_parquet_are_stored_as_they_are(tmp_path: Path, kind: str) -> None:
    shard = parquet(tmp_path / "in/a.parquet", labelled(2, 0, 1, 0, 2), **SHARDS[kind])
    converted(shard, tmp_path / "out")
    found = {record["image/filename"][0].decode(): record for record in records(tmp_path / "out")}
    assert {name: record["image/encoded"][0] for name, record in found.items()} == {
        f"p{number}.jpg": photo(number) for number in range(5)
    }
    assert [texts(found[f"p{number}.jpg"]) for number in range(5)] == [["hen"], ["owl"], ["fox"], ["owl"], ["hen"]]
    told = conversion(tmp_path / "out")
    assert told["labels"] == ["owl", "fox", "hen"]  # in the order of the schema
    assert [found[f"p{number}.jpg"]["image/class/label"][0] for number in range(5)] == [2, 0, 1, 0, 2]


@pytest.mark.parametrize("kind", SHARDS)
def test_what_travels_of_a_picture_is_its_place(tmp_path: Path, kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (80, 100, 3), np.uint8)
    large = [png(Image.fromarray(noise + number)) for number in range(3)]
    content = table({"image": (IMAGE, pictures(*large, large[0]))})
    rows = rows_in(ParquetFormat(), parquet(tmp_path / "a.parquet", content, **SHARDS[kind]))
    assert [read_member(Storage(), row["member"]) for row in rows] == [*large, large[0]]
    assert all(len(pickle.dumps(row)) < 1_000 for row in rows)
    if kind == "as_datasets_writes_it":
        assert all(row["member"].container is None for row in rows)


def test_saved_datasets_keep_splits_classes_and_bytes(tmp_path: Path) -> None:
    saved_dict(tmp_path / "in", train=labelled(0, 1, 2), validation=labelled(1))
    assert detect_format(LocalFiles(), str(tmp_path / "in")) == "huggingface"
    summary = converted(tmp_path / "in", tmp_path / "out")
    assert summary.splits == {"train": 3, "validation": 1}
    (record,) = records(tmp_path / "out", "validation")
    assert (record["image/encoded"], texts(record)) == ([photo(0)], ["fox"])
    assert conversion(tmp_path / "out")["labels"] == ["owl", "fox", "hen"]
    assert conversion(tmp_path / "out")["inputs"][0]["used"]["files"] == {"manifest": 7}


def test_an_arrow_file_alone_is_read(tmp_path: Path) -> None:
    folder = saved(tmp_path / "in", labelled(2, 1))
    path = folder / "data-00000-of-00001.arrow"
    assert detect_format(LocalFiles(), str(path)) == "huggingface"
    assert [row["label"] for row in rows_in(HuggingFaceFormat(), path)] == ["hen", "fox"]


def test_an_arrow_file_of_the_other_form_is_read(tmp_path: Path) -> None:
    content = labelled(0, 2)
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), content.schema) as sink:
        sink.write_table(content)
    rows = rows_in(HuggingFaceFormat(), tmp_path / "a.arrow")
    assert [read_member(Storage(), row["member"]) for row in rows] == [photo(0), photo(1)]


def test_batches_that_are_compressed_say_so(tmp_path: Path) -> None:
    content = labelled(0, 2)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(str(tmp_path / "a.arrow"), content.schema, options=options) as sink:
        sink.write_table(content)
    with pytest.raises(ManifestError, match="compressed"):
        rows_in(HuggingFaceFormat(), tmp_path / "a.arrow")


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_a_column_of_bytes_holds_pictures_too(tmp_path: Path, kind: Any) -> None:
    content = pa.table({"image": pa.array([photo(0), photo(1)], kind), "label": ["fox", "hen"]})
    rows = rows_in(ParquetFormat(), parquet(tmp_path / "a.parquet", content))
    assert [(read_member(Storage(), row["member"]), row["label"]) for row in rows] == [
        (photo(0), "fox"),
        (photo(1), "hen"),
    ]


# ---------------------------------------------------------------------------------------------------------------------
# The Hub


def test_shards_of_the_hub_are_one_dataset(tmp_path: Path) -> None:
    write(tmp_path / "in/README.md", "---\ndataset_info:\n---\n")
    write(tmp_path / "in/.gitattributes", "*.parquet filter=lfs\n")
    for number in range(2):
        parquet(tmp_path / f"in/data/train-{number:05}-of-00002-1f3a.parquet", labelled(number, 2))
    parquet(tmp_path / "in/data/test-00000-of-00001.parquet", labelled(0))
    summary = converted(tmp_path / "in", tmp_path / "out")
    assert summary.splits == {"test": 1, "train": 4}
    assert len({record["image/source_id"][0] for record in records(tmp_path / "out")}) == 5
    told = conversion(tmp_path / "out")
    assert (told["labels"], told["inputs"][0]["format"]) == (["owl", "fox", "hen"], "huggingface")
    assert told["inputs"][0]["named"]["files"]["junk"]["count"] == 1


def test_shards_in_folders_of_splits_have_pictures_of_their_own(tmp_path: Path) -> None:
    """The names of files are the same in both folders, as the Hub has them after its conversion."""
    box = struct({"bbox": list_of(list_of(WHOLE, 4)), "category": list_of(classes("b", "a"))})
    for split, left in (("train", 1), ("validation", 9)):
        cells = [{"bbox": [[left, 5, 19, 25], [50, 30, 9, 9]], "category": [1, 0]}]
        content = table({"image": (IMAGE, pictures(photo(left), path=None)), "objects": (box, cells)})
        parquet(tmp_path / f"in/default/{split}/0000.parquet", content)
    converted(tmp_path / "in", tmp_path / "out")
    for split, left in (("train", 1), ("validation", 9)):
        (record,) = records(tmp_path / "out", split)
        assert record["image/encoded"] == [photo(left)]
        assert texts(record, "image/object/class/text") == ["a", "b"]
        assert record["image/object/bbox/xmax"] == pytest.approx([(left + 19) / 60, 59 / 60])
        assert record["image/object/class/label"] == [2, 1]


def test_shards_that_are_named_by_a_glob_keep_their_splits(tmp_path: Path) -> None:
    for split, labels in (("train", (0, 1)), ("test", (2,))):
        parquet(tmp_path / f"data/{split}-00000-of-00001.parquet", labelled(*labels))
    summary = converted(str(tmp_path / "data/*.parquet"), tmp_path / "out")
    assert summary.splits == {"test": 1, "train": 2}
    given = converted((f"held_out={tmp_path}/data/test-00000-of-00001.parquet",), tmp_path / "given")
    assert given.splits == {"held_out": 1}


def test_names_of_tables_without_pictures_tell_no_split(tmp_path: Path) -> None:
    content = pa.table({"image": ["a.jpg"], "label": ["x"]})
    assert "split" not in rows_in(ParquetFormat(), parquet(tmp_path / "test-00000-of-00001.parquet", content))[0]


def test_a_shard_that_is_missing_is_named(tmp_path: Path) -> None:
    parquet(tmp_path / "train-00000-of-00002.parquet", labelled(0))
    with pytest.raises(ManifestError, match=r"number 00001 is missing.*glob"):
        rows_in(HuggingFaceFormat(), tmp_path)


def test_several_datasets_in_one_folder_are_asked_about(tmp_path: Path) -> None:
    for name in ("large", "small"):
        parquet(tmp_path / f"{name}/train-00000-of-00001.parquet", labelled(0))
    with pytest.raises(AmbiguousManifestError, match=r"several datasets.*--input .*/large or --input .*/small"):
        rows_in(HuggingFaceFormat(), tmp_path)


def test_shards_with_other_classes_are_refused(tmp_path: Path) -> None:
    parquet(tmp_path / "train-00000-of-00001.parquet", labelled(0))
    other = table({"image": (IMAGE, pictures(photo(0))), "label": (classes("fox", "owl"), [0])})
    parquet(tmp_path / "test-00000-of-00001.parquet", other)
    with pytest.raises(ManifestError, match="other columns or classes"):
        rows_in(HuggingFaceFormat(), tmp_path)


@pytest.mark.parametrize("absent", ["data-00000-of-00001.arrow", "state.json"])
def test_a_saved_dataset_that_is_not_whole_is_refused(tmp_path: Path, absent: str) -> None:
    saved_dict(tmp_path, train=labelled(0), test=labelled(1))
    (tmp_path / "test" / absent).unlink()
    with pytest.raises(ManifestError, match=rf"{absent}.*(not there|missing)"):
        rows_in(HuggingFaceFormat(), tmp_path)


def test_a_choice_of_rows_beside_the_data_is_refused(tmp_path: Path) -> None:
    saved(tmp_path, labelled(0))
    write(tmp_path / "state.json", {"_data_files": [{"filename": "a"}], "_indices_data_files": [{"filename": "i"}]})
    with pytest.raises(ManifestError, match=r"flatten_indices\(\)"):
        rows_in(HuggingFaceFormat(), tmp_path)


@pytest.mark.parametrize("length", [1, 100, 700])
def test_an_arrow_file_that_ends_early_is_an_error(tmp_path: Path, length: int) -> None:
    path = saved(tmp_path, labelled(0, 1)) / "data-00000-of-00001.arrow"
    path.write_bytes(path.read_bytes()[:-length])
    try:
        rows = rows_in(HuggingFaceFormat(), tmp_path)
    except ManifestError as error:
        assert "data-00000-of-00001.arrow" in str(error)  # noqa: PT017 - the end marker may be what is missing
    else:
        assert len(rows) == 2


@pytest.mark.parametrize("kind", ["arrow", "parquet", "compressed"])
def test_damage_anywhere_is_an_error_or_a_reject(tmp_path: Path, kind: str) -> None:
    """Whatever bytes are changed or cut off; Arrow itself trusts the places that a file states."""
    content = labelled(0, 1, 2)
    if kind == "arrow":
        path = saved(tmp_path, content) / "data-00000-of-00001.arrow"
    else:
        options = SHARDS["compressed"] if kind == "compressed" else {}
        path = parquet(tmp_path / "a.parquet", content, **options)
    manifest = HuggingFaceFormat() if kind == "arrow" else ParquetFormat()
    whole = path.read_bytes()
    odd = random.Random(kind)
    outcomes = set()
    for _ in range(150):
        data = bytearray(whole)
        if odd.random() < 0.3:
            del data[odd.randrange(len(data)) :]
        else:
            data[odd.randrange(len(data))] = odd.randrange(256)
        path.write_bytes(data)
        try:
            for row in rows_in(manifest, path):
                read_member(Storage(), row["member"])
            outcomes.add("read")
        except BeamTfrecordError as error:
            outcomes.add(type(error).__name__)
    assert {"read", "ManifestError"} <= outcomes


# ---------------------------------------------------------------------------------------------------------------------
# Columns


def test_classes_without_a_usual_name_are_labels_when_they_are_the_only_ones(tmp_path: Path) -> None:
    content = table({"img": (IMAGE, pictures(photo(0))), "fine": (LABEL, [1])})
    assert rows_in(ParquetFormat(), parquet(tmp_path / "a.parquet", content))[0]["label"] == "fox"
    more = table({"img": (IMAGE, pictures(photo(0))), "fine": (LABEL, [1]), "coarse": (classes("x"), [0])})
    with pytest.raises(AmbiguousManifestError, match="--label_column fine"):
        rows_in(ParquetFormat(), parquet(tmp_path / "b.parquet", more))
    assert rows_in(ParquetFormat(), tmp_path / "b.parquet", label_column="coarse")[0]["label"] == "x"


def test_a_class_that_is_minus_one_is_no_label(tmp_path: Path) -> None:
    assert rows_in(ParquetFormat(), parquet(tmp_path / "a.parquet", labelled(-1)))[0]["label"] == ""


@pytest.mark.parametrize("label", [3, -2])
def test_a_class_that_the_schema_does_not_name_is_a_reject(tmp_path: Path, label: int) -> None:
    ((code, message),) = rejects(read_items(ParquetFormat(), parquet(tmp_path / "a.parquet", labelled(label)))[1])
    assert (code, "3 classes" in message) == ("unknown_category", True)


def test_lists_of_classes_are_several_labels(tmp_path: Path) -> None:
    content = table({"image": (IMAGE, pictures(photo(0))), "tags": (list_of(LABEL), [[2, 0]])})
    assert rows_in(ParquetFormat(), parquet(tmp_path / "a.parquet", content))[0]["label"] == ["hen", "owl"]


@pytest.mark.parametrize("form", ["struct", "sequence", "list"])
def test_objects_have_the_names_of_their_classes(tmp_path: Path, form: str) -> None:
    one = {"bbox": list_of(WHOLE), "categories": classes("hat", "dog")}
    boxes, names = [[1, 2, 30, 20], [40, 3, 15, 30]], [1, 0]
    if form == "list":
        feature = list_of(struct(one))
        cell: Any = [{"bbox": box, "categories": name} for box, name in zip(boxes, names, strict=True)]
    else:
        feature = sequence_of(one) if form == "sequence" else struct({name: list_of(own) for name, own in one.items()})
        cell = {"bbox": boxes, "categories": names}
    content = table({"image": (IMAGE, pictures(photo(0), photo(1))), "objects": (feature, [cell, None])})
    for path in (saved(tmp_path / "saved", content), parquet(tmp_path / "a.parquet", content)):
        source, items = read_items(ParquetFormat() if path.is_file() else HuggingFaceFormat(), path, box_format="xywh")
        first, second = [item.fields["boxes"] for item in items if isinstance(item, Row)]
        assert [(box["class"], list(box["bbox_xywh"])) for box in first] == [("dog", boxes[0]), ("hat", boxes[1])]
        assert second == []
        assert source.labels == ("hat", "dog")


def test_a_column_of_masks_is_read_with_its_pictures(tmp_path: Path) -> None:
    mask = np.zeros((40, 60), np.uint8)
    mask[5:30, 0:20] = 3
    columns = {
        "pixel_values": (IMAGE, pictures(photo(0), path=None)),
        "label": (IMAGE, pictures(png(Image.fromarray(mask)), path=None)),
    }
    for path in (saved(tmp_path / "saved", table(columns)), parquet(tmp_path / "a.parquet", table(columns))):
        converted(path, tmp_path / f"out_{path.name}")
        (record,) = records(tmp_path / f"out_{path.name}")
        assert np.array_equal(pixels(record["image/segmentation/class/encoded"][0]), mask)
        assert record["image/encoded"] == [photo(0)]


def test_texts_are_captions(tmp_path: Path) -> None:
    columns = {"image": (IMAGE, pictures(photo(0))), "text": (TEXT, ["a fox in the snow"])}
    assert rows_in(ParquetFormat(), parquet(tmp_path / "a.parquet", table(columns)))[0]["captions"] == [
        "a fox in the snow"
    ]
    several = {"image": (IMAGE, pictures(photo(0))), "caption": (list_of(TEXT), [["one", "two"]])}
    assert rows_in(ParquetFormat(), parquet(tmp_path / "b.parquet", table(several)))[0]["captions"] == ["one", "two"]


def test_pictures_of_two_columns_are_asked_about(tmp_path: Path) -> None:
    content = table({"before": (IMAGE, pictures(photo(0))), "after": (IMAGE, pictures(photo(1)))})
    path = parquet(tmp_path / "a.parquet", content)
    with pytest.raises(AmbiguousManifestError, match="--image_column before"):
        rows_in(ParquetFormat(), path)
    (row,) = rows_in(ParquetFormat(), path, image_column="after")
    assert read_member(Storage(), row["member"]) == photo(1)


def test_a_label_that_is_a_picture_is_explained(tmp_path: Path) -> None:
    content = table({"image": (IMAGE, pictures(photo(0))), "seg": (IMAGE, pictures(photo(1)))})
    with pytest.raises(ConfigError, match="is it --mask_column"):
        rows_in(ParquetFormat(), parquet(tmp_path / "a.parquet", content), label_column="seg")


def test_metadata_of_the_schema_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    content = labelled(0).replace_schema_metadata({"huggingface": "{"})
    with pytest.raises(ManifestError, match="'huggingface' of its schema is no JSON"):
        rows_in(ParquetFormat(), parquet(tmp_path / "a.parquet", content))


def test_a_cell_with_neither_bytes_nor_path_is_a_reject(tmp_path: Path) -> None:
    content = table({"image": (IMAGE, [*pictures(photo(0)), None, {"bytes": None, "path": None}])})
    for path in (saved(tmp_path / "saved", content), parquet(tmp_path / "a.parquet", content)):
        items = read_items(ParquetFormat() if path.is_file() else HuggingFaceFormat(), path)[1]
        assert [code for code, _ in rejects(items)] == ["bad_row", "bad_row"]


# ---------------------------------------------------------------------------------------------------------------------
# Folders of images with a metadata file


def test_texts_of_a_metadata_file_are_captions(tmp_path: Path) -> None:
    write(tmp_path / "in/a.jpg", photo(0))
    write(tmp_path / "in/metadata.csv", 'file_name,text\na.jpg,"a fox, and a hen"\n')
    converted(tmp_path / "in", tmp_path / "out")
    (record,) = records(tmp_path / "out")
    assert texts(record, "image/caption") == ["a fox, and a hen"]


def test_a_metadata_file_may_name_its_columns_of_files(tmp_path: Path) -> None:
    write(tmp_path / "in/images/a.jpg", photo(0))
    mask = np.full((40, 60), 2, np.uint8)
    write(tmp_path / "in/masks/a.png", png(Image.fromarray(mask)))
    write(
        tmp_path / "in/metadata.jsonl",
        '{"photo_file_name": "images/a.jpg", "mask_file_name": "masks/a.png", "label": "fox"}\n',
    )
    converted(tmp_path / "in", tmp_path / "out")
    (record,) = records(tmp_path / "out")
    assert texts(record) == ["fox"]
    assert np.array_equal(pixels(record["image/segmentation/class/encoded"][0]), mask)


def test_texts_of_other_tables_are_not_taken_for_captions(tmp_path: Path) -> None:
    content = pa.table({"image": ["a.jpg"], "text": ["STOP"]})
    assert "captions" not in rows_in(ParquetFormat(), parquet(tmp_path / "signs.parquet", content))[0]


@pytest.mark.parametrize("kind", ["saved", "as_datasets_writes_it", "compressed"])
def test_datasets_in_an_archive_are_read_where_they_lie(tmp_path: Path, kind: str) -> None:
    mask = png(Image.fromarray(np.full((40, 60), 7, np.uint8)))
    content = table({"image": (IMAGE, pictures(photo(4), photo(5))), "mask": (IMAGE, pictures(mask, mask))})
    if kind == "saved":
        saved_dict(tmp_path / "top/name", train=content)
    else:
        parquet(tmp_path / "top/name/data/train-00000-of-00001.parquet", content, **SHARDS[kind])
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(tmp_path.glob("top/**/*.*")):
            archive.write(path, path.relative_to(tmp_path / "top"))
    converted(tmp_path / "a.zip", tmp_path / "out")
    found = records(tmp_path / "out", "train")
    assert {record["image/encoded"][0] for record in found} == {photo(4), photo(5)}
    assert all(pixels(record["image/segmentation/class/encoded"][0]).max() == 7 for record in found)


def attributed(smiling: Sequence[Any], young: Sequence[Any]) -> pa.Table:
    """Pictures with a column for each attribute, as CelebA has them on the Hub."""
    pictures = [{"bytes": photo(number), "path": None} for number in range(len(smiling))]
    return pa.table({"image": pictures, "smiling": smiling, "young": young, "age": [30] * len(smiling)})


def stored(folder: Path, kind: str, *tables: pa.Table) -> Path:
    folder.mkdir()
    for number, table in enumerate(tables):
        name = f"train-{number:05}-of-{len(tables):05}.parquet" if kind == "parquet" else "data.arrow"
        if kind == "parquet":
            pq.write_table(table, folder / name)
        else:
            with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
    return folder if kind == "parquet" else folder / "data.arrow"


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("smiling", "young", "labels", "told"),
    [
        ([True, False, False], [False, True, True], ["smiling", "young", "young"], False),
        ([1, 0, 1], [1, 0, 0], [["smiling", "young"], [], "smiling"], True),
    ],
)
def test_columns_of_zeros_and_ones_are_classes_as_in_csv(
    tmp_path: Path, kind: str, smiling: Sequence[Any], young: Sequence[Any], labels: Sequence[Any], told: bool
) -> None:
    place = stored(tmp_path / "in", kind, attributed(smiling, young))
    source, items = read_items(HuggingFaceFormat(), place)
    assert [item.fields["label"] for item in items] == labels
    assert [code for code, _ in source.surprises] == ["doubtful_reading"] * told


def test_the_first_shard_tells_which_columns_are_classes(tmp_path: Path) -> None:
    shards = [attributed([1, 0], [0, 1]), attributed([0, 0], [0, 0]), attributed([1], [1])]
    _, items = read_items(HuggingFaceFormat(), stored(tmp_path / "in", "parquet", *shards))
    assert [item.fields["label"] for item in items] == ["smiling", "young", [], [], ["smiling", "young"]]


def test_numbers_of_other_kinds_are_no_classes(tmp_path: Path) -> None:
    for smiling, young in (([2, 0], [0, 1]), ([None, 0], [0, 1]), ([0.5, 0.0], [0.0, 1.0])):
        place = stored(tmp_path / str(smiling[0]), "parquet", attributed(smiling, young))
        source, items = read_items(HuggingFaceFormat(), place)
        assert not any("label" in item.fields for item in items)
        assert [code for code, _ in source.surprises] == ["columns_not_read"]
