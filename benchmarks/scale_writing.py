"""What shards cost where they are written and published: requests, CPU, what is told of a shard, and the search for
copies. An object store in memory counts requests; it answers at once and has no faults.

``python -m benchmarks.scale_writing RECORDS PER_SHARD FOLDER`` is one search for copies in a process of its own.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image

from beam_tfrecord.conversion.planning.blocks import unpack_block
from beam_tfrecord.conversion.planning.dataset_plan import plan_dataset
from beam_tfrecord.conversion.planning.survey import merge_surveys
from beam_tfrecord.conversion.writing.progress import Progress
from beam_tfrecord.conversion.writing.shards import ShardWriter
from beam_tfrecord.core.elements import WrittenShard
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.publishing.gathering import add_gathered, gathered_of
from beam_tfrecord.publishing.leaks import find_copies
from beam_tfrecord.publishing.publish import publish_dataset
from beam_tfrecord.storage import Storage
from beam_tfrecord.storage.faults import ChangedFileError, MissingFileError
from beam_tfrecord.storage.objects import ObjectInfo, ObjectStore, Page
from benchmarks.scale_rows import blocks_of, image_of, job_of, peak_memory

KINDS_OF_REQUEST = ("get", "stat", "list", "put", "copy", "delete")


class CountingStore(ObjectStore):
    """Objects in memory, and how often each kind of request was made."""

    objects: dict[str, bytes]
    requests: Counter[str]
    lock: threading.Lock

    def begin(self) -> CountingStore:
        """Without objects and requests."""
        self.objects, self.requests, self.lock = {}, Counter(), threading.Lock()
        return self

    def _count(self, kind: str, number: int = 1) -> None:
        with self.lock:
            self.requests[kind] += number

    def _found(self, bucket: str, name: str) -> bytes:
        try:
            return self.objects[f"gs://{bucket}/{name}"]
        except KeyError:
            raise MissingFileError(f"gs://{bucket}/{name} does not exist") from None

    def _get(self, bucket: str, name: str, max_bytes: int | None) -> bytes:
        self._count("get")
        return self._found(bucket, name)

    def _get_range(self, bucket: str, name: str, start: int, length: int, version: str | None) -> bytes:
        self._count("get")
        return self._found(bucket, name)[start : start + length]

    def _stat(self, bucket: str, name: str) -> ObjectInfo:
        self._count("stat")
        return ObjectInfo(len(self._found(bucket, name)), "1")

    def _list(self, bucket: str, prefix: str, delimiter: str, token: str | None, limit: int | None) -> Page:
        self._count("list")
        start = f"gs://{bucket}/{prefix}"
        return Page([FileInfo(uri, len(self.objects[uri])) for uri in sorted(self.objects) if uri.startswith(start)],
                    [], None)  # fmt: skip

    def _put(self, bucket: str, name: str, stream: BinaryIO, size: int) -> None:
        self._count("put")
        self.objects[f"gs://{bucket}/{name}"] = stream.read()

    def _put_if(self, bucket: str, name: str, data: bytes, version: str | None) -> None:
        uri = f"gs://{bucket}/{name}"
        if (uri in self.objects) != (version is not None):
            raise ChangedFileError(f"{uri} has another version")
        self._count("put")
        self.objects[uri] = data

    def _copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        self._count("copy")
        self.objects[f"gs://{target[0]}/{target[1]}"] = self._found(*source)

    def _delete(self, bucket: str, names: Sequence[str]) -> None:
        self._count("delete", len(names))  # Cloud Storage is asked for each by itself
        for name in names:
            self.objects.pop(f"gs://{bucket}/{name}", None)


@dataclass(frozen=True)
class WritingCost:
    """Requests by kind: for each image, for each shard while it is written, for each shard when it is published, and
    for the whole job besides. image_cpu: seconds for each image of ``image_bytes`` (read from memory, decoded, encoded,
    summed up). memory: bytes while a shard is written, above its entries and its images."""

    image_bytes: int
    image_cpu: float
    per_image: dict[str, float]
    writing: dict[str, float]
    publishing: dict[str, float]


def writing_cost(folder: Path, images: int = 240) -> WritingCost:
    """Convert images of about 100 KB with 4 and with 8 shards: the difference tells what a shard costs."""
    data = _picture()
    costs = [_convert(folder, images, shards, data) for shards in (4, 8)]
    per_shard = [
        {kind: (costs[1][part][kind] - costs[0][part][kind]) / 4 for kind in KINDS_OF_REQUEST} for part in (0, 1)
    ]
    reads = (costs[0][0]["get"] - 4 * per_shard[0]["get"]) / images
    return WritingCost(len(data), min(cost[2] for cost in costs) / images, {"get": reads}, *per_shard)


def _picture() -> bytes:
    random = np.random.default_rng(0)
    coarse = random.integers(0, 256, (32, 42, 3), dtype=np.uint8)
    soft = np.asarray(Image.fromarray(coarse).resize((640, 480), Image.Resampling.BICUBIC), np.float32)
    stream = io.BytesIO()
    Image.fromarray((soft + random.normal(0, 11, (480, 640, 3))).clip(0, 255).astype(np.uint8)).save(
        stream, "JPEG", quality=88
    )
    return stream.getvalue()


def _convert(folder: Path, images: int, shards: int, data: bytes) -> tuple[Counter[str], Counter[str], float]:
    """(requests while shards were written, while they were published, seconds of CPU)."""
    manifest = folder / f"few-{shards}.csv"
    manifest.write_text("image,label\n" + "".join(f"{image_of(n)},class{n % 10}\n" for n in range(images)))
    job = job_of(manifest, num_shards=shards)
    storage = Storage()
    store = CountingStore(storage.options, storage.counters).begin()
    storage._stores["gs"] = store  # in place of the real one
    comments = (b"\xff\xfe\x00\x08%06d" % number for number in range(images))  # makes each image another one
    store.objects.update((image_of(n), data[:2] + comment + data[2:]) for n, comment in enumerate(comments))
    blocks = list(blocks_of(job))
    survey = merge_surveys(block.survey for block in blocks)
    plan = plan_dataset(survey, job.sources, None, job.config, storage.sizes)
    store.requests.clear()
    started = time.process_time()
    infos = []
    with ThreadPoolExecutor(32) as pool:
        writer = ShardWriter(job.config, plan, storage, pool, 32, Progress())
        for block in blocks:
            for (split, index), own in plan.place_block(block.packed, job.config):
                infos.append(writer.write(split, index, unpack_block(own)))
    cpu = time.process_time() - started
    written = Counter(store.requests)
    store.requests.clear()
    publish_dataset(add_gathered([gathered_of(info) for info in infos]), plan, job, storage)
    return written, Counter(store.requests), cpu


@dataclass(frozen=True)
class CopiesRun:
    """A search for copies among so many records: memory in bytes above the process, CPU seconds and bytes of the items
    file for each record."""

    records: int
    memory: int
    cpu: float
    item_bytes: float
    found: int


def search_copies(records: int, per_shard: int, folder: Path) -> CopiesRun:
    """The search for copies over so many records, one in 100,000 of which is one."""
    place = folder / f"copies-{records}" / ".staging" / "shards"
    place.mkdir(parents=True, exist_ok=True)
    infos = []
    size = 0
    for index, start in enumerate(range(0, records, per_shard)):
        own = range(start, min(records, start + per_shard))
        path = place / f"train-{index:05d}.items.jsonl"
        with path.open("w") as file:
            for number in own:
                content = number - 1 if number % 100_000 == 99_999 else number
                digest = hashlib.sha256(b"%d" % content).hexdigest()[:16]
                file.write(f"{digest}\tgs://bucket/labels.csv:{number}\t{image_of(number)}\n")
        size += path.stat().st_size
        infos.append(WrittenShard("train", index, "", True, False, False, len(own), 1, 1, ""))
    before = peak_memory()
    started = time.process_time()
    found = find_copies(infos, str(folder / f"copies-{records}"), Storage())
    cpu = (time.process_time() - started) / records
    memory = peak_memory() - before
    shutil.rmtree(folder / f"copies-{records}")
    if len(found) != records // 100_000:
        raise ValueError(f"{len(found)} copies were found, not {records // 100_000}")
    return CopiesRun(records, memory, cpu, size / records, len(found))


if __name__ == "__main__":
    print(json.dumps(asdict(search_copies(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))))
