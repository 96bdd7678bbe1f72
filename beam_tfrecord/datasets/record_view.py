"""A record of either message type, seen alike: its features, and the pictures' features one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.tfrecord.example import decode_example, decode_sequence_example, is_sequence_example

EXAMPLE = "Example"
SEQUENCE_EXAMPLE = "SequenceExample"


@dataclass(frozen=True, slots=True)
class RecordView:
    """A decoded record.

    message: ``Example`` or ``SequenceExample``. features: of the Example, or of the context. steps: the feature lists
    of a SequenceExample, one feature for each step.
    """

    message: str
    features: Mapping[str, Feature]
    steps: Mapping[str, Sequence[Feature]] = field(default_factory=dict)

    @property
    def num_steps(self) -> int:
        """How many steps the longest feature list has."""
        return max(map(len, self.steps.values()), default=0)


def view_record(data: bytes) -> RecordView:
    """The record in serialized bytes. Raises ValueError when they are neither message.

    A SequenceExample without any feature list has the bytes of an Example, and is taken for one.
    """
    if is_sequence_example(data):
        return RecordView(SEQUENCE_EXAMPLE, *decode_sequence_example(data))
    return RecordView(EXAMPLE, decode_example(data))


def frames(view: RecordView) -> list[Mapping[str, Feature]]:
    """What is told of each picture: the features of an Example, or those of each step of a SequenceExample."""
    if view.message == EXAMPLE:
        return [view.features]
    return [
        {key: values[number] for key, values in view.steps.items() if number < len(values)}
        for number in range(view.num_steps)
    ]
