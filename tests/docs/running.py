"""What is done with each command of the documentation: it runs, or is looked at as closely as is possible."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from packaging.requirements import Requirement

from pipelines import convert
from pipelines.main import COMMANDS, main
from pipelines.options import config_from, split_beam_flags
from tests.conftest import ROOT
from tests.docs.places import PLACES, make

# Commands that need what a test does not have. Everything else runs, or has a function below that looks at it.
NOT_RUN = {
    "docker": "needs a Docker engine and a registry",
    "git": "needs the network",
    "open": "opens a browser",
}
_REMOTE = re.compile(r"(^|=)(gs|s3|https?|hdfs)://")
_STAND_IN = ["--input", "gs://BUCKET/labels.csv", "--output", "gs://BUCKET/dataset"]  # for ``...``
_PLACEHOLDER = re.compile(r"\b(BUCKET|PROJECT|IMAGE)\b")
_BEAM_ENGINE = {"--runner", "--job_endpoint"}


def handle(words: Sequence[str], folder: Path) -> None:
    """Run a command in the working folder, or check it. Raises AssertionError when it does not work."""
    program, rest = words[0], list(words[1:])
    if program == "beam-tfrecord":
        if is_local(rest):
            run(rest, folder)
        else:
            check(rest)
        return
    assert program in CHECKS or program in NOT_RUN, f"nothing is known about {program}"
    if program in CHECKS:
        CHECKS[program](rest)


def is_local(words: Sequence[str]) -> bool:
    """Whether a command can run here: on this machine's own engine, with local places, nothing left out."""
    return "..." not in words and not _BEAM_ENGINE & set(words) and not any(map(_REMOTE.search, words))


def run(words: Sequence[str], folder: Path) -> None:
    """Run a command of ours in this process. What it names is made before, what it writes is taken away before."""
    for word in words:
        for name in {word.rpartition("=")[2].split("/")[0], word.split("/")[0]}:
            if name in PLACES and name not in _written(words):
                make(name, folder)
    for name in _written(words):
        clear(folder / name)
    if words[0].startswith("-"):  # --help, --version
        assert main(list(words)) == 0
        return
    assert words[0] in COMMANDS, words[0]
    assert main(list(words)) == 0, words


def _written(words: Sequence[str]) -> set[str]:
    if {"--resume", "--overwrite"} & set(words):
        return set()
    return {after.rstrip("/") for word, after in pairwise(words) if word == "--output"}


def clear(path: Path) -> None:
    """Delete a file or a folder in the temporary folder of the test."""
    if path.is_dir():
        for inner in sorted(path.rglob("*"), reverse=True):
            inner.rmdir() if inner.is_dir() else inner.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def check(words: Sequence[str]) -> None:
    """What can be said without the engine: flags, values, and for a conversion whether its engine has what it needs.

    ``...`` stands for input and output, at the end for further flags, so that not all that is needed need be there.
    """
    module = importlib.import_module(f"pipelines.{words[0]}")
    parser = module.make_parser()
    rest = [_PLACEHOLDER.sub(lambda found: f"a-{found[1].lower()}", word) for word in words[1:]]
    if "..." in rest:
        rest = [part for word in rest for part in (_STAND_IN if word == "..." else [word])]
        rest = _without_repeated(rest)
    namespace, beam_flags = split_beam_flags(parser, rest)
    if words[0] == "convert" and words[-1] != "...":
        config = config_from(namespace)
        convert.check_engine(beam_flags, config, convert.TerminalOptions(no_wait=namespace.no_wait))


def _without_repeated(words: list[str]) -> list[str]:
    """A stand-in gives way to the flag itself."""
    for flag in ("--input", "--output"):
        if words.count(flag) > 1:
            place = words.index(flag)
            del words[place : place + 2]
    return words


# ---------------------------------------------------------------------------------------------------------------------


def _check_make(words: Sequence[str]) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for word in words:
        assert "=" in word or word in targets, f"make {word}"


def _check_pip(words: Sequence[str]) -> None:
    """Extras of ours exist."""
    assert words[0] == "install"
    setup = (ROOT / "setup.py").read_text("utf-8")
    extras = set(re.findall(r'^        "(\w+)": ', setup, re.MULTILINE))
    for word in words[1:]:
        own = re.fullmatch(r"(?:\.|beam[-_]tfrecord)\[([\w,]+)\]", word)
        if own:
            assert set(own[1].split(",")) <= extras, word
        elif not word.startswith(("-", ".")) and "/" not in word and not word.endswith((".txt", ".whl")):
            Requirement(word)


def _check_python(words: Sequence[str]) -> None:
    if words[0] == "-m":
        assert importlib.util.find_spec(words[1]) is not None or words[1] in ("venv", "build"), words[1]
    else:
        assert (ROOT / words[0]).exists(), words[0]


def _check_gcloud(words: Sequence[str]) -> None:
    """Parameters of the template exist."""
    if "--parameters" not in words:
        return
    mark, separator, text = words[list(words).index("--parameters") + 1].partition("^~^")
    assert (mark, separator) == ("", "^~^")
    template = json.loads((ROOT / "flex_template.json").read_text("utf-8"))
    known = {parameter["name"] for parameter in template["parameters"]} | {"sdk_container_image"}
    assert {parameter.partition("=")[0] for parameter in text.split("~")} <= known


def _check_go(words: Sequence[str]) -> None:
    assert words[0] == "install"


CHECKS: Mapping[str, Callable[[Sequence[str]], None]] = {
    "make": _check_make,
    "pip": _check_pip,
    "python": _check_python,
    "python3.11": _check_python,
    "gcloud": _check_gcloud,
    "go": _check_go,
    ".venv/bin/pip": _check_pip,
}
