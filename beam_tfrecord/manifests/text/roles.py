"""Which column of a table is the image, the label, the split ...: named by an option, or known by its usual name.

Names are compared without case, and with spaces, dashes and dots as underscores.

A file called ``metadata.csv``, ``.jsonl`` or ``.parquet`` is that of a folder of images for Hugging Face's ImageFolder
(datasets 5.2, ``packaged_modules/folder_based_builder``): its columns ``file_name`` or ``*_file_name`` name images, and
its text columns are what people have captions in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from beam_tfrecord.annotations.cells import real_number, shown
from beam_tfrecord.errors import ConfigError, RowError, nearest
from beam_tfrecord.manifests.text.box_columns import (
    BOX_NAMES,
    BoxColumns,
    Samples,
    box_columns,
    compact,
    missing_side,
    no_samples,
)
from beam_tfrecord.manifests.text.uri_text import name_of
from beam_tfrecord.options.config import ManifestConfig

# Names that are those of the images in many tables (Kaggle's), and of something else in others: images of a table that
# declares its columns are never guessed from them.
WEAK_NAMES = ("image_id", "imageid", "image_index", "img_id")
# The usual names, the more telling first: of several columns that fit, the one whose name comes first here is taken.
USUAL_NAMES: Mapping[str, tuple[str, ...]] = {
    "image": (
        *("image", "image_path", "image_uri", "image_file", "image_filename", "image_file_name", "image_name"),
        *("image_url", "img", "img_path", "img_file", "img_name", "filename", "file_name", "file_path", "filepath"),
        *("path", "file", "uri", "url", "image_base64", "image_b64", "base64", "b64", *WEAK_NAMES),
    ),
    "label": (
        *("label", "labels", "class", "class_name", "category", "category_name", "target", "label_name"),
        *("finding_labels", "class_id", "classid", "category_id", "label_id"),
    ),
    "split": ("split", "set", "subset", "ml_use", "dataset_split"),
}
# What may hold 0 and 1 and is no class: numbers of rows, splits, and attributes of boxes.
_NO_CLASS = re.compile(
    r"|unnamed:.*|index|id|fold|(?:is_)?(?:train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?|crowd|difficult|truncated|"
    r"occluded)"
)
_OF_CLASSES = re.compile(r"_?classes\.", re.IGNORECASE)  # Roboflow's name of such a table
_KNOWN = frozenset(name for names in USUAL_NAMES.values() for name in names)
# What --where can ask for whatever the format.
ASKED_FIELDS = ("image", "id", "label", "split", "group", "width", "height")
PARTS = ("image", "label", "split", "group", "id", "mask", "sequence", "order")


@dataclass(frozen=True, slots=True)
class Roles:
    """Column (as the header spells it) by the part that it plays; None where there is none.

    columns: (name that --columns declares, column) of each further column. asked: the same of what --where looks at.
    classes: columns of a class each, which hold 1 where the image is of it, else 0. is_one_hot: each image is of
    exactly one of them, or the name of the file says that they are classes. boxes: the columns of boxes.
    is_ml_use: the split column is called ml_use. captions: the column of texts about the image. texts: (part, column)
    of the parts that are plain texts and may be empty.
    """

    image: str | None = None
    label: str | None = None
    split: str | None = None
    group: str | None = None
    id: str | None = None
    mask: str | None = None
    sequence: str | None = None
    order: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    asked: tuple[tuple[str, str], ...] = ()
    classes: tuple[str, ...] = ()
    boxes: BoxColumns | None = None
    is_ml_use: bool = False
    captions: str | None = None
    is_one_hot: bool = False
    texts: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        parts = ((part, getattr(self, part)) for part in ("group", "mask", "sequence", "order"))
        object.__setattr__(self, "texts", tuple((part, column) for part, column in parts if column is not None))

    @property
    def has_boxes(self) -> bool:
        """Whether rows are boxes, or have lists of them."""
        return self.boxes is not None

    @property
    def is_whole(self) -> bool:
        """Whether a table must be read in one piece: what several rows make together must stay together."""
        return self.has_boxes or self.sequence is not None

    def needed(self) -> tuple[str, ...]:
        """The columns that play a part, each once."""
        named = [*(getattr(self, part) for part in PARTS), self.captions, *self.classes]
        further = (column for _, column in (*self.columns, *self.asked))
        return tuple(dict.fromkeys([*(name for name in named if name), *further]))

    def to_details(self) -> dict[str, Any]:
        """As plain values, for :attr:`~beam_tfrecord.manifests.base.Source.details`."""
        return {name: value for name, value in asdict(self).items() if name != "texts"}

    @classmethod
    def from_details(cls, details: Mapping[str, Any]) -> Roles:
        """The roles that :meth:`to_details` gave."""
        boxes = details["boxes"] and BoxColumns.from_details(details["boxes"])
        pairs = {name: tuple(tuple(pair) for pair in details[name]) for name in ("columns", "asked")}
        return cls(**{**details, **pairs, "classes": tuple(details["classes"]), "boxes": boxes})


def normal(name: str) -> str:
    """A column name as it is compared. Some tools write a # before the first (VGG Image Annotator 1)."""
    return re.sub(r"[\s.\-]+", "_", name.strip().removeprefix("#").strip().casefold())


