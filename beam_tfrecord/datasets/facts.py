"""What the conversion.json of a finished dataset states, in types that verify, show and readers work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from beam_tfrecord.annotations.base import FeatureSpec, Vocabulary
from beam_tfrecord.datasets.metadata import CONVERSION, PublishedShard, specs_from_json
from beam_tfrecord.datasets.record_keys import keys_of_conversion
from beam_tfrecord.datasets.record_view import EXAMPLE, SEQUENCE_EXAMPLE
from beam_tfrecord.errors import ConfigError, DatasetError
from beam_tfrecord.tfrecord import SUFFIXES


@dataclass(frozen=True)
class DatasetFacts:
    """The stated facts.

    conversion: the whole file. specs: type of each feature by key. keys: logical name (see
    :mod:`beam_tfrecord.annotations.keys`) -> key, of the features that records have. vocabulary: labels and their ids.
    message: ``Example`` or ``SequenceExample``. splits: the shards of each split, in order.
    """

    conversion: Mapping[str, Any]
    specs: Mapping[str, FeatureSpec]
    keys: Mapping[str, str]
    vocabulary: Vocabulary
    message: str
    compression: str
    splits: Mapping[str, tuple[PublishedShard, ...]]

    @property
    def is_sequence(self) -> bool:
        return self.message == SEQUENCE_EXAMPLE

    @property
    def shards(self) -> tuple[PublishedShard, ...]:
        """The shards of all splits, these in the order of their names."""
        return tuple(shard for split in sorted(self.splits) for shard in self.splits[split])

    @cached_property
    def record_specs(self) -> Mapping[str, FeatureSpec]:
        """The specs of what a record has once: all of an Example, the context of a SequenceExample."""
        return {key: spec for key, spec in self.specs.items() if not spec.in_sequence}

    @cached_property
    def step_specs(self) -> Mapping[str, FeatureSpec]:
        """The specs of what each step of a SequenceExample has."""
        return {key: spec for key, spec in self.specs.items() if spec.in_sequence}

    @cached_property
    def label_names(self) -> Mapping[int, str]:
        """Label names by id."""
        return dict(zip(self.vocabulary.ids, self.vocabulary.names, strict=True))


def facts_from(conversion: Mapping[str, Any]) -> DatasetFacts:
    """The facts in a parsed conversion.json. Raises DatasetError, saying what is wrong with it."""
    try:
        specs = {spec.key: spec for spec in specs_from_json(conversion["features"])}
        keys = keys_of_conversion(conversion)
        facts = DatasetFacts(
            conversion=conversion,
            specs=specs,
            keys={name: key for name, key in keys.items() if key in specs},
            vocabulary=_vocabulary(conversion),
            message=str(conversion["message"]),
            compression=str(conversion["compression"]),
            splits={
                str(split): tuple(_shard(fields) for fields in value["shards"])
                for split, value in conversion["splits"].items()
            },
        )
    except KeyError as error:
        raise DatasetError(f"{CONVERSION} is damaged: it lacks {error}") from None
    except (TypeError, ValueError, AttributeError, ConfigError) as error:
        raise DatasetError(f"{CONVERSION} is damaged: {error}") from None
    if facts.message not in (EXAMPLE, SEQUENCE_EXAMPLE):
        raise DatasetError(f"{CONVERSION} is damaged: message is {facts.message!r}")
    if facts.compression not in SUFFIXES:
        raise DatasetError(f"{CONVERSION} is damaged: compression is {facts.compression!r}")
    return facts


def _vocabulary(conversion: Mapping[str, Any]) -> Vocabulary:
    names = tuple(str(name) for name in conversion["labels"])
    ids = tuple(_whole(number) for number in conversion.get("label_ids") or ())
    return Vocabulary(names, _whole(conversion["label_offset"]), ids)


def _shard(fields: Mapping[str, Any]) -> PublishedShard:
    numbers = {name: _whole(fields[name]) for name in ("records", "bytes", "payload_bytes")}
    file = fields["file"]
    if not isinstance(file, str) or not file or "/" in file:
        raise ValueError(f"a shard's file is {file!r}, which is no name of a file")
    return PublishedShard(file=file, crc32c=str(fields["crc32c"]), **numbers)


def _whole(number: Any) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"{number!r} stands where a whole number must be")
    return number
