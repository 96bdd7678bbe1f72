"""A few thousand damaged files; ``python -m tests.fuzz_images`` makes as many as you have time for."""

from __future__ import annotations

import pytest

from tests.fuzz_images import MUTATIONS, cut_faults, mutants, run, seeds


@pytest.mark.parametrize(("count", "seed"), [(1500, 2), pytest.param(6000, 1, marks=pytest.mark.slow)])
def test_nothing_crashes_hangs_or_is_stored_that_tensorflow_does_not_decode_as_stated(count: int, seed: int) -> None:
    faults, ends = run(count, seed)
    assert not faults, "\n".join(faults[:5])
    # The mutants reach all parts: some are stored, and some are rejected for each reason that damage has.
    assert ends["stored"] > count / 12
    assert {"truncated_image", "corrupt_image", "not_an_image", "too_many_pixels", "unsupported_format"} <= set(ends)


def test_mutants_are_the_same_for_the_same_seed() -> None:
    first, second = ([(m.seed_name, m.data) for m in mutants(200, seed=5)] for _ in range(2))
    assert first == second
    assert {name for name, _ in first} <= set(seeds())
    assert {m.mutation for m in mutants(500, seed=5)} == {mutation.__name__ for mutation in MUTATIONS}


@pytest.mark.parametrize(("count", "seed"), [(500, 4), pytest.param(2000, 3, marks=pytest.mark.slow)])
def test_no_jpeg_that_was_cut_and_ended_by_an_end_marker_is_stored(count: int, seed: int) -> None:
    faults = cut_faults(count, seed)
    assert not faults, "\n".join(faults[:5])
