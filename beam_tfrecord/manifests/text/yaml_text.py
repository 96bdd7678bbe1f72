"""YAML whose scalars are what is written: ``no``, ``007``, ``1.10``, ``12:30`` and ``~`` are these texts.

YAML 1.1 makes a boolean, an octal number, a float, minutes and nothing of them, which names of classes are not.
"""

from __future__ import annotations

from typing import Any

from beam_tfrecord.errors import ConfigError


def load_yaml(text: str) -> Any:
    """The value of the only document: texts, lists, and dicts with texts as keys.

    Raises ValueError, with the line, for what is no YAML, has several documents, or names one key twice, of which YAML
    readers take either; ConfigError when PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise ConfigError("YOLO datasets are described in YAML: pip install pyyaml") from None

    merges = {"<": [pair for pair in yaml.SafeLoader.yaml_implicit_resolvers["<"] if pair[0].endswith(":merge")]}

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = merges

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            own = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag.endswith(":str")]
            repeated = next((key for place, key in enumerate(own) if key in own[:place]), None)
            if repeated is not None:
                raise ValueError(f"line {node.start_mark.line + 1}: the key {repeated!r} is given twice: take one out")
            return super().construct_mapping(node, deep=True)

    try:
        loader = Loader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
