"""What holds for every kind of storage that can be written. A subclass gives the fixtures ``storage`` and ``root``."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from beam_tfrecord.core.elements import Member
from beam_tfrecord.errors import ImageError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage import Storage, escape_glob

LITERAL_NAMES = [
    "plain.jpg",
    "with space.jpg",
    " leading and trailing ",
    "hash#1.jpg",
    "what?.jpg",
    "per%20cent.jpg",
    "%41.jpg",
    "brackets[1].jpg",
    "star*.jpg",
    "plus+and&=;,.jpg",
    "quote'\".jpg",
    "tilde~.jpg",
    "back\\slash.jpg",
    "ümläut-Straße.jpg",
    "日本語.jpg",
    "emoji-🍎.jpg",
    "u\u0308-decomposed.jpg",
    ".hidden",
]
# "-" and "." sort before "/", "0" after it: the order is that of the whole uri.
TREE = ["a-b.jpg", "a.jpg", "a/1.jpg", "a/2/deep.jpg", "a/b.png", "a0.jpg", "b/1.jpg", "b/.DS_Store"]


class StorageContract:
    """Tests of all operations; ``root`` is the uri of an empty folder."""

    def names(self, root: str) -> list[str]:
        """Names that a storage must hold. Azure Storage takes a backslash for a slash."""
        return [name for name in LITERAL_NAMES if not (root.startswith("az") and "\\" in name)]

    def test_names_are_literal_from_end_to_end(self, storage: Storage, root: str) -> None:
        folder = storage.join(root, "some folder#?")
        data = {storage.join(folder, name): name.encode() for name in self.names(root)}
        for uri, content in data.items():
            storage.write_bytes(uri, content)
        infos = [FileInfo(uri, len(data[uri])) for uri in sorted(data)]
        assert [info.uri for info in storage.walk(root)] == sorted(data)
        assert all(info.size in (None, len(data[info.uri])) for info in storage.walk(root))
        assert storage.list_folder(folder) == sorted(self.names(root))
        assert storage.sizes(data) == {info.uri: info.size for info in infos}
        assert {uri: storage.read(uri) for uri in data} == data
        for info in infos:
            assert storage.is_file(info.uri)
            assert [found.uri for found in storage.match(escape_glob(info.uri))] == [info.uri]
        storage.rename(infos[0].uri, storage.join(root, "moved %20#?[1]"))
        assert storage.read(storage.join(root, "moved %20#?[1]")) == data[infos[0].uri]
        storage.delete([info.uri for info in infos[1:]])
        assert [info.uri for info in storage.walk(root)] == [storage.join(root, "moved %20#?[1]")]

    def test_walk_is_sorted_by_the_whole_uri(self, storage: Storage, root: str) -> None:
        put(storage, root, TREE)
        assert [info.uri for info in storage.walk(root)] == sorted(f"{root}/{name}" for name in TREE)
        assert [info.uri for info in storage.walk(root + "/")] == sorted(f"{root}/{name}" for name in TREE)
        assert [info.uri for info in storage.walk(f"{root}/a")] == [
            f"{root}/{n}" for n in ("a/1.jpg", "a/2/deep.jpg", "a/b.png")
        ]

    GLOBS: ClassVar = [
        ("*.jpg", ["a-b.jpg", "a.jpg", "a0.jpg"]),
        ("a?.jpg", ["a0.jpg"]),
        ("a[!0-9]b.jpg", ["a-b.jpg"]),
        ("a[0-9].jpg", ["a0.jpg"]),
        ("*/1.jpg", ["a/1.jpg", "b/1.jpg"]),
        ("a/*", ["a/1.jpg", "a/b.png"]),
        ("b/*", ["b/.DS_Store", "b/1.jpg"]),
        ("**/*.jpg", ["a-b.jpg", "a.jpg", "a/1.jpg", "a/2/deep.jpg", "a0.jpg", "b/1.jpg"]),
        ("a/**", ["a/1.jpg", "a/2/deep.jpg", "a/b.png"]),
        ("**/deep.*", ["a/2/deep.jpg"]),
        ("*", ["a-b.jpg", "a.jpg", "a0.jpg"]),
        ("nothing/*.jpg", []),
        ("a.jp", []),
        ("a.jpg", ["a.jpg"]),
        ("A.*", []),
    ]

    def test_globs(self, storage: Storage, root: str) -> None:
        put(storage, root, TREE)
        found = {pattern: [info.uri for info in storage.match(f"{root}/{pattern}")] for pattern, _ in self.GLOBS}
        assert found == {pattern: [f"{root}/{name}" for name in names] for pattern, names in self.GLOBS}

    def test_folders_are_told_from_files(self, storage: Storage, root: str) -> None:
        put(storage, root, ["photos/x.jpg", "photos2"])
        assert storage.is_folder(f"{root}/photos")
        assert storage.is_folder(f"{root}/photos/")
        assert not storage.is_file(f"{root}/photos")
        assert not storage.is_folder(f"{root}/photo")
        assert not storage.is_folder(f"{root}/photos2")
        assert not storage.is_folder(f"{root}/photos/x.jpg")
        assert storage.list_folder(root) == ["photos/", "photos2"]
        assert storage.list_folder(f"{root}/photos") == ["x.jpg"]
        assert storage.list_folder(f"{root}/nothing") == []

    def test_what_is_not_there_is_a_missing_file(self, storage: Storage, root: str) -> None:
        put(storage, root, ["folder/x.jpg"])
        for uri in (f"{root}/nothing.jpg", f"{root}/folder", f"{root}/folder/x.jpg/y"):
            with pytest.raises(ImageError) as caught:
                storage.read(uri)
            assert caught.value.code == "missing_file"
            assert uri.removeprefix("file://") in caught.value.message
        for operation in (storage.open, storage.size):
            with pytest.raises(FileNotFoundError, match="nothing"):
                operation(f"{root}/nothing.jpg")
        assert not storage.is_file(f"{root}/nothing.jpg")
        assert storage.sizes([f"{root}/nothing.jpg", f"{root}/folder/x.jpg"]) == {f"{root}/folder/x.jpg": 12}

    def test_a_limit_refuses_larger_files_only(self, storage: Storage, root: str) -> None:
        uri = f"{root}/ten"
        storage.write_bytes(uri, b"0123456789")
        assert storage.read(uri, max_bytes=10) == b"0123456789"
        with pytest.raises(ImageError, match="9") as caught:
            storage.read(uri, max_bytes=9)
        assert caught.value.code == "read_failed"

    def test_an_empty_file_is_a_file(self, storage: Storage, root: str) -> None:
        uri = f"{root}/empty"
        storage.write_bytes(uri, b"")
        assert storage.read(uri) == b""
        assert storage.size(uri) == 0
        with storage.open(uri) as stream:
            assert stream.read() == b""

    def test_streams_write_and_read_at_any_place(self, storage: Storage, root: str) -> None:
        uri = f"{root}/new/folder/large.bin"
        data = os.urandom(3_000_000)
        with storage.open_write(uri) as stream:
            for start in range(0, len(data), 70_000):
                stream.write(data[start : start + 70_000])
        assert storage.read(uri) == data
        with storage.open(uri) as stream:
            assert stream.seekable()
            assert stream.read(10) == data[:10]
            stream.seek(-5, os.SEEK_END)
            assert stream.read() == data[-5:]
            stream.seek(2_000_000)
            assert stream.read(500_000) == data[2_000_000:2_500_000]
            assert stream.tell() == 2_500_000
            stream.seek(1)
            assert stream.read() == data[1:]
            stream.seek(0)
            assert b"".join(stream) == data
        assert storage.read_range(uri, 1_000_000, 100) == data[1_000_000:1_000_100]
        assert storage.read_range(uri, len(data) - 5, 100) == data[-5:]
        assert storage.read_range(uri, len(data) + 5, 100) == b""
        assert storage.read_range(uri, 5, 0) == b""

    def test_writing_replaces(self, storage: Storage, root: str) -> None:
        uri = f"{root}/file"
        storage.write_bytes(uri, b"first and long")
        storage.write_bytes(uri, b"second")
        assert storage.read(uri) == b"second"
        with storage.open_write(uri) as stream:
            stream.write(b"3")
        assert storage.read(uri) == b"3"
        assert [info.uri for info in storage.walk(root)] == [uri]

    def test_rename_replaces_and_can_be_repeated(self, storage: Storage, root: str) -> None:
        old, new = f"{root}/staging/x.tmp", f"{root}/final/x"
        storage.write_bytes(new, b"of an earlier run")
        storage.write_bytes(old, b"new")
        storage.rename(old, new)
        assert storage.read(new) == b"new"
        storage.rename(old, new)
        assert storage.read(new) == b"new"
        storage.rename(new, new)
        assert storage.read(new) == b"new"
        with pytest.raises(FileNotFoundError):
            storage.rename(old, f"{root}/another")
        assert [info.uri for info in storage.walk(root)] == [new]

    def test_deleting_takes_what_was_named_and_no_more(self, storage: Storage, root: str) -> None:
        put(storage, root, ["a/1", "a/b/2", "a2/3", "a*/4", "x", "y"])
        storage.delete([f"{root}/x", f"{root}/was never there"])
        storage.delete([])
        storage.delete_tree(f"{root}/a")
        storage.delete_tree(f"{root}/was never there")
        assert [info.uri for info in storage.walk(root)] == [f"{root}/{name}" for name in ("a*/4", "a2/3", "y")]
        storage.delete_tree(root)
        assert not storage.is_folder(root)

    def test_members_of_archives_are_read_by_their_place(self, storage: Storage, root: str) -> None:
        archive, data = f"{root}/photos #1.zip", {"a.jpg": b"a" * 5000, "sub/ü.jpg": b"u" * 7000}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as writer:
            for name, content in data.items():
                writer.writestr(name, content)
            places = {info.filename: (info.header_offset, info.compress_size) for info in writer.infolist()}
        storage.write_bytes(archive, packed.getvalue())
        for name, content in data.items():
            member = Member(archive, (name,), *places[name], method="zip")
            assert storage.read(archive, member) == content
            with pytest.raises(ImageError, match="more than") as caught:
                storage.read(archive, member, max_bytes=100)
            assert caught.value.code == "read_failed"
        gone = Member(f"{root}/gone.zip", ("a.jpg",), 0, 10, method="zip")
        with pytest.raises(ImageError, match=r"gone\.zip") as caught:
            storage.read(gone.archive, gone)
        assert caught.value.code == "missing_file"

    def test_many_threads_share_one_storage(self, storage: Storage, root: str) -> None:
        names = [f"{root}/{number}" for number in range(40)]
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda uri: storage.write_bytes(uri, uri.encode()), names))
            assert list(pool.map(storage.read, names * 3)) == [uri.encode() for uri in names * 3]
        assert storage.sizes(names) == {uri: len(uri.encode()) for uri in names}

    def test_a_pickled_storage_reads_the_same(self, storage: Storage, root: str) -> None:
        storage.write_bytes(f"{root}/x", b"x")
        copy = pickle.loads(pickle.dumps(storage))
        assert copy.options == storage.options
        assert copy.read(f"{root}/x") == b"x"


def put(storage: Storage, root: str, names: list[str]) -> None:
    """Write files that hold their own name."""
    for name in names:
        storage.write_bytes(f"{root}/{name}", name.encode())
