"""The shape of the code base. Which part may import which is held by import-linter, in ``make check``."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for package in ("beam_tfrecord", "pipelines") for path in (ROOT / package).rglob("*.py"))
MAX_LINES = 700  # a module is cut by its subject; more than this is seldom one
# Come with a declared package: extras of Beam, and boto3. _typeshed exists for type checkers only.
UNDECLARED = {"azure", "hdfs", "botocore", "_typeshed"}
NEVER_AT_IMPORT = {"tensorflow", "tensorflow_datasets", "keras"}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_no_module_is_too_long():
    lengths = {module_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-W", "ignore", "-c", script]
    return set(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split())


def test_importing_the_package_is_cheap():
    assert loaded_by("import beam_tfrecord") & {"apache_beam", "numpy", "PIL", *NEVER_AT_IMPORT} == set()


def test_importing_every_module_loads_no_tensorflow():
    names = [module_name(path) for path in MODULES if path.stem != "__main__"]
    assert loaded_by(f"import importlib\nfor name in {names}: importlib.import_module(name)") & NEVER_AT_IMPORT == set()


def test_every_package_that_is_imported_is_declared():
    imported = set().union(*map(top_level_imports, MODULES)) - {"beam_tfrecord", "pipelines"} - UNDECLARED
    providers = importlib.metadata.packages_distributions()
    stated = importlib.metadata.requires("beam-tfrecord") or []
    declared = {canonical(re.split(r"[^A-Za-z0-9._-]", requirement)[0]) for requirement in stated}
    undeclared = {
        name
        for name in imported - sys.stdlib_module_names
        if not declared & {canonical(provider) for provider in providers.get(name, [])}
    }
    assert undeclared == set()


def top_level_imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def canonical(distribution: str) -> str:
    """Names of distributions compare without case and with one kind of separator (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()
