"""What lay in each input, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.report.text import clean, shorten

SHOWN_INPUTS = 50


@dataclass(frozen=True, slots=True)
class ThingRow:
    """Things of one kind that had one use, or were not used for one reason. use, unused: one of them is ''."""

    kind: str
    count: int
    use: str
    unused: str
    example: str


@dataclass(frozen=True, slots=True)
class InputAccount:
    """One input. facts: kinds of things with their numbers. decisions: (what, value, why)."""

    name: str
    format: str
    facts: str
    rows: tuple[ThingRow, ...]
    decisions: tuple[tuple[str, str, str], ...]
    surprises: tuple[tuple[str, str], ...]


def input_accounts(conversion: Mapping[str, Any]) -> list[InputAccount]:
    """The accounts of the first inputs, as conversion.json tells them."""
    return [_account(told) for told in conversion.get("inputs", ())[:SHOWN_INPUTS]]


def _account(told: Mapping[str, Any]) -> InputAccount:
    found = told.get("found", {})
    rows = []
    for kind in found:
        for use, count in told.get("used", {}).get(kind, {}).items():
            rows.append(ThingRow(clean(kind), count, clean(use), "", ""))
        for reason, named in told.get("named", {}).get(kind, {}).items():
            example = shorten(clean(named["example"]), 100)
            rows.append(ThingRow(clean(kind), named["count"], "", clean(reason), example))
    return InputAccount(
        shorten(clean(told["uri"]), 100),
        clean(told["format"]),
        ", ".join(f"{clean(kind)}: {count:,}" for kind, count in found.items()),
        tuple(rows),
        tuple(
            (clean(one["what"]), shorten(clean(one["value"]), 100), shorten(clean(one["why"])))
            for one in told.get("decisions", ())
        ),
        tuple((clean(one["code"]), clean(one["message"])) for one in told.get("surprises", ())),
    )
