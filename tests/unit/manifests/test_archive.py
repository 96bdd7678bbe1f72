"""Archives: what lies in them, how it is read, and what is refused."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.core.elements import Member, Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.archives.files import RangedFiles
from beam_tfrecord.manifests.archives.members import UnpackedArchives, member_uri, read_member
from beam_tfrecord.manifests.formats.archive import ArchiveFormat
from tests.contracts import ManifestFormatContract, Sample, describe, ignored_in, read, rejects_of, rows_of
from tests.local_files import LocalFiles

FORMAT = ArchiveFormat()
Members = Sequence[tuple[str, Any]]


def picture(number: int) -> bytes:
    """Bytes that stand for an image: their own for each number, of another length, and not all alike."""
    return b"\xff\xd8\xff" + bytes((number * 7 + i * i) % 251 for i in range(300 + 211 * number))


def tar_bytes(members: Members, mode: str = "w", kind: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar: (name, bytes), (name, None) for a folder, (name, "-> target") for a link, (name, type) for what else."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=kind) as archive:  # type: ignore[call-overload]
        for name, data in members:
            info = tarfile.TarInfo(name)
            if isinstance(data, bytes) and len(data) > 1:
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
                continue
            if isinstance(data, str):
                info.type = tarfile.LNKTYPE if data.startswith("=>") else tarfile.SYMTYPE
                info.linkname = data[3:]
            else:
                info.type = tarfile.DIRTYPE if data is None else data
            archive.addfile(info)
    return buffer.getvalue()


def zip_bytes(members: Members, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members:
            archive.writestr(name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


class _Unseekable(io.RawIOBase):
    """A pipe: zipfile then writes sizes and checksums behind the data."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += bytes(data)
        return len(data)


def streamed_zip(members: Members) -> bytes:
    pipe = _Unseekable()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[arg-type]
        for name, data in members:
            archive.writestr(name, data)
    return bytes(pipe.data)


CLASSES: Members = [(f"{'cat' if number < 3 else 'dog'}/{number}.jpg", picture(number)) for number in range(6)]
OF_CLASS = {label: [(n.split("/")[1], d) for n, d in CLASSES if n.startswith(label)] for label in ("cat", "dog")}


def nested(pack_inner: Callable[[Members], bytes], suffix: str) -> Members:
    """Members of an outer archive that holds one archive per class."""
    return [(f"{label}{suffix}", pack_inner(members)) for label, members in OF_CLASS.items()]


def gz(members: Members) -> bytes:
    return tar_bytes(members, "w:gz")


KINDS: dict[str, bytes] = {
    "a.zip": zip_bytes(CLASSES),
    "stored.zip": zip_bytes(CLASSES, zipfile.ZIP_STORED),
    "bzip2.zip": zip_bytes(CLASSES, zipfile.ZIP_BZIP2),
    "streamed.zip": streamed_zip(CLASSES),
    "pax.tar": tar_bytes(CLASSES),
    "gnu.tar": tar_bytes(CLASSES, kind=tarfile.GNU_FORMAT),
    "ustar.tar": tar_bytes(CLASSES, kind=tarfile.USTAR_FORMAT),
    "appended.tar": tar_bytes(CLASSES[:2]) + tar_bytes(CLASSES[2:]),
    "a.tar.gz": tar_bytes(CLASSES, "w:gz"),
    "two_parts.tar.gz": gz(CLASSES[:2]) + gz(CLASSES[2:]),
    "a.tar.bz2": tar_bytes(CLASSES, "w:bz2"),
    "a.tar.xz": tar_bytes(CLASSES, "w:xz"),
    "misnamed.zip": tar_bytes(CLASSES, "w:gz"),
    "tar_in.tar": tar_bytes(nested(tar_bytes, ".tar")),
    "tar_in.tar.gz": gz(nested(tar_bytes, ".tar")),
    "tar_in.zip": zip_bytes(nested(tar_bytes, ".tar")),
    "tar_in_stored.zip": zip_bytes(nested(tar_bytes, ".tar"), zipfile.ZIP_STORED),
    "gz_in.tar": tar_bytes(nested(gz, ".tar.gz")),
    "gz_in.zip": zip_bytes(nested(gz, ".tgz")),
    "gz_in.tar.xz": tar_bytes(nested(gz, ".tar.gz"), "w:xz"),
    "zip_in.tar": tar_bytes(nested(zip_bytes, ".zip")),
    "zip_in.tar.gz": gz(nested(zip_bytes, ".zip")),
    "zip_in.zip": zip_bytes(nested(zip_bytes, ".zip")),
}


