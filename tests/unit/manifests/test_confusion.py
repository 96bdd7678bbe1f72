"""No sample of a format is taken for another one, whatever the order in which formats are asked."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.errors import ConfigError
from beam_tfrecord.manifests import FORMATS, detect_format
from beam_tfrecord.manifests.formats.folder import FolderFormat
from beam_tfrecord.manifests.registry import has_suffix, read_head
from tests.contracts import ManifestFormatContract, describe
from tests.local_files import LocalFiles

# Of any content: they are asked last, and need not tell special formats from their own.
GENERAL = {"csv", "tsv", "jsonl", "list", "parquet", "folder", "archive", "glob", "rows", "manifests"}
MODULES = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py") if path.stem != Path(__file__).stem)


def contracts() -> Iterator[type[ManifestFormatContract]]:
    """The tests of all formats, each of which can write a sample."""
    for name in MODULES:
        module = importlib.import_module(f"tests.unit.manifests.{name}")
        for value in vars(module).values():
            is_contract = inspect.isclass(value) and issubclass(value, ManifestFormatContract)
            is_own = is_contract and value.__module__ == module.__name__ and hasattr(value, "format")
            if is_own and value.format.name in FORMATS and value.format.name != "rows":
                yield value


CONTRACTS = {f"{one.__module__.rpartition('.')[2]}-{one.__name__}": one for one in contracts()}


def taken_for(uri: str) -> set[str]:
    """The special formats that take a file, or a folder, for one of theirs."""
    files = LocalFiles()
    head = b"" if files.is_folder(uri) else read_head(files, uri)
    special = [manifest for name, manifest in FORMATS.items() if name not in GENERAL]
    found = {manifest.name for manifest in special if manifest.recognises(files, uri, head)}
    return found | {one.name for one in special if head and has_suffix(uri.lower(), one.beside) and one.annotates(head)}


@pytest.mark.parametrize("name", CONTRACTS)
def test_each_sample_is_taken_for_what_it_is_by_one_format(name: str, tmp_path: Path) -> None:
    test = CONTRACTS[name]()
    sample, own = test.sample(tmp_path), test.format.name
    if own in GENERAL:
        if Path(sample.uri).is_file():
            assert taken_for(sample.uri) == set()
        return
    assert taken_for(sample.uri) <= {own}
    if Path(sample.uri).is_dir() and detect_format(LocalFiles(), sample.uri) == "folder":
        assert describe(FolderFormat(), sample).format == own
        documents = [path for path in Path(sample.uri).rglob("*") if path.suffix in test.format.beside]
        taken = [taken_for(str(path)) for path in documents]
        assert any(taken)
        assert all(found <= {own} for found in taken)
    else:
        assert detect_format(LocalFiles(), sample.uri) == own


def test_all_special_formats_have_a_sample() -> None:
    sampled = {one.format.name for one in CONTRACTS.values()}
    assert set(FORMATS) - GENERAL - sampled == {"tfrecord"}  # whose samples need TensorFlow


LOOK_ALIKES: dict[str, Any] = {
    "package.json": {"name": "x", "version": "1.0.0", "scripts": {"test": "x"}, "files": ["a.jpg"]},
    "tasks.json": [{"name": "a", "labels": ["bug"], "attributes": {}}, {"name": "b", "labels": []}],
    "shapes.geojson": {"type": "FeatureCollection", "features": [{"geometry": {"type": "Polygon", "coordinates": []}}]},
    "frames.json": {"frames": [{"filename": "a.png", "frame": {"x": 1, "y": 2, "w": 3, "h": 4}}], "meta": {}},
    "transforms.json": {"camera_angle_x": 0.6, "frames": [{"file_path": "./train/r_0", "transform_matrix": []}]},
    "annotation.json": {"annotation": {"text": "x", "author": "y"}},
    "objects.json": {"objects": [{"label": "car", "score": 0.5}], "version": 1},
    "state.json": {"state": {"counter": 1}},
    "rows.jsonl": [{"image": "a.jpg", "label": "x", "image_url": "https://x.org/a.jpg"}],
    "events.ndjson": [{"data_row": 7, "media": "x"}, {"data_row": 8}],
    "table.csv": "name,score\nfox,1\nhen,2\n",
    "ids.csv": "ImageID,score\na,0.5\nb,0.7\n",
    "train.csv": "TRAIN,red,green\nTEST,blue,red\n",
    "numbers.txt": "1 2 3 4\n5 6 7 8\n",
    "notes.txt": "The fox, 1 2 3.\nThe hen.\n",
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_only_looks_like_a_format_is_taken_for_none(name: str, tmp_path: Path) -> None:
    value = LOOK_ALIKES[name]
    text = value if isinstance(value, str) else json.dumps(value, indent=2)
    if name.endswith(("jsonl", "ndjson")):
        text = "".join(json.dumps(one) + "\n" for one in value)
    (tmp_path / name).write_text(text)
    assert taken_for(str(tmp_path / name)) == set()
    try:
        assert detect_format(LocalFiles(), str(tmp_path / name)) in GENERAL
    except ConfigError as error:
        assert name in str(error)  # noqa: PT017 - either answer is right
