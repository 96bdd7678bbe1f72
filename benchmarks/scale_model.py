"""``python -m benchmarks.scale_model``: what a conversion costs as it grows, measured as far as it goes here, and what
that predicts for a billion images.

Nothing but the hashes of ids is simulated; rows go through the real reader, survey, plan and placement, images through
the real writer. Times are CPU seconds of this machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pickle
import sys
import tempfile
import tracemalloc
from collections.abc import Iterable, Sequence
from pathlib import Path

from beam_tfrecord.conversion.planning.block_reading import BLOCK_ITEMS
from beam_tfrecord.conversion.planning.dataset_plan import SplitPlan
from benchmarks.process import measure
from benchmarks.scale_cost import (
    Constants,
    Machines,
    Prediction,
    elements_per_block,
    longest_over_mean,
    num_shards,
    predict,
    simulate_longest,
)
from benchmarks.scale_publication import PublicationRun, ShardCost, shard_cost
from benchmarks.scale_rows import KINDS, RowCost, RowsRun, row_cost
from benchmarks.scale_writing import CopiesRun, WritingCost, writing_cost

ROOT = Path(__file__).resolve().parent.parent
MEBI, GIBI = 2**20, 2**30
SHARD_SIZES = (128 * MEBI, GIBI, 4 * GIBI)
ROWS_OF_KIND = {"label": 32_768, "ten boxes": 16_384, "COCO polygons": 16_384}
FEW_SHARDS, MANY_SHARDS = 2_000, 12_000  # of a billion images: the difference tells what a shard costs


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale_model",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000], help="sizes of the manifests")
    parser.add_argument("--records", type=int, nargs="*", default=[1_000_000], help="for the search for copies")
    parser.add_argument("--ids", type=int, nargs="*", default=[10**6, 10**7, 10**8], help="of the simulation")
    parser.add_argument("--images", type=int, default=10**9, help="to predict for")
    parser.add_argument("--image_bytes", type=int, default=100_000, help="mean size of an image")
    parser.add_argument("--workers", type=int, default=Machines.workers, help="assumed")
    parser.add_argument("--json", type=Path, help="write the numbers there as well")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    machines = Machines(workers=chosen.workers)
    counts = tuple(num_shards(chosen.images, chosen.image_bytes, size) for size in SHARD_SIZES)
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="scale-") as scratch:
        folder = Path(scratch)
        rows = {kind: row_cost(kind, ROWS_OF_KIND[kind], (16, 1000, *sorted(counts)), folder) for kind in KINDS}
        found["rows"] = tell_rows(rows)
        found["runs"] = [tell_run(run_rows(count, folder)) for count in chosen.rows]
        found["longest"] = [tell_longest(ids, chosen.images // counts[0]) for ids in chosen.ids]
        writing = tell_writing(writing_cost(folder))
        boundary = tell_boundary(*boundary_cost(counts[-1]))
        copies = [tell_copies(run_copies(count, folder)) for count in chosen.records]
    infos = tell_infos(run_publication(FEW_SHARDS, chosen.images), run_publication(MANY_SHARDS, chosen.images))
    found.update(writing=writing, copies=copies, boundary=boundary, infos=infos)
    print(f"\nPredictions for {chosen.images:,} images of {chosen.image_bytes:,} bytes, 1000 classes, {machines}")
    predictions = []
    for kind in KINDS:
        for shards in counts:
            constants = constants_of(rows[kind], shards, writing, infos, boundary, copies)
            predictions.append((kind, predict(chosen.images, chosen.image_bytes, shards, constants, machines)))
    tell_predictions(predictions)
    found["predictions"] = predictions
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1, default=dataclasses.asdict) + "\n")
    return 0


def constants_of(
    row: RowCost,
    shards: int,
    writing: WritingCost,
    info: ShardCost,
    boundary: tuple[float, float],
    copies: Sequence[CopiesRun],
) -> Constants:
    """What was measured, for the formulas."""
    return Constants(
        block_items=BLOCK_ITEMS,
        block=row.block,
        shuffle=row.shuffle[shards],
        entry_memory=row.memory,
        row_cpu=row.read_cpu + row.place_cpu[shards],
        image_cpu=writing.image_cpu,
        image_get=writing.per_image["get"],
        shard_writes=sum(writing.writing.values()),
        shard_moves=sum(writing.publishing.values()),
        boundary=boundary[0],
        info=info.pickled,
        info_memory=info.memory,
        info_cpu=info.cpu,
        copy_cpu=max((run.cpu for run in copies), default=0.0),
    )


def run_rows(rows: int, folder: Path) -> RowsRun:
    """Many rows, in a process of their own; 1,300 rows to a shard."""
    command = [sys.executable, "-m", "benchmarks.scale_rows", str(rows), str(rows // 1300), str(folder)]
    return RowsRun(**json.loads(measure(command, ROOT).output.splitlines()[-1]))


def run_copies(records: int, folder: Path) -> CopiesRun:
    """A search for copies, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale_writing", str(records), "13000", str(folder)]
    return CopiesRun(**json.loads(measure(command, ROOT).output.splitlines()[-1]))


