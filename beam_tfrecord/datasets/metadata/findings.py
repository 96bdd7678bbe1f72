"""The lines of rejects.jsonl and warnings.jsonl: one JSON object for each finding, with the fields of Finding; score
and other where there are any."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any

from beam_tfrecord.core.elements import Finding
from beam_tfrecord.core.public_text import public_text
from beam_tfrecord.datasets.metadata.text import json_line
from beam_tfrecord.errors import DatasetError

_FIELDS = tuple(field.name for field in dataclasses.fields(Finding) if field.default is dataclasses.MISSING)


def finding_line(finding: Finding) -> str:
    """The line of a finding, with its newline. Signed addresses lose their signature."""
    told: dict[str, Any] = {name: public_text(getattr(finding, name)) for name in _FIELDS}
    if finding.score is not None:
        told["score"] = finding.score
    if finding.other:
        told["other"] = public_text(finding.other)
    return json_line(told)


def read_finding_lines(lines: Iterable[bytes], name: str) -> Iterator[Finding]:
    """The findings of a file of such lines; fields that are not known here are passed over.

    Raises DatasetError, with name and line, for a line that is none.
    """
    for number, line in enumerate(lines, start=1):
        try:
            values = json.loads(line)
            origin, uri, stage, code, message = (str(values[field]) for field in _FIELDS)
            score = values.get("score")
            score = None if score is None else float(score)
            yield Finding(origin, uri, stage, code, message, score, str(values.get("other", "")))
        except (ValueError, TypeError, KeyError) as error:
            raise DatasetError(
                f"{name}:{number}: is no object with {', '.join(_FIELDS)} ({type(error).__name__}: {error})"
            ) from None
