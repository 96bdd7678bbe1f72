"""What a conversion is told to do: frozen dataclasses that check themselves.

Every option is declared once, here, as a field made by :func:`option`: its default, how text becomes its value, what it
may be and its help. The command line, :func:`beam_tfrecord.convert` and the cluster template are generated from these
fields. Values may be given as text (as on the command line) or as Python values; a wrong one raises
:class:`~beam_tfrecord.errors.ConfigError` that names the flag.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from beam_tfrecord.errors import ConfigError, nearest

DEFAULT_SPLIT = "train"
SPLIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
BYTE_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}

Section = TypeVar("Section", bound="ConfigSection")


def option(
    default: Any,
    help: str,
    *,
    parse: Callable[[Any], Any] = str,
    choices: Sequence[str] = (),
    metavar: str = "",
    repeated: bool = False,
    decides_bytes: bool = True,
) -> Any:
    """A field that is also a flag.

    parse: turns text or a Python value into the field's value; raises ValueError with a short reason.
    decides_bytes: False for options that cannot change what is written (they stay out of the fingerprint).
    """
    return dataclasses.field(
        default=default,
        metadata={
            "help": help,
            "parse": parse,
            "choices": choices,
            "metavar": metavar,
            "repeated": repeated,
            "decides_bytes": decides_bytes,
        },
    )


@dataclass(frozen=True)
class ConfigSection:
    """Base of the config dataclasses: parses and checks each option when an instance is made."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if "parse" in field.metadata:
                object.__setattr__(self, field.name, _parsed(field, getattr(self, field.name)))
        self.check()

    def check(self) -> None:
        """Checks of several options together; raises ConfigError."""

    def to_json(self) -> dict[str, Any]:
        """The options as plain JSON values, in the order in which they are declared."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if "parse" in field.metadata
        }


def _parsed(field: dataclasses.Field[Any], value: Any) -> Any:
    if value is None or value is field.default:
        return value
    choices = field.metadata["choices"]
    try:
        parsed = field.metadata["parse"](value)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"--{field.name} {value!s}: {error}") from None
    if choices and parsed not in choices:
        raise ConfigError(f"--{field.name} {value}: must be one of {', '.join(choices)}{nearest(str(value), choices)}")
    return parsed


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, ConfigSection):
        return value.to_json()
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


# ---------------------------------------------------------------------------------------------------------------------
# From text to values. Each takes text or the Python value itself, and raises ValueError with a short reason.


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


def parse_colour(value: Any) -> tuple[int, int, int]:
    """``white``, ``black``, ``gray``, ``#rrggbb``, ``r,g,b`` or three numbers of 0 to 255."""
    if isinstance(value, str):
        text = value.strip().lower()
        if text in NAMED_COLOURS:
            return NAMED_COLOURS[text]
        if re.fullmatch(r"#[0-9a-f]{6}", text):
            return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)
        parts: Iterable[Any] = text.split(",")
    else:
        parts = value
    numbers = [parse_count(part) for part in parts]
    if len(numbers) != 3 or max(numbers) > 255:
        raise ValueError(f"must be {', '.join(NAMED_COLOURS)}, #rrggbb or three numbers of 0 to 255")
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
    "vertex",
    "openimages",
]

COLUMN_TYPES = ("int64", "float", "string", "bytes")


@dataclass(frozen=True, slots=True)
class Column:
    """A further column of the manifest that becomes a feature. A list holds any number of values."""

    name: str
    type: str
    is_list: bool = False


def parse_columns(value: Any) -> tuple[Column, ...]:
    """``age:int64,weight:float,tags:string[]``, a mapping name to type, or Columns."""
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        named = [part.rpartition(":")[::2] for part in parts]
    elif isinstance(value, Mapping):
        named = [(str(name), str(kind)) for name, kind in value.items()]
    else:
        named = [(c.name, c.type + "[]" * c.is_list) if isinstance(c, Column) else (c[0], c[1]) for c in value]
    columns = []
    for name, kind in named:
        base = kind.removesuffix("[]")
        if not name or base not in COLUMN_TYPES:
            raise ValueError(
                f"{name + ':' + kind if name else kind!r}: each column is name:type with a type of "
                f"{', '.join(COLUMN_TYPES)} (and [] behind it for a list){nearest(base, COLUMN_TYPES)}"
            )
        columns.append(Column(name, base, kind.endswith("[]")))
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


