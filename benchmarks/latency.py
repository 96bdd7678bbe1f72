"""Reads that take 20 ms each: how many are under way at a time in a default run.

Twice: with a store that takes no work at all, where only the tool decides; and with a server and a client that do,
where the cores set the pace.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks import data
from benchmarks.cases import convert
from benchmarks.process import measure

ROOT = Path(__file__).resolve().parent.parent
DELAY = 0.02
COUNT = 2_000


class UnderWay:
    """Requests under way: the most at a time, and the time-weighted mean between the first and the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = self.most = 0
        self.busy = 0.0
        self.first = self.last = 0.0
        self._changed = 0.0

    @property
    def mean(self) -> float:
        """Over the time from the first to the last."""
        return self.busy / (self.last - self.first)

    def change(self, by: int) -> None:
        """One more or one fewer under way."""
        with self._lock:
            moment = time.perf_counter()
            self.first = self.first or moment
            self.busy += self.now * (moment - self._changed) if self._changed else 0.0
            self._changed = self.last = moment
            self.now += by
            self.most = max(self.most, self.now)


def measure_latency(root: Path, scratch: Path) -> dict[str, float]:
    """A list of http:// pictures behind a server that waits 20 ms before each answer."""
    folder = data.make(data.FEW_SMALL, root)
    counts = UnderWay()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            counts.change(1)
            try:
                time.sleep(DELAY)
                body = (folder / self.path.lstrip("/")).read_bytes()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            finally:
                counts.change(-1)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.jpg"))[:COUNT]
        manifest = scratch / "remote.csv"
        lines = [f"{base}/{path},{path.split('/')[0]}" for path in paths]
        manifest.write_text("\n".join(["image,label", *lines]) + "\n")
        output = scratch / "remote"
        ours = measure(convert().command(manifest, output), ROOT)
        server.shutdown()
    alone = json.loads(
        measure([sys.executable, "-m", "benchmarks.slow_store", str(folder), str(output)], ROOT).output.splitlines()[-1]
    )
    print(
        f"\nlatency: reads of {DELAY * 1000:.0f} ms from a store without work: under way at a time: mean "
        f"{alone['mean']:.1f}, most {alone['most']}   goal at least 32\n  with a server: {len(paths):,} reads of "
        f"{DELAY * 1000:.0f} ms in {ours.wall:.1f} s; one after the other they take "
        f"{len(paths) * DELAY:.0f} s; under way at a time: mean {counts.mean:.1f}, most {counts.most}",
        flush=True,
    )
    return {"wall": ours.wall, "mean": counts.mean, "most": counts.most, "store": alone}
