"""The shortcut through Beam gives what Beam itself would give."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
from apache_beam.transforms import core

from pipelines.beam_signatures import remember_signatures


class Element(beam.DoFn):
    def process(self, element: int, other: Any = beam.DoFn.WindowParam, *more: int, limit: int = 3) -> Any:
        yield element


def test_remembered_signatures_are_those_that_beam_finds() -> None:
    remember_signatures()
    remembered: Any = core.get_function_args_defaults
    look = remembered.look
    functions = [Element().process, Element().setup, Element.process, len, lambda a, b=1: a, beam.CombineFn().add_input]
    for function in functions * 2:
        assert remembered(function) == look(function), function
    assert remembered(Element().process) == (["element", "other"], [beam.DoFn.WindowParam])
    remembered(Element().process)[0].clear()  # what is given out may be changed
    assert remembered(Element().process)[0] == ["element", "other"]


def test_it_is_put_in_once() -> None:
    remember_signatures()
    before = core.get_function_args_defaults
    remember_signatures()
    assert core.get_function_args_defaults is before
