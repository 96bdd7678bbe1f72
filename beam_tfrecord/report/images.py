"""Charts and tables about sizes: of images, of boxes, of sequences, of shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from beam_tfrecord.conversion.writing.digest import Digest, digest_of
from beam_tfrecord.conversion.writing.statistics import MAX_SIZES, SHAPES
from beam_tfrecord.report import text
from beam_tfrecord.report.charts import Format, Part, column_chart, histogram, stacked_bar
from beam_tfrecord.report.classes import split_style

SHOWN_LINES = 4  # of formats and of sizes
MAX_SHARD_BARS = 160
# The limits of small and medium objects in the COCO detection challenge, in square pixels. Areas are counted in bins: a
# box next to a limit may be told to lie on its other side.
SMALL, MEDIUM = 32 * 32, 96 * 96


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart and the numbers beside it. svg: None where one number says everything."""

    title: str
    svg: Markup | None
    facts: tuple[tuple[str, str], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """A line of a table of shares."""

    name: str
    count: int
    share: str
    bar: Markup


def image_charts(images: Mapping[str, Any]) -> list[Chart]:
    """Sizes of the stored images."""
    return [
        _chart("Width", images["width"], text.pixels, tick_unit=text.number, note="pixels"),
        _chart("Height", images["height"], text.pixels, tick_unit=text.number, note="pixels"),
        shape_chart(images),
        _chart("Area", images["pixels"], text.megapixels, note="width × height"),
        _chart("Encoded size", images["bytes"], text.file_size, note="bytes of the stored image"),
    ]


def object_charts(objects: Mapping[str, Any]) -> list[Chart]:
    """Number and size of boxes."""
    return [
        _chart("Boxes per image", objects["per_image"], text.number),
        _chart("Box area", objects["share"], text.millionths, "boxes", note="share of the image"),
        _side_chart(objects["area"]),
    ]


def _side_chart(areas: Mapping[str, Any]) -> Chart:
    """Sides of boxes as if they were squares, and how many are small, medium and large."""
    digest = Digest.from_json(areas)
    limits = (
        ("small (< 32 px)", 0, SMALL),
        ("medium", SMALL, MEDIUM),
        ("large (≥ 96 px)", MEDIUM, digest.greatest + 1),
    )
    facts = tuple(
        (name, text.percent(digest.count_between(low, high) / max(1, digest.count))) for name, low, high in limits
    )
    chart = _chart("Box side", _sides(digest), text.pixels, "boxes", text.number, "pixels, root of the area")
    return replace(chart, facts=facts)


def frame_chart(frames: Mapping[str, Any]) -> Chart:
    """Pictures per record."""
    return _chart("Frames per record", frames, text.number, "records")


def _sides(digest: Digest) -> dict[str, Any]:
    """A digest of areas as one of the square roots."""
    roots: Counter[int] = Counter()
    for edge, count in digest.bins.items():
        roots[round(min(max(edge, digest.least), digest.greatest) ** 0.5)] += count
    return digest_of(roots).to_json()


def _chart(
    title: str,
    values: Mapping[str, Any],
    unit: Format,
    things: str = "images",
    tick_unit: Format | None = None,
    note: str = "",
) -> Chart:
    digest = Digest.from_json(values)
    if digest.least == digest.greatest:
        return Chart(title, None, ((f"all {things}", unit(digest.least)),), note)
    facts = (
        ("least", unit(digest.least)),
        ("median ≈", unit(digest.quantile(0.5))),
        ("mean", unit(digest.mean)),
        ("greatest", unit(digest.greatest)),
    )
    return Chart(title, histogram(digest, title, unit, things, tick_unit), facts, note)


def shape_chart(images: Mapping[str, Any]) -> Chart:
    """Images by the usual ratio of width to height that they are nearest to, the narrowest first."""
    counts: Mapping[str, int] = images["shapes"]
    total = sum(counts.values())
    names = [f"{width}:{height}" for width, height in SHAPES]
    shown = {name: counts.get(name, 0) for name in names}
    if len(counts) == 1:
        return Chart("Shape", None, (("all images about", next(iter(counts))),), "width to height")
    columns = [
        Part(count, "bar", f"about {name}: {text.plural(count, 'image')} ({text.percent(count / total)})")
        for name, count in shown.items()
    ]
    square = names.index("1:1")
    kinds = {
        "portrait": sum(list(shown.values())[:square]),
        "square": shown["1:1"],
        "landscape": sum(list(shown.values())[square + 1 :]),
    }
    label = "Shape: " + ", ".join(f"{count:,} images are {kind}" for kind, count in kinds.items())
    ticks = [(place + 0.5, name) for place, name in enumerate(names)]
    facts = tuple((kind, text.percent(count / total)) for kind, count in kinds.items())
    return Chart("Shape", column_chart(columns, label, text.compact, ticks), facts, "width to height")


def common_sizes(images: Mapping[str, Any]) -> tuple[list[Share], str]:
    """The most frequent sizes, and a line about the others."""
    sizes: Mapping[str, int] | None = images["sizes"]
    if sizes is None:
        return [], f"There are more than {MAX_SIZES} different sizes."
    if max(sizes.values()) == 1 < len(sizes):
        return [], f"All {len(sizes)} images have different sizes."
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    return _first_shares([(name.replace("x", " × "), count) for name, count in ordered], "size")


def formats(counts: Mapping[str, int]) -> tuple[list[Share], str]:
    """Images by ``format/channels/dtype``, the most frequent first, and a line about the others."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _first_shares([(_format_name(name), count) for name, count in ordered], "format")


def _first_shares(rows: Sequence[tuple[str, int]], what: str) -> tuple[list[Share], str]:
    total = sum(count for _, count in rows)
    others = rows[SHOWN_LINES:]
    note = f"{text.plural(len(others), f'other {what}')} with {text.plural(sum(c for _, c in others), 'image')}."
    return shares(rows[:SHOWN_LINES], total), note if others else ""


def _format_name(name: str) -> str:
    """``JPEG, 3 channels`` for ``jpeg/3/uint8``."""
    format, _, rest = name.partition("/")
    channels, _, dtype = rest.partition("/")
    if not channels.isdigit():
        return text.clean(name)
    depth = "" if dtype == "uint8" else f", {text.clean(dtype)}"
    return f"{text.clean(format).upper()}, {text.plural(int(channels), 'channel')}{depth}"


def shares(counts: Iterable[tuple[str, int]], total: int | None = None) -> list[Share]:
    """Lines of a table; the bars compare with the most frequent one. total: of all, when not all are given."""
    rows = list(counts)
    everything = sum(count for _, count in rows) if total is None else total
    widest = max((count for _, count in rows), default=0)
    return [
        Share(
            name,
            count,
            text.percent(count / everything) if everything else "",
            stacked_bar([Part(count, "bar")], widest),
        )
        for name, count in rows
    ]


def shard_chart(splits: Mapping[str, Any]) -> Chart | None:
    """The size of every shard, or their histogram where there are many."""
    shards = [(place, shard) for place, split in enumerate(splits.values()) for shard in split["shards"]]
    sizes = [int(shard["bytes"]) for _, shard in shards]
    if len(sizes) < 2:
        return None
    digest = digest_of(Counter(sizes))
    facts = (
        ("smallest", text.file_size(digest.least)),
        ("mean", text.file_size(digest.mean)),
        ("largest", text.file_size(digest.greatest)),
    )
    if len(sizes) > MAX_SHARD_BARS:
        return Chart("Size of shards", histogram(digest, "Size of shards", text.file_size, "shards"), facts)
    columns = [
        Part(size, split_style(place), f"{shard['file']}: {text.file_size(size)}")
        for (place, shard), size in zip(shards, sizes, strict=True)
    ]
    label = f"Size of {len(sizes)} shards, from {facts[0][1]} to {facts[2][1]}"
    return Chart("Size of shards", column_chart(columns, label, text.file_size, _split_ticks(splits)), facts)


def _split_ticks(splits: Mapping[str, Any]) -> list[tuple[float, str]]:
    """The name of each split below the middle of its shards, where there is room for it."""
    ticks = []
    start = 0
    total = sum(len(split["shards"]) for split in splits.values())
    for name, split in splits.items():
        count = len(split["shards"])
        if count / total * 310 > 7 * len(name):
            ticks.append((start + count / 2, name))
        start += count
    return ticks
