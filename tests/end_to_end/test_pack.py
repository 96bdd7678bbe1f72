"""``beam-tfrecord pack`` and ``unpack`` as a user runs them; archives are looked at with tarfile."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord import convert
from pipelines.main import main
from tests.end_to_end.datasets import break_renaming, shard_files
from tests.samples import class_folders, write_files

Captured = pytest.CaptureFixture[str]
ENDINGS = [".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz"]


def run(command: str, *arguments: str | Path) -> int:
    return main([command, *(str(argument) for argument in arguments)])


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_files(folder / "photos", class_folders())
    convert(str(folder / "photos"), folder / "out", num_shards=3, index=True)
    return folder / "out"


@pytest.fixture(scope="module")
def archive(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "out.tar"
    assert run("pack", made, "--output", path, "--quiet") == 0
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_there_and_back_is_the_same(made: Path, tmp_path: Path, ending: str) -> None:
    packed = tmp_path / f"out{ending}"
    assert run("pack", made, "--output", packed, "--quiet") == 0
    magic = {".tar": b"conversion.json", ".gz": b"\x1f\x8b\x08\x00\0\0\0\0", ".tgz": b"\x1f\x8b\x08\x00\0\0\0\0"}
    assert packed.read_bytes().startswith(magic.get(packed.suffix, b"\xfd7zXZ\0"))  # no time and no name in gzip
    (tmp_path / "no_ending").write_bytes(packed.read_bytes())
    assert run("unpack", tmp_path / "no_ending", "--output", tmp_path / "back") == 0
    assert files_in(tmp_path / "back") == files_in(made)
    assert run("verify", tmp_path / "back", "--decoder", "pillow") == 0


@pytest.mark.parametrize("ending", [".tar", ".tar.gz", ".tar.xz"])
def test_the_same_dataset_gives_the_same_archive(made: Path, tmp_path: Path, ending: str) -> None:
    copied = tmp_path / "copied"
    copied.mkdir()
    for path in sorted(made.iterdir(), reverse=True):
        (copied / path.name).write_bytes(path.read_bytes())
        (copied / path.name).chmod(0o600)
    for number, folder in enumerate((made, copied)):
        assert run("pack", folder, "--output", tmp_path / f"{number}{ending}", "--quiet") == 0
    assert (tmp_path / f"0{ending}").read_bytes() == (tmp_path / f"1{ending}").read_bytes()


def test_other_tools_read_the_archive(made: Path, archive: Path) -> None:
    with tarfile.open(archive) as opened:
        members = opened.getmembers()
        found = {member.name: opened.extractfile(member).read() for member in members}  # type: ignore[union-attr]
    assert found == files_in(made)
    names = [member.name for member in members]
    assert names[0] == "conversion.json"
    assert names[-1] == "dataset_info.json"
    first = names.index("train-00000-of-00003.tfrecord")
    assert names[1:first] == sorted(names[1:first])
    assert names[first:-1] == sorted(names[first:-1])
    for member in members:
        assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (0, 0, 0, "", "")
        assert member.isreg()
        assert not member.pax_headers


def test_only_files_of_the_dataset_are_packed(made: Path, archive: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "out")
    (folder / "notes.txt").write_text("mine")
    (folder / ".staging").mkdir()
    (folder / "train-00000-of-00009.tfrecord").write_bytes(b"left over")
    assert run("pack", folder, "--output", tmp_path / "out.tar", "--quiet") == 0
    assert (tmp_path / "out.tar").read_bytes() == archive.read_bytes()


def test_what_there_is_to_tell(made: Path, tmp_path: Path, capsys: Captured) -> None:
    assert run("pack", made, "--output", tmp_path / "out.tar.gz", "--json") == 0
    output = capsys.readouterr()
    told = json.loads(output.out)
    files = files_in(made)
    assert (told["files"], told["bytes"]) == (len(files), sum(map(len, files.values())))
    assert told["packed_bytes"] == (tmp_path / "out.tar.gz").stat().st_size
    assert set(told["sizes"]) == {"none", "gzip", "zlib", "xz"}
    size = sum(path.stat().st_size for path in shard_files(made))
    assert told["sizes"]["none"]["estimated_bytes"] == told["sample"]["bytes"] == size
    assert "measured on all 9 records" in output.err
    assert run("unpack", tmp_path / "out.tar.gz", "--output", tmp_path / "back", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["records"], told["shards"], told["files"]) == (9, 3, len(files))


def test_the_table_alone(made: Path, capsys: Captured) -> None:
    before = files_in(made)
    assert run("pack", made, "--sizes", "--sample", "1KiB") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "a sample of 3 of 9 records" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["none", "gzip", "zlib", "xz"]
    assert run("pack", made, "--sizes", "--json") == 0
    assert json.loads(capsys.readouterr().out)["sample"]["is_all"] is True
    assert files_in(made) == before


# ---------------------------------------------------------------------------------------------------------------------
# Damage


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("train-00001-of-00003.tfrecord", lambda data: data[:-1] + bytes([data[-1] ^ 1]), "the crc32c of"),
        ("train-00001-of-00003.tfrecord", lambda data: data[:-1], "bytes, but"),
        ("train-00001-of-00003.tfrecord", None, "is not there"),
        ("train-00001-of-00003.tfrecord.idx", lambda data: b"0 20\n", "not the index of"),
        ("features.json", lambda data: data[:-5], "is damaged"),
        ("features.json", None, "is not there"),
        ("dataset_info.json", None, "is not complete"),
        ("conversion.json", None, "no finished dataset"),
    ],
)
@pytest.mark.parametrize("ending", [".tar", ".tar.xz"])
def test_a_damaged_dataset_is_not_packed(
    made: Path,
    tmp_path: Path,
    capsys: Captured,
    name: str,
    change: Callable[[bytes], bytes] | None,
    told: str,
    ending: str,
) -> None:
    folder = shutil.copytree(made, tmp_path / "out")
    if change is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(change((folder / name).read_bytes()))
    target = tmp_path / "archives"
    assert run("pack", folder, "--output", target / f"out{ending}", "--quiet") == 1
    said = capsys.readouterr().err
    assert told in said
    assert "Traceback" not in said
    assert not target.exists() or list(target.iterdir()) == []


def unpacked(packed: Path, out: Path) -> int:
    """Unpack; when that fails nothing may be left."""
    status = run("unpack", packed, "--output", out)
    if status:
        assert not out.exists() or list(out.iterdir()) == []
    return status


@pytest.mark.parametrize("kind", ["tar", "gz", "xz"])
def test_every_cut_of_an_archive_is_noticed(archive: Path, tmp_path: Path, kind: str, capsys: Captured) -> None:
    plain = archive.read_bytes()
    data = {"tar": plain, "gz": gzip.compress(plain), "xz": lzma.compress(plain)}[kind]
    whole = len(data) if kind != "tar" else len(plain.rstrip(b"\0"))
    for share in (0.0, 0.001, 0.02, 0.3, 0.7, 0.99):
        (tmp_path / "cut").write_bytes(data[: int(whole * share)])
        assert unpacked(tmp_path / "cut", tmp_path / "out") == 1
    (tmp_path / "cut").write_bytes(data[: whole - 1])
    assert unpacked(tmp_path / "cut", tmp_path / "out") == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_flipped_bit_of_a_shard_is_noticed(made: Path, archive: Path, tmp_path: Path, capsys: Captured) -> None:
    data = bytearray(archive.read_bytes())
    shard = (made / "train-00002-of-00003.tfrecord").read_bytes()
    data[data.index(shard) + len(shard) // 2] ^= 8
    (tmp_path / "flipped.tar").write_bytes(data)
    assert unpacked(tmp_path / "flipped.tar", tmp_path / "out") == 1
    assert "the crc32c of train-00002-of-00003.tfrecord" in capsys.readouterr().err
    for packed in (gzip.compress(archive.read_bytes()), lzma.compress(archive.read_bytes())):
        damaged = bytearray(packed)
        damaged[len(packed) // 2] ^= 8
        (tmp_path / "flipped").write_bytes(damaged)
        assert unpacked(tmp_path / "flipped", tmp_path / "out") == 1


def rewritten(archive: Path, target: Path, change: Callable[[dict[str, bytes]], list[tuple[str, bytes]]]) -> Path:
    """The archive with other members."""
    with tarfile.open(archive) as opened:
        members = {m.name: opened.extractfile(m).read() for m in opened.getmembers()}  # type: ignore[union-attr]
    with tarfile.open(target, "w") as made:
        for name, data in change(members):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return target


def changed_conversion(members: dict[str, bytes], change: Callable[[dict[str, Any]], object]) -> bytes:
    values = json.loads(members["conversion.json"])
    change(values)
    return json.dumps(values).encode()


HOSTILE: dict[str, Callable[[dict[str, bytes]], list[tuple[str, bytes]]]] = {
    "a stranger": lambda m: [*list(m.items())[:3], ("evil.sh", b"rm"), *list(m.items())[3:]],
    "a path": lambda m: [*list(m.items())[:3], ("../evil", b"x"), *list(m.items())[3:]],
    "twice": lambda m: [*list(m.items())[:3], list(m.items())[2], *list(m.items())[3:]],
    "another order": lambda m: list(m.items())[::-1],
    "a part": lambda m: [item for item in m.items() if item[0] != "features.json"],
    "without its last file": lambda m: list(m.items())[:-1],
    "empty": lambda m: [],
    "a longer shard": lambda m: [(name, data + b"x" * name.endswith("tfrecord")) for name, data in m.items()],
    "a long index": lambda m: [(name, b"0 20\n" * 500 if name.endswith(".idx") else data) for name, data in m.items()],
    "many warnings": lambda m: [
        (name, b"\n" * 2**21 if name == "warnings.jsonl" else data) for name, data in m.items()
    ],
    "no json": lambda m: [(name, b"[" if name == "conversion.json" else data) for name, data in m.items()],
    "a list": lambda m: [(name, b"[]" if name == "conversion.json" else data) for name, data in m.items()],
    "a named path": lambda m: [
        ("conversion.json", changed_conversion(m, lambda values: values["files"].append("../../evil"))),
        *list(m.items())[1:],
    ],
    "a shard that is metadata": lambda m: [
        (
            "conversion.json",
            changed_conversion(m, lambda values: values["files"].append("train-00000-of-00003.tfrecord")),
        ),
        *list(m.items())[1:],
    ],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_archive_that_pack_did_not_make_is_refused(
    archive: Path, tmp_path: Path, capsys: Captured, kind: str
) -> None:
    folder = tmp_path / "below"
    folder.mkdir()
    packed = rewritten(archive, tmp_path / "hostile.tar", HOSTILE[kind])
    assert unpacked(packed, folder / "out") == 1
    said = capsys.readouterr().err
    assert str(packed) in said
    assert "Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["below", "hostile.tar"]
    assert [path.name for path in folder.iterdir() if path.name != "out"] == []


def test_what_follows_the_dataset_is_refused(archive: Path, tmp_path: Path) -> None:
    bomb = gzip.compress(archive.read_bytes() + bytes(2**22))
    (tmp_path / "bomb.tar.gz").write_bytes(bomb)
    assert unpacked(tmp_path / "bomb.tar.gz", tmp_path / "out") == 1


def test_wrong_options_are_told(made: Path, archive: Path, tmp_path: Path, capsys: Captured) -> None:
    wrong = [
        (["pack", made], "--output FILE for an archive, or --sizes"),
        (["pack", made, "--sizes", "--output", tmp_path / "a.tar"], "--output FILE for an archive, or --sizes"),
        (["pack", made, "--output", tmp_path / "a.zip"], "must end in .tar"),
        (["pack", made, "--output", archive], "give --overwrite"),
        (["pack", made, "--output", tmp_path], "must end in"),
        (["pack", made, made, "--sizes"], "one place too many"),
        (["pack", made, "--sizes", "--sample", "x"], "must be a size"),
        (["unpack", archive], "--output is needed"),
        (["unpack", tmp_path / "nothing.tar", "--output", tmp_path / "o"], "there is no such file or folder"),
        (["unpack", archive, "--output", made], "give --overwrite"),
        (["unpack", archive, "--output", archive.parent], "holds other files"),
    ]
    for line, told in wrong:
        assert run(*(str(part) for part in line)) == 2, line
        assert told in capsys.readouterr().err
    assert run("pack", made, "--output", archive, "--overwrite", "--quiet") == 0


def test_a_dataset_is_replaced_only_by_a_whole_one(made: Path, archive: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_files(tmp_path / "photos", class_folders())
    convert(str(tmp_path / "photos"), out, num_shards=1)
    before = files_in(out)
    (tmp_path / "cut.tar").write_bytes(archive.read_bytes()[:-20_000])
    assert run("unpack", tmp_path / "cut.tar", "--output", out, "--overwrite") == 1
    assert files_in(out) == before
    assert run("unpack", archive, "--output", out, "--overwrite") == 0
    assert files_in(out) == files_in(made)


def test_a_failed_publication_can_be_repeated(
    made: Path, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        break_renaming(patched, at=3)
        assert run("unpack", archive, "--output", out) == 1
    assert not (out / "dataset_info.json").exists()
    assert run("unpack", archive, "--output", out) == 0
    assert files_in(out) == files_in(made)
