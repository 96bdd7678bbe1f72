"""Features to and from the bytes of tf.train.Example and tf.train.SequenceExample; the only file that knows the proto.

The messages (tensorflow/core/example/{feature,example}.proto, package tensorflow)::

    Example          {Features features = 1}
    SequenceExample  {Features context = 1; FeatureLists feature_lists = 2}
    Features         {map<string, Feature> feature = 1}
    FeatureLists     {map<string, FeatureList> feature_list = 1}
    FeatureList      {repeated Feature feature = 1}
    Feature          {oneof kind {BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3}}
    BytesList        {repeated bytes value = 1}
    FloatList        {repeated float value = 1 [packed]}
    Int64List        {repeated int64 value = 1 [packed]}

Encoding writes the wire format (https://protobuf.dev/programming-guides/encoding) by hand and joins the pieces once:
the bytes of protobuf's deterministic serialization, in less time, much less for a large image, because the message
classes copy each value twice more. Only keys are always in the order of their code points, where implementations of
protobuf disagree about a key that is the start of another. Decoding uses protobuf, with the messages in a pool of their
own: TensorFlow is not imported, and does not clash when it is.
"""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from beam_tfrecord.annotations.base import Feature

NO_KIND = "none"  # of a feature in which none of the three lists is set; it has no values
_INT64_MIN, _INT64_END = -(2**63), 2**63
_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))

# Tags of length-delimited fields: number << 3 | 2.
_FIELD_1, _FIELD_2, _FIELD_3 = b"\x0a", b"\x12", b"\x1a"


def encode_example(features: Mapping[str, Feature]) -> bytes:
    """The bytes of a tf.train.Example with these features, keys in the order of their code points.

    Values: ``int64`` anything that is an integer; ``float`` any number, rounded to float32, NaN and infinities
    included; ``bytes`` bytes objects. An empty feature stays a set, typed, empty list.
    Raises TypeError or ValueError, naming the key, for values that the type cannot hold: the caller's mistake.
    """
    pieces: list[bytes] = []
    size = _put_features(pieces, features)
    return b"".join((_FIELD_1, _varint(size), *pieces))


def encode_sequence_example(context: Mapping[str, Feature], feature_lists: Mapping[str, Sequence[Feature]]) -> bytes:
    """The bytes of a tf.train.SequenceExample; values and errors as for :func:`encode_example`.

    feature_lists: for each key one feature per step. The field is written even when there are none, so that the record
    can be told from an Example.
    """
    context_pieces: list[bytes] = []
    context_size = _put_features(context_pieces, context)
    list_pieces: list[bytes] = []
    list_size = _put_feature_lists(list_pieces, feature_lists)
    return b"".join((_FIELD_1, _varint(context_size), *context_pieces, _FIELD_2, _varint(list_size), *list_pieces))


def is_sequence_example(data: bytes) -> bool:
    """Whether a serialized record has field 2, which a SequenceExample has and an Example has not.

    Raises ValueError when the bytes are no message of either type.
    """
    position, end, found = 0, len(data), False
    while position < end:
        tag, position = _read_varint(data, position)
        if tag not in (_FIELD_1[0], _FIELD_2[0]):
            raise ValueError(f"field {tag >> 3} of wire type {tag & 7} is not part of an Example or a SequenceExample")
        found = found or tag == _FIELD_2[0]
        size, position = _read_varint(data, position)
        position += size
    if position != end:
        raise ValueError(f"a field reaches {position - end} bytes beyond the end of the record")
    return found


def decode_example(data: bytes) -> dict[str, Feature]:
    """The features of a serialized tf.train.Example, keys sorted; one without a kind has the dtype :data:`NO_KIND`.

    That is what Spark, TFX and others write for a missing value.

    Raises ValueError when the bytes are no such message.
    """
    return _decoded_features(_parsed("Example", data).features)


def decode_sequence_example(data: bytes) -> tuple[dict[str, Feature], dict[str, list[Feature]]]:
    """Context and feature lists of a serialized tf.train.SequenceExample, keys sorted.

    Raises ValueError when the bytes are no such message.
    """
    message = _parsed("SequenceExample", data)
    lists = message.feature_lists.feature_list
    steps = {key: [_decoded_feature(feature) for feature in lists[key].feature] for key in sorted(lists)}
    return _decoded_features(message.context), steps


# ---------------------------------------------------------------------------------------------------------------------
# Encoding. The functions append pieces and return the number of bytes that these have together. What stands before the
# values of a feature depends on its key and sizes only and hardly varies from record to record, hence the caches.


