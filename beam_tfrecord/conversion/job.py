"""What is looked at before a job starts: the inputs, the vocabulary file and the output folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from beam_tfrecord.conversion.choosing.choice import NO_CHOICE, Choice, load_choice
from beam_tfrecord.conversion.planning.block_reading import pack_entries, read_entries
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan, plan_dataset
from beam_tfrecord.conversion.planning.mask_depth import deep_kinds
from beam_tfrecord.conversion.planning.survey import Survey, merge_surveys
from beam_tfrecord.conversion.writing.array_record_files import check_array_record
from beam_tfrecord.conversion.writing.staging import read_publication, staging_folder
from beam_tfrecord.datasets.metadata import CONVERSION, DATASET_INFO
from beam_tfrecord.datasets.metadata.labels import name_of_line
from beam_tfrecord.datasets.metadata.shape import read_listed
from beam_tfrecord.errors import ConfigError, DatasetError
from beam_tfrecord.manifests import describe_inputs, describe_rows, missing
from beam_tfrecord.manifests.base import Piece, Source
from beam_tfrecord.manifests.inputs import check_id_column
from beam_tfrecord.manifests.label_map import read_label_map
from beam_tfrecord.manifests.text.lines import decode_text, split_lines
from beam_tfrecord.options.config import ConvertConfig, OutputConfig
from beam_tfrecord.storage import Storage, name_of
from beam_tfrecord.storage.lease import Lease, LeaseKey, check_free, give_back, hold, take_for_job
from beam_tfrecord.tfrecord import parse_shard_name


@dataclass(frozen=True)
class Job:
    """A conversion that has been looked at and may start.

    choice: what is taken of the rows. lease: that of the output folder, once it is taken.
    """

    config: ConvertConfig
    sources: tuple[Source, ...]
    fixed_labels: tuple[str, ...] | None
    lease: LeaseKey | None = None
    choice: Choice = NO_CHOICE

    def confirm(self, storage: Storage) -> None:
        """Raise StorageError when the output folder is another run's by now: nothing may be published then."""
        if self.lease is not None:
            self.lease.confirm(storage)


def prepare_job(
    config: ConvertConfig,
    storage: Storage,
    rows: Sequence[Mapping[str, Any]] | None = None,
    sources: tuple[Source, ...] | None = None,
) -> Job:
    """Look at the inputs and the vocabulary. Raises ConfigError or ManifestError with all that a user can mend.

    rows: given in memory, in place of the inputs. sources: those of the inputs, where they are known.
    """
    config = replace(config, output=replace(config.output, output=_without_slash(config.output.output)))
    if config.output.array_record:
        check_array_record()
    if rows is not None:
        sources = (describe_rows(rows, config.manifest),)
        check_id_column(sources[0], config.manifest)
    elif sources is None:
        sources = describe_inputs(storage, config.manifest, config.output.output)
    fixed = read_labels(config, storage)
    return Job(
        _with_told_ids(config, fixed),
        sources,
        fixed.names if fixed is not None else None,
        choice=load_choice(config, storage),
    )


def _without_slash(uri: str) -> str:
    return uri.rstrip("/") or "/"


@dataclass(frozen=True)
class FixedLabels:
    """The names of --labels in id order. ids: where the file tells them, else None."""

    names: tuple[str, ...]
    ids: tuple[int, ...] | None = None


def read_labels(config: ConvertConfig, storage: Storage) -> FixedLabels | None:
    """What --labels says: names in a text, a label map or JSON; None when it is not given. Raises ConfigError."""
    labels = config.labels.labels
    if labels is None:
        return None
    if isinstance(labels, str):
        fixed, where = _labels_in(labels, config, storage), labels
    else:
        fixed, where = FixedLabels(labels), "the names given"
    names = fixed.names
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise ConfigError(f"--labels: {where} names {repeated[0]!r} twice; each label has one id")
    if not names:
        raise ConfigError(f"--labels: {where} holds no names; write one label per line")
    if fixed.ids is not None and (config.labels.label_offset is not None or config.labels.label_ids is not None):
        flag = "--label_offset" if config.labels.label_ids is None else "--label_ids"
        raise ConfigError(f"--labels {where} tells the ids of the labels itself: leave {flag} out")
    return fixed


def _labels_in(uri: str, config: ConvertConfig, storage: Storage) -> FixedLabels:
    try:
        with storage.open(uri) as file:
            text = decode_text(file.read(), config.manifest.encoding)
        items = read_label_map(text, uri)
    except FileNotFoundError:
        raise ConfigError(f"--labels {uri}: {missing(storage, uri)}") from None
    except ValueError as error:
        raise ConfigError(f"--labels {uri}: {error}") from None
    if items is not None:
        ids = [number for number, _ in items if number is not None]
        return FixedLabels(tuple(name for _, name in items), tuple(ids) or None)
    lines = split_lines(text.rstrip())
    blank = next((number for number, line in enumerate(lines, start=1) if not line.strip()), 0)
    if blank and any(line.strip() for line in lines):
        raise ConfigError(f"--labels {uri}: line {blank} is blank, but each line is an id: name it, or take it out")
    return FixedLabels(tuple(name_of_line(line) for line in lines if line.strip()))


