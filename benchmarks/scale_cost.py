"""The formulas of the cost model: what a conversion of very many images should cost, from constants that were measured
elsewhere and from assumptions about machines that are not here."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

BLOCK_OF_IDS = 5_000_000  # of the simulation, held at a time


@dataclass(frozen=True)
class Machines:
    """What is assumed of the engine and the object store. None of it was measured but get_cpu.

    cores: of one worker. latency: seconds of one request. get_cpu: seconds of CPU of one request for an image, as row
    R3 of docs/performance.md has it. bandwidth: bytes per second of one worker, in each direction. threads: reads under
    way at a time for each core. connections: requests under way at a time in the publish step.
    """

    workers: int = 500
    cores: int = 4
    latency: float = 0.05
    get_cpu: float = 0.0004
    bandwidth: float = 250e6
    threads: int = 32
    connections: int = 64


@dataclass(frozen=True)
class Constants:
    """What was measured, for one kind of rows and one number of shards. Bytes, and seconds of CPU.

    image_get: requests for each image. info, info_memory, info_cpu: what stays of a shard when all are added up, what
    the one step that publishes holds of it, and its time. shard_writes, shard_moves: requests for each shard while it
    is written, and when it is published. row_cpu: reading and placing a row.
    """

    block_items: int
    block: float
    shuffle: float
    entry_memory: float
    row_cpu: float
    image_cpu: float
    image_get: float
    shard_writes: float
    shard_moves: float
    boundary: float
    info: float
    info_memory: float
    info_cpu: float
    copy_cpu: float


@dataclass(frozen=True)
class Prediction:
    """What the model says of one conversion. Bytes, seconds, and counts."""

    shards: int
    rows_per_shard: float
    longest_over_mean: float
    elements: float
    elements_per_image: float
    materialized: float
    shuffled: float
    requests: float
    requests_per_second: float
    cpu_hours: float
    bound_by: str
    hours: float
    side_input: float
    thread_memory: float
    gathered: float
    images_until_full: float
    publish_memory: float
    publish_seconds: float
    publish_seconds_one_by_one: float


@dataclass(frozen=True)
class Prices:
    """Dollars, and how well workers are used. **All of it is assumed**: list prices of Dataflow (batch) and of Cloud
    Storage (Standard, one region) for us-central1 as they were known in 2025, not looked up.

    core_hour: of a vCPU with its memory (3.75 GB) and its share of a disk. gets, writes: of one request of class B
    (get, stat) and of class A (put, copy). shuffled: of one byte through Dataflow Shuffle, less than it costs at first.
    busy: share of the hours that are paid for in which a core works for the conversion.
    """

    core_hour: float = 0.056 + 3.75 * 0.003557 + 25 / 4 * 0.000054
    gets: float = 0.4e-6
    writes: float = 5e-6
    shuffled: float = 0.011e-9
    busy: float = 0.7


@dataclass(frozen=True)
class Bill:
    """Hours of CPU, hours of cores that are paid for, and dollars."""

    cpu_hours: float
    core_hours: float
    cores: float
    requests: float
    shuffle: float

    @property
    def total(self) -> float:
        return self.cores + self.requests + self.shuffle


# Requests of a shard from benchmarks.scale_writing: put and copy, then get and stat, its publication included.
SHARD_WRITES, SHARD_GETS = 3 + 2 + 1, 1 + 2


def bill(images: int, shards: int, image_cpu: float, shuffle: float, prices: Prices) -> Bill:
    """What a conversion costs on Dataflow, but for the storage of what comes out. image_cpu: seconds for an image, its
    row included. shuffle: bytes of an image."""
    cpu_hours = images * image_cpu / 3600
    core_hours = cpu_hours / prices.busy
    requests = (images + shards * SHARD_GETS) * prices.gets + shards * SHARD_WRITES * prices.writes
    return Bill(cpu_hours, core_hours, core_hours * prices.core_hour, requests, images * shuffle * prices.shuffled)


READ_AHEAD, UPLOAD_BUFFER, FRAMING = 64 * 2**20, 16 * 2**20, 400
LARGEST_ELEMENT = 2**31  # bytes: no message of the protocol between engine and worker can be larger


def elements_per_block(block_items: int, shards: int) -> float:
    """How many of the shards a block of entries is expected to touch: each gets an element of its own."""
    return shards * -math.expm1(block_items * math.log1p(-1 / shards)) if shards > 1 else 1.0


def longest_over_mean(rows_per_shard: float, shards: int) -> float:
    """Expected length of the longest of many shards that ids fall into by their hash, over the mean.

    The lengths are Poisson; the largest of n normal deviates lies near sqrt(2 ln n), less a little (extreme value
    theory). Good where a shard has hundreds of rows or more.
    """
    if shards < 2:
        return 1.0
    root = math.sqrt(2 * math.log(shards))
    deviates = root - (math.log(math.log(shards)) + math.log(4 * math.pi)) / (2 * root) + 0.5772 / root
    return 1 + deviates / math.sqrt(rows_per_shard)


def simulate_longest(ids: int, shards: int, seed: int = 0) -> float:
    """The same by throwing so many random hashes of 64 bits."""
    random = np.random.default_rng(seed)
    lengths = np.zeros(shards, np.int64)
    for start in range(0, ids, BLOCK_OF_IDS):
        hashes = random.integers(0, 2**32, min(BLOCK_OF_IDS, ids - start), np.uint64)  # the upper half decides
        lengths += np.bincount(((hashes * np.uint64(shards)) >> np.uint64(32)).astype(np.int64), minlength=shards)
    return float(lengths.max() / (ids / shards))


def num_shards(images: int, image_bytes: int, shard_size: int) -> int:
    """How many shards the planner makes."""
    return max(1, -(-images * (image_bytes + FRAMING) // shard_size))


def predict(images: int, image_bytes: int, shards: int, found: Constants, machines: Machines) -> Prediction:
    """The cost of a conversion, with nothing rejected and few copies."""
    rows = images / shards
    longest = longest_over_mean(rows, shards)
    elements = images / found.block_items * elements_per_block(found.block_items, shards)
    requests = images * found.image_get + shards * (found.shard_writes + found.shard_moves)
    cpu = images * (found.row_cpu + found.image_cpu + found.image_get * machines.get_cpu)
    cores = machines.workers * machines.cores
    times = {
        "CPU": cpu / cores,
        "network": images * image_bytes / (machines.workers * machines.bandwidth),
        "latency": images * machines.latency / (cores * machines.threads),
    }
    bound_by = max(times, key=lambda name: times[name])
    moves = shards * (found.shard_moves) * machines.latency
    own_work = images * found.copy_cpu + shards * found.info_cpu
    return Prediction(
        shards=shards,
        rows_per_shard=rows,
        longest_over_mean=longest,
        elements=elements,
        elements_per_image=elements / images,
        materialized=images * found.block,
        shuffled=images * found.shuffle,
        requests=requests,
        requests_per_second=images * found.image_get / times[bound_by],
        cpu_hours=cpu / 3600,
        bound_by=bound_by,
        hours=times[bound_by] / 3600,
        side_input=shards * found.boundary,
        thread_memory=rows * longest * found.entry_memory + READ_AHEAD + UPLOAD_BUFFER,
        gathered=shards * found.info,
        images_until_full=LARGEST_ELEMENT / found.info * rows,
        publish_memory=shards * found.info_memory,
        publish_seconds=own_work + moves / machines.connections,
        publish_seconds_one_by_one=own_work + moves,
    )