# ---------------------------------------------------------------------------------------------------------------------
# The sections.


@dataclass(frozen=True)
class InputSpec:
    """One --input: where, and the split of all that it holds when the user named one."""

    uri: str
    split: str | None = None


def parse_inputs(value: Any) -> tuple[InputSpec, ...]:
    """Places as they were given. ``split=place`` is told apart from a path with ``=`` where files can be looked at."""
    values = [value] if isinstance(value, str | InputSpec) or hasattr(value, "__fspath__") else list(value)
    return tuple(item if isinstance(item, InputSpec) else InputSpec(str(item)) for item in values)


@dataclass(frozen=True)
class ManifestConfig(ConfigSection):
    """What is read, and what its columns mean."""

    input: tuple[InputSpec, ...] = option(
        (),
        "a manifest, a folder, a glob or an archive; may be repeated; SPLIT=PLACE names the split of what it holds",
        parse=parse_inputs,
        metavar="[SPLIT=]PLACE",
        repeated=True,
        decides_bytes=False,
    )
    format: str = option(
        "auto",
        "format of the input; auto looks at its name and its first bytes",
        choices=FORMAT_NAMES,
    )
    images: str | None = option(
        None, "folder that relative image paths start from (default: the folder of the manifest)", metavar="ROOT"
    )
    label_pattern: str | None = option(
        None, "take the label from the path: its group named label", parse=parse_pattern, metavar="REGEX"
    )
    image_column: str | None = option(None, "column with the path or uri of the image", metavar="COLUMN")
    label_column: str | None = option(None, "column with the label", metavar="COLUMN")
    split_column: str | None = option(None, "column with the split", metavar="COLUMN")
    group_column: str | None = option(
        None, "column whose equal values never straddle splits, such as a patient", metavar="COLUMN"
    )
    id_column: str | None = option(None, "column with the id of the row (default: the image's path)", metavar="COLUMN")
    mask_column: str | None = option(None, "column with the path of a mask", metavar="COLUMN")
    sequence_column: str | None = option(
        None, "rows with one value of this column become one SequenceExample", metavar="COLUMN"
    )
    order_column: str | None = option(None, "column that orders the rows of a sequence", metavar="COLUMN")
    columns: tuple[Column, ...] = option(
        (),
        "further columns that become features, each NAME:int64, NAME:float or NAME:string ([] behind it for a list)",
        parse=parse_columns,
        metavar="NAME:TYPE,...",
    )
    label_separator: str | None = option(
        None, "text between the labels of one cell; without it a cell is one label", metavar="TEXT"
    )

    def check(self) -> None:
        if not self.input:
            raise ConfigError("--input is needed: a manifest, a folder, a glob or an archive")
        if self.order_column and not self.sequence_column:
            raise ConfigError("--order_column orders the rows of a sequence: it needs --sequence_column as well")
        if self.label_separator == "":
            raise ConfigError("--label_separator must not be empty")


@dataclass(frozen=True)
class LabelConfig(ConfigSection):
    """How labels become ids."""

    labels: str | tuple[str, ...] | None = option(
        None,
        "file with the label names in id order, one per line; other labels are rejects",
        parse=lambda value: value if isinstance(value, str) else tuple(str(name) for name in value),
        metavar="FILE",
    )
    label_offset: int | None = option(
        None, "id of the first label (default: 1 with --keys od, else 0)", parse=parse_count, metavar="N"
    )
    one_hot: bool = option(False, "also store the labels as a vector of zeros and ones", parse=parse_flag)
    keep_category_ids: bool = option(
        False, "use the ids of the categories in a COCO file as they are", parse=parse_flag
    )


