from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.errors import StorageError
from beam_tfrecord.options.config import RunConfig
from beam_tfrecord.storage import RetryPolicy, Storage, StorageCounters, UnreadableFileError
from beam_tfrecord.storage.answers import retry_after_seconds
from beam_tfrecord.storage.faults import MissingFileError, TransientError
from beam_tfrecord.storage.streams import FIRST_WINDOW, LARGEST_WINDOW, buffered_ranges, upload_stream


def failing(times: int, error: Exception) -> Callable[[], str]:
    left = [times]

    def attempt() -> str:
        if left[0]:
            left[0] -= 1
            raise error
        return "done"

    return attempt


def test_it_is_tried_again_until_it_works_or_the_tries_are_used_up() -> None:
    policy = RetryPolicy(attempts=4, first_wait=0.001, longest_wait=0.002)
    waits: list[None] = []
    assert policy.call(failing(3, TransientError("busy")), "x", lambda: waits.append(None)) == "done"
    assert len(waits) == 3
    with pytest.raises(UnreadableFileError, match=r"^x: failed 4 times, the last time with: busy$"):
        policy.call(failing(4, TransientError("busy")), "x", lambda: None)
    with pytest.raises(UnreadableFileError, match="failed 1 time, "):
        RetryPolicy(attempts=1).call(failing(1, TransientError("busy")), "x", lambda: None)


@pytest.mark.parametrize("error", [MissingFileError("gone"), StorageError("refused"), ZeroDivisionError()])
def test_nothing_else_is_tried_again(error: Exception) -> None:
    with pytest.raises(type(error)):
        RetryPolicy().call(failing(1, error), "x", lambda: pytest.fail("tried again"))


def test_the_waits_grow_are_random_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    policy = RetryPolicy(attempts=9, first_wait=1, longest_wait=16, total_time=10**9)
    for _ in range(60):
        policy.call(failing(8, TransientError("busy")), "x", lambda: None)
    for number in range(8):
        waits = slept[number::8]
        longest = min(16, 2**number)
        assert max(waits) <= longest
        assert min(waits) < longest / 3  # down to nothing: full jitter
        assert max(waits) > longest * 2 / 3


def test_what_a_server_asks_for_is_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    policy = RetryPolicy(attempts=3, first_wait=0.1, longest_wait=20)
    policy.call(failing(1, TransientError("busy", retry_after=7)), "x", lambda: None)
    policy.call(failing(1, TransientError("busy", retry_after=3600)), "x", lambda: None)
    assert slept == [7, 20]


def test_the_total_time_is_bounded() -> None:
    policy = RetryPolicy(attempts=10**6, first_wait=0.05, longest_wait=0.05, total_time=0.3)
    with pytest.raises(UnreadableFileError):  # at once, not after the half day of all attempts
        policy.call(failing(10**6, TransientError("busy")), "x", lambda: None)


def test_counts_of_many_threads_are_complete() -> None:
    counters = StorageCounters()
    threads = [threading.Thread(target=lambda: [counters.add("read_retries") for _ in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counters["read_retries"] == 4000
    assert counters["write_retries"] == 0
    assert counters.snapshot() == {"read_retries": 4000}


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, 0), ("", 0), ("12", 12), (" 3 ", 3), ("soon", 0), ("-5", 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0)],
)
def test_retry_after_is_a_number_or_a_date(header: str | None, seconds: float) -> None:
    assert retry_after_seconds(header) == seconds


def test_retry_after_as_a_date_to_come() -> None:
    from email.utils import formatdate

    assert 3000 < retry_after_seconds(formatdate(time.time() + 3600, usegmt=True)) <= 3600


def test_the_run_options_make_the_storage() -> None:
    storage = Storage.for_run(RunConfig(read_threads=200, gcs_user_project="payer"))
    assert storage.options.connections == 200
    assert storage.options.gcs_user_project == "payer"
    assert Storage.for_run(RunConfig()).options.connections >= 32


class Remote:
    """Bytes that are fetched in ranges, with a note of each range."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.fetched: list[tuple[int, int]] = []

    def fetch(self, start: int, length: int) -> bytes:
        self.fetched.append((start, length))
        return self.data[start : start + length]


@given(
    st.integers(0, 3_000_000),
    st.lists(st.tuples(st.sampled_from(["read", "seek", "end", "line"]), st.integers(0, 3_100_000)), max_size=12),
)
def test_a_range_reader_reads_like_a_file(size: int, steps: list[tuple[str, int]]) -> None:
    data = (b"0123456789abcdef\n" * (size // 17 + 1))[:size]
    stream, plain = buffered_ranges(size, Remote(data).fetch), io.BytesIO(data)
    for step, number in steps:
        if step == "read":
            assert stream.read(number) == plain.read(number)
        elif step == "line":
            assert stream.readline() == plain.readline()
        elif step == "seek":
            assert stream.seek(number) == plain.seek(number)
        else:
            assert stream.seek(-min(number, size), os.SEEK_END) == plain.seek(-min(number, size), os.SEEK_END)
        assert stream.tell() == plain.tell()
    assert stream.read() == plain.read()


@pytest.mark.parametrize("given", [0, 1, 99_999])
def test_a_range_that_comes_short_is_not_taken_for_the_end_of_the_file(given: int) -> None:
    stream = buffered_ranges(300_000, lambda start, length: bytes(min(length, given)))
    for read in (lambda: stream.read(10), stream.readline, stream.read):
        with pytest.raises(OSError, match=rf"{given:,} bytes came of .* of a file of 300,000"):
            read()


def test_long_files_take_few_requests_and_headers_small_ones() -> None:
    remote = Remote(bytes(60_000_000))
    stream = buffered_ranges(len(remote.data), remote.fetch)
    for _ in stream:
        pass
    while stream.read(50_000):
        pass
    assert remote.fetched[0] == (0, FIRST_WINDOW)
    assert len(remote.fetched) <= 15
    assert max(length for _, length in remote.fetched) == LARGEST_WINDOW
    assert sum(length for _, length in remote.fetched) == 60_000_000
    remote.fetched.clear()
    stream.seek(1_000_000)
    stream.read(100)
    assert remote.fetched == [(1_000_000, FIRST_WINDOW)]


@pytest.mark.parametrize("size", [0, 10, 17_000_000, 40_000_000])
def test_an_upload_hands_over_all_bytes_when_it_is_closed(size: int) -> None:
    data = os.urandom(1000) * (size // 1000 + 1)
    data = data[:size]
    handed: list[bytes] = []

    def finish(stream: BinaryIO, length: int) -> None:
        assert length == size
        assert stream.read() == data
        stream.seek(0)
        handed.append(stream.read())

    with upload_stream(finish) as stream:
        for start in range(0, size, 1_000_003):
            stream.write(data[start : start + 1_000_003])
        assert stream.tell() == size
        assert handed == []
    stream.close()
    assert handed == [data]
    with pytest.raises(ValueError, match="closed"):
        stream.write(b"x")


def test_an_upload_that_fails_is_closed_all_the_same() -> None:
    def finish(stream: BinaryIO, length: int) -> None:
        raise StorageError("no")

    stream = upload_stream(finish)
    stream.write(b"x")
    with pytest.raises(StorageError):
        stream.close()
    assert stream.closed
    stream.close()
