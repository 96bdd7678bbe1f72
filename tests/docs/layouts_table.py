"""The table of layouts in docs/formats.md, made from the cases that tests/end_to_end/test_layouts.py runs.

``python -m tests.docs.layouts_table`` puts it into the page; a test compares the two.
"""

from __future__ import annotations

from tests.conftest import ROOT
from tests.docs.blocks import put_between
from tests.layouts import Case, cases

PAGE = ROOT / "docs" / "formats.md"
START, END = "<!-- layouts: made by python -m tests.docs.layouts_table -->\n", "<!-- end of layouts -->"


def table() -> str:
    """One line for each case that is no archive of another one."""
    lines = ["| what people have | files | taken as | read are | not read, and told |", "|---|---|---|---|---|"]
    lines += [_line(case) for case in cases() if case.shown]
    return "\n".join(lines) + "\n"


def _line(case: Case) -> str:
    shown = ", ".join(f"`{path}`" for path in case.shown)
    if case.error:
        return f"| {case.name} | {shown} | refused | | {case.reads} |"
    told = [f"{reason}" for reason in case.named if reason != "junk" and not reason.startswith("other files")]
    told += sorted({f"`{code}`" for code in case.warnings})
    return f"| {case.name} | {shown} | `{case.format}` | {case.reads} | {', '.join(told)} |"


def with_table(text: str) -> str:
    """The page with the table as it should be."""
    return put_between(text, START, f"\n{table()}\n", END)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
