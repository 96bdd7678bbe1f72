"""Which key of a record holds what: told by conversion.json, or guessed from the keys of a record from elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from beam_tfrecord.annotations import feature_keys
from beam_tfrecord.annotations.keys import PRESETS
from beam_tfrecord.options.values import parse_columns, parse_renames

# Names that records from elsewhere use beside those of the presets.
_FURTHER = {
    "encoded": ("image_raw", "image_encoded", "image/data", "jpeg", "png", "img"),
    "height": ("height",),
    "width": ("width",),
    "channels": ("channels", "depth"),
    "label": ("image/class/label", "label", "class", "target"),
    "label_text": ("class/text", "label/text", "label_text", "class_name"),
    "filename": ("filename", "file_name", "image/filename"),
}


def keys_of_conversion(conversion: Mapping[str, Any]) -> dict[str, str]:
    """Logical name -> key, as the preset and the renames of a conversion.json say.

    Raises KeyError, TypeError, ValueError or ConfigError when the file does not say it as it must.
    """
    options = conversion["options"]
    columns = [(column["name"], column["type"]) for column in options.get("columns") or ()]
    return feature_keys(
        conversion["keys"],
        parse_renames([tuple(pair) for pair in options.get("rename") or ()]),
        raw=options.get("image_format") == "raw",
        columns=parse_columns(columns),
    )


def guess_keys(present: Iterable[str]) -> dict[str, str]:
    """Logical name -> key for the keys of a record that nothing tells about; only names that are there.

    The preset that explains most of the keys is taken, and common names of other tools fill what it leaves open.
    """
    return dict(_guessed(tuple(sorted(present))))


@functools.lru_cache(maxsize=256)
def _guessed(present: tuple[str, ...]) -> Mapping[str, str]:
    known = set(present)
    candidates = []
    for preset in PRESETS[1:]:
        for raw in (False, True):
            found = {name: key for name, key in feature_keys(preset, raw=raw).items() if key in known}
            candidates.append(found)
    best = max(candidates, key=lambda found: ("encoded" in found or "raw" in found, len(found)))
    for name, keys in _FURTHER.items():
        free = [key for key in keys if key in known and key not in best.values()]
        if name not in best and free:
            best[name] = free[0]
    return best