@dataclass(frozen=True)
class SplitConfig(ConfigSection):
    """Which split an entry goes to, and its place there."""

    splits: tuple[tuple[str, float], ...] | None = option(
        None,
        "shares of the rows that have no split of their own, such as train=0.8,validation=0.2",
        parse=parse_ratios,
        metavar="NAME=SHARE,...",
    )
    stratify: bool = option(False, "keep the shares of --splits in each class", parse=parse_flag)
    seed: int = option(0, "decides split, shard and order of every id", parse=parse_count, metavar="N")

    def check(self) -> None:
        if self.stratify and not self.splits:
            raise ConfigError("--stratify keeps the shares of --splits: give --splits as well")


@dataclass(frozen=True)
class ShardConfig(ConfigSection):
    """How the records are cut into files."""

    num_shards: int | tuple[tuple[str, int], ...] | None = option(
        None,
        "number of shards of the whole dataset, or of each split: train=16,validation=2",
        parse=parse_shard_counts,
        metavar="N|SPLIT=N,...",
    )
    shard_size: int = option(
        128 * 2**20,
        "size of a shard that is aimed at when --num_shards is not given",
        parse=parse_bytes,
        metavar="SIZE",
    )
    compression: str = option("none", "compression of the shards", choices=("none", "gzip", "zlib"))


@dataclass(frozen=True)
class ImagePolicy(ConfigSection):
    """What becomes of an image. Bytes are kept unless one of these asks for a change or nothing else can store it."""

    image_format: str = option("keep", "how images are stored", choices=("keep", "jpeg", "png", "raw"))
    quality: int = option(95, "quality of images that are encoded as JPEG", parse=parse_quality, metavar="1-100")
    resize: int | tuple[int, int] | None = option(
        None, "resize to one side (256) or to WIDTHxHEIGHT", parse=parse_resize, metavar="N|WxH"
    )
    resize_mode: str = option(
        "auto",
        "what --resize fits: the shortest or longest side, exactly both, or both after a crop or padding; auto means "
        "shortest for one side and exact for WIDTHxHEIGHT",
        choices=("auto", "shortest", "longest", "exact", "crop", "pad"),
    )
    enlarge: bool = option(False, "let --resize make small images larger", parse=parse_flag)
    color: str = option("keep", "channels of the stored images", choices=("keep", "rgb", "gray"))
    background: tuple[int, int, int] = option(
        (255, 255, 255),
        "colour behind transparent pixels where transparency must go, and of padding",
        parse=parse_colour,
        metavar="COLOUR",
    )
    orientation: str = option(
        "upright", "turn pixels as the EXIF orientation says, or leave them", choices=("upright", "ignore")
    )
    animated: str = option(
        "first", "what becomes of images with several frames", choices=("first", "reject", "sequence")
    )
    max_pixels: int = option(
        150_000_000, "larger images are rejected by their header", parse=parse_positive, metavar="N"
    )
    validate: str = option(
        "full",
        "how much of an image is decoded before it is stored as it is; strict also rejects what the decoder complains of",
        choices=("full", "strict", "header"),
    )

    def check(self) -> None:
        if isinstance(self.resize, int) and self.resize_mode in ("exact", "crop", "pad"):
            object.__setattr__(self, "resize", (self.resize, self.resize))
        if self.resize_mode == "auto":
            object.__setattr__(self, "resize_mode", "exact" if isinstance(self.resize, tuple) else "shortest")


@dataclass(frozen=True)
class FeatureConfig(ConfigSection):
    """Under which keys a record holds what."""

    keys: str | None = option(
        None,
        "names of the features (default: od with boxes, masks or keypoints, else imagenet)",
        choices=("imagenet", "tfds", "od", "simple"),
    )
    rename: tuple[tuple[str, str], ...] = option(
        (), "other names for single features", parse=parse_renames, metavar="KEY=NAME,..."
    )
    bad_boxes: str = option(
        "drop",
        "what becomes of a box that cannot be right: left out, cut at the edge, or the image rejected",
        choices=("drop", "clip", "reject"),
    )
    box_frame: str = option(
        "auto",
        "whether annotations are given in the turned picture or in the raster of the file, for EXIF-turned images",
        choices=("auto", "upright", "stored"),
    )