def run_publication(shards: int, images: int) -> PublicationRun:
    """Made-up shards, really added up and published, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale_publication", str(shards), str(images)]
    return PublicationRun(**json.loads(measure(command, ROOT).output.splitlines()[-1]))


def boundary_cost(shards: int) -> tuple[float, float]:
    """Bytes of the plan for each shard: packed, and in the memory of a worker."""
    cuts = tuple(2**64 * number // shards for number in range(1, shards))
    packed = pickle.dumps(SplitPlan("train", shards, cuts), protocol=5)
    del cuts
    tracemalloc.start()
    plan = pickle.loads(packed)
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return len(packed) / plan.num_shards, memory / plan.num_shards


# ---------------------------------------------------------------------------------------------------------------------
# Telling


def tell_rows(rows: dict[str, RowCost]) -> dict[str, RowCost]:
    """Print what a row of each kind costs."""
    print("Bytes of one row, and CPU microseconds")
    for kind, cost in rows.items():
        print(f"  {kind:14} manifest {cost.manifest:6.0f}   entry alone {cost.payload:5.0f}   in a block "
              f"{cost.block:5.0f}   in the writer's memory {cost.memory:5.0f}   "
              f"read {cost.read_cpu * 1e6:5.0f} us")  # fmt: skip
        for shards, size in cost.shuffle.items():
            expected = elements_per_block(BLOCK_ITEMS, shards)
            print(f"    {shards:>9,} shards: {size:6.0f} bytes through the shuffle, {cost.elements[shards]:8.0f} "
                  f"elements of a block of {BLOCK_ITEMS:,} (formula {expected:8.0f}), placed in "
                  f"{cost.place_cpu[shards] * 1e6:4.0f} us")  # fmt: skip
    sys.stdout.flush()
    return rows


def tell_run(run: RowsRun) -> RowsRun:
    """Print one run of many rows."""
    print(f"\n{run.rows:,} rows through reader, survey, plan and placement: {run.shards:,} shards\n"
          f"  memory above the process: reading and survey {run.read_memory / MEBI:.0f} MiB, with the plan "
          f"{run.plan_memory / MEBI:.0f} MiB, with placement {run.place_memory / MEBI:.0f} MiB\n"
          f"  survey {run.survey_bytes / 1e6:.2f} MB, plan {run.plan_bytes / 1e6:.2f} MB, {run.elements:,} elements, "
          f"{run.shuffle_bytes / run.rows:.0f} bytes a row through the shuffle\n"
          f"  longest shard {run.longest_over_mean:.3f} of the mean (formula for hashes "
          f"{longest_over_mean(run.rows / run.shards, run.shards):.3f})\n"
          f"  CPU a row: cutting {run.cut_cpu * 1e6:.2f} us, reading and survey {run.read_cpu * 1e6:.0f} us, placement "
          f"{run.place_cpu * 1e6:.0f} us", flush=True)  # fmt: skip
    return run


def tell_longest(ids: int, rows_per_shard: int) -> dict[str, float]:
    """Print the longest shard of a simulation beside the formula."""
    shards = max(2, ids // rows_per_shard)
    simulated, expected = simulate_longest(ids, shards), longest_over_mean(ids / shards, shards)
    print(f"\n{ids:,} hashes in {shards:,} shards: the longest has {simulated:.3f} of the mean (formula "
          f"{expected:.3f})", flush=True)  # fmt: skip
    return {"ids": ids, "shards": shards, "simulated": simulated, "formula": expected}


def tell_writing(cost: WritingCost) -> WritingCost:
    """Print what shards cost."""
    print(f"\nWriting: {cost.per_image['get']:.2f} requests for an image; an image of {cost.image_bytes:,} bytes takes "
          f"{cost.image_cpu * 1e3:.1f} ms of CPU")  # fmt: skip
    for name, requests in (("while a shard is written", cost.writing), ("when it is published", cost.publishing)):
        told = ", ".join(f"{number:g} {kind}" for kind, number in requests.items() if number)
        print(f"  requests {name}: {sum(requests.values()):g} ({told})", flush=True)
    return cost


def tell_boundary(packed: float, memory: float) -> tuple[float, float]:
    """Print what a shard takes of the plan."""
    print(f"\nPlan: {packed:.1f} bytes for each shard as a side input, {memory:.0f} in memory", flush=True)
    return packed, memory


def tell_copies(run: CopiesRun) -> CopiesRun:
    """Print one search for copies."""
    print(f"\nSearch for copies among {run.records:,} records: {run.memory / MEBI:.0f} MiB above the process, "
          f"{run.cpu * 1e6:.1f} us of CPU and {run.item_bytes:.0f} bytes of items a record, {run.found} found",
          flush=True)  # fmt: skip
    return run


def tell_infos(few: PublicationRun, many: PublicationRun) -> ShardCost:
    """Print what it takes to publish."""
    cost = shard_cost(few, many)
    for run in (few, many):
        print(f"\nPublication of {run.shards:,} shards: {run.gathered:,} bytes of all of them together, "
              f"{run.branch_memory / MEBI:.0f} MiB where a branch is added up and {run.publish_memory / MEBI:.0f} MiB "
              f"where all is published, above the process; {run.add_cpu * 1e6:.0f} and {run.publish_cpu * 1e6:.0f} us "
              f"of CPU a shard, conversion.json of {run.conversion:,} bytes", flush=True)  # fmt: skip
    print(f"  so each shard more takes {cost.pickled:.0f} bytes in that element, {cost.memory:,.0f} of memory and "
          f"{cost.cpu * 1e6:.0f} us where all is published", flush=True)  # fmt: skip
    return cost


def tell_predictions(predictions: Sequence[tuple[str, Prediction]]) -> None:
    """Print the predictions."""
    for kind, one in predictions:
        print(f"\n  {kind}, {one.shards:,} shards of {one.rows_per_shard:,.0f} records\n"
              f"    longest shard {one.longest_over_mean:.2f} of the mean; {one.elements / 1e6:,.0f} million elements "
              f"in the shuffle ({one.elements_per_image:.2f} an image)\n"
              f"    {one.materialized / 1e9:,.0f} GB of blocks kept until the plan is made, "
              f"{one.shuffled / 1e9:,.0f} GB shuffled\n"
              f"    {one.cpu_hours:,.0f} hours of CPU; {one.hours:.1f} hours, bound by {one.bound_by}; "
              f"{one.requests / 1e6:,.0f} million requests, {one.requests_per_second:,.0f} images a second\n"
              f"    side input {one.side_input / 1e6:.1f} MB; a writing thread {one.thread_memory / MEBI:.0f} MiB\n"
              f"    publish: {one.gathered / 1e9:.2f} GB gathered in one element (2 GiB at "
              f"{one.images_until_full / 1e6:,.0f} million images), {one.publish_memory / 1e9:.1f} GB in memory, "
              f"{one.publish_seconds / 3600:.1f} hours "
              f"({one.publish_seconds_one_by_one / 3600:.0f} if requests went one by one)")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
