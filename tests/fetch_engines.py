"""Fetches the engines that ``make test-engines`` runs jobs on: ``python -m tests.fetch_engines FOLDER``.

Prism is built with Go, the job servers of Flink and Spark come with Maven. What cannot be had is told in a line, and
its tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import apache_beam

SECONDS = 600
PRISM = "github.com/apache/beam/sdks/v2/go/cmd/prism"
JOB_SERVERS = {
    "flink-job-server.jar": "org.apache.beam:beam-runners-flink-1.20-job-server",
    "spark-job-server.jar": "org.apache.beam:beam-runners-spark-3-job-server",
}


def fetch_prism(folder: Path) -> str:
    """Build Prism; why it could not be, or ''."""
    if not shutil.which("go"):
        return "Go is not installed"
    environment = {**os.environ, "GOBIN": str(folder), "GOFLAGS": "-mod=mod"}
    return _run(["go", "install", f"{PRISM}@v{apache_beam.__version__}"], folder / "prism", environment)


def fetch_job_server(folder: Path, name: str) -> str:
    """Fetch the jar of a job server; why it could not be, or ''."""
    if not shutil.which("mvn"):
        return "Maven is not installed"
    artifact = f"{JOB_SERVERS[name]}:{apache_beam.__version__}"
    place = folder / name.removesuffix(".jar")
    command = ["mvn", "--batch-mode", "--quiet", "dependency:copy", f"-Dartifact={artifact}"]
    told = _run([*command, f"-DoutputDirectory={place}"], place)
    for jar in place.glob("*.jar") if place.is_dir() else ():
        shutil.move(jar, folder / name)
    return told if told else "" if (folder / name).exists() else f"{artifact} brought no jar"


def _run(command: list[str], made: Path, environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command, cwd=made.parent, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} did not end within {SECONDS} s"
    if done.returncode == 0 and made.exists():
        return ""
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    first = next((line for line in lines if "ERROR" in line or "error" in line), lines[-1] if lines else "")
    return f"{command[0]} ended with {done.returncode}: {first[:200]}"


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("prism", *JOB_SERVERS):
        if (folder / name).exists():
            told = ""
        else:
            told = fetch_prism(folder) if name == "prism" else fetch_job_server(folder, name)
        print(f"{name}: {'ready' if not told else f'not to be had here, its tests are skipped ({told})'}", flush=True)


if __name__ == "__main__":
    main()