def written(folder: Path, data: bytes, name: str = "data.tar", **options: Any) -> Sample:
    path = folder / name
    path.write_bytes(data)
    return Sample(str(path), [], options=options)


def numbers(items: Sequence[Any], unpacked: UnpackedArchives | None = None) -> list[int]:
    """The number of the picture that each row's member holds, read by its place."""
    reader = RangedFiles(LocalFiles())
    members = [item.fields["member"] for item in items if isinstance(item, Row)]
    found = [read_member(reader, member, unpacked=unpacked) for member in members]
    known = {picture(number): number for number in range(10)}
    return [known[data] for data in found]


class TestZip(ManifestFormatContract):
    format = FORMAT

    def sample(self, folder: Path) -> Sample:
        data = zip_bytes([("cat/", b""), *CLASSES, ("__MACOSX/cat/._0.jpg", b"x"), ("README.txt", b"hello")])
        sample = written(folder, data, "photos.zip")
        rows = []
        with zipfile.ZipFile(sample.uri) as archive:
            for name, _ in CLASSES:
                info = archive.getinfo(name)
                member = Member(sample.uri, (name,), info.header_offset, info.compress_size, "zip")
                fields = {"image": name, "label": name.split("/", 1)[0], "member": member}
                rows.append((f"{sample.uri}!/{name}", fields))
        return Sample(sample.uri, rows, ignored=2)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return written(folder, zip_bytes([(f"x/{name}", b"x") for name in names]), "photos.zip")

    def damaged(self, folder: Path) -> Sample:
        data = bytearray(zip_bytes([*CLASSES[:1], ("cat/1.jpg", b"secret" * 9)]))
        for signature, flags in (
            (b"PK\3\4", 6),
            (b"PK\1\2", 8),
        ):  # set the bit that says encrypted, for the second entry
            place = data.index(signature, data.index(signature) + 1)
            data[place + flags] |= 1
        sample = written(folder, bytes(data), "photos.zip")
        good = rows_of(read(FORMAT, written(folder, zip_bytes(CLASSES[:1]), "good.zip")))[0][1]
        member = Member(sample.uri, ("cat/0.jpg",), good["member"].offset, good["member"].length, "zip")
        return Sample(
            sample.uri,
            [(f"{sample.uri}!/cat/0.jpg", {"image": "cat/0.jpg", "label": "cat", "member": member})],
            [(f"{sample.uri}!/cat/1.jpg", "encrypted_archive")],
        )

    def empty(self, folder: Path) -> Sample:
        return written(folder, zip_bytes([]), "photos.zip")


class TestTarGz(ManifestFormatContract):
    format = FORMAT

    def sample(self, folder: Path) -> Sample:
        data = gz(
            [("train", None), *((f"train/{name}", data) for name, data in CLASSES), ("test/cat/9.jpg", picture(9))]
        )
        sample = written(folder, data, "photos.tgz")
        container = Member(sample.uri, (), 0, -1, "gzip")
        rows = []
        with tarfile.open(sample.uri) as archive:
            for info in sorted(archive, key=lambda info: info.name):
                if info.isfile():
                    split, label, _ = info.name.split("/")
                    member = Member(sample.uri, (info.name,), info.offset_data, info.size, "stored", container)
                    fields = {"image": info.name, "label": label, "split": split, "member": member}
                    rows.append((f"{sample.uri}!/{info.name}", fields))
        return Sample(sample.uri, rows)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return written(folder, gz([(f"x/{name}", b"xx") for name in names]), "photos.tgz")

    def damaged(self, folder: Path) -> Sample:
        sample = written(folder, gz([*CLASSES[:1], ("../../out.jpg", picture(1))]), "photos.tgz")
        member = Member(
            sample.uri, ("cat/0.jpg",), 512, len(picture(0)), "stored", Member(sample.uri, (), 0, -1, "gzip")
        )
        good = [(f"{sample.uri}!/cat/0.jpg", {"image": "cat/0.jpg", "label": "cat", "member": member})]
        return Sample(sample.uri, good, [(f"{sample.uri}!/../../out.jpg", "unsafe_path")])

    def empty(self, folder: Path) -> Sample:
        return written(folder, gz([("cat", None)]), "photos.tgz")


