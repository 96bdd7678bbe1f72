"""What the fuzzers share: their flags, and how they tell what they found."""

from __future__ import annotations

import argparse
import faulthandler
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

Found = tuple[list[str], Counter[str]]  # faults, and how many cases ended how


def fuzz(description: str | None, cases: str, count: int, run: Callable[[int, int, Path | None], Found]) -> int:
    """The exit status of a fuzzer as a program: 1 when there are faults.

    run: makes the cases, of a count, a seed and a folder for what shows a fault. cases: what they are called.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help=f"folder for the {cases} that show a fault")
    arguments = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    faulthandler.enable()  # a crash of a decoder shows where it was
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    faults, ends = run(arguments.count, arguments.seed, arguments.keep)
    for fault in faults[:200]:
        print(fault[:1500])
    print(f"{arguments.count} {cases}, {len(faults)} faults; {dict(ends.most_common())}")
    return 1 if faults else 0
