"""Every cell of the table in ``docs/images.md`` is what the code does."""

from __future__ import annotations

import pytest

from beam_tfrecord.errors import CHANGE_REASONS, REJECT_CODES, WARNING_CODES, ImageError
from beam_tfrecord.images import convert_image
from beam_tfrecord.options.config import ImagePolicy
from tests.image_judge import pixels_of
from tests.image_kinds import ALSO, KINDS
from tests.image_table import COLUMNS, OTHERS, PAGE, actual, documented

ROWS = {row.name: row for row in documented()}


def test_the_table_has_a_row_for_every_kind_and_none_twice() -> None:
    assert [row.name for row in documented()] == list(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_row_says_what_the_code_does(name: str) -> None:
    assert actual(name, KINDS[name]()) == ROWS[name]
    for make in ALSO.get(name, ()):
        assert actual(name, make()) == ROWS[name]


@pytest.mark.parametrize("name", KINDS)
def test_tensorflow_decodes_every_cell_to_what_is_stated(name: str) -> None:
    for make in (KINDS[name], *ALSO.get(name, ())):
        for policy in (*COLUMNS.values(), *OTHERS.values()):
            try:
                stored = convert_image(make(), policy)
            except ImageError as error:
                assert error.code in REJECT_CODES  # noqa: PT017
            else:
                pixels_of(stored)
                assert set(stored.changed) <= set(CHANGE_REASONS)
                assert {code for code, _ in stored.warnings} <= set(WARNING_CODES)


def test_the_page_states_the_defaults_that_the_code_has() -> None:
    page = PAGE.read_text("utf-8")
    policy = ImagePolicy()
    for option in ("quality", "max_pixels", "orientation", "animated", "validate", "color", "image_format"):
        value = f"{getattr(policy, option):,}" if option == "max_pixels" else str(getattr(policy, option))
        assert f"`--{option}` (default {value})" in page, option