# ---------------------------------------------------------------------------------------------------------------------
# Every kind, every nesting


@pytest.mark.parametrize("name", KINDS)
def test_members_of_all_kinds_of_archives_are_read_by_their_place(tmp_path: Path, name: str) -> None:
    items = read(FORMAT, written(tmp_path, KINDS[name], name))
    assert rejects_of(items) == []
    assert [(f["image"], f["label"]) for _, f in rows_of(items)] == [(n, n.split("/", 1)[0]) for n, _ in CLASSES]
    assert numbers(items) == list(range(6))
    unpacked = UnpackedArchives()
    assert numbers(items[::-1], unpacked) == list(range(6))[::-1]
    unpacked.close()
    for origin, fields in rows_of(items):
        assert origin == member_uri(fields["member"])
        assert origin.endswith(fields["image"].split("/")[1])


def test_archives_in_an_archive_are_named_with_all_that_leads_to_a_member(tmp_path: Path) -> None:
    sample = written(tmp_path, KINDS["tar_in.tar"], "imagenet.tar")
    assert rows_of(read(FORMAT, sample))[0][0] == f"{sample.uri}!/cat.tar!/0.jpg"


def test_an_inner_archive_with_one_folder_of_its_own_name_is_that_folder(tmp_path: Path) -> None:
    inner = [(f"{split}.zip", zip_bytes([(f"{split}/{n}", d) for n, d in CLASSES])) for split in ("train", "test")]
    items = read(FORMAT, written(tmp_path, zip_bytes(inner), "data.zip"))
    assert {(f["split"], f["label"]) for _, f in rows_of(items)} == {
        (split, label) for split in ("train", "test") for label in ("cat", "dog")
    }
    assert numbers(items) == [*range(6), *range(6)]


def test_archives_inside_of_those_are_files_like_any_other(tmp_path: Path) -> None:
    inner = tar_bytes([("0.jpg", picture(0)), ("more.tar", tar_bytes(CLASSES))])
    items = read(FORMAT, written(tmp_path, tar_bytes([("cat.tar", inner)])))
    assert [fields["image"] for _, fields in rows_of(items)] == ["cat/0.jpg", "cat/more.tar"]


def test_a_wrapping_folder_means_nothing(tmp_path: Path) -> None:
    items = read(FORMAT, written(tmp_path, tar_bytes([(f"./photos/{name}", data) for name, data in CLASSES])))
    assert [f["label"] for _, f in rows_of(items)] == ["cat"] * 3 + ["dog"] * 3
    assert numbers(items) == list(range(6))


def test_long_names_and_those_that_are_not_ascii(tmp_path: Path) -> None:
    names = ["k/" + "ü" * 150 + ".jpg", "k/" + "/".join(["deep"] * 60) + ".jpg"]
    for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        sample = written(tmp_path, tar_bytes([(n, picture(1)) for n in names], kind=kind), label_pattern="(?P<label>k)")
        items = read(FORMAT, sample)
        assert sorted(fields["image"] for _, fields in rows_of(items)) == sorted(names)
        assert numbers(items) == [1, 1]


def test_several_members_of_one_name_are_several_rows(tmp_path: Path) -> None:
    items = read(FORMAT, written(tmp_path, tar_bytes([("a/0.jpg", picture(1)), ("a/0.jpg", picture(2))])))
    assert numbers(items) == [1, 2]


def test_a_zip_with_64_bit_sizes(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(zipfile.ZipInfo("cat/0.jpg"), "w", force_zip64=True) as stream,
    ):
        stream.write(picture(0))
    assert numbers(read(FORMAT, written(tmp_path, buffer.getvalue(), "a.zip"))) == [0]


