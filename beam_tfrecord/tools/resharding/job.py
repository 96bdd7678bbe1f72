"""What resharding is told, and a job that has been looked at and may start: the inputs, the output folder, the plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from beam_tfrecord.conversion.writing.array_record_files import check_array_record
from beam_tfrecord.errors import ConfigError, DatasetError, nearest
from beam_tfrecord.options.config import OutputConfig, ShardConfig
from beam_tfrecord.options.declaring import ConfigSection, option
from beam_tfrecord.options.run_config import RunConfig
from beam_tfrecord.options.values import InputSpec, check_split_name, parse_inputs
from beam_tfrecord.storage import Storage
from beam_tfrecord.storage.lease import LeaseKey
from beam_tfrecord.tfrecord import detect_compression
from beam_tfrecord.tools.resharding.ranges import SourceFile, Target, lay_out, mark_samples
from beam_tfrecord.tools.resharding.sources import Source, check_agreement, check_output, open_sources

# ---------------------------------------------------------------------------------------------------------------------
# What resharding is told. Options that a conversion has too are declared there; here they may be left open.


def parse_split_renames(value: Any) -> tuple[tuple[str, str], ...]:
    """``old=new,...`` for splits. Several may get one name: they are joined."""
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        broken = [part for part in parts if "=" not in part]
        if broken:
            raise ValueError(f"{broken[0]!r} is not of the form old=new")
        pairs = [tuple(text.strip() for text in part.split("=", 1)) for part in parts]
    else:
        pairs = [(str(old), str(new)) for old, new in (value.items() if isinstance(value, Mapping) else value)]
    names = [old for old, _ in pairs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{repeated[0]!r} is given twice")
    return tuple((old, check_split_name(new)) for old, new in pairs)


def _like(section: type[ConfigSection], name: str, help: str = "") -> Any:
    """The option of a conversion under the same name; with another help it has no default."""
    field = next(field for field in dataclasses.fields(section) if field.name == name)
    metadata = {**field.metadata, "help": help or field.metadata["help"]}
    return dataclasses.field(default=None if help else field.default, metadata=metadata)


@dataclass(frozen=True)
class ReshardOptions(ConfigSection):
    """Where from, where to, and what is to be different. None means: as it is."""

    input: tuple[InputSpec, ...] = option(
        (), "folders of datasets; SPLIT=DIR names the split of all that one holds", parse=parse_inputs, repeated=True
    )
    num_shards: int | tuple[tuple[str, int], ...] | None = _like(
        ShardConfig,
        "num_shards",
        "number of shards of the whole dataset, or of each split: train=16,validation=2 (default: the shards stay)",
    )
    shard_size: int | None = _like(
        ShardConfig, "shard_size", "size of a shard that is aimed at where --num_shards says nothing"
    )
    compression: str | None = _like(
        ShardConfig, "compression", "compression of the shards (default: as it is; none where the inputs differ)"
    )
    rename_splits: tuple[tuple[str, str], ...] = option(
        (),
        "other names for splits; splits that get one name are joined in the order of their old names",
        parse=parse_split_renames,
        metavar="OLD=NEW,...",
    )
    output: str = _like(OutputConfig, "output")
    overwrite: bool = _like(OutputConfig, "overwrite")
    index: bool = _like(OutputConfig, "index")
    array_record: bool = _like(OutputConfig, "array_record")
    name: str | None = _like(
        OutputConfig,
        "name",
        "name of the dataset in its metadata (default: as it is; of several datasets, from the output folder)",
    )
    gcs_user_project: str | None = _like(RunConfig, "gcs_user_project")

    def check(self) -> None:
        if not self.input:
            raise ConfigError("name the folder of a dataset")
        if not self.output:
            raise ConfigError("--output is needed: the folder of the new dataset")

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ReshardOptions:
        """The options for flat values by name. Absent or None means the default. Raises ConfigError."""
        known = {field.name for field in dataclasses.fields(cls)}
        for name in options:
            if name not in known:
                raise ConfigError(f"there is no option {name!r}{nearest(name, known)}")
        return cls(**{name: value for name, value in options.items() if value is not None})

    @property
    def folder(self) -> str:
        """The output folder, without a slash at its end."""
        return self.output.rstrip("/") or "/"

    @property
    def publication(self) -> OutputConfig:
        """How the result is published, in the words of a conversion."""
        return OutputConfig(
            output=self.folder, overwrite=self.overwrite, index=self.index, array_record=self.array_record
        )


# ---------------------------------------------------------------------------------------------------------------------
# The job


_HEAD = 1 << 16


@dataclass(frozen=True)
class ReshardJob:
    """What is to be done.

    sources: one or more; all have facts, or there is one without. compression: of the new shards. identities: of each
    source, the keys of records that tell ids and contents apart, where these have to be compared; else empty.
    lease: that of the output folder, once it is taken.
    """

    options: ReshardOptions
    sources: tuple[Source, ...]
    compression: str
    identities: Mapping[str, str]
    lease: LeaseKey | None = None

    def of_lease(self, lease: LeaseKey) -> ReshardJob:
        """The job with the lease of its output folder."""
        return replace(self, lease=lease)

    def confirm(self, storage: Storage) -> None:
        """Raise StorageError when the output folder is another run's by now: nothing may be published then."""
        if self.lease is not None:
            self.lease.confirm(storage)

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """All source files: those of the first input first, of each the splits in order."""
        return tuple(file for source in self.sources for file in source.files)

    @property
    def is_counted(self) -> bool:
        """Whether the number of records of every file is stated."""
        return all(file.records >= 0 for file in self.files)

    @property
    def has_metadata(self) -> bool:
        """Whether there are metadata to carry over."""
        return all(source.facts is not None for source in self.sources)


