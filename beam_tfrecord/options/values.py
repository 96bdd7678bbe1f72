"""From text (or Python values) to the values of options. Each function raises ValueError with a short reason."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.errors import nearest

AUTO_ENCODING = "auto"
# Codecs of Python that are no encodings of files.
_NO_ENCODINGS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem"})
SPLIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
BYTE_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def parse_flag(value: Any) -> bool:
    """True and False, also as text."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("true", "1", "yes"):
        return True
    if text in ("false", "0", "no"):
        return False
    raise ValueError("must be true or false")


def parse_encoding(value: Any) -> str:
    """The name of an encoding as Python spells it, or ``auto``."""
    text = str(value).strip()
    if text.lower() == AUTO_ENCODING:
        return AUTO_ENCODING
    try:
        name = codecs.lookup(text).name
        "".encode(name)  # codecs that make bytes of bytes are not for texts
    except (LookupError, ValueError):
        name = ""
    if not name or name in _NO_ENCODINGS:
        raise ValueError(f"{text!r} is no encoding; usual are utf-8, utf-16, cp1252, latin-1, gbk, big5, shift_jis")
    return name


def parse_count(value: Any) -> int:
    """A whole number of 0 or more; ``_`` and ``,`` between digits are fine."""
    try:
        number = int(str(value).replace(",", "").replace("_", ""))
    except ValueError:
        raise ValueError("must be a whole number") from None
    if number < 0:
        raise ValueError("must not be negative")
    return number


def parse_positive(value: Any) -> int:
    """A whole number of 1 or more."""
    number = parse_count(value)
    if number < 1:
        raise ValueError("must be at least 1")
    return number


def parse_quality(value: Any) -> int:
    """A JPEG quality, 1 to 100."""
    number = parse_positive(value)
    if number > 100:
        raise ValueError("must be from 1 to 100")
    return number


def parse_bytes(value: Any) -> int:
    """A size such as ``128MiB``, ``2GB`` or ``1000000``, in bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(value))
    if not match or match[2].upper() not in BYTE_UNITS:
        raise ValueError("must be a size such as 128MiB, 1GB or 500000")
    size = int(float(match[1]) * BYTE_UNITS[match[2].upper()])
    if size < 1:
        raise ValueError("must be at least one byte")
    return size


def parse_names(value: Any) -> tuple[str, ...]:
    """Names separated by commas, or a sequence of them."""
    parts = value.split(",") if isinstance(value, str) else list(value)
    return tuple(str(part).strip() for part in parts if str(part).strip())


def _pairs(value: Any) -> list[tuple[str, Any]]:
    """``a=1,b=2``, a mapping or a sequence of pairs, as pairs; names may not repeat."""
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        broken = [part for part in parts if "=" not in part]
        if broken:
            raise ValueError(f"{broken[0]!r} is not of the form name=value")
        pairs: list[tuple[str, Any]] = [
            (name.strip(), text.strip()) for name, _, text in (p.partition("=") for p in parts)
        ]
    else:
        pairs = list(value.items()) if isinstance(value, Mapping) else [(name, item) for name, item in value]
    names = [name for name, _ in pairs]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"{sorted(repeated)[0]!r} is given twice")
    return pairs


def check_split_name(name: str) -> str:
    """The name itself when it can be part of a shard's name; ValueError otherwise."""
    if not SPLIT_NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of a split: letters, digits, '_', '-' and '.' are possible")
    return name


def parse_ratios(value: Any) -> tuple[tuple[str, float], ...]:
    """Shares of splits: fractions that sum to 1, or whole numbers (weights) of any sum."""
    ratios = []
    for name, text in _pairs(value):
        try:
            ratio = float(text)
        except (TypeError, ValueError):
            raise ValueError(f"the share of {name!r} is {text!r}, not a number") from None
        if not 0 <= ratio < float("inf"):
            raise ValueError(f"the share of {name!r} is {text}; it must be 0 or more")
        ratios.append((check_split_name(name), ratio))
    total = sum(ratio for _, ratio in ratios)
    whole = all(ratio == int(ratio) for _, ratio in ratios)
    if total <= 0:
        raise ValueError("the shares sum to 0")
    if abs(total - 1) > 1e-6 and not whole:
        raise ValueError(
            f"the shares sum to {total:g}; they must sum to 1 (train=0.8,validation=0.2) or be whole numbers "
            f"(train=8,validation=2)"
        )
    return tuple((name, ratio / total) for name, ratio in ratios if ratio > 0)