# ---------------------------------------------------------------------------------------------------------------------
# Manifests inside

MANIFEST = b"image,label\nimages/0.jpg,x\n./images/1.jpg,y\nimages/gone.jpg,x\n/etc/passwd,x\n../../up.jpg,y\n"


@pytest.mark.parametrize("above", ["", "set/"])
@pytest.mark.parametrize("pack", [zip_bytes, tar_bytes, gz])
def test_a_manifest_names_images_of_its_archive(tmp_path: Path, above: str, pack: Callable[[Members], bytes]) -> None:
    members = [(f"{above}images/{n}.jpg", picture(n)) for n in range(3)] + [(f"{above}data.csv", MANIFEST)]
    sample = written(tmp_path, pack(members), "data.bin")
    assert describe(FORMAT, sample).base == f"{sample.uri}!/{above}".rstrip("/")
    items = read(FORMAT, sample)
    manifest = f"{sample.uri}!/{above}data.csv"
    assert [(o, f["image"], f["label"]) for o, f in rows_of(items)] == [
        (f"{manifest}:2", "images/0.jpg", "x"),
        (f"{manifest}:3", "./images/1.jpg", "y"),
    ]
    assert numbers(items) == [0, 1]
    assert rejects_of(items) == [
        (f"{manifest}:4", "missing_file"),
        (f"{manifest}:5", "unsafe_path"),
        (f"{manifest}:6", "unsafe_path"),
    ]


def test_an_encrypted_image_of_a_manifest_is_told_as_such(tmp_path: Path) -> None:
    data = bytearray(zip_bytes([("0.jpg", picture(0)), ("1.jpg", picture(1)), ("d.csv", b"image\n0.jpg\n1.jpg\n")]))
    for signature, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(signature, data.index(signature) + 1) + flags] |= 1
    items = read(FORMAT, written(tmp_path, bytes(data), "a.zip"))
    assert numbers(items) == [0]
    assert [code for _, code in rejects_of(items)] == ["encrypted_archive"]


def test_images_of_a_manifest_may_lie_outside_when_they_are_said_to(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").write_bytes(b"x")
    sample = written(tmp_path, zip_bytes([("d.csv", b"image\na.jpg\n")]), "a.zip", images=str(tmp_path / "images"))
    assert describe(FORMAT, sample).base == str(tmp_path / "images")
    assert [fields for _, fields in rows_of(read(FORMAT, sample))] == [{"image": "a.jpg"}]


def test_masks_get_their_places_too(tmp_path: Path) -> None:
    table = b"image,mask\n0.jpg,m/1.jpg\n2.jpg,\n"
    members = [("0.jpg", picture(0)), ("2.jpg", picture(2)), ("m/1.jpg", picture(1)), ("d.csv", table)]
    sample = written(tmp_path, zip_bytes(members), "a.zip", mask_column="mask")
    rows = [fields for _, fields in rows_of(read(FORMAT, sample))]
    assert read_member(RangedFiles(LocalFiles()), rows[0]["mask_member"]) == picture(1)
    assert "mask_member" not in rows[1]


# ---------------------------------------------------------------------------------------------------------------------
# What is refused


@pytest.mark.parametrize(
    "name", ["../up.jpg", "cat/../../up.jpg", "/abs.jpg", "C:/windows.jpg", "c:rel.jpg", "cat\\a.jpg", "..\\up.jpg"]
)
@pytest.mark.parametrize("pack", [zip_bytes, tar_bytes])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str, pack: Callable[[Members], bytes]) -> None:
    sample = written(tmp_path, pack([*CLASSES, (name, picture(7))]), "a.bin")
    items = read(FORMAT, sample)
    assert numbers(items) == list(range(6))
    assert rejects_of(items) == [(f"{sample.uri}!/{name}", "unsafe_path")]


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("-> /etc/passwd", "unsafe_path"),
        ("-> ../../secret.jpg", "unsafe_path"),
        ("-> ../cat/nothing.jpg", "missing_file"),
        ("-> ../cat", "missing_file"),
        ("-> link.jpg", "missing_file"),
        ("=> /etc/passwd", "unsafe_path"),
        ("=> ../up.jpg", "unsafe_path"),
        ("=> cat/nothing.jpg", "missing_file"),
    ],
)
def test_links_that_lead_nowhere_are_refused(tmp_path: Path, target: str, code: str) -> None:
    sample = written(tmp_path, tar_bytes([*CLASSES, ("dog/link.jpg", target)]))
    items = read(FORMAT, sample)
    assert numbers(items) == list(range(6))
    assert rejects_of(items) == [(f"{sample.uri}!/dog/link.jpg", code)]


