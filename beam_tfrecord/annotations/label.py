"""The label of an image, or its labels.

Canonical field ``label``: one label (text, or a number as the format types it), or a list of labels. With
``--label_separator`` a text is a list. Records hold ids (``label``) and, where the preset has a key for them, names
(``label_text``): one of each, or any number in a dataset where any row has a list. White space around a label is no
part of it. A row without the field has no label; a blank one is an error, an empty list is not.

In a SequenceExample the label is that of the whole sequence and lies in the context; nothing else differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from beam_tfrecord.annotations.base import AnnotationKind, Feature, FeatureSpec, Schema
from beam_tfrecord.annotations.cells import is_blank, name_text, shown
from beam_tfrecord.errors import RowError
from beam_tfrecord.options.config import ConvertConfig

NO_LABEL = -1  # id of an image without a label, in a dataset where others have exactly one


class Label(NamedTuple):
    """Label names in the order of the row. is_list: the row may have any number of them."""

    names: tuple[str, ...]
    is_list: bool = False


class LabelKind(AnnotationKind[Label]):
    """Label names to ids and texts. Facet ``labels``: some row has a list."""

    name = "label"
    of_whole = True
    fields = frozenset({"label"})

    def parse(self, fields: Mapping[str, Any], config: ConvertConfig, warn: Callable[[str, str], None]) -> Label | None:
        """Raises RowError: ``missing_label`` for a blank cell, ``bad_row`` for what cannot be a label."""
        if "label" not in fields:
            return None
        cell = fields["label"]
        separator = config.manifest.label_separator
        if type(cell) is str and separator is None and cell.isascii() and (name := cell.strip()):
            return Label((cell if fields.get("listed") else name,))  # what nearly all cells are
        if fields.get("listed") and separator is None and not is_blank(cell):
            return Label((_checked(cell),))
        if not isinstance(cell, str) and hasattr(cell, "tolist"):  # numpy: an array of a Parquet list, or a scalar
            cell = cell.tolist()
        if isinstance(cell, list | tuple | set | frozenset):
            items = sorted(cell, key=str) if isinstance(cell, set | frozenset) else cell
            return Label(_distinct([_name(item) for item in items], warn), is_list=True)
        if is_blank(cell):
            raise RowError("missing_label", "the label is empty: fill the cell, or leave the row out")
        if separator is not None and isinstance(cell, str):
            names = [part.strip() for part in _checked(cell).split(separator) if part.strip()]
            if not names:
                raise RowError("missing_label", f"the label cell {cell!r} holds nothing but separators")
            return Label(_distinct(names, warn), is_list=True)
        return Label((_name(cell),))

    def facets(self, value: Label) -> tuple[str, ...]:
        return ("label", "labels") if value.is_list else ("label",)

    def labels(self, value: Label) -> Iterable[str]:
        return value.names

    def chosen(self, value: Label, name_of: Callable[[str], str | None]) -> Label:
        """A row with one label that is dropped is left without any name."""
        names = dict.fromkeys(name for name in map(name_of, value.names) if name is not None)
        return Label(tuple(names), value.is_list)

    def pack(self, value: Label) -> Any:
        return tuple(value)

    def unpack(self, packed: Any) -> Label:
        return Label._make(packed)

    def features(self, value: Label | None, schema: Schema) -> dict[str, Feature]:
        """An image without a label has empty lists, or the id -1 and an empty text where exactly one value is due."""
        names = value.names if value is not None else ()
        ids = [schema.vocabulary.id_of(name) for name in names]
        texts = [name.encode("utf-8", "surrogateescape") for name in names]
        if not names and "labels" not in schema.kinds:
            ids, texts = [NO_LABEL], [b""]
        found = {schema.keys["label"]: Feature("int64", ids)}
        if "label_text" in schema.keys:
            found[schema.keys["label_text"]] = Feature("bytes", texts)
        if schema.one_hot:
            present = set(names)
            found[schema.keys["label_one_hot"]] = Feature(
                "int64", [int(name in present) for name in schema.vocabulary.names]
            )
        return found

    def spec(self, schema: Schema) -> list[FeatureSpec]:
        shape: tuple[int | None, ...] = (None,) if "labels" in schema.kinds else ()
        specs = [FeatureSpec(schema.keys["label"], "int64", shape, "label", description="ids of the labels")]
        if "label_text" in schema.keys:
            specs.append(FeatureSpec(schema.keys["label_text"], "bytes", shape, "text", description="their names"))
        if schema.one_hot:
            key, size = schema.keys["label_one_hot"], len(schema.vocabulary)
            specs.append(FeatureSpec(key, "int64", (size,), description="1 for each label of the image, in id order"))
        return specs


def _name(item: Any) -> str:
    if is_blank(item):
        raise RowError("missing_label", "one of the labels is empty: fill it, or take it out of the list")
    return _checked(item).strip()


def _checked(item: Any) -> str:
    try:
        return name_text(item)
    except ValueError as error:
        raise RowError("bad_row", f"a label must be text or a number: {shown(item)} {error}") from None


def _distinct(names: list[str], warn: Callable[[str, str], None]) -> tuple[str, ...]:
    """Each name once, in order; every further one is told."""
    distinct = tuple(dict.fromkeys(names))
    if len(distinct) < len(names):
        for name in (Counter(names) - Counter(distinct)).elements():
            warn("annotation_ignored", f"the label {name!r} is given more than once in one row")
    return distinct
