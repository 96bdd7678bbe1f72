"""Object stores on loopback ports: gcp-storage-emulator for ``gs://`` and moto's server for ``s3://``.

Each fixture starts one server for the whole session, and skips with one line where its package is missing.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests

START_SECONDS = 300
# Those of Azurite, which are no secret: learn.microsoft.com/azure/storage/common/storage-connect-azurite.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
# The emulator keeps five connections waiting; the system drops a sixth, which comes again after a whole second.
PATIENT_EMULATOR = """
import runpy, socketserver
socketserver.TCPServer.request_queue_size = 128
runpy.run_module("gcp_storage_emulator", run_name="__main__", alter_sys=True)
"""


@dataclass
class Emulator:
    """A running server. scheme: of the uris that it serves. endpoint: its http:// address."""

    scheme: str
    endpoint: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_bucket(self) -> str:
        """Make an empty bucket and give its name."""
        name = f"bucket-{next(self._numbers)}"
        if self.scheme == "gs":
            requests.post(f"{self.endpoint}/storage/v1/b", json={"name": name}, timeout=30).raise_for_status()
        elif self.scheme == "az":
            from azure.storage.blob import ContainerClient

            told = self.environment()["AZURE_STORAGE_CONNECTION_STRING"]
            with ContainerClient.from_connection_string(told, name) as container:
                container.create_container()
            return f"{AZURE_ACCOUNT}/{name}"
        else:
            requests.put(f"{self.endpoint}/{name}", timeout=30).raise_for_status()
        return name

    def environment(self, endpoint: str | None = None) -> dict[str, str]:
        """Variables that lead clients here, or to a proxy at another endpoint."""
        endpoint = endpoint or self.endpoint
        if self.scheme == "gs":
            return {"STORAGE_EMULATOR_HOST": endpoint}
        if self.scheme == "az":
            told = f"AccountName={AZURE_ACCOUNT};AccountKey={AZURE_KEY};BlobEndpoint={endpoint}/{AZURE_ACCOUNT};"
            return {"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;{told}"}
        return {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


@pytest.fixture(scope="session")
def gcs_server() -> Iterator[Emulator]:
    """Cloud Storage, in the memory of another process."""
    _need("gcp_storage_emulator", "gcp-storage-emulator")
    port = free_port()
    with running(["-c", PATIENT_EMULATOR, "start", "--host", "127.0.0.1", "--port", str(port), "--in-memory"], port):
        yield Emulator("gs", f"http://127.0.0.1:{port}")


@pytest.fixture(scope="session")
def conditional_gcs_server() -> Iterator[Emulator]:
    """Cloud Storage that keeps conditions, which the other one ignores."""
    _need("gcp_storage_emulator", "gcp-storage-emulator")
    port = free_port()
    with running(["-m", "tests.gcs_conditions", str(port)], port):
        yield Emulator("gs", f"http://127.0.0.1:{port}")


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Emulator]:
    """S3, in the memory of another process."""
    _need("moto", "moto[s3,server]")
    _need("boto3", "boto3")
    port = free_port()
    with running(["-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port):
        yield Emulator("s3", f"http://127.0.0.1:{port}")


@contextmanager
def running(
    arguments: list[str],
    port: int,
    environment: Mapping[str, str] | None = None,
    *,
    is_python: bool = True,
    folder: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that serves on a port, ended with the block. is_python: the arguments are those of this Python. folder:
    in which it works.
    """
    with subprocess.Popen(
        [sys.executable, *arguments] if is_python else arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=folder,
    ) as process:
        try:
            wait_for(port, process)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def free_port() -> int:
    """A port that nothing listens on, for a server that cannot choose one by itself; no other test gets it.

    It is below those that systems give to connections, any of which could take it before the server is there. The UDP
    port of the same number, which nobody uses, is kept as a mark for the tests of other processes.
    """
    for port in range(20_000 + os.getpid() % 10_000, 32_768):
        mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            mark.bind(("127.0.0.1", port))
            with socket.socket() as probe:
                probe.bind(("", port))
        except OSError:
            mark.close()
        else:
            mark.detach()  # it stays bound as long as this process lives
            return port
    raise RuntimeError("no port is free")


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended at once with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the server did not start within {START_SECONDS} s")


def _need(module: str, package: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {package}: pip install 'beam_tfrecord[test]'")
