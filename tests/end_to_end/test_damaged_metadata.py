"""Metadata in which a value is missing or of another kind: every tool says so, and none ends in a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord.conversion.writing.progress import Progress
from beam_tfrecord.datasets.facts import facts_from
from beam_tfrecord.datasets.published import read_conversion
from beam_tfrecord.datasets.shard_files import find_files
from beam_tfrecord.errors import BeamTfrecordError, DatasetError
from beam_tfrecord.report.dataset import load_dataset
from beam_tfrecord.report.insight import draw_insight
from beam_tfrecord.report.page import page_values, render_page
from beam_tfrecord.report.pictures import Pictures
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.inspecting import dataset_options
from beam_tfrecord.tools.packing.pack import check_files
from beam_tfrecord.tools.resharding.job import ReshardOptions, prepare_job
from beam_tfrecord.tools.resharding.publishing import result_files
from beam_tfrecord.tools.verifying import ShardChecker, judge_dataset
from beam_tfrecord.tools.verifying.records import RecordRules
from tests.end_to_end.datasets import converted
from tests.samples import jpeg, noise, write_files

STORAGE = Storage()
MISSING = object()
VALUES = (MISSING, None, ["a"])
DEEPEST = 5  # places below are like their neighbours


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset about which there is much to tell: a reject, a warning, two splits, decisions."""
    folder = tmp_path_factory.mktemp("damaged")
    files = {
        f"{split}/{label}/{n}.jpg": jpeg(Image.fromarray(noise(40, 30, n)))
        for split in ("train", "test")
        for label, n in (("a", 1), ("b", 2))
    }
    files |= {"train/a/blank.jpg": jpeg(Image.new("RGB", (40, 30), "teal")), "train/b/no.jpg": b"GIF"}
    write_files(folder / "in", files)
    converted(folder / "in", folder / "out", max_rejects="50%", index=True)
    return folder / "out"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if len(path) < DEEPEST and path[:1] not in (("features",), ("parse_spec",)):
        children = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
        for name, inner in children:
            yield from places(inner, (*path, name))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    document = copy.deepcopy(document)
    inner = document
    for name in path[:-1]:
        inner = inner[name]
    if value is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return document


def verify(folder: Path) -> list[str]:
    found = find_files((str(folder),), STORAGE)
    with ThreadPoolExecutor(1) as pool:
        rules = RecordRules(found.facts, lambda data: (30, 40, 3), found.label_names)
        checker = ShardChecker(rules, STORAGE, pool, 1, 10, "none", Progress())
        verdict = judge_dataset([checker.check(file) for file in found.files], found, 100, STORAGE)
    return [str(fault) for fault in verdict.faults if fault.code == "wrong_metadata"]


def report(folder: Path) -> None:
    dataset = load_dataset(str(folder), STORAGE)
    render_page(page_values(dataset, Pictures({}, (), {}, {}), draw_insight(dataset, STORAGE)))


def reshard(folder: Path) -> None:
    job = prepare_job(ReshardOptions(input=(str(folder),), output=f"{folder}-anew"), STORAGE)  # type: ignore[arg-type]
    facts = job.sources[0].facts
    assert facts is not None
    result_files(job.sources, job.options, job.compression, facts.splits, {}, lambda shard: "a", {})


def pack(folder: Path) -> None:
    check_files(str(folder), facts_from(read_conversion(str(folder), STORAGE)), STORAGE)


def inspect(folder: Path) -> None:
    dataset_options(str(folder), find_files((str(folder),), STORAGE))


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        *((tool, "conversion.json") for tool in (report, reshard, pack, inspect, verify)),
        *((tool, "statistics.json") for tool in (report, reshard, verify)),
    ],
)
def test_no_tool_ends_in_a_traceback(tool: Callable[[Path], Any], name: str, finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for file in finished.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    document = json.loads((folder / name).read_text())
    tool(folder)  # as it was
    trials = refused = 0
    for path in places(document):
        for value in VALUES:
            (folder / name).write_text(json.dumps(changed(document, path, value)))
            trials += 1
            try:
                tool(folder)
            except BeamTfrecordError:
                refused += 1
            except Exception as error:
                raise AssertionError(f"{'.'.join(map(str, path))} = {value!r}") from error
    assert trials > 100
    assert tool in (verify, inspect) or refused > trials // 8


def test_verify_compares_the_statistics_with_the_dataset(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for file in finished.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    assert verify(folder) == []
    document = json.loads((folder / "statistics.json").read_text())
    (shape,) = document["images"]["shapes"]
    (first, *_) = document["samples"]["classes"]["a"]
    shard = ("samples", "classes", "a", 0)
    worst = ("insight", "worst", min(document["insight"]["worst"]), 0)
    for path, value, told in (
        (("images", "shapes", shape), 99, "it counts 99 images, but conversion.json has 5"),
        ((*shard, "record"), 99, f"it tells of record 99 of {first['file']}, which conversion.json does not have"),
        ((*shard, "file"), "train-9", f"it tells of record {first['record']} of train-9, which"),
        ((*worst, "record"), 99, "it tells of record 99 of t"),
        (("samples",), MISSING, "it is damaged (KeyError: 'samples'): delete it and run again"),
        (("images", "width"), 3, "it is damaged ("),
    ):
        (folder / "statistics.json").write_text(json.dumps(changed(document, path, value)))
        (fault,) = verify(folder)
        assert fault.startswith(f"statistics.json: {told}")
    (folder / "statistics.json").write_text("{")
    assert verify(folder)[0].startswith("statistics.json: it is damaged: Expecting")


def test_verify_names_the_value_that_is_wrong_and_what_it_must_be(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for file in finished.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    document = json.loads((folder / "conversion.json").read_text())
    for path, value, told in (
        (("warnings",), MISSING, "it lacks 'warnings'"),
        (("rejected", "total"), None, "rejected.total is null, but must be a whole number of 0 or more"),
        (
            ("rejected", "by_code", "not_an_image"),
            -1,
            "rejected.by_code.not_an_image is -1, but must be a whole number",
        ),
        (("inputs", 0, "format"), MISSING, "inputs[0] lacks 'format'"),
        (("inputs", 0, "found", "files"), "x", 'inputs[0].found.files is "x", but must be a whole number'),
        (("classes", "train"), [1], "classes.train is [1], but must be an object"),
    ):
        (folder / "conversion.json").write_text(json.dumps(changed(document, path, value)))
        assert f"conversion.json: it is damaged: {told}" in verify(folder)[0]
        if path[0] != "inputs":
            with pytest.raises(DatasetError, match=r"conversion\.json is damaged"):
                reshard(folder)
