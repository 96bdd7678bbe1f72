"""What a person sees while a conversion runs: a bar on a terminal, which is a real one here (a pty), none elsewhere."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

from tests.loopback import Answer, Request, serving
from tests.samples import noise, png
from tests.waiting import PATIENCE

ROWS = 100
COLUMNS = 100
HELD = 60  # images that the server gives before a bar was seen: some shards, by eight, are finished then
BAR = re.compile(rf"(\d+)/{ROWS} \[[^\]]* rows/s, (\d+) rejected\]")  # 31/100 [00:01<00:03, 301.21 rows/s, 1 rejected]


class Seen(NamedTuple):
    """What a command wrote. stderr: as the terminal got it, or a pipe."""

    status: int
    stdout: str
    stderr: str


@pytest.fixture
def bar_seen() -> threading.Event:
    """Set when some rows are done in a bar on the terminal."""
    return threading.Event()


@pytest.fixture
def pictures(tmp_path: Path, bar_seen: threading.Event) -> Iterator[Path]:
    """A table of images from a server that holds the last of them until a bar was seen, however slow the machine is."""

    def answer(request: Request) -> Answer:
        if sum(asked.method == "GET" for asked in server.seen) > HELD:
            bar_seen.wait(PATIENCE)
        number = int(Path(request.path).stem)
        return Answer(body=png(Image.fromarray(noise(4, 3, number))) if number else b"no image")

    with serving(answer) as server:
        table = tmp_path / "images.csv"
        table.write_text("\n".join(["image,label", *(f"{server.url}/{number}.png,x" for number in range(ROWS))]))
        yield table
        bar_seen.set()


def command(pictures: Path, output: Path, *flags: str) -> list[str]:
    """One image at a time, so that the job takes a while."""
    places = ("--input", str(pictures), "--output", str(output), "--read_threads", "1", "--num_shards", "8")
    return [sys.executable, "-m", "pipelines.convert", *places, *flags]


def on_terminal(arguments: list[str], bar_seen: threading.Event) -> Seen:
    """Run a command whose stderr is a terminal of a hundred columns; stdout is a pipe."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    written = bytearray()

    def listen() -> None:
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # how Linux tells that nobody has the other end open any more
                return
            if not piece:
                return
            written.extend(piece)
            if any(0 < int(done) < ROWS for done, _ in BAR.findall(written.decode("utf-8", "replace"))):
                bar_seen.set()

    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    listener = threading.Thread(target=listen)
    listener.start()
    stdout, _ = process.communicate(timeout=PATIENCE)
    listener.join(PATIENCE)
    os.close(ours)
    return Seen(process.returncode, stdout.decode(), written.decode())


def test_a_terminal_shows_a_bar_that_grows_to_the_last_row(
    pictures: Path, bar_seen: threading.Event, tmp_path: Path
) -> None:
    seen = on_terminal(command(pictures, tmp_path / "out"), bar_seen)
    assert seen.status == 0
    shown = [(int(done), int(rejected)) for done, rejected in BAR.findall(seen.stderr)]
    counts = [done for done, _ in shown]
    assert len(set(counts)) >= 2, seen.stderr
    assert counts == sorted(counts)
    assert shown[-1] == (ROWS, 1)
    bar = seen.stderr.rpartition("\r\n")[0].split("\r")
    assert all(len(line.strip()) <= COLUMNS for line in bar if BAR.search(line))
    assert "published" in seen.stderr[seen.stderr.rindex("rejected]") :]  # the bar ends before what is told at the end
    assert seen.stdout.startswith(f"{ROWS:,} rows, {ROWS - 1:,} written, 1 rejected")
    assert seen.stdout.count("\n") == 1


@pytest.mark.slow
def test_a_bar_leaves_the_json_on_stdout_alone(pictures: Path, bar_seen: threading.Event, tmp_path: Path) -> None:
    seen = on_terminal(command(pictures, tmp_path / "out", "--json"), bar_seen)
    assert seen.status == 0
    assert BAR.search(seen.stderr)
    assert json.loads(seen.stdout)["rows"] == ROWS


@pytest.mark.slow
def test_quiet_writes_nothing_to_the_terminal(pictures: Path, bar_seen: threading.Event, tmp_path: Path) -> None:
    bar_seen.set()
    seen = on_terminal(command(pictures, tmp_path / "out", "--quiet"), bar_seen)
    assert (seen.status, seen.stderr) == (0, "")
    assert seen.stdout.startswith(f"{ROWS:,} rows")


@pytest.mark.slow
def test_a_pipe_gets_no_bar(pictures: Path, bar_seen: threading.Event, tmp_path: Path) -> None:
    bar_seen.set()
    arguments = command(pictures, tmp_path / "out")
    done = subprocess.run(arguments, capture_output=True, stdin=subprocess.DEVNULL, timeout=300, check=True)
    told = done.stderr.decode()
    assert "\r" not in told
    assert not BAR.search(told)
    assert "rows/s" not in told
    assert "published" in told