def test_links_to_members_are_followed(tmp_path: Path) -> None:
    links = [("dog/a.jpg", "-> ../cat/1.jpg"), ("dog/b.jpg", "=> cat/2.jpg"), ("cat/c.jpg", "-> ../dog/a.jpg")]
    items = read(FORMAT, written(tmp_path, tar_bytes([*links, *CLASSES])))
    found = {fields["image"]: number for (_, fields), number in zip(rows_of(items), numbers(items), strict=True)}
    assert (found["dog/a.jpg"], found["dog/b.jpg"], found["cat/c.jpg"]) == (1, 2, 1)


def test_links_in_a_zip_are_followed_or_refused(tmp_path: Path) -> None:
    def link(name: str) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name)
        info.create_system = 3
        info.external_attr = 0o120777 << 16
        return info

    members: Members = [*CLASSES, (link("dog/a.jpg"), b"../cat/1.jpg"), (link("dog/b.jpg"), b"/etc/passwd")]
    items = read(FORMAT, written(tmp_path, zip_bytes(members), "a.zip"))
    assert numbers(items) == [0, 1, 2, 3, 4, 5, 1]
    assert [code for _, code in rejects_of(items)] == ["unsafe_path"]


def test_devices_and_pipes_are_ignored(tmp_path: Path) -> None:
    others: Members = [("cat/fifo", tarfile.FIFOTYPE), ("cat/null", tarfile.CHRTYPE)]
    items = read(FORMAT, written(tmp_path, tar_bytes([*others, *CLASSES])))
    assert numbers(items) == list(range(6))
    assert ignored_in(items) == 2


@pytest.mark.parametrize("pack", [tar_bytes, gz])
def test_a_cut_tar_is_read_up_to_the_cut(tmp_path: Path, pack: Callable[[Members], bytes]) -> None:
    whole = tar_bytes(CLASSES)
    place = whole.index(b"cat/2.jpg") + 512 + 10  # within the data of the third member
    data = whole[:place]
    if pack is gz:
        data = gz_of(data)
    items = read(FORMAT, written(tmp_path, data))
    assert numbers(items) == [0, 1]
    assert [code for _, code in rejects_of(items)] == ["damaged_archive"]
    assert rejects_of(items)[0][0].endswith("!/cat/2.jpg")


def gz_of(data: bytes) -> bytes:
    import gzip

    return gzip.compress(data)


def test_a_cut_compressed_tar_is_read_as_far_as_it_unpacks(tmp_path: Path) -> None:
    import random

    noise = random.Random(0)
    members = [(f"cat/{n}.jpg", noise.randbytes(100_000)) for n in range(5)]
    data = gz(members)
    sample = written(tmp_path, data[: int(len(data) * 0.5)], "a.tgz")
    items = read(FORMAT, sample)
    assert [fields["image"] for _, fields in rows_of(items)] == ["cat/0.jpg", "cat/1.jpg"]
    assert [code for _, code in rejects_of(items)] == ["damaged_archive"]
    unpacked = UnpackedArchives()
    for (_, fields), (_, content) in zip(rows_of(items), members, strict=False):
        assert read_member(RangedFiles(LocalFiles()), fields["member"], unpacked=unpacked) == content


def test_a_broken_header_costs_its_member_only(tmp_path: Path) -> None:
    data = bytearray(tar_bytes(CLASSES))
    data[data.index(b"cat/1.jpg") + 150] ^= 1  # in the checksum
    sample = written(tmp_path, bytes(data))
    items = read(FORMAT, sample)
    assert numbers(items) == [0, 2, 3, 4, 5]
    assert [code for _, code in rejects_of(items)] == ["damaged_archive"]
    assert "byte" in rejects_of(items)[0][0]


