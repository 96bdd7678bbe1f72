"""Random collections of images and labels, by the ten thousand, and what belongs to what in them.

Each is written by a small writer that notes for every picture its label, boxes, split and mask as it writes them: that
is the oracle, and it asks nothing of the code under test. A collection is planned as ``--plan`` does it. What was found
is what was used and named, each row is the picture that was written, with nothing of another one, and what was written
is used, named, or the collection is refused.

``python -m tests.fuzz_collections --count 10000 --seed 0`` runs it at length (``make fuzz``); the suite runs a sample.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.fuzzing import Found, fuzz
from tests.label_files import (
    Picture,
    as_csv,
    as_jsonl,
    as_tar,
    as_zip,
    coco,
    data_yaml,
    names_txt,
    objects,
    picture,
    voc_xml,
    yolo_txt,
)
from tests.layouts import Seen, seen

ODD_STEMS = (
    *(
        "a b",
        "x  y",
        "caf\u00e9",
        "cafe\u0301",
        "O'Neil",
        'q"t',
        "#1",
        "50%",
        "100%25",
        "what?",
        "a=b",
        "[1]",
        "a*b",
        "{x}",
    ),
    *(
        "a,b",
        "a;b",
        "\u732b",
        "\U0001f98a",
        "-x",
        "+1",
        "~x",
        "a&b",
        "a.b.c",
        "x.jpg",
        "No",
        "007",
        "1.10",
        "a:b",
        "a@b",
    ),
    *(
        "long" * 40,
        "\u5f35" * 50,
        "a|b",
        "a+b",
        "<x>",
        "a$b",
        "a!b",
        "a^b",
        "%20",
        "a%2Fb",
        "IMG_0001",
        "e\u0301\u0302",
    ),
)
ODD_CLASSES = (
    *(
        "fox",
        "hen",
        "owl",
        "red fox",
        "no",
        "007",
        "1.10",
        "caf\u00e9",
        "O'Neil",
        'q"t',
        "#1",
        "50%",
        "a=b",
        "\u732b",
        "x-y",
    ),
    *("Fox", "images of foxes", "null", "a,b", "[1]", "a b  c", "3", "true", "A&B", "~", "12:30"),
)
LISTED_STEMS = (
    " a",
    "a\\b",
    "\u00a0x",
    "\tx",
    " ",
    "x\ny",
    "\\",
    "  two",
)  # names that only a listing spells as they are
LISTED_CLASSES = (" fox", "fox ", "a\\b", "\u00a0x", "a\tb")
ENDINGS = (".jpg", ".jpg", ".jpg", ".JPG", ".jpeg", ".png", ".PNG", ".JPEG")
JUNK = (
    ".DS_Store",
    "Thumbs.db",
    "__MACOSX/._x.jpg",
    "._y.jpg",
    ".git/config",
    ".ipynb_checkpoints/z.jpg",
    "desktop.ini",
)
TEXTS = ("README.md", "LICENSE", "paper.pdf", "report.html", "notes.docx", "requirements.txt", "weights.npy")
SPLITS = (
    ("train", "val"),
    ("train", "test"),
    ("train", "valid", "test"),
    ("Train", "Validation"),
    ("training", "testing"),
)


@dataclass
class Collection:
    """What was written. files: by path below the folder. pictures: the truth, by path. missing: paths that label files
    name and that are not there. unlabelled: pictures that nothing names. certain: nothing in it is doubtful, so that it
    must be read, and just so. members: the files, where an archive holds them.
    """

    told: str
    files: dict[str, bytes] = field(default_factory=dict)
    pictures: dict[str, Picture] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    unlabelled: set[str] = field(default_factory=set)
    certain: bool = True
    inputs: tuple[str, ...] = ("",)
    members: frozenset[str] = frozenset()


class Writer:
    """Makes names that are not taken yet, and pictures of numbers that are not either."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.number = 0
        self.names = rng.sample(ODD_CLASSES, rng.randint(1, 4))
        self.oddness = rng.choice((0.0, 0.3, 1.0))
        self.listed = False  # names come from a listing alone

    def stem(self) -> str:
        """A name of a picture without its ending, unlike all others whatever the case and form of its letters."""
        self.number += 1
        stems = ODD_STEMS + LISTED_STEMS * self.listed
        odd = self.rng.choice(stems) if self.rng.random() < self.oddness else "p"
        return f"{odd}{self.number}" if self.rng.random() < 0.7 or odd[-1:] in "+" else f"{self.number}{odd}"

    def image(self, made: Collection, folder: str, stem: str | None = None) -> tuple[str, int]:
        """A picture is written; its path and number."""
        stem = stem or self.stem()
        number = self.rng.randint(1, 590)
        ending = self.rng.choice(ENDINGS)
        path = f"{folder}/{stem}{ending}" if folder else f"{stem}{ending}"
        made.files[path] = picture(number % 40, "PNG" if ending.lower() == ".png" else "JPEG")
        return path, number

    def classes(self) -> list[str]:
        """The classes of the objects of a picture."""
        return [self.rng.choice(self.names) for _ in range(self.rng.randint(0, 3))]

    def count(self) -> int:
        return self.rng.randint(1, 4)

    def splits(self) -> tuple[str, ...]:
        """Names of split folders; one without a name where there are none."""
        return self.rng.choice(SPLITS) if self.rng.random() < 0.6 else ("",)


