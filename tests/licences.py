"""What a default installation brings, and under which licences: ``python -m tests.licences`` (``make licences``).

Prints docs/licences.md, made of the metadata of the packages that are installed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from email.message import Message
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT_PACKAGE = "beam-tfrecord"
UNKNOWN = "unknown"
# Names of one licence, by how its classifiers and free texts begin once they are lower case.
_NAMES = (
    ("apache", "Apache-2.0"),
    ("asl 2", "Apache-2.0"),
    ("mit-cmu", "MIT-CMU"),
    ("mit", "MIT"),
    ("3-clause bsd", "BSD-3-Clause"),
    ("bsd-3", "BSD-3-Clause"),
    ("bsd 3", "BSD-3-Clause"),
    ("new bsd", "BSD-3-Clause"),
    ("2-clause bsd", "BSD-2-Clause"),
    ("bsd-2", "BSD-2-Clause"),
    ("simplified bsd", "BSD-2-Clause"),
    ("bsd", "BSD"),
    ("isc", "ISC"),
    ("python software foundation", "PSF-2.0"),
    ("psf", "PSF-2.0"),
    ("mozilla public license 2.0", "MPL-2.0"),
    ("mpl", "MPL-2.0"),
    ("the unlicense", "Unlicense"),
    ("zope public license", "ZPL-2.1"),
    ("hpnd", "HPND"),
)
STRONG_COPYLEFT = re.compile(r"\b(A?GPL|GNU (Affero )?General Public|SSPL)|Commons Clause", re.IGNORECASE)


def closure(root: str = ROOT_PACKAGE) -> list[str]:
    """Canonical names of all that an installation of a package without extras brings on this Python, sorted."""
    found: set[tuple[str, str]] = set()
    waiting = [(canonicalize_name(root), "")]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        for text in distribution(name).requires or ():
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
                continue
            wanted = canonicalize_name(requirement.name)
            waiting += [(wanted, ""), *((wanted, part) for part in sorted(requirement.extras))]
    return sorted({name for name, _ in found} - {canonicalize_name(root)})


def licence(metadata: Message) -> str:
    """The licence that a package's metadata state, as an SPDX expression where its words allow that."""
    expression = metadata.get("License-Expression")
    if expression:
        return " ".join(str(expression).split())
    told = [
        str(line).rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or () if "License ::" in str(line)
    ]
    names = sorted({_name(text) for text in told if text != "OSI Approved"})
    if not names:
        lines = [line.strip() for line in str(metadata.get("License") or "").splitlines() if line.strip()]
        names = [_name(lines[0])] if lines and len(lines[0]) < 100 else []
    return " OR ".join(names) if names else UNKNOWN


def _name(text: str) -> str:
    if re.search(r" (AND|OR|WITH) ", text):  # an SPDX expression where older metadata have it
        return text.strip()
    plain = re.sub(r"^(the|osi approved|license:)\s+(?!unlicense)", "", text.strip().lower())
    return next((name for start, name in _NAMES if plain.startswith(start)), text.strip())


def licences(names: Iterable[str]) -> dict[str, str]:
    """Licence by name of a package; those that are not installed here are left out."""
    told = {}
    for name in names:
        try:
            told[name] = licence(distribution(name).metadata)  # type: ignore[arg-type]
        except PackageNotFoundError:
            continue
    return told


def page(told: dict[str, str]) -> str:
    """docs/licences.md."""
    lines = [
        "# Licences",
        "",
        "beam_tfrecord is under the Apache License 2.0. A default installation brings these packages, under the",
        "licences that their metadata state. `make licences` makes the list; a test holds that none is unknown, and",
        "none a GPL, AGPL or SSPL. The extras bring more (`dataflow` the most).",
        "",
        "| package | licence |",
        "| --- | --- |",
        *(f"| {name} | {text} |" for name, text in sorted(told.items())),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(licences(closure())), end="")
