"""What SECURITY.md says of the code itself: nothing that was read from outside is ever run or unpickled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

MODULES = sorted(path for package in ("beam_tfrecord", "pipelines") for path in (ROOT / package).rglob("*.py"))
# Calls that run or rebuild what they are given. yaml.safe_load is fine; re.compile and similar methods are no builtins.
FORBIDDEN_NAMES = {"eval", "exec", "compile", "__import__", "input", "breakpoint"}
FORBIDDEN_CALLS = {
    *("os.system", "os.popen", "os.execv", "os.execvp", "os.spawnv", "pty.spawn"),
    *("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load"),
    *("numpy.load", "np.load", "pandas.read_pickle", "pd.read_pickle", "torch.load"),
    *("random.random", "tempfile.mktemp"),
}
FORBIDDEN_METHODS = {"extractall", "extract_all", "unpack_archive"}
FORBIDDEN_MODULES = {"marshal", "shelve", "dill", "cloudpickle", "joblib", "subprocess", "code", "pty"}
# What a job itself has packed: entries on their way between its steps, and rows put aside in its own temporary file.
UNPICKLING = {"beam_tfrecord/conversion/planning/blocks.py", "beam_tfrecord/manifests/gathering.py"}
# Modules that a user names with --plugins; our own, by names that are written in the code.
IMPORTING = {
    *("beam_tfrecord/__init__.py", "beam_tfrecord/manifests/registry.py", "beam_tfrecord/options/plugins.py"),
    *("beam_tfrecord/images/opened.py", "pipelines/lean_import.py", "pipelines/main.py"),
}


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of an expression of names, else ''."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield dotted(node.func), node


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_nothing_runs_what_it_has_read() -> None:
    found = []
    for path in MODULES:
        for name, call in calls(path):
            is_forbidden = name in FORBIDDEN_NAMES | FORBIDDEN_CALLS or name.rpartition(".")[2] in FORBIDDEN_METHODS
            if is_forbidden or any(keyword.arg == "shell" for keyword in call.keywords):
                found.append((named(path), call.lineno, name))
    assert found == []


def test_no_module_is_imported_that_rebuilds_objects_or_starts_programs() -> None:
    found = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {(named(path), name) for name in names if name.partition(".")[0] in FORBIDDEN_MODULES}
    assert found == set()


def test_only_what_a_job_has_packed_itself_is_unpickled() -> None:
    loading = {named(path) for path in MODULES for name, _ in calls(path) if name.startswith("pickle.load")}
    assert loading == UNPICKLING
    aliased = [
        named(path) for path in MODULES if re.search(r"from pickle import|import pickle as|Unpickler", path.read_text())
    ]
    assert aliased == []


def test_modules_are_imported_by_name_in_few_places() -> None:
    importing = {named(path) for path in MODULES for name, _ in calls(path) if name.endswith("import_module")}
    assert importing == IMPORTING


def test_templates_escape_what_they_are_given() -> None:
    made = [(named(path), call) for path in MODULES for name, call in calls(path) if name.endswith("Environment")]
    assert [path for path, _ in made] == ["beam_tfrecord/report/page.py"]
    (escaping,) = [keyword.value for keyword in made[0][1].keywords if keyword.arg == "autoescape"]
    assert isinstance(escaping, ast.Constant)
    assert escaping.value is True
    templates = (ROOT / "beam_tfrecord").rglob("*.j2")
    unescaped = {match for path in templates for match in re.findall(r"\{\{[^}]*\|\s*safe[^}]*\}\}", path.read_text())}
    assert unescaped == {"{{ style|safe }}", "{{ script|safe }}"}  # files of the package


def test_what_security_md_names_is_there() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    tests = re.findall(r"`(tests/[\w/]+\.py)`", text)
    assert len(tests) >= 8
    for name in tests:
        assert (ROOT / name).is_file(), name
    from beam_tfrecord.options.config import option_fields
    from pipelines.show import make_parser

    flags = {f"--{field.name}" for _, field in option_fields()} | {"--sheet"}
    assert make_parser()
    assert set(re.findall(r"`(--\w+)", text)) <= flags


@pytest.mark.parametrize("text", ["!!python/object/apply:os.system ['true']", "names: !!python/name:os.system"])
def test_yaml_makes_no_objects(text: str, tmp_path: Path) -> None:
    from beam_tfrecord import ConfigError, ManifestError, prepare

    (tmp_path / "data.yaml").write_text(f"train: images\n{text}\n")
    with pytest.raises((ConfigError, ManifestError)):
        prepare(input=str(tmp_path / "data.yaml"), output=str(tmp_path / "out"), format="yolo")
