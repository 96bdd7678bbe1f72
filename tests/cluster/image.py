"""The image, built without a Docker engine: ``make test-image``.

``buildah`` builds the Dockerfile as it stands, as root and in a chroot, with stand-ins for its two base images:

- ``apache/beam_python3.11_sdk``: Debian 12 with its own Python 3.11 instead of the image ``python:3.11-bookworm``; in
  it exactly the packages of Beam's own list for that image, apache-beam of the same version from PyPI, and ``boot``
  built with Go at the same version. It has no Google Cloud SDK, no stop words of nltk and no licences.
- the base image of Flex Templates: only the launcher's path, and there a script that does what the launcher is known
  to do: it starts FLEX_TEMPLATE_PYTHON_PY_FILE with the parameters.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apache_beam

from tests.conftest import ROOT
from tests.emulators import wait_for
from tests.engines import RunningEngine, external, job_service
from tests.fetch_engines import fetch_go_program

VERSION = apache_beam.__version__
MODULE = f"github.com/apache/beam/sdks/v2@v{VERSION}"
REQUIREMENTS = "python/container/py311/base_image_requirements.txt"
BEAM_IMAGE = f"docker.io/apache/beam_python3.11_sdk:{VERSION}"
LAUNCHER_IMAGE = "gcr.io/dataflow-templates-base/python311-template-launcher-base:latest"
LAUNCHER = "/opt/google/dataflow/python_template_launcher"
IMAGE = "localhost/beam-tfrecord:tested"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
POOL_PORT = 50000  # boot's own choice
SECONDS = 3600  # for one step, on a busy machine
# What Beam's list needs to be installed: some of it is there as source only.
DEBIAN = "python3,python-is-python3,python3-pip,python3-dev,gcc,g++,libsnappy-dev,ca-certificates"

BEAM_DOCKERFILE = f"""
FROM scratch
ADD root /
COPY boot /opt/apache/beam/boot
COPY requirements.txt /tmp/requirements.txt
RUN rm -f /usr/lib/python3*/EXTERNALLY-MANAGED \\
    && pip install --quiet --no-cache-dir --prefer-binary --no-deps -r /tmp/requirements.txt apache-beam=={VERSION} \\
    && rm /tmp/requirements.txt \\
    && pip check
ENTRYPOINT ["/opt/apache/beam/boot"]
"""
LAUNCHER_DOCKERFILE = f"FROM scratch\nCOPY launcher {LAUNCHER}\n"
LAUNCHER_SCRIPT = '#!/bin/sh\nexec python "$FLEX_TEMPLATE_PYTHON_PY_FILE" "$@"\n'


def what_is_missing() -> str:
    """Why the image cannot be built here, or ''."""
    if os.geteuid() != 0:
        return "building without a Docker engine needs root"
    if sys.version_info[:2] != (3, 11):
        return "the image has Python 3.11, and so must what submits to it"
    missing = [program for program in ("buildah", "debootstrap", "go") if not shutil.which(program)]
    return f"{', '.join(missing)} not installed" if missing else ""


@dataclass(frozen=True)
class Built:
    """A container of the image, ready to run commands. place: folder of everything that was made for it."""

    place: Path
    container: str = ""

    def buildah(self, *words: str) -> list[str]:
        """A command line of buildah, whose images and containers are all below ``place``."""
        storage = ["--root", f"{self.place}/storage", "--runroot", f"{self.place}/run", "--storage-driver", "vfs"]
        return ["buildah", *storage, *words]

    def told(self, *words: str) -> str:
        """What buildah prints."""
        return _run(*self.buildah(*words))

    def build(self, tag: str, context: Path, *options: str) -> None:
        isolation = ["--isolation", "chroot", "--pull-never"]
        trust = [f"--volume={CERTIFICATES}:{CERTIFICATES}:ro"] if Path(CERTIFICATES).exists() else []
        self.told("build", *isolation, *trust, *options, "--tag", tag, str(context))

    def command(
        self, *words: str, user: int = 0, mounted: Path | None = None, variables: Mapping[str, str] | None = None
    ) -> list[str]:
        """The command line that runs a command in the image. mounted: folder that has the same path there."""
        options = ["--isolation", "chroot", "--user", str(user)]
        options += [f"--env={name}={value}" for name, value in (variables or {}).items()]
        options += [f"--volume={mounted}:{mounted}"] if mounted else []
        return self.buildah("run", *options, self.container, "--", *words)

    def entry_point(self) -> list[str]:
        described = json.loads(self.told("inspect", "--type", "image", IMAGE))
        found: list[str] = described["OCIv1"]["config"]["Entrypoint"]
        return found

    @contextmanager
    def engine(self, user: int, mounted: Path) -> Iterator[RunningEngine]:
        """Beam's portable job service here, whose workers live in the image: its entry point with ``--worker_pool``."""
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("", POOL_PORT))  # another's pool would be taken for this one
        _run(*self.command("sh", "-c", "rm -rf /tmp/*"))  # of another user, in what is one container for all
        line = self.command(*self.entry_point(), "--worker_pool", user=user, mounted=mounted)
        with (
            job_service() as jobs,
            subprocess.Popen(line, stdin=subprocess.DEVNULL, start_new_session=True) as process,
        ):
            try:
                wait_for(POOL_PORT, process)
                flags = ("--runner=PortableRunner", f"--job_endpoint={jobs}", *external(f"localhost:{POOL_PORT}"))
                yield RunningEngine(f"image as {user}", flags, process.pid)
            finally:
                os.killpg(process.pid, signal.SIGTERM)


@contextmanager
def built(place: Path) -> Iterator[Built]:
    """The image of this checkout. Everything that was made for it is gone afterwards."""
    _remove(place)  # of a run that was killed
    builder = Built(place)
    try:
        for name in ("beam", "launcher"):
            (place / name).mkdir(parents=True)
        _make_beam_context(place / "beam")
        (place / "beam" / "Dockerfile").write_text(BEAM_DOCKERFILE)
        builder.build(BEAM_IMAGE, place / "beam")
        shutil.rmtree(place / "beam")
        (place / "launcher" / "Dockerfile").write_text(LAUNCHER_DOCKERFILE)
        (place / "launcher" / "launcher").write_text(LAUNCHER_SCRIPT)
        (place / "launcher" / "launcher").chmod(0o755)
        builder.build(LAUNCHER_IMAGE, place / "launcher")
        builder.build(IMAGE, ROOT, "--build-arg=EXTRAS=coco")  # one of the collections has masks
        yield Built(place, builder.told("from", "--pull-never", IMAGE).strip())
    finally:
        _remove(place)


def _remove(place: Path) -> None:
    """Nothing of this machine may be mounted in what is removed."""
    if str(place) in Path("/proc/self/mounts").read_text():
        raise RuntimeError(f"{place}: something is still mounted there; see /proc/self/mounts")
    shutil.rmtree(place, ignore_errors=not place.exists())


def _make_beam_context(folder: Path) -> None:
    _run("debootstrap", "--variant=minbase", f"--include={DEBIAN}", "bookworm", str(folder / "root"))
    told = fetch_go_program(folder, "boot")
    if told:
        raise RuntimeError(told)
    module = json.loads(_run("go", "mod", "download", "-json", MODULE))["Dir"]
    (folder / "requirements.txt").write_bytes((Path(module) / REQUIREMENTS).read_bytes())


def _run(*command: str) -> str:
    """What a command prints. Raises RuntimeError with its last lines when it fails."""
    began = time.monotonic()
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS, check=False, cwd="/"
    )
    print(f"\n{time.monotonic() - began:.0f} s: {' '.join(command)}"[:300], flush=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout
