"""Speed of the Python package, beside something named in the same run: `python benches/python.py [--quick]`.

Needs the package with pandas; what needs PyTorch is left out where that is missing. Medians of runs that take turns; of
the small differences between policies the least processor time of each. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fedgenie
import numpy as np

FLEET = """
name = "fleet"
seeds = {seeds}
stop.rounds = {rounds}
record.every = {every}
protocol.synchronous = {{ cohort = 10 }}
[population]
clients = {clients}
[population.latency]
download = {{ constant = "25 ms" }}
compute = {{ exponential = {{ mean = "0.4 s" }} }}
upload = {{ constant = "25 ms" }}
"""


class Port:
    """The built-in `random`, in Python: the same draws, the same digests."""

    def __init__(self, context: fedgenie.Context) -> None:
        pass

    def select(self, ask: fedgenie.Ask) -> Any:
        return ask.rng.sample(ask.available, ask.cohort)


class Fixed(Port):
    """Always the same clients: the price of a question and an answer."""

    def select(self, ask: fedgenie.Ask) -> Any:
        return [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]


class Counting(Port):
    """Reads one array that changes from round to round."""

    def select(self, ask: fedgenie.Ask) -> Any:
        ask.counts  # noqa: B018
        return super().select(ask)


def seconds(work: Callable[[], object]) -> float:
    """How long a call takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def turns(repeats: int, *works: Callable[[], object]) -> list[float]:
    """Median seconds of calls that take turns."""
    rows = [[seconds(work) for work in works] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def tell(what: str, measured: str, beside: str, goal: str) -> None:
    """A row of the table."""
    print(f"| {what} | {measured} | {beside} | {goal} |", flush=True)


def against_the_command(repeats: int, rounds: int) -> None:
    """`fedgenie.run` and the command, on the same scenario and threads."""
    text = (
        FLEET.format(seeds=4, rounds=rounds, every=1_000_000, clients=1000) + "[policy.random]\n[policy.round-robin]\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fleet.toml")
        path.write_text(text)
        command = shutil.which("fedgenie")
        if command is None:
            sys.exit("the command `fedgenie` is not on the path")
        words = [command, "run", str(path), "--quiet", "--threads", "2"]
        begin = [command, "--version"]

        def of_command() -> None:
            subprocess.run(words, check=True, capture_output=True)

        def of_package() -> None:
            fedgenie.run(path, threads=2, progress=None)

        def of_start() -> None:
            subprocess.run(begin, check=True, capture_output=True)

        ours, theirs, start = turns(repeats, of_package, of_command, of_start)
    theirs -= start
    tell("`run` beside the command, starting apart", f"{ours:.2f} s", f"{theirs:.2f} s: {ours / theirs:.3f}×", "1.05×")


def of_policies(repeats: int, clients: int, rounds: int, threads: int) -> dict[str, float]:
    """Processor seconds of a round beyond those of the built-in `random`; with two threads the run is on another."""
    bare = FLEET.format(seeds=1, rounds=rounds, every=1_000_000, clients=clients)
    text = bare + "[policy.random]\n"
    works = {
        "random": (text, {}),
        "port": (bare, {"port": Port}),
        "fixed": (bare, {"fixed": Fixed}),
        "counting": (bare, {"counting": Counting}),
    }
    least = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, (scenario, policies) in works.items():
            begun = time.process_time()
            fedgenie.run(scenario, policies=policies, threads=threads, progress=None)
            least[name] = min(least[name], time.process_time() - begun)
    return {name: (took - least["random"]) / rounds for name, took in least.items() if name != "random"}


def policies(repeats: int, rounds: int) -> None:
    """A policy's round, in empty calls and in copies of an array."""
    empty = min(timeit.repeat("call()", "def call(): pass", number=1_000_000, repeat=5)) / 1e6
    for threads in (1, 2):
        for name, took in of_policies(repeats, 1000, rounds, threads).items():
            what = f"a round of `{name}` beyond `random`, K = 1,000, m = 10, {threads} thread{'s' * (threads > 1)}"
            tell(what, f"{took * 1e6:.2f} µs", f"{took / empty:.0f} empty calls of {empty * 1e9:.0f} ns", "100")
    source = np.arange(1_000_000, dtype=np.uint32)
    copy = min(timeit.repeat(source.copy, number=100, repeat=5)) / 100
    for name, took in of_policies(repeats, 1_000_000, max(rounds // 200, 50), 1).items():
        what = f"a round of `{name}` beyond `random`, K = 10⁶, m = 10"
        tell(what, f"{took * 1e6:.0f} µs", f"{took / copy:.2f} copies of {copy * 1e6:.0f} µs", "3")


def frames(repeats: int, rounds: int) -> None:
    """Rounds as a data frame of pandas, from memory and from a folder."""
    import pandas as pd

    text = FLEET.format(seeds=1, rounds=rounds, every=1, clients=100) + "[policy.random]\n"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        fedgenie.run(text, out=out, progress=None)
        records = next(out.glob("runs/*/rounds.jsonl*"))
        plain = Path(folder, "rounds.jsonl")
        contents = records.read_bytes()
        plain.write_bytes(gzip.decompress(contents) if records.suffix == ".gz" else contents)
        kept: list[Any] = []

        def from_memory() -> None:
            kept.append(len(kept[0].rounds.to_pandas()))

        def fresh() -> None:
            kept[:] = [fedgenie.run(text, progress=None)]

        def loaded() -> None:
            fedgenie.load(out).rounds.to_pandas()

        def by_pandas() -> None:
            pd.read_json(plain, lines=True)

        memory, load, pandas = [], [], []
        for _ in range(repeats):
            fresh()
            memory.append(seconds(from_memory))
            load.append(seconds(loaded))
            pandas.append(seconds(by_pandas))
        ours, theirs, against = (statistics.median(times) for times in (memory, load, pandas))
    beside = f"`pandas.read_json(lines=True)` {against:.2f} s"
    tell(f"{rounds:,} rounds to pandas, from memory", f"{ours:.3f} s", f"{beside}: 1/{against / ours:.0f}", "1/20")
    tell(f"{rounds:,} rounds to pandas, by `load`", f"{theirs:.3f} s", f"{beside}: 1/{against / theirs:.1f}", "1/5")


def learning(repeats: int, rounds: int) -> None:
    """Logistic regression on data of the size of MNIST, beside a plain loop of PyTorch."""
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: its row is left out", file=sys.stderr)
        return
    import fedgenie.torch

    torch.set_num_threads(1)
    source = np.random.default_rng(1)
    clients, cohort, batch = 100, 10, 10
    data = [
        (torch.tensor(source.random((600, 784), dtype=np.float32)), torch.tensor(source.integers(0, 10, 600)))
        for _ in range(clients)
    ]
    test = (torch.tensor(source.random((10_000, 784), dtype=np.float32)), torch.tensor(source.integers(0, 10, 10_000)))

    def make_model() -> torch.nn.Module:
        return torch.nn.Linear(784, 10)

    def sgd(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.1)

    text = FLEET.format(seeds=1, rounds=rounds, every=1, clients=clients) + "[policy.random]\n[evaluate]\nevery = 1\n"

    def ours() -> None:
        task = fedgenie.torch.Task(make_model, data, test, optimizer=sgd, epochs=1, batch=batch)
        fedgenie.run(text, task=task, threads=1, progress=None)

    def plain() -> None:
        torch.manual_seed(1)
        model = make_model()
        current = {name: value.clone() for name, value in model.state_dict().items()}
        for _ in range(rounds):
            total = {name: torch.zeros_like(value) for name, value in current.items()}
            for client in source.choice(clients, cohort, replace=False):
                inputs, targets = data[client]
                model.load_state_dict(current)
                optimizer = sgd(model.parameters())
                for part in torch.randperm(len(targets)).split(batch):
                    optimizer.zero_grad()
                    torch.nn.functional.cross_entropy(model(inputs[part]), targets[part]).backward()
                    optimizer.step()
                for name, value in model.state_dict().items():
                    total[name] += value / cohort
            current = total
            model.load_state_dict(current)
            with torch.no_grad():
                outputs = model(test[0])
                torch.nn.functional.cross_entropy(outputs, test[1])
                (outputs.argmax(dim=1) == test[1]).double().mean()

    package, loop = turns(repeats, ours, plain)
    what = f"`fedgenie.torch.Task`, logistic regression 784 → 10, {cohort} × 600 examples a round, batch {batch}"
    tell(what, f"{package:.2f} s", f"plain loop {loop:.2f} s: {package / loop:.2f}×", "1.3×")


def main() -> None:
    """All of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that it works, measures nothing")
    is_quick = parser.parse_args().quick
    repeats, scale = (1, 100) if is_quick else (5, 1)
    print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}, FedGenie {fedgenie.__version__}\n")
    print("| what | package | beside | at most |\n|---|---|---|---|")
    against_the_command(repeats, 200_000 // scale)
    policies(repeats, 100_000 // scale)
    frames(repeats, 100_000 // scale)
    learning(repeats, 50 // scale or 1)


if __name__ == "__main__":
    main()