def _put_features(pieces: list[bytes], features: Mapping[str, Feature]) -> int:
    """The fields of a Features message: the entries of its map.

    Nearly all features are one byte string or one small number; these take a short way to the same bytes.
    """
    total = 0
    for key in sorted(features):
        dtype, values = features[key]
        if len(values) == 1:
            value = values[0]
            if dtype == "bytes" and type(value) is bytes:
                size = len(value)
                head = bytes_head(key, size)
                pieces.append(head)
                pieces.append(value)
                total += len(head) + size
                continue
            if dtype == "int64" and type(value) is int and 0 <= value < 0x4000:
                entry = _integer_entry(key, value)
                pieces.append(entry)
                total += len(entry)
                continue
        place = len(pieces)
        pieces.append(b"")
        kind, size = _put_list(pieces, key, features[key])
        pieces[place] = head = _entry_head(key, kind, size)
        total += len(head) + size
    return total


def _put_feature_lists(pieces: list[bytes], feature_lists: Mapping[str, Sequence[Feature]]) -> int:
    """The fields of a FeatureLists message: the entries of its map."""
    total = 0
    for key in sorted(feature_lists):
        place = len(pieces)
        pieces.append(b"")
        size = sum(_put_step(pieces, key, feature) for feature in feature_lists[key])
        value_head = _key_field(key) + _FIELD_2 + _varint(size)
        pieces[place] = head = _FIELD_1 + _varint(len(value_head) + size) + value_head
        total += len(head) + size
    return total


def _put_step(pieces: list[bytes], key: str, feature: Feature) -> int:
    """One field of a FeatureList message: a Feature."""
    place = len(pieces)
    pieces.append(b"")
    kind, size = _put_list(pieces, key, feature)
    feature_head = kind + _varint(size)
    pieces[place] = head = _FIELD_1 + _varint(len(feature_head) + size) + feature_head
    return len(head) + size


def _put_list(pieces: list[bytes], key: str, feature: Feature) -> tuple[bytes, int]:
    """The fields of a BytesList, FloatList or Int64List; gives its tag within Feature, and the size."""
    dtype, values = feature
    if dtype == "bytes":
        return _FIELD_1, _put_bytes(pieces, key, values)
    if dtype == "int64":
        kind, packed = _FIELD_3, _packed_integers(key, values)
    elif dtype == "float":
        kind, packed = _FIELD_2, _packed_floats(key, values)
    else:
        raise ValueError(f"feature {key!r}: there is no type {dtype!r}; it must be int64, float or bytes")
    if not packed:
        return kind, 0
    head = _field_head(len(packed))
    pieces += (head, packed)
    return kind, len(head) + len(packed)


def _put_bytes(pieces: list[bytes], key: str, values: Sequence[Any]) -> int:
    total = 0
    for value in values:
        if not isinstance(value, bytes):
            hint = ": encode text as UTF-8" if isinstance(value, str) else ""
            raise TypeError(f"feature {key!r} must hold bytes, not {type(value).__name__}{hint}")
        size = len(value)
        head = _field_head(size)
        pieces += (head, value)
        total += len(head) + size
    return total


def _packed_integers(key: str, values: Sequence[Any]) -> bytes:
    try:
        numbers = [operator.index(value) for value in values]
    except TypeError:
        wrong = next(value for value in values if not hasattr(value, "__index__"))
        raise TypeError(f"feature {key!r} must hold integers, not {type(wrong).__name__}") from None
    if not numbers:
        return b""
    low, high = min(numbers), max(numbers)
    if low < _INT64_MIN or high >= _INT64_END:
        raise ValueError(f"feature {key!r}: {low if low < _INT64_MIN else high} does not fit into int64")
    if low < 0:
        numbers = [number if number >= 0 else number + 2**64 for number in numbers]
    elif high < 0x80:
        return bytes(numbers)
    return b"".join([_varint(number) for number in numbers])


def _packed_floats(key: str, values: Sequence[Any]) -> bytes:
    try:
        return struct.pack(f"<{len(values)}f", *values)
    except struct.error:
        wrong = next(value for value in values if not hasattr(value, "__float__"))
        raise TypeError(f"feature {key!r} must hold numbers, not {type(wrong).__name__}") from None
    except OverflowError:
        raise ValueError(f"feature {key!r}: {max(values, key=abs)} does not fit into float32") from None


@functools.lru_cache(maxsize=4096)
def _entry_head(key: str, kind: bytes, size: int) -> bytes:
    """All that stands before the fields of a list of ``size`` bytes in an entry of Features."""
    feature_head = kind + _varint(size)
    value_head = _key_field(key) + _FIELD_2 + _varint(len(feature_head) + size) + feature_head
    return _FIELD_1 + _varint(len(value_head) + size) + value_head


