"""Every other scheme goes through Beam's file systems, and s3:// takes Beam's options."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.options.value_provider import RuntimeValueProvider

from beam_tfrecord.errors import ImageError, StorageError
from beam_tfrecord.storage import RetryPolicy, Storage, StorageOptions
from beam_tfrecord.storage.beam_plugins import s3_options
from tests.loopback import Answer, serving
from tests.memory_filesystem import FolderFileSystem, MemoryFileSystem
from tests.storage_contract import StorageContract


@pytest.fixture
def storage() -> Storage:
    return Storage(StorageOptions(retry=RetryPolicy(attempts=4, first_wait=0.001, longest_wait=0.002)))


@pytest.fixture
def root() -> Iterator[str]:
    MemoryFileSystem.clear()
    yield "memory://store/root"
    MemoryFileSystem.clear()


class TestBeamFileSystems(StorageContract):
    pass


class TestBeamFileSystemsWithFolders(StorageContract):
    @pytest.fixture
    def root(self) -> Iterator[str]:
        FolderFileSystem.clear()
        yield "folders://store/root"
        FolderFileSystem.clear()

    def test_empty_folders_are_no_files(self, storage: Storage, root: str) -> None:
        storage.make_folder(f"{root}/empty")
        storage.write_bytes(f"{root}/x", b"")
        assert [info.uri for info in storage.walk(root)] == [f"{root}/x"]
        assert storage.is_folder(f"{root}/empty")
        assert not storage.is_file(f"{root}/empty")
        assert storage.is_file(f"{root}/x")
        assert not storage.is_folder(f"{root}/x")


class AnsweredError(Exception):
    """A fault of a plugin's client library, with the status that such faults carry."""

    def __init__(self, code: int) -> None:
        super().__init__(f"HTTP {code}")
        self.code = code


def test_names_that_end_like_packed_files_are_neither_packed_nor_unpacked(storage: Storage, root: str) -> None:
    data = gzip.compress(b"x" * 100)
    for name in ("shard.tfrecord.gz", "a.bz2", "a.zst"):
        storage.write_bytes(f"{root}/{name}", data)
        assert MemoryFileSystem.files[f"{root}/{name}"] == data
        assert storage.read(f"{root}/{name}") == data
        with storage.open_write(f"{root}/{name}") as stream:
            stream.write(data)
        assert storage.open(f"{root}/{name}").read() == data


def test_folders_are_made_where_the_storage_has_them(
    storage: Storage, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryFileSystem, "has_dirs", lambda self: True)
    storage.write_bytes(f"{root}/a/b/x", b"x")
    storage.make_folder(f"{root}/c")
    assert {f"{root}/a/b", f"{root}/c"} <= MemoryFileSystem.folders


def test_passing_faults_are_tried_again(storage: Storage, root: str) -> None:
    storage.write_bytes(f"{root}/x", b"x")
    MemoryFileSystem.faults[:] = [OSError("busy"), BeamIOError("failed", {"x": AnsweredError(503)})]
    assert storage.read(f"{root}/x") == b"x"
    assert storage.counters["read_retries"] >= 1
    MemoryFileSystem.faults[:] = [ConnectionResetError(), TimeoutError()]
    storage.write_bytes(f"{root}/y", b"y")
    assert storage.counters["write_retries"] == 2
    MemoryFileSystem.faults[:] = [OSError("busy")] * 50
    with pytest.raises(ImageError, match=r"failed 4 times.*OSError") as caught:
        storage.read(f"{root}/x")
    assert caught.value.code == "read_failed"
    with pytest.raises(StorageError, match=r"cannot write .*failed 4 times"):
        storage.write_bytes(f"{root}/x", b"x")


@pytest.mark.parametrize(
    "fault",
    [
        PermissionError(),
        BeamIOError("failed", {"x": AnsweredError(403)}),
        BeamIOError("failed", {"x": AnsweredError(401)}),
    ],
)
def test_a_refusal_ends_the_job(storage: Storage, root: str, fault: Exception) -> None:
    for operation in (lambda: storage.read(f"{root}/x"), lambda: storage.write_bytes(f"{root}/x", b"")):
        MemoryFileSystem.faults[:] = [fault]
        with pytest.raises(StorageError, match=r"memory://store/root/x.*permissions"):
            operation()
    assert storage.counters.snapshot() == {}


@pytest.mark.parametrize(
    "fault", [FileNotFoundError(), BeamIOError("failed", {"x": AnsweredError(404)}), IsADirectoryError()]
)
def test_what_is_missing_is_a_reject(storage: Storage, root: str, fault: Exception) -> None:
    MemoryFileSystem.faults[:] = [fault]
    with pytest.raises(ImageError, match="memory://store/root/x") as caught:
        storage.read(f"{root}/x")
    assert caught.value.code == "missing_file"


