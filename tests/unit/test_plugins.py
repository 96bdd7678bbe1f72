"""Modules from outside of the package, by name."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from beam_tfrecord.errors import ConfigError
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.options.plugins import load_plugins, parse_modules


def test_names_of_modules_are_parsed() -> None:
    assert parse_modules("a, b.c") == ("a", "b.c")
    assert parse_modules(["a"]) == ("a",)
    assert parse_modules(()) == ()
    for wrong in ("./a.py", "a-b", "a..b", ".a", "1a"):
        with pytest.raises(ValueError, match="no name of a module"):
            parse_modules(wrong)


def module(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def test_a_config_imports_its_plugins_where_it_is_made_and_where_it_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = module(tmp_path, "plugin_that_counts", "", monkeypatch)
    config = ConvertConfig.from_options({"input": "a.csv", "output": "out", "plugins": name})
    assert config.manifest.plugins == (name,)
    assert sys.modules.pop(name)
    sent = pickle.dumps(config)
    assert name not in sys.modules
    assert pickle.loads(sent) == config
    assert sys.modules.pop(name)


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match=r"--plugins no_such_thing: there is no module 'no_such_thing'; install it"):
        ConvertConfig.from_options({"input": "a", "output": "b", "plugins": "no_such_thing"})
    with pytest.raises(ConfigError, match=r"there is no module 'json\.no_such_thing'"):
        load_plugins(["json.no_such_thing"])
    with pytest.raises(ConfigError, match="--plugins a-b: 'a-b' is no name of a module"):
        ConvertConfig.from_options({"input": "a", "output": "b", "plugins": "a-b"})


def test_what_is_wrong_inside_of_a_plugin_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = module(tmp_path, "plugin_that_lacks", "import no_such_dependency", monkeypatch)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        load_plugins([name])
