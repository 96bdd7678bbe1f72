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
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

from tests.samples import noise, png

ROWS = 100
COLUMNS = 100
DELAY = 0.05  # seconds that the server takes for an image: a shard takes longer than the bar needs to be drawn
BAR = re.compile(rf"(\d+)/{ROWS} \[[^\]]* rows/s, (\d+) rejected\]")  # 31/100 [00:01<00:03, 301.21 rows/s, 1 rejected]


class Seen(NamedTuple):
    """What a command wrote. stderr: as the terminal got it, or a pipe."""

    status: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A table of images that come from a slow server, so that no machine is done with them before a bar is drawn."""

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that http.server calls
            time.sleep(DELAY)
            number = int(Path(self.path).stem)
            sent = png(Image.fromarray(noise(4, 3, number))) if number else b"no image"
            self.send_response(200)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    table = tmp_path_factory.mktemp("progress") / "images.csv"
    address = f"http://127.0.0.1:{server.server_port}"
    table.write_text("\n".join(["image,label", *(f"{address}/{number}.png,x" for number in range(ROWS))]))
    yield table
    server.shutdown()
    server.server_close()


def command(pictures: Path, output: Path, *flags: str) -> list[str]:
    """One image at a time, so that the job takes a while."""
    places = ("--input", str(pictures), "--output", str(output), "--read_threads", "1", "--num_shards", "8")
    return [sys.executable, "-m", "pipelines.convert", *places, *flags]


def on_terminal(arguments: list[str]) -> Seen:
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

    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    listener = threading.Thread(target=listen)
    listener.start()
    stdout, _ = process.communicate(timeout=300)
    listener.join(30)
    os.close(ours)
    return Seen(process.returncode, stdout.decode(), written.decode())


def test_a_terminal_shows_a_bar_that_grows_to_the_last_row(pictures: Path, tmp_path: Path) -> None:
    seen = on_terminal(command(pictures, tmp_path / "out"))
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
def test_a_bar_leaves_the_json_on_stdout_alone(pictures: Path, tmp_path: Path) -> None:
    seen = on_terminal(command(pictures, tmp_path / "out", "--json"))
    assert seen.status == 0
    assert BAR.search(seen.stderr)
    assert json.loads(seen.stdout)["rows"] == ROWS


@pytest.mark.slow
def test_quiet_writes_nothing_to_the_terminal(pictures: Path, tmp_path: Path) -> None:
    seen = on_terminal(command(pictures, tmp_path / "out", "--quiet"))
    assert (seen.status, seen.stderr) == (0, "")
    assert seen.stdout.startswith(f"{ROWS:,} rows")


@pytest.mark.slow
def test_a_pipe_gets_no_bar(pictures: Path, tmp_path: Path) -> None:
    arguments = command(pictures, tmp_path / "out")
    done = subprocess.run(arguments, capture_output=True, stdin=subprocess.DEVNULL, timeout=300, check=True)
    told = done.stderr.decode()
    assert "\r" not in told
    assert not BAR.search(told)
    assert "rows/s" not in told
    assert "published" in told
