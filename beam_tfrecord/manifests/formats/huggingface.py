"""Datasets of Hugging Face as they lie on disk: what ``save_to_disk`` wrote, and the Parquet shards of the Hub.

Source: datasets 5.2, ``arrow_dataset.py`` (``Dataset.save_to_disk``: ``state.json`` names the files in ``_data_files``,
which are Arrow streams), ``dataset_dict.py`` (``dataset_dict.json`` with ``splits``, each a folder), and the naming of
shards, ``SPLIT-00000-of-00002.parquet``, also with a fingerprint behind it, or ``SPLIT/0000.parquet`` as the Hub
converts them. Classes have the names of the features in the schema. Folders of images with a ``metadata`` file are read
by the format of that file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO, NamedTuple

from beam_tfrecord.core.account import AS_MANIFEST, FILES, JUNK, Account, AccountBuilder, Decision, merge_accounts
from beam_tfrecord.errors import AmbiguousManifestError, ManifestError, RowError
from beam_tfrecord.manifests.base import Files, Ignored, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.filenames import is_data_name, is_image_name, junk_part
from beam_tfrecord.manifests.formats.parquet import (
    FIRST_ROWS,
    Cells,
    first_cells,
    items_of_cells,
    opened_parquet,
    parquet_cells,
)
from beam_tfrecord.manifests.leftovers import reason_unused
from beam_tfrecord.manifests.picture_cells import BYTES, PATH, arrow_places, holds_pictures, picture_cell
from beam_tfrecord.manifests.siblings import parent, relative_files
from beam_tfrecord.manifests.split_names import SHARD, SPLIT_OF_NAME, is_split_folder, split_of_shard
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.json_text import Members, decode_json
from beam_tfrecord.manifests.text.lines import read_text
from beam_tfrecord.manifests.text.uri_text import folder_of, name_of, with_slash, without_slash
from beam_tfrecord.manifests.typed_tables import FirstCells, TypedTable, table_of
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.values import SPLIT_NAME

_DICT, _STATE, _INFO = "dataset_dict.json", "state.json", "dataset_info.json"
_ARROW = ".arrow"
_FILE_MAGIC = b"ARROW1\0\0"
_DEPTH = 3  # of the folders that are looked into for shards
_MOST_FOLDERS, _MOST_SHARDS = 50, 100_000


class _Shard(NamedTuple):
    """A file of a dataset. split: '' where nothing tells it. where: the folder that its configuration lies in."""

    uri: str
    split: str
    where: str = ""


class HuggingFaceFormat(ManifestFormat):
    """A folder of ``save_to_disk`` or of Parquet shards with pictures in them, or an Arrow file."""

    name = "huggingface"
    suffixes = (_ARROW,)
    counts_files = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether a folder has the files of ``save_to_disk``, or shards whose cells hold pictures."""
        if head:
            return head.startswith((b"\xff\xff\xff\xff", _FILE_MAGIC)) and uri.endswith(_ARROW)
        if not files.is_folder(uri):
            return False
        folder = _root(files, without_slash(uri))
        names = set(files.list_folder(folder))
        if _DICT in names or {_STATE, _INFO} <= names:
            return True
        shards = _parquet_in(files, folder, names, _MOST_FOLDERS)
        return bool(shards) and _has_pictures(files, shards[0])

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        is_file = files.is_file(uri)
        with readable(uri):
            shards = _shards(files, uri)
        known: dict[str, Sequence[Any]] = {}
        typed = [_table(files, shard.uri, config, known) for shard in shards]
        first = typed[0]
        for shard, other in zip(shards, typed, strict=True):
            if other.to_details() != first.to_details() or other.labels != first.labels:
                raise ManifestError(
                    f"{shards[0].uri} and {shard.uri} have other columns or classes: give each as an --input of its own"
                )
        has_splits = any(shard.split for shard in shards)
        decisions = [Decision("shards", f"{len(shards):,}, from {name_of(shards[0].uri)} on", "their names")]
        if has_splits and split is None:
            splits = ", ".join(dict.fromkeys(shard.split for shard in shards))
            decisions.append(Decision("split", splits, "the names of the shards and folders"))
        told = first.told(config)
        if not is_file:
            told["account"] = merge_accounts([told["account"], _account_of_files(files, uri, shards)])
        base = folder_of(uri) if is_file else without_slash(uri)
        return Source(
            uri,
            self.name,
            split,
            config.images if config.images is not None else base,
            details={
                "shards": [tuple(shard) for shard in shards],
                "counts_files": not is_file,
                **first.to_details(),
            },
            **{**told, "decisions": (*decisions, *told["decisions"])},
        )

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        """A piece is a shard, unless rows of several must be seen together."""
        roles = TypedTable.from_details(source.details).roles
        count = len(source.details["shards"])
        if roles.is_whole:
            yield Piece(source)
            return
        for number in range(count):
            yield Piece(source, number, number + 1)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        source = piece.source
        typed = TypedTable.from_details(source.details)
        shards = [_Shard(*shard) for shard in source.details["shards"]]
        if typed.roles.split is None and any(shard.split for shard in shards):
            typed = replace(typed, roles=replace(typed.roles, split=SPLIT_OF_NAME))
        if piece.start == 0 and not files.is_file(source.uri):
            junk = relative_files(files, source.uri)[1]
            if junk:
                yield Ignored(junk)
        own = shards[piece.start :] if piece.end < 0 else shards[piece.start : piece.end]
        yield from items_of_cells(_cells(files, source, own, typed), typed, files, source)


