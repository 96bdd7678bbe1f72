"""The PyTorch example runs and learns. Skipped without torch, which no extra of the project installs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beam_tfrecord import read
from tests.end_to_end.datasets import converted
from tests.samples import demo_collection, write_files

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # of torch

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/pytorch_dataset.py"


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("pytorch_dataset", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_elements_are_the_images_and_labels_of_the_records(dataset: Callable[..., Path], example: Any) -> None:
    out = dataset("classes", label_offset=5)
    data = example.ImageDataset(str(out), "train", size=24)
    reader = read(out, "train")
    assert len(data) == 9
    for (pixels, place), record in zip(data, reader, strict=True):
        expected = np.asarray(reader.image(record).convert("RGB").resize((24, 24))) / 255
        np.testing.assert_allclose(pixels.permute(1, 2, 0).numpy(), expected, atol=1e-6)
        assert data.labels[place] == record["image/class/text"]


def test_processes_of_a_loader_read_all_records(dataset: Callable[..., Path], example: Any) -> None:
    data = example.ImageDataset(str(dataset("classes", index=True)), "all")
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2)
    labels = [int(label) for _, batch in loader for label in batch]
    assert labels == [place for _, place in (data[number] for number in range(12))]


def test_a_model_learns_the_shapes(tmp_path: Path, example: Any) -> None:
    write_files(tmp_path / "in", demo_collection(per_class=24))
    converted(tmp_path / "in", tmp_path / "out")
    torch.set_num_threads(1)  # the machine is shared, and threads that wait for one another take longer than one
    assert example.train(str(tmp_path / "out"), epochs=60, size=48) > 0.9
