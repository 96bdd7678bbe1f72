"""The account of each input, and what is surprising about it: checked and told before anything is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from beam_tfrecord.conversion.choosing.choice import NO_CHOICE, Choice, chosen_labels
from beam_tfrecord.conversion.planning.census import Walk, take_census
from beam_tfrecord.conversion.planning.survey import HashSketch, Survey, merge_sketches
from beam_tfrecord.core.account import (
    AGAINST_OWN_NAME,
    COLUMNS,
    FILES,
    IMAGES,
    KEYS,
    LABEL_FILES,
    LIST_OF_SPLIT,
    LOOKS_LIKE_LABELS,
    NAMES_IMAGES,
    NO_ACCOUNT,
    OF_ANOTHER_KIND,
    OF_NO_IMAGE,
    STATED_IMAGES,
    UNNAMED_IMAGE,
    WITHOUT_LABEL_FILE,
    Account,
    Decision,
    faults,
    merge_accounts,
)
from beam_tfrecord.core.elements import Finding
from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.base import Source
from beam_tfrecord.manifests.text.spelling import plain_form
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import public_uri

STAGE = "account"
_SEPARATORS, _COMMA = "|;,", ","
_NUMBER = re.compile(r"(-?)0*([0-9]+)(?:\.([0-9]*?)0*)?")  # its sign, what is before its point, and what is behind
_NO_VALUES = frozenset({"nan", "null", "n/a", "#n/a"})  # as pandas, databases and spreadsheets write them


@dataclass(frozen=True)
class InputAccount:
    """One input: what lies there, what became of it, what was decided about it, and what a person should know.

    category_ids: the ids that the input itself gives to its classes, by name.
    """

    uri: str
    format: str
    account: Account = NO_ACCOUNT
    decisions: tuple[Decision, ...] = ()
    surprises: tuple[Finding, ...] = field(default=())
    category_ids: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As conversion.json has it among its ``inputs``."""
        return {
            "uri": self.uri,
            "format": self.format,
            **self.account.to_json(),
            **({"category_ids": dict(self.category_ids)} if self.category_ids else {}),
            "decisions": [decision._asdict() for decision in self.decisions],
            "surprises": [{"code": found.code, "message": found.message} for found in self.surprises],
        }


def account_inputs(
    sources: Sequence[Source], survey: Survey, config: ConvertConfig, walk: Walk | None, choice: Choice = NO_CHOICE
) -> tuple[InputAccount, ...]:
    """The accounts of all inputs. walk: lists the files below a folder, for a census; None for none. choice: of labels.

    Raises ManifestError where what was found is not what was used and named.
    """
    told = []
    manifests = {source.uri for source in sources}
    for number, source in enumerate(sources):
        counted = [source.account, survey.accounts.get(number, NO_ACCOUNT)]
        decisions = (*source.decisions, *survey.decisions.get(number, ()))
        if walk is not None:
            others = merge_sketches(sketch for other, sketch in survey.files.items() if other != number)
            census, told_more, splits = take_census(
                source, survey.files.get(number, HashSketch()), others, manifests, config, walk
            )
            counted.append(census)
            decisions = (*decisions, *told_more)
            if len(splits) > 1 and not survey.own_splits and config.splits.splits is None:
                folders = (
                    f"the images lie in folders called like splits ({', '.join(sorted(splits))}), and nothing tells "
                    "the split of a row, so that all go to train: give the rows a column split, the parts as several "
                    "--input (test=PLACE), or --splits"
                )
                source = replace(source, surprises=(*source.surprises, ("doubtful_reading", folders)))
        account = merge_accounts(counted)
        broken = faults(account)
        if broken:
            raise ManifestError(
                f"{source.uri}: {'; '.join(broken)}. Either it changed while it was read: convert it again when it is "
                f"at rest; or this is a fault of beam-tfrecord, and worth a report"
            )
        surprises = tuple(
            Finding(public_uri(source.uri), "", STAGE, code, message)
            for code, message in (*_surprises(source, account), *_doubtful_boxes(*survey.boxes.get(number, (0, 0))))
        )
        names, numbers = chosen_labels(source.labels or (), source.category_ids, choice)
        ids = dict(zip(names, numbers or (), strict=False))
        told.append(InputAccount(public_uri(source.uri), source.format, account, decisions, surprises, ids))
    if told:
        first = public_uri(sources[0].uri)
        doubts = tuple(Finding(first, "", STAGE, "doubtful_reading", text) for text in _doubtful_labels(survey.labels))
        told[0] = replace(told[0], surprises=(*told[0].surprises, *doubts))
    return tuple(told)


