"""``python -m benchmarks``: the tool and what people use today, interleaved, as whole processes.

Prints for each program the median wall time, CPU time and peak memory, and how many times faster the tool is. A program
that drops an item fails the run. Absolute times tell about the machine; the ratios are what counts.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks import data
from benchmarks.cases import PRODUCT, SPEED, Case, convert
from benchmarks.insight_cost import measure_insight
from benchmarks.latency import measure_latency
from benchmarks.process import Measured, measure
from benchmarks.quality import resize_quality
from benchmarks.scaling import measure_growth, measure_memory, measure_rows
from benchmarks.stores import measure_stores
from benchmarks.whole_run import run
from benchmarks.worker import measure_worker

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*(case.name for case in SPEED), "P6", "P7", "I1", "W1", "latency", "R1", "R2", "R3", "growth"]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="which measurements (default: all)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, three runs: minutes become one")
    parser.add_argument("--repeat", type=int, default=0, help="timed runs of each program (default: 5; quick: 3)")
    parser.add_argument("--data", type=Path, default=ROOT / "build" / "benchmarks", help="where collections are kept")
    parser.add_argument("--json", type=Path, help="write the numbers there as well")
    parser.add_argument("--many", action="store_true", help="growth up to 200,000 pictures (3 GB)")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    repeat = chosen.repeat or (3 if chosen.quick else 5)
    found: dict[str, object] = {"machine": machine()}
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=made(chosen.data)) as scratch:
        place = Path(scratch)
        for case in SPEED:
            if case.name in chosen.only:
                found[case.name] = run_case(case, chosen.data, place, repeat, quick=chosen.quick)
        if "P4" in chosen.only:
            folder = data.make(data.FEW_LARGE, chosen.data)
            found["P4 quality"] = tell("P4 smallest PSNR beside full decode and LANCZOS, dB", resize_quality(folder))
        if "P6" in chosen.only:
            found["P6"] = measure_memory(chosen.data, place, quick=chosen.quick)
        if "P7" in chosen.only:
            found["P7"] = measure_rows(chosen.data, place, quick=chosen.quick)
        if "I1" in chosen.only:
            found["I1"] = measure_insight(chosen.data, place, repeat, quick=chosen.quick)
        if "W1" in chosen.only:
            found["W1"] = measure_worker(chosen.data, place, repeat, quick=chosen.quick)
        if "latency" in chosen.only:
            found["latency"] = measure_latency(chosen.data, place)
        if stores := {"R1", "R2", "R3"}.intersection(chosen.only):
            found |= measure_stores(chosen.data, place, stores, repeat)
        if "growth" in chosen.only and not chosen.quick:
            found["growth"] = measure_growth(chosen.data, place, many=chosen.many)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def made(folder: Path) -> Path:
    """The folder, made when it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def machine() -> str:
    """A line about where this was measured."""
    import apache_beam
    import psutil

    memory = psutil.virtual_memory().total / 2**30
    cores = psutil.cpu_count()
    return (
        f"{cores} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, Python "
        f"{platform.python_version()}, Beam {apache_beam.__version__}, load {psutil.getloadavg()[0]:.1f}"
    )


def tell(name: str, value: float) -> float:
    """Print a number and hand it on."""
    print(f"{name}: {value:.1f}", flush=True)
    return value


def run_case(case: Case, root: Path, scratch: Path, repeat: int, *, quick: bool) -> dict[str, dict[str, float]]:
    """Run the programs of a case in turns, and print their medians.

    Memory is watched in a round of its own, the first one, whose times do not count: watching takes time, most from a
    program that has all cores busy.
    """
    wanted = case.quick if quick else case.data
    source = data.make(wanted, root)
    expected = wanted.count if isinstance(wanted, data.Pictures) else wanted.rows
    if case.source_is_dataset:
        source = as_dataset(source, scratch / f"dataset-{case.name}")
    runs: dict[str, list[Measured]] = {program.name: [] for program in case.programs}
    peaks: dict[str, int] = {}
    for number in range(min(repeat, case.most_runs) + 1):
        for program in case.programs:
            measured = run(program, source, scratch / "output", expected, watched=number == 0)
            if number == 0:
                peaks[program.name] = measured.peak
            else:
                runs[program.name].append(measured)
    print(f"\n{case.name}: {case.title}{' (a tenth of it)' if quick and wanted != case.data else ''}")
    ours = statistics.median(one.wall for one in runs[PRODUCT])
    rows = {}
    for name, timed in runs.items():
        wall = statistics.median(one.wall for one in timed)
        cpu = statistics.median(one.cpu for one in timed)
        peak = peaks[name]
        rows[name] = {"wall": wall, "cpu": cpu, "peak": peak, "ratio": wall / ours}
        goal = f"   goal {case.goal:g}" if name == case.against else ""
        each = cpu / expected * 1e6
        print(
            f"  {name:28} {wall:7.2f} s   cpu {cpu:7.2f} s, {each:8.1f} us each   {peak / 2**20:6.0f} MiB   "
            f"x{wall / ours:5.2f}{goal}"
        )
    sys.stdout.flush()
    return rows


def as_dataset(source: Path, output: Path) -> Path:
    """The collection converted, for programs that read a dataset."""
    measure(convert("--num_shards", "16", "--overwrite").command(source, output), ROOT)
    return output


if __name__ == "__main__":
    sys.exit(main())
