"""The library's own front door: convert with one call."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from beam_tfrecord.conversion import job as conversion_job
from beam_tfrecord.conversion.job import Job, owned_folder, prepare_job, prepared_folder
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.publishing.near_rows import with_near_rows
from beam_tfrecord.publishing.summary import Summary
from beam_tfrecord.storage import Storage
from beam_tfrecord.storage.lease import owner_of

if TYPE_CHECKING:
    from beam_tfrecord.transforms.running import BeamFlags


IN_MEMORY = "rows"  # stands for the input where the rows are given as they are


def prepare(**options: Any) -> Job:
    """A job for :class:`beam_tfrecord.ConvertDataset`, with the options of the command line as keywords.

    Looks at the inputs and the output folder, and makes that folder this job's until the job's last step, as long as
    this process lives; a later call for the same folder takes it over. Raises ConfigError or ManifestError for what a
    user can mend, and StorageError where another run writes.
    """
    job, storage = _looked_at(options)
    return replace(job, lease=prepared_folder(job.config.output, storage, "beam_tfrecord.prepare"))


def _looked_at(options: dict[str, Any]) -> tuple[Job, Storage]:
    """The job of some options before its output folder is looked at, and the storage that it uses."""
    rows = options.pop("rows", None)
    if rows is not None:
        options["input"] = IN_MEMORY
    config = ConvertConfig.from_options(options, beside=("rows", "pipeline_options"))
    storage = Storage.for_run(config.run)
    return prepare_job(config, storage, rows), storage


def plan_job(job: Job, storage: Storage) -> DatasetPlan:
    """What ``--plan`` shows of a job, found in this process. For ``near_duplicates`` all pictures are looked at."""
    return conversion_job.plan_job(with_near_rows(job, storage), storage)


def convert(
    input: Any,
    output: Any,
    *,
    pipeline_options: BeamFlags = (),
    **options: Any,
) -> Summary:
    """Convert labelled images or a table to a TFRecord dataset, and say how it ended.

    input: a path or uri, several of them, a pandas DataFrame or a list of dicts (one per row, keys as the columns of a
    manifest). output: folder of the dataset. options: those of the command line, as text or Python values
    (``splits={"train": 0.8, "validation": 0.2}``). pipeline_options: Beam's, as flags or an object; without them the
    job runs in this process.

    Returns a :class:`Summary`; its ``status`` is ``published``, ``withheld`` (more rejects than ``max_rejects``) or
    ``empty``. Raises ConfigError, ManifestError or StorageError.
    """
    from beam_tfrecord.conversion.writing.processes import helpers_ended
    from beam_tfrecord.publishing.summary import read_summary
    from beam_tfrecord.transforms.dataset import ConvertDataset
    from beam_tfrecord.transforms.engines import is_alone
    from beam_tfrecord.transforms.running import make_options, make_pipeline, run_watched

    if options.get("processes") is not None and multiprocessing.current_process().name != "MainProcess":
        raise ConfigError(
            "convert was called with processes in a process that multiprocessing had started: put the call behind "
            "if __name__ == '__main__': so that helper processes, which run the script anew, do not come to it"
        )
    rows = table_rows(input)
    places: dict[str, Any] = {"input": input} if rows is None else {"rows": rows}
    job, storage = _looked_at({**places, "output": str(output), **options})
    with owned_folder(job.config.output, storage, "beam_tfrecord.convert") as lease:
        job = replace(job, lease=lease.key)
        beam_options = make_options(pipeline_options)
        pipeline = make_pipeline(beam_options, job.config)
        has_helpers = job.config.run.processes is not None and is_alone(beam_options)
        _ = pipeline | "ConvertDataset" >> ConvertDataset(job, is_alone=has_helpers)
        with helpers_ended(owner_of(lease.key)):
            run_watched(pipeline, lease.watch)
        return read_summary(job.config.output.output, storage)


def table_rows(source: Any) -> tuple[Mapping[str, Any], ...] | None:
    """The rows of a DataFrame or a list of dicts; None for places."""
    if hasattr(source, "to_dict") and hasattr(source, "columns"):
        return tuple(source.to_dict("records"))
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | Mapping):
        items = list(source)
        if items and all(isinstance(item, Mapping) for item in items):
            return tuple(items)
    return None