def test_a_damaged_inner_archive_costs_itself_only(tmp_path: Path) -> None:
    members = [("cat.tar", tar_bytes(OF_CLASS["cat"])), ("dog.tar", b"no archive" * 100)]
    sample = written(tmp_path, tar_bytes(members))
    items = read(FORMAT, sample)
    assert numbers(items) == [0, 1, 2]
    assert rejects_of(items) == [(f"{sample.uri}!/dog.tar", "damaged_archive")]


def test_an_inner_archive_packed_in_an_unknown_way_is_refused(tmp_path: Path) -> None:
    data = bytearray(KINDS["tar_in.zip"])
    data[8] = 99  # the method in the first local header
    items = read(FORMAT, written(tmp_path, bytes(data), "a.zip"))
    assert numbers(items) == [3, 4, 5]
    assert [code for _, code in rejects_of(items)] == ["damaged_archive"]


def test_an_archive_of_which_nothing_can_be_read_is_told_member_by_member(tmp_path: Path) -> None:
    items = read(FORMAT, written(tmp_path, tar_bytes([("../a.jpg", picture(1)), ("/b.jpg", picture(2))])))
    assert [code for _, code in rejects_of(items)] == ["unsafe_path", "unsafe_path"]


def test_an_unclear_layout_is_told_also_when_a_member_is_refused(tmp_path: Path) -> None:
    sample = written(tmp_path, tar_bytes([("a.jpg", picture(0)), ("cat/b.jpg", picture(1)), ("/c.jpg", picture(2))]))
    with pytest.raises(ManifestError, match="1 images in cat"):
        describe(FORMAT, sample)


def test_junk_that_cannot_be_read_is_not_missed(tmp_path: Path) -> None:
    items = read(FORMAT, written(tmp_path, tar_bytes([*CLASSES, (".git/link", "-> nowhere"), ("a.txt", "-> b.txt")])))
    assert rejects_of(items) == []
    assert ignored_in(items) == 2


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("cut.zip", zip_bytes(CLASSES)[:-30], "without a readable directory"),
        ("text.zip", b"this is text", "no zip or tar"),
        ("text.tar.gz", gz_of(b"this is text, not an archive" * 100), "holds no tar"),
        ("empty.tar", b"", "is empty"),
        ("zeros.tar", bytes(10_240), "no zip or tar"),
    ],
)
def test_what_is_no_archive_is_named(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    with pytest.raises(ManifestError, match=rf"{name}.*{said}"):
        describe(FORMAT, written(tmp_path, data, name))


def test_an_entry_that_is_said_to_lie_before_the_archive_is_refused(tmp_path: Path) -> None:
    data = bytearray(zip_bytes(CLASSES[:2]))
    end = data.index(b"PK\5\6")  # the place of the directory, said to be later than it is, moves all entries forward
    data[end + 16 : end + 20] = struct.pack("<I", struct.unpack_from("<I", data, end + 16)[0] + 10)
    items = read(FORMAT, written(tmp_path, bytes(data), "a.zip"))
    assert [code for _, code in rejects_of(items)] == ["damaged_archive"]


def test_an_entry_that_is_said_to_reach_behind_the_archive_is_refused(tmp_path: Path) -> None:
    data = bytearray(zip_bytes(CLASSES[:2]))
    place = data.index(b"PK\1\2")
    data[place + 20 : place + 24] = struct.pack("<I", 2**31 - 2)  # packed size in the directory
    items = read(FORMAT, written(tmp_path, bytes(data), "a.zip"))
    assert [code for _, code in rejects_of(items)] == ["damaged_archive"]
    assert numbers(items) == [1]


def test_an_entry_that_claims_to_be_huge_is_refused_by_its_claim(tmp_path: Path) -> None:
    data = bytearray(zip_bytes(CLASSES[:2]))
    place = data.index(b"PK\1\2")
    data[place + 24 : place + 28] = struct.pack("<I", 0xFFFFFFF0)  # unpacked size in the directory
    items = read(FORMAT, written(tmp_path, bytes(data), "a.zip"))
    assert [code for _, code in rejects_of(items)] == ["read_failed"]
    assert numbers(items) == [1]