def split_of(name: str) -> str:
    return name.lower() or "train"


def joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def stem_of(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0]


# ---------------------------------------------------------------------------------------------------------------------
# Layouts


def class_folders(write: Writer) -> Collection:
    made = Collection("class folders")
    write.listed = True
    names = write.names if len(write.names) > 1 else [*write.names, "zebra"]
    if write.rng.random() < 0.3:
        names = [*names, write.rng.choice(LISTED_CLASSES)]
    for split in write.splits():
        for name in names:
            for _ in range(write.count()):
                path, _ = write.image(made, joined(split, name))
                made.pictures[path] = Picture(name, None, split_of(split))
    return made


def plain_images(write: Writer) -> Collection:
    made = Collection("images alone")
    write.listed = True
    inner = write.rng.choice(("", "images"))
    for split in write.splits():
        for _ in range(write.count()):
            path, _ = write.image(made, joined(split, inner))
            made.pictures[path] = Picture("", None, split_of(split))
    return made


def _places(write: Writer, labels: str) -> Callable[[str], tuple[str, str]]:
    """Where images and label files of a split lie: (folder of images, folder of labels)."""
    way = write.rng.choice(("beside", "inside", "above"))
    if way == "beside":
        return lambda split: (split, split)
    if way == "inside":
        return lambda split: (joined(split, "images"), joined(split, labels))
    return lambda split: (joined("images", split), joined(labels, split))


def voc(write: Writer) -> Collection:
    made = Collection("VOC")
    places = _places(write, write.rng.choice(("annotations", "Annotations", "xml", "labels")))
    used = 0
    for split in write.splits():
        images, labels = places(split)
        for _ in range(write.count()):
            path, number = write.image(made, images)
            if write.rng.random() < 0.15:
                made.unlabelled.add(path)
                made.pictures[path] = Picture("", None, split_of(split))
                continue
            used += 1
            classes = write.classes()
            stated = path.rpartition("/")[2] if write.rng.random() < 0.8 else "other.jpg"
            made.files[joined(labels, f"{stem_of(path)}.xml")] = voc_xml(stated, number, *classes)
            made.pictures[path] = Picture("", objects(number, *classes), split_of(split))
        if write.rng.random() < 0.2:
            stem = write.stem()
            made.files[joined(labels, f"{stem}.xml")] = voc_xml(f"{stem}.jpg", 1, "fox")
            made.missing.add(f"{stem}.jpg")
    made.certain = used > 0
    return made