@functools.lru_cache(maxsize=1 << 14)  # images of one collection have some thousand sizes
def bytes_head(key: str, size: int) -> bytes:
    """All that stands before the bytes of an entry of Features that holds one byte string of that size."""
    value_head = _FIELD_1 + _varint(size)
    feature_head = _FIELD_1 + _varint(len(value_head) + size)
    size += len(value_head) + len(feature_head)
    head = _key_field(key) + _FIELD_2 + _varint(size)
    return b"".join((_FIELD_1, _varint(len(head) + size), head, feature_head, value_head))


def feature_entry(key: str, feature: Feature) -> bytes:
    """A whole entry of Features; values and errors as for :func:`encode_example`."""
    pieces: list[bytes] = []
    _put_features(pieces, {key: feature})
    return b"".join(pieces)


def example_head(size: int) -> bytes:
    """All that stands before entries of Features, ``size`` bytes together, in a tf.train.Example."""
    return _FIELD_1 + _varint(size)


@functools.lru_cache(maxsize=4096)
def _integer_entry(key: str, value: int) -> bytes:
    """A whole entry of Features that holds one number."""
    packed = _varint(value)
    body = _field_head(len(packed)) + packed
    return _entry_head(key, _FIELD_3, len(body)) + body


@functools.lru_cache(maxsize=4096)
def _field_head(size: int) -> bytes:
    """What stands before a value of ``size`` bytes in field 1."""
    return _FIELD_1 + _varint(size)


@functools.lru_cache(maxsize=4096)
def _key_field(key: str) -> bytes:
    encoded = key.encode()
    return _FIELD_1 + _varint(len(encoded)) + encoded


def _varint(value: int) -> bytes:
    """Base 128 varint of a number from 0 to 2**64 - 1: seven bits a byte, the lowest first."""
    if value < 0x80:
        return _ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    groups = []
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


# ---------------------------------------------------------------------------------------------------------------------
# Decoding.


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("the record ends inside of a number, or the number is too long")


def _decoded_features(features: Any) -> dict[str, Feature]:
    by_key = features.feature
    return {key: _decoded_feature(by_key[key]) for key in sorted(by_key)}


def _decoded_feature(feature: Any) -> Feature:
    kind = feature.WhichOneof("kind")
    # A slice is a list as well, made at once and not value by value.
    if kind == "bytes_list":
        return Feature("bytes", feature.bytes_list.value[:])
    if kind == "int64_list":
        return Feature("int64", feature.int64_list.value[:])
    if kind == "float_list":
        return Feature("float", feature.float_list.value[:])
    return Feature(NO_KIND, [])


def _parsed(name: str, data: bytes) -> Any:
    from google.protobuf.message import DecodeError

    message = _message_classes()[name]()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise ValueError(f"the record is no tf.train.{name}: {error}") from None
    return message


_MESSAGES: Mapping[str, tuple[str, ...]] = {
    "BytesList": ("value 1 repeated BYTES",),
    "FloatList": ("value 1 repeated FLOAT",),
    "Int64List": ("value 1 repeated INT64",),
    "Feature": ("bytes_list 1 oneof BytesList", "float_list 2 oneof FloatList", "int64_list 3 oneof Int64List"),
    "Features": ("feature 1 map Feature",),
    "FeatureList": ("feature 1 repeated Feature",),
    "FeatureLists": ("feature_list 1 map FeatureList",),
    "Example": ("features 1 optional Features",),
    "SequenceExample": ("context 1 optional Features", "feature_lists 2 optional FeatureLists"),
}


@functools.cache
def _message_classes() -> dict[str, Any]:
    """The message classes, from a descriptor pool of our own."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    package = "beam_tfrecord"
    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}/example.proto", package=package, syntax="proto3")

    def add_field(message: Any, name: str, number: int, label: str, kind: str) -> None:
        field = message.field.add(name=name, number=number, label=field_type.LABEL_OPTIONAL)
        if label in ("repeated", "map"):
            field.label = field_type.LABEL_REPEATED
        if label == "oneof":
            field.oneof_index = 0
        if label == "map":
            # protoc turns map<string, V> f into repeated FEntry, a nested message with this name, and these two fields.
            entry = message.nested_type.add(name=name.title().replace("_", "") + "Entry")
            entry.options.map_entry = True
            add_field(entry, "key", 1, "optional", "STRING")
            add_field(entry, "value", 2, "optional", kind)
            kind = f"{message.name}.{entry.name}"
        if kind.isupper():
            field.type = field_type.Type.Value(f"TYPE_{kind}")
        else:
            field.type, field.type_name = field_type.TYPE_MESSAGE, f".{package}.{kind}"

    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        if message_name == "Feature":
            message.oneof_decl.add(name="kind")
        for text in fields:
            name, number, label, kind = text.split()
            add_field(message, name, int(number), label, kind)

    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    find = pool.FindMessageTypeByName
    return {name: message_factory.GetMessageClass(find(f"{package}.{name}")) for name in ("Example", "SequenceExample")}
