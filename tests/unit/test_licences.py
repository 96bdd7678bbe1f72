"""The licences of what a default installation brings."""

from __future__ import annotations

import re
from email.message import Message

import pytest

from tests.conftest import ROOT
from tests.licences import STRONG_COPYLEFT, UNKNOWN, closure, licence, licences, page


def test_every_dependency_has_a_known_licence_without_strong_copyleft() -> None:
    told = licences(closure())
    assert len(told) > 40
    assert {"apache-beam", "numpy", "pillow", "google-cloud-storage"} <= set(told)
    assert "tensorflow" not in told
    assert [name for name, text in told.items() if text == UNKNOWN or STRONG_COPYLEFT.search(text)] == []


def test_the_page_lists_what_is_installed_here() -> None:
    listed = set(re.findall(r"^\| ([\w.-]+) \|", (ROOT / "docs" / "licences.md").read_text("utf-8"), re.MULTILINE))
    # Each Python and platform has some of its own; the page is made on one of them.
    assert len(set(closure()) - listed) <= 5
    assert page({"a": "MIT"}).endswith("| a | MIT |\n")


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ([("License-Expression", "MIT AND ISC")], "MIT AND ISC"),
        ([("Classifier", "License :: OSI Approved :: Apache Software License")], "Apache-2.0"),
        ([("Classifier", "License :: OSI Approved :: MIT License"), ("License", "x" * 500)], "MIT"),
        ([("License", "MPL-2.0 AND MIT")], "MPL-2.0 AND MIT"),
        ([("License", "BSD 3-Clause\n\nCopyright ...")], "BSD-3-Clause"),
        ([("License", "GPLv3")], "GPLv3"),
        ([("Classifier", "License :: OSI Approved :: GNU General Public License v3 (GPLv3)")],
         "GNU General Public License v3 (GPLv3)"),
        ([], UNKNOWN),
    ],
)  # fmt: skip
def test_licences_are_read_from_metadata(fields: list[tuple[str, str]], found: str) -> None:
    metadata = Message()
    for name, value in fields:
        metadata[name] = value
    assert licence(metadata) == found


@pytest.mark.parametrize("text", ["GPLv3", "AGPL-3.0-only", "GNU General Public License v3 (GPLv3)", "SSPL-1.0"])
def test_strong_copyleft_is_recognised(text: str) -> None:
    assert STRONG_COPYLEFT.search(text)
    assert not STRONG_COPYLEFT.search("LGPL-2.1")
