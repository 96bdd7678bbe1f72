"""What a worker of a cluster spends on images: CPU seconds of ``WriteShard`` for 100,000 of them, W1.

The shards are written by the :class:`~beam_tfrecord.conversion.writing.shards.ShardWriter` of the step, with its
threads, in a process that does nothing else; reading rows, planning and Beam are not counted.
"""

from __future__ import annotations

import itertools
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks import data
from benchmarks.process import measure
from benchmarks.stores import ROOT, Place, serving, write_table

SMALL = data.Pictures(8_000, 256, 256, 76)
QUICK = data.FEW_SMALL
EACH = 100_000


def measure_worker(root: Path, scratch: Path, repeat: int, *, quick: bool) -> dict[str, float]:
    """CPU seconds for 100,000 small JPEGs, by where they are and how they are checked."""
    pictures = QUICK if quick else SMALL
    folder = data.make(pictures, root)
    found: dict[str, float] = {}
    print(f"\nW1: WriteShard, CPU seconds for {EACH:,} small JPEGs ({pictures.count:,} were written)")
    for name, place in places(folder, scratch):
        table = write_table(place, folder, pictures.count, scratch)
        for validate in ("header", "full"):
            command = [sys.executable, "-m", "benchmarks.worker", str(table), str(scratch / "worker"), validate]
            runs = [
                float(measure(command, ROOT, watched=False, environment=place.environment).output)
                for _ in range(repeat)
            ]
            found[f"{name} {validate}"] = statistics.median(runs)
            print(f"  {name}, --validate {validate}: {found[f'{name} {validate}']:.1f} s", flush=True)
    return found


def places(folder: Path, scratch: Path) -> Iterator[tuple[str, Place]]:
    """The folder on the disk, and behind Cloud Storage's interface where Go is there to build a server."""
    yield "local", Place(str(folder), {})
    if shutil.which("go"):
        server = scratch / "file_server"
        source = str(ROOT / "benchmarks" / "file_server" / "main.go")
        subprocess.run(["go", "build", "-o", str(server), source], check=True)
        with serving(server, folder, scratch, is_secure=False) as place:
            yield "gs://", place


def write_shards(table: str, output: str, validate: str) -> float:
    """CPU seconds for 100,000 records, of writing all shards of a table of images."""
    from beam_tfrecord.conversion.job import prepare_job
    from beam_tfrecord.conversion.planning.block_reading import pack_entries, read_entries
    from beam_tfrecord.conversion.planning.blocks import unpack_block
    from beam_tfrecord.conversion.planning.dataset_plan import plan_dataset
    from beam_tfrecord.conversion.planning.survey import merge_surveys
    from beam_tfrecord.conversion.writing.progress import Progress
    from beam_tfrecord.conversion.writing.shards import ShardWriter, threads_for
    from beam_tfrecord.images.memory import keep_large_buffers
    from beam_tfrecord.manifests.base import Piece
    from beam_tfrecord.options.config import ConvertConfig
    from beam_tfrecord.storage import Storage

    storage = Storage()
    options = {"input": table, "output": output, "validate": validate, "num_shards": 8}
    job = prepare_job(ConvertConfig.from_options(options), storage)
    blocks = [
        block
        for number, source in enumerate(job.sources)
        for block in pack_entries(read_entries(Piece(source), job.config, storage), number, job.config)
    ]
    survey = merge_surveys(block.survey for block in blocks)
    plan = plan_dataset(survey, job.sources, None, job.config, storage.sizes)
    of_shard: dict[tuple[str, int], list[bytes]] = {}
    for block in blocks:
        for key, own in plan.place_block(block.packed, job.config):
            of_shard.setdefault(key, []).append(own)
    keep_large_buffers()
    threads, records = threads_for(job.config, plan), 0
    with ThreadPoolExecutor(threads) as pool:
        writer = ShardWriter(job.config, plan, storage, pool, threads, Progress())
        started = time.process_time()
        for (split, index), parts in of_shard.items():
            records += writer.write(split, index, itertools.chain.from_iterable(map(unpack_block, parts))).num_records
        spent = time.process_time() - started
    shutil.rmtree(output)
    if records != survey.rows:
        raise ValueError(f"{records} of {survey.rows} pictures were written")
    return spent * EACH / records


if __name__ == "__main__":
    print(json.dumps(write_shards(*sys.argv[1:])))