def parse_shard_counts(value: Any) -> int | tuple[tuple[str, int], ...]:
    """A number of shards for the whole dataset, or one for each split."""
    if isinstance(value, int) or (isinstance(value, str) and "=" not in value):
        return parse_positive(value)
    return tuple((check_split_name(name), parse_positive(count)) for name, count in _pairs(value))


def parse_shard_records(value: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """``train=70+69,test=12``: the number of records of each shard, by split."""
    found = []
    for name, numbers in _pairs(value):
        parts = numbers.split("+") if isinstance(numbers, str) else list(numbers)
        found.append((check_split_name(name), tuple(parse_positive(part) for part in parts)))
    return tuple(found)


def parse_ids(value: Any) -> tuple[int, ...]:
    """Distinct whole numbers separated by commas."""
    ids = tuple(parse_count(part) for part in (value.split(",") if isinstance(value, str) else value))
    if len(set(ids)) < len(ids) or not ids:
        raise ValueError("must be distinct whole numbers separated by commas")
    return ids


def parse_resize(value: Any) -> int | tuple[int, int]:
    """``256`` (one side), or ``640x480`` / a pair (width, height)."""
    if isinstance(value, int):
        return parse_positive(value)
    sides = re.split(r"[x×*]", value.strip().lower()) if isinstance(value, str) else list(value)
    if len(sides) not in (1, 2):
        raise ValueError("must be one side (256) or WIDTHxHEIGHT (640x480)")
    numbers = [parse_positive(side) for side in sides]
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


NAMED_COLOURS = {"white": (255, 255, 255), "black": (0, 0, 0), "gray": (128, 128, 128), "grey": (128, 128, 128)}
COLOURS = f"{', '.join(NAMED_COLOURS)}, #rrggbb or three numbers of 0 to 255"


def parse_colour(value: Any) -> tuple[int, int, int]:
    """``white``, ``black``, ``gray``, ``#rrggbb``, ``r,g,b`` or three numbers of 0 to 255."""
    if isinstance(value, str):
        text = value.strip().lower()
        if text in NAMED_COLOURS:
            return NAMED_COLOURS[text]
        if re.fullmatch(r"#[0-9a-f]{6}", text):
            return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)
        parts: Iterable[Any] = text.split(",")
        if text.isalpha():
            raise ValueError(f"must be {COLOURS}{nearest(text, NAMED_COLOURS)}")
    else:
        parts = value
    numbers = [parse_count(part) for part in parts]
    if len(numbers) != 3 or max(numbers) > 255:
        raise ValueError(f"must be {COLOURS}")
    return numbers[0], numbers[1], numbers[2]


def parse_limit(value: Any) -> int | float:
    """A number of rejects (an int), or a share of the rows in percent (a float, 0 to 1)."""
    if isinstance(value, float):
        share = value
    elif isinstance(value, str) and value.strip().endswith("%"):
        try:
            share = float(value.strip()[:-1]) / 100
        except ValueError:
            raise ValueError("must be a number or a percentage such as 5%") from None
    else:
        return parse_count(value)
    if not 0 <= share <= 1:
        raise ValueError("must lie between 0% and 100%")
    return share


# A list, because formats from outside of the package are added when they are registered.
FORMAT_NAMES = [
    "auto",
    "csv",
    "tsv",
    "jsonl",
    "parquet",
    "list",
    "folder",
    "archive",
    "coco",
    "voc",
    "yolo",
    "labelme",
    "cvat",
    "label_studio",
    "via",
    "createml",
    "datumaro",
    "supervisely",
    "bdd100k",
    "bdd100k_files",
    "cityscapes",
    "ade20k",
    "labelbox",
    "kitti",
    "dota",
    "visdrone",
    "wider_face",
    "tiny_imagenet",
    "sagemaker",
    "azureml",
    "vertex",
    "openimages",
    "extracted",
    "huggingface",
    "tfrecord",
    "webdataset",
]