def _doubtful_boxes(count: int, small: int) -> Iterator[tuple[str, str]]:
    """What is doubtful about the boxes of an input. count: of those in pixels; small: within the first pixel."""
    if 2 * small > count:
        yield (
            "doubtful_reading",
            f"{small:,} of {count:,} boxes lie within the first pixel of their image: they seem to be fractions of it, "
            "and were read as pixels; multiply them by the size of the image, or give them as a table with --box_units "
            "fractions",
        )


def _doubtful_labels(labels: Mapping[str, int]) -> Iterator[str]:
    """What is doubtful about the names of the labels of all inputs. labels: how often each is used."""
    alike: dict[str, list[str]] = {}
    for name in sorted(labels):
        plain = plain_form(name).casefold()
        number = _NUMBER.fullmatch(plain)
        alike.setdefault(".".join(number.groups("")) if number else plain, []).append(name)
    groups = [names for names in alike.values() if len(names) > 1 and len(max(names, key=len)) > 1]
    if groups:
        spelled = ", ".join(f"{name!a} ({labels[name]:,})" for name in groups[0])
        more = f", and {len(groups) - 1:,} more are like that" if len(groups) > 1 else ""
        yield (
            f"the labels {spelled} differ only in case, blanks, the form of Unicode or how a number is written, and "
            f"are classes of their own{more}: spell them alike where they are one"
        )
    several = list(_several(labels))
    if several:
        yield (
            f"{sum(labels[name] for name in several):,} labels seem to be several in one text, such as {several[0]!r}, "
            "and each such text is a class: --label_separator takes them apart, and JSON Lines can have lists"
        )
    measured = [name for name in sorted(labels) if (number := _NUMBER.fullmatch(name)) and number[3]]
    if 2 * len(measured) > len(labels):
        yield (
            f"{len(measured):,} of {len(labels):,} labels are numbers with a fraction, such as {measured[0]!r}, and "
            "each is a class: --columns NAME:float keeps a column of measured values as it is"
        )
    empty = [name for name in sorted(labels) if name.casefold() in _NO_VALUES]
    if empty:
        yield (
            f"{sum(labels[name] for name in empty):,} labels are called {empty[0]!r}, which becomes a class: leave the "
            "cell empty where it is to say that there is none"
        )


def _several(labels: Mapping[str, int]) -> Iterator[str]:
    """The labels that seem to be several: lists in brackets, and texts between separators that are labels as well.

    A comma may belong to a name (``salt, pepper`` beside ``pepper``): all parts are labels there, by themselves or in
    others with commas. Of other separators half of them is enough.
    """
    parts_of = {mark: {name: _parts(name, mark) for name in labels if mark in name} for mark in _SEPARATORS}
    uses = Counter(part for parts in parts_of[_COMMA].values() for part in parts)
    for name in sorted(labels):
        is_list = len(name) > 2 and name[0] == "[" and name[-1] == "]"
        halves = [parts_of[mark].get(name, []) for mark in _SEPARATORS if mark != _COMMA]
        is_half = any(parts and 2 * sum(part in labels for part in parts) >= len(parts) for parts in halves)
        parts = parts_of[_COMMA].get(name, [])
        if is_list or is_half or (parts and all(part in labels or uses[part] > 1 for part in parts)):
            yield name


def _parts(name: str, separator: str) -> list[str]:
    return [part.strip() for part in name.split(separator)]


def check_strict(inputs: Sequence[InputAccount], further: Sequence[Finding] = ()) -> None:
    """Raise ConfigError, for --strict, when something about an input is surprising, or there is anything further."""
    found = [*(surprise for told in inputs for surprise in told.surprises), *further]
    if found:
        lines = "\n".join(f"  {surprise.origin}: {surprise.code}: {surprise.message}" for surprise in found)
        raise ConfigError(f"--strict refuses what is surprising about the input; nothing was written:\n{lines}")


