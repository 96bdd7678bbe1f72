"""What is told when options of choosing match nothing, or leave nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from beam_tfrecord.conversion.choosing.choice import Choice
from beam_tfrecord.conversion.choosing.chooser import ChoiceNotes
from beam_tfrecord.core.elements import Finding
from beam_tfrecord.errors import ConfigError, nearest

CODE = "choice_unmatched"
STAGE = "choose"
SHOWN = 5  # names that are told one by one
SHOWN_LABELS = 12


def unmatched(choice: Choice, notes: ChoiceNotes) -> tuple[Finding, ...]:
    """What the options name and no row has, each with the nearest name that there is."""
    return tuple(Finding(f"--{option}", "", STAGE, CODE, message) for option, message in _unmatched(choice, notes))


def _unmatched(choice: Choice, notes: ChoiceNotes) -> Iterator[tuple[str, str]]:
    yield from choice.remarks
    lines = sorted(choice.excluded.told - notes.excluded)
    for line in lines[:SHOWN]:
        hint = nearest(line, notes.names) or (f"; rows are called like {notes.names[0]!r}" if notes.names else "")
        yield "exclude", f"no row is called {line!r}{hint}"
    if lines[SHOWN:]:
        yield "exclude", f"{len(lines) - SHOWN:,} more lines name no row either"
    for column in choice.config.asked_columns:
        if column not in notes.columns:
            yield "where", f"no row has a value in {column!r}"
    new_names = {choice.renames.get(label, label) for label in notes.labels} - {""}
    for option, names, known in (
        ("map_labels", choice.renames, notes.labels),
        ("keep_labels", choice.config.keep_labels, new_names),
        ("drop_labels", choice.config.drop_labels, new_names),
    ):
        for name in names:
            if name not in known:
                after = " any more: --map_labels comes first" if name in notes.labels else nearest(name, known)
                yield option, f"no record has the label {name!r}{after}"


def check_something_is_left(rows: int, excluded: Mapping[str, int], choice: Choice, notes: ChoiceNotes) -> None:
    """Raise ConfigError when every row was chosen away."""
    away = sum(excluded.values())
    if not away or away < rows:
        return
    by_option = ", ".join(f"--{option} {count:,}" for option, count in sorted(excluded.items()))
    told = [f"{finding.origin}: {finding.message}" for finding in unmatched(choice, notes)]
    labels = sorted(notes.labels)
    if labels and choice.config.chooses_labels:
        more = f" and {len(labels) - SHOWN_LABELS} more" if len(labels) > SHOWN_LABELS else ""
        told.append(f"the labels of the rows are {', '.join(map(repr, labels[:SHOWN_LABELS]))}{more}")
    raise ConfigError(
        f"nothing is left to convert: all of {rows:,} rows were chosen away ({by_option}): choose less"
        + "".join(f"\n  {line}" for line in told)
    )
