"""``python -m benchmarks.slow_store FOLDER OUTPUT``: a default run on a store whose answers take 20 ms and no work.

The pictures of the folder are named by web addresses that are read from the disk after a wait. Ends with a line of
JSON: how many reads were under way at a time.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from beam_tfrecord.storage.web import WebStore
from benchmarks.latency import DELAY, UnderWay
from pipelines.main import main as beam_tfrecord

HOST = "http://store"
COPIES = 3  # of each picture: enough for some seconds


def main(folder: Path, output: Path) -> None:
    counts = UnderWay()

    def read(self: WebStore, uri: str, max_bytes: int | None) -> bytes:
        counts.change(1)
        try:
            time.sleep(DELAY)
            return Path(uri.removeprefix(HOST).partition("?")[0]).read_bytes()
        finally:
            counts.change(-1)

    def size(self: WebStore, uri: str) -> int:
        return Path(uri.removeprefix(HOST).partition("?")[0]).stat().st_size

    WebStore.read, WebStore.size = read, size  # type: ignore[method-assign]
    paths = sorted(folder.resolve().rglob("*.jpg"))
    lines = [f"{HOST}{path}?{copy},{path.parent.name}" for copy in range(COPIES) for path in paths]
    manifest = output.with_suffix(".csv")
    manifest.write_text("\n".join(["image,label", *lines]) + "\n")
    status = beam_tfrecord(["convert", "--input", str(manifest), "--output", str(output), "--quiet", "--overwrite"])
    if status:
        raise SystemExit(status)
    print(json.dumps({"reads": len(lines), "mean": counts.mean, "most": counts.most}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
