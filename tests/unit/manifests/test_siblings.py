from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from beam_tfrecord.manifests.siblings import READERS, in_parallel
from tests.waiting import PATIENCE


def test_results_keep_the_order_of_the_items_whichever_is_ready_first() -> None:
    def slow(number: int) -> int:
        time.sleep(0.01 * (number % 3 == 0))
        return number * number

    assert list(in_parallel(slow, range(100))) == [number * number for number in range(100)]


def test_several_calls_run_at_a_time_and_items_are_taken_only_as_needed() -> None:
    taken = []
    together = threading.Barrier(READERS, timeout=PATIENCE)

    def items() -> Iterator[int]:
        for number in range(10 * READERS):
            taken.append(number)
            yield number

    def meet(number: int) -> int:
        if number < READERS:
            together.wait()  # never passes unless all of them run
        return number

    results = in_parallel(meet, items())
    assert next(results) == 0
    assert len(taken) == 2 * READERS
    results.close()  # type: ignore[attr-defined]


def test_an_exception_is_raised_where_the_result_would_stand() -> None:
    def fail_at_3(number: int) -> int:
        if number == 3:
            raise RuntimeError("three")
        return number

    results = in_parallel(fail_at_3, range(50))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(RuntimeError, match="three"):
        next(results)


def test_no_items_give_no_results() -> None:
    assert list(in_parallel(str, [])) == []
