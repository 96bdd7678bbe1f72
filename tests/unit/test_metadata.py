from __future__ import annotations

import io
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from beam_tfrecord.annotations.base import Feature, FeatureSpec, Schema, Vocabulary
from beam_tfrecord.annotations.keys import feature_keys
from beam_tfrecord.core.elements import Finding
from beam_tfrecord.datasets.metadata import (
    DatasetDescription,
    PublishedShard,
    dataset_files,
    dense_names,
    finding_line,
    label_map_file,
    labels_file,
    parse_spec,
    read_finding_lines,
    specs_from_json,
    tfds_name,
    tfds_notes,
)
from beam_tfrecord.datasets.metadata.labels import label_line, name_of_line
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.tfrecord import RecordWriter, shard_name
from beam_tfrecord.tfrecord.example import encode_example, encode_sequence_example

PRESETS = ("imagenet", "od", "tfds", "simple")
CATS_AND_DOGS = Vocabulary(("cat", "dog"))

Record = dict[str, Feature]

# TensorFlow Datasets uses protobuf and others in ways that these call old.
OLD_WAYS = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


# ---------------------------------------------------------------------------------------------------------------------
# Small datasets


def pixels(height: int, width: int, channels: int, dtype: Any = np.uint8) -> Any:
    top = np.iinfo(dtype).max
    values = np.random.default_rng(height * 100 + width * 10 + channels).integers(0, top, (height, width, channels))
    return values.astype(dtype)


def encoded(array: Any, form: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array).save(file, form)
    return file.getvalue()


def schema_of(
    preset: str = "imagenet", vocabulary: Vocabulary = CATS_AND_DOGS, *, raw: bool = False, is_sequence: bool = False
) -> Schema:
    return Schema((), vocabulary, preset, feature_keys(preset, raw=raw), raw=raw, is_sequence=is_sequence)


@dataclass
class Dataset:
    """A dataset to be written into a folder. records: by split, one list for each shard."""

    folder: Path
    specs: Sequence[FeatureSpec]
    records: Mapping[str, Sequence[Sequence[bytes]]]
    schema: Schema = field(default_factory=schema_of)
    compression: str = "none"
    name: str = "Fruit photos"

    def write(self) -> DatasetDescription:
        splits = {}
        for split, shards in self.records.items():
            published = []
            for index, records in enumerate(shards):
                file = self.folder / shard_name(split, index, len(shards), self.compression)
                with file.open("wb") as stream, RecordWriter(stream, self.compression) as writer:
                    for record in records:
                        writer.append(record)
                published.append(
                    PublishedShard(file.name, len(records), writer.num_bytes, writer.payload_bytes, writer.crc32c)
                )
            splits[split] = tuple(published)
        rows = sum(len(records) for shards in self.records.values() for records in shards)
        description = DatasetDescription(
            self.name, self.schema, tuple(self.specs), splits, self.compression, rows, rows, 0
        )
        for name, content in dataset_files(description).items():
            (self.folder / name).write_bytes(content)
        return description

    def load(self) -> Any:
        import tensorflow_datasets as tfds

        return tfds.builder_from_directory(str(self.folder))

    def loaded(self, split: str = "train") -> list[Any]:
        import tensorflow_datasets as tfds

        return list(tfds.as_numpy(self.load().as_dataset(split=split)))


def one_split(records: Iterable[Record]) -> dict[str, list[list[bytes]]]:
    return {"train": [[encode_example(record) for record in records]]}


LABEL = FeatureSpec("label", "int64", (), "label")


def label_records(ids: Iterable[int]) -> dict[str, list[list[bytes]]]:
    return one_split({"label": Feature("int64", [number])} for number in ids)


def image_dataset(folder: Path, images: Sequence[bytes], spec: FeatureSpec) -> Dataset:
    records = [{spec.key: Feature("bytes", [data])} for data in images]
    return Dataset(folder, [spec], one_split(records))


def description_of(**changes: Any) -> DatasetDescription:
    values: dict[str, Any] = {
        "name": "x",
        "schema": schema_of(),
        "specs": (),
        "splits": {},
        "compression": "none",
        "rows": 0,
        "source_rows": 0,
        "ignored": 0,
    }
    return DatasetDescription(**{**values, **changes})


# ---------------------------------------------------------------------------------------------------------------------
# TensorFlow Datasets