def yolo(write: Writer) -> Collection:
    made = Collection("YOLO")
    write.listed = True
    places = _places(write, "labels")
    way = write.rng.choice(("classes.txt", "data.yaml"))
    splits = write.splits()
    used = 0
    if way == "data.yaml" and splits != ("",):
        keys = [("train", "val", "test")[min(place, 2)] for place in range(len(splits))]
        parts = {key: places(split)[0] or "." for key, split in zip(keys, splits, strict=True)}
        names = dict(zip(splits, keys, strict=True))
    else:
        parts, names = {"train": places("")[0] or "."}, dict.fromkeys(splits, "")
        if splits != ("",):
            way = "classes.txt"
    for split in splits:
        images, labels = places(split)
        if way == "data.yaml" and images.endswith("images") is False and "images" not in images.split("/"):
            labels = images  # YOLO's rule
        for _ in range(write.count()):
            path, number = write.image(made, images)
            told = names[split] or split_of(split)
            if write.rng.random() < 0.15:
                made.pictures[path] = Picture("", (), told)
                continue
            classes = write.classes()
            used += bool(classes)
            made.files[joined(labels, f"{stem_of(path)}.txt")] = yolo_txt(number, write.names, *classes)
            made.pictures[path] = Picture("", objects(number, *classes), told)
        if write.rng.random() < 0.2:
            made.files[joined(labels, f"{write.stem()}.txt")] = yolo_txt(1, ["fox"], "fox")
    made.files[way] = names_txt(write.names) if way == "classes.txt" else data_yaml(write.names, **parts)
    made.certain = used > 0
    return made


def coco_files(write: Writer) -> Collection:
    made = Collection("COCO")
    splits = write.splits()
    name = write.rng.choice(("_annotations.coco.json", "annotations.json", "instances.json"))
    inner = "images" if splits == ("",) and write.rng.random() < 0.4 else ""
    spelled_below = bool(inner) and write.rng.random() < 0.5
    for split in splits:
        numbers: dict[str, tuple[int, Sequence[str]]] = {}
        for _ in range(write.count()):
            path, number = write.image(made, joined(split, inner))
            if numbers and write.rng.random() < 0.1:
                made.unlabelled.add(path)
                made.pictures[path] = Picture("", None, split_of(split))
                continue
            classes = write.classes()
            short = path.rpartition("/")[2]
            numbers[joined(inner, short) if spelled_below else short] = (number, classes)
            made.pictures[path] = Picture("", objects(number, *classes), split_of(split))
        made.files[joined(split, name)] = coco(numbers, write.names)
    return made


def tables(write: Writer) -> Collection:
    made = Collection("tables")
    splits = write.splits()
    kind = write.rng.choice(("metadata.csv", "metadata.jsonl", "labels.csv"))
    inner = "images" if splits == ("",) and write.rng.random() < 0.4 else ""
    for split in splits:
        rows = []
        for _ in range(write.count()):
            path, _ = write.image(made, joined(split, inner))
            if rows and write.rng.random() < 0.1:
                made.unlabelled.add(path)
                made.pictures[path] = Picture("", None, split_of(split))
                continue
            label = write.rng.choice(write.names)
            rows.append((joined(inner, path.rpartition("/")[2]), label))
            made.pictures[path] = Picture(label, None, split_of(split))
        if kind.endswith(".csv"):
            made.files[joined(split, kind)] = as_csv([("file_name", "label"), *rows])
        else:
            made.files[joined(split, kind)] = as_jsonl([{"file_name": name, "label": label} for name, label in rows])
    return made


def masks(write: Writer) -> Collection:
    made = Collection("masks")
    write.listed = True
    name = write.rng.choice(("masks", "Masks", "mask", "segmentation"))
    for split in write.splits():
        for place in range(write.count()):
            path, number = write.image(made, joined(split, "images"))
            mask = ""
            if place == 0 or write.rng.random() < 0.8:
                mask = joined(split, name, f"{stem_of(path)}.png")
                made.files[mask] = picture(number % 40 + 50, "PNG")
            made.pictures[path] = Picture("", None, split_of(split), mask)
    return made