def _cells(files: Files, source: Source, shards: Sequence[_Shard], typed: TypedTable) -> Cells:
    """The cells of some shards, the split of each among them."""
    folder = with_slash(source.uri) if not files.is_file(source.uri) else with_slash(parent(source.uri))
    for shard in shards:
        read = arrow_cells if shard.uri.endswith(_ARROW) else parquet_cells
        for origin, cells in read(files, shard.uri, typed, name=shard.uri.removeprefix(folder)):
            yield origin, {**cells, SPLIT_OF_NAME: shard.split}


def _table(files: Files, uri: str, config: ManifestConfig, known: dict[str, Sequence[Any]]) -> TypedTable:
    """What the schema of a shard says. known: the first cells of an earlier shard, by which all are read; is filled."""

    def remembered(first: FirstCells) -> FirstCells:
        def cells(names: Sequence[str]) -> Mapping[str, Sequence[Any]]:
            if not known.keys() >= set(names):
                known.update(first(names))
            return known

        return cells

    if uri.endswith(_ARROW):
        with opened_arrow(files, uri) as (_, reader, schema):
            return table_of(schema, remembered(_first_cells(reader, schema)), config, uri)
    with opened_parquet(files, uri) as (_, table):
        return table_of(table.schema_arrow, remembered(first_cells(table)), config, uri)