@dataclass(frozen=True)
class OutputConfig(ConfigSection):
    """Where the dataset goes, and when it may be published."""

    output: str = option("", "folder of the dataset", parse=str, metavar="DIR", decides_bytes=False)
    duplicates: str = option("keep", "what becomes of rows with one id", choices=("keep", "drop", "fail"))
    max_rejects: int | float = option(
        0.1,
        "publish only with at most so many rejects: a number, or a percentage of the rows",
        parse=parse_limit,
        metavar="N|P%",
        decides_bytes=False,
    )
    writer: str = option(
        "planned",
        "planned: shards of equal size, the same on every runner; beam: Beam's own file sink",
        choices=("planned", "beam"),
        decides_bytes=False,
    )
    resume: bool = option(
        False, "reuse the finished shards of an interrupted run", parse=parse_flag, decides_bytes=False
    )
    overwrite: bool = option(False, "replace the dataset that is there", parse=parse_flag, decides_bytes=False)
    index: bool = option(False, "write an index file beside each shard", parse=parse_flag, decides_bytes=False)
    array_record: bool = option(
        False,
        "write the records of each shard to an ArrayRecord file as well, which tfds.data_source reads",
        parse=parse_flag,
        decides_bytes=False,
    )
    name: str | None = option(
        None,
        "name of the dataset in its metadata (default: from the output folder)",
        metavar="NAME",
        decides_bytes=False,
    )

    def check(self) -> None:
        if not self.output:
            raise ConfigError("--output is needed: the folder of the dataset")
        if self.resume and self.overwrite:
            raise ConfigError("--resume continues an interrupted run and --overwrite starts anew: give one of them")


@dataclass(frozen=True)
class RunConfig(ConfigSection):
    """How fast, never what: nothing here changes a byte of the result."""

    read_threads: int | None = option(
        None,
        "images that are read at a time in each worker process",
        parse=parse_positive,
        metavar="N",
        decides_bytes=False,
    )
    read_ahead: int = option(
        64 * 2**20,
        "bytes of images that a shard may hold in advance",
        parse=parse_bytes,
        metavar="SIZE",
        decides_bytes=False,
    )
    gcs_user_project: str | None = option(
        None,
        "project that pays for requests to Cloud Storage buckets that are set to requester pays",
        metavar="PROJECT",
        decides_bytes=False,
    )


SECTIONS: Mapping[str, type[ConfigSection]] = {
    "manifest": ManifestConfig,
    "labels": LabelConfig,
    "splits": SplitConfig,
    "shards": ShardConfig,
    "images": ImagePolicy,
    "features": FeatureConfig,
    "output": OutputConfig,
    "run": RunConfig,
}


@dataclass(frozen=True)
class ConvertConfig:
    """Everything that a conversion is told."""

    manifest: ManifestConfig
    output: OutputConfig
    labels: LabelConfig = dataclasses.field(default_factory=LabelConfig)
    splits: SplitConfig = dataclasses.field(default_factory=SplitConfig)
    shards: ShardConfig = dataclasses.field(default_factory=ShardConfig)
    images: ImagePolicy = dataclasses.field(default_factory=ImagePolicy)
    features: FeatureConfig = dataclasses.field(default_factory=FeatureConfig)
    run: RunConfig = dataclasses.field(default_factory=RunConfig)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ConvertConfig:
        """The config for flat options (flag names without dashes). Absent or None means the default."""
        known = {field.name: section for section, field in option_fields()}
        for name in options:
            if name not in known:
                raise ConfigError(f"there is no option {name!r}{nearest(name, known)}")
        sections = {}
        for section, kind in SECTIONS.items():
            given = {n: v for n, v in options.items() if known[n] == section and v is not None}
            sections[section] = kind(**given)
        return cls(**sections)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        """Flat options as JSON values, for conversion.json."""
        return {name: value for section in SECTIONS for name, value in getattr(self, section).to_json().items()}

    def fingerprint(self) -> str:
        """Hash of all options that decide what a record holds."""
        deciding = {field.name for _, field in option_fields() if field.metadata["decides_bytes"]}
        options = {name: value for name, value in self.to_json().items() if name in deciding}
        return hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()


def option_fields() -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """(section, field) of every option, in the order of declaration."""
    for section, kind in SECTIONS.items():
        for field in dataclasses.fields(kind):
            if "parse" in field.metadata:
                yield section, field
