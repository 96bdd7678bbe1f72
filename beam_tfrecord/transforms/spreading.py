"""Elements spread over the workers, in few steps.

Each step of a graph costs some ten milliseconds of CPU before it does anything, which is most of a small job; of Beam's
own steps ``Create`` consists of four, ``Reshuffle`` of five, and the default of ``CombineGlobally`` of five.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam


class _Number(beam.DoFn):
    def __init__(self, elements: tuple[Any, ...]) -> None:
        self._elements = elements

    def process(self, start: bytes) -> Iterable[tuple[int, Any]]:
        return enumerate(self._elements)


class SpreadList(beam.PTransform):
    """The elements of a list, each for any worker: PBegin -> PCollection[T]. kind: T."""

    def __init__(self, elements: Sequence[Any], kind: type) -> None:
        super().__init__()
        self._elements = tuple(elements)
        self._kind = kind

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Any]:
        kind: Any = self._kind
        return (
            root
            | "Start" >> beam.Impulse()
            | "Number" >> beam.ParDo(_Number(self._elements)).with_output_types(tuple[int, kind])
            | "Spread" >> Spread(kind)
        )


class _TakeGrouped(beam.DoFn):
    def process(self, element: tuple[int, Iterable[Any]]) -> Iterable[Any]:
        return element[1]


class Spread(beam.PTransform):
    """Elements with numbers of their own, each for any worker: PCollection[tuple[int, T]] -> PCollection[T].

    kind: T.
    """

    def __init__(self, kind: type) -> None:
        super().__init__()
        self._kind = kind

    def expand(self, numbered: beam.PCollection[tuple[int, Any]]) -> beam.PCollection[Any]:
        return (
            numbered
            | "GroupByNumber" >> beam.GroupByKey()
            | "TakeGrouped" >> beam.ParDo(_TakeGrouped()).with_output_types(self._kind)
        )
