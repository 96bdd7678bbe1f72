"""What a report tells of rejects, warnings and changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from beam_tfrecord.core.elements import Finding
from beam_tfrecord.errors import CHANGE_REASONS, REJECT_CODES, WARNING_CODES, Explanation
from beam_tfrecord.report.dataset import Dataset, fair_shares
from beam_tfrecord.report.pictures import Picture, Pictures
from beam_tfrecord.report.text import MAX_TITLE, clean, shorten

# Characters of an origin, a uri and a message in the table; of all rejects in the table together, with their markup.
SHOWN_PLACE, MAX_PLACE, SHOWN_MESSAGE = 70, 160, 180
BUDGET = 900_000
_MARKUP = 170  # characters around the texts of a row
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

    @property
    def size(self) -> int:
        """About how many characters it takes on the page."""
        return _MARKUP + sum(len(text.shown) + len(text.whole) for text in (self.origin, self.uri, self.message))


@dataclass(frozen=True, slots=True)
class Reason:
    """A code or reason: how often, what it means and how it is mended, with examples."""

    code: str
    count: int
    meaning: str
    cure: str = ""
    examples: tuple[FindingRow, ...] = ()
    pictures: tuple[Picture, ...] = ()


def cut(value: str, most: int, most_whole: int = MAX_TITLE) -> Cut:
    """A text for a cell of a table: ``most`` characters of it shown, ``most_whole`` in the tooltip."""
    cleaned = clean(value)
    shown = shorten(cleaned, most)
    return Cut(shown, shorten(cleaned, most_whole) if shown != cleaned else "")


def finding_rows(findings: Iterable[Finding]) -> tuple[FindingRow, ...]:
    """Findings as lines."""
    return tuple(
        FindingRow(
            clean(finding.code),
            cut(finding.origin, SHOWN_PLACE, MAX_PLACE),
            cut(finding.uri, SHOWN_PLACE, MAX_PLACE),
            cut(finding.message, SHOWN_MESSAGE),
        )
        for finding in findings
    )


def reject_rows(findings: Iterable[Finding], budget: int = BUDGET) -> tuple[FindingRow, ...]:
    """Rejects as lines: fewer of each code where long texts would make the page too large."""
    rows = finding_rows(findings)
    size = sum(row.size for row in rows)
    if size <= budget:
        return rows
    left = Counter(fair_shares(Counter(row.code for row in rows), len(rows) * budget // size))
    kept = []
    for row in rows:
        if left[row.code] > 0:
            left[row.code] -= 1
            kept.append(row)
    return tuple(kept)


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
