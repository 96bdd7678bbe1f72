"""Verifying in a test without a pipeline."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from beam_tfrecord.conversion.writing.progress import Progress
from beam_tfrecord.datasets.shard_files import find_files
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.verifying import Fault, ShardChecker, Verdict, judge_dataset
from beam_tfrecord.tools.verifying.pictures import Decode
from beam_tfrecord.tools.verifying.records import RecordRules
from tests.handmade import decode_for_tests


def verdict_of(*places: Path | str, limit: int = 0, decode: Decode = decode_for_tests) -> Verdict:
    """The verdict on what lies at some places."""
    storage = Storage()
    found = find_files([str(place) for place in places], storage)
    with ThreadPoolExecutor(2) as pool:
        rules = RecordRules(found.facts, decode)
        checker = ShardChecker(rules, storage, pool, 2, limit, "pillow", Progress())
        reports = [checker.check(file) for file in found.files]
    return judge_dataset(reports, found, limit, storage)


def is_faultless(folder: Path) -> bool:
    """Whether nothing is wrong with a dataset, and something was looked at."""
    verdict = verdict_of(folder)
    return verdict.shards > 0 and not verdict.faults


def faults_of(*places: Path | str) -> tuple[Fault, ...]:
    """All faults of what lies at some places."""
    return verdict_of(*places).faults


def codes_of(*places: Path | str) -> list[str]:
    """The codes of all faults, in order."""
    return [fault.code for fault in faults_of(*places)]
