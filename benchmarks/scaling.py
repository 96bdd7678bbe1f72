"""How memory and time grow with the data."""

from __future__ import annotations

import csv
import time
from pathlib import Path

from benchmarks import data
from benchmarks.cases import convert
from benchmarks.process import Measured
from benchmarks.whole_run import run

MEBI = 2**20


def converted(source: Path, scratch: Path, expected: int, *options: str) -> Measured:
    """One conversion with nothing dropped."""
    return run(convert(*options), source, scratch / "output", expected)


def measure_memory(root: Path, scratch: Path, *, quick: bool) -> dict[str, float]:
    """P6: peak memory of many items against few."""
    found = {}
    pairs = [("small", data.SMALL, data.FEW_SMALL), ("large", data.LARGE, data.FEW_LARGE)]
    print("\nP6: peak memory of the process tree")
    for name, many, few in pairs[1:] if quick else pairs:
        peaks = [converted(data.make(one, root), scratch, one.count).peak for one in (many, few)]
        found[name] = peaks[0] / peaks[1]
        print(
            f"  {name}: {many.count:,} items {peaks[0] / MEBI:.0f} MiB, {few.count:,} items {peaks[1] / MEBI:.0f} MiB, "
            f"x{found[name]:.2f}   goal at most 1.1, under 300 MB",
            flush=True,
        )
    return found


def measure_rows(root: Path, scratch: Path, *, quick: bool) -> dict[str, float]:
    """P7: a manifest of very many rows over few pictures, beside a loop that only opens the files."""
    wanted = data.Rows(100_000) if quick else data.MILLION
    manifest = data.make(wanted, root)
    started = time.perf_counter()
    with manifest.open(newline="") as file:
        for row in csv.DictReader(file):
            (manifest.parent / row["image"]).read_bytes()
    opening = time.perf_counter() - started
    ours = converted(manifest, scratch, wanted.rows, "--id_column", "id")
    above = (ours.wall - opening) / wanted.rows * 1e6
    print(
        f"\nP7: {wanted.rows:,} rows: {ours.wall:.1f} s, cpu {ours.cpu:.1f} s, {above:.0f} us a row above opening the "
        f"files, {ours.peak / MEBI:.0f} MiB   goal at most 45 us, under 1 GB",
        flush=True,
    )
    return {"wall": ours.wall, "opening": opening, "peak": ours.peak}


def measure_growth(root: Path, scratch: Path, *, many: bool) -> dict[str, float]:
    """Time per item for more and more items."""
    found = {}
    print("\ngrowth")
    for one in (data.FEW_SMALL, data.SMALL, *([data.MANY_SMALL] if many else [])):
        measured = converted(data.make(one, root), scratch, one.count, "--shard_size", "32MiB")
        found[str(one.count)] = measured.wall
        per_item = measured.wall / one.count * 1e6
        print(f"  {one.count:>9,} items {measured.wall:8.2f} s   {per_item:6.1f} us each   "
              f"{measured.peak / MEBI:.0f} MiB", flush=True)  # fmt: skip
    return found
