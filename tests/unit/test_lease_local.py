"""Leases on the local disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from beam_tfrecord.storage import Storage
from tests.lease_contract import LeaseContract


@pytest.fixture
def storage() -> Storage:
    return Storage()


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path)


class TestDisks(LeaseContract):
    pass


class TestDisksWithoutHardLinks(LeaseContract):
    """FAT, and some that are mounted over a network."""

    @pytest.fixture(autouse=True)
    def no_links(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*told: str) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)


class TestFileUris(LeaseContract):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}"
