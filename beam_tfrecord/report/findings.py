"""What a report tells of rejects, warnings and changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from beam_tfrecord.elements import Finding
from beam_tfrecord.errors import CHANGE_REASONS, REJECT_CODES, WARNING_CODES, Explanation
from beam_tfrecord.report.dataset import Dataset
from beam_tfrecord.report.pictures import Picture, Pictures
from beam_tfrecord.report.text import MAX_TITLE, clean, shorten

_UNKNOWN = Explanation("", "")


@dataclass(frozen=True, slots=True)
class Cut:
    """A text as it is shown, and the whole of it when that is longer."""

    shown: str
    whole: str = ""


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding as a line of a table."""

    code: str
    origin: Cut
    uri: Cut
    message: Cut


@dataclass(frozen=True, slots=True)
class Reason:
    """A code or reason: how often, what it means and how it is mended, with examples."""

    code: str
    count: int
    meaning: str
    cure: str = ""
    examples: tuple[FindingRow, ...] = ()
    pictures: tuple[Picture, ...] = ()


def cut(value: str, most: int) -> Cut:
    """A text for a cell of a table."""
    cleaned = clean(value)
    shown = shorten(cleaned, most)
    return Cut(shown, shorten(cleaned, MAX_TITLE) if shown != cleaned else "")


def finding_rows(findings: Iterable[Finding]) -> tuple[FindingRow, ...]:
    """Findings as lines."""
    return tuple(
        FindingRow(clean(finding.code), cut(finding.origin, 70), cut(finding.uri, 70), cut(finding.message, 220))
        for finding in findings
    )


def reject_reasons(dataset: Dataset) -> list[Reason]:
    """Rejects by code, the most frequent first."""
    return [
        Reason(clean(code), count, *REJECT_CODES.get(code, _UNKNOWN))
        for code, count in _by_count(dataset.conversion.get("rejected", {}).get("by_code", {}))
    ]


def warning_reasons(dataset: Dataset, pictures: Pictures) -> list[Reason]:
    """Warnings by code, with examples and pictures."""
    return [
        Reason(
            clean(code),
            count,
            *WARNING_CODES.get(code, _UNKNOWN),
            finding_rows(dataset.warnings.get(code, ())),
            pictures.warnings.get(code, ()),
        )
        for code, count in _by_count(dataset.conversion.get("warnings", {}))
    ]


def change_reasons(dataset: Dataset, pictures: Pictures) -> list[Reason]:
    """Changes by reason, with pictures."""
    return [
        Reason(
            clean(reason), count, _sentence(CHANGE_REASONS.get(reason, "")), pictures=pictures.changed.get(reason, ())
        )
        for reason, count in _by_count(dataset.conversion.get("changed", {}))
    ]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _by_count(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
