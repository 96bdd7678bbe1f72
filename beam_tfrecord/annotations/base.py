"""What every kind of annotation offers, and what a feature is.

A kind takes its part of a row's canonical fields to a typed, frozen value (``parse``), moves that value into the frame
of the stored image (``place``), turns it into features (``features``) and states their types (``spec``). All records of
a dataset have the same keys: a kind that any entry carries gives set, possibly empty, lists to entries that lack it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from beam_tfrecord.core.elements import Member
from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.options.values import Column

Value = TypeVar("Value")


class Feature(NamedTuple):
    """Values of one feature: dtype is ``int64``, ``float`` (stored as float32) or ``bytes``."""

    dtype: str
    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """Type of one feature, enough for a tf.io parse spec and for features.json.

    key: name in the record. dtype: ``int64``, ``float`` or ``bytes``. shape: () for exactly one value, (None,) for any
    number, (n,) for exactly n, (None, 4) for rows of four. role: what it means, one of ``scalar``, ``text``, ``image``,
    ``label``, ``bbox``, ``raw``. channels: of an image, None when they differ. encoding: of an image, ``jpeg``, ``png``
    or None when both occur. in_sequence: a feature list of a SequenceExample (one value of that shape per frame).
    pixel_dtype: of a decoded image, ``uint8`` or ``uint16``.
    """

    key: str
    dtype: str
    shape: tuple[int | None, ...] = ()
    role: str = "scalar"
    channels: int | None = None
    encoding: str | None = None
    in_sequence: bool = False
    description: str = ""
    pixel_dtype: str = "uint8"


@dataclass(frozen=True)
class Vocabulary:
    """Label names in id order; the id of names[i] is ids[i]. Decided once for all splits."""

    names: tuple[str, ...] = ()
    offset: int = 0
    ids: tuple[int, ...] = ()
    _id_of: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = self.ids or tuple(range(self.offset, self.offset + len(self.names)))
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "_id_of", dict(zip(self.names, ids, strict=True)))

    def id_of(self, name: str) -> int:
        """The id of a name; KeyError when it is not in the vocabulary."""
        return self._id_of[name]

    def __contains__(self, name: str) -> bool:
        return name in self._id_of

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Schema:
    """What decides the keys and types of every record of a dataset.

    kinds: facets of the annotations that any entry carries (see :meth:`AnnotationKind.facets`), sorted. keys: name of a
    feature by what it holds (see :mod:`beam_tfrecord.annotations.keys`), renames applied. columns: the declared further
    columns. has_images: False for a table. is_sequence: records are SequenceExamples. raw: images are stored as pixels.
    """

    kinds: tuple[str, ...]
    vocabulary: Vocabulary
    preset: str
    keys: Mapping[str, str]
    columns: tuple[Column, ...] = ()
    has_images: bool = True
    is_sequence: bool = False
    raw: bool = False
    one_hot: bool = False


@dataclass(frozen=True)
class Placement:
    """What a kind needs to move its value into the stored image.

    frame: from the source image to the stored one. config: all options. read: the bytes of another file of the item (a
    mask), by uri or member; raises ElementError. warn(code, message): notes something about an item that is kept. size:
    (width, height) that the annotation states, or None. is_upright: whether the annotation is given in the turned
    picture. is_ambiguous: nothing tells which frame it is given in. place_mask(array, frame): an array of mask values
    (height, width) moved into the stored image with nearest neighbour.
    """

    frame: PixelFrame
    config: ConvertConfig
    read: Callable[[str, Member | None], bytes]
    warn: Callable[[str, str], None]
    size: tuple[int, int] | None = None
    is_upright: bool = False
    is_ambiguous: bool = False
    place_mask: Callable[[Any, PixelFrame], Any] | None = None


class AnnotationKind(ABC, Generic[Value]):
    """One kind of annotation. Instances hold no state; values are frozen and picklable.

    name: key in Entry.annotations and in :attr:`Schema.kinds`. own_keys: logical name -> feature key for names that the
    table of :mod:`beam_tfrecord.annotations.keys` does not have; the same under every preset. of_whole: in a sequence
    it belongs to the sequence as a whole (its context), not to each frame. fields: the canonical
    fields without which the :meth:`parse` of the same class gives None; None where it has to be asked.
    """

    name: str
    of_whole: bool = False
    own_keys: Mapping[str, str] = MappingProxyType({})
    fields: frozenset[str] | None = None

    @abstractmethod
    def parse(self, fields: Mapping[str, Any], config: ConvertConfig, warn: Callable[[str, str], None]) -> Value | None:
        """The typed value, or None when the row carries nothing of this kind. Raises RowError or AnnotationError."""

    def facets(self, value: Value) -> tuple[str, ...]:
        """What :attr:`Schema.kinds` must know of the value: the kind's name, then what asks for further features."""
        return (self.name,)

    def labels(self, value: Value) -> Iterable[str]:
        """The label names that the value uses, for the vocabulary."""
        return ()

    def chosen(self, value: Value, name_of: Callable[[str], str | None]) -> Value:
        """The value with other names of its labels; what has no name any more (None) is left out.

        A kind that has labels needs it as soon as labels are chosen (``--map_labels`` and the like).
        """
        return value

    def is_label(self, value: Value) -> bool:
        """Whether a row that has nothing else counts as labelled (``--drop_unlabelled``)."""
        return any(True for _ in self.labels(value)) or any(True for _ in self.masks(value))

    def absence(self) -> tuple[str, ...]:
        """What :attr:`Schema.kinds` must know when some pictures have nothing of this kind while others have."""
        return ()

    def masks(self, value: Value) -> Iterable[tuple[str, Member | None]]:
        """Files, by uri or member, with masks that are stored as deep as the deepest one in the dataset."""
        return ()

    def exceptions(self, value: Value, schema: Schema) -> Iterable[str]:
        """Facets for :meth:`spec` that only a placed value tells: it is stored otherwise than ``schema`` says."""
        return ()

    def place(self, value: Value, placement: Placement) -> Value:
        """The value in the frame of the stored image, checked. Raises AnnotationError."""
        return value

    def pack(self, value: Value) -> Any:
        """The value as it travels between stages: whatever pickles well."""
        return value

    def unpack(self, packed: Any) -> Value:
        """The value that :meth:`pack` was given."""
        value: Value = packed
        return value

    @classmethod
    def has_place(cls) -> bool:
        """Whether the stored image can change a value of this kind, or what is told of it."""
        return cls.place is not AnnotationKind.place or cls.exceptions is not AnnotationKind.exceptions

    @abstractmethod
    def features(self, value: Value | None, schema: Schema) -> dict[str, Feature]:
        """Features by final key. None gives the empty lists of an entry without this annotation."""

    @abstractmethod
    def spec(self, schema: Schema) -> list[FeatureSpec]:
        """The types of exactly the features that :meth:`features` gives."""


def annotation_is_upright(
    size: tuple[int, int] | None, frame: PixelFrame, box_frame: str = "auto", default: str | None = None
) -> tuple[bool, bool]:
    """(whether the annotation is given in the turned picture, whether that is only a guess).

    size: (width, height) that the annotation states, or None. box_frame: the option, ``auto``, ``upright`` or
    ``stored``. default: what the annotation's format says, ``upright`` or ``stored``, or None when it says nothing.

    A size that fits one of the two pictures decides. A square image, one turned by 180 degrees or only mirrored, and an
    annotation without a size tell nothing: then the format decides, and without it the annotation is taken to belong to
    the raster, so that it moves with the pixels. Where the turn is ignored that is no guess: the pixels stay as well.
    """
    if frame.stated_orientation == 1:
        return False, False
    if box_frame != "auto":
        return box_frame == "upright", False
    if frame.turned_size != frame.source_size and size in (frame.turned_size, frame.source_size):
        return size == frame.turned_size, False
    return default == "upright", default is None and frame.ignored == 1
