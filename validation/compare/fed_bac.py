"""Times a round of Fed-BAC's local training in plain PyTorch, and FedGenie doing the same work in the same run.

80 clients with 600 images of 1×28×28 train two LeNet-5 whose scores are added, for five epochs in batches of 32: SGD with
learning rate 0.01, momentum 0.9, one clip norm of 1 for both networks, weight decay 5e-4, and 0.001 more on the cluster's
network. PyTorch has processes of one thread, each with its share of the clients; nothing is sent between them.

    python fed_bac.py
    python fed_bac.py --bench
"""

import argparse
import json
import os
import shlex
import statistics
import time

from models import F, LeNet5, count, nn, torch
from pytorch_lenet import BENCH, ROOT, number, run
from workers import Workers, share

CASE = "fed-bac"
CLIENTS, SIZE, BATCH, EPOCHS = 80, 600, 32, 5
RATE, MOMENTUM, CLIP, DECAY, L2 = 0.01, 0.9, 1.0, 5e-4, 0.001


class Additive(nn.Module):
    """The sum of the scores of a shared network and of the cluster's."""

    def __init__(self):
        super().__init__()
        self.shared, self.cluster = LeNet5(), LeNet5()

    def forward(self, x):
        return self.shared(x) + self.cluster(x)


assert count(Additive()) == 2 * 44_426


class Worker:
    """Trains the clients of one process, each from the same model."""

    def __init__(self, seed, images, labels):
        torch.manual_seed(seed)
        self.model = Additive().to(memory_format=torch.channels_last).train()
        groups = [
            {"params": list(self.model.shared.parameters()), "weight_decay": DECAY},
            {"params": list(self.model.cluster.parameters()), "weight_decay": DECAY + L2},
        ]
        self.optimizer = torch.optim.SGD(groups, lr=RATE, momentum=MOMENTUM, fused=True)
        self.parameters = list(self.model.parameters())
        self.start = [values.detach().clone() for values in self.parameters]
        self.updates = [[values.clone() for values in self.start] for _ in images]
        self.images = [own.contiguous(memory_format=torch.channels_last) for own in images]
        self.labels = labels

    def copy(self, source, target):
        with torch.no_grad():
            for one, two in zip(source, target):
                two.copy_(one)

    def __call__(self, _):
        for images, labels, update in zip(self.images, self.labels, self.updates):
            self.copy(self.start, self.parameters)
            self.optimizer.state.clear()
            for _ in range(EPOCHS):
                order = torch.randperm(SIZE)
                for x, y in zip(images[order].split(BATCH), labels[order].split(BATCH)):
                    self.optimizer.zero_grad()
                    F.cross_entropy(self.model(x), y).backward()
                    nn.utils.clip_grad_norm_(self.parameters, CLIP)
                    self.optimizer.step()
            self.copy(self.parameters, update)


def pytorch(options):
    """Client-epochs per second of each repetition, after one that is not counted."""
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(CLIENTS, SIZE, 1, 28, 28, generator=generator)
    labels = torch.randint(10, (CLIENTS, SIZE), generator=generator)
    own = [share(CLIENTS, process, options.processes) for process in range(options.processes)]
    arguments = [(k, images[own[k].start : own[k].stop], labels[own[k].start : own[k].stop]) for k in range(len(own))]
    found = []
    with Workers(Worker, arguments) as workers:
        for _ in range(options.repetitions + 1):
            begin = time.perf_counter()
            workers.ask([True] * options.processes)
            found.append(CLIENTS * EPOCHS / (time.perf_counter() - begin))
    return found[1:]


def bench(options, case):
    """Median and best of a case in FedGenie's benchmark."""
    command = [*shlex.split(options.bench), "--cases", case]
    output, _ = run(command, cwd=ROOT, env=os.environ | {"RAYON_NUM_THREADS": str(options.processes)})
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    found = next(line for line in lines if line["case"] == case and line["threads"] == options.processes)
    return found["median"], found["best"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=2, help="of each turn, after one not counted")
    parser.add_argument("--rounds", type=int, default=2, help="turns of PyTorch and FedGenie")
    parser.add_argument("--processes", type=int, default=2, help="of PyTorch, and threads of FedGenie")
    parser.add_argument("--bench", nargs="?", const=BENCH, help=f"also run FedGenie's benchmark; by default: {BENCH}")
    options = parser.parse_args()
    print(f"PyTorch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}), {options.processes} processes of one")
    print(f"thread; {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} at the start; client-epochs/s of {SIZE} images")
    if options.bench:
        run([*shlex.split(options.bench.split(" -- ")[0]), "--no-run"], cwd=ROOT)
    theirs, ours, single = [], [], []
    for _ in range(options.rounds):
        theirs.append(statistics.median(pytorch(options)))
        if options.bench:
            ours.append(bench(options, CASE)[0])
            single.append(bench(options, "lenet")[0])
    print(f"PyTorch, two networks: {', '.join(map(number, theirs))}")
    if options.bench:
        print(f"FedGenie, two networks: {', '.join(map(number, ours))}")
        print(f"FedGenie, one network: {', '.join(map(number, single))}")
        print(f"FedGenie faster by round: {', '.join(f'{b / a:.2f} ×' for a, b in zip(theirs, ours))}")
        print(f"a client-epoch of two networks over one of one: {', '.join(f'{a / b:.2f}' for a, b in zip(single, ours))}")


if __name__ == "__main__":
    main()
