"""Fixtures of the tests that talk to servers."""

from __future__ import annotations

from tests.emulators import gcs_server, s3_server

__all__ = ["gcs_server", "s3_server"]
