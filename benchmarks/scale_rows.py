"""Rows without images through the real code of reader, survey, plan and placement: bytes, elements, memory, time.

``python -m benchmarks.scale_rows ROWS SHARDS FOLDER`` is one such run in a process of its own, and prints JSON.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from beam_tfrecord.conversion.job import Job, prepare_job
from beam_tfrecord.conversion.planning.arranging import DuplicateRule, arrange
from beam_tfrecord.conversion.planning.block_reading import BLOCK_ITEMS, Block, read_blocks
from beam_tfrecord.conversion.planning.blocks import pack_block, unpack_block, unpack_columns
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan, SplitPlan, plan_dataset
from beam_tfrecord.conversion.planning.survey import merge_surveys
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage
from beam_tfrecord.transforms.planning import CombineSurveys
from beam_tfrecord.transforms.reading import split_source

CLASSES = 1000
KINDS = ("label", "ten boxes", "COCO polygons")
PLACED_BLOCKS = 4  # that are looked at where every block gives the same numbers


@dataclass(frozen=True)
class RowCost:
    """What one row of a kind costs, in bytes: in the manifest, as a packed entry alone, in a block before placement
    (with its hash in the survey), and in memory while its shard is written. shuffle: by number of shards, bytes through
    the shuffle; elements: by number of shards, elements per full block. place_cpu: by number of shards.
    CPU in seconds."""

    manifest: float
    payload: float
    block: float
    memory: float
    read_cpu: float
    shuffle: dict[int, float]
    elements: dict[int, float]
    place_cpu: dict[int, float]


def image_of(number: int) -> str:
    """The name of an image, as long as such names are."""
    return f"gs://collection/images/{number % 997:03d}/{number:012d}.jpg"


def write_manifest(kind: str, rows: int, folder: Path) -> Path:
    """A manifest of so many rows of a kind, without images."""
    if kind == "label":
        path = folder / f"label-{rows}.csv"
        with path.open("w") as file:
            file.write("image,label\n")
            file.writelines(f"{image_of(number)},class{number * 7 % CLASSES:04d}\n" for number in range(rows))
        return path
    random = np.random.default_rng(0)
    if kind == "ten boxes":
        path = folder / f"boxes-{rows}.jsonl"
        with path.open("w") as file:
            for number in range(rows):
                corners = random.integers(0, 300, (10, 2))
                far = corners + random.integers(5, 300, (10, 2))
                boxes = [
                    {"class": f"class{int(x) % 80:04d}", "bbox": [int(x), int(y), int(right), int(bottom)]}
                    for (x, y), (right, bottom) in zip(corners, far, strict=True)
                ]
                file.write(json.dumps({"image": image_of(number), "boxes": boxes}) + "\n")
        return path
    path = folder / f"instances-{rows}.json"
    annotations = []
    for number in range(rows):
        for _ in range(7):  # about as many as an image of COCO has
            x, y = random.integers(0, 300, 2).tolist()
            outline = (random.random(2 * int(random.integers(8, 40))) * 200 + min(x, y)).round(2).tolist()
            annotations.append(
                {"id": len(annotations) + 1, "image_id": number, "category_id": x % 80 + 1, "iscrowd": 0,
                 "bbox": [x, y, 200, 200], "area": 20000.5, "segmentation": [outline]}
            )  # fmt: skip
    images = [{"id": n, "file_name": image_of(n), "width": 640, "height": 480} for n in range(rows)]
    categories = [{"id": n + 1, "name": f"class{n:04d}"} for n in range(80)]
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def job_of(manifest: Path, **options: object) -> Job:
    """A conversion of a manifest whose images lie in a bucket."""
    given = {"input": str(manifest), "output": "gs://bucket/out", **options}
    return prepare_job(ConvertConfig.from_options(given), Storage())


def blocks_of(job: Job) -> Iterator[Block]:
    """The blocks of a job, as workers would make them."""
    for number, source in enumerate(job.sources):
        for piece in split_source(number, source, Storage()):
            yield from read_blocks(piece, job.config, Storage())


def even_plan(plan: DatasetPlan, shards: int, rows: int) -> DatasetPlan:
    """The plan with so many shards of even ranges of hashes: what it is above the limit of exact hashes."""
    cuts = tuple(2**64 * number // shards for number in range(1, shards))
    return replace(plan, splits={"train": SplitPlan("train", rows, cuts)})


def row_cost(kind: str, rows: int, shards: tuple[int, ...], folder: Path) -> RowCost:
    """What a row of a kind costs."""
    manifest = write_manifest(kind, rows, folder)
    job = job_of(manifest, format="extracted" if kind == "ten boxes" else "auto")
    started = time.process_time()
    blocks = list(blocks_of(job))
    read_cpu = (time.process_time() - started) / rows
    plan = _plan(job, blocks)
    if plan.survey.rejected or (plan.schema.preset == "od") != (kind != "label"):
        raise ValueError(f"{kind}: not understood as meant ({plan.survey.problems[:1]})")
    items = [item for block in blocks for item in unpack_block(block.packed)]
    shuffle, elements, place_cpu = {}, {}, {}
    looked_at = [block for block in blocks if block.survey.rows == BLOCK_ITEMS][:PLACED_BLOCKS]
    in_blocks = len(looked_at) * BLOCK_ITEMS
    for count in shards:
        wide = even_plan(plan, count, rows)
        started = time.process_time()
        packed = [own for block in looked_at for _, own in wide.place_block(block.packed, job.config)]
        place_cpu[count] = (time.process_time() - started) / in_blocks
        shuffle[count] = sum(map(len, packed)) / in_blocks
        elements[count] = len(packed) / len(looked_at)
    block_bytes = sum(len(pickle.dumps(block, protocol=5)) for block in blocks)
    packed_items = pack_block(items)
    tracemalloc.start()
    placed = arrange(unpack_block(packed_items), "train", DuplicateRule("keep", 0, {}))
    memory = tracemalloc.get_traced_memory()[0] / len(placed)
    tracemalloc.stop()
    return RowCost(
        manifest.stat().st_size / rows,
        sum(len(item.payload) for item in items) / rows,
        block_bytes / rows,
        memory,
        read_cpu,
        shuffle,
        elements,
        place_cpu,
    )


def _plan(job: Job, blocks: list[Block]) -> DatasetPlan:
    return plan_dataset(merge_surveys(block.survey for block in blocks), job.sources, None, job.config, _sizes)


def _sizes(uris: object) -> dict[str, int]:
    return dict.fromkeys(list(uris), 100_000)  # type: ignore[call-overload]


# ---------------------------------------------------------------------------------------------------------------------
# Many rows


@dataclass(frozen=True)
class RowsRun:
    """One run of many rows. Memory in bytes, above that of the process before it began; CPU in seconds per row."""

    rows: int
    shards: int
    read_memory: int
    plan_memory: int
    place_memory: int
    survey_bytes: int
    cut_cpu: float
    plan_bytes: int
    read_cpu: float
    place_cpu: float
    elements: int
    shuffle_bytes: int
    longest_over_mean: float


def run_rows(rows: int, shards: int, folder: Path) -> RowsRun:
    """A manifest of so many labelled rows read, surveyed, planned and placed; blocks wait on disk, as on an engine."""
    manifest = write_manifest("label", rows, folder)
    job = job_of(manifest, num_shards=shards)
    spool = folder / f"blocks-{rows}"
    started = time.process_time()
    for number, source in enumerate(job.sources):
        list(split_source(number, source, Storage()))
    cut_cpu = time.process_time() - started
    before = peak_memory()
    combine = CombineSurveys()
    accumulator = combine.create_accumulator()
    started = time.process_time()
    with spool.open("wb") as file:
        for block in blocks_of(job):
            pickle.dump(block.packed, file, protocol=5)
            accumulator = combine.add_input(accumulator, block.survey)
    read_cpu = time.process_time() - started
    read_memory = peak_memory() - before
    survey = combine.extract_output(accumulator)
    plan = plan_dataset(survey, job.sources, None, job.config, _sizes)
    plan_memory = peak_memory() - before
    survey_bytes = len(pickle.dumps(survey, protocol=5))
    del survey, accumulator
    sizes: Counter[tuple[str, int]] = Counter()
    elements = shuffle_bytes = 0
    started = time.process_time()
    with spool.open("rb") as file:
        for _ in range(rows // BLOCK_ITEMS + rows // 100_000 + 2):  # at most so many blocks
            try:
                packed = pickle.load(file)
            except EOFError:
                break
            for key, own in plan.place_block(packed, job.config):
                sizes[key] += len(unpack_columns(own).order)
                elements += 1
                shuffle_bytes += len(own)
    place_cpu = time.process_time() - started
    if sum(sizes.values()) != rows:
        raise ValueError(f"{sum(sizes.values())} of {rows} rows were placed")
    spool.unlink()
    manifest.unlink()
    return RowsRun(
        rows, len(sizes), read_memory, plan_memory, peak_memory() - before, survey_bytes,
        cut_cpu / rows,
        len(pickle.dumps(plan, protocol=5)), read_cpu / rows, place_cpu / rows, elements, shuffle_bytes,
        max(sizes.values()) / (rows / len(sizes)),
    )  # fmt: skip


def peak_memory() -> int:
    """The most memory that this process had at a time, in bytes; 0 where the kernel does not tell (Linux does)."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


if __name__ == "__main__":
    print(json.dumps(asdict(run_rows(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))))
