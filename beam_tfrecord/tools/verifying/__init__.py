"""Checks of a dataset on disk: every byte of every record, and everything that its metadata states.

:mod:`.shards` goes through one file, :mod:`.records` looks at one record (:mod:`.pictures`, :mod:`.objects` and
:mod:`.agreement` at parts of it), :mod:`.dataset` at what only all files together tell.
"""

from __future__ import annotations

from beam_tfrecord.tools.verifying.dataset import Verdict, judge_dataset
from beam_tfrecord.tools.verifying.faults import FAULT_CODES, Fault
from beam_tfrecord.tools.verifying.shards import ShardChecker, ShardReport

__all__ = ["FAULT_CODES", "Fault", "ShardChecker", "ShardReport", "Verdict", "judge_dataset"]
