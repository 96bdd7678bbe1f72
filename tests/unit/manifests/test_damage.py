"""Damaged sources of all kinds: whatever the bytes are, the answer is rows, rejects or one of the stated errors."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beam_tfrecord.core.elements import Member, Row
from beam_tfrecord.errors import ConfigError, ImageError, ManifestError
from beam_tfrecord.manifests import FORMATS, describe_inputs
from beam_tfrecord.manifests.archives.files import RangedFiles
from beam_tfrecord.manifests.archives.members import UnpackedArchives, read_member
from beam_tfrecord.options.config import ManifestConfig
from tests.local_files import LocalFiles
from tests.unit.manifests.test_archive import KINDS, picture, zip_bytes

MUTANTS = 25  # of each source


def parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"image": ["a.jpg", "b.jpg"], "label": [1, 2]}), buffer)
    return buffer.getvalue()


SOURCES = {
    **KINDS,
    "manifest.zip": zip_bytes([("d.csv", b"image,label\n0.jpg,x\n"), ("0.jpg", picture(0))]),
    "a.csv": b'image,label,split\na.jpg,"x\ny",train\nb.jpg,z,TEST\n' * 3,
    "utf16.csv": "image,label\na.jpg,ü\n".encode("utf-16"),
    "a.tsv": b"image\tlabel\na.jpg\tx\n",
    "a.jsonl": b'{"image": "a.jpg", "label": ["x", 1]}\n' * 3,
    "a.txt": b"a.jpg 1\nb c.jpg 2\n",
    "a.parquet": parquet(),
}


def mutant(data: bytes, chance: random.Random) -> bytes:
    """The data with bytes changed, a part cut out, doubled, or the end missing."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        place = chance.randrange(len(changed)) if changed else 0
        kind = chance.random()
        if kind < 0.5 and changed:
            changed[place] = chance.randrange(256)
        elif kind < 0.65:
            del changed[place:]
        elif kind < 0.8:
            del changed[place : place + chance.randrange(1, 50)]
        else:
            changed[place:place] = changed[: chance.randrange(1, 600)]
    return bytes(changed)


def read_both_ways(member: Member, unpacked: UnpackedArchives) -> list[bytes | str]:
    found: list[bytes | str] = []
    for where in (unpacked, None):
        try:
            found.append(read_member(RangedFiles(LocalFiles()), member, unpacked=where))
        except ImageError as error:
            found.append(error.code)
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_damage_never_ends_in_anything_but_a_stated_error(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    path, files = tmp_path / name, LocalFiles()
    config = ManifestConfig(input=(str(path),))
    for _ in range(MUTANTS):
        path.write_bytes(mutant(SOURCES[name], chance))
        unpacked = UnpackedArchives()
        try:
            (source,) = describe_inputs(files, config)
            for piece in FORMATS[source.format].pieces(files, source):
                for item in FORMATS[source.format].rows(files, piece, config):
                    if isinstance(item, Row) and "member" in item.fields:
                        quick, slow = read_both_ways(item.fields["member"], unpacked)
                        assert quick == slow
        except (ManifestError, ConfigError):
            pass
        unpacked.close()