def devkit(write: Writer) -> Collection:
    """VOC with lists of splits: a picture that no list names is of the split that has no name."""
    made = Collection("VOCdevkit")
    root = write.rng.choice(("", "VOC2012"))
    lists: dict[str, list[str]] = {"train": [], "val": []}
    for _ in range(write.count() + 1):
        path, number = write.image(made, joined(root, "JPEGImages"))
        classes = write.classes()
        made.files[joined(root, "Annotations", f"{stem_of(path)}.xml")] = voc_xml(
            path.rpartition("/")[2], number, *classes
        )
        split = write.rng.choice(("train", "val", ""))
        made.pictures[path] = Picture("", objects(number, *classes), split_of(split))
        if split:
            lists[split].append(stem_of(path))
    for split, stems in lists.items():
        made.files[joined(root, "ImageSets/Main", f"{split}.txt")] = names_txt(stems)
    # A line of a list may end in a flag or an ending.
    stems = [stem for own in lists.values() for stem in own]
    made.certain = all(stem == stem.strip() and not stem.endswith((".jpg", " 1", " 0")) for stem in stems)
    return made


def cvat_yolo(write: Writer) -> Collection:
    """CVAT's YOLO 1.1: lists of images with a folder in front that is not there."""
    made = Collection("CVAT YOLO 1.1")
    lines = []
    for _ in range(write.count()):
        path, number = write.image(made, "obj_train_data")
        classes = write.classes()
        made.files[f"obj_train_data/{stem_of(path)}.txt"] = yolo_txt(number, write.names, *classes)
        made.pictures[path] = Picture("", objects(number, *classes))
        lines.append(f"data/{path}")
    made.files["obj.names"] = names_txt(write.names)
    stated = f"classes = {len(write.names)}\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n"
    made.files["obj.data"] = stated.encode()
    made.files["train.txt"] = names_txt(lines)
    return made


def coco_published(write: Writer) -> Collection:
    made = Collection("COCO as it is published")
    for split in ("train", "val"):
        numbers: dict[str, tuple[int, Sequence[str]]] = {}
        for _ in range(write.count()):
            path, number = write.image(made, f"{split}2017")
            classes = write.classes()
            numbers[path.rpartition("/")[2]] = (number, classes)
            made.pictures[path] = Picture("", objects(number, *classes), split)
        made.files[f"annotations/instances_{split}2017.json"] = coco(numbers, write.names)
    return made


def several_inputs(write: Writer) -> Collection:
    """A table for each split, and one folder of images."""
    made = Collection("several inputs")
    for split in ("train", "test"):
        rows = []
        for _ in range(write.count()):
            path, _ = write.image(made, "images")
            rows.append((path, write.rng.choice(write.names)))
            made.pictures[path] = Picture(rows[-1][1], None, split)
        made.files[f"{split}.csv"] = as_csv([("image", "label"), *rows])
    made.inputs = ("train=train.csv", "test=test.csv")
    return made


LAYOUTS = (class_folders, plain_images, voc, yolo, coco_files, tables, masks, devkit, cvat_yolo, coco_published)
WHOLE = (several_inputs,)  # that nothing can be mixed with


# ---------------------------------------------------------------------------------------------------------------------
# What else lies there


def add_junk(write: Writer, made: Collection) -> None:
    for name in write.rng.sample(JUNK, write.rng.randint(1, 3)):
        made.files.setdefault(name, b"junk")


def add_texts(write: Writer, made: Collection) -> None:
    for name in write.rng.sample(TEXTS, write.rng.randint(1, 3)):
        made.files.setdefault(name, b"some text")


def wrap(write: Writer, made: Collection) -> None:
    """Everything in one more folder."""
    above = write.rng.choice(("my data", "caf\u00e9", "dataset #1", "v1.0", "x=y"))

    def place(path: str) -> str:
        return f"{above}/{path}"

    made.files = {place(path): data for path, data in made.files.items()}
    made.pictures = {
        place(path): replace(told, mask=place(told.mask) if told.mask else "") for path, told in made.pictures.items()
    }
    made.unlabelled = set(map(place, made.unlabelled))
    made.told += ", in a folder"
    if not made.told.startswith(("class folders", "masks")):  # one folder of images may be a class
        made.certain = False


def add_strange_table(write: Writer, made: Collection) -> None:
    """A table that is no manifest of the images."""
    name = write.rng.choice(("stats.csv", "extra/more.csv", "extra/deep/list.csv"))
    rows = (
        [("image", "label"), ("elsewhere.jpg", "wrong")] if write.rng.random() < 0.5 else [("mean", "std"), ("1", "2")]
    )
    made.files.setdefault(name, as_csv(rows))
    made.told += ", a table of other things"


