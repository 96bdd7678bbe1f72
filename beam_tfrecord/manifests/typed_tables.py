"""Tables with a schema, Parquet and Arrow: which of their columns hold pictures, classes, captions and boxes.

What Hugging Face's datasets states of columns beside their types (source: ``features/features.py`` of datasets 5.2).

The schema of a Parquet or Arrow file has JSON under the key ``huggingface``: ``info.features`` by column. ``Image`` is
a struct of ``bytes`` and ``path``; ``ClassLabel`` a whole number whose name stands at its place in ``names``, -1 where
there is no label. Lists are ``List`` and ``LargeList`` with ``feature``, ``[...]`` and ``Sequence`` in older files, a
``Sequence`` of several columns being a struct of lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from beam_tfrecord.annotations.cells import plain, shown, whole_number
from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import AmbiguousManifestError, ConfigError, ManifestError, RowError
from beam_tfrecord.manifests.columns import told_of_table
from beam_tfrecord.manifests.picture_cells import BYTES, PATH, holds_pictures
from beam_tfrecord.manifests.text.inline_images import InlineImage
from beam_tfrecord.manifests.text.roles import (
    MASK_NAMES,
    USUAL_NAMES,
    Roles,
    check_has_image,
    find_roles,
    listed,
    normal,
    with_captions,
    with_classes,
    with_metadata_columns,
)
from beam_tfrecord.manifests.text.row_fields import NoRow
from beam_tfrecord.options.config import ManifestConfig

_KEY = b"huggingface"
_LISTS = ("List", "LargeList", "Sequence")
_NO_LABEL = -1


def stated_features(metadata: Mapping[bytes, bytes] | None, uri: str) -> dict[str, Any]:
    """The features by column; empty where the schema states none. Raises ManifestError for what is no JSON."""
    text = (metadata or {}).get(_KEY)
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ManifestError(
            f"{uri}: the metadata 'huggingface' of its schema is no JSON: {error}: write the file again with datasets"
        ) from None
    info = value.get("info") if isinstance(value, Mapping) else None
    features = info.get("features") if isinstance(info, Mapping) else None
    return dict(features) if isinstance(features, Mapping) else {}


def is_image(feature: Any) -> bool:
    """Whether a feature is that of one picture."""
    return isinstance(feature, Mapping) and feature.get("_type") == "Image"


def class_names(feature: Any) -> tuple[str, ...]:
    """The names of a ClassLabel, or of the only one within a feature; none where there is none."""
    found = list(dict.fromkeys(_all_names(feature)))
    return found[0] if len(found) == 1 else ()


def _all_names(feature: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(feature, list):
        for inner in feature:
            yield from _all_names(inner)
    elif isinstance(feature, Mapping):
        names = feature.get("names")
        if feature.get("_type") == "ClassLabel":
            if isinstance(names, Sequence) and not isinstance(names, str):
                yield tuple(map(str, names))
        else:
            for inner in feature.values():
                yield from _all_names(inner)


def is_of_names(feature: Any) -> bool:
    """Whether a feature is a ClassLabel, or a list of them."""
    inner = _of_list(feature)
    return bool(class_names(inner if inner is not None else feature)) and _is_label(inner or feature)


def _is_label(feature: Any) -> bool:
    return isinstance(feature, Mapping) and feature.get("_type") == "ClassLabel"


def _of_list(feature: Any) -> Any:
    """What a list is a list of; None for what is no list."""
    if isinstance(feature, list):
        return feature[0] if len(feature) == 1 else None
    if isinstance(feature, Mapping) and feature.get("_type") in _LISTS:
        return feature.get("feature")
    return None


def named(cell: Any, feature: Any, where: str) -> Any:
    """A cell with the names of its classes in place of their numbers.

    where: the column. Raises RowError (``unknown_category``) for a number that has no name.
    """
    if cell is None or feature is None:
        return cell
    if _is_label(feature):
        return _name(cell, feature.get("names") or (), where)
    inner = _of_list(feature)
    if inner is not None:
        if isinstance(cell, Mapping):  # a Sequence of several columns
            return {key: named(value, [inner.get(key)], f"{where}.{key}") for key, value in cell.items()}
        has_names = next(_all_names(inner), None) is not None
        return [named(one, inner, where) for one in plain(cell)] if has_names else cell
    if isinstance(feature, Mapping) and isinstance(cell, Mapping):
        return {key: named(value, feature.get(key), f"{where}.{key}") for key, value in cell.items()}
    return cell


def _name(cell: Any, names: Sequence[str], where: str) -> str | None:
    try:
        number = whole_number(cell)
    except ValueError:
        raise RowError("unknown_category", f"{where} is {shown(cell)}, not the number of a class") from None
    if number == _NO_LABEL:
        return None
    if not 0 <= number < len(names):
        raise RowError("unknown_category", f"{where} is {number}, and the schema names {len(names)} classes, from 0 on")
    return str(names[number])


_IMAGE_NAMES = (*USUAL_NAMES["image"], "pixel_values", "picture", "jpg", "jpeg", "png", "webp")
_BYTES_NAMES = frozenset((*_IMAGE_NAMES, "image_bytes", "img_bytes", "bytes", "image_data", "encoded"))


@dataclass(frozen=True)
class TypedTable:
    """What the schema of a table says.

    pictures: how a column holds pictures, by its name. with_path: those that have paths as well. features: what
    Hugging Face states of the columns that play a part. labels: the names of all classes in the order of their ids.
    """

    header: tuple[str, ...]
    roles: Roles
    pictures: Mapping[str, str]
    with_path: tuple[str, ...]
    features: Mapping[str, Any]
    labels: tuple[str, ...] | None
    decisions: tuple[Decision, ...] = ()

    def to_details(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "header": self.header,
            "roles": self.roles.to_details(),
            "pictures": dict(self.pictures),
            "with_path": self.with_path,
            "features": dict(self.features),
        }

    @classmethod
    def from_details(cls, details: Mapping[str, Any]) -> TypedTable:
        """The table that :meth:`to_details` gave, without what only its source tells."""
        return cls(
            tuple(details["header"]),
            Roles.from_details(details["roles"]),
            details["pictures"],
            tuple(details["with_path"]),
            details["features"],
            None,
        )

    def told(self, config: ManifestConfig) -> dict[str, Any]:
        """The fields of a source that tell of the table."""
        return {
            "labels": self.labels,
            "category_ids": tuple(range(len(self.labels))) if self.labels else None,
            **told_of_table(self.header, self.roles, config, *self.decisions),
        }

    def picture_columns(self) -> list[str]:
        """The columns whose pictures are read: those of the image and of the mask."""
        return [name for name in (self.roles.image, self.roles.mask) if name in self.pictures and name is not None]

    def read_columns(self) -> list[str]:
        """The columns that cells are made of, of pictures only the paths."""
        wanted = self.header if self.roles.has_boxes else self.roles.needed()
        found = []
        for name in wanted:
            if name not in self.header:  # a column that is made
                continue
            if name not in self.pictures:
                found.append(name)
            elif name in self.with_path and name in self.picture_columns():
                found.append(f"{name}.{PATH}")
        return found


FirstCells = Callable[[Sequence[str]], Mapping[str, Sequence[Any]]]  # those of the first rows, by column


def table_of(schema: Any, first: FirstCells, config: ManifestConfig, uri: str) -> TypedTable:
    """What a pyarrow.Schema says. first: the cells of columns that may be classes.

    Raises ConfigError for options that do not fit it, ManifestError for metadata that cannot be read, and
    AmbiguousManifestError where columns could play the same part.
    """
    header = tuple(schema.names)
    features = stated_features(schema.metadata, uri)
    pictures = _pictures(schema, features, config)
    asked = {config.image_column, config.mask_column, config.label_column}
    plain = [name for name in header if name not in pictures or name in asked]
    roles = find_roles(plain, config, uri, lambda name: [[]] * (schema.field(name).type.num_fields > 0))
    roles, decisions = _with_pictures(roles, pictures, config, uri)
    roles = _with_names(roles, header, features, config, uri)
    roles = with_captions(roles, plain) if features else with_metadata_columns(roles, plain, config, uri)
    roles = _with_classes(roles, schema, features, first, config, uri)
    check_has_image(roles, header, config, uri, ", ".join(f"{field.name}: {field.type}" for field in schema))
    _check_image(roles, schema, pictures, uri)
    parts = [roles.label, *(roles.boxes.names if roles.boxes is not None else ())]
    stated = {name: features[name] for name in parts if name is not None and class_names(features.get(name))}
    labels = next(iter(class_names(feature) for feature in stated.values()), None)
    if labels is not None and len(set(labels)) < len(labels):
        raise ManifestError(f"{uri}: its schema gives two classes one name: rename one of them")
    with_path = tuple(
        name for name, how in pictures.items() if how == "struct" and schema.field(name).type.get_field_index(PATH) >= 0
    )
    if labels:
        decisions = (*decisions, Decision("classes", f"{len(labels)} names", "the features of the schema"))
    return TypedTable(header, roles, pictures, with_path, stated, labels, decisions)


def _pictures(schema: Any, features: Mapping[str, Any], config: ManifestConfig) -> dict[str, str]:
    asked = (config.image_column, config.mask_column)
    found = {}
    for field in schema:
        how = holds_pictures(field.type)
        is_told = is_image(features.get(field.name)) or field.name in asked or normal(field.name) in _BYTES_NAMES
        if how == "struct" or (how and is_told):
            found[field.name] = how
    return found


def _with_pictures(
    roles: Roles, pictures: Mapping[str, str], config: ManifestConfig, uri: str
) -> tuple[Roles, tuple[Decision, ...]]:
    """The roles with the columns of pictures that are the image and the mask."""
    if roles.label in pictures and roles.label is not None:
        raise ConfigError(f"{uri}: --label_column {roles.label} holds pictures, not labels: is it --mask_column?")
    names = {normal(name): name for name in reversed(list(pictures))}
    if config.image_column is None and pictures:
        candidates = [name for name in pictures if normal(name) not in MASK_NAMES and name != roles.mask]
        usual = next((names[name] for name in _IMAGE_NAMES if names.get(name) in candidates), None)
        is_named = roles.image is not None and normal(roles.image).startswith(("image", "img"))
        if usual is None and len(candidates) > 1 and not is_named:
            raise AmbiguousManifestError(
                f"{uri}: the columns {listed(candidates)} hold pictures: say which is the image, such as "
                f"--image_column {candidates[0]}"
            )
        chosen = usual or (candidates[0] if candidates and not is_named else None)
        if chosen is None and roles.image is None and len(pictures) == 1:
            chosen = next(iter(pictures))
        if chosen is not None:
            roles = replace(roles, image=chosen)
    left = [name for name in pictures if normal(name) in MASK_NAMES and name != roles.image]
    if config.mask_column is None and len(left) == 1 and roles.image is not None:
        roles = replace(roles, mask=left[0])
        return roles, (Decision("masks", left[0], "a column of pictures that is called so"),)
    return roles, ()


def _with_names(
    roles: Roles, header: Sequence[str], features: Mapping[str, Any], config: ManifestConfig, uri: str
) -> Roles:
    """The roles with the label, where the features tell which column it is."""
    if roles.label is not None or roles.boxes is not None or config.label_column is not None:
        return roles
    taken = {*roles.needed()}
    named_ones = [name for name in header if name not in taken and is_of_names(features.get(name))]
    if len(named_ones) > 1:
        raise AmbiguousManifestError(
            f"{uri}: the columns {listed(named_ones)} hold classes: say which is the label, such as "
            f"--label_column {named_ones[0]}"
        )
    return replace(roles, label=named_ones[0]) if named_ones else roles


def _with_classes(
    roles: Roles, schema: Any, features: Mapping[str, Any], first: FirstCells, config: ManifestConfig, uri: str
) -> Roles:
    """The roles with the columns of numbers that are a class each, as those of a text are (:mod:`.text.roles`)."""
    from pyarrow import types

    tests = (types.is_integer, types.is_boolean, types.is_floating)
    numbers = [
        field.name
        for field in schema
        if any(test(field.type) for test in tests) and not class_names(features.get(field.name))
    ]
    read: dict[str, Sequence[Any]] = {}

    def cells(name: str) -> Sequence[Any]:
        if not read:
            read.update(first(numbers))
        return read[name]

    return with_classes(roles, numbers, config, uri, cells)


def _check_image(roles: Roles, schema: Any, pictures: Mapping[str, str], uri: str) -> None:
    """Raise ConfigError where the column of the image holds neither paths nor pictures."""
    if roles.image is None or roles.image in pictures:
        return
    kind = schema.field(roles.image).type
    if kind.num_fields > 0:
        raise ConfigError(
            f"{uri}: column {roles.image!r} is a {kind}, neither the path of an image nor its bytes (a struct of "
            f"{BYTES} and {PATH}): save the images as files and their paths in a column, or name another one with "
            f"--image_column"
        )


def with_class_names(
    table: Iterable[tuple[str, dict[str, Any]]], features: Mapping[str, Any], image: str | None
) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """The same cells, names in place of the numbers of classes; a text that says why for a row with a wrong one."""
    if not features:
        yield from table
        return
    for origin, cells in table:
        try:
            yield origin, {**cells, **{name: named(cells.get(name), features[name], name) for name in features}}
        except RowError as error:
            cell = cells.get(image) if image is not None else None
            shown = cell.name if isinstance(cell, InlineImage) else str(cell or "")
            yield origin, NoRow(error.message, shown, error.code)