def prepare_job(options: ReshardOptions, storage: Storage) -> ReshardJob:
    """Look at everything that can be wrong before records are read. Raises ConfigError or DatasetError."""
    if options.array_record:
        check_array_record()
    sources = open_sources(options.input, options.rename_splits, storage)
    check_output(options.folder, sources)
    several = len(sources) > 1
    for source in sources:
        if several and source.facts is None:
            raise DatasetError(
                f"{source.name} is no folder with a conversion.json, so nothing tells whether its records are like "
                "those of the other inputs: convert it, or reshard all files together with one glob"
            )
    if several:
        check_agreement([(source.name, source.facts) for source in sources if source.facts is not None])
    _check_split_options(options, sources)
    job = ReshardJob(options, sources, _compression(options, sources, storage), _identities(sources))
    if job.is_counted:
        plan_targets(job, job.files)  # options that do not fit are told now
    return job


def plan_targets(job: ReshardJob, files: Sequence[SourceFile]) -> tuple[Target, ...]:
    """The shards to write, once the lengths of all files are known. Raises ConfigError or DatasetError."""
    if not sum(file.records for file in files):
        raise DatasetError(f"{', '.join(source.name for source in job.sources)}: there are no records")
    layout = lay_out(files, job.options.num_shards, job.options.shard_size)
    return mark_samples(layout, files, [source.statistics for source in job.sources])


def counted(job: ReshardJob, files: Sequence[SourceFile]) -> ReshardJob:
    """The job with the lengths of its files, which come in any order."""
    by_uri = {file.uri: file for file in files}
    sources = tuple(replace(source, files=tuple(by_uri[file.uri] for file in source.files)) for source in job.sources)
    return replace(job, sources=sources)


def _check_split_options(options: ReshardOptions, sources: Sequence[Source]) -> None:
    """--num_shards may name only splits of the result; told now also where nothing is counted yet."""
    if isinstance(options.num_shards, tuple):
        known = sorted({split for source in sources for split in source.split_of.values()})
        for name, _ in options.num_shards:
            if name not in known:
                raise ConfigError(
                    f"--num_shards names the split {name!r}, which has no records; there are {', '.join(known)}"
                    f"{nearest(name, known)}"
                )


def _compression(options: ReshardOptions, sources: Sequence[Source], storage: Storage) -> str:
    """The compression asked for, else that of all inputs, else none."""
    if options.compression is not None:
        return options.compression
    found = {
        source.facts.compression if source.facts is not None else _detected(source.files, storage) for source in sources
    }
    return found.pop() if len(found) == 1 else "none"


def _detected(files: Sequence[SourceFile], storage: Storage) -> str:
    """The compression of files from elsewhere, told by the first one that has bytes."""
    for file in files:
        with storage.open(file.uri) as stream:
            head = stream.read(_HEAD)
        if head:
            return detect_compression(head, file.name)
    return "none"


def _identities(sources: Sequence[Source]) -> Mapping[str, str]:
    """Logical name -> key of what tells records apart, when there are several inputs (which agree in their keys)."""
    facts = sources[0].facts
    if len(sources) == 1 or facts is None:
        return {}
    return {name: facts.keys[name] for name in ("source_id", "sha256") if name in facts.keys}
