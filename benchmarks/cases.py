"""What is measured: the work, the programs that do it, and what we want of ours."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import data

PRODUCT = "beam-tfrecord"
Data = data.Pictures | data.Rows


@dataclass(frozen=True)
class Program:
    """A program that does the work of a case.

    command: for (source, output folder). count: how many items it did, from (its last line, output folder).
    """

    name: str
    command: Callable[[Path, Path], list[str]]
    count: Callable[[str, Path], int]


def reference(kind: str, shown: str = "") -> Program:
    """One of the loops of :mod:`benchmarks.references`."""
    module = f"benchmarks.references.{kind}" if kind in ("beam_sink", "tfds_builder") else "benchmarks.references.loops"
    chosen = [] if module.endswith(kind) else [kind]
    return Program(
        shown or kind,
        lambda source, output: [sys.executable, "-m", module, *chosen, str(source), str(output)],
        lambda line, output: int(line.split()[-1]),
    )


def convert(*options: str) -> Program:
    """Our convert command; its count is that of the records that an independent reader finds in the shards."""
    return Program(
        PRODUCT,
        lambda source, output: [
            *(sys.executable, "-m", "pipelines.main", "convert", "--input", str(source), "--output", str(output)),
            *("--quiet", "--json", *options),
        ],
        lambda line, output: _told(line, "written", count_records(output)),
    )


def verify(name: str, *options: str) -> Program:
    """Our verify command; the source is a dataset."""
    return Program(
        name,
        lambda source, output: [
            *(sys.executable, "-m", "pipelines.main", "verify", str(source), "--quiet", "--json", *options),
        ],
        lambda line, output: json.loads(line)["images"],
    )


def extract() -> Program:
    """Our extract command; its count is that of the pictures that are there afterwards."""
    return Program(
        PRODUCT,
        lambda source, output: [
            *(sys.executable, "-m", "pipelines.main", "extract", str(source), "--output", str(output)),
            *("--quiet", "--json"),
        ],
        lambda line, output: sum(path.is_file() for path in (output / "images").rglob("*")),
    )


def _told(line: str, name: str, found: int) -> int:
    told = json.loads(line)[name]
    if told != found:
        raise ValueError(f"{told} {name} according to the last line, {found} records in the files")
    return int(told)


def count_records(output: Path) -> int:
    """Records in all shards of a folder, counted by their lengths."""
    count = 0
    for path in output.glob("*.tfrecord"):
        end = path.stat().st_size
        with path.open("rb") as file:
            while file.tell() < end:
                length = int.from_bytes(file.read(12)[:8], "little")
                file.seek(length + 4, 1)
                count += 1
    return count


@dataclass(frozen=True)
class Case:
    """One kind of work.

    against: the program that ours is compared with; goal: how many times faster ours should be. most_runs: timed runs
    of each program that there is time for.
    """

    name: str
    title: str
    data: Data
    quick: Data
    programs: Sequence[Program]
    against: str
    goal: float
    source_is_dataset: bool = False
    most_runs: int = 5


SHARDS = ("--num_shards", "16")
TF, CHECKED = "tf loop", "checked tf loop"
QUICK_SMALL = data.Pictures(2_000, 256, 256, 76)
QUICK_LARGE = data.Pictures(60, 2000, 1500, 83)

SPEED: tuple[Case, ...] = (
    Case(
        "P1",
        "20,000 small JPEGs, --validate header",
        data.SMALL,
        QUICK_SMALL,
        (
            convert(*SHARDS, "--validate", "header"),
            reference("tf", TF),
            reference("copy"),
            reference("beam_sink", "Beam's own sink"),
            reference("tfds_builder", "TFDS builder"),
        ),
        TF,
        3.0,
    ),
    Case(
        "P2",
        "the same, --validate full (the default)",
        data.SMALL,
        QUICK_SMALL,
        (convert(*SHARDS), reference("checked", CHECKED), reference("decode")),
        CHECKED,
        4.5,
    ),
    Case(
        "P3",
        "300 large JPEGs, --validate header",
        data.LARGE,
        QUICK_LARGE,
        (
            convert(*SHARDS, "--validate", "header"),
            reference("tf", TF),
            reference("copy"),
            reference("beam_sink", "Beam's own sink"),
            reference("tfds_builder", "TFDS builder"),
        ),
        TF,
        2.2,
    ),
    Case(
        "P3f",
        "the same, --validate full (the default)",
        data.LARGE,
        QUICK_LARGE,
        (convert(*SHARDS), reference("checked", CHECKED), reference("decode")),
        CHECKED,
        3.5,
    ),
    Case(
        "P4",
        "the same, --resize 256 --quality 90",
        data.LARGE,
        QUICK_LARGE,
        (convert(*SHARDS, "--resize", "256", "--quality", "90"), reference("resize", "two processes of Pillow")),
        "two processes of Pillow",
        2.0,
    ),
    Case(
        "P5",
        "50 small JPEGs: start-up",
        data.TINY,
        data.TINY,
        (
            convert(),
            reference("tf", TF),
            reference("beam_sink", "Beam's own sink"),
            reference("tfds_builder", "TFDS builder"),
        ),
        TF,
        2.0,
    ),
    Case(
        "G1",
        "200,000 small JPEGs, --validate header; CPU at most half of the loop's",
        data.MANY_SMALL,
        data.SMALL,
        (
            convert(*SHARDS, "--validate", "header"),
            replace(
                convert(*SHARDS, "--validate", "header", "--processes", "1", "--read_threads", "1"), name="one thread"
            ),
            reference("tf", TF),
        ),
        TF,
        3.5,
        most_runs=2,
    ),
    Case(
        "G2",
        "the same, --validate full (the default); at most 120 us of CPU for each beyond the decoder's",
        data.MANY_SMALL,
        data.SMALL,
        (convert(*SHARDS), reference("decode")),
        "decode",
        0.5,
        most_runs=2,
    ),
    Case(
        "verify",
        "verify of the 20,000 small JPEGs",
        data.SMALL,
        QUICK_SMALL,
        (
            verify(PRODUCT),
            verify("all by TensorFlow's decoder", "--decoder", "tensorflow"),
            reference("tf_read", "tf.data, read and decoded"),
        ),
        "tf.data, read and decoded",
        3.0,
        source_is_dataset=True,
    ),
    Case(
        "extract",
        "extract of the 20,000 small JPEGs, checked and hashed, with their manifest",
        data.SMALL,
        QUICK_SMALL,
        (extract(), reference("tf_extract", "tf.data, written to files")),
        "tf.data, written to files",
        1.0,
        source_is_dataset=True,
    ),
    Case(
        "load",
        "beam_tfrecord.load of the 20,000 small JPEGs in batches of 224 x 224",
        data.SMALL,
        QUICK_SMALL,
        (reference("load", PRODUCT), reference("tf_train", "tf.data, by hand")),
        "tf.data, by hand",
        1.0,
        source_is_dataset=True,
    ),
)
