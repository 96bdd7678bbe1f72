"""What an image costs that is not on a local disk: R1 from Cloud Storage, R2 by https://, R3 where images are decoded.

The server is the one of :mod:`benchmarks.file_server`, in Go, which takes a tenth of a millisecond for an image; only
the processor time of the client counts.
"""

from __future__ import annotations

import json
import shutil
import ssl
import statistics
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import data
from benchmarks.process import Measured, measure
from tests.loopback import self_signed

ROOT = Path(__file__).resolve().parent.parent
SMALL = data.FEW_SMALL
LARGE = data.Pictures(1_000, 800, 600, 83)  # about 105 KB each
FEW = 10
SOME = 150  # large ones: enough for the pictures of the report, whose cost is the same for any number
DELAY = "20ms"
BUCKET = "gs://pictures"
DIRECT = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


@dataclass(frozen=True)
class Place:
    """Where pictures are read from. base: in front of their names. environment: variables that lead there."""

    base: str
    environment: Mapping[str, str]


def measure_stores(root: Path, scratch: Path, wanted: set[str], repeat: int) -> dict[str, dict[str, float]]:
    """R1, R2 and R3, as far as they are wanted; none where there is no Go."""
    if not shutil.which("go"):
        print("\nR1, R2, R3: left out, Go is not installed", flush=True)
        return {}
    server = scratch / "file_server"
    subprocess.run(["go", "build", "-o", str(server), str(ROOT / "benchmarks" / "file_server" / "main.go")], check=True)
    folder = data.make(SMALL, root)
    found = {}
    for name, title, is_secure in (("R1", "gs://", False), ("R2", "https://", True)):
        if name in wanted:
            with serving(server, folder, scratch, is_secure=is_secure) as place, serving(
                server, folder, scratch, "-delay", DELAY, is_secure=is_secure
            ) as slow:  # fmt: skip
                found[name] = tell_remote(
                    f"{name}: {SMALL.count:,} small JPEGs by {title}", folder, place, slow, scratch, repeat
                )
    if "R3" in wanted:
        folder = data.make(LARGE, root)
        with serving(server, folder, scratch, is_secure=False) as place:
            found["R3"] = tell_share(folder, place, scratch, repeat)
    return found


def tell_remote(title: str, folder: Path, place: Place, slow: Place, scratch: Path, repeat: int) -> dict[str, float]:
    """CPU for an image above that of the same images on the disk, start above a local start, reads under way."""
    local = Place(str(folder), {})
    runs: dict[tuple[str, int], list[Measured]] = {}
    for _ in range(repeat):
        for where in (local, place):
            for count in (FEW, SMALL.count):
                job = convert(where, folder, count, scratch, "--validate", "header")
                runs.setdefault((where.base, count), []).append(job)

    def cpu(where: Place) -> float:
        many, few = (statistics.median(one.cpu for one in runs[where.base, count]) for count in (SMALL.count, FEW))
        return (many - few) / (SMALL.count - FEW)

    above = (cpu(place) - cpu(local)) * 1000
    start = statistics.median(
        b.wall - a.wall for a, b in zip(runs[local.base, FEW], runs[place.base, FEW], strict=True)
    )
    convert(slow, folder, SMALL.count, scratch, "--validate", "header")
    under_way = reads(slow)
    print(
        f"\n{title}, --validate header\n"
        f"  CPU above the local disk's {cpu(local) * 1000:.2f} ms: {above:.2f} ms an image   goal at most 0.45\n"
        f"  start above a local one: {start:.2f} s   goal at most 1\n"
        f"  behind {DELAY} of latency: {under_way['mean']:.1f} reads under way on average, {under_way['most']:.0f} at "
        "most   goal 40 of 48",
        flush=True,
    )
    return {"cpu above, ms": above, "start above, s": start, "mean": under_way["mean"], "most": under_way["most"]}


def tell_share(folder: Path, place: Place, scratch: Path, repeat: int) -> dict[str, float]:
    """How much of the CPU of an image is its decoding: what is left out with ``--validate header``."""
    runs: dict[tuple[str, int], list[float]] = {}
    for _ in range(repeat):
        for validate in ("full", "header"):
            for count in (SOME, LARGE.count):
                job = convert(place, folder, count, scratch, "--validate", validate)
                runs.setdefault((validate, count), []).append(job.cpu)

    def cpu(validate: str) -> float:
        many, some = (statistics.median(runs[validate, count]) for count in (LARGE.count, SOME))
        return (many - some) / (LARGE.count - SOME)

    share = 1 - cpu("header") / cpu("full")
    each = cpu("full") * 1000
    print(
        f"\nR3: {LARGE.count:,} JPEGs of 105 KB by gs://, full validation\n  {each:.2f} ms of CPU an image, of which "
        f"decoding is {share:.0%}   goal 85%",
        flush=True,
    )
    return {"ms": each, "share": share}


def convert(place: Place, folder: Path, count: int, scratch: Path, *options: str) -> Measured:
    """Convert the first pictures of a folder, named in a table. Raises ValueError when one is missing afterwards."""
    table, output = write_table(place, folder, count, scratch), scratch / "remote"
    command = ["-m", "pipelines.main", "convert", "--input", str(table), "--output", str(output), "--quiet", "--json"]
    with_python = [sys.executable, *command, *options]
    done = measure(with_python, ROOT, watched=False, environment=place.environment)
    written = json.loads(done.output.splitlines()[-1])["written"]
    if written != count:
        raise ValueError(f"{written} of {count} pictures were written")
    shutil.rmtree(output)
    return done


def write_table(place: Place, folder: Path, count: int, scratch: Path) -> Path:
    """A table of the first pictures of a folder, named as they are at a place."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.jpg"))[:count]
    table = scratch / "remote.csv"
    table.write_text("image,label\n" + "".join(f"{place.base}/{path},{path.split('/')[0]}\n" for path in paths))
    return table


@contextmanager
def serving(server: Path, folder: Path, scratch: Path, *options: str, is_secure: bool) -> Iterator[Place]:
    """The folder on a loopback port."""
    secure = []
    if is_secure:
        _, authority = self_signed(scratch)
        secure = ["-certificate", str(scratch / "server.pem"), "-key", str(scratch / "server.pem")]
    with subprocess.Popen(
        [str(server), "-folder", str(folder), *options, *secure], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            if is_secure:
                yield Place(address, {**DIRECT, "REQUESTS_CA_BUNDLE": str(authority)})
            else:
                yield Place(BUCKET, {**DIRECT, "STORAGE_EMULATOR_HOST": address})
        finally:
            process.terminate()


def reads(place: Place) -> dict[str, float]:
    """How many reads were under way at a time."""
    address = place.environment.get("STORAGE_EMULATOR_HOST", place.base)
    trusted = place.environment.get("REQUESTS_CA_BUNDLE")
    secure = [urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=trusted))] if trusted else []
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), *secure)
    with opener.open(f"{address}/reads") as answer:
        found: dict[str, float] = json.load(answer)
    return found
