from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_tfrecord.writing.read_ahead import ordered_map


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=30), st.integers(1, 8), st.integers(0, 5))
def test_results_come_in_the_order_of_the_tasks(delays: list[int], threads: int, max_bytes: int) -> None:
    def work(task: tuple[int, int]) -> int:
        time.sleep(task[1] / 5000)
        return task[0]

    with ThreadPoolExecutor(threads) as pool:
        results = list(
            ordered_map(pool, work, enumerate(delays), max_tasks=2 * threads, max_bytes=max_bytes, size_of=lambda _: 1)
        )
    assert results == list(range(len(delays)))


def test_no_more_tasks_are_begun_than_allowed() -> None:
    begun: list[int] = []

    def tasks():
        for number in range(100):
            begun.append(number)
            yield number

    with ThreadPoolExecutor(2) as pool:
        results = ordered_map(pool, lambda n: n, tasks(), max_tasks=4, max_bytes=10**9, size_of=lambda _: 1)
        for number in results:
            assert len(begun) <= number + 1 + 5


def test_finished_bytes_that_wait_are_bounded() -> None:
    """The first task is slow: of those behind it only so many may pile up as the bytes allow."""
    gate = threading.Event()
    done: list[int] = []

    def work(number: int) -> int:
        if number == 0:
            gate.wait(10)
        done.append(number)
        return number

    with ThreadPoolExecutor(4) as pool:
        results = ordered_map(pool, work, range(1000), max_tasks=1000, max_bytes=50, size_of=lambda _: 10)
        taken: list[int] = []
        reader = threading.Thread(target=lambda: taken.extend(results))
        reader.start()
        time.sleep(0.3)
        waiting = len(done)
        gate.set()
        reader.join(10)
    assert waiting <= 6 + 4
    assert taken == list(range(1000))


def test_an_error_is_raised_in_its_place() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise KeyError(number)
        return number

    with ThreadPoolExecutor(2) as pool:
        results = ordered_map(pool, work, range(10), max_tasks=4, max_bytes=100, size_of=lambda _: 1)
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(KeyError):
            next(results)
