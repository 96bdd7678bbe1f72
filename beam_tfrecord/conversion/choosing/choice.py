"""The options of choosing with what lies in their files: read once, before the job starts."""

from __future__ import annotations

import csv
import json
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from beam_tfrecord.annotations import KINDS
from beam_tfrecord.annotations.base import AnnotationKind
from beam_tfrecord.conversion.choosing.near_rows import NO_NEAR_ROWS, NearRows
from beam_tfrecord.core.elements import Finding
from beam_tfrecord.core.public_text import public_text, writable_text
from beam_tfrecord.datasets.metadata import read_finding_lines
from beam_tfrecord.errors import ConfigError, DatasetError, nearest
from beam_tfrecord.manifests import missing
from beam_tfrecord.manifests.base import Files
from beam_tfrecord.manifests.text.json_text import decode_json
from beam_tfrecord.manifests.text.lines import decode_text, split_lines
from beam_tfrecord.options.choosing import ChoosingConfig, ExcludeFile, checked_pairs, pairs_of_text, stripped
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import public_uri, scheme_of

_HEADS = ({"old", "new"}, {"from", "to"})  # of a CSV file of labels
_OF_SOURCE = "account"  # stage of what is told of an input as a whole, and not of a row

Place = tuple[str, str]  # origin and uri of a finding, as its line has them


