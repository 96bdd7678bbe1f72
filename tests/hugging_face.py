"""Files as Hugging Face's datasets 5.2 writes them, made with pyarrow: its schemas, its metadata, its names of files.

``IMAGE``, ``classes`` ... are the features that datasets puts into the schema as JSON, beside the Arrow type of each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.annotation_tools import write

PICTURE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
IMAGE = (PICTURE, {"_type": "Image"})
TEXT = (pa.string(), {"dtype": "string", "_type": "Value"})
WHOLE = (pa.int64(), {"dtype": "int64", "_type": "Value"})

Feature = tuple[Any, Any]


def classes(*names: str) -> Feature:
    return pa.int64(), {"names": list(names), "_type": "ClassLabel"}


def list_of(inner: Feature, length: int = -1) -> Feature:
    kind = pa.list_(inner[0], length) if length > 0 else pa.list_(inner[0])
    return kind, {"feature": inner[1], **({"length": length} if length > 0 else {}), "_type": "List"}


def sequence_of(columns: Mapping[str, Feature]) -> Feature:
    """A Sequence of several columns, as versions before 4 wrote it: a struct of lists."""
    kind = pa.struct({name: pa.list_(inner[0]) for name, inner in columns.items()})
    return kind, {"feature": {name: inner[1] for name, inner in columns.items()}, "_type": "Sequence"}


def struct(columns: Mapping[str, Feature]) -> Feature:
    return pa.struct({name: inner[0] for name, inner in columns.items()}), {n: f[1] for n, f in columns.items()}


def table(columns: Mapping[str, tuple[Feature, Sequence[Any]]]) -> pa.Table:
    """A table whose schema has the features as metadata."""
    told = json.dumps({"info": {"features": {name: feature[1] for name, (feature, _) in columns.items()}}})
    schema = pa.schema([(name, feature[0]) for name, (feature, _) in columns.items()], {"huggingface": told})
    arrays = [pa.array(values, feature[0]) for feature, values in columns.values()]
    return pa.Table.from_arrays(arrays, schema=schema)


def pictures(*data: bytes | None, path: str | None = "p{}.jpg") -> list[Any]:
    return [{"bytes": one, "path": path and path.format(number)} for number, one in enumerate(data)]


def parquet(path: Path, content: pa.Table, **options: Any) -> Path:
    """As ``to_parquet`` of datasets 5.2: columns of pictures are not compressed, and have no dictionary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = [f"{field.name}.bytes" for field in content.schema if field.type == PICTURE]
    defaults = {
        "compression": dict.fromkeys(plain, "NONE") if plain else "snappy",
        "use_dictionary": False,
        "row_group_size": 2,
    }
    pq.write_table(content, path, **{**defaults, **options})
    return path


def saved(folder: Path, content: pa.Table, shards: int = 1, split: str | None = None) -> Path:
    """As ``Dataset.save_to_disk``: Arrow streams, state.json and dataset_info.json."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"data-{number:05}-of-{shards:05}.arrow" for number in range(shards)]
    rows = -(-content.num_rows // shards)
    for number, name in enumerate(names):
        part = content.slice(number * rows, rows)
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, content.schema) as stream:
            stream.write_table(part, max_chunksize=2)
    features = json.loads(content.schema.metadata[b"huggingface"])["info"]["features"]
    info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
    write(folder / "dataset_info.json", info)
    state = {
        "_data_files": [{"filename": name} for name in names],
        "_fingerprint": "18481cc0857c69f7",
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": split,
    }
    write(folder / "state.json", state)
    return folder


def saved_dict(folder: Path, **splits: pa.Table) -> Path:
    """As ``DatasetDict.save_to_disk``."""
    for name, content in splits.items():
        saved(folder / name, content)
    write(folder / "dataset_dict.json", {"splits": list(splits)})
    return folder
