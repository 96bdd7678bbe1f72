"""The loops that people write today, and the limits of the machine: ``python -m benchmarks.references.loops KIND ...``.

copy         every file read and appended to 16 shards behind a header with its masked CRC
decode       every file decoded on two threads with simplejpeg
tf           one process with tf.io.TFRecordWriter and tf.train.Example; the size read from the header with Pillow
checked      the same, with tf.io.decode_image on every file
resize       two processes that decode whole with Pillow, resize with LANCZOS to a shorter side of 256, encode at 90
tf_read      tf.data.TFRecordDataset, parsed and decoded, one record after the other
tf_extract   the same records, each picture written to a file of its own in the folder of its class
tf_train     tf.data as it is written for training: parsed, decoded and resized in parallel, in batches of 32
load         beam_tfrecord.load for the same batches
"""

from __future__ import annotations

import argparse
import io
import struct
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

SHARDS = 16
SIDE = 224  # of pictures in a batch for training


def files_of(folder: Path) -> list[tuple[Path, int]]:
    """Pictures and their class numbers, in a fixed order."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    return [(path, number) for number, place in enumerate(classes) for path in sorted(place.iterdir())]


def copy(source: Path, output: Path) -> int:
    import google_crc32c

    shards = [(output / f"copy-{number:05d}").open("wb") for number in range(SHARDS)]
    files = files_of(source)
    for number, (path, _) in enumerate(files):
        data = path.read_bytes()
        crc = google_crc32c.value(data)
        masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        shard = shards[number % SHARDS]
        shard.write(struct.pack("<Q", len(data)))
        shard.write(data)
        shard.write(struct.pack("<I", masked))
    for shard in shards:
        shard.close()
    return len(files)


def decode(source: Path, output: Path) -> int:
    import simplejpeg

    files = files_of(source)
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(lambda item: simplejpeg.decode_jpeg(item[0].read_bytes()) is not None, files))


def tf(source: Path, output: Path, check: bool = False) -> int:
    import tensorflow as tf
    from PIL import Image

    def feature(value: bytes | int) -> tf.train.Feature:
        if isinstance(value, int):
            return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    writers = [
        tf.io.TFRecordWriter(str(output / f"tf-{number:05d}-of-{SHARDS:05d}.tfrecord")) for number in range(SHARDS)
    ]
    files = files_of(source)
    for number, (path, label) in enumerate(files):
        data = path.read_bytes()
        with Image.open(io.BytesIO(data)) as image:
            width, height = image.size
        if check:
            tf.io.decode_image(data)
        features = {
            "image/encoded": feature(data),
            "image/format": feature(b"jpeg"),
            "image/height": feature(height),
            "image/width": feature(width),
            "image/filename": feature(path.name.encode()),
            "image/class/label": feature(label),
            "image/class/text": feature(path.parent.name.encode()),
        }
        example = tf.train.Example(features=tf.train.Features(feature=features))
        writers[number % SHARDS].write(example.SerializeToString())
    for writer in writers:
        writer.close()
    return len(files)


def checked(source: Path, output: Path) -> int:
    return tf(source, output, check=True)


def resize_one(path: Path) -> int:
    from PIL import Image

    with Image.open(path) as image:
        width, height = image.size
        scale = 256 / min(width, height)
        small = image.convert("RGB").resize((round(width * scale), round(height * scale)), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=90)
    return len(buffer.getvalue())


def resize(source: Path, output: Path) -> int:
    files = [path for path, _ in files_of(source)]
    with ProcessPoolExecutor(2) as pool:
        return sum(size > 0 for size in pool.map(resize_one, files, chunksize=4))


def tf_read(source: Path, output: Path) -> int:
    import tensorflow as tf

    spec = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    count = 0
    for record in tf.data.TFRecordDataset([str(path) for path in sorted(source.glob("*.tfrecord"))]):
        tf.io.decode_image(tf.io.parse_single_example(record, spec)["image/encoded"])
        count += 1
    return count


def _records(source: Path) -> tuple[list[str], dict[str, Any]]:
    """Shards, and what a record holds for :func:`tf.io.parse_single_example`."""
    import tensorflow as tf

    spec = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/filename": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    return [str(path) for path in sorted(source.glob("*.tfrecord"))], spec


def tf_extract(source: Path, output: Path) -> int:
    import tensorflow as tf

    files, spec = _records(source)
    count = 0
    for record in tf.data.TFRecordDataset(files):
        features = tf.io.parse_single_example(record, spec)
        path = output / features["image/filename"].numpy().decode()
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(features["image/encoded"].numpy())
        count += 1
    return count


def tf_train(source: Path, output: Path) -> int:
    import tensorflow as tf

    files, spec = _records(source)

    def decoded(record: Any) -> Any:
        features = tf.io.parse_single_example(record, spec)
        image = tf.io.decode_jpeg(features["image/encoded"], channels=3)
        image = tf.cast(tf.image.resize(image, (SIDE, SIDE), antialias=True), tf.uint8)
        return image, features["image/class/label"]

    batches = tf.data.TFRecordDataset(files).map(decoded, tf.data.AUTOTUNE).batch(32).prefetch(tf.data.AUTOTUNE)
    return sum(int(images.shape[0]) for images, _ in batches)


def load(source: Path, output: Path) -> int:
    import beam_tfrecord

    batches = beam_tfrecord.load(source, "train", image_size=SIDE, batch_size=32, as_supervised=True)
    return sum(int(images.shape[0]) for images, _ in batches)


KINDS: dict[str, Callable[[Path, Path], int]] = {
    kind.__name__: kind for kind in (copy, decode, tf, checked, resize, tf_read, tf_extract, tf_train, load)
}


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    chosen.output.mkdir(parents=True, exist_ok=True)
    print(KINDS[chosen.kind](chosen.source, chosen.output))


if __name__ == "__main__":
    sys.exit(main())