def add_nested_manifest(write: Writer, made: Collection) -> None:
    """A table of some of the images with other labels: two truths, of which either may be read, or none."""
    # A table may have blanks around a path, and backslashes between folders.
    spelled = [path for path in sorted(made.pictures) if "\\" not in path and path == path.strip()]
    chosen = write.rng.sample(spelled, min(2, len(spelled)))
    made.files.setdefault("more.csv", as_csv([("image", "label"), *((path, "other") for path in chosen)]))
    made.certain = False
    made.told += ", a second table"


def add_captions(write: Writer, made: Collection) -> None:
    for path in write.rng.sample(sorted(made.pictures), min(2, len(made.pictures))):
        made.files.setdefault(f"{path.rpartition('.')[0]}.txt", b"a fox, in the snow")
    made.certain = False
    made.told += ", captions"


def mix(write: Writer, made: Collection) -> None:
    """Another layout in the same folder."""
    write.listed = False
    other = write.rng.choice(LAYOUTS)(write)
    made.told += f" and {other.told}"
    for path, data in other.files.items():
        made.files.setdefault(path, data)
    for path, told in other.pictures.items():
        made.pictures.setdefault(path, told)
    made.missing |= other.missing
    made.unlabelled |= other.unlabelled
    made.certain = False


ADDITIONS = ((add_junk, 0.4), (add_texts, 0.4), (add_strange_table, 0.1), (add_nested_manifest, 0.08),
             (add_captions, 0.08), (mix, 0.12), (wrap, 0.15))  # fmt: skip


def pack(write: Writer, made: Collection) -> Collection:
    """The whole as an archive, which is the input."""
    name = write.rng.choice(("all.zip", "all.tar.gz", "my data.zip", "x.tar"))
    # Names with a drive or a backslash lead elsewhere when an archive is unpacked on Windows.
    made.certain = made.certain and not any(re.match("[A-Za-z]:", path) or "\\" in path for path in made.files)
    data = as_zip(made.files) if name.endswith(".zip") else as_tar(made.files, "w:gz" if name.endswith("gz") else "w")
    pictures = {
        f"{name}!/{path}": replace(told, mask=f"{name}!/{told.mask}" if told.mask else "")
        for path, told in made.pictures.items()
    }
    unlabelled = {f"{name}!/{path}" for path in made.unlabelled}
    return replace(
        made,
        told=f"{made.told}, in {name}",
        files={name: data},
        pictures=pictures,
        unlabelled=unlabelled,
        inputs=(name,),
        members=frozenset(f"{name}!/{path}" for path in made.files),
    )


def collection(index: int, seed: int) -> Collection:
    """One collection; the same for the same numbers."""
    rng = random.Random(seed * 1_000_003 + index)
    write = Writer(rng)
    made = rng.choice((*LAYOUTS, *WHOLE))(write)
    is_whole = made.inputs != ("",)
    for add, chance in ADDITIONS:
        if rng.random() < chance and (add in (add_junk, add_texts, add_strange_table) or not is_whole):
            add(write, made)
    if is_whole:
        return made
    return pack(write, made) if rng.random() < 0.15 else made


# ---------------------------------------------------------------------------------------------------------------------
# What must hold


def placed(place: str, folder: Path) -> str:
    """An input, below a folder; its split stays in front."""
    split, mark, path = place.rpartition("=") if place.endswith(".csv") else ("", "", place)
    return f"{split}{mark}{folder / path}"


def fault_of(made: Collection, folder: Path) -> tuple[str, str]:
    """(how planning ended, what is wrong or '')."""
    for path, data in made.files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    try:
        told = seen([placed(place, folder) for place in made.inputs])
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "exception", f"{type(error).__name__} at {where.filename}:{where.lineno}: {str(error)[:300]}"
    if told.error:
        if made.certain:
            return "refused", f"refused: {told.error}"
        return "refused", "" if str(folder) in told.error else f"the error names no place: {told.error}"
    return "read", next(iter(_faults(made, folder, told)), "")


