"""The examples of docs/reading.md run, in their order, as a reader of the page would run them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.datasets import converted
from tests.end_to_end.reading.kinds import boxes
from tests.samples import demo_collection, write_files

PAGE = Path(__file__).resolve().parents[3] / "docs/reading.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("ignore")  # of Keras and TensorFlow Datasets
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorflow_datasets")
    pytest.importorskip("array_record.python.array_record_module")
    write_files(tmp_path / "photos", demo_collection(per_class=10))
    options = {"splits": "train=0.8,validation=0.2", "index": True, "array_record": True}
    converted(tmp_path / "photos", tmp_path / "shapes", **options)
    source, _ = boxes(tmp_path / "in")
    converted(source, tmp_path / "boxes", keys="od")
    monkeypatch.chdir(tmp_path)
    examples = BLOCK.findall(PAGE.read_text("utf-8"))
    assert len(examples) > 10
    names: dict[str, Any] = {"__name__": "page"}
    for example in examples:
        if "torch" not in example:
            exec(compile(example, str(PAGE), "exec"), names)
    assert sum(int(size) for size in names["sizes"]) == 4 * len(names["beam_tfrecord"].read("shapes"))


@pytest.mark.filterwarnings("ignore")  # of torch
def test_the_example_for_pytorch_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    write_files(tmp_path / "photos", demo_collection(per_class=10))
    converted(tmp_path / "photos", tmp_path / "shapes", splits="train=0.8,validation=0.2")
    monkeypatch.chdir(tmp_path)
    (example,) = (block for block in BLOCK.findall(PAGE.read_text("utf-8")) if "torch" in block)
    exec(compile(f"import beam_tfrecord\n{example}", str(PAGE), "exec"), {"__name__": "page"})