@dataclass(frozen=True)
class Excluded:
    """What --exclude names. names: how an id or a path may be spelled -> its line. places: of findings -> how they are
    told.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[Place, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.names or self.places)

    @property
    def told(self) -> frozenset[str]:
        """Each line, and each finding, that some row should be named by."""
        return frozenset({*self.names.values(), *self.places.values()})


@dataclass(frozen=True)
class Choice:
    """What is taken of the inputs, all files read. remarks: (option, message) of what can match nothing. near: what is
    done with near-duplicates, once it is decided.
    """

    config: ChoosingConfig = field(default_factory=ChoosingConfig)
    renames: Mapping[str, str] = field(default_factory=dict)
    excluded: Excluded = field(default_factory=Excluded)
    remarks: tuple[tuple[str, str], ...] = ()
    near: NearRows = NO_NEAR_ROWS

    @property
    def is_everything(self) -> bool:
        """Whether nothing is chosen away row by row."""
        config = self.config
        return not (
            self.renames
            or self.excluded
            or self.near
            or config.where
            or config.keep_labels
            or config.drop_labels
            or config.min_box
            or config.drop_unlabelled
        )

    def name_of(self, label: str) -> str | None:
        """The name that a label gets; None when it is dropped."""
        return None if self.reason_without(label) else self.renames.get(label, label)

    def reason_without(self, label: str) -> str:
        """The option that drops a label; '' when it is kept."""
        name = self.renames.get(label, label)
        if not name:
            return "map_labels"
        if self.config.keep_labels and name not in self.config.keep_labels:
            return "keep_labels"
        return "drop_labels" if name in self.config.drop_labels else ""


NO_CHOICE = Choice()


def load_choice(config: ConvertConfig, files: Files) -> Choice:
    """The choice that the options make. Raises ConfigError for a file that is not there or tells something else."""
    choosing = config.choosing
    if choosing.chooses_labels:
        _check_kinds()
    names: dict[str, str] = {}
    places: dict[Place, str] = {}
    remarks: list[tuple[str, str]] = []
    for file in choosing.exclude:
        text = _text(file.uri, "--exclude", config, files)
        findings = _findings(file, text)
        if findings is None:
            names.update(_spellings(text))
            continue
        counts = Counter(finding.code for finding in findings)
        remarks += [
            ("exclude", f"{file.uri} has no finding of the code {code!r}{nearest(code, counts)}")
            for code in file.codes
            if not counts[code]
        ]
        places.update(
            {
                (finding.origin, finding.uri): f"{finding.origin} ({finding.code})"
                for finding in findings
                if finding.stage != _OF_SOURCE and (not file.codes or finding.code in file.codes)
            }
        )
    return Choice(choosing, dict(_renames(config, files)), Excluded(names, places), tuple(remarks))


def _check_kinds() -> None:
    """Raise ConfigError for a kind of annotation with labels that does not know how to choose among them."""
    for kind in KINDS.values():
        if type(kind).labels is not AnnotationKind.labels and type(kind).chosen is AnnotationKind.chosen:
            raise ConfigError(
                f"labels cannot be chosen: the kind of annotation {kind.name!r} has labels and no method chosen() that "
                f"gives them other names; see AnnotationKind.chosen"
            )


def _text(uri: str, option: str, config: ConvertConfig, files: Files) -> str:
    try:
        with files.open(uri) as file:
            return decode_text(file.read(), config.manifest.encoding)
    except (FileNotFoundError, IsADirectoryError):
        raise ConfigError(f"{option} {uri}: {missing(files, uri)}") from None
    except ValueError as error:
        raise ConfigError(f"{option} {uri}: {error}") from None


# ---------------------------------------------------------------------------------------------------------------------
# Rows that a file names


def _findings(file: ExcludeFile, text: str) -> list[Finding] | None:
    """The findings in a file of such lines; None for a list of names."""
    lines = [line for line in text.split("\n") if line.strip()]
    if lines and not lines[0].lstrip().startswith("{") and not file.codes:
        return None
    if not lines and not file.codes:
        return [] if file.uri.endswith(".jsonl") else None
    try:
        return list(read_finding_lines((line.encode("utf-8", "surrogatepass") for line in lines), file.uri))
    except DatasetError as error:
        raise ConfigError(
            f"--exclude {file.uri}: it is neither a rejects.jsonl or warnings.jsonl of this tool ({error}) nor a list "
            "of ids or paths, one a line"
        ) from None


def _spellings(text: str) -> Iterator[tuple[str, str]]:
    """(how a row may spell it, line) for each line that names one."""
    for line in split_lines(text):
        if line.strip():
            for name in {line.strip(), _normal(line.strip())}:
                yield name, line
            yield line, line


def _normal(path: str) -> str:
    """A path without ``./`` at its start, as folders that are listed do not have it."""
    return path if scheme_of(path) else posixpath.normpath(path)


def told_place(origin: str, uri: str) -> Place:
    """The origin and the uri of a row as the line of a finding has them."""
    return public_text(writable_text(origin)), public_text(public_uri(writable_text(uri)))


# ---------------------------------------------------------------------------------------------------------------------
# Names of labels


def _renames(config: ConvertConfig, files: Files) -> tuple[tuple[str, str], ...]:
    given = config.choosing.map_labels
    if given is None or not isinstance(given, str):
        return given or ()
    try:
        if "=" in given and not files.is_file(given):  # a file of that name is meant literally
            return pairs_of_text(given)
        return checked_pairs(_pairs_of_file(given, _text(given, "--map_labels", config, files)))
    except ValueError as error:
        raise ConfigError(f"--map_labels {given}: {error}") from None


def _pairs_of_file(uri: str, text: str) -> Iterable[Iterable[str]]:
    """(old, new) of each line ``old=new``, each line of a CSV file, or each key of a JSON object. Raises ValueError."""
    if text.lstrip()[:1] == "{" and (value := _json_object(text)) is not None:
        wrong = next((old for old, new in value.items() if not isinstance(new, str | None)), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} becomes {value[wrong]!r}, which is no name")
        return [(old, new or "") for old, new in value.items()]
    lines = [line for line in split_lines(text) if line.strip()]
    ending = uri.lower().rpartition(".")[2]
    if ending in ("csv", "tsv"):
        try:
            rows = list(csv.reader(lines, delimiter="\t" if ending == "tsv" else ",", strict=True))
        except csv.Error as error:
            raise ValueError(f"its quotes do not match ({error})") from None
        if rows and {cell.strip().casefold() for cell in rows[0]} in _HEADS:
            del rows[0]
        wrong_row = next((row for row in rows if len(row) != 2), None)
        if wrong_row is not None:
            raise ValueError(f"{wrong_row} is not an old and a new name")
        return [stripped(row) for row in rows]
    wrong = next((line for line in lines if "=" not in line), None)
    if wrong is not None:
        raise ValueError(f"the line {wrong!r} is not of the form old=new")
    return [stripped(line.split("=", 1)) for line in lines]


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        json.loads(text)
    except ValueError:
        return None
    value: dict[str, Any] = decode_json(text)
    return value


def chosen_labels(
    labels: Sequence[str], ids: Sequence[int] | None, choice: Choice
) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """Names of labels that a source states, and their ids, as far as they are left and under their new names.

    Where several get one name, it has the place and the id of the first of them.
    """
    if not choice.config.chooses_labels:
        return tuple(labels), None if ids is None else tuple(ids)
    found: dict[str, int] = {}
    for number, label in zip([0] * len(labels) if ids is None else ids, labels, strict=False):
        name = choice.name_of(label)
        if name is not None:
            found.setdefault(name, number)
    return tuple(found), None if ids is None else tuple(found.values())