def _faults(made: Collection, folder: Path, told: Seen) -> Iterator[str]:
    start = f"{folder}/"
    rows = {uri.removeprefix(start): _below(one, start) for uri, one in told.pictures.items()}
    for account in told.inputs:
        for kind in {*account["found"], *account["used"], *account["named"]}:
            count = sum(account["used"].get(kind, {}).values())
            count += sum(named["count"] for named in account["named"].get(kind, {}).values())
            if account["found"].get(kind, 0) != count:
                yield f"the account of {kind} does not hold: {account}"
        if made.inputs == ("",) and account["found"].get("files") != len(made.files):
            yield f"{len(made.files)} files lie there, {account['found'].get('files')} were found: {account}"
    if told.repeated:
        yield f"pictures come twice: {told.repeated}"
    for path, one in rows.items():
        if path not in made.pictures:
            is_there = path in made.files or path in made.members
            if not any(path.endswith(name) for name in made.missing) and not is_there:
                yield f"{path} is no file of the collection"
            elif is_there and made.certain:
                yield f"{path} became a row"
            continue
        yield from _wrong(path, one, made, told)
    if made.certain:
        lost = set(made.pictures) - set(rows) - made.unlabelled
        if lost:
            yield f"pictures are no rows: {sorted(lost)}; rejects {told.rejects}"
        if [code for _, code in told.rejects if code != "missing_file" or not made.missing]:
            yield f"rejects: {told.rejects}"
        if made.unlabelled - set(rows) and "images_not_named" not in told.warnings:
            yield f"nobody is told of {sorted(made.unlabelled - set(rows))}"
    elif set(made.pictures) - set(rows) and not told.warnings and not told.rejects:
        yield f"pictures are no rows, and nobody is told: {sorted(set(made.pictures) - set(rows))}"


def _below(one: Picture, start: str) -> Picture:
    return replace(one, mask=one.mask.removeprefix(start))


def _wrong(path: str, one: Picture, made: Collection, told: Seen) -> Iterator[str]:
    """A row that says of a picture what nothing says of it."""
    truth = made.pictures[path]
    if made.certain:
        if one != truth and not (
            path in made.unlabelled and one == replace(truth, objects=one.objects) and not one.objects
        ):
            yield f"{path} is {one}, should be {truth}"
        return
    if one.split not in (truth.split, "train", "val", "test", *path.lower().split("/")):
        yield f"{path} has the split {one.split}, not {truth.split}"
    if one.objects and one.objects != truth.objects:
        yield f"{path} has the objects {one.objects}, not {truth.objects}"
    if one.label and one.label not in (truth.label, "other", *path.split("/")):
        yield f"{path} has the label {one.label!r}, not {truth.label!r}"
    if one.mask not in ("", truth.mask):
        yield f"{path} has the mask {one.mask}, not {truth.mask}"
    is_counted = any("images" in account["found"] for account in told.inputs)  # those without a label file as well
    is_lost = (truth.objects and one.objects is None) or (truth.label and not one.label)
    if is_lost and not told.warnings and not is_counted:
        yield f"the labels of {path} are not read, and nobody is told: {truth}; {told.inputs}"


def run(count: int, seed: int, keep: Path | None = None) -> Found:
    """(faults, how many ended how) of so many collections. keep: a folder for those that show a fault."""
    faults: list[str] = []
    ends: Counter[str] = Counter()
    for index in range(count):
        made = collection(index, seed)
        with tempfile.TemporaryDirectory(prefix="collection-") as name:
            folder = Path(name) / "in"
            folder.mkdir()
            end, fault = fault_of(made, folder)
            ends[f"{end}{'' if made.certain else ' (doubtful)'}"] += 1
            if fault:
                faults.append(f"collection {index}: {made.told}: {fault}".replace(name, ""))
                if keep is not None:
                    shutil.copytree(folder, keep / f"{seed}-{index}", dirs_exist_ok=True)
    return faults, ends


if __name__ == "__main__":
    sys.exit(fuzz(__doc__, "collections", 10_000, run))
