"""A model learns from a dataset, as a user would train it."""

from __future__ import annotations

from pathlib import Path

import pytest

from beam_tfrecord import load
from tests.end_to_end.datasets import converted
from tests.samples import CLASSES, demo_collection, write_files

keras = pytest.importorskip("keras")


@pytest.mark.filterwarnings("ignore")  # of Keras
@pytest.mark.slow
def test_a_keras_model_learns_the_shapes(tmp_path: Path) -> None:
    write_files(tmp_path / "in", demo_collection(per_class=24))
    converted(tmp_path / "in", tmp_path / "out")
    options = {"image_size": 48, "scale": True, "as_supervised": True, "batch_size": 16}
    train = load(tmp_path / "out", shuffle=True, seed=0, **options)
    assert len(train) == 5

    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((48, 48, 3)),
            keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(len(CLASSES)),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
    learned = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: setattr(model, "stop_training", logs["accuracy"] > 0.97)
    )
    model.fit(train, epochs=80, callbacks=[learned], verbose=0)
    _, accuracy = model.evaluate(load(tmp_path / "out", **options), verbose=0)
    assert accuracy > 0.9
