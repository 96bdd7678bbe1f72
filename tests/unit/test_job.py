"""What is looked at before a job starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from beam_tfrecord.conversion.job import MANY_ROWS, SHORT_ROW, find_long_source, prepare_job
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage
from tests.docs import places


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (places.photos, "photos"),
        (places.labels_csv, "labels.csv"),
        (places.coco, "instances_train.json"),
        (places.voc, "VOC2012"),
        (places.yolo, "data.yaml"),
        (places.photos_zip, "photos.zip"),
    ],
)
def test_a_few_rows_are_few_in_every_format(make: Callable[[Path], None], name: str, tmp_path: Path) -> None:
    make(tmp_path)
    storage = Storage()
    job = prepare_job(
        ConvertConfig.from_options({"input": str(tmp_path / name), "output": str(tmp_path / "out")}), storage
    )
    assert find_long_source(job, storage) is None


def test_many_rows_are_noticed_before_they_are_read(tmp_path: Path) -> None:
    line = "x" * (SHORT_ROW - 5) + ".jpg\n"
    (tmp_path / "list.txt").write_text(line * MANY_ROWS)
    (tmp_path / "photos" / "a").mkdir(parents=True)
    for number in range(MANY_ROWS):
        (tmp_path / "photos" / "a" / f"{number}.jpg").touch()
    storage = Storage()
    rows = [{"image": "a.jpg"}] * MANY_ROWS
    for name, given in (("list.txt", None), ("photos", None), ("none", rows)):
        options = {"input": str(tmp_path / name), "output": str(tmp_path / "out")}
        assert find_long_source(prepare_job(ConvertConfig.from_options(options), storage, given), storage) == 0, name