COLUMN_TYPES = ("int64", "float", "string", "bytes")
_ANYTHING = re.compile(".*", re.DOTALL)
_DEFAULTS = {
    "int64": re.compile(r"[+-]?[0-9]{1,18}"),
    "float": re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,2})?|nan|[+-]?inf", re.IGNORECASE),
}
_COLUMN = re.compile(rf"(.+?):((?:{'|'.join(COLUMN_TYPES)})(?:\[\])?(?:=.*)?)")


@dataclass(frozen=True, slots=True)
class Column:
    """A further column of the manifest that becomes a feature. A list holds any number of values.

    default: text of the value that an empty cell stands for; None where an empty cell of a number is an error.
    """

    name: str
    type: str
    is_list: bool = False
    default: str | None = None

    def __str__(self) -> str:
        """As ``--columns`` spells it."""
        return f"{self.name}:{self.type}{'[]' * self.is_list}" + ("" if self.default is None else f"={self.default}")


def _name_and_type(text: str) -> tuple[str, str]:
    """Parts of ``name:type=default``; the name and the default may have colons in them."""
    found = _COLUMN.fullmatch(text)
    name, _, kind = text.rpartition(":")
    return (found[1], found[2]) if found else (name, kind)


def parse_columns(value: Any) -> tuple[Column, ...]:
    """``age:int64,year:int64=-1,weight:float,tags:string[]``, a mapping name to type, or Columns."""
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        named = [_name_and_type(part) for part in parts]
    elif isinstance(value, Mapping):
        named = [(str(name), str(kind)) for name, kind in value.items()]
    else:
        named = [(c.name, str(c)[len(c.name) + 1 :]) if isinstance(c, Column) else (c[0], c[1]) for c in value]
    columns = []
    for name, told in named:
        kind, has_default, default = told.partition("=")
        base = kind.removesuffix("[]")
        if not name or base not in COLUMN_TYPES:
            raise ValueError(
                f"{name + ':' + kind if name else kind!r}: each column is name:type with a type of "
                f"{', '.join(COLUMN_TYPES)} (and [] behind it for a list){nearest(base, COLUMN_TYPES)}"
            )
        if has_default and kind.endswith("[]"):
            raise ValueError(f"{name}:{told}: a list takes no default; an empty cell is an empty list")
        if has_default and not _DEFAULTS.get(base, _ANYTHING).fullmatch(default):
            raise ValueError(f"{name}:{told}: the default {default!r} is no value of the type {base}")
        columns.append(Column(name, base, kind.endswith("[]"), default if has_default else None))
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise ValueError("a column is named twice")
    return tuple(columns)


def parse_renames(value: Any) -> tuple[tuple[str, str], ...]:
    """``old=new,...`` for feature keys."""
    renames = tuple((old, str(new)) for old, new in _pairs(value))
    targets = [new for _, new in renames]
    if len(set(targets)) < len(targets) or not all(targets):
        raise ValueError("two keys would get one name, or an empty one")
    return renames


def parse_pattern(value: Any) -> str:
    """A regular expression with a group named ``label``."""
    try:
        pattern = re.compile(str(value))
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    if "label" not in pattern.groupindex:
        raise ValueError("needs a group named label, such as (?P<label>[a-z]+)")
    return pattern.pattern


@dataclass(frozen=True)
class InputSpec:
    """One --input: where, and the split of all that it holds when the user named one."""

    uri: str
    split: str | None = None


def parse_inputs(value: Any) -> tuple[InputSpec, ...]:
    """Places as they were given. ``split=place`` is told apart from a path with ``=`` where files can be looked at."""
    values = [value] if isinstance(value, str | InputSpec) or hasattr(value, "__fspath__") else list(value)
    return tuple(item if isinstance(item, InputSpec) else InputSpec(str(item)) for item in values)
