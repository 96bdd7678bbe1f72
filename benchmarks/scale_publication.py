"""``python -m benchmarks.scale_publication SHARDS IMAGES``: what it takes to publish very many shards.

The shards themselves are made up: an object store answers for them as if they were there, with some records in the
sidecars of each, whatever the number of records that it claims to have. All else is the real code: what shards tell is
added up in the tree of the pipeline, pickled between its levels, and published with all metadata and the report. Prints
JSON: bytes of memory, seconds of CPU.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from beam_tfrecord.conversion.job import plan_job
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.writing.statistics import ImageFacts, ShardStatistics
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.insight.looks import LOOK
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.publishing.gathering import Gathered, gathered_of
from beam_tfrecord.publishing.publish import publish_dataset
from beam_tfrecord.storage import Storage
from beam_tfrecord.storage.faults import MissingFileError
from beam_tfrecord.storage.objects import ObjectInfo, Page
from beam_tfrecord.transforms.gathering import BRANCHES, AddUpGathered
from benchmarks.scale_rows import CLASSES, job_of, peak_memory, write_manifest
from benchmarks.scale_writing import CountingStore

IN_SIDECARS = 8  # records of each shard that its sidecars tell of
IN_STATISTICS = 1000  # records of each shard that its statistics are made of
_STAGED = re.compile(r"out/\.staging/shards/train-(\d+)\.[0-9a-f]+\.(tfrecord|items\.jsonl|looks)")


class MadeUpShards(CountingStore):
    """Files in a folder, and shards that are there without being anywhere."""

    folder: Path

    def _place(self, bucket: str, name: str) -> Path:
        return self.folder / hashlib.sha256(f"{bucket}/{name}".encode()).hexdigest()

    def _found(self, bucket: str, name: str) -> bytes:
        made_up = _STAGED.fullmatch(name)
        if made_up is not None:
            return sidecar(int(made_up[1]), made_up[2])
        try:
            return self._place(bucket, name).read_bytes()
        except FileNotFoundError:
            raise MissingFileError(f"gs://{bucket}/{name} does not exist") from None

    def _stat(self, bucket: str, name: str) -> ObjectInfo:
        if bucket == "collection":
            return ObjectInfo(110_000, "1")
        return ObjectInfo(len(self._found(bucket, name)), "1")

    def _list(self, bucket: str, prefix: str, delimiter: str, token: str | None, limit: int | None) -> Page:
        start = f"gs://{bucket}/{prefix}"
        return Page([FileInfo(uri, 1) for uri in sorted(self.objects) if uri.startswith(start)], [], None)

    def _put(self, bucket: str, name: str, stream: BinaryIO, size: int) -> None:
        self.objects[f"gs://{bucket}/{name}"] = b""
        with self._place(bucket, name).open("wb") as file:
            while chunk := stream.read(1 << 20):
                file.write(chunk)

    def _put_if(self, bucket: str, name: str, data: bytes, version: str | None) -> None:
        super()._put_if(bucket, name, data, version)
        self._put(bucket, name, io.BytesIO(data), len(data))

    def _copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        return

    def _delete(self, bucket: str, names: Sequence[str]) -> None:
        for name in names:
            if not _STAGED.fullmatch(name):
                self.objects.pop(f"gs://{bucket}/{name}", None)
                self._place(bucket, name).unlink(missing_ok=True)


def sidecar(index: int, kind: str) -> bytes:
    """A file of a shard. Every tenth shard has a record that the one before it has as well."""
    if kind == "tfrecord":
        return b"x"
    numbers = [index * IN_SIDECARS + number for number in range(IN_SIDECARS)]
    if index % 10 == 9:
        numbers[0] -= 1
    contents = [hashlib.sha256(b"%d" % number).digest()[:8] for number in numbers]
    if kind == "items.jsonl":
        return b"".join(
            b"%s\tgs://bucket/labels.csv:%d\tgs://collection/images/%d-%d.jpg\tlabel\n"
            % (content.hex().encode(), number, index, number)
            for content, number in zip(contents, numbers, strict=True)
        )
    rows = np.zeros(IN_SIDECARS, LOOK)
    rows["content"] = [int.from_bytes(content, "big") for content in contents]
    rows["width"], rows["height"] = 640, 480
    return rows.tobytes()


def infos(shards: int, records: int, branch: int) -> Iterator[ShardInfo]:
    """What the shards of a branch tell."""
    statistics = ShardStatistics({})
    random = np.random.default_rng(branch)
    sizes = random.integers(300, 700, (IN_STATISTICS, 2)).tolist()
    for number, (width, height) in enumerate(sizes):
        statistics.add([ImageFacts(width, height, width * height // 3)], ["label"], number, 100)
    told = statistics.to_json()
    labels = {f"class{number:04d}": 1 for number in range(CLASSES)}
    one = ShardInfo("train", 0, "x", records, 0, 0, "", "0" * 64, num_rows=records, source_rows=records, classes=labels,
                    formats={"jpeg/3/uint8": records}, rows_by_input={0: records}, statistics=told)  # fmt: skip
    for index in range(branch, shards, BRANCHES):
        yield replace(one, index=index, num_bytes=2**27 + index, payload_bytes=2**27 - index, crc32c=f"{index:08x}",
                      owner="0123456789abcdef")  # fmt: skip


@dataclass(frozen=True)
class PublicationRun:
    """Memory in bytes above the process: of the machine that adds up a branch, of the one that publishes. branch,
    gathered: bytes of what crosses the network of one branch, and of all together. CPU in seconds for each shard."""

    shards: int
    branch: int
    gathered: int
    branch_memory: int
    publish_memory: int
    add_cpu: float
    publish_cpu: float
    copies: int
    conversion: int


@dataclass(frozen=True)
class ShardCost:
    """What one shard more costs: bytes in the one element, bytes of memory and CPU seconds where all is published."""

    pickled: float
    memory: float
    cpu: float


def shard_cost(few: PublicationRun, many: PublicationRun) -> ShardCost:
    """The difference of two publications."""
    more = many.shards - few.shards
    cpu = many.publish_cpu * many.shards - few.publish_cpu * few.shards
    return ShardCost(
        (many.gathered - few.gathered) / more, (many.publish_memory - few.publish_memory) / more, cpu / more
    )


def run_publication(shards: int, images: int, folder: Path) -> PublicationRun:
    """Add up and publish so many shards that claim to hold so many images."""
    records = images // shards
    job = job_of(write_manifest("label", 2 * CLASSES, folder))
    storage = Storage()
    store = MadeUpShards(storage.options, storage.counters)
    store.begin()
    store.folder = folder
    storage._stores["gs"] = store  # in place of the real one
    plan = plan_of(plan_job(job, storage), shards * records)
    before, started = peak_memory(), time.process_time()
    combine, branches = AddUpGathered(), []
    for branch in range(min(BRANCHES, shards)):
        accumulator = combine.create_accumulator()
        for info in infos(shards, records, branch):
            accumulator = combine.add_input(accumulator, gathered_of(info))
        branches.append(folder / f"branch-{branch}")
        branches[-1].write_bytes(pickle.dumps(combine.extract_output(accumulator), protocol=5))
        del accumulator
    branch_memory, add_cpu = peak_memory() - before, time.process_time() - started
    started = time.process_time()
    everything = combine.create_accumulator()
    for branch_file in branches:
        everything = combine.add_input(everything, pickle.loads(branch_file.read_bytes()))
    gathered: Gathered = combine.extract_output(everything)
    del everything
    packed = folder / "gathered"
    with packed.open("wb") as file:
        pickle.dump(gathered, file, protocol=5)
    summary = publish_dataset(gathered, plan, job, storage)
    if summary.status != "published" or summary.shards != shards or summary.written != shards * records:
        raise ValueError(f"not published as it should be: {summary}")
    return PublicationRun(
        shards,
        branches[0].stat().st_size,
        packed.stat().st_size,
        branch_memory,
        peak_memory() - before,
        add_cpu / shards,
        (time.process_time() - started) / shards,
        summary.warnings.get("duplicate_content", 0),
        store._stat("bucket", "out/conversion.json").size,
    )


def plan_of(small: DatasetPlan, rows: int) -> DatasetPlan:
    """The plan of a small manifest, as if it had so many rows."""
    return replace(small, survey=replace(small.survey, rows=rows, rows_by_input={0: rows}))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="publication-") as scratch:
        print(json.dumps(asdict(run_publication(int(sys.argv[1]), int(sys.argv[2]), Path(scratch)))))
