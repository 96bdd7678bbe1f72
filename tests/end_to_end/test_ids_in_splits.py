"""Ids that occur in several splits, with all hashes known in advance and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord import ManifestError
from tests.end_to_end.datasets import converted, findings
from tests.samples import write_table

ROWS = [("id", "split", "label", "value")]
ROWS += [(f"row{number:02d}", ("test", "train")[number % 3 > 0], "ab"[number % 2], number) for number in range(40)]
ROWS += [("row06", "train", "a", 90), ("row07", "validation", "b", 91), ("row08", "train", "a", 92)]
# row06 lies in test and train, row07 in train and validation, row08 twice in train


@pytest.fixture(params=[None, 5, 30], ids=["all known", "none known", "of some splits"])
def limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to how many rows in a split the survey keeps the hashes."""
    if request.param is not None:
        for module in ("conversion.planning.survey", "transforms.planning"):
            monkeypatch.setattr(f"beam_tfrecord.{module}.SKETCH_LIMIT", request.param)


def repeats(lines: list[dict[str, Any]]) -> list[str]:
    return sorted(line["message"] for line in lines if line["code"] == "duplicate_id")


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize("policy", ["keep", "drop"])
def test_an_id_in_two_splits_is_noticed_whatever_the_number_of_rows(tmp_path: Path, policy: str) -> None:
    table = write_table(tmp_path / "rows.csv", ROWS)
    options = {"id_column": "id", "columns": "value:int64", "duplicates": policy, "num_shards": 7}
    converted(table, tmp_path / "out", **options, max_rejects=10)
    told = repeats(findings(tmp_path / "out", "warnings" if policy == "keep" else "rejects"))
    assert len(told) == 3
    assert told[0] == "the id 'row06' is used by a row of split test too"
    assert told[1] == "the id 'row07' is used by a row of split train too"
    assert told[2].startswith("the id 'row08' is used by ")
    assert "of split" not in told[2]


@pytest.mark.usefixtures("limit")
def test_an_id_in_two_splits_fails_where_that_is_asked_for(tmp_path: Path) -> None:
    table = write_table(tmp_path / "rows.csv", [row for row in ROWS if row[0] != "row08"])
    with pytest.raises(ManifestError, match=r"the id 'row0[67]' is used by .* and by a row of split"):
        converted(table, tmp_path / "out", id_column="id", columns="value:int64", duplicates="fail", num_shards=7)


@pytest.mark.usefixtures("limit")
def test_splits_that_a_seed_decides_have_no_id_in_common(tmp_path: Path) -> None:
    table = write_table(tmp_path / "rows.csv", [(row[0], row[2], row[3]) for row in ROWS[:41]])
    options = {"id_column": "id", "columns": "value:int64", "splits": "train=0.5,test=0.5", "stratify": True}
    converted(table, tmp_path / "out", **options)
    assert repeats(findings(tmp_path / "out", "warnings")) == []
