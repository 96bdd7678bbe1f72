"""Wheel and source archive, built and tried as a stranger would: ``python -m tests.smoke_packages`` (``make smoke``).

For every Python from 3.10 to 3.13 that is found, the wheel is installed into an empty environment, and a generated
collection is converted, verified, shown and read from an empty folder outside of the checkout. The source archive is
tried on the first of them, and so are extras that are asked for (``--extra tensorflow``). Exit status 1 when one of
them fails, or when no Python is found.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MINORS = range(10, 14)
SECONDS = 1800
READ = """
import beam_tfrecord
from pathlib import Path
assert not Path(beam_tfrecord.__file__).is_relative_to({checkout!r}), beam_tfrecord.__file__
assert (Path(beam_tfrecord.__file__).parent / "py.typed").is_file()
summary = beam_tfrecord.convert("photos", "from_python", splits={{"train": 0.8, "test": 0.2}}, max_rejects="50%")
assert (summary.status, summary.written) == ("published", {written}), summary
assert len(list(beam_tfrecord.read("out"))) == {written}
"""
LOAD = """
import beam_tfrecord
assert sum(1 for _ in beam_tfrecord.load("out", "all")) == {written}
"""


class SmokeError(Exception):
    """What went wrong, for a person."""


def run(*command: str | Path, folder: Path) -> str:
    """Output of a command that sees nothing of this checkout. Raises SmokeError with its last words."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        last = (done.stdout + done.stderr)[-2000:]
        raise SmokeError(f"{' '.join(map(str, command[:4]))} ...: exit status {done.returncode}\n{last}")
    return done.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """(wheel, source archive), built from a copy: what lies about in the checkout is not packed."""
    tree = folder / "tree"
    skipped = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.egg-info", "build", "dist", "demo", ".*_cache")
    shutil.copytree(ROOT, tree, ignore=skipped)
    run(sys.executable, "-m", "build", "--installer", "uv", "--outdir", folder / "dist", tree, folder=folder)
    (wheel,), (archive,) = (sorted((folder / "dist").glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
    return wheel, archive


def check_contents(wheel: Path, archive: Path) -> None:
    """Raise SmokeError when something is missing from the packages, or in them by mistake."""
    packages = {
        path.relative_to(ROOT).as_posix()
        for name in ("beam_tfrecord", "pipelines")
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as opened:
        in_wheel = {name for name in opened.namelist() if ".dist-info/" not in name}
        told = next(name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = opened.read(told).decode()
    with tarfile.open(archive) as packed:
        in_archive = {name.partition("/")[2] for name in packed.getnames()}
    if in_wheel != packages:
        raise SmokeError(f"the wheel differs from the packages: {sorted(in_wheel ^ packages)[:5]}")
    missing = packages | {"LICENSE", "README.md", "pyproject.toml", "setup.py", "constraints.txt"}
    if missing - in_archive:
        raise SmokeError(f"missing from the source archive: {sorted(missing - in_archive)[:5]}")
    for field in ("License-Expression: Apache-2.0", "Requires-Python: >=3.10,<3.14", "Provides-Extra: tensorflow"):
        if field not in metadata:
            raise SmokeError(f"the metadata of the wheel lacks {field!r}")


def find_pythons(wanted: Sequence[str]) -> dict[str, Path]:
    """Interpreter by version (``3.11``), those that uv finds or that are on the PATH."""
    found: dict[str, Path] = {}
    for version in wanted:
        told = subprocess.run(
            [uv(), "python", "find", "--no-python-downloads", "--no-project", "--system", version],
            capture_output=True,
            text=True,
            check=False,
            cwd=tempfile.gettempdir(),
        )
        place = Path.home() / ".pyenv" / "versions"
        candidates = [
            told.stdout.strip(),
            shutil.which(f"python{version}") or "",
            *(str(path) for path in sorted(place.glob(f"{version}.*/bin/python"))),
        ]
        for candidate in candidates:
            if candidate and version_of(candidate) == version:
                found[version] = Path(candidate)
                break
    return found


def version_of(python: str) -> str:
    """``3.11``, or '' for what does not start (a shim of a version that is not installed)."""
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def uv() -> str:
    """The uv beside this interpreter, or the one on the PATH."""
    own = Path(sys.executable).with_name("uv")
    return str(own) if own.exists() else "uv"


def try_package(package: Path, python: Path, folder: Path, extra: str = "") -> str:
    """Install a package into an empty environment and use it; what was done, in words. Raises SmokeError."""
    folder.mkdir()
    environment, work = folder / "environment", folder / "work"
    work.mkdir()
    run(uv(), "venv", "--quiet", "--no-project", "--python", python, environment, folder=folder)
    new = environment / "bin" / "python"
    wanted = f"beam-tfrecord{f'[{extra}]' if extra else ''} @ {package.as_uri()}"
    pins = ROOT / "constraints.txt"
    install = (uv(), "pip", "install", "--quiet", "--python", new, "--constraint", pins)
    run(*install, wanted, folder=work)
    has_tensorflow = (next((environment / "lib").glob("python*")) / "site-packages" / "tensorflow").exists()
    command = environment / "bin" / "beam-tfrecord"
    shutil.copy(ROOT / "tests" / "samples.py", work / "make_photos.py")
    run(new, "make_photos.py", "photos", folder=work)
    (work / "make_photos.py").unlink()
    splits = "train=0.8,validation=0.1,test=0.1"
    told = run(command, "convert", "--input", "photos", "--output", "out", "--splits", splits, "--json", folder=work)
    counts = json.loads(told.splitlines()[-1])
    if counts["rows"] != counts["written"] + counts["rejected"] or not counts["written"]:
        raise SmokeError(f"convert: {counts}")
    verdict = json.loads(run(command, "verify", "out", "--json", folder=work).splitlines()[-1])
    if verdict["faults"] or verdict["records"] != counts["written"]:
        raise SmokeError(f"verify: {verdict}")
    run(command, "show", "out", "--sheet", "sheet.png", folder=work)
    run(new, "-c", READ.format(checkout=str(ROOT), written=counts["written"]), folder=work)
    if extra == "tensorflow":
        run(new, "-c", LOAD.format(written=counts["written"]), folder=work)
    elif has_tensorflow:
        raise SmokeError("TensorFlow came with the default installation")
    return f"{counts['written']} records converted, verified, shown and read"


def report(name: str, attempt: Callable[[], str]) -> bool:
    """Do one thing and print a line about it; whether it worked."""
    started = time.monotonic()
    try:
        told = attempt()
    except (SmokeError, subprocess.TimeoutExpired) as error:
        print(f"FAILED  {name}: {error}", flush=True)
        return False
    print(f"ok      {name}: {told} ({time.monotonic() - started:.0f} s)", flush=True)
    return True


def main() -> int:
    """Build, install and try; returns the exit status."""
    parser = argparse.ArgumentParser(description="Build the packages and try them in empty environments.")
    versions = [f"3.{minor}" for minor in MINORS]
    parser.add_argument("--python", action="append", choices=versions, help="only this version (default: all found)")
    parser.add_argument("--extra", action="append", default=[], help="also beam-tfrecord[EXTRA], on one Python")
    parser.add_argument("--extras_only", action="store_true", help="nothing but the extras")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="beam-tfrecord-smoke-") as name:
        folder = Path(name)
        wheel, archive = build(folder)
        check_contents(wheel, archive)
        print(f"built   {wheel.name}, {archive.name}", flush=True)
        pythons = find_pythons(flags.python or versions)
        for version in flags.python or versions:
            if version not in pythons:
                print(f"skipped Python {version} is not installed", flush=True)
        attempts: list[tuple[str, Path, Path, str]] = [
            (f"wheel on Python {version}", wheel, python, "") for version, python in pythons.items()
        ]
        for version, python in list(pythons.items())[:1]:
            attempts.append((f"source archive on Python {version}", archive, python, ""))
        if flags.extras_only:
            attempts = []
        for version, python in list(pythons.items())[-1:]:
            attempts += [(f"wheel[{extra}] on Python {version}", wheel, python, extra) for extra in flags.extra]
        results = []
        for number, (what, package, python, extra) in enumerate(attempts):
            place = folder / str(number)

            def attempt(package: Path = package, python: Path = python, place: Path = place, extra: str = extra) -> str:
                return try_package(package, python, place, extra)

            results.append(report(what, attempt))
            shutil.rmtree(place, ignore_errors=True)
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