def known_names(header: Iterable[str], config: ManifestConfig) -> int:
    """How many cells of a first line are names of columns: usual ones, of boxes, or named by an option."""
    expected = _KNOWN | {normal(name) for name in named_columns(config)}
    return sum(normal(name) in expected or compact(name) in BOX_NAMES for name in header)


def named_columns(config: ManifestConfig) -> list[str]:
    """The columns that options name."""
    named = [getattr(config, f"{part}_column") for part in PARTS]
    return [*filter(None, named), *(column.name for column in config.columns)]


def find_roles(header: Sequence[str], config: ManifestConfig, where: str, samples: Samples = no_samples) -> Roles:
    """The roles of the columns of a header.

    where: the source, for messages. samples: some cells of a column. Raises ConfigError for a repeated name, for a
    column that an option names and that is not there, and for columns that are three sides of a box.
    """
    repeated = [name for name, count in Counter(header).items() if count > 1 and name.strip()]
    if repeated:
        raise ConfigError(f"{where}: two columns are called {repeated[0]!r}: give each its own name in the header")
    found: dict[str, Any] = {}
    has_regions = compact("region_shape_attributes") in map(compact, header)  # whose label is an attribute, no column
    for part in PARTS:
        asked = getattr(config, f"{part}_column")
        if asked is not None:
            found[part] = asked if part == "label" and has_regions else _named(asked, header, f"--{part}_column", where)
    columns = tuple((column.name, _named(column.name, header, "--columns", where)) for column in config.columns)
    by_name = {normal(name): name for name in reversed(header)}
    # A column that has another part already, or was declared as a plain one, is not guessed to be anything.
    taken = {*found.values(), *(column for _, column in columns)}
    for part, names in USUAL_NAMES.items():
        if part not in found:
            likely = [name for name in names if name in by_name and not (columns and name in WEAK_NAMES)]
            guess = next((by_name[name] for name in likely if by_name[name] not in taken), None)
            found[part] = guess
            taken.add(guess)
    boxes = box_columns(header, config.box_format, config.box_units, taken - {None}, samples)
    incomplete = missing_side(header) if boxes is None and config.box_format != "none" and not columns else ""
    if incomplete:
        raise ConfigError(f"{where}: {incomplete}: correct the header, or say --box_format none to pass over them")
    roles = Roles(
        **found,
        columns=columns,
        asked=tuple(_asked_columns(header, config, where, found, boxes)),
        boxes=boxes,
        is_ml_use=found["split"] is not None and normal(found["split"]) == "ml_use",
    )
    return with_classes(roles, header, config, where, samples)


def with_classes(roles: Roles, header: Sequence[str], config: ManifestConfig, where: str, samples: Samples) -> Roles:
    """The roles with the columns that are a class each, where nothing else tells what is in the images.

    header: columns that may be some; samples are asked for those without a part.
    """
    is_labelled = roles.has_boxes or any((roles.label, roles.mask, roles.sequence))
    if roles.image is None or is_labelled or config.label_pattern is not None:
        return roles
    needed = {*roles.needed()}
    classes = _class_columns([name for name in header if name not in needed], samples)
    is_one_hot = _OF_CLASSES.match(name_of(where)) is not None
    is_one_hot = is_one_hot or all(sum(row) == 1 for row in zip(*classes.values(), strict=False))
    return replace(roles, classes=tuple(classes), is_one_hot=is_one_hot)


def _class_columns(names: Sequence[str], samples: Samples) -> dict[str, list[int]]:
    """The columns that are a class each, as Roboflow's ``_classes.csv`` and ISIC's tables have them, with their cells:
    all that hold nothing but 0 and 1. None where there are fewer than two, and where others hold -1 beside, which may
    be "unknown".
    """
    numbered: dict[str, list[int]] = {}
    for name in names:
        cells = [_small_number(cell) for cell in samples(name) if not _is_header(cell, name)]
        numbers = [number for number in cells if number is not None]
        if len(numbers) == len(cells) and not _NO_CLASS.fullmatch(normal(name)):
            numbered[name] = numbers
    marks = {number for numbers in numbered.values() for number in numbers}
    return numbered if len(numbered) > 1 and marks == {0, 1} else {}


