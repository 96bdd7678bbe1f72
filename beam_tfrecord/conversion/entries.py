"""From a row of a manifest to an entry: identity, place of the image, split, and typed annotations."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from beam_tfrecord.annotations import KINDS, kinds_for
from beam_tfrecord.annotations.base import AnnotationKind
from beam_tfrecord.annotations.cells import is_blank
from beam_tfrecord.conversion.choosing.chooser import Chooser, Parsed, count_objects
from beam_tfrecord.core.elements import ChosenAway, Entry, Finding, Frame, Member, RejectedRow, Row
from beam_tfrecord.core.public_text import is_utf8
from beam_tfrecord.errors import ElementError, RowError
from beam_tfrecord.manifests.base import LISTED, Item, Source, Told
from beam_tfrecord.manifests.endings import ENDING, named_file
from beam_tfrecord.manifests.text.inline_images import holds_picture
from beam_tfrecord.manifests.text.uri_text import WEB_SCHEMES, scheme_of
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.options.values import check_split_name

STAGE = "parse"
_LONGEST_PATH = 4096  # characters that are told of an image cell
KEPT_NAMES = 1000  # sets of fields for which it is known what may be parsed


@dataclass(frozen=True)
class EntryParser:
    """Turns the rows of one source into entries.

    join: places a path below a folder, as :meth:`beam_tfrecord.manifests.base.Files.join` does. chooser: of the rows
    that are taken; None takes all.
    """

    source: Source
    config: ConvertConfig
    join: Callable[[str, str], str]
    chooser: Chooser | None = None
    _pattern: re.Pattern[str] | None = field(init=False, repr=False)
    _is_listed: bool = field(init=False, repr=False)
    _ending: str = field(init=False, repr=False)
    _kinds: dict[tuple[str, ...], list[AnnotationKind[Any]]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        pattern = self.config.manifest.label_pattern
        object.__setattr__(self, "_pattern", re.compile(pattern) if pattern else None)
        details = self.source.details.get("inner", {}).get("details", self.source.details)  # of an archive
        object.__setattr__(self, "_is_listed", bool(details.get(LISTED)))
        object.__setattr__(self, "_ending", details.get(ENDING, ""))

    def parse(self, items: Iterable[Item]) -> Iterator[Parsed]:
        """Entries and rejects for the items of a source, and what was chosen away; nothing is left out."""
        parsed = self._sequences(items) if self.config.manifest.sequence_column else self._one_by_one(items)
        if self.chooser is None:
            yield from parsed
            return
        yield from self.chooser.choose_all(parsed)
        yield self.chooser.notes()

    def _one_by_one(self, items: Iterable[Item]) -> Iterator[Parsed]:
        for item in items:
            yield self.entry_or_reject(item) if isinstance(item, Row) else self._parsed(item)

    def _parsed(self, item: RejectedRow | Told) -> RejectedRow | ChosenAway | Told:
        if isinstance(item, RejectedRow) and self.chooser is not None and self.chooser.is_excluded(item):
            uri = item.finding.uri
            return ChosenAway({"exclude": 1}, item.source_rows, 0, (uri,) if uri else ())
        return item

    def entry_or_reject(self, row: Row) -> Entry | RejectedRow | ChosenAway:
        """The entry of a row, the reject that says why there is none, or the count of a row that is chosen away."""
        try:
            if self.chooser is not None and self.chooser.looks_at_rows:
                away = self._chosen_away(row, self.chooser)
                if away is not None:
                    return away
            return self.entry(row)
        except ElementError as error:
            uri = str(row.fields.get("image") or "")[:_LONGEST_PATH]
            return RejectedRow(Finding(row.origin, uri, STAGE, error.code, error.message), row.source_rows)

    def _chosen_away(self, row: Row, chooser: Chooser) -> ChosenAway | None:
        """The count of a row that is chosen away by what its manifest tells. Raises RowError."""
        pictures = row.fields.get("frames", (row.fields,))
        names = [str(row.fields.get("id") or ""), str(row.fields.get("sequence") or "")]
        uris = []
        for fields in pictures:
            try:
                uri, filename = self._place_of_image(fields)
            except ElementError:  # told when the row is parsed, if it is taken
                uri, filename = None, ""
            uris.append(uri or "")
            names += [filename, str(fields.get("image") or ""), uri or ""]
        if not any(names):
            names = [f"row-{content_digest(row.fields)}"]
        fields = {**pictures[0], **row.fields} if pictures else row.fields
        if self.source.split is not None:
            fields = {**fields, "split": self.source.split}
        if self._pattern is not None:
            found = self._pattern.search(names[2])
            fields = {**fields, "label": found["label"] if found else None}
        reason = chooser.reason_against(row.origin, names, fields)
        if not reason:
            return None
        boxes = [fields.get("boxes") for fields in pictures]
        objects = sum(len(own) for own in boxes if isinstance(own, list | tuple))
        return ChosenAway({reason: 1}, row.source_rows, objects, tuple(filter(None, uris)))

    def entry(self, row: Row) -> Entry:
        """The entry of a row. Raises ElementError."""
        fields = row.fields
        if "frames" in fields:
            return self._framed(row)
        uri, filename = self._place_of_image(fields)
        if self._pattern is not None:
            fields = {**fields, "label": self._label_in_path(filename)}
        elif self._is_listed and "label" in fields:
            fields = {**fields, LISTED: True}
        warnings: list[Finding] = []

        def warn(code: str, message: str) -> None:
            warnings.append(Finding(row.origin, uri or "", STAGE, code, message))

        if fields.get("boxes") is None:  # with objects, their kind tells them
            for code, message in fields.get("notes", ()):
                warn(code, message)
        names = tuple(fields)  # the same for all rows of a table
        kinds = self._kinds.get(names)
        if kinds is None:
            kinds = kinds_for(names)
            if len(self._kinds) < KEPT_NAMES:
                self._kinds[names] = kinds
        annotations = {}
        for kind in kinds:
            value = kind.parse(fields, self.config, warn)
            if value is not None:
                annotations[kind.name] = value
        get = fields.get
        group = get("group")
        has_group = group is not None and not is_blank(group)  # 0 is a group
        if not has_group and (column := self.config.manifest.group_column) is not None:
            warn("no_group", f"column {column!r} is empty: the row is kept together with no other one")
        return Entry(
            self._id_of(fields, filename),
            row.origin,
            uri,
            filename,
            self._split_of(fields),
            _check_text(str(group), "the group") if has_group else None,
            annotations,
            get("member"),
            get("size"),
            get("frame"),
            (),  # of frames
            tuple(warnings),
            row.source_rows,
            get("rank"),
            tuple(get("kinds", ())),
        )

    def _framed(self, row: Row) -> Entry:
        """The entry of a row that holds a whole sequence. Raises ElementError."""
        whole = {name: value for name, value in row.fields.items() if name in ("label", "split", "group")}
        entries = [self.entry(Row(row.origin, {**frame, **whole})) for frame in row.fields["frames"]]
        if not entries:
            raise RowError("bad_row", "the sequence has no frames")
        name = str(row.fields.get("id") or "")
        if not name:
            raise RowError("bad_row", "the sequence has no id")
        found = sequence_entry(name, [("", entry) for entry in entries], has_order=False)
        assert isinstance(found, Entry)  # all frames are entries, of one split and group
        return found._replace(
            source_rows=row.source_rows,
            rank=row.fields.get("rank"),
            kinds=tuple(row.fields.get("kinds", ())),
        )

    def _place_of_image(self, fields: Mapping[str, Any]) -> tuple[str | None, str]:
        """(uri, path as spelled with forward slashes); (None, '') for a row of a table without images."""
        if "image" not in fields:
            return None, ""
        spelled = str(fields["image"] or "")
        if not (spelled if self._is_listed else spelled.strip()):
            raise RowError("bad_row", "the image cell is empty: name the image, or take the row out")
        if "\0" in spelled:
            raise RowError("bad_row", f"the image path {spelled!r} holds a NUL character")
        _check_text(spelled, "the image path")
        if not self._is_listed and holds_picture(spelled.strip()):
            message = f"the image cell is a picture itself ({spelled[:20]}..., {len(spelled)} characters) and no path"
            raise RowError("bad_row", f"{message}: pictures in text are read from JSON Lines; write it as that")
        spelled = named_file(spelled, self._ending)
        path = spelled if self._is_listed else spelled.strip().replace("\\", "/")
        filename = fields.get("filename", path)
        member: Member | None = fields.get("member")
        if member is not None:
            return "!/".join((member.archive, *member.path)), filename
        try:
            return literal_place(self.join, self.source.base, spelled, path), filename
        except ValueError as error:
            raise RowError("unsafe_path", f"{path!r}: {error}") from None

    def _label_in_path(self, filename: str) -> str:
        assert self._pattern is not None
        found = self._pattern.search(filename)
        if not found or not found["label"]:
            raise RowError("missing_label", f"--label_pattern {self._pattern.pattern!r} finds no label in {filename!r}")
        return found["label"]

    def _id_of(self, fields: Mapping[str, Any], filename: str) -> str:
        given = fields.get("id")
        if given is not None and str(given) != "":
            return _check_text(str(given), "the id")
        if self.config.manifest.id_column:
            raise RowError("bad_row", f"the id cell ({self.config.manifest.id_column}) is empty")
        return filename or f"row-{content_digest(fields)}"

    def _split_of(self, fields: Mapping[str, Any]) -> str | None:
        if self.source.split is not None:
            return self.source.split
        name = fields.get("split")
        if name is None or str(name) == "":
            return None
        try:
            return check_split_name(str(name))
        except ValueError as error:
            raise RowError("unknown_split", str(error)) from None

    # -----------------------------------------------------------------------------------------------------------------
    # Sequences. The rows of a sequence may stand anywhere in the source, so it is gathered whole; entries are small.

    def _sequences(self, items: Iterable[Item]) -> Iterator[Parsed]:
        gathered: dict[str, list[tuple[str, Entry | RejectedRow | ChosenAway]]] = {}
        for item in items:
            if not isinstance(item, Row):
                made = self._parsed(item)
                if isinstance(item, RejectedRow) and item.sequence:
                    assert isinstance(made, RejectedRow | ChosenAway)
                    gathered.setdefault(item.sequence, []).append(("", made))
                else:
                    yield made
                continue
            name = str(item.fields.get("sequence") or "")
            if not name:
                message = f"the cell of --sequence_column {self.config.manifest.sequence_column} is empty"
                yield RejectedRow(Finding(item.origin, str(item.fields.get("image", "")), STAGE, "bad_row", message))
                continue
            order = str(item.fields.get("order", ""))
            gathered.setdefault(name, []).append((order, self.entry_or_reject(item)))
        has_order = self.config.manifest.order_column is not None
        for name, members in gathered.items():
            yield sequence_entry(name, members, has_order)


def sequence_entry(
    name: str, members: list[tuple[str, Entry | RejectedRow | ChosenAway]], has_order: bool
) -> Entry | RejectedRow | ChosenAway:
    """One entry for the rows of a sequence, ordered by their order cells (numbers before texts).

    A sequence with a row that is no entry, or whose rows disagree about split or group, is a reject that names the row;
    one with a row that is chosen away is chosen away as a whole.
    """
    if has_order:
        members = sorted(members, key=lambda member: _order_key(member[0]))
    source_rows = sum(entry.source_rows for _, entry in members)
    away = [member for _, member in members if isinstance(member, ChosenAway)]
    if away:
        kept = [member for _, member in members if isinstance(member, Entry)]
        return ChosenAway(
            away[0].reasons,
            source_rows,
            sum(member.objects for member in away) + sum(map(count_objects, kept)),
            (*(uri for member in away for uri in member.uris), *(member.uri for member in kept if member.uri)),
        )
    entries = []
    for _, entry in members:
        assert not isinstance(entry, ChosenAway)
        if isinstance(entry, RejectedRow):
            finding = replace(entry.finding, message=f"sequence {name!r}: {entry.finding.message}")
            return RejectedRow(finding, source_rows)
        entries.append(entry)
    first = entries[0]
    for other in entries[1:]:
        if (other.split, other.group) != (first.split, first.group):
            message = f"sequence {name!r}: this row has another split or group than {first.origin}"
            return RejectedRow(Finding(other.origin, other.uri or "", STAGE, "bad_row", message), source_rows)
    return Entry(
        id=name,
        origin=first.origin,
        uri=None,
        filename=name,
        split=first.split,
        group=first.group,
        annotations={name: value for name, value in first.annotations.items() if KINDS[name].of_whole},
        frames=tuple(
            Frame(
                entry.origin,
                entry.uri or "",
                entry.filename,
                entry.annotations,
                entry.member,
                entry.stated_size,
                entry.stated_frame,
            )
            for entry in entries
        ),
        warnings=tuple(warning for entry in entries for warning in entry.warnings),
        source_rows=source_rows,
    )


def literal_place(join: Callable[[str, str], str], base: str, spelled: str, path: str) -> str:
    """Where the file of a name is, as it is spelled; another spelling is looked for where it is read.

    path: the same name with forward slashes and without blanks around it, which wins where the name cannot be literal:
    on the web, and where it says from which root or bucket it starts. Raises ValueError as ``join`` does.
    """
    place = join(base, path)
    if spelled == path or scheme_of(place) in WEB_SCHEMES or (_is_rooted(path) and not _is_rooted(spelled)):
        return place
    return join(base, spelled)


def _is_rooted(path: str) -> bool:
    return path.startswith("/") or scheme_of(path) != ""


def _order_key(text: str) -> tuple[int, float, str]:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    return (1, 0.0, text) if math.isnan(number) else (0, number, text)  # nan is before and behind everything


def _check_text(text: str, what: str) -> str:
    """The text itself. Raises RowError when no file, name or record can hold it."""
    if not is_utf8(text):
        raise RowError("bad_row", f"{what} {text!r} holds half of a surrogate pair, which is no character")
    return text


def content_digest(fields: Mapping[str, Any]) -> str:
    """Sixteen hex digits of the content of a row, whatever the order of its fields."""
    text = json.dumps(fields, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
