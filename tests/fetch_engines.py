"""Fetches the engines and the stores of ``make test-engines``: ``python -m tests.fetch_engines FOLDER``.

Prism, the program that starts workers and object stores are built with Go, Azurite comes with npm, the job servers of
Flink and Spark come with Maven; a job server that a person has built or fetched is named by FLINK_JOB_SERVER_JAR or
SPARK_JOB_SERVER_JAR. Beam's JVM job service, with an engine of these tests below it (tests/cluster/jvm), is compiled
against what Maven brings. What cannot be had is told in a line, and its tests are skipped.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import apache_beam

SECONDS = 600
GO_PROGRAMS = {
    "prism": f"github.com/apache/beam/sdks/v2/go/cmd/prism@v{apache_beam.__version__}",
    # What an engine starts as a worker: PROCESS.
    "boot": f"github.com/apache/beam/sdks/v2/python/container@v{apache_beam.__version__}",
    # Object stores.
    "fake-gcs-server": "github.com/fsouza/fake-gcs-server@v1.56.1",
    "versitygw": "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
}
AZURITE = "azurite@3.35.0"  # the newest that runs on Node.js 20
JVM = Path(__file__).resolve().parent / "cluster" / "jvm"
JVM_JAR = "jvm-job-service.jar"
JVM_SERVICES = {
    "org.apache.beam.sdk.util.construction.NativeTransforms$IsNativeTransform": "JobService$NativeReshuffle",
    "org.apache.beam.sdk.options.PipelineOptionsRegistrar": "JobService$OptionsOfEngine",
}
JOB_SERVERS = {
    "flink-job-server.jar": "org.apache.beam:beam-runners-flink-1.20-job-server",
    "spark-job-server.jar": "org.apache.beam:beam-runners-spark-3-job-server",
}


def missing(*programs: str) -> str:
    """The first of some programs that is not there, or ''."""
    return next((f"{program} is not installed" for program in programs if not shutil.which(program)), "")


def fetch_go_program(folder: Path, name: str) -> str:
    """Build a program of Go; why it could not be, or ''."""
    if told := missing("go"):
        return told
    package = GO_PROGRAMS[name]
    made = folder / package.rpartition("@")[0].rpartition("/")[2]
    environment = {**os.environ, "GOBIN": str(folder), "GOFLAGS": "-mod=mod -ldflags=-s"}  # no symbols: quicker to link
    told = _run(["go", "install", package], made, environment)
    if not told:
        made.rename(folder / name)
    return told


def fetch_azurite(folder: Path) -> str:
    """Fetch Azure Storage's emulator; why it could not be had, or ''."""
    if told := missing("npm", "node"):
        return told
    place = folder / "azurite.partly"
    place.mkdir(exist_ok=True)
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    told = _run(["npm", "install", f"--prefix={place}", *quiet, AZURITE], place / "node_modules" / "azurite")
    if not told:
        place.rename(folder / "azurite")
    return told


def variable_of(name: str) -> str:
    """The variable by which a person names a jar: ``flink-job-server.jar`` is FLINK_JOB_SERVER_JAR."""
    return name.upper().replace("-", "_").replace(".", "_")


def named_jar(name: str) -> Path | None:
    """The jar of a job server that a person names."""
    named = os.environ.get(variable_of(name))
    return Path(named) if named else None


def fetch_job_server(folder: Path, name: str) -> str:
    """Fetch the jar of a job server, or take the one that a person names; why it could not be had, or ''."""
    named = named_jar(name)
    if named is not None:
        if not named.is_file():
            raise SystemExit(f"{variable_of(name)}={named}: there is no such file")
        return ""
    if told := missing("mvn"):
        return told
    artifact = f"{JOB_SERVERS[name]}:{apache_beam.__version__}"
    place = folder / name.removesuffix(".jar")
    command = ["mvn", "--batch-mode", "--quiet", "dependency:copy", f"-Dartifact={artifact}"]
    told = _run([*command, f"-DoutputDirectory={place}"], place)
    for jar in place.glob("*.jar") if place.is_dir() else ():
        shutil.move(jar, folder / name)
    return told if told else "" if (folder / name).exists() else f"{artifact} brought no jar"


def build_job_service(folder: Path) -> str:
    """Compile Beam's JVM job service with the engine of these tests below it; why it could not be, or ''."""
    if told := missing("mvn", "javac"):
        return told
    place = folder / "jvm"
    place.mkdir(exist_ok=True)
    paths = place / "class-path.txt"
    maven = ["mvn", "--batch-mode", "--quiet", f"--file={JVM / 'pom.xml'}", "dependency:build-classpath"]
    told = _run([*maven, f"-Dmdep.outputFile={paths}"], paths)
    if told:
        return told
    jars = paths.read_text().strip()
    compiler = ["javac", "-nowarn", "-d", str(place), "-classpath", jars, str(JVM / "JobService.java")]
    told = _run(compiler, place / "JobService.class")
    if told:
        return told
    with zipfile.ZipFile(folder / JVM_JAR, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", manifest("JobService", jars.split(os.pathsep)))
        for service, provider in JVM_SERVICES.items():
            jar.writestr(f"META-INF/services/{service}", f"{provider}\n")
        for made in place.glob("*.class"):
            jar.write(made, made.name)
    return ""


def manifest(main: str, jars: Iterable[str]) -> str:
    """That of a jar which names the jars that it needs. Its lines have 72 bytes at the most."""
    paths = " ".join(Path(jar).as_uri() for jar in jars)
    lines = textwrap.wrap(f"Class-Path: {paths}", 70, break_on_hyphens=False, drop_whitespace=False)
    return "\n".join(["Manifest-Version: 1.0", f"Main-Class: {main}", "\n ".join(lines), ""])


def _run(command: list[str], made: Path, environment: dict[str, str] | None = None) -> str:
    folder = made.parent if made.parent.is_dir() else None
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} did not end within {SECONDS} s"
    if done.returncode == 0 and made.exists():
        return ""
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    first = next((line for line in lines if "ERROR" in line or "error" in line), lines[-1] if lines else "")
    return f"{command[0]} ended with {done.returncode}: {first[:200]}"


def is_ready(folder: Path, name: str) -> bool:
    """Whether what was made once can stay as it is."""
    made = folder / name
    if not made.exists() or named_jar(name) is not None:
        return False
    return name != JVM_JAR or all(made.stat().st_mtime > source.stat().st_mtime for source in JVM.iterdir())


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    fetchers: dict[str, Callable[[], str]] = {
        **{name: functools.partial(fetch_go_program, folder, name) for name in GO_PROGRAMS},
        "azurite": functools.partial(fetch_azurite, folder),
        **{name: functools.partial(fetch_job_server, folder, name) for name in JOB_SERVERS},
        JVM_JAR: functools.partial(build_job_service, folder),
    }
    for name, fetch in fetchers.items():
        told = "" if is_ready(folder, name) else fetch()
        print(f"{name}: {'ready' if not told else f'not to be had here, its tests are skipped ({told})'}", flush=True)


if __name__ == "__main__":
    main()
