"""Records put together from ready-made pieces are those of the general encoder, whatever they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from beam_tfrecord.annotations.columns import Columns
from beam_tfrecord.annotations.label import Label
from beam_tfrecord.conversion.job import plan_job, prepare_job
from beam_tfrecord.conversion.planning.arranging import Placed
from beam_tfrecord.conversion.planning.blocks import pack_entry
from beam_tfrecord.conversion.planning.dataset_plan import plan_schema
from beam_tfrecord.conversion.planning.survey import Survey
from beam_tfrecord.conversion.writing import batches, records
from beam_tfrecord.conversion.writing.batches import BatchEncoder, EncodedBatch, ReadBatch
from beam_tfrecord.conversion.writing.timing import WorkTimes
from beam_tfrecord.core.elements import Entry, Finding, Member, RejectedRow
from beam_tfrecord.errors import ImageError
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage
from tests.end_to_end.datasets import converted
from tests.end_to_end.reading.kinds import KINDS
from tests.engines import COLLECTIONS, converted_on
from tests.samples import HTML_ERROR_PAGE, jpeg, noise, png, truncated, turned_jpeg
from tests.tiny_reader import decode

PICTURE = jpeg(Image.fromarray(noise(20, 15, 1)))
FILES: Mapping[str, bytes] = {
    "plain.jpg": PICTURE,
    "grey.jpg": jpeg(Image.fromarray(noise(20, 15, 2, 1)[:, :, 0])),
    "turned.jpg": turned_jpeg(Image.fromarray(noise(20, 10, 3)), 6),
    "trailing.jpg": PICTURE + b"more",
    "endless.jpg": PICTURE[:-2],
    "cut.jpg": truncated(PICTURE),
    "colour.png": png(Image.fromarray(noise(9, 300, 4))),
    "alpha.png": png(Image.fromarray(noise(9, 6, 5, 4))),
    "large.png": png(Image.fromarray(noise(200, 130, 6))),
    "page.jpg": HTML_ERROR_PAGE,
    "empty.jpg": b"",
}
NAMES = ("circle", "a label of some length " * 9, "Übung 中", "square")


def read(uri: str, member: Member | None) -> bytes:
    if uri not in FILES:
        raise ImageError("missing_file", f"{uri} does not exist")
    return FILES[uri]


def both_ways(items: list[Placed], facets: frozenset[str], options: Mapping[str, Any]) -> list[EncodedBatch]:
    """What becomes of items on the short way, and on the general one; times left out."""
    config = ConvertConfig.from_options({"input": "in", "output": "out", **options})
    schema = plan_schema(Survey(rows=1, facets=facets, has_images=True), (), NAMES, config)
    short, general = BatchEncoder(schema, config, read), BatchEncoder(schema, config, read)
    assert short._plain is not None
    general._plain = None
    found = [encoder.encode(items) for encoder in (short, general)]
    assert set(found[1].pictures) <= {1}
    return [replace(batch, times=WorkTimes(), pictures=[]) for batch in found]


texts = st.text(st.characters(codec="utf-8"), max_size=200)
labels = st.one_of(
    st.none(),
    st.sampled_from((*NAMES, "no such label")).map(lambda name: Label((name,))),
    st.lists(st.sampled_from(NAMES), unique=True).map(lambda names: Label(tuple(names), is_list=True)),
)
columns = st.one_of(
    st.none(),
    st.builds(
        lambda age, weight, tags: Columns(((age,), (weight,), tuple(tags))),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(width=32),
        st.lists(st.binary(max_size=200), max_size=3),
    ),
)
findings = st.builds(lambda text: Finding("rows.csv:1", "a.jpg", "parse", "annotation_ignored", text), texts)


@st.composite
def placed_items(draw: st.DrawFn) -> Placed:
    """An item as it lies in a shard: an entry or a row that is none."""
    if draw(st.integers(0, 9)) == 0:
        return Placed(0, pack_entry(RejectedRow(draw(findings), draw(st.integers(1, 3)))), 0)
    uri = draw(st.sampled_from([*FILES, "gone.jpg"]))
    parts = {"label": draw(labels), "columns": draw(columns)}
    entry = Entry(
        id=draw(st.one_of(st.just(uri), texts)),
        origin=draw(st.sampled_from(["rows.csv:7", "a\tfolder\n/x.jpg"])),
        uri=uri,
        filename=uri,
        annotations={name: value for name, value in parts.items() if value is not None},
        warnings=tuple(draw(st.lists(findings, max_size=1))),
        source_rows=draw(st.integers(1, 3)),
    )
    reject = draw(st.one_of(st.none(), st.none(), st.none(), findings))
    warnings = tuple(draw(st.lists(findings, max_size=1)))
    return Placed(0, pack_entry(entry), draw(st.integers(0, 2)), draw(st.integers(0, 2)), reject, warnings)


@given(
    st.lists(placed_items(), max_size=8),
    st.sampled_from(["imagenet", "od", "tfds", "simple"]),
    st.sampled_from(["keep", "raw", "png"]),
    st.sampled_from(["full", "header", "strict"]),
    st.booleans(),
    st.booleans(),
)
def test_both_ways_give_one_batch(
    items: list[Placed], keys: str, image_format: str, validate: str, one_hot: bool, has_lists: bool
) -> None:
    facets = frozenset({"label", "columns", *(["labels"] if has_lists else [])})
    options = {
        "keys": keys,
        "image_format": image_format,
        "validate": validate,
        "one_hot": one_hot,
        "columns": "age:int64,weight:float,tags:bytes[]",
    }
    short, general = both_ways(items, facets, options)
    assert short == general


@pytest.mark.parametrize("size", [1, 0x7F, 0x80, 0x3FFF, 0x4000, 0x1FFFFF, 0x200000])
def test_lengths_of_any_number_of_bytes_are_right(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = batches.convert_image(PICTURE, ConvertConfig.from_options({"input": "in", "output": "out"}).images)
    for module in (batches, records):
        monkeypatch.setattr(module, "convert_image", lambda data, policy: stored._replace(data=bytes(size)))
    entry = Entry("i" * min(size, 0x4001), "rows.csv:1", "plain.jpg", "f" * min(size, 0x4001))
    found = both_ways([Placed(0, pack_entry(entry), 0)], frozenset(), {})
    assert found[0] == found[1]
    parsed = decode(found[0].records[0])
    assert parsed["image/encoded"] == [bytes(size)]
    assert parsed["image/filename"] == [entry.filename.encode()]


ALL_KINDS = {**KINDS, **COLLECTIONS}
PLAIN = ("classes", "sizes", "channels", "deep", "raw", "raw_deep", "several", "shapes", "gzip")


@pytest.mark.parametrize("kind", [kind for kind in ALL_KINDS if kind not in PLAIN])
def test_records_of_other_collections_are_not_plain(tmp_path: Path, kind: str) -> None:
    source, options = ALL_KINDS[kind](tmp_path / "in")
    config = ConvertConfig.from_options({"input": str(source), "output": str(tmp_path / "out"), **options})
    assert not batches.is_plain(plan_job(prepare_job(config, Storage()), Storage()).schema)


@pytest.mark.parametrize("kind", PLAIN)
def test_every_batch_of_plain_collections_is_the_same_both_ways(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = BatchEncoder.finish
    pairs: list[tuple[EncodedBatch, EncodedBatch]] = []

    def both(self: BatchEncoder, prepared: ReadBatch | EncodedBatch) -> EncodedBatch:
        assert isinstance(prepared, ReadBatch), "the collection is not plain"
        pairs.append((finish(self, prepared), self._encoded(prepared.items)))
        return pairs[-1][0]

    monkeypatch.setattr(BatchEncoder, "finish", both)
    source, options = ALL_KINDS[kind](tmp_path / "in")
    summary = converted(tuple(source) if isinstance(source, list) else source, tmp_path / "out", **options)
    assert sum(len(short.records) for short, _ in pairs) == summary.written > 0
    for short, general in pairs:
        assert general.pictures == [1] * len(general.records)
        assert short.pictures == []
        short, general = (replace(batch, times=WorkTimes(), pictures=[]) for batch in (short, general))
        assert short == general


@pytest.mark.parametrize("kind", [kind for kind in COLLECTIONS if kind in PLAIN])
def test_files_are_the_same_both_ways(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = []
    for is_plain in (batches.is_plain, lambda schema: False):
        monkeypatch.setattr(batches, "is_plain", is_plain)
        outputs.append(converted_on(None, tmp_path, kind))
    assert outputs[0] == outputs[1]