@OLD_WAYS
class TestTfds:
    @pytest.mark.parametrize("preset", PRESETS)
    def test_every_record_of_every_preset_is_loaded_with_class_names(self, tmp_path: Path, preset: str) -> None:
        import tensorflow as tf

        schema = schema_of(preset, Vocabulary(("cat", "dog"), 1 if preset == "od" else 0))
        keys = schema.keys
        specs = [
            FeatureSpec(keys["encoded"], "bytes", (), "image", channels=3, encoding="jpeg", description="the picture"),
            FeatureSpec(keys["label"], "int64", (), "label"),
            FeatureSpec(keys["source_id"], "bytes", (), "text"),
            FeatureSpec(keys["object_label"], "int64", (None,), "label"),
            FeatureSpec(keys["object_area"], "float", (None,)),
        ]
        boxes = [name for name in ("bbox", "bbox_xmin", "bbox_xmax", "bbox_ymin", "bbox_ymax") if name in keys]
        specs += [
            FeatureSpec(keys[name], "float", (None, 4) if name == "bbox" else (None,), "bbox" if name == "bbox" else "")
            for name in boxes
        ]
        images = [encoded(pixels(4 + number, 6, 3), "jpeg") for number in range(5)]
        names = ["cat", "dog", "dog", "cat", "dog"]

        def record(number: int) -> bytes:
            objects = number % 3
            features = {
                keys["encoded"]: Feature("bytes", [images[number]]),
                keys["label"]: Feature("int64", [schema.vocabulary.id_of(names[number])]),
                keys["source_id"]: Feature("bytes", [b"id%d" % number]),
                keys["object_label"]: Feature("int64", [schema.vocabulary.id_of("dog")] * objects),
                keys["object_area"]: Feature("float", [9.5] * objects),
            }
            for name in boxes:
                one = [0.125, 0.25, 0.5, 0.75] if name == "bbox" else [0.25]
                features[keys[name]] = Feature("float", one * objects)
            return encode_example(features)

        records = {"train": [[record(0), record(1)], [record(2)]], "validation": [[record(3), record(4)]]}
        dataset = Dataset(tmp_path, specs, records, schema)
        dataset.write()

        info = dataset.load().info
        assert info.name == "fruit_photos"
        assert {name: split.num_examples for name, split in info.splits.items()} == {"train": 3, "validation": 2}
        assert info.splits["train"].num_bytes == sum(len(data) for shard in records["train"] for data in shard)
        assert info.features[keys["encoded"]]._doc.desc == "the picture"
        found = dataset.loaded("train") + dataset.loaded("validation")
        assert [example[keys["source_id"]] for example in found] == [b"id%d" % number for number in range(5)]
        for number, example in enumerate(found):
            assert np.array_equal(example[keys["encoded"]], tf.io.decode_image(images[number]).numpy())
            assert info.features[keys["label"]].int2str(example[keys["label"]]) == names[number]
            flat = {**example, **{f"objects/{key}": value for key, value in example.get("objects", {}).items()}}
            objects = number % 3
            for name in boxes:
                shape = (objects, 4) if name == "bbox" else (objects,)
                assert flat[keys[name]].shape == shape
            assert list(flat[keys["object_area"]]) == [9.5] * objects
            feature = info.features
            for part in keys["object_label"].split("/") if "objects" in example else [keys["object_label"]]:
                feature = feature[part]
            assert [feature.int2str(label) for label in flat[keys["object_label"]]] == ["dog"] * objects
        assert info.supervised_keys == (keys["encoded"], keys["label"])
        ((image, label),) = dataset.load().as_dataset(split="train[:1]", as_supervised=True)
        assert image.shape == (4, 6, 3)
        assert label == schema.vocabulary.id_of("cat")

    def test_slices_and_several_shards_are_told_by_their_lengths(self, tmp_path: Path) -> None:
        ids = [[0, 1, 1], [1, 0], [0]]
        records = [[encode_example({"label": Feature("int64", [number])}) for number in shard] for shard in ids]
        dataset = Dataset(tmp_path, [LABEL], {"train": records})
        dataset.write()
        assert [example["label"] for example in dataset.loaded()] == [0, 1, 1, 1, 0, 0]
        assert [example["label"] for example in dataset.loaded("train[2:5]")] == [1, 1, 0]
        assert dataset.load().info.splits["train"].shard_lengths == [3, 2, 1]

    def test_objects_are_a_sequence_of_dicts_also_when_there_are_none(self, tmp_path: Path) -> None:
        mask = pixels(3, 5, 1)
        specs = [
            FeatureSpec("objects/bbox", "float", (None, 4), "bbox"),
            FeatureSpec("objects/keypoints/x", "float", (None,)),
            FeatureSpec("objects/label", "int64", (None,), "label"),
            FeatureSpec("objects/mask", "bytes", (None,), "image", channels=1, encoding="png"),
            FeatureSpec("objects/pose", "bytes", (None,), "text"),
            FeatureSpec("segments/area", "int64", (None,)),
        ]

        def record(count: int) -> Record:
            return {
                "objects/bbox": Feature("float", [0.0, 0.25, 0.5, 1.0] * count),
                "objects/keypoints/x": Feature("float", [0.5, 0.75] * count),
                "objects/label": Feature("int64", [1] * count),
                "objects/mask": Feature("bytes", [encoded(mask, "png")] * count),
                "objects/pose": Feature("bytes", [b"left"] * count),
                "segments/area": Feature("int64", [7] * count),
            }

        dataset = Dataset(tmp_path, specs, one_split(record(count) for count in (0, 2)), schema_of("tfds"))
        dataset.write()
        none, two = dataset.loaded()
        assert none["objects"]["bbox"].shape == (0, 4)
        assert none["objects"]["mask"].shape[0] == 0
        assert none["segments"]["area"].shape == (0,)
        assert two["objects"]["bbox"].tolist() == [[0.0, 0.25, 0.5, 1.0]] * 2
        assert two["objects"]["keypoints"]["x"].tolist() == [0.5, 0.75] * 2
        assert np.array_equal(two["objects"]["mask"], [mask, mask])
        assert two["objects"]["pose"].tolist() == [b"left"] * 2
        features = dataset.load().info.features
        assert features["objects"]["label"].names == ["cat", "dog"]
        assert type(features["objects"]["bbox"]).__name__ == "BBoxFeature"
        assert type(features["objects"]).__name__ == "Sequence"

    @pytest.mark.parametrize(
        "keys",
        [
            ["objects/bbox", "objects"],
            ["objects/a/b", "objects/a"],
            ["objects//a"],
        ],
    )
    def test_keys_that_cannot_be_nested_stay_as_they_are(self, tmp_path: Path, keys: list[str]) -> None:
        specs = [FeatureSpec(key, "int64", (None,)) for key in keys]
        dataset = Dataset(tmp_path, specs, one_split([{key: Feature("int64", [1, 2]) for key in keys}]))
        dataset.write()
        (example,) = dataset.loaded()
        assert {key: list(value) for key, value in example.items()} == {key: [1, 2] for key in keys}

    def test_one_value_beside_lists_keeps_objects_flat(self, tmp_path: Path) -> None:
        specs = [FeatureSpec("objects/count", "int64"), FeatureSpec("objects/label", "int64", (None,), "label")]
        record = {"objects/count": Feature("int64", [2]), "objects/label": Feature("int64", [0, 1])}
        dataset = Dataset(tmp_path, specs, one_split([record]))
        dataset.write()
        assert dataset.loaded()[0]["objects/count"] == 2
        assert dataset.load().info.features["objects/label"].feature.names == ["cat", "dog"]

    @pytest.mark.parametrize(
        ("spec", "values"),
        [
            (FeatureSpec("k", "int64"), [2**63 - 1]),
            (FeatureSpec("k", "float"), [0.5]),
            (FeatureSpec("k", "bytes"), [b"\xff\x00"]),
            (FeatureSpec("k", "bytes", (), "text"), ["日本".encode()]),
            (FeatureSpec("k", "bytes", (), "raw"), [b"\x00\x01\x00"]),
            (FeatureSpec("k", "int64", (3,)), [1, 2, 3]),
            (FeatureSpec("k", "float", (2,)), [1.5, 2.5]),
            (FeatureSpec("k", "bytes", (2,)), [b"a", b""]),
            (FeatureSpec("k", "bytes", (2,), "text"), [b"a", b"b"]),
            (FeatureSpec("k", "int64", (2,), "label"), [1, 0]),
            (FeatureSpec("k", "int64", (None,)), []),
            (FeatureSpec("k", "int64", (None,)), [5, -6]),
            (FeatureSpec("k", "float", (None,)), [1.5]),
            (FeatureSpec("k", "bytes", (None,), "text"), [b"a", b"bc"]),
            (FeatureSpec("k", "bytes", (None,)), []),
            (FeatureSpec("k", "int64", (None,), "label"), [1, 0]),
            (FeatureSpec("k", "float", (None, 4)), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
            (FeatureSpec("k", "float", (None, 4), "bbox"), []),
            (FeatureSpec("k", "int64", (None, None)), [1, 2, 3]),
        ],
    )
    def test_each_type_of_feature_is_loaded(self, tmp_path: Path, spec: FeatureSpec, values: list[Any]) -> None:
        dataset = Dataset(tmp_path, [spec], one_split([{"k": Feature(spec.dtype, values)}]))
        dataset.write()
        (example,) = dataset.loaded()
        found = example["k"]
        assert ([found] if isinstance(found, bytes) else np.ravel(found).tolist()) == values
        expected = () if spec.shape == () else (-1, *(size for size in spec.shape[1:] if size))
        assert np.shape(found) == np.reshape(np.zeros(len(values)), expected).shape

    def test_keys_of_any_spelling_are_loaded(self, tmp_path: Path) -> None:
        keys = ["image", "image/format", "a.b", "größe", "with space", "a/b/c", "pythonClassName", "x{SPLIT}"]
        specs = [FeatureSpec(key, "int64", (), "label") for key in keys]
        dataset = Dataset(tmp_path, specs, one_split([{key: Feature("int64", [1]) for key in keys}]))
        dataset.write()
        (example,) = dataset.loaded()
        assert sorted(example) == sorted(keys)
        features = dataset.load().info.features
        assert all(features[key].int2str(1) == "dog" for key in keys)


@OLD_WAYS
class TestTfdsImages:
    @pytest.mark.parametrize("channels", [1, 3, 4])
    def test_images_of_one_kind_have_their_channels(self, tmp_path: Path, channels: int) -> None:
        array = pixels(3, 5, channels)
        spec = FeatureSpec("image", "bytes", (), "image", channels=channels, encoding="png")
        dataset = image_dataset(tmp_path, [encoded(array, "png")], spec)
        dataset.write()
        assert np.array_equal(dataset.loaded()[0]["image"], array)
        feature = dataset.load().info.features["image"]
        assert feature.shape == (None, None, channels)
        assert feature.encoding_format == "png"

    def test_jpeg_and_png_may_be_mixed(self, tmp_path: Path) -> None:
        array = pixels(3, 5, 3)
        spec = FeatureSpec("image", "bytes", (), "image", channels=3)
        dataset = image_dataset(tmp_path, [encoded(array, "png"), encoded(array, "jpeg")], spec)
        dataset.write()
        png, jpeg = dataset.loaded()
        assert np.array_equal(png["image"], array)
        assert jpeg["image"].shape == (3, 5, 3)
        assert dataset.load().info.features["image"].encoding_format is None

    @pytest.mark.parametrize("encoding", ["png", None])
    def test_channels_may_differ(self, tmp_path: Path, encoding: str | None) -> None:
        arrays = [pixels(3, 5, channels) for channels in (1, 2, 3, 4)]
        images = [encoded(array, "png") for array in arrays]
        spec = FeatureSpec("image", "bytes", (), "image", channels=None, encoding=encoding)
        dataset = image_dataset(tmp_path, images, spec)
        dataset.write()
        found = [example["image"] for example in dataset.loaded()]
        assert all(np.array_equal(image, array) for image, array in zip(found, arrays, strict=True))
        assert dataset.load().info.features["image"].shape == (None, None, None)

    def test_grey_with_alpha_is_decoded_to_two_channels(self, tmp_path: Path) -> None:
        array = pixels(3, 5, 2)
        spec = FeatureSpec("image", "bytes", (), "image", channels=2, encoding="png")
        dataset = image_dataset(tmp_path, [encoded(array, "png")], spec)
        dataset.write()
        assert np.array_equal(dataset.loaded()[0]["image"], array)

    def test_sixteen_bits_are_kept(self, tmp_path: Path) -> None:
        array = pixels(3, 5, 1, np.uint16)
        spec = FeatureSpec("image", "bytes", (), "image", channels=1, encoding="png", pixel_dtype="uint16")
        dataset = image_dataset(tmp_path, [encoded(array, "png")], spec)
        dataset.write()
        found = dataset.loaded()[0]["image"]
        assert found.dtype == np.uint16
        assert np.array_equal(found, array)


@OLD_WAYS
class TestTfdsLabels:
    @pytest.mark.parametrize("offset", [0, 1, 5])
    def test_ids_mean_the_names_whatever_the_offset(self, tmp_path: Path, offset: int) -> None:
        vocabulary = Vocabulary(("cat", "dog"), offset)
        dataset = Dataset(tmp_path, [LABEL], label_records([offset, offset + 1]), schema_of(vocabulary=vocabulary))
        dataset.write()
        feature = dataset.load().info.features["label"]
        assert [feature.int2str(example["label"]) for example in dataset.loaded()] == ["cat", "dog"]
        assert feature.num_classes == offset + 2
        assert feature.str2int("dog") == offset + 1

    def test_the_first_name_is_the_background_when_ids_start_at_one(self) -> None:
        assert dense_names(Vocabulary(("cat", "dog"), 1)) == ("background", "cat", "dog")
        assert dense_names(Vocabulary(("background", "dog"), 1)) == ("background_", "background", "dog")

    def test_gaps_between_ids_have_names_of_their_own(self) -> None:
        vocabulary = Vocabulary(("unused_2", "b"), ids=(1, 4))
        assert dense_names(vocabulary) == ("background", "unused_2", "unused_2_", "unused_3", "b")

    def test_ids_far_apart_are_plain_numbers_and_it_is_told(self, tmp_path: Path) -> None:
        vocabulary = Vocabulary(("a", "b"), ids=(7, 1_000_000_007))
        dataset = Dataset(tmp_path, [LABEL], label_records([1_000_000_007]), schema_of(vocabulary=vocabulary))
        description = dataset.write()
        assert dataset.loaded() == [{"label": 1_000_000_007}]
        assert type(dataset.load().info.features["label"]).__name__ == "Scalar"
        assert any("far apart" in note for note in tfds_notes(description))
        assert not list(tmp_path.glob("*.labels.txt"))

    def test_without_a_vocabulary_labels_are_plain_numbers(self, tmp_path: Path) -> None:
        dataset = Dataset(tmp_path, [LABEL], label_records([3]), schema_of(vocabulary=Vocabulary()))
        description = dataset.write()
        assert dataset.loaded() == [{"label": 3}]
        assert tfds_notes(description) == []
        assert not {"labels.txt", "label_map.pbtxt"} & {path.name for path in tmp_path.iterdir()}

    def test_the_id_of_no_label_is_loaded(self, tmp_path: Path) -> None:
        dataset = Dataset(tmp_path, [LABEL], label_records([-1, 0]))
        dataset.write()
        assert [example["label"] for example in dataset.loaded()] == [-1, 0]

    def test_names_of_any_spelling_have_their_ids(self, tmp_path: Path) -> None:
        names = ("007", "7", "Ärger", "a b", "日本", "#x", '"quoted"', "back\\slash", "'")
        dataset = Dataset(tmp_path, [LABEL], label_records(range(len(names))), schema_of(vocabulary=Vocabulary(names)))
        dataset.write()
        assert tuple(dataset.load().info.features["label"].names) == names

    def test_names_that_no_line_can_hold_are_quoted_and_keep_their_place(self, tmp_path: Path) -> None:
        names = ("", " a", "a", "b\nc", "d\re", "\u2028", "bad\udcff", "end")
        dataset = Dataset(tmp_path, [LABEL], label_records(range(len(names))), schema_of(vocabulary=Vocabulary(names)))
        dataset.write()
        found = dataset.load().info.features["label"].names
        assert found == ['""', '" a"', "a", '"b\\nc"', '"d\\re"', '"\\u2028"', "bad\\udcff", "end"]


@OLD_WAYS
class TestTfdsLimits:
    @pytest.mark.parametrize("compression", ["gzip", "zlib"])
    def test_a_compressed_dataset_is_described_and_told_to_be_unreadable(
        self, tmp_path: Path, compression: str
    ) -> None:
        import tensorflow as tf

        dataset = Dataset(tmp_path, [LABEL], label_records([0]), compression=compression)
        description = dataset.write()
        assert dataset.load().info.splits["train"].num_examples == 1
        (path,) = dataset.load().info.splits["train"].filepaths
        assert path.name == description.splits["train"][0].file
        assert len(tfds_notes(description)) == 1
        assert compression in tfds_notes(description)[0]
        with pytest.raises(tf.errors.DataLossError):
            dataset.loaded()

    def test_of_a_sequence_example_the_context_is_loaded_and_the_rest_told(self, tmp_path: Path) -> None:
        specs = [LABEL, FeatureSpec("frames", "bytes", (), "image", channels=3, in_sequence=True)]
        frame = Feature("bytes", [encoded(pixels(3, 5, 3), "png")])
        record = encode_sequence_example({"label": Feature("int64", [1])}, {"frames": [frame, frame]})
        dataset = Dataset(tmp_path, specs, {"train": [[record]]}, schema_of(is_sequence=True))
        description = dataset.write()
        assert dataset.loaded() == [{"label": 1}]
        assert ["feature lists" in note for note in tfds_notes(description)] == [True]

    def test_splits_that_tfds_cannot_name_get_another_name(self, tmp_path: Path) -> None:
        records = {
            split: [[encode_example({"label": Feature("int64", [number])})]]
            for number, split in enumerate(["a.b", "a_b", "all", "x-1", "1"])
        }
        dataset = Dataset(tmp_path, [LABEL], records)
        description = dataset.write()
        found = {name: [example["label"] for example in dataset.loaded(name)] for name in dataset.load().info.splits}
        assert found == {"a_b_": [0], "a_b": [1], "all_": [2], "x-1": [3], "1": [4]}
        assert len(tfds_notes(description)) == 2

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("Fruit Photos (2024)", "fruit_photos_2024"),
            ("out", "out"),
            ("2024-run", "dataset_2024_run"),
            ("日本", "dataset"),
            ("", "dataset"),
            ("__", "dataset"),
            ("Über", "ber"),
        ],
    )
    def test_the_name_is_one_that_tfds_takes(self, name: str, expected: str) -> None:
        from tensorflow_datasets.core import naming

        assert tfds_name(name) == expected
        assert naming.is_valid_dataset_name(tfds_name(name))


