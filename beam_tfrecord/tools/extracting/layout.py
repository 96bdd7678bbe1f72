"""What is known of the records that are extracted: which key holds what, and what conversion must be told again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from beam_tfrecord.annotations.keys import column_name
from beam_tfrecord.annotations.object_features import ALWAYS
from beam_tfrecord.annotations.objects import ATTRIBUTES
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.record_keys import guess_keys
from beam_tfrecord.datasets.tfds_info import LabelNames
from beam_tfrecord.options.values import Column, parse_columns

# What conversion makes anew from the image, or from the other values.
DERIVED_FACTS = frozenset({"format", "height", "width", "channels", "dtype", "shape", "sha256"})
_DERIVED = ("label_one_hot", "keypoint_num", "semantic_mask_format", "instance_map_format")

MADE_ANEW = frozenset({*DERIVED_FACTS, *_DERIVED})


@dataclass(frozen=True)
class Layout:
    """What a record holds.

    keys: logical name (see :mod:`beam_tfrecord.annotations.keys`) -> key, of features that are there. columns: declared
    columns; None where nothing tells, and every further feature is one. label_names: name by id; None where nothing
    tells. kinds: facets of the dataset. is_multi_label: whether an image has a list of labels. names_by_key: of records
    from elsewhere, names of ids that files beside them tell.
    """

    keys: Mapping[str, str]
    columns: tuple[Column, ...] | None = None
    label_names: Mapping[int, str] | None = None
    kinds: tuple[str, ...] = ()
    is_multi_label: bool = False
    names_by_key: LabelNames = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether a conversion.json tells all this."""
        return self.columns is not None

    def further_keys(self, present: Iterable[str]) -> list[str]:
        """Keys of a record that no logical name explains, sorted."""
        explained = set(self.keys.values())
        return sorted(key for key in present if key not in explained)


def layout_of(facts: DatasetFacts) -> Layout:
    """The layout that a conversion.json tells."""
    return Layout(
        keys=facts.keys,
        columns=columns_of(facts),
        label_names=facts.label_names,
        kinds=kinds_of(facts),
        is_multi_label="label" in facts.keys and facts.specs[facts.keys["label"]].shape != (),
    )


def guessed_layout(dtypes: Mapping[str, str], names_by_key: LabelNames | None = None) -> Layout:
    """The layout of a record from elsewhere, guessed from its keys; dtypes: of its features."""
    keys = guess_for_extraction(dtypes)
    if dtypes.get(keys.get("label", "")) == "float":
        del keys["label"]
    return Layout(keys, names_by_key=names_by_key or {})


def guess_for_extraction(present: Iterable[str]) -> dict[str, str]:
    """Logical name -> key for keys that nothing tells about. Without an image all are columns, whatever their names."""
    keys = guess_keys(present)
    if "encoded" in keys or "raw" in keys:
        return keys
    return {name: key for name, key in keys.items() if name == "source_id"}


def columns_of(facts: DatasetFacts) -> tuple[Column, ...]:
    """The columns that were declared for a dataset."""
    told = facts.conversion["options"].get("columns") or ()
    return parse_columns([(column["name"], column["type"] + "[]" * bool(column.get("is_list"))) for column in told])


def kinds_of(facts: DatasetFacts) -> tuple[str, ...]:
    """The facets that ask for exactly the features that a dataset has.

    Rows need not show them: the only row with a mask may have become a reject.
    """
    keys, specs = facts.keys, facts.specs
    found = {
        "label": "label" in keys,
        "labels": "label" in keys and specs[keys["label"]].shape != (),
        "boxes": "object_label" in keys,
        "instance_masks": "object_mask" in keys,
        "keypoints": "keypoint_x" in keys,
        "semantic_mask": "semantic_mask" in keys,
        "instance_map": "instance_map" in keys,
        "panoptic": "panoptic_category_mask" in keys,
        "panoptic/many_segments": "panoptic_instance_mask" in keys
        and specs[keys["panoptic_instance_mask"]].pixel_dtype == "uint16",
        "captions": "captions" in keys,
        **{f"boxes/{name}": f"object_{name}" in keys for name in ATTRIBUTES if name not in ALWAYS},
    }
    return tuple(sorted(name for name, is_there in found.items() if is_there))


def unknown_features(facts: DatasetFacts) -> list[str]:
    """Keys of features that cannot be extracted: of annotation kinds that are not registered here."""
    columns = {column_name(column) for column in columns_of(facts)}
    explained = {key for name, key in facts.keys.items() if name in EXTRACTED or name in columns}
    return sorted(set(facts.specs) - explained)


EXTRACTED = frozenset(
    {
        *(
            "encoded",
            "raw",
            "format",
            "height",
            "width",
            "channels",
            "dtype",
            "shape",
            "filename",
            "source_id",
            "sha256",
        ),
        *("label", "label_text", "captions", "semantic_mask", "instance_map"),
        *("panoptic_category_mask", "panoptic_instance_mask"),
        *(f"panoptic_segment_{name}" for name in ("label", "text", "is_crowd", "area")),
        *("bbox", "bbox_xmin", "bbox_xmax", "bbox_ymin", "bbox_ymax", "object_label", "object_text", "object_mask"),
        *(f"object_{name}" for name in ATTRIBUTES),
        *("keypoint_x", "keypoint_y", "keypoint_visibility", "keypoint_text"),
        *_DERIVED,
    }
)
