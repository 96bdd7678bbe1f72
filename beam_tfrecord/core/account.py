"""What lies in an input, and what became of each thing of it.

The law of an account: for every kind of thing, what was found is what was used and what is named with a reason.
``found`` is counted apart from the other two (a listing of the folder, a second walk over the document), so that
nothing can fall between them unseen. Accounts are small and can be added in any order with the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

FILES = "files"
COLUMNS = "columns"
KEYS = "keys"
ANNOTATIONS = "annotations"
CATEGORIES = "categories"
IMAGES = "images"
LABEL_FILES = "label files"
STATED_IMAGES = "images that label files call otherwise than themselves"

# Uses of files and images.
AS_IMAGE = "image"
AS_LABELS = "label file"
AS_MASK = "mask"
AS_MANIFEST = "manifest"
WITH_LABEL_FILE = "with a label file"
WITHOUT_LABEL_FILE = "without a label file"

BY_OWN_NAME = "the image that is called like the label file"
AGAINST_OWN_NAME = "the image that is named, though another is called like the label file"

# Reasons that more than one format gives.
JUNK = "junk"
OWN_OUTPUT = "output of this tool"
LOOKS_LIKE_LABELS = "looks like labels"
NAMES_IMAGES = "names images of the collection"
LIST_OF_SPLIT = "called like a split"
OF_NO_IMAGE = "belongs to no image"
OF_ANOTHER_KIND = "no label file of this format"
UNNAMED_IMAGE = "image that no row names"


@dataclass(frozen=True, slots=True)
class Named:
    """Things of one kind that were not used for one reason. example: the first of them by code point."""

    count: int
    example: str


class Decision(NamedTuple):
    """Something about an input that could have been taken otherwise. why: what it was decided from."""

    what: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class Account:
    """What was found, by kind; what was used, by kind and use; what was not, by kind and reason."""

    found: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    named: Mapping[str, Mapping[str, Named]] = field(default_factory=dict)

    def uses(self, kind: str, use: str = "") -> int:
        """How many things of a kind were used, for one use or in all."""
        uses = self.used.get(kind, {})
        return uses.get(use, 0) if use else sum(uses.values())

    def unused(self, kind: str, reason: str = "") -> int:
        """How many things of a kind were not used, for one reason or in all."""
        reasons = self.named.get(kind, {})
        if reason:
            return reasons[reason].count if reason in reasons else 0
        return sum(named.count for named in reasons.values())

    def to_json(self) -> dict[str, Any]:
        """As plain values, sorted by name."""
        return {
            "found": dict(sorted(self.found.items())),
            "used": {kind: dict(sorted(uses.items())) for kind, uses in sorted(self.used.items()) if uses},
            "named": {
                kind: {
                    reason: {"count": named.count, "example": named.example}
                    for reason, named in sorted(reasons.items())
                }
                for kind, reasons in sorted(self.named.items())
                if reasons
            },
        }


NO_ACCOUNT = Account()


class AccountBuilder:
    """Gathers an account. A count of 0 leaves no trace."""

    def __init__(self) -> None:
        self._found: Counter[str] = Counter()
        self._used: dict[str, Counter[str]] = {}
        self._named: dict[str, dict[str, Named]] = {}

    def find(self, kind: str, count: int = 1) -> None:
        """Count things that are there; also when there are none, so that the kind is told of."""
        self._found[kind] += count

    def use(self, kind: str, use: str, count: int = 1) -> None:
        """Count things that were used."""
        if count:
            self._used.setdefault(kind, Counter())[use] += count

    def name(self, kind: str, reason: str, example: str, count: int = 1) -> None:
        """Count things that were not used. example: one of them."""
        if count:
            reasons = self._named.setdefault(kind, {})
            known = reasons.get(reason)
            reasons[reason] = Named(count, example) if known is None else _both(known, Named(count, example))

    def add(self, account: Account) -> None:
        """Take in all that another account tells."""
        self._found.update(account.found)
        for kind, uses in account.used.items():
            self._used.setdefault(kind, Counter()).update(uses)
        for kind, reasons in account.named.items():
            for reason, named in reasons.items():
                self.name(kind, reason, named.example, named.count)

    def account(self) -> Account:
        """What was gathered so far."""
        return Account(
            dict(self._found),
            {kind: dict(uses) for kind, uses in self._used.items()},
            {kind: dict(reasons) for kind, reasons in self._named.items()},
        )


def _both(one: Named, other: Named) -> Named:
    return Named(one.count + other.count, min(one.example, other.example))


def merge_accounts(accounts: Iterable[Account]) -> Account:
    """One account of all that several tell of."""
    builder = AccountBuilder()
    for account in accounts:
        builder.add(account)
    return builder.account()


def faults(account: Account) -> list[str]:
    """Where the law does not hold: a line for each kind."""
    kinds = sorted({*account.found, *account.used, *account.named})
    lines = []
    for kind in kinds:
        found, told = account.found.get(kind, 0), account.uses(kind) + account.unused(kind)
        if found != told:
            lines.append(
                f"{found:,} {kind} were found, and {told:,} are accounted for ({account.uses(kind):,} used, "
                f"{account.unused(kind):,} named)"
            )
    return lines
