"""I1: what the look at the pictures costs a conversion that decodes them all, in CPU time and in pairs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks import data
from benchmarks.cases import SHARDS, convert
from benchmarks.whole_run import run

GOAL = 1.03
SMALL, QUICK_SMALL = data.SMALL, data.Pictures(2_000, 256, 256, 76)
MIDDLE, QUICK_MIDDLE = data.Pictures(2_000, 640, 480, 93), data.Pictures(200, 640, 480, 93)  # about 120 KB each


def measure_insight(root: Path, scratch: Path, repeat: int, *, quick: bool) -> dict[str, dict[str, float]]:
    """Runs with and without, in turns; the one before them fills caches and does not count."""
    print("\nI1: --validate full with --insight on and off, CPU time in pairs")
    found = {}
    for wanted in (QUICK_SMALL, QUICK_MIDDLE) if quick else (SMALL, MIDDLE):
        source = data.make(wanted, root)
        spent: dict[str, list[float]] = {"off": [], "on": []}
        run(convert(*SHARDS), source, scratch / "output", wanted.count, watched=False)
        for number in range(repeat):
            for choice in ("off", "on") if number % 2 else ("on", "off"):
                program = convert(*SHARDS, "--insight", choice)
                spent[choice].append(run(program, source, scratch / "output", wanted.count, watched=False).cpu)
        told = summed_up(spent["off"], spent["on"])
        found[wanted.name] = told
        each = (told["on"] - told["off"]) / wanted.count * 1e6
        print(
            f"  {wanted.name:28} off {told['off']:7.2f} s   on {told['on']:7.2f} s   {each:6.1f} us each   "
            f"x{told['ratio']:6.3f}   goal {GOAL:g}",
            flush=True,
        )
    return found


def summed_up(off: Sequence[float], on: Sequence[float]) -> dict[str, float]:
    """Medians of both, and that of the ratios of runs that followed one another."""
    ratio = statistics.median(more / less for less, more in zip(off, on, strict=True))
    return {"off": statistics.median(off), "on": statistics.median(on), "ratio": ratio}
