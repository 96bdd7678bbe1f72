"""Small datasets made by hand, record by record, with nothing of a conversion but the encoder and metadata files."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from beam_tfrecord.annotations import feature_keys
from beam_tfrecord.annotations.base import Feature, FeatureSpec, Schema, Vocabulary
from beam_tfrecord.datasets.metadata import DatasetDescription, PublishedShard, dataset_files
from beam_tfrecord.errors import ImageError
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.tfrecord import RecordWriter, shard_name
from beam_tfrecord.tfrecord.example import encode_example
from tests.samples import jpeg, painted_boxes

Record = dict[str, Feature]

LABELS = ("cat", "dog", "emu")
OFFSET = 1
SPECS = (
    FeatureSpec("image/channels", "int64"),
    FeatureSpec("image/encoded", "bytes", (), "image", channels=3, encoding="jpeg"),
    FeatureSpec("image/filename", "bytes", (), "text"),
    FeatureSpec("image/format", "bytes", (), "text"),
    FeatureSpec("image/height", "int64"),
    FeatureSpec("image/key/sha256", "bytes", (), "text"),
    FeatureSpec("image/object/bbox/xmax", "float", (None,)),
    FeatureSpec("image/object/bbox/xmin", "float", (None,)),
    FeatureSpec("image/object/bbox/ymax", "float", (None,)),
    FeatureSpec("image/object/bbox/ymin", "float", (None,)),
    FeatureSpec("image/object/class/label", "int64", (None,), "label"),
    FeatureSpec("image/object/class/text", "bytes", (None,), "text"),
    FeatureSpec("image/source_id", "bytes", (), "text"),
    FeatureSpec("image/width", "int64"),
)


def texts(*values: str | bytes) -> Feature:
    return Feature("bytes", [value.encode() if isinstance(value, str) else value for value in values])


def whole(*values: int) -> Feature:
    return Feature("int64", list(values))


def floats(*values: float) -> Feature:
    return Feature("float", list(values))


def picture_record(number: int, width: int = 40, height: int = 30) -> Record:
    """A JPEG with a red box from (4, 3) to (20, 15), and a blue one in every other record."""
    boxes = [(4, 3, 20, 15), (24, 15, 36, 27)][: 1 + number % 2]
    data = jpeg(painted_boxes(width, height, boxes))
    ids = [OFFSET + (number + place) % len(LABELS) for place in range(len(boxes))]
    return {
        "image/channels": whole(3),
        "image/encoded": texts(data),
        "image/filename": texts(f"photos/{number}.jpg"),
        "image/format": texts("jpeg"),
        "image/height": whole(height),
        "image/key/sha256": texts(hashlib.sha256(data).hexdigest()),
        "image/object/bbox/xmax": floats(*(box[2] / width for box in boxes)),
        "image/object/bbox/xmin": floats(*(box[0] / width for box in boxes)),
        "image/object/bbox/ymax": floats(*(box[3] / height for box in boxes)),
        "image/object/bbox/ymin": floats(*(box[1] / height for box in boxes)),
        "image/object/class/label": whole(*ids),
        "image/object/class/text": texts(*(LABELS[own - OFFSET] for own in ids)),
        "image/source_id": texts(f"photos/{number}.jpg"),
        "image/width": whole(width),
    }


@dataclass(frozen=True)
class Handmade:
    """A dataset on disk. offsets: where each record of each file starts; sizes with the frame."""

    folder: Path
    places: Mapping[str, list[tuple[int, int]]] = field(default_factory=dict)

    @property
    def shards(self) -> list[str]:
        return list(self.places)

    def conversion(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.folder / "conversion.json").read_text("utf-8"))
        return loaded

    def edit(self, name: str, change: Callable[[Any], None]) -> None:
        """Change a JSON file in place."""
        value = json.loads((self.folder / name).read_text("utf-8"))
        change(value)
        (self.folder / name).write_text(json.dumps(value), "utf-8")


def write_shard(path: Path, records: Sequence[bytes], compression: str = "none") -> tuple[PublishedShard, list[Any]]:
    """A file of records, what metadata state of it, and the (offset, size) of each record."""
    with path.open("wb") as file, RecordWriter(file, compression) as writer:
        places = [writer.append(record) for record in records]
    stated = PublishedShard(path.name, len(records), writer.num_bytes, writer.payload_bytes, writer.crc32c)
    return stated, places


def make_dataset(
    folder: Path,
    records: Mapping[str, Sequence[Sequence[Record]]],
    *,
    specs: Sequence[FeatureSpec] = SPECS,
    compression: str = "none",
    preset: str = "od",
    encode: Callable[[Any], bytes] = encode_example,
    is_sequence: bool = False,
    options: Mapping[str, Any] | None = None,
    warnings: Mapping[str, int] | None = None,
) -> Handmade:
    """A published dataset. records: for each split its shards, each a list of records."""
    folder.mkdir(parents=True, exist_ok=True)
    splits: dict[str, tuple[PublishedShard, ...]] = {}
    places: dict[str, list[tuple[int, int]]] = {}
    classes: dict[str, Counter[str]] = {}
    for split, shards in sorted(records.items()):
        stated = []
        for number, shard in enumerate(shards):
            name = shard_name(split, number, len(shards), compression)
            published, places[name] = write_shard(folder / name, [encode(record) for record in shard], compression)
            stated.append(published)
        splits[split] = tuple(stated)
        classes[split] = Counter(
            text.decode()
            for shard in shards
            for record in shard
            for key in ("image/object/class/text", "image/class/text")
            for text in (record[key].values if key in record else ())
        )
    config = {"input": "photos.csv", "output": str(folder), **(options or {})}
    total = sum(len(shard) for shards in records.values() for shard in shards)
    description = DatasetDescription(
        name="handmade",
        schema=Schema(("boxes",), Vocabulary(LABELS, OFFSET), preset, feature_keys(preset), is_sequence=is_sequence),
        specs=tuple(specs),
        splits=splits,
        compression=compression,
        rows=total,
        source_rows=total,
        ignored=0,
        warnings=warnings or {},
        classes=classes,
        options=ConvertConfig.from_options(config).to_json(),
    )
    for name, data in dataset_files(description).items():
        (folder / name).write_bytes(data)
    (folder / "rejects.jsonl").write_bytes(b"")
    (folder / "warnings.jsonl").write_bytes(b"{}\n" * sum((warnings or {}).values()))
    return Handmade(folder, places)


def small_dataset(folder: Path, per_shard: int = 3, **options: Any) -> Handmade:
    """Two shards of ``train`` and one of ``test``, pictures with boxes."""
    numbers = iter(range(1000))
    shards = {
        split: [[picture_record(next(numbers)) for _ in range(per_shard)] for _ in range(count)]
        for split, count in (("test", 1), ("train", 2))
    }
    return make_dataset(folder, shards, **options)


def decode_for_tests(data: bytes) -> tuple[int, int, int]:
    """(height, width, channels) by Pillow: a decoder that shares nothing with those of the package."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            return image.height, image.width, len(image.getbands())
    except (OSError, SyntaxError, ValueError) as error:
        raise ImageError("corrupt_image", str(error)) from None