def _surprises(source: Source, account: Account) -> Iterator[tuple[str, str]]:
    """(code, message) of each thing that nobody would expect to be passed over in silence."""
    yield from source.surprises
    files = account.named.get(FILES, {})
    if LOOKS_LIKE_LABELS in files:
        told = files[LOOKS_LIKE_LABELS]
        yield (
            "labels_not_read",
            f"{_files(told.count)} with the looks of labels of these images: not read (such as {told.example}); "
            f"name the format with --format, or move the labels away",
        )
    if NAMES_IMAGES in files:
        told = files[NAMES_IMAGES]
        yield (
            "labels_not_read",
            f"{_files(told.count)} that {'names' if told.count == 1 else 'name'} these images: not read (such as "
            f"{told.example}); give it as --input when it tells their labels or splits, or move it away",
        )
    if LIST_OF_SPLIT in files:
        told = files[LIST_OF_SPLIT]
        yield (
            "labels_not_read",
            f"{_files(told.count)} called like {'a split' if told.count == 1 else 'splits'}: not read (such as "
            f"{told.example}); give each as an --input, such as --input test=PLACE, where it lists a split's images",
        )
    if UNNAMED_IMAGE in files:
        told = files[UNNAMED_IMAGE]
        yield (
            "images_not_named",
            f"{told.count:,} of the images that lie there are named by no row (such as {told.example})",
        )
    labels, orphans = account.found.get(LABEL_FILES, 0), account.unused(LABEL_FILES, OF_NO_IMAGE)
    images = account.found.get(IMAGES, 0)
    if LABEL_FILES in account.found and not account.uses(LABEL_FILES) and images:
        yield (
            "no_label_files",
            f"none of {images:,} images has a label file"
            + (f", and {_files(orphans, 'label file')} of others lie there" if orphans else "")
            + f"{_example(account, LABEL_FILES)}: each image is taken as one without objects",
        )
    elif images < 2 * account.uses(IMAGES, WITHOUT_LABEL_FILE):
        yield (
            "no_label_files",
            f"{account.uses(IMAGES, WITHOUT_LABEL_FILE):,} of {images:,} images have no label file: each of them is "
            f"taken as one without objects{_example(account, LABEL_FILES)}; where the folders of the images are their "
            "classes, give --format folder",
        )
    without = account.uses(IMAGES, WITHOUT_LABEL_FILE)
    if account.uses(LABEL_FILES) and (orphans * 2 > labels or (orphans and without)):
        yield (
            "label_files_unused",
            f"{orphans:,} of {labels:,} label files belong to no image{_example(account, LABEL_FILES)}, and "
            f"{without:,} of {images:,} images have none: call each label file like its image, letter for letter",
        )
    against = account.uses(STATED_IMAGES, AGAINST_OWN_NAME)
    if against:
        yield (
            "doubtful_reading",
            f"{_files(against, 'label file')} that name another image than the one that is called like them, and both "
            "are there: the labels went to the image that is named; take the name out of the label files where it is a "
            "remnant",
        )
    another = account.named.get(LABEL_FILES, {}).get(OF_ANOTHER_KIND)
    if another is not None and account.uses(LABEL_FILES):
        yield (
            "labels_not_read",
            f"{_files(another.count)} among the label files hold nothing of the format {source.format} (such as "
            f"{another.example}): not read; convert what they hold by themselves, or move them away",
        )
    for reason, told in sorted(account.named.get(COLUMNS, {}).items()):
        if reason.startswith("looks like"):
            yield (
                "columns_not_read",
                f"{_files(told.count, 'column')} whose names look like {reason.removeprefix('looks like ')} not read "
                f"(such as {told.example}): name them with an option, or keep them with --columns",
            )

    for reason, told in sorted(account.named.get(KEYS, {}).items()):
        if reason.startswith("looks like"):
            yield (
                "annotation_ignored",
                f"{_files(told.count, 'key')} whose names look like {reason.removeprefix('looks like ')} not read "
                f"(such as {told.example}): this format has no such thing; write it as one that has",
            )


def _files(count: int, name: str = "file") -> str:
    return f"{count:,} {name}{'s' if count != 1 else ''}"


def _example(account: Account, kind: str) -> str:
    named = account.named.get(kind, {}).get(OF_NO_IMAGE)
    return f" (such as {named.example})" if named else ""
