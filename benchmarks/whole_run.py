"""One run of a program, with nothing dropped."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.cases import Program
from benchmarks.process import Measured, measure

ROOT = Path(__file__).resolve().parent.parent


def run(program: Program, source: Path, output: Path, expected: int, *, watched: bool = True) -> Measured:
    """One run into an empty folder. Raises ValueError when an item is missing afterwards. watched: for its memory."""
    shutil.rmtree(output, ignore_errors=True)
    measured = measure(program.command(source, output), ROOT, watched=watched)
    done = program.count(measured.output.splitlines()[-1], output)
    if done != expected:
        raise ValueError(f"{program.name} did {done} of {expected} items")
    shutil.rmtree(output, ignore_errors=True)
    return measured
