"""What resharding is told. Options that a conversion has too are declared there; here they may be left open."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.errors import ConfigError, nearest
from beam_tfrecord.options.config import OutputConfig, ShardConfig
from beam_tfrecord.options.declaring import ConfigSection, option
from beam_tfrecord.options.run_config import RunConfig
from beam_tfrecord.options.values import InputSpec, check_split_name, parse_inputs


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
