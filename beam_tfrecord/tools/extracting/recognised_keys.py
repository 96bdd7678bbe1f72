"""Which feature of records from elsewhere holds what: decided once for all files of a place.

Some records of some files are looked at. Names that the usual tools give count first
(:mod:`beam_tfrecord.datasets.record_keys`); an image is told by what the values are, a label without a usual name by a
word in its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from beam_tfrecord.core.account import Decision
from beam_tfrecord.datasets.record_keys import guess_keys
from beam_tfrecord.datasets.record_view import RecordView, frames, view_record
from beam_tfrecord.datasets.shard_files import FoundFiles
from beam_tfrecord.errors import ConfigError, ManifestError, nearest
from beam_tfrecord.images.sniff import sniff
from beam_tfrecord.manifests.base import Files
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.tfrecord import RecordFault, scan_records
from beam_tfrecord.tfrecord.example import NO_KIND
from beam_tfrecord.tools.extracting.records import dtypes_of

LOOKED_FILES = 8  # of a place, that are looked into before it is read
LOOKED_RECORDS = 32  # of each of them
_PICTURES = frozenset({"jpeg", "png", "gif", "bmp", "webp", "tiff", "avif", "heic", "jpeg2000", "jpegxl"})
_OF_TABLES = ("label_pattern", "label_separator", "sequence_column", "order_column")
_LABEL_WORDS = frozenset({"label", "labels", "class", "classes", "category", "categories", "target", "species"})


@dataclass
class Look:
    """The features of some records.

    dtypes: by key. singles: keys with one value in each record that has any. pictures: keys whose values begin as
    images do, in each of these records.
    """

    dtypes: dict[str, str] = field(default_factory=dict)
    singles: set[str] = field(default_factory=set)
    pictures: set[str] = field(default_factory=set)

    def add(self, view: RecordView) -> None:
        """Take in a record."""
        dtypes = dtypes_of(view)
        for features in [view.features, *(frames(view)[:1] if view.steps else [])]:
            for key, feature in features.items():
                is_new = self.dtypes.get(key, NO_KIND) == NO_KIND
                if is_new:
                    self.dtypes[key] = dtypes.get(key, feature.dtype)
                if not feature.values:
                    continue
                is_single = len(feature.values) == 1
                is_picture = is_single and feature.dtype == "bytes" and sniff(feature.values[0][:4096]) in _PICTURES
                for keys, fits in ((self.singles, is_single), (self.pictures, is_picture)):
                    if fits and is_new:
                        keys.add(key)
                    elif not fits:
                        keys.discard(key)


def look_at(files: Files, found: FoundFiles) -> Look:
    """What the first records of some files hold. Raises ManifestError for a file that is none of records."""
    look = Look()
    step = max(1, -(-len(found.files) // LOOKED_FILES))
    is_empty = True
    for file in found.files[::step]:
        with readable(file.uri), files.open(file.uri) as stream:
            for number, item in enumerate(scan_records(stream, file.uri)):
                if isinstance(item, RecordFault):
                    if not item.is_of_record:
                        raise ManifestError(str(item))
                elif number < LOOKED_RECORDS:
                    is_empty = False
                    try:
                        look.add(view_record(item.data))
                    except ValueError:
                        continue  # told when it is read
                if number >= LOOKED_RECORDS:
                    break
    if not look.dtypes and not is_empty:
        raise ManifestError(
            f"{found.files[0].uri}: none of its first records is a tf.train.Example with features, and nothing else "
            "can be converted"
        )
    return look


def keys_of(look: Look, config: ManifestConfig, uri: str, decided: list[Decision]) -> dict[str, str]:
    """Logical name -> key. Raises ConfigError where a key that was named is not there or no image can be told."""
    keys = guess_keys(look.dtypes)
    if look.dtypes.get(keys.get("label", "")) == "float":
        del keys["label"]
    _choose_image(keys, look, config, uri, decided)
    label = config.label_key or config.label_column
    if label is not None:
        _take(keys, "label", _known(label, "--label_key", look, uri))
        decided.append(Decision("key of the label", label, "--label_key"))
    elif "label" in keys or "label_text" in keys:
        told = keys.get("label") or keys["label_text"]
        decided.append(Decision("key of the label", told, "its name"))
    elif "object_label" not in keys:
        likely = _likely_labels(look, keys)
        if len(likely) == 1:
            keys["label"] = likely[0]
            decided.append(Decision("key of the label", likely[0], "the only single value that is called like a label"))
    if "object_label" in keys:
        decided.append(Decision("key of the classes of boxes", keys["object_label"], "its name"))
    if config.id_column is not None:
        _take(keys, "source_id", _known(config.id_column, "--id_column", look, uri))
    if config.mask_column is not None:
        _take(keys, "semantic_mask", _known(config.mask_column, "--mask_column", look, uri))
    for name in ("split_column", "group_column"):  # their values are read beside what a record is known to hold
        asked = getattr(config, name)
        if asked is not None:
            _known(asked, f"--{name}", look, uri)
    return keys


def _known(key: str, flag: str, look: Look, uri: str) -> str:
    if look.dtypes and key not in look.dtypes:
        told = ", ".join(sorted(look.dtypes))
        raise ConfigError(f"{flag} {key}: {uri} has no such feature{nearest(key, look.dtypes)}; there are {told}")
    return key


def _take(keys: dict[str, str], name: str, key: str) -> None:
    """Give a key to a logical name, and to no other one."""
    for other in [other for other, own in keys.items() if own == key]:
        del keys[other]
    if name == "label":
        keys.pop("label_text", None)
    keys[name] = key


def _choose_image(keys: dict[str, str], look: Look, config: ManifestConfig, uri: str, decided: list[Decision]) -> None:
    asked = config.image_key or config.image_column
    if asked is not None:
        _take(keys, "encoded", _known(asked, "--image_key", look, uri))
        keys.pop("raw", None)
        decided.append(Decision("key of the image", asked, "--image_key"))
        return
    named = keys.get("encoded")
    if named is not None and (named in look.pictures or not look.dtypes):
        decided.append(Decision("key of the image", named, "its name, and what it holds"))
        return
    masks = {key for name, key in keys.items() if "mask" in name or "instance" in name}
    likely = sorted(look.pictures - masks)
    if len(likely) == 1:
        _take(keys, "encoded", likely[0])
        keys.pop("raw", None)
        decided.append(Decision("key of the image", likely[0], "it is the only one that holds an image"))
    elif len(likely) > 1:
        raise ConfigError(
            f"{uri}: the features {', '.join(likely)} hold an image each: name the one that is meant with --image_key"
        )
    elif named is None and "raw" not in keys and look.dtypes and not config.columns:
        raise ConfigError(
            f"{uri}: no feature of its records holds an image (there are {', '.join(sorted(look.dtypes))}): name one "
            "with --image_key, or, for records without images, those that are wanted with --columns"
        )
    elif named is not None or "raw" in keys:
        decided.append(Decision("key of the image", named or keys["raw"], "its name"))


def _likely_labels(look: Look, keys: Mapping[str, str]) -> list[str]:
    """Keys that nothing explains, of one whole number or text, and called like a label."""
    explained = set(keys.values())
    words = {
        key: set(key.lower().replace("/", "_").replace("-", "_").replace(".", "_").split("_")) for key in look.dtypes
    }
    return sorted(
        key
        for key, dtype in look.dtypes.items()
        if key not in explained and key in look.singles and dtype in ("int64", "bytes") and words[key] & _LABEL_WORDS
    )


def unread(look: Look, keys: Mapping[str, str], config: ManifestConfig) -> Iterator[tuple[str, str]]:
    """What is called like a label and was not read, where nothing was; and options that say nothing of records."""
    for name in _OF_TABLES:
        if getattr(config, name) is not None:
            yield "columns_not_read", f"--{name} is not used: it is about tables and lists, and these are TFRecords"
    if {"label", "label_text", "object_label", "object_text"} & keys.keys():
        return
    likely = [key for key in _likely_labels(look, keys) if key not in {column.name for column in config.columns}]
    if likely:
        told = f"the features {', '.join(likely)} are called like labels, and none was read: name one with --label_key"
        yield "columns_not_read", told
