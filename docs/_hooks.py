"""What is done to the site beside mkdocs.yml: the changelog and SECURITY.md, which lie at the root of the project,
become pages, and the roles that docstrings give to names (``:class:`Row```) become plain code.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("CHANGELOG.md", "SECURITY.md")
ROLE = re.compile(r":(?:py:)?(?:class|func|meth|data|attr|mod|exc):<code>(~?)([^<]*)</code>")


def on_files(files: Files, config: Any) -> Files:
    """Put what lies at the root among the pages."""
    for name in PAGES:
        files.append(File.generated(config, name.lower(), content=(ROOT / name).read_text("utf-8")))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Take the roles away; ``~`` in front of a name asks for its last part only."""
    return ROLE.sub(lambda role: f"<code>{role[2].rpartition('.')[2] if role[1] else role[2]}</code>", html)
