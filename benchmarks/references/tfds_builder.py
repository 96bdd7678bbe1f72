"""TensorFlow Datasets: an ImageFolder written out by its own builder."""

from __future__ import annotations

import sys
from pathlib import Path

import tensorflow_datasets as tfds

from benchmarks.references.loops import files_of


class Pictures(tfds.core.GeneratorBasedBuilder):
    """Pictures of a folder per class."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self) -> tfds.core.DatasetInfo:
        names = sorted(path.name for path in Path(sys.argv[1]).iterdir() if path.is_dir())
        features = tfds.features.FeaturesDict(
            {"image": tfds.features.Image(), "label": tfds.features.ClassLabel(names=names)}
        )
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, manager: object) -> dict[str, object]:
        return {"train": self._generate_examples(Path(sys.argv[1]))}

    def _generate_examples(self, source: Path) -> object:
        for path, label in files_of(source):
            yield str(path), {"image": path, "label": label}


def main() -> None:
    builder = Pictures(data_dir=sys.argv[2])
    builder.download_and_prepare()
    print(builder.info.splits["train"].num_examples)


if __name__ == "__main__":
    main()