def _with_told_ids(config: ConvertConfig, fixed: FixedLabels | None) -> ConvertConfig:
    """The config as if the ids that the file of --labels tells had been given by the options."""
    if fixed is None or fixed.ids is None:
        return config
    first = fixed.ids[0]
    if fixed.ids == tuple(range(first, first + len(fixed.ids))):
        return replace(config, labels=replace(config.labels, label_offset=first))
    return replace(config, labels=replace(config.labels, label_ids=fixed.ids))


# ---------------------------------------------------------------------------------------------------------------------
# The output folder


@contextmanager
def owned_folder(output: OutputConfig, storage: Storage, command: str) -> Iterator[Lease]:
    """The output folder made ready, and nobody else's as long as the block runs.

    What is wrong with the place is told before anything is made there: ConfigError for what must not be replaced,
    StorageError where another run writes. command: for whoever comes second.
    """
    check_free(output.output, storage)
    check_folder(output, storage)
    with hold(output.output, storage, command) as lease:
        clear_folder(output, storage)
        yield lease


def prepared_folder(output: OutputConfig, storage: Storage, command: str) -> LeaseKey:
    """The same for a job that somebody else runs: its last step gives the folder back."""
    check_free(output.output, storage)
    check_folder(output, storage)
    key = take_for_job(output.output, storage, command)
    try:
        clear_folder(output, storage)
    except BaseException:
        give_back(key)
        raise
    return key


def clear_output(job: Job, storage: Storage) -> None:
    """Make the output folder ready, or raise ConfigError when it holds something that must not be replaced.

    Own staging is deleted, unless the run resumes. An existing dataset stays until the new one is complete.
    """
    clear_folder(job.config.output, storage)


def clear_folder(output: OutputConfig, storage: Storage) -> None:
    """:func:`clear_output` for whatever makes a dataset. The folder's name has no slash at its end."""
    left = check_folder(output, storage)
    if not output.resume:
        storage.delete(left)
        storage.delete_tree(staging_folder(output.output))


def check_folder(output: OutputConfig, storage: Storage) -> list[str]:
    """Raise ConfigError when the output folder holds something that must not be replaced; deletes nothing.

    Returns the uris that a publication which was broken off has left.
    """
    names = [name_of(uri) for uri in storage.list_folder(output.output)] if storage.is_folder(output.output) else []
    if storage.is_file(output.output):
        raise ConfigError(f"--output {output.output} is a file: name a folder")
    left = read_publication(storage, output.output).names
    has_dataset = CONVERSION in names or DATASET_INFO in names
    strangers = [name for name in names if name not in left and not name.startswith(".")]
    if has_dataset and not left and not (output.overwrite or output.resume):
        raise ConfigError(
            f"{output.output} holds a dataset already: give --overwrite to replace it, or another --output"
        )
    if has_dataset and not left:
        try:  # what is to be replaced is known now, and not at the end only
            read_listed(output.output, storage)
        except DatasetError as error:
            raise ConfigError(str(error)) from None
    if not has_dataset and strangers:
        kind = "TFRecord shards of something else" if any(map(parse_shard_name, strangers)) else "other files"
        raise ConfigError(
            f"{output.output} holds {kind} ({', '.join(sorted(strangers)[:3])}): name an empty or new folder"
        )
    return [f"{output.output}/{name}" for name in left if name in names]


# ---------------------------------------------------------------------------------------------------------------------
# The survey without a pipeline, for --plan and for writers that must know the splits in advance


def survey_sources(job: Job, storage: Storage) -> Survey:
    """The survey of all rows, made in this process."""
    return merge_surveys(_surveys(job, storage))


def _surveys(job: Job, storage: Storage) -> Iterator[Survey]:
    for number, source in enumerate(job.sources):
        entries = read_entries(Piece(source), job.config, storage, job.choice)
        has_census, units = bool(source.census), job.choice.near.units
        for block in pack_entries(entries, number, job.config, has_census=has_census, keeps_items=False, units=units):
            yield block.survey


def plan_job(job: Job, storage: Storage) -> DatasetPlan:
    """The plan of a job, made in this process."""
    return plan_surveyed(job, survey_sources(job, storage), storage)


def plan_surveyed(job: Job, survey: Survey, storage: Storage) -> DatasetPlan:
    """The plan of a job whose rows are surveyed."""
    return plan_dataset(
        survey,
        job.sources,
        job.fixed_labels,
        job.config,
        storage.sizes_as_named,
        lambda masks: deep_kinds(masks, storage),
        storage.walk,
        job.choice,
    )
