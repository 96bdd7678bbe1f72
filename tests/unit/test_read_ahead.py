from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_tfrecord.conversion.writing.read_ahead import ordered_map, ordered_shared_map
from tests.waiting import PATIENCE, wait_until


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
    begun: list[int] = []
    finished = threading.Semaphore(2)

    def tasks() -> Iterator[int]:
        for number in range(1000):
            assert finished.acquire(timeout=PATIENCE)  # of those before, all but the slow one and the last
            begun.append(number)
            yield number

    def work(number: int) -> int:
        if number == 0:
            gate.wait(PATIENCE)
        return number

    def size_of(number: int) -> int:
        finished.release()
        return 10

    with ThreadPoolExecutor(4) as pool:
        results = ordered_map(pool, work, tasks(), max_tasks=1000, max_bytes=50, size_of=size_of)
        taken: list[int] = []
        reader = threading.Thread(target=lambda: taken.extend(results))
        reader.start()
        wait_until(lambda: len(begun) >= 7)
        time.sleep(0.1)  # in which none may follow
        waiting = len(begun)
        gate.set()
        reader.join(PATIENCE)
    assert waiting <= 1 + 6 + 2  # the slow one, those beyond fifty bytes, and those not counted yet
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


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30), st.integers(1, 3), st.integers(1, 6))
def test_shared_results_come_in_the_order_of_the_tasks_each_once(
    delays: list[tuple[int, int]], max_tasks: int, max_waiting: int
) -> None:
    """Some are done here and some elsewhere, at different speeds; few are held at a time."""
    done: list[int] = []
    most = 0
    taken = 0

    def work(task: tuple[int, tuple[int, int]], place: int) -> tuple[int, int]:
        nonlocal most
        time.sleep(task[1][place] / 5000)
        done.append(task[0])
        most = max(most, len(done) - taken)
        return task[0], place

    results = []
    with ThreadPoolExecutor(2) as pool:
        for result in ordered_shared_map(
            lambda task: pool.submit(work, task, 0),
            lambda task: work(task, 1),
            enumerate(delays),
            max_tasks=max_tasks,
            max_waiting=max_waiting,
            max_bytes=10**9,
            size_of=lambda _: 1,
        ):
            results.append(result)
            taken = len(results)
    assert [number for number, _ in results] == list(range(len(delays)))
    assert sorted(done) == list(range(len(delays)))
    assert most <= max_waiting + 1  # and the one that is being handed out


@pytest.mark.parametrize("place", ["here", "elsewhere"])
def test_an_error_of_a_shared_task_ends_all_and_no_result_is_left_out_before_it(place: str) -> None:
    def work(number: int, own: str) -> int:
        if number >= 5 and own == place:
            raise ValueError(number)
        return number

    results: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        shared = ordered_shared_map(
            lambda number: pool.submit(work, number, "elsewhere"),
            lambda number: work(number, "here"),
            range(1000),
            max_tasks=1,
            max_waiting=8,
            max_bytes=10**9,
            size_of=lambda _: 1,
        )
        with pytest.raises(ValueError, match=r"^\d+$") as raised:
            results.extend(shared)
    assert results == list(range(len(results)))
    if place == "elsewhere":
        assert len(results) == int(str(raised.value)) >= 5


def test_finished_bytes_of_shared_tasks_are_bounded() -> None:
    """The first task is with another one and slow: of those done here meanwhile only so many bytes may pile up."""
    gate = threading.Event()
    done: list[int] = []

    def elsewhere(number: int) -> int:
        gate.wait(PATIENCE)
        return number

    def here(number: int) -> int:
        done.append(number)
        return number

    taken: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        shared = ordered_shared_map(
            lambda number: pool.submit(elsewhere, number),
            here,
            range(1000),
            max_tasks=1,
            max_waiting=1000,
            max_bytes=50,
            size_of=lambda _: 10,
        )
        reader = threading.Thread(target=lambda: taken.extend(shared))
        reader.start()
        wait_until(lambda: len(done) >= 6)
        time.sleep(0.1)  # in which none may follow
        waiting = len(done)
        gate.set()
        reader.join(PATIENCE)
    assert waiting == 6  # of ten bytes each: the first beyond fifty
    assert taken == list(range(1000))
