from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

from beam_tfrecord.errors import ImageError, StorageError
from beam_tfrecord.storage import RetryPolicy, Storage, StorageOptions
from tests.storage_contract import StorageContract

QUICK = StorageOptions(retry=RetryPolicy(attempts=4, first_wait=0.001, longest_wait=0.002))


@pytest.fixture
def storage() -> Storage:
    return Storage(QUICK)


class TestLocalPaths(StorageContract):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        folder = tmp_path / "root with [glob]* characters"
        folder.mkdir()
        return str(folder)

    # A pattern takes the special characters of the folder too, so it is given a plain one here.
    def test_globs(self, storage: Storage, tmp_path: Path) -> None:
        super().test_globs(storage, str(tmp_path))


class TestFileUris(StorageContract):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/root"


def test_files_that_are_no_regular_files_are_missing_and_nothing_waits_for_them(
    storage: Storage, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for uri, reason in ((tmp_path / "pipe", "not a regular file"), (tmp_path, "a folder"), ("/dev/zero", "regular")):
        with pytest.raises(ImageError, match=reason) as caught:
            storage.read(str(uri))
        assert caught.value.code == "missing_file"
    with pytest.raises(FileNotFoundError):
        storage.open(str(tmp_path / "pipe"))


@pytest.mark.parametrize("name", ["", "nul\0byte", "x" * 300, "a/" * 3000, "\ud800", "nothing.jpg/"])
def test_names_that_no_file_can_have_are_missing_files(storage: Storage, tmp_path: Path, name: str) -> None:
    (tmp_path / "nothing.jpg").write_bytes(b"x")
    uri = f"{tmp_path}/{name}" if name else name
    with pytest.raises(ImageError) as caught:
        storage.read(uri)
    assert caught.value.code == "missing_file"
    assert not storage.is_file(uri)


def test_names_that_are_no_utf8_are_read(storage: Storage, tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/caf\xe9.jpg"
    with open(raw, "wb") as stream:
        stream.write(b"latin")
    (info,) = storage.walk(str(tmp_path))
    assert os.fsencode(info.uri) == raw
    assert storage.read(info.uri) == b"latin"


def test_files_without_a_size_are_read_to_their_end(storage: Storage) -> None:
    with open("/proc/version", "rb") as stream:  # unlike /proc/self/status it says the same each time
        content = stream.read()
    assert os.stat("/proc/version").st_size == 0 < len(content)
    assert storage.read("/proc/version") == storage.read("/proc/version", max_bytes=100_000) == content


def test_symbolic_links_are_followed_but_never_in_a_circle(storage: Storage, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere"
    real.mkdir()
    (real / "x.jpg").write_bytes(b"x")
    root = tmp_path / "root"
    root.mkdir()
    (root / "linked").symlink_to(real)
    (root / "circle").symlink_to(root)
    (root / "broken.jpg").symlink_to(tmp_path / "nowhere")
    (root / "itself.jpg").symlink_to(root / "itself.jpg")
    found = [info.uri for info in storage.walk(str(root))]
    assert found == [f"{root}/broken.jpg", f"{root}/itself.jpg", f"{root}/linked/x.jpg"]
    assert [info.uri for info in storage.match(f"{root}/**/x.jpg")] == [f"{root}/linked/x.jpg"]
    with pytest.raises(ImageError, match="does not exist"):
        storage.read(f"{root}/broken.jpg")


def test_deleting_a_link_to_a_folder_leaves_the_folder(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/x").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    storage.delete_tree(str(tmp_path / "link"))
    assert (tmp_path / "real/x").read_bytes() == b"x"
    assert not (tmp_path / "link").exists()


def test_relative_names_stay_relative(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage.write_bytes("photos/cat/1.jpg", b"1")
    storage.write_bytes("top.jpg", b"2")
    assert [info.uri for info in storage.match("*.jpg")] == ["top.jpg"]
    assert [info.uri for info in storage.match("**/*.jpg")] == ["photos/cat/1.jpg", "top.jpg"]
    assert [info.uri for info in storage.walk("photos")] == ["photos/cat/1.jpg"]
    assert [info.uri for info in storage.walk(".")] == ["./photos/cat/1.jpg", "./top.jpg"]
    assert storage.is_folder(".")
    assert storage.list_folder(".") == ["photos/", "top.jpg"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_one_reject(storage: Storage, tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises(ImageError, match="permission") as caught:
        storage.read(str(path))
    assert caught.value.code == "read_failed"


@pytest.mark.parametrize("access", [True, False])
def test_permissions_of_a_file_and_of_its_folder_are_told_apart(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, access: bool
) -> None:
    path = tmp_path / "x.jpg"
    path.write_bytes(b"x")
    failing_open(monkeypatch, errno.EACCES)
    monkeypatch.setattr(os, "access", lambda *_: access)
    with pytest.raises(ImageError if access else StorageError, match=r"permission.*chmod"):
        storage.read(str(path))


@pytest.mark.parametrize(
    ("code", "cure"), [(errno.EMFILE, "ulimit -n"), (errno.ENFILE, "file-max"), (errno.ENOMEM, "memory")]
)
def test_a_process_out_of_resources_ends_the_job(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, cure: str
) -> None:
    failing_open(monkeypatch, code)
    with pytest.raises(StorageError, match=cure):
        storage.read(str(tmp_path / "x.jpg"))


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT])
def test_faults_of_a_network_disk_are_tried_again_and_counted(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    path = tmp_path / "x.jpg"
    path.write_bytes(b"pixels")
    failing_open(monkeypatch, code, times=3)
    assert storage.read(str(path)) == b"pixels"
    assert storage.counters["read_retries"] >= 1


def test_a_disk_that_stays_broken_rejects_the_file(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_open(monkeypatch, errno.EIO)
    with pytest.raises(ImageError, match=r"failed 4 times.*Input/output error") as caught:
        storage.read(str(tmp_path / "x.jpg"))
    assert caught.value.code == "read_failed"


def test_short_reads_of_the_kernel_are_put_together(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(1000)
    (tmp_path / "x").write_bytes(data)
    read = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: read(fd, min(size, 7)))
    assert storage.read(str(tmp_path / "x")) == data
    assert storage.read_range(str(tmp_path / "x"), 100, 500) == data[100:600]


def test_a_full_disk_says_so(storage: Storage) -> None:
    with (
        pytest.raises(StorageError, match=r"disk is full.*run the same command again"),
        storage.open_write("/dev/full") as stream,
    ):
        stream.write(b"x" * 10_000_000)


def test_places_that_cannot_be_written_are_named(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for operation in (
        lambda: storage.open_write(f"{tmp_path}/file/below"),
        lambda: storage.write_bytes(f"{tmp_path}/file/below", b""),
        lambda: storage.write_bytes(str(tmp_path), b""),
        lambda: storage.make_folder(f"{tmp_path}/file"),
        lambda: storage.make_folder("/proc/nothing/here"),
        lambda: storage.write_bytes("nul\0", b""),
    ):
        with pytest.raises(StorageError):
            operation()


def test_a_file_that_is_replaced_is_never_seen_half(storage: Storage, tmp_path: Path) -> None:
    uri = str(tmp_path / "info.json")
    contents = {letter * 3_000_000 for letter in (b"a", b"b")}
    storage.write_bytes(uri, min(contents))
    done = threading.Event()

    def replace() -> None:
        for _ in range(15):
            for data in sorted(contents):
                storage.write_bytes(uri, data)
        done.set()

    thread = threading.Thread(target=replace)
    thread.start()
    seen = 0
    while not done.is_set() or not seen:
        assert storage.read(uri) in contents
        seen += 1
    thread.join()
    assert os.listdir(tmp_path) == ["info.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "x")
    storage.write_bytes(uri, b"old")

    def no_replace(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", no_replace)
    with pytest.raises(StorageError, match="disk is full"):
        storage.write_bytes(uri, b"new")
    assert os.listdir(tmp_path) == ["x"]
    assert storage.read(uri) == b"old"


def test_a_rename_to_another_disk_copies(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def crossing(source: str, target: str) -> None:
        if source.endswith("old"):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        replace(source, target)

    monkeypatch.setattr(os, "replace", crossing)
    storage.write_bytes(str(tmp_path / "old"), b"data")
    storage.rename(str(tmp_path / "old"), str(tmp_path / "sub/new"))
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["new", "sub"]
    assert (tmp_path / "sub/new").read_bytes() == b"data"


def test_what_cannot_be_copied_to_another_disk_leaves_nothing_there(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crossing(source: str, target: str) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    def full(source: str, target: str) -> None:
        Path(target).write_bytes(b"da")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "old").write_bytes(b"data")
    monkeypatch.setattr(os, "replace", crossing)
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(StorageError, match="the disk is full"):
        storage.rename(str(tmp_path / "old"), str(tmp_path / "sub/new"))
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["old", "sub"]


def failing_open(monkeypatch: pytest.MonkeyPatch, code: int, times: int = 10**6) -> None:
    """Let os.open fail a number of times."""
    real = os.open
    left = [times]

    def fail(path: str, *args: int, **kwargs: int) -> int:
        if left[0] > 0:
            left[0] -= 1
            raise OSError(code, os.strerror(code), path)
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", fail)
