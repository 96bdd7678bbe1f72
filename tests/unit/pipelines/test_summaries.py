"""What a command says at its end."""

from __future__ import annotations

import pytest

from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.publishing.summary import summary_from
from pipelines.summaries import summary_lines

CONVERSION = {
    "status": "published",
    **dict.fromkeys(("rows", "written"), 2),
    "ignored": 0,
    "rejected": {"by_code": {}},
    **{name: {} for name in ("warnings", "changed")},
    "splits": {"train": {"records": 2, "shards": [{}]}},
    "labels": [],
}


@pytest.mark.parametrize(
    ("report", "told"),
    [("/out/report.html", "/out/report.html"), ("", "none could be made: beam-tfrecord report /out tells why")],
)
def test_a_published_dataset_has_a_report_or_it_is_told_that_there_is_none(report: str, told: str) -> None:
    config = ConvertConfig.from_options({"input": "/in", "output": "/out"})
    lines = summary_lines(summary_from(CONVERSION, "/out", (), report), config)
    assert lines == ["published /out: train 2", f"report    {told}"]
