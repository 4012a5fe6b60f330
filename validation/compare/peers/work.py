"""The two works that the simulators do, the examples of each client, and the training and the test that they share.

Dealt once, by `python work.py FOLDER OUT`, so that every simulator written in Python has the same clients.
"""

import json
import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))


@dataclass(frozen=True)
class Work:
    size: int  # examples of a client
    cohort: int
    rounds: int
    every: int  # rounds between tests that are part of the training; 0 where the only test follows it
    batch: int
    rate: float


WORKS = {
    "lr-mnist": Work(size=60, cohort=10, rounds=100, every=20, batch=10, rate=0.01),
    "simple-cnn": Work(size=50, cohort=50, rounds=5, every=0, batch=10, rate=0.01),
}


class Task:
    """The work and the folder named on the command line: `PROGRAM WORK FOLDER`."""

    def __init__(self, name=None, folder=None):
        self.name, folder = name or sys.argv[1], Path(folder or sys.argv[2])
        self.folder = folder
        self.work = WORKS[self.name]
        # Mapped, so that a process holds only the clients that it trains.
        self.images, self.labels, self.test_images, self.test_labels = (
            np.load(folder / self.name / f"{part}.npy", mmap_mode="r")
            for part in ("images", "labels", "test_images", "test_labels")
        )
        self.clients = len(self.labels)

    def tests(self, number):
        """Whether the model after this round is tested during the training."""
        return self.work.every > 0 and number % self.work.every == 0

    def model(self):
        from models import Linear, SimpleCnn, torch

        torch.manual_seed(1)
        if self.name == "simple-cnn":
            return SimpleCnn()
        model = Linear(784, 10)
        for values in model.parameters():
            torch.nn.init.zeros_(values)
        return model

    def client(self, k):
        """Images and labels of a client, as tensors."""
        import torch

        return torch.from_numpy(np.array(self.images[k])), torch.from_numpy(np.array(self.labels[k]))

    @lru_cache  # noqa: B019: there is one task in a program
    def test_set(self):
        import torch

        return torch.from_numpy(np.array(self.test_images)), torch.from_numpy(np.array(self.test_labels))

    def test(self, model):
        """Mean cross-entropy and accuracy on all test examples."""
        import torch

        images, labels = self.test_set()
        step = len(labels) if self.name == "lr-mnist" else 500  # activations of a network take memory
        loss = right = 0
        training = model.training
        model.eval()
        with torch.no_grad():
            for x, y in zip(images.split(step), labels.split(step)):
                scores = model(x)
                loss += torch.nn.functional.cross_entropy(scores, y, reduction="sum").item()
                right += (scores.argmax(1) == y).sum().item()
        model.train(training)
        return loss / len(labels), right / len(labels)


class Clock:
    """Seconds from the start of the first round to the end of the last."""

    def __init__(self):
        self.begin = self.end = None

    def start(self):
        if self.begin is None:
            self.begin = time.perf_counter()

    def stop(self):
        self.end = time.perf_counter()

    def report(self, loss, accuracy):
        found = {"training": self.end - self.begin, "loss": float(loss), "accuracy": float(accuracy)}
        print("\n" + json.dumps(found), flush=True)


def deal(folder, out):
    """Writes the arrays of both works."""
    from images import find, idx_folder, load_cifar, load_idx

    def write(name, train, test):
        size = WORKS[name].size
        order = np.random.default_rng(1).permutation(len(train[1]))[: len(train[1]) // size * size]
        images, labels = (values[order].reshape(-1, size, *values.shape[1:]) for values in train)
        (out / name).mkdir(parents=True, exist_ok=True)
        parts = {"images": images, "labels": labels, "test_images": test[0], "test_labels": test[1]}
        for part, values in parts.items():
            np.save(out / name / f"{part}.npy", values)

    flat = lambda part: (part[0].reshape(len(part[0]), -1), part[1])  # noqa: E731
    write("lr-mnist", *(flat(load_idx(idx_folder(folder), part)) for part in ("train", "t10k")))
    cifar = Path(folder) / "cifar10"
    parts = []
    for stems in (["data_batch_*", "train*"], ["test*"]):
        names = sorted({path.name.removesuffix(".gz") for stem in stems for path in cifar.glob(f"{stem}.bin*")})
        parts.append(load_cifar([find(cifar, name) for name in names]))
    write("simple-cnn", *parts)


if __name__ == "__main__":
    deal(sys.argv[1], Path(sys.argv[2]))
