"""What Beam itself offers: a Map to tf.train.Example and ``WriteToTFRecord(num_shards=16)`` on its DirectRunner."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import apache_beam as beam
import tensorflow as tf
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from PIL import Image

from benchmarks.references.loops import SHARDS, files_of


def encode(item: tuple[str, int]) -> bytes:
    """The serialized record of a file."""
    path, label = Path(item[0]), item[1]
    data = path.read_bytes()
    with Image.open(io.BytesIO(data)) as image:
        width, height = image.size
    values = [("image/height", height), ("image/width", width), ("image/class/label", label)]
    features = {key: tf.train.Feature(int64_list=tf.train.Int64List(value=[value])) for key, value in values}
    features["image/encoded"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[data]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def main() -> None:
    source, output = Path(sys.argv[1]), Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    files = [(str(path), label) for path, label in files_of(source)]
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        _ = (
            pipeline
            | beam.Create(files)
            | beam.Map(encode)
            | beam.io.WriteToTFRecord(str(output / "beam"), file_name_suffix=".tfrecord", num_shards=SHARDS)
        )
    print(len(files))


if __name__ == "__main__":
    main()
