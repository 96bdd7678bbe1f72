"""docs/errors.md, made from the codes of the library and from messages that conversions really gave.

``python -m tests.docs.errors_page`` writes the page anew; a test compares the two.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from beam_tfrecord.errors import CHANGE_REASONS, REJECT_CODES, WARNING_CODES
from beam_tfrecord.tools.verifying.faults import FAULT_CODES
from tests.conftest import ROOT
from tests.docs.provoked import Messages, provoke

PAGE = ROOT / "docs" / "errors.md"
HEAD = """# Codes and cures

What went wrong with one item is told with a code that stays the same from version to version, and with a message for
this case. This page is made from `beam_tfrecord/errors.py`; the messages are those of conversions that went wrong on
purpose (`python -m tests.docs.errors_page` writes it anew, and a test compares the two).

## How a command ends

| exit status | meaning | what to do |
|---|---|---|
| 0 | done | |
| 1 | the job failed or nothing was written; `verify` found faults; `extract` met a damaged record | the last lines \
say why; `--resume` goes on with a conversion |
| 2 | a wrong option, or a folder that is not free; nothing was touched | the message names the option |
| 3 | more rejects than `--max_rejects` (default 10%): nothing is published | look at `.staging/report.html` under the \
output; mend the rows, or publish with `--resume --max_rejects 100%` |
| 130 | Ctrl-C | `--resume` goes on |

In Python the same is told by exceptions: `ConfigError` for status 2; `ManifestError` (a source that cannot be read at
all), `StorageError` (a place that cannot be read or written), `DatasetError` (a finished dataset that is damaged) and
`JobError` (an engine) for status 1. All are `BeamTfrecordError`. Anything else is a bug.
"""


def page(messages: Messages) -> str:
    """The text of the page."""
    parts = [HEAD]
    parts += _codes("Rejects", "The row did not become a record. Lines of `rejects.jsonl`; counted under `rejected`.")
    for code, explanation in REJECT_CODES.items():
        parts += _code(code, explanation.meaning, messages["reject", code], explanation.cure)
    parts += _codes(
        "Warnings", "The row became a record, and something about it is worth knowing. Lines of `warnings.jsonl`."
    )
    for code, explanation in WARNING_CODES.items():
        parts += _code(code, explanation.meaning, messages["warning", code], explanation.cure)
    parts += _codes("Changes", "What was done to images that are not stored as they came; counted under `changed`.")
    parts += [_table("reason", CHANGE_REASONS)]
    parts += _codes("Faults", "What `beam-tfrecord verify` finds in a finished dataset. Convert again what is damaged.")
    parts += [_table("code", FAULT_CODES)]
    return "\n".join(parts)


def _table(title: str, texts: Mapping[str, str]) -> str:
    return f"| {title} | meaning |\n|---|---|\n" + "".join(f"| `{name}` | {text} |\n" for name, text in texts.items())


def _codes(title: str, about: str) -> Iterator[str]:
    yield f"## {title}\n\n{about}\n"


def _code(code: str, meaning: str, message: str, cure: str) -> Iterator[str]:
    yield f"### {code}\n\n{meaning}\n\n```text\n{message}\n```\n\n**Cure.** {cure}\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(provoke(Path(folder))), "utf-8")


if __name__ == "__main__":
    main()
