"""The account of an input: adds up in any order, and tells where it does not hold."""

from __future__ import annotations

import itertools

import pytest

from beam_tfrecord.conversion.planning.accounts import account_inputs, check_strict
from beam_tfrecord.conversion.planning.survey import Survey
from beam_tfrecord.core.account import FILES, LOOKS_LIKE_LABELS, Account, AccountBuilder, Named, faults, merge_accounts
from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.base import Source
from tests.annotation_tools import make_config


def account(found: int, used: int, *named: tuple[str, str]) -> Account:
    builder = AccountBuilder()
    builder.find(FILES, found)
    builder.use(FILES, "image", used)
    for reason, example in named:
        builder.name(FILES, reason, example)
    return builder.account()


PARTS = (account(5, 1), account(0, 1, ("junk", "b")), account(0, 0, ("junk", "a"), ("other", "c")))


@pytest.mark.parametrize("order", list(itertools.permutations(PARTS)))
def test_accounts_add_up_in_any_order(order: tuple[Account, ...]) -> None:
    merged = merge_accounts(order)
    assert merged.found == {FILES: 5}
    assert merged.used == {FILES: {"image": 2}}
    assert merged.named == {FILES: {"junk": Named(2, "a"), "other": Named(1, "c")}}
    assert merge_accounts([merge_accounts(order[:2]), order[2]]) == merged
    assert faults(merged) == []


def test_a_thing_that_fell_between_is_a_fault() -> None:
    assert faults(account(3, 1, ("junk", "x"))) == [
        "3 files were found, and 2 are accounted for (1 used, 1 named)",
    ]
    assert faults(account(1, 2)) == ["1 files were found, and 2 are accounted for (2 used, 0 named)"]


def test_an_input_whose_account_does_not_hold_ends_the_plan() -> None:
    source = Source("photos", "folder", None, "photos", account=account(3, 0))
    with pytest.raises(ManifestError, match="photos: 3 files were found, and 2 are accounted for"):
        account_inputs([source], Survey(accounts={0: account(0, 2)}), make_config(), None)
    (told,) = account_inputs([source], Survey(accounts={0: account(0, 3)}), make_config(), None)
    assert told.account == account(3, 3)


def test_what_is_surprising_is_refused_on_request() -> None:
    source = Source("photos", "folder", None, "photos", account=account(3, 2, (LOOKS_LIKE_LABELS, "a.txt")))
    inputs = account_inputs([source], Survey(), make_config(), None)
    with pytest.raises(
        ConfigError, match=r"nothing was written:\n  photos: labels_not_read: 1 file with the looks of labels.*a\.txt"
    ):
        check_strict(inputs)
    check_strict(
        account_inputs(
            [Source("photos", "folder", None, "photos", account=account(2, 2))], Survey(), make_config(), None
        )
    )