# ---------------------------------------------------------------------------------------------------------------------
# Label files


class TestLabelFiles:
    def test_labels_are_listed_in_id_order(self) -> None:
        assert labels_file(Vocabulary(("b", "a", "ä"), 1)) == "b\na\nä\n".encode()
        assert labels_file(Vocabulary()) == b""

    @pytest.mark.parametrize("offset", [0, 1])
    def test_the_label_map_is_read_by_protobuf(self, offset: int) -> None:
        names = ("cat", 'a "quoted" name', "back\\slash", "new\nline", "tab\t", "\x01\x7f", "日本", "'", "{}#;")
        vocabulary = Vocabulary(names, offset)
        assert parsed_label_map(label_map_file(vocabulary)) == dict(zip(names, vocabulary.ids, strict=True))

    @settings(max_examples=50, deadline=None)
    @given(names=st.sets(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=1, max_size=5))
    def test_the_label_map_holds_any_names(self, names: set[str]) -> None:
        vocabulary = Vocabulary(tuple(sorted(names)), 1)
        assert parsed_label_map(label_map_file(vocabulary)) == {
            name: vocabulary.id_of(name) for name in vocabulary.names
        }

    def test_the_label_map_looks_as_people_know_it(self) -> None:
        expected = 'item {\n  id: 1\n  name: "cat"\n}\n\nitem {\n  id: 2\n  name: "dog"\n}\n'
        assert label_map_file(Vocabulary(("cat", "dog"), 1)).decode() == expected


