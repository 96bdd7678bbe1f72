"""Statistics of the channels beside numpy, and pictures that are normalised by them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import beam_tfrecord
from beam_tfrecord.errors import ConfigError, DatasetError
from benchmarks.near_duplicates import scene
from tests.end_to_end.datasets import converted
from tests.samples import jpeg, noise, png, write_files


def channels(output: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((output / "statistics.json").read_text())["channels"]
    return told


def moments(files: list[bytes], mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation by Pillow and numpy."""
    bands = len(Image.new(mode, (1, 1)).getbands())
    pixels = [np.asarray(Image.open(io.BytesIO(data)).convert(mode)).reshape(-1, bands) for data in files]
    values = np.concatenate(pixels).astype(np.float64)
    return values.mean(axis=0), values.std(axis=0)


@pytest.fixture
def photos() -> dict[str, bytes]:
    jpegs = {f"{seed}.jpg": jpeg(scene(seed, 90 + seed, 70)) for seed in range(5)}
    return jpegs | {f"{seed}.png": png(Image.fromarray(noise(33, 20 + seed, seed))) for seed in range(3)}


@pytest.mark.parametrize("options", [{}, {"num_shards": 5}, {"image_format": "raw"}, {"insight": "exact"}], ids=str)
def test_mean_and_deviation_are_those_of_all_stored_pixels(
    tmp_path: Path, photos: dict[str, bytes], options: dict[str, Any]
) -> None:
    write_files(tmp_path / "in" / "x", photos)
    converted(tmp_path / "in", tmp_path / "out", **options)
    told = channels(tmp_path / "out")
    assert list(told) == ["3"]
    assert told["3"]["images"] == 8
    mean, std = moments(list(photos.values()), "RGB")
    np.testing.assert_allclose(told["3"]["mean"], mean, atol=0.02)  # decoders of JPEG differ in single pixels
    np.testing.assert_allclose(told["3"]["std"], std, atol=0.02)


def test_sums_of_png_are_exact(tmp_path: Path) -> None:
    deep = np.random.default_rng(1).integers(0, 65_536, (9, 7), dtype=np.uint16)
    out = io.BytesIO()
    Image.fromarray(deep).save(out, "PNG")
    grey = noise(12, 10, 4, 1)[:, :, 0]
    write_files(tmp_path / "in" / "x", {"deep.png": out.getvalue(), "grey.png": png(Image.fromarray(grey))})
    converted(tmp_path / "in", tmp_path / "out")
    for key, pixels in (("1", grey), ("1/uint16", deep)):
        told = channels(tmp_path / "out")[key]
        assert told["sum"] == [int(pixels.sum(dtype=np.int64))]
        assert told["squares"] == [int((pixels.astype(np.int64) ** 2).sum())]
        assert told["pixels"] == pixels.size
        assert told["std"] == pytest.approx([pixels.astype(np.float64).std()])


@pytest.mark.parametrize("options", [{}, {"scale": True}, {"batch_size": 2}, {"features": ["image/encoded"]}], ids=str)
def test_normalised_pictures_have_mean_0_and_deviation_1(
    tmp_path: Path, photos: dict[str, bytes], options: dict[str, Any]
) -> None:
    write_files(tmp_path / "in" / "x", photos)
    converted(tmp_path / "in", tmp_path / "out")
    loaded = beam_tfrecord.load(tmp_path / "out", normalize="dataset", **options)
    found = []
    for element in loaded.as_numpy_iterator():
        picture = element["image/encoded"]
        for one in picture if options.get("batch_size") else [picture]:
            values = one.to_list() if hasattr(one, "to_list") else one
            found += [np.array(row, np.float64).reshape(-1, 3) for row in values]
    values = np.concatenate(found)
    # TensorFlow makes the colours of subsampled JPEGs in another way.
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=0.04)
    np.testing.assert_allclose(values.std(axis=0), 1, atol=0.02)


def test_statistics_that_are_damaged_are_told(tmp_path: Path, photos: dict[str, bytes]) -> None:
    write_files(tmp_path / "in" / "x", photos)
    converted(tmp_path / "in", tmp_path / "out")
    statistics = tmp_path / "out/statistics.json"
    told = json.loads(statistics.read_text())
    for name in ("channels", "images"):
        statistics.write_text(json.dumps({**told, name: [1]}))
        with pytest.raises(DatasetError, match=rf"statistics\.json is damaged: {name} is no object"):
            beam_tfrecord.load(tmp_path / "out", normalize="dataset")


def test_what_cannot_be_normalised_is_told(tmp_path: Path, photos: dict[str, bytes]) -> None:
    write_files(tmp_path / "in" / "x", photos)
    converted(tmp_path / "in", tmp_path / "out", insight="off")
    with pytest.raises(ConfigError, match="does not tell the mean"):
        beam_tfrecord.load(tmp_path / "out", normalize="dataset")
    converted(tmp_path / "in", tmp_path / "new")
    with pytest.raises(ConfigError, match="give channels=3"):
        beam_tfrecord.load(tmp_path / "new", normalize="dataset", channels=1)
    with pytest.raises(ConfigError, match="no image"):
        beam_tfrecord.load(tmp_path / "new", normalize="dataset", features=["image/class/text"])
    with pytest.raises(ConfigError, match="decode=False"):
        beam_tfrecord.load(tmp_path / "new", normalize="dataset", decode=False)
