"""The documentation is built as a site, strictly, and the site asks for nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

LOADED = re.compile(
    r'<(?:script|img|source|iframe)[^>]*\bsrc="([^"]+)"|<link[^>]*\brel="(?:stylesheet|preload|preconnect)"[^>]*'
)


@pytest.mark.slow
def test_the_site_is_built_and_needs_no_other_host(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    pages = {path.name: path.read_text("utf-8") for path in tmp_path.glob("*.html")}
    assert {"index.html", "errors.html", "api.html", "changelog.html", "security.html", "licences.html"} <= set(pages)
    for name, text in pages.items():
        foreign = [found[0] for found in LOADED.finditer(text) if re.search(r'(?:src|href)="(?:https?:)?//', found[0])]
        assert foreign == [], name
    assert 'id="beam_tfrecord.api.convert"' in pages["api.html"]
    assert not re.search(r":(?:class|func|meth):", pages["api.html"])
