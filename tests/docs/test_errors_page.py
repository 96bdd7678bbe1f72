"""docs/errors.md is what the library says, and every code that it lists can happen."""

from __future__ import annotations

from pathlib import Path

import pytest

from beam_tfrecord.errors import REJECT_CODES, WARNING_CODES
from tests.docs.errors_page import PAGE, page
from tests.docs.provoked import provoke


def test_the_page_is_made_from_the_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pycocotools")
    monkeypatch.chdir(tmp_path)
    messages = provoke(tmp_path)
    assert {code for kind, code in messages if kind == "reject"} == set(REJECT_CODES)
    assert {code for kind, code in messages if kind == "warning"} == set(WARNING_CODES)
    assert PAGE.read_text("utf-8") == page(messages), "python -m tests.docs.errors_page writes it anew"
