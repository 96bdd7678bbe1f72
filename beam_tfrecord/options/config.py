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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.errors import ConfigError, nearest
from beam_tfrecord.options.choosing import ChoosingConfig
from beam_tfrecord.options.declaring import ConfigSection, option
from beam_tfrecord.options.places import parse_place, parse_target
from beam_tfrecord.options.plugins import load_plugins, parse_modules
from beam_tfrecord.options.run_config import RunConfig
from beam_tfrecord.options.values import (
    AUTO_ENCODING,
    FORMAT_NAMES,
    Column,
    InputSpec,
    parse_bytes,
    parse_colour,
    parse_columns,
    parse_count,
    parse_encoding,
    parse_flag,
    parse_ids,
    parse_inputs,
    parse_limit,
    parse_pattern,
    parse_positive,
    parse_quality,
    parse_ratios,
    parse_renames,
    parse_resize,
    parse_shard_counts,
    parse_shard_records,
)

DEFAULT_SPLIT = "train"


def _parse_labels(value: Any) -> str | tuple[str, ...]:
    """The file of the names, or the names themselves."""
    is_place = isinstance(value, str) or hasattr(value, "__fspath__")
    return parse_place(value) if is_place else tuple(str(name) for name in value)


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
    plugins: tuple[str, ...] = option(
        (),
        "modules that add formats or kinds of annotation; the workers must be able to import them as well",
        parse=parse_modules,
        metavar="MODULE,...",
    )
    format: str = option(
        "auto",
        "format of the input; auto looks at its name and its first bytes",
        choices=FORMAT_NAMES,
    )
    encoding: str = option(
        AUTO_ENCODING,
        "encoding of manifests, label files and lists of names that have no byte order mark; auto: UTF-8, or UTF-16 "
        "when the bytes tell it",
        parse=parse_encoding,
        metavar="NAME",
    )
    images: str | None = option(
        None,
        "folder that relative image paths start from (default: the folder of the manifest)",
        parse=parse_place,
        metavar="ROOT",
    )
    label_pattern: str | None = option(
        None, "take the label from the path: its group named label", parse=parse_pattern, metavar="REGEX"
    )
    image_column: str | None = option(
        None, "column with the path or uri of the image (default: the one with a usual name)", metavar="COLUMN"
    )
    label_column: str | None = option(
        None, "column with the label (default: the one with a usual name)", metavar="COLUMN"
    )
    image_key: str | None = option(
        None, "feature of TFRecords that holds the image (default: by its name and what it holds)", metavar="KEY"
    )
    label_key: str | None = option(
        None, "feature of TFRecords that holds the label (default: the one with a usual name)", metavar="KEY"
    )
    split_column: str | None = option(
        None, "column with the split (default: the one with a usual name)", metavar="COLUMN"
    )
    group_column: str | None = option(
        None, "column whose equal values --splits keeps together, such as a patient", metavar="COLUMN"
    )
    id_column: str | None = option(None, "column with the id of the row (default: the image's path)", metavar="COLUMN")
    mask_column: str | None = option(None, "column with the path of a mask", metavar="COLUMN")
    sequence_column: str | None = option(
        None, "rows with one value of this column become one SequenceExample", metavar="COLUMN"
    )
    order_column: str | None = option(None, "column that orders the rows of a sequence", metavar="COLUMN")
    columns: tuple[Column, ...] = option(
        (),
        "further columns that become features, each NAME:int64, NAME:float or NAME:string ([] behind it for a "
        "list, =VALUE for what an empty cell stands for)",
        parse=parse_columns,
        metavar="NAME:TYPE,...",
    )
    box_format: str = option(
        "auto",
        "what the four numbers of a box in a table are: corners, upper left corner and size, or centre and size; auto: "
        "what the names of the columns say, or all boxes together; none: columns of boxes are passed over",
        choices=("auto", "xyxy", "xywh", "cxcywh", "none"),
    )
    box_units: str = option(
        "auto",
        "whether the boxes of a table, list or YOLO file are in pixels or in fractions of the picture",
        choices=("auto", "pixels", "fractions"),
    )
    yolo_lines: str = option(
        "auto",
        "what lines of 7, 9, 11 ... values in YOLO label files are: outlines, or boxes with something behind them that "
        "is passed over; auto: outlines, when nothing else fits them",
        choices=("auto", "outline", "box"),
    )
    annotator: str = option(
        "auto",
        "whose annotation of a picture counts where several people annotated it (Label Studio): the id or address of "
        "one, first, latest, or all; auto: the one that is marked as ground truth, else the latest",
        metavar="NAME",
    )
    label_separator: str | None = option(
        None, "text between the labels of one cell; without it a cell is one label", metavar="TEXT"
    )
    strict: bool = option(
        False,
        "refuse an input that something is surprising about (labels that are not read, images that nobody names ...), "
        "before anything is written",
        parse=parse_flag,
        decides_bytes=False,
    )
    asked_columns: tuple[str, ...] = ()  # no option: the columns that --where looks at

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Where the config of a conversion arrives in another process, the plugins are imported there."""
        self.__dict__.update(state)
        load_plugins(self.plugins)

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
        "file with the label names in id order, one per line, or with ids (.pbtxt, .json, .csv, .yaml); other labels "
        "are rejects (default: those of a COCO or YOLO file, else all labels, sorted)",
        parse=_parse_labels,
        metavar="FILE",
    )
    label_offset: int | None = option(
        None, "id of the first label (default: 1 with --keys od, else 0)", parse=parse_count, metavar="N"
    )
    label_ids: tuple[int, ...] | None = option(
        None,
        "id of each label of --labels, where they are not numbered one after another",
        parse=parse_ids,
        metavar="N,...",
    )
    one_hot: bool = option(False, "also store the labels as a vector of zeros and ones", parse=parse_flag)
    keep_category_ids: bool = option(
        False, "use the ids of the categories in a COCO file as they are", parse=parse_flag
    )

    def check(self) -> None:
        if self.label_ids is not None and (self.labels is None or self.label_offset is not None):
            raise ConfigError("--label_ids numbers the names of --labels: it needs --labels, and no --label_offset")


@dataclass(frozen=True)
class SplitConfig(ConfigSection):
    """Which split an entry goes to, and its place there."""

    splits: tuple[tuple[str, float], ...] | None = option(
        None,
        "shares of the rows that have no split of their own, as in train=0.8,validation=0.2 (default: all to train)",
        parse=parse_ratios,
        metavar="NAME=SHARE,...",
    )
    stratify: bool = option(False, "keep the shares of --splits and of --limit in each class", parse=parse_flag)
    seed: int = option(0, "decides split, shard and order of every id", parse=parse_count, metavar="N")


@dataclass(frozen=True)
class ShardConfig(ConfigSection):
    """How the records are cut into files."""

    num_shards: int | tuple[tuple[str, int], ...] | None = option(
        None,
        "number of shards of the whole dataset, or of each split: train=16,validation=2 (default: by --shard_size)",
        parse=parse_shard_counts,
        metavar="N|SPLIT=N,...",
    )
    shard_size: int = option(
        128 * 2**20,
        "size of a shard that is aimed at when --num_shards is not given",
        parse=parse_bytes,
        metavar="SIZE",
    )
    shard_records: tuple[tuple[str, tuple[int, ...]], ...] | None = option(
        None,
        "number of records of each shard, for splits whose shards are not to be equal: train=70+69",
        parse=parse_shard_records,
        metavar="SPLIT=N+N,...",
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
        "how much of an image is decoded before it is stored as it is; strict also rejects what decoders complain of",
        choices=("full", "strict", "header"),
    )

    def check(self) -> None:
        if isinstance(self.resize, int) and self.resize_mode in ("exact", "crop", "pad"):
            object.__setattr__(self, "resize", (self.resize, self.resize))
        if self.resize_mode == "auto":
            object.__setattr__(self, "resize_mode", "exact" if isinstance(self.resize, tuple) else "shortest")


@dataclass(frozen=True)
class InsightConfig(ConfigSection):
    """What is told of the content of the pictures. Nothing here changes what is stored."""

    insight: str = option(
        "on",
        "look for near-duplicates, ruined pictures and doubtful boxes while pictures are checked; exact also takes the "
        "statistics of the channels from every picture, which decodes all of them in full",
        choices=("on", "off", "exact"),
        decides_bytes=False,
    )


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
        "visible",
        "what becomes of a box that reaches over the edge of the image: its visible part is kept when the centre and a "
        "third of it lie inside, else it is left out; always left out; always cut; the image rejected. A box that "
        "cannot be right is left out, or with reject the image rejected",
        choices=("visible", "drop", "clip", "reject"),
    )
    box_frame: str = option(
        "auto",
        "whether annotations are given in the turned picture or in the raster of the file, for EXIF-turned images",
        choices=("auto", "upright", "stored"),
    )
    mask_bits: str = option(
        "auto",
        "bits of masks of the whole image; auto looks at some of the mask files: 16 when one of them is so deep",
        choices=("auto", "8", "16"),
    )


@dataclass(frozen=True)
class OutputConfig(ConfigSection):
    """Where the dataset goes, and when it may be published."""

    output: str = option("", "folder of the dataset", parse=parse_target, metavar="DIR", decides_bytes=False)
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
        if self.writer == "beam" and self.output.lower().startswith("az://"):
            raise ConfigError("--writer beam knows Azure Storage as azfs:// only: write it so, or use --writer planned")


SECTIONS: Mapping[str, type[ConfigSection]] = {
    "manifest": ManifestConfig,
    "choosing": ChoosingConfig,
    "labels": LabelConfig,
    "splits": SplitConfig,
    "shards": ShardConfig,
    "images": ImagePolicy,
    "insight": InsightConfig,
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
    insight: InsightConfig = dataclasses.field(default_factory=InsightConfig)
    features: FeatureConfig = dataclasses.field(default_factory=FeatureConfig)
    run: RunConfig = dataclasses.field(default_factory=RunConfig)
    choosing: ChoosingConfig = dataclasses.field(default_factory=ChoosingConfig)

    def __post_init__(self) -> None:
        if self.splits.stratify and not self.splits.splits and self.choosing.limit is None:
            raise ConfigError("--stratify keeps the shares of --splits, or of --limit: give one of them as well")
        if self.choosing.near_duplicates == "group" and self.splits.stratify and self.splits.splits:
            raise ConfigError(
                "--stratify places each class by itself and --near_duplicates group keeps pictures of several classes "
                "together: give one of them, or --near_duplicates drop"
            )
        if self.choosing.near_duplicates != "keep" and self.images.validate == "header":
            raise ConfigError(
                f"--near_duplicates {self.choosing.near_duplicates} compares pixels, which --validate header does not "
                "decode: leave one of them out"
            )
        if self.output.writer == "beam" and (self.run.processes or 1) > 1:
            raise ConfigError(
                f"--processes {self.run.processes} is for shards that are planned: leave it or --writer beam out"
            )
        asked = self.choosing.asked_columns
        if self.manifest.asked_columns != asked:
            object.__setattr__(self, "manifest", dataclasses.replace(self.manifest, asked_columns=asked))
        if self.splits.stratify and self.manifest.group_column:
            raise ConfigError(
                "--stratify places each class by itself and --group_column keeps rows of several classes together: "
                "give one of them"
            )

    @classmethod
    def from_options(cls, options: Mapping[str, Any], beside: Sequence[str] = ()) -> ConvertConfig:
        """The config for flat options (flag names without dashes). Absent or None means the default.

        beside: further names that the caller takes, for the nearest one to a name that there is not.
        """
        known = {field.name: section for section, field in option_fields()}
        for name in options:
            if name not in known:
                raise ConfigError(f"there is no option {name!r}{nearest(name, [*known, *beside])}")
        with suppress(ValueError):  # a value that is wrong is told below
            load_plugins(parse_modules(options.get("plugins") or ()))
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
