"""Layouts that people have, through the command: what is planned, what is written, and what is told of each file."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.convert import main
from tests.end_to_end.datasets import check_accounts, conversion, converted, records
from tests.label_files import HEIGHT, WIDTH, Picture
from tests.layouts import ROOT, Case, Seen, cases, files_of, seen

ALL = tuple(cases())


def placed(told: Seen, folder: Path) -> dict[str, Picture]:
    """The pictures by their paths below the folder of the case."""
    start = f"{folder}/{ROOT}/"
    return {
        uri.removeprefix(start): replace(picture, mask=picture.mask.removeprefix(start))
        for uri, picture in told.pictures.items()
    }


def planned(case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, dict[str, Any]]:
    """(exit status, what was said, the plan) of ``--plan --json``."""
    inputs = [flag for place in case.write(folder) for flag in ("--input", place)]
    options = [flag for name, value in case.options.items() for flag in (f"--{name}", str(value))]
    status = main([*inputs, *options, "--output", f"{folder}/never", "--plan", "--json"])
    said = capsys.readouterr()
    return status, said.err.replace(f"{folder}/{ROOT}", "DATA"), json.loads(said.out) if status == 0 else {}


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_a_layout_is_planned_as_people_mean_it(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said, plan = planned(case, tmp_path, capsys)
    if case.error:
        assert status == 1
        assert [part for part in case.error if part not in said] == [], said
        return
    assert status == 0, said
    check_plan(case, plan, tmp_path)
    told = seen(case.write(tmp_path), **case.options)
    assert placed(told, tmp_path) == case.pictures
    assert not told.rejects
    assert not told.repeated


def check_plan(case: Case, plan: Mapping[str, Any], folder: Path) -> None:
    """Counts, splits, labels, warnings and the account are those that the case states."""
    check_accounts({**plan, "warnings": Counter(case.warnings)})
    assert (plan["rows"], plan["rejected"]) == (len(case.pictures), 0)
    splits = Counter(picture.split for picture in case.pictures.values())
    assert {name: split["records"] for name, split in plan["splits"].items()} == splits
    names = {name for picture in case.pictures.values() for name, _ in picture.objects or ()}
    names |= {picture.label for picture in case.pictures.values()} - {""}
    assert names <= set(plan["labels"])
    codes = [surprise["code"] for told in plan["inputs"] for surprise in told["surprises"]]
    assert sorted(codes) == sorted(case.warnings)
    for told in plan["inputs"]:
        assert told["format"] == case.format
        assert files_of(told) == (case.used, case.named)
        if len(plan["inputs"]) == 1 and case.format != "archive":
            assert told["found"]["files"] == sum(len(names) for _, _, names in os.walk(folder / ROOT))


@pytest.mark.parametrize("case", [case for case in ALL if case.converted], ids=lambda case: case.name)
def test_a_layout_is_converted_as_people_mean_it(case: Case, tmp_path: Path) -> None:
    output = tmp_path / "out"
    summary = converted(tuple(case.write(tmp_path)), output, max_rejects="0", **case.options)
    assert summary.written == len(case.pictures)
    found: dict[str, Picture] = {}
    for split in conversion(output)["splits"]:
        for record in records(output, split):
            name = record["image/filename"][0].decode()  # below the folder of the images
            (path,) = [path for path in case.pictures if f"/{path}".endswith(f"/{name}")]
            found[path] = picture_of(record, split)
    assert found == case.pictures


def picture_of(record: Mapping[str, list[Any]], split: str) -> Picture:
    """What a record says of its picture."""
    labels = [value.decode() for value in record.get("image/class/text", [])]
    if "image/object/bbox/xmin" not in record:
        return Picture("|".join(labels), None, split)
    sides = zip(*(record[f"image/object/bbox/{side}"] for side in ("xmin", "ymin", "xmax", "ymax")), strict=True)
    boxes = [(round(x0 * WIDTH), round(y0 * HEIGHT), round(x1 * WIDTH), round(y1 * HEIGHT)) for x0, y0, x1, y1 in sides]
    names = [name.decode() for name in record["image/object/class/text"]]
    return Picture("|".join(labels), tuple(zip(names, boxes, strict=True)), split)