def test_a_fault_that_says_nothing_about_a_file_that_is_not_there(storage: Storage, root: str) -> None:
    MemoryFileSystem.faults[:] = [BeamIOError("File not found, or so")]
    with pytest.raises(ImageError, match="does not exist"):
        storage.read(f"{root}/x")
    assert storage.counters.snapshot() == {}


def test_a_bug_of_a_plugin_is_not_hidden(storage: Storage, root: str) -> None:
    MemoryFileSystem.faults[:] = [ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError):
        storage.read(f"{root}/x")


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("hdfs://namenode/x", "apache-beam[hadoop]"),
        ("webhdfs://x/y", "no file system for webhdfs://"),
        ("wasb://x/y", "no file system for wasb:// here (write az://ACCOUNT/CONTAINER/NAME)"),
        ("abfss://box@account.dfs.core.windows.net/x", "no file system for abfss:// here (write az://ACCOUNT/"),
    ],
)
def test_a_scheme_that_nothing_serves_is_named_with_its_cure(storage: Storage, uri: str, words: str) -> None:
    for operation in (
        lambda: storage.read(uri),
        lambda: list(storage.walk(uri)),
        lambda: storage.write_bytes(uri, b""),
    ):
        with pytest.raises(StorageError) as caught:
            operation()
        assert words in str(caught.value)


@pytest.fixture
def beam_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileSystems, "_pipeline_options", None)
    monkeypatch.setattr(RuntimeValueProvider, "runtime_options", None)


@pytest.mark.usefixtures("beam_options")
def test_the_s3_options_of_beam_lead_the_client() -> None:
    assert s3_options() == {}
    flags = ["--s3_endpoint_url=http://127.0.0.1:9", "--s3_access_key_id=a", "--s3_secret_access_key=b"]
    FileSystems.set_options(PipelineOptions([*flags, "--s3_region_name=eu-1", "--s3_disable_ssl"]))
    expected = {
        "endpoint_url": "http://127.0.0.1:9",
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
        "region_name": "eu-1",
        "use_ssl": False,
    }
    assert s3_options() == expected


@pytest.mark.usefixtures("beam_options")
def test_workers_find_the_s3_options_too() -> None:
    RuntimeValueProvider.set_runtime_options({"s3_endpoint_url": "http://127.0.0.1:9", "other": 1})
    assert s3_options() == {"endpoint_url": "http://127.0.0.1:9"}


@pytest.mark.usefixtures("beam_options")
def test_s3_goes_where_the_options_of_beam_say(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("boto3")
    monkeypatch.setenv("NO_PROXY", "localhost")
    with serving(lambda _: Answer(body=b"pixels")) as server:
        flags = [f"--s3_endpoint_url={server.url}", "--s3_access_key_id=a", "--s3_secret_access_key=b"]
        FileSystems.set_options(PipelineOptions([*flags, "--s3_region_name=us-east-1"]))
        assert storage.read("s3://bucket/a b.jpg") == b"pixels"
    assert server.seen[0].path.partition("?")[0] in ("/bucket/a%20b.jpg", "/a%20b.jpg")


def test_missing_aws_credentials_are_one_clear_line_and_no_wait(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no network: the metadata service of a machine at Amazon is a port that is silent."""
    pytest.importorskip("boto3")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with serving(lambda _: Answer(wait=600)) as silent:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", silent.url)
        monkeypatch.setenv("NO_PROXY", "localhost")
        with pytest.raises(StorageError, match=r"no AWS credentials; run `aws configure`, or set AWS_ACCESS_KEY_ID"):
            storage.read("s3://some-bucket/x.jpg")
        asked = [request.path for request in silent.seen]
        assert len(asked) == len(set(asked))  # each thing once, and not waited for


def test_without_boto3_the_extra_is_named(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.delitem(sys.modules, "beam_tfrecord.storage.s3", raising=False)
    with pytest.raises(StorageError, match=r"needs the package boto3: pip install 'beam_tfrecord\[aws\]'"):
        storage.read("s3://some-bucket/x.jpg")


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (403, "AccessDenied", r"no permission to use the bucket 'private'.*s3:GetObject"),
        (403, "InvalidAccessKeyId", "credentials are not accepted"),
        (400, "ExpiredToken", "credentials are not accepted"),
    ],
)
def test_a_refusal_of_s3_ends_the_job_at_once(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, status: int, code: str, words: str
) -> None:
    pytest.importorskip("boto3")
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    with serving(lambda _: Answer(status, body=body)) as server:
        for name, value in {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_DEFAULT_REGION": "us-east-1",
            "NO_PROXY": "localhost",
        }.items():
            monkeypatch.setenv(name, value)
        for operation in (
            lambda: storage.read("s3://private/x"),
            lambda: list(storage.walk("s3://private")),
            lambda: storage.write_bytes("s3://private/x", b"x"),
        ):
            with pytest.raises(StorageError, match=words):
                operation()
    assert storage.counters.snapshot() == {}
