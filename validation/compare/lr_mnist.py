"""FedAvg of softmax regression in plain PyTorch, as a program of its own: LR-MNIST.

1,000 clients of 60 images, 10 in each of 100 rounds, batches of 10, one epoch, and a test pass after every 20th round.
Worker processes hold the clients' data; the global model and the updates lie in memory that they share.

    python lr_mnist.py [--data FOLDER] [--json]
"""

import time

began = time.perf_counter()

import argparse
import json

from images import idx_folder, load_idx
from models import F, Linear, torch
from workers import OPTIMIZERS, Workers, share, train_client

imported = time.perf_counter()

CLIENTS, SIZE, COHORT, ROUNDS, EVERY, BATCH = 1_000, 60, 10, 100, 20, 10


def load(folder):
    """Training images by client, and test images; random ones without a folder."""
    generator = torch.Generator().manual_seed(1)
    if folder is None:
        train = torch.rand(60_000, 784, generator=generator), torch.randint(10, (60_000,), generator=generator)
        test = torch.rand(10_000, 784, generator=generator), torch.randint(10, (10_000,), generator=generator)
    else:
        folder = idx_folder(folder)
        train, test = (map(torch.from_numpy, load_idx(folder, part)) for part in ("train", "t10k"))
        train, test = [[images.flatten(1), labels] for images, labels in (train, test)]
    order = torch.randperm(CLIENTS * SIZE, generator=generator)
    images, labels = (values[order].view(CLIENTS, SIZE, *values.shape[1:]) for values in train)
    return (images, labels), test


class Worker:
    """Trains clients into rows of `updates`, or evaluates its share of the test images."""

    def __init__(self, seed, train, test, state, updates, optimizer, rate):
        torch.manual_seed(seed)
        self.train, self.test, self.state, self.updates = train, test, state, updates
        self.model = Linear(784, 10)
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters(), rate, 0.0)

    def fetch(self):
        torch.nn.utils.vector_to_parameters(self.state, self.model.parameters())

    @torch.no_grad()
    def __call__(self, clients):
        if clients is Ellipsis:
            self.fetch()
            images, labels = self.test
            scores = self.model(images)
            right = (scores.argmax(1) == labels).sum().item()
            return F.cross_entropy(scores, labels, reduction="sum").item(), right
        images, labels = self.train
        for row, client in clients:
            state = self.state.clone()  # the parameters become views of it
            torch.nn.utils.vector_to_parameters(state, self.model.parameters())
            with torch.enable_grad():
                train_client(self.model, self.optimizer, images[client], labels[client], BATCH)
            self.updates[row] = state
        return None


def loop(workers, state, updates, test_size, seed):
    """All rounds; the test loss and accuracy after the last."""
    processes = len(workers.connections)
    generator = torch.Generator().manual_seed(seed)
    state.zero_()
    for number in range(1, ROUNDS + 1):
        cohort = torch.randperm(CLIENTS, generator=generator)[:COHORT].tolist()
        rows = list(enumerate(cohort))
        workers.ask([[rows[k] for k in share(COHORT, process, processes)] for process in range(processes)])
        torch.mean(updates, 0, out=state)  # all clients have as much data
        if number % EVERY == 0:
            answers = workers.ask([...] * processes)
            loss, right = (sum(values) / test_size for values in zip(*answers))
    return loss, right


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="folder of the IDX files of Fashion-MNIST (or holding them in fashion-mnist)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--loops", type=int, default=1, help="repeat the rounds on the data loaded once")
    parser.add_argument("--rate", type=float, default=0.01, help="learning rate")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="plain")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    train, test = load(options.data)
    loaded = time.perf_counter()

    state = torch.zeros(7_850).share_memory_()
    updates = torch.zeros(COHORT, 7_850).share_memory_()
    arguments = []
    for process in range(options.processes):
        part = share(len(test[1]), process, options.processes)
        own = [values[part.start : part.stop] for values in test]
        arguments.append((process, train, own, state, updates, options.optimizer, options.rate))
    with Workers(Worker, arguments) as workers:
        started = time.perf_counter()
        seconds = []
        for seed in range(options.loops):
            begin = time.perf_counter()
            loss, accuracy = loop(workers, state, updates, len(test[1]), seed)
            seconds.append(time.perf_counter() - begin)
    found = {"import": imported - began, "load": loaded - imported, "start": started - loaded, "loops": seconds}
    found |= {"loss": loss, "accuracy": accuracy}
    if options.json:
        print(json.dumps(found))
    else:
        print(f"import {found['import']:.2f} s, load {found['load']:.2f} s, start workers {found['start']:.2f} s")
        print("rounds", ", ".join(f"{value:.3f} s" for value in seconds))
        print(f"test loss {loss:.4f}, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
