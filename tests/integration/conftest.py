"""Fixtures of the tests that talk to servers."""

from __future__ import annotations

from tests.emulators import conditional_gcs_server, gcs_server, s3_server

__all__ = ["conditional_gcs_server", "gcs_server", "s3_server"]