def _first_cells(reader: Any, schema: Any) -> FirstCells:
    def cells(names: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        import pyarrow

        try:
            batch = pyarrow.ipc.read_record_batch(reader.read_next_message(), schema).slice(0, FIRST_ROWS)
        except StopIteration:
            return dict.fromkeys(names, ())
        return {name: batch.column(schema.get_field_index(name)).to_pylist() for name in names}

    return cells


# ---------------------------------------------------------------------------------------------------------------------
# Which files there are


def _shards(files: Files, uri: str) -> list[_Shard]:
    """The files of a dataset, in order. Raises ManifestError."""
    if files.is_file(uri):
        return [_Shard(uri, "")]
    if not files.is_folder(uri):
        raise ManifestError(f"{uri} does not exist")
    folder = _root(files, without_slash(uri))
    names = set(files.list_folder(folder))
    if _DICT in names:
        splits = _json(files, files.join(folder, _DICT)).raw("splits")
        if not isinstance(splits, list) or not splits or not all(isinstance(name, str) for name in splits):
            raise ManifestError(f"{files.join(folder, _DICT)} names no splits: save the dataset again")
        return [shard for name in splits for shard in _saved(files, files.join(folder, name), name)]
    if _STATE in names:
        return _saved(files, folder, "")
    found = _parquet_in(files, folder, names)
    if not found:
        raise ManifestError(
            f"{uri} is no dataset of Hugging Face: it has neither {_DICT} nor {_STATE}, and no Parquet shards"
        )
    return _complete(folder, found)


def _root(files: Files, folder: str) -> str:
    """The folder that holds a dataset: this one, or the only one in it, as in archives."""
    for _ in range(_DEPTH):
        names = [name for name in files.list_folder(folder) if junk_part(name.rstrip("/")) is None]
        folders = [name for name in names if name.endswith("/")]
        others = set(names) - set(folders)
        if len(folders) != 1 or any(not is_data_name(name) or name in (_DICT, _STATE) for name in others):
            break
        folder = files.join(folder, folders[0].rstrip("/"))
    return folder


def _saved(files: Files, folder: str, split: str) -> list[_Shard]:
    """The files that the state of a saved dataset names. Raises ManifestError."""
    uri = files.join(folder, _STATE)
    if not files.is_file(uri):
        raise ManifestError(f"{uri} is missing: the dataset in {folder} is not complete; save or copy it again")
    state = _json(files, uri)
    if state.raw("_indices_data_files"):
        raise ManifestError(
            f"{uri} names a choice of rows (_indices_data_files), which an old version of datasets wrote: save it "
            f"again with a newer one, after flatten_indices()"
        )
    try:
        named = [one.text("filename") for one in state.objects("_data_files") or []]
    except RowError as error:
        raise ManifestError(f"{uri}: {error.message}") from None
    for name in named:
        if not name or not files.is_file(files.join(folder, name)):
            raise ManifestError(f"{uri} names the file {name!r}, which is not there: save or copy the dataset again")
    if not named:
        raise ManifestError(f"{uri} names no files: the dataset has no rows")
    stated = state.raw("_split")
    own = split or (stated if isinstance(stated, str) and SPLIT_NAME.fullmatch(stated) else "")
    return [_Shard(files.join(folder, name), own) for name in named]


def _json(files: Files, uri: str) -> Members:
    try:
        return Members(decode_json(read_text(files, uri)), "")
    except ValueError as error:
        raise ManifestError(f"{uri} is no valid JSON: {error}") from None
    except RowError as error:
        raise ManifestError(f"{uri}: {error.message}") from None


def _parquet_in(files: Files, folder: str, names: set[str], most_folders: int = _MOST_SHARDS) -> list[_Shard]:
    """The Parquet files of a folder and of those in it, two deep; none where it holds images."""
    found: list[_Shard] = []
    asked = [("", sorted(names))]
    while asked and len(found) < _MOST_SHARDS:
        below, here = asked.pop(0)
        for name in here:
            path = below + name
            if junk_part(path.rstrip("/")) is not None:
                continue
            if is_image_name(name):
                return []
            if name.endswith("/"):
                if path.count("/") <= _DEPTH and len(asked) < most_folders:
                    asked.append((path, files.list_folder(files.join(folder, path.rstrip("/")))))
            elif name.lower().endswith(".parquet"):
                found.append(_of_name(files.join(folder, path), path))
    return found


def _of_name(uri: str, path: str) -> _Shard:
    """A shard, its split told by its name or by that of its folder."""
    above, _, name = path.rpartition("/")
    split = split_of_shard(name)
    stem = name.rpartition(".")[0]
    if not split and is_split_folder(stem):
        split = stem.lower()
    if not split and is_split_folder(name_of(above)):
        split, above = name_of(above).lower(), above.rpartition("/")[0]
    return _Shard(uri, split, above)


def _complete(folder: str, shards: Sequence[_Shard]) -> list[_Shard]:
    """The shards, sorted. Raises ManifestError for several datasets in one folder, and where shards are missing."""
    where = sorted({shard.where for shard in shards})
    if len(where) > 1:
        named = " or ".join(f"--input {folder}/{one}" if one else f"--input '{folder}/*.parquet'" for one in where[:3])
        raise AmbiguousManifestError(f"{folder} holds several datasets ({', '.join(where)}): say which, with {named}")
    if any(shard.split for shard in shards) and not all(shard.split for shard in shards):
        other = next(shard for shard in shards if not shard.split)
        raise AmbiguousManifestError(f"{other.uri} has the name of no split, unlike the others: move it away")
    numbers: dict[tuple[str, int], set[int]] = {}
    for shard in shards:
        found = SHARD.fullmatch(name_of(shard.uri))
        if found is not None:
            numbers.setdefault((shard.split, int(found["count"])), set()).add(int(found["number"]))
    for (split, count), there in numbers.items():
        absent = sorted(set(range(count)) - there)
        if absent:
            raise ManifestError(
                f"{folder}: of {count} shards{f' of the split {split}' if split else ''} number {absent[0]:05} is "
                f"missing: fetch it, or name those that are there with a glob, such as --input '{folder}/{split}*'"
            )
    return sorted(shards, key=lambda shard: (shard.split, shard.uri))


def _has_pictures(files: Files, shard: _Shard) -> bool:
    try:
        with opened_parquet(files, shard.uri) as (_, table):
            return any(holds_pictures(field.type) == "struct" for field in table.schema_arrow)
    except ManifestError:
        return False


def _account_of_files(files: Files, uri: str, shards: Sequence[_Shard]) -> Account:
    told = AccountBuilder()
    folder = with_slash(uri)
    used = {shard.uri for shard in shards}
    for info in files.walk(without_slash(uri)):
        path = info.uri.removeprefix(folder)
        told.find(FILES)
        if info.uri in used or name_of(path) in (_DICT, _STATE, _INFO):
            told.use(FILES, AS_MANIFEST)
        else:
            told.name(FILES, JUNK if junk_part(path) is not None else reason_unused(path, ()), path)
    return told.account()


# ---------------------------------------------------------------------------------------------------------------------
# Arrow streams (https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format)


@contextmanager
def opened_arrow(files: Files, uri: str) -> Iterator[tuple[BinaryIO, Any, Any]]:
    """The file behind its schema, a pyarrow.ipc.MessageReader of what follows, and the schema.

    A file of the other form of Arrow's is a stream behind its first eight bytes. Raises ManifestError, also from the
    body of the with statement.
    """
    import pyarrow

    with readable(uri), files.open(uri) as stream:
        try:
            if stream.read(len(_FILE_MAGIC)) != _FILE_MAGIC:
                stream.seek(0)
            reader = pyarrow.ipc.MessageReader.open_stream(stream)
            yield stream, reader, pyarrow.ipc.read_schema(reader.read_next_message())
        except (pyarrow.ArrowException, ValueError, StopIteration, EOFError, MemoryError) as error:
            raise ManifestError(f"{uri} cannot be read as Arrow: {error}: save the dataset again") from None


def arrow_cells(files: Files, uri: str, typed: TypedTable, name: str = "") -> Cells:
    """(origin, cells by column) of the rows of an Arrow file. name: of the file, for the names of its pictures."""
    import pyarrow

    number = 1
    plain = [column for column in typed.read_columns() if column in typed.header and column not in typed.pictures]
    with opened_arrow(files, uri) as (stream, reader, schema):
        while True:
            try:
                message = reader.read_next_message()
            except StopIteration:
                return
            if message.type != "record batch":
                raise ValueError(f"it has a {message.type}, and columns with dictionaries are not read")
            batch = pyarrow.ipc.read_record_batch(message, schema)
            batch.validate(full=True)  # places within it are believed by all that follows
            start = stream.tell() - message.body.size
            places, paths = {}, {}
            for column in typed.picture_columns():
                array = batch.column(schema.get_field_index(column))
                parts = {}
                if typed.pictures[column] == "struct":  # of a struct that is null its parts are, too
                    parts = {part.name: own for part, own in zip(array.type, array.flatten(), strict=True)}
                places[column] = list(arrow_places(parts.get(BYTES, array), message.body, start))
                paths[column] = parts[PATH].to_pylist() if PATH in parts else [None] * len(array)
            for place, cells in enumerate(batch.select(plain).to_pylist() if plain else [{}] * batch.num_rows):
                found = {
                    column: picture_cell(uri, name, number, column, own[place], paths[column][place])
                    for column, own in places.items()
                }
                yield f"{uri}:{number}", {**cells, **found}
                number += 1