def parsed_label_map(content: bytes) -> dict[str, int]:
    """The label map as protobuf's own parser of the text form reads it."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="label_map.proto", package="p", syntax="proto2")
    item = file.message_type.add(name="Item")
    item.field.add(name="name", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    item.field.add(name="id", number=2, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    label_map = file.message_type.add(name="Map")
    label_map.field.add(name="item", number=1, type=kinds.TYPE_MESSAGE, type_name=".p.Item", label=kinds.LABEL_REPEATED)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Map"))()
    text_format.Parse(content, message)
    return {item.name: item.id for item in message.item}


# ---------------------------------------------------------------------------------------------------------------------
# conversion.json


class TestConversion:
    def test_it_tells_what_happened(self) -> None:
        schema = schema_of(vocabulary=Vocabulary(("cat", "dog"), 1))
        description = description_of(
            name="Fruit",
            schema=schema,
            specs=(LABEL,),
            splits={
                "validation": (PublishedShard("validation-00000-of-00001.tfrecord", 1, 40, 24, "00000001"),),
                "train": (
                    PublishedShard("train-00000-of-00002.tfrecord", 2, 80, 48, "0000000a"),
                    PublishedShard("train-00001-of-00002.tfrecord", 1, 40, 24, "ffffffff"),
                ),
            },
            rows=7,
            source_rows=9,
            ignored=2,
            rejected={"missing_file": 2, "bad_row": 1},
            changed={"rotated": 1},
            warnings={"icc_damaged": 1, "duplicate_id": 3},
            classes={"train": {"dog": 2, "cat": 1}, "validation": {"dog": 1}},
            formats={"png/3/uint8": 1, "jpeg/3/uint8": 3},
            rows_by_input={"b.csv": 5, "a.csv": 2},
            options={"output": "out", "labels": None},
        )
        files = dataset_files(description)
        conversion = json.loads(files["conversion.json"])
        assert conversion["rows"] == 7
        assert conversion["written"] == 4
        assert conversion["source_rows"] == 9
        assert conversion["ignored"] == 2
        assert conversion["rejected"] == {"total": 3, "by_code": {"bad_row": 1, "missing_file": 2}}
        assert conversion["changed"] == {"rotated": 1}
        assert conversion["warnings"] == {"duplicate_id": 3, "icc_damaged": 1}
        assert list(conversion["splits"]) == ["train", "validation"]
        assert conversion["splits"]["train"]["records"] == 3
        assert [
            [shard[key] for key in ("file", "records", "bytes", "crc32c")]
            for shard in conversion["splits"]["train"]["shards"]
        ] == [
            ["train-00000-of-00002.tfrecord", 2, 80, "0000000a"],
            ["train-00001-of-00002.tfrecord", 1, 40, "ffffffff"],
        ]
        assert conversion["labels"] == ["cat", "dog"]
        assert conversion["label_offset"] == 1
        assert "label_ids" not in conversion
        assert conversion["classes"] == {"train": {"cat": 1, "dog": 2}, "validation": {"dog": 1}}
        assert conversion["image_formats"] == {"jpeg/3/uint8": 3, "png/3/uint8": 1}
        assert conversion["rows_by_input"] == {"b.csv": 5, "a.csv": 2}
        assert conversion["options"] == {"output": "out", "labels": None}
        assert {"beam_tfrecord", "python", "apache-beam", "pillow"} <= conversion["versions"].keys()
        assert conversion["message"] == "Example"
        assert conversion["files"] == sorted(files)

    def test_ids_that_do_not_count_up_are_listed(self) -> None:
        vocabulary = Vocabulary(("a", "b"), ids=(3, 9))
        files = dataset_files(description_of(schema=schema_of(vocabulary=vocabulary)))
        assert json.loads(files["conversion.json"])["label_ids"] == [3, 9]

    def test_the_same_content_gives_the_same_bytes(self) -> None:
        shards = {"a": (PublishedShard("f", 1, 2, 3, "00000000"),), "b": (PublishedShard("g", 1, 2, 3, "00000000"),)}
        counts = {"rejected": {"bad_row": 1, "bad_box": 2}, "warnings": {"split_leak": 1, "box_clipped": 2}}
        one = description_of(splits=shards, classes={"a": {"cat": 1, "dog": 2}, "b": {}}, **counts)
        reverse = {name: dict(reversed(values.items())) for name, values in counts.items()}
        other = description_of(
            splits=dict(reversed(shards.items())), classes={"b": {}, "a": {"dog": 2, "cat": 1}}, **reverse
        )
        assert dataset_files(one) == dataset_files(other)

    def test_texts_are_readable_and_valid_utf8_whatever_they_hold(self) -> None:
        files = dataset_files(description_of(name="größe", rows_by_input={"bad\udcffname.csv": 1}))
        text = files["conversion.json"].decode("utf-8")
        assert '"name": "größe"' in text
        assert text.endswith("}\n")
        assert json.loads(text)["rows_by_input"] == {"bad\udcffname.csv": 1}

    def test_specs_come_back(self) -> None:
        specs = (
            FeatureSpec("a", "bytes", (), "image", 3, "jpeg", False, "the picture", "uint16"),
            FeatureSpec("b", "float", (None, 4), "bbox"),
            FeatureSpec("c", "int64", (), in_sequence=True),
        )
        features = json.loads(dataset_files(description_of(specs=specs))["conversion.json"])["features"]
        assert specs_from_json(features) == specs
        features["a"]["of_a_later_version"] = True
        assert specs_from_json(features) == specs


def rebuilt(entry: Mapping[str, Any]) -> Any:
    """The tf.io object that an entry of parse_spec stands for, as the documentation of the file says."""
    import tensorflow as tf

    dtype = tf.dtypes.as_dtype(entry["dtype"])
    if entry["kind"] == "varlen":
        return tf.io.VarLenFeature(dtype)
    if entry["kind"] == "fixed":
        return tf.io.FixedLenFeature(entry["shape"], dtype)
    assert entry["kind"] == "sequence"
    return tf.io.FixedLenSequenceFeature(entry["shape"], dtype, allow_missing=not entry.get("feature_list", False))


class TestParseSpec:
    SPECS = (
        FeatureSpec("boxes", "float", (None, 4), "bbox"),
        FeatureSpec("image", "bytes", (), "image"),
        FeatureSpec("label", "int64", (), "label"),
        FeatureSpec("shape", "int64", (3,)),
        FeatureSpec("tags", "bytes", (None,), "text"),
        FeatureSpec("weight", "float", ()),
    )

    def test_it_is_plain_json(self) -> None:
        assert parse_spec(self.SPECS) == {
            "boxes": {"kind": "sequence", "dtype": "float32", "shape": [4]},
            "image": {"kind": "fixed", "dtype": "string", "shape": []},
            "label": {"kind": "fixed", "dtype": "int64", "shape": []},
            "shape": {"kind": "fixed", "dtype": "int64", "shape": [3]},
            "tags": {"kind": "varlen", "dtype": "string", "shape": []},
            "weight": {"kind": "fixed", "dtype": "float32", "shape": []},
        }

    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_tensorflow_parses_examples_by_it(self, count: int) -> None:
        import tensorflow as tf

        data = encode_example(
            {
                "boxes": Feature("float", [0.0, 0.25, 0.5, 1.0] * count),
                "image": Feature("bytes", [b"\xff\xd8"]),
                "label": Feature("int64", [1]),
                "shape": Feature("int64", [4, 5, 3]),
                "tags": Feature("bytes", [b"x"] * count),
                "weight": Feature("float", [1.5]),
            }
        )
        spec = json.loads(json.dumps(parse_spec(self.SPECS)))
        found = tf.io.parse_single_example(data, {key: rebuilt(entry) for key, entry in spec.items()})
        assert found["boxes"].numpy().tolist() == [[0.0, 0.25, 0.5, 1.0]] * count
        assert found["image"].numpy() == b"\xff\xd8"
        assert found["label"].numpy() == 1
        assert found["shape"].numpy().tolist() == [4, 5, 3]
        assert tf.sparse.to_dense(found["tags"]).numpy().tolist() == [b"x"] * count
        assert found["weight"].numpy() == 1.5

    def test_tensorflow_parses_sequence_examples_by_it(self) -> None:
        import tensorflow as tf

        specs = (
            LABEL,
            FeatureSpec("tags", "bytes", (None,)),
            FeatureSpec("frame", "bytes", (), "image", in_sequence=True),
            FeatureSpec("size", "int64", (2,), in_sequence=True),
            FeatureSpec("box", "float", (None, 4), "bbox", in_sequence=True),
        )
        lists = {
            "frame": [Feature("bytes", [b"a"]), Feature("bytes", [b"b"])],
            "size": [Feature("int64", [1, 2]), Feature("int64", [3, 4])],
            "box": [Feature("float", [0.5, 0.5, 1.0, 1.0]), Feature("float", [])],
        }
        context = {"label": Feature("int64", [1]), "tags": Feature("bytes", [])}
        spec = parse_spec(specs)
        in_lists = {key for key, entry in spec.items() if entry.get("feature_list")}
        assert in_lists == {"frame", "size", "box"}
        found_context, found = tf.io.parse_single_sequence_example(
            encode_sequence_example(context, lists),
            context_features={key: rebuilt(entry) for key, entry in spec.items() if key not in in_lists},
            sequence_features={key: rebuilt(spec[key]) for key in in_lists},
        )
        assert found_context["label"].numpy() == 1
        assert found_context["tags"].values.shape == (0,)
        assert found["frame"].numpy().tolist() == [b"a", b"b"]
        assert found["size"].numpy().tolist() == [[1, 2], [3, 4]]
        assert tf.sparse.to_dense(found["box"]).numpy().tolist() == [[0.5, 0.5, 1.0, 1.0], [0.0] * 4]

    def test_a_record_that_is_not_of_the_spec_is_refused_by_tensorflow(self) -> None:
        import tensorflow as tf

        data = encode_example({"label": Feature("int64", [1, 2])})
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.parse_single_example(data, {"label": rebuilt(parse_spec([LABEL])["label"])})


# ---------------------------------------------------------------------------------------------------------------------
# rejects.jsonl and warnings.jsonl


class TestFindings:
    def test_a_line_is_an_object_with_the_fields(self) -> None:
        finding = Finding("a.csv:3", "gs://b/ü.jpg", "encode", "missing_file", 'there is no "x"')
        line = finding_line(finding)
        assert line.endswith("}\n")
        assert "ü" in line
        assert json.loads(line) == {
            "origin": "a.csv:3",
            "uri": "gs://b/ü.jpg",
            "stage": "encode",
            "code": "missing_file",
            "message": 'there is no "x"',
        }

    @settings(max_examples=100, deadline=None)
    @given(texts=st.lists(st.tuples(*[st.text(st.characters(), max_size=20)] * 5), max_size=4))
    def test_lines_come_back_whatever_they_hold(self, texts: list[tuple[str, str, str, str, str]]) -> None:
        findings = [Finding(*values) for values in texts]
        content = "".join(map(finding_line, findings)).encode("utf-8")
        assert content.count(b"\n") == len(findings)
        # A pair of lone surrogates reads back as the character that it encodes.
        expected = [Finding(*(paired(text) for text in values)) for values in texts]
        assert list(read_finding_lines(content.splitlines(keepends=True), "rejects.jsonl")) == expected

    def test_fields_of_a_later_version_are_passed_over(self) -> None:
        line = b'{"origin": "o", "uri": "u", "stage": "s", "code": "c", "message": "m", "more": 1}\n'
        assert list(read_finding_lines([line], "x")) == [Finding("o", "u", "s", "c", "m")]

    @pytest.mark.parametrize("line", [b"{", b"[]", b'"x"', b'{"origin": "o"}', b"\xff", b"\n"])
    def test_a_damaged_line_is_named(self, line: bytes) -> None:
        good = finding_line(Finding("o", "u", "s", "c", "m")).encode()
        with pytest.raises(DatasetError, match=r"rejects\.jsonl:2: "):
            list(read_finding_lines([good, line], "rejects.jsonl"))


def paired(text: str) -> str:
    return json.loads(json.dumps(text))  # type: ignore[no-any-return]


def test_files_are_the_same_for_specs_in_any_order() -> None:
    keys = feature_keys("tfds")
    specs = [
        FeatureSpec(keys["encoded"], "bytes", (), "image"),
        FeatureSpec(keys["bbox"], "float", (None, 4), "bbox"),
        FeatureSpec(keys["object_label"], "int64", (None,), "label"),
        FeatureSpec(keys["label"], "int64", (), "label"),
    ]
    shuffled = random.Random(3).sample(specs, len(specs))
    one = dataset_files(description_of(specs=tuple(specs), schema=schema_of("tfds")))
    other = dataset_files(description_of(specs=tuple(shuffled), schema=schema_of("tfds")))
    assert one["features.json"] == other["features.json"]
    assert set(one) == {
        "conversion.json",
        "dataset_info.json",
        "features.json",
        "label.labels.txt",
        "label_map.pbtxt",
        "labels.txt",
        "objects-label.labels.txt",
    }


@given(st.text().map(str.strip).filter(bool))
def test_every_label_comes_back_from_its_line(name: str) -> None:
    line = label_line(name)
    assert line.splitlines() == [line]
    # Only a name that is spelled just like the quoted form of another one cannot be told from that.
    assert name_of_line(f"{line}\r\n") == name or name.startswith('"')


@pytest.mark.parametrize("name", ["a\nb", "\u2028", "x\x85y", '"', '"quoted"', "'", '"a" and "b"'])
def test_odd_labels_come_back(name: str) -> None:
    assert name_of_line(label_line(name)) == name
