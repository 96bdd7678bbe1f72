"""What every manifest format offers, and the canonical fields of the rows it yields.

A format turns a source into :class:`~beam_tfrecord.core.elements.Row`\\ s whose ``fields`` use these names, whatever
the file calls them. All values stay text unless the format itself is typed:

``image``     path or uri of the image as the manifest spells it; absent in a table without images
``filename``  what the record tells as the image's path, when that is another one
``member``    :class:`~beam_tfrecord.core.elements.Member`, when the image lies in an archive
``id``        the row's own id, when there is one
``label``     one label (text), or a list of labels
``split``     name of the split
``group``     value that may not straddle splits
``sequence``, ``order``   which sequence the row belongs to, and its place there
``size``      (width, height) that the annotation states, in pixels
``frame``     ``upright`` or ``stored``: the picture that the format's annotations belong to, when the format says so
``boxes``     list of dicts, one per object; see :mod:`beam_tfrecord.annotations.objects`
``notes``     list of (warning code, message): what the format has to tell about the boxes
``mask``      uri of a semantic mask, joined to its folder; ``instance_mask`` of an instance mask; ``panoptic`` a dict
``mask_member``, ``instance_mask_member``   their Members, when they lie in an archive
``captions``  list of texts
``columns``   mapping of further columns (raw values), for --columns; ``asked`` of those that --where looks at
``frames``    list of such mappings, one per picture, of a row that is a whole sequence
``rank``      place among the records of the split, 0 to 2**64 - 1, when the manifest fixes it
``listed``    True where the label is the name of a folder, blanks and all
``kinds``     facets (see :meth:`beam_tfrecord.annotations.base.AnnotationKind.facets`) that the dataset has in any case
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, BinaryIO, NamedTuple, Protocol

from beam_tfrecord.core.account import NO_ACCOUNT, Account, Decision
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.options.config import ManifestConfig

# Among the details of a source: the paths of its images, and its labels, are names that a listing gave, and are taken
# as they are. What a manifest spells may have blanks around it, and backslashes between folders.
LISTED = "listed"
NUMBERS = "numbers"  # among the details of a source: its labels are whole numbers, and ids follow their order


class FileInfo(NamedTuple):
    """A file that was found: its uri, and its size in bytes where the listing tells it without asking for each file."""

    uri: str
    size: int | None = None


class Files(Protocol):
    """The file system as manifests see it; :mod:`beam_tfrecord.storage` has the real one.

    Names are literal: nothing is unquoted, and only :meth:`match` gives ``*``, ``?`` and ``[`` a meaning. A missing
    file raises FileNotFoundError, any other trouble OSError or :class:`~beam_tfrecord.errors.StorageError`.
    """

    def open(self, uri: str) -> BinaryIO:
        """The file opened for reading bytes; seekable."""

    def size(self, uri: str) -> int:
        """Size of a file in bytes."""

    def is_file(self, uri: str) -> bool:
        """Whether a file of exactly this name exists."""

    def is_folder(self, uri: str) -> bool:
        """Whether a folder of exactly this name exists (for object stores: anything below ``uri/``)."""

    def walk(self, uri: str) -> Iterator[FileInfo]:
        """All files below a folder, sorted by code point of the uri; hidden and junk files included."""

    def match(self, pattern: str) -> list[FileInfo]:
        """The files that a glob matches (``**`` crosses folders), sorted by code point of the uri."""

    def list_folder(self, uri: str) -> list[str]:
        """Names of what lies directly in a folder, sorted; those of folders end in ``/``. Empty when there is none."""

    def join(self, base: str, path: str) -> str:
        """``path`` below the folder ``base``; an absolute path or a uri with a scheme stays as it is."""


@dataclass(frozen=True)
class Source:
    """One place that rows come from, looked at once before the job starts.

    uri: the manifest, folder, archive, or glob. format: name in the registry. split: named by the user for this input.
    base: folder that relative image paths start from. labels: vocabulary that the source itself states, in id order
    (a COCO file by category id, YOLO by its yaml), else None. category_ids: original ids of those labels when they
    mean something. details: whatever else the format found out (delimiter, encoding, column roles ...); plain values.
    rows: rows given by the caller in memory instead of a place (dicts by column name). account: what was counted while
    the source was looked at; the rest comes with the rows. decisions: what could have been taken otherwise. surprises:
    (warning code, message) of what a person should know of the source as a whole. census: the folder whose files are
    held against the images that the rows name; '' where the format tells of all files itself.
    """

    uri: str
    format: str
    split: str | None
    base: str
    labels: tuple[str, ...] | None = None
    category_ids: tuple[int, ...] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[Mapping[str, Any], ...] = ()
    account: Account = NO_ACCOUNT
    decisions: tuple[Decision, ...] = ()
    surprises: tuple[tuple[str, str], ...] = ()
    census: str = ""


@dataclass(frozen=True)
class Piece:
    """A part of a source that one worker reads: bytes ``start`` to ``end`` (-1: the end), or row groups, or members.

    first_line: number of the physical line (or row) at ``start``, so that origins are those of the whole file.
    """

    source: Source
    start: int = 0
    end: int = -1
    first_line: int = 1


@dataclass(frozen=True, slots=True)
class Ignored:
    """Files that are no data (.DS_Store, Thumbs.db, __MACOSX ...); a hidden folder counts as one."""

    count: int


Told = Ignored | Account | Decision  # what is no row
Item = Row | RejectedRow | Told


class ManifestFormat(ABC):
    """One way to state which images there are and what is known of them.

    name: value of --format. suffixes: endings of file names, lower case, that suggest this format. beside: endings of
    label files of this format that lie beside images, one for each; :meth:`annotates` tells them. counts_files: its
    accounts tell of all files that lie in a source; ``counts_files`` among the details of a source wins over it. leads:
    a document of this format tells more than the names of folders. asks: what options such as --label_column can name
    in it, though it has no header, and others that say something of it.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    counts_files: bool = False
    leads: bool = False
    asks: tuple[str, ...] = ()

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether a source without a telling name is of this format. head: the first bytes ('' for a folder)."""
        return False

    def annotates(self, head: bytes) -> bool:
        """Whether a file that lies among images, and ends as ``beside`` says, holds the labels of one in this format.

        head: its first bytes.
        """
        return False

    @abstractmethod
    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        """Look at the source once, cheaply, before the job starts.

        Raises ManifestError when it cannot be read at all, and ConfigError when an option does not fit it (a column
        that is not there: the nearest one is named).
        """

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        """The parts that can be read independently. One, unless the format can be split safely."""
        yield Piece(source)

    @abstractmethod
    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        """The items of a piece, in the order of the source, streaming.

        A damaged row is yielded as a RejectedRow, never skipped. An Account tells what was used or passed over on the
        way, a Decision what was found out only then (see :mod:`beam_tfrecord.core.account`). Raises ManifestError when
        the source cannot be read on.
        """


def to_plain(source: Source) -> dict[str, Any]:
    """A source as plain values; what it tells people is told by the source around it."""
    return asdict(replace(source, account=NO_ACCOUNT, decisions=(), surprises=())) | {"account": NO_ACCOUNT}


def from_plain(values: Mapping[str, Any]) -> Source:
    """The source that :func:`to_plain` gave."""
    return Source(**values)


def stated_labels(sources: Sequence[Source]) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """Names in id order of all sources together, and their ids when all state them.

    sources: those that state labels. Raises ManifestError where they contradict each other.
    """
    first = sources[0]
    if all((source.labels, source.category_ids) == (first.labels, first.category_ids) for source in sources):
        return first.labels or (), first.category_ids
    if any(source.category_ids is None for source in sources):
        names = dict.fromkeys(name for source in sources for name in source.labels or ())
        return tuple(names), None
    name_of: dict[int, tuple[str, str]] = {}
    for source in sources:
        for number, name in zip(source.category_ids or (), source.labels or (), strict=True):
            known, where = name_of.setdefault(number, (name, source.uri))
            if known != name:
                raise ManifestError(
                    f"category {number} is {known!r} in {where} and {name!r} in {source.uri}: the inputs must agree"
                )
    ids = tuple(sorted(name_of))
    names_in_order = tuple(name_of[number][0] for number in ids)
    if len(set(names_in_order)) < len(ids):
        raise ManifestError("the inputs give one category name several ids: they must agree")
    return names_in_order, ids