def _is_header(cell: Any, name: str) -> bool:
    return isinstance(cell, str) and cell.strip() == name


def _small_number(cell: Any) -> int | None:
    """-1, 0 or 1, however it is spelled; None for anything else."""
    try:
        number = real_number(cell)
    except ValueError:
        return None
    return int(number) if number in (-1, 0, 1) else None


def is_marked(cell: Any, column: str) -> bool:
    """Whether an image is of the class that a column is. Raises RowError for a cell that is neither 0 nor 1."""
    number = _small_number(cell)
    if number not in (0, 1):
        raise RowError(
            "bad_row", f"column {column!r}, which is a class, holds {shown(cell)} where the first rows have 0 or 1"
        )
    return number == 1


def _asked_columns(
    header: Sequence[str], config: ManifestConfig, where: str, parts: Mapping[str, str | None], boxes: BoxColumns | None
) -> Iterator[tuple[str, str]]:
    """(name, column) of what --where looks at: a column, or the one that plays the part of this name."""
    for name in config.asked_columns:
        part = parts.get(name) if name not in header else None
        if part is None and name not in header and name in ASKED_FIELDS:
            continue  # of the row as it is understood
        column = part or _named(name, header, "--where", where)
        if boxes is not None and (column == parts.get("label") or column in boxes.names):
            raise ConfigError(
                f"--where {name}: in {where} each line is a box, and --where chooses images: choose boxes with "
                f"--keep_labels, --drop_labels or --min_box"
            )
        yield name, column


def _named(asked: str, header: Sequence[str], option: str, where: str) -> str:
    """The column of the header that an option names: exactly so, or the only one that differs by case or blanks."""
    if asked in header:
        return asked
    alike = [name for name in header if normal(name) == normal(asked)]
    if len(alike) == 1:
        return alike[0]
    raise ConfigError(
        f"{option} {asked}: {where} has no such column{nearest(asked, header)}; its columns are {listed(header)}"
    )


def listed(names: Sequence[str], limit: int = 20) -> str:
    """Names in quotes, the first ones when there are many."""
    shown = ", ".join(repr(name) for name in names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown or "none"


def check_has_image(roles: Roles, header: Sequence[str], config: ManifestConfig, where: str, first: str) -> None:
    """Raises ConfigError when no column holds images and none is declared. first: the first line, as it stands."""
    if roles.image is None and not config.columns:
        shown = first if len(first) <= 200 else first[:200] + "..."
        raise ConfigError(
            f"{where}: no column names images. The first row is\n    {shown}\n"
            f"If that is a header, name the column of the images with --image_column (there are {listed(header)}). "
            f"If the file has no header, put one in front, such as image,label or split,image,label; image, filename, "
            f"path and uri are understood. A table without images needs --columns NAME:TYPE,..."
        )


MASK_NAMES = ("mask", "label", "labels", "annotation", "segmentation", "segmentation_mask", "seg", "semantic_mask")
_CAPTION_NAMES = ("captions", "caption", "text")
_FILE_NAME = "_file_name"


def with_metadata_columns(roles: Roles, header: Sequence[str], config: ManifestConfig, uri: str) -> Roles:
    """The roles with the columns that only a file called ``metadata`` has for them; the same ones for any other."""
    if not name_of(uri).lower().startswith("metadata."):
        return roles
    named = {normal(name): name for name in header if normal(name).endswith(_FILE_NAME) and name != roles.image}
    masks = [name for key, name in named.items() if key.removesuffix(_FILE_NAME) in MASK_NAMES]
    images = [name for name in named.values() if name not in masks]
    if roles.image is None and config.image_column is None and len(images) == 1:
        roles = replace(roles, image=images[0])
    if roles.mask is None and len(masks) == 1:
        roles = replace(roles, mask=masks[0])
    return with_captions(roles, header)


def with_captions(roles: Roles, header: Iterable[str]) -> Roles:
    """The roles with the column whose name says that it holds texts about the image."""
    taken = {*roles.needed(), *(roles.boxes.names if roles.boxes is not None else ())}
    names = {normal(name): name for name in header if name not in taken}
    found = next((names[name] for name in _CAPTION_NAMES if name in names), None)
    return replace(roles, captions=found) if found is not None else roles
