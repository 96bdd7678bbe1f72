"""Train a PyTorch model on a dataset that beam-tfrecord wrote. TensorFlow is not needed.

python examples/pytorch_dataset.py DIR [--split train] [--epochs 30]
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import beam_tfrecord


class ImageDataset(Dataset[tuple[torch.Tensor, int]]):
    """Labelled images, read at random.

    An element is the image as float32 of shape [3, size, size], from 0 to 1, and the place of its label among
    ``labels``. Each worker of a DataLoader reads the files for itself; ``convert --index`` makes the first access to
    large files quick.
    """

    def __init__(self, directory: str, split: str, size: int = 64) -> None:
        self._reader = beam_tfrecord.read(directory, split, names="short")
        self._size = size
        self._places = {number: place for place, number in enumerate(self._reader.label_names)}
        self.labels = self._reader.labels

    def __len__(self) -> int:
        return len(self._reader)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        record = self._reader[index]
        image = self._reader.image(record).convert("RGB").resize((self._size, self._size))
        pixels = torch.from_numpy(np.asarray(image, np.float32) / 255)
        return pixels.permute(2, 0, 1), self._places[record["label"]]


def make_model(num_labels: int) -> nn.Module:
    """A small convolutional network for images of any size."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, num_labels),
    )


def train(directory: str, split: str = "train", epochs: int = 30, workers: int = 0, size: int = 64) -> float:
    """Train a model, and return its accuracy on the images that it was trained with."""
    torch.manual_seed(0)
    dataset = ImageDataset(directory, split, size)
    loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=workers)
    model = make_model(len(dataset.labels))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    accuracy = 0.0
    for epoch in range(epochs):
        right = 0
        for images, labels in loader:
            scores = model(images)
            loss = nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((scores.argmax(1) == labels).sum())
        accuracy = right / len(dataset)
        print(f"epoch {epoch + 1}: accuracy {accuracy:.2f}")
    return accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network on labelled images.")
    parser.add_argument("directory", metavar="DIR", help="a finished dataset")
    parser.add_argument("--split", default="train", help="train, train[:80%%], ...")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--workers", type=int, default=0, help="processes that read")
    options = parser.parse_args()
    train(options.directory, options.split, options.epochs, options.workers)


if __name__ == "__main__":
    main()
