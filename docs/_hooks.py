"""What is done to the site beside mkdocs.yml: the changelog, which lies at the root of the project, becomes a page, and
the roles that docstrings give to names (``:class:`Row```) become plain code.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"
ROLE = re.compile(r":(?:py:)?(?:class|func|meth|data|attr|mod|exc):<code>(~?)([^<]*)</code>")


def on_files(files: Files, config: Any) -> Files:
    """Put the changelog among the pages."""
    files.append(File.generated(config, "changelog.md", content=CHANGELOG.read_text("utf-8")))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Take the roles away; ``~`` in front of a name asks for its last part only."""
    return ROLE.sub(lambda role: f"<code>{role[2].rpartition('.')[2] if role[1] else role[2]}</code>", html)
