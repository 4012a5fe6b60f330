"""Times local training in plain PyTorch, and FedGenie doing the same work in the same run.

Each process has one thread and its share of the clients, as in the frameworks that simulate federated learning with
worker processes. Every client starts from the global model, trains one epoch in a fresh order, and hands its model
back. The sources of time that a framework adds (serialisation, actors, data loaders) are left out.

    python pytorch_lenet.py --cases lenet,lr-mnist --data FOLDER
    python pytorch_lenet.py --bench --fedgenie target/release/fedgenie --data FOLDER

| case       | model                | clients × images | batch | learning rate | momentum |
|------------|----------------------|------------------|-------|---------------|----------|
| lenet      | LeNet-5, 1×28×28     | 20 × 600         | 32    | 0.01          | 0.9      |
| simple-cnn | SimpleCNN, 3×32×32   | 50 × 50          | 10    | 0.01          | none     |
| resnet18   | ResNet-18, 3×32×32   | 1 × 128 each     | 32    | 0.01          | none     |
| lr-mnist   | softmax, see lr_mnist.py: a whole run with test passes                |
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from images import idx_folder, load_idx
from models import LeNet5, ResNet18, SimpleCnn, torch
from workers import OPTIMIZERS, Workers, share, train_client

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCENARIO = "scenarios/compare/lr_mnist.toml"
BENCH = "cargo bench --bench training -- --json"


@dataclass
class Case:
    model: Callable
    shape: tuple
    clients: int
    size: int
    batch: int
    rate: float
    momentum: float
    unit: str
    clients_per_process: bool = False


CASES = {
    "lenet": Case(LeNet5, (1, 28, 28), 20, 600, 32, 0.01, 0.9, "client-epochs/s"),
    "simple-cnn": Case(SimpleCnn, (3, 32, 32), 50, 50, 10, 0.01, 0.0, "client-epochs/s"),
    "resnet18": Case(ResNet18, (3, 32, 32), 1, 128, 32, 0.01, 0.0, "images/s", clients_per_process=True),
}
LR = "lr-mnist"


def copy(source, target):
    for one, two in zip(source, target):
        two.copy_(one)


class Worker:
    """Trains the clients of one process."""

    def __init__(self, seed, name, clients, images, labels, optimizer, layout):
        torch.manual_seed(seed)
        case = CASES[name]
        self.layout = {"channels-last": torch.channels_last, "contiguous": torch.contiguous_format}[layout]
        self.model = case.model().to(memory_format=self.layout).train()
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters(), case.rate, case.momentum)
        self.state = list(self.model.state_dict().values())
        self.start = [values.clone() for values in self.state]
        self.updates = [[values.clone() for values in self.state] for _ in clients]
        self.clients = [(images[k].contiguous(memory_format=self.layout), labels[k]) for k in clients]
        self.batch = case.batch

    def __call__(self, _):
        for (images, labels), update in zip(self.clients, self.updates):
            copy(self.start, self.state)
            self.optimizer.forget()
            train_client(self.model, self.optimizer, images, labels, self.batch)
            copy(self.state, update)


def examples(case, clients, data):
    if data is not None and case.shape == (1, 28, 28):
        images, labels = (torch.from_numpy(values[: clients * case.size]) for values in load_idx(data, "train"))
    else:
        generator = torch.Generator().manual_seed(1)
        images = torch.rand(clients * case.size, *case.shape, generator=generator)
        labels = torch.randint(10, (clients * case.size,), generator=generator)
    return images.view(clients, case.size, *case.shape), labels.view(clients, case.size)


def rates(name, options):
    """Units per second of each repetition, after one that is not counted."""
    case, processes = CASES[name], options.processes
    clients = case.clients * (processes if case.clients_per_process else 1)
    images, labels = examples(case, clients, options.data)
    units = clients * (case.size if case.unit == "images/s" else 1)
    own = [share(clients, process, processes) for process in range(processes)]
    arguments = [(k, name, own[k], images, labels, options.optimizer, options.layout) for k in range(processes)]
    found = []
    with Workers(Worker, arguments) as workers:
        for _ in range(options.repetitions + 1):
            begin = time.perf_counter()
            workers.ask([True] * processes)
            found.append(units / (time.perf_counter() - begin))
    return found[1:]


def run(command, **more):
    """Standard output of a program that must succeed, and its seconds."""
    begin = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **more)
    seconds = time.perf_counter() - begin
    if done.returncode:
        sys.exit(f"{shlex.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout, seconds


def bench(name, options):
    """Median and best of a case in FedGenie's benchmark."""
    command = [*shlex.split(options.bench), "--cases", name]
    output, _ = run(command, cwd=ROOT, env=os.environ | {"RAYON_NUM_THREADS": str(options.processes)})
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        found = json.loads(line)
        if found["case"] == name and found["threads"] == options.processes:
            if found["unit"] != CASES[name].unit:
                sys.exit(f"{name}: the benchmark counts {found['unit']}, this program {CASES[name].unit}")
            return found["median"], found["best"]
    sys.exit(f"{shlex.join(command)}: no line of JSON for {name} on {options.processes} threads in\n{output}")


def lr_program(options, loops):
    command = [sys.executable, HERE / "lr_mnist.py", "--json", "--loops", str(loops)]
    command += ["--processes", str(options.processes), "--optimizer", options.optimizer]
    command += ["--data", options.data] if options.data else []
    output, seconds = run(command)
    return json.loads(output), seconds


def fedgenie_program(options):
    """Seconds of a whole run of the scenario."""
    with tempfile.TemporaryDirectory() as out:
        command = [options.fedgenie, "run", ROOT / SCENARIO, "--data", options.data.parent, "--out", Path(out) / "run"]
        return run([*command, "--threads", str(options.processes), "--quiet", "--json"])[1]


class Table:
    """Rows of PyTorch's numbers, and of FedGenie's and the ratio where they were measured."""

    def __init__(self, compared):
        self.rows = [["case", "unit", "PyTorch median", "best"]]
        if compared:
            self.rows[0] += ["FedGenie median", "best", "FedGenie faster: medians", "by round", "bests"]

    def add(self, name, unit, best, theirs, ours):
        """`theirs`: values by round; `ours`: (median, best) by round; `best` is max for rates and min for times."""
        values = [value for values in theirs for value in values]
        row = [name, unit, *map(number, (statistics.median(values), best(values)))]
        if ours:
            faster = (lambda a, b: b / a) if best is max else (lambda a, b: a / b)
            median = statistics.median(middle for middle, _ in ours)
            top = best(value for _, value in ours)
            each = [faster(statistics.median(values), middle) for values, (middle, _) in zip(theirs, ours)]
            row += [number(median), number(top), f"{faster(statistics.median(values), median):.2f} ×"]
            row += [f"{min(each):.2f}–{max(each):.2f}", f"{faster(best(values), top):.2f} ×"]
        self.rows.append(row)

    def print(self):
        columns = max(map(len, self.rows))
        rows = [[*row, *["–"] * (columns - len(row))] for row in self.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(columns)]
        rule = ["-" * width for width in widths]
        for row in (rows[0], rule, *rows[1:]):
            cells = [cell.ljust(width) for cell, width in zip(row[:2], widths)]
            cells += [cell.rjust(width) for cell, width in zip(row[2:], widths[2:])]
            print(f"| {' | '.join(cells)} |")


def number(value):
    return f"{value:.0f}" if value >= 1_000 else f"{value:.4g}"


def compare_lr(table, options, rounds):
    loops, programs, phases, ours = [], [], [], []
    for _ in range(rounds):
        loops.append(lr_program(options, options.repetitions + 1)[0]["loops"][1:])
        programs.append([])
        whole = []
        if options.fedgenie:
            fedgenie_program(options)
        for _ in range(options.repetitions):
            found, seconds = lr_program(options, 1)
            programs[-1].append(seconds)
            phases.append(found)
            if options.fedgenie:
                whole.append(fedgenie_program(options))
        if whole:
            ours.append((statistics.median(whole), min(whole)))
    table.add(f"{LR}, rounds alone", "s", min, loops, None)
    without = [[phase["load"] + phase["start"] + phase["loops"][0] for phase in phases]]
    table.add(f"{LR}, import left out", "s", min, without, None)
    table.add(f"{LR}, whole program", "s", min, programs, ours)
    middle = {name: statistics.median(phase[name] for phase in phases) for name in ("import", "load", "start")}
    first = statistics.median(phase["loops"][0] for phase in phases)
    loss, accuracy = (statistics.median(phase[name] for phase in phases) for name in ("loss", "accuracy"))
    return (
        f"{LR}, medians in a whole program: import PyTorch {middle['import']:.2f} s, load data {middle['load']:.2f} s, "
        f"start workers {middle['start']:.2f} s, rounds {first:.3f} s; test loss {loss:.4f}, accuracy {accuracy:.4f}"
    )


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", default=",".join([*CASES, LR]), help="comma-separated; all by default")
    parser.add_argument("--repetitions", type=int, default=7, help="of each case (and round), after one not counted")
    parser.add_argument("--rounds", type=int, help="turns of PyTorch and FedGenie; 3 where both run, else 1")
    parser.add_argument("--processes", type=int, default=2, help="of PyTorch, and threads of FedGenie")
    parser.add_argument("--data", help="folder of the IDX files of Fashion-MNIST (or holding them in fashion-mnist)")
    parser.add_argument("--fedgenie", type=Path, help=f"the program; runs {SCENARIO} with it")
    parser.add_argument("--bench", nargs="?", const=BENCH, help=f"also run FedGenie's benchmark; by default: {BENCH}")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="plain", help="hand-written (faster) or torch.optim")
    parser.add_argument("--layout", choices=("channels-last", "contiguous"), default="channels-last")
    options = parser.parse_args()
    options.cases = options.cases.split(",")
    if unknown := [name for name in options.cases if name not in (*CASES, LR)]:
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join((*CASES, LR))}")
    if min(options.repetitions, options.processes, options.rounds or 1) < 1:
        parser.error("--repetitions, --processes and --rounds are at least 1")
    if options.data is not None:
        try:
            options.data = idx_folder(options.data).resolve()
        except FileNotFoundError as error:
            parser.error(str(error))
    if options.bench and options.fedgenie is None and LR in options.cases and options.data is not None:
        options.fedgenie = ROOT / "target/release/fedgenie"
    if options.fedgenie is not None:
        options.fedgenie = options.fedgenie.resolve()
        if not options.fedgenie.is_file():
            parser.error(f"{options.fedgenie} is not there: cargo build --release, or name the program with --fedgenie")
        if options.data is None and LR in options.cases:
            parser.error(f"{SCENARIO} needs --data")
    return options


def main():
    options = parse()
    rounds = options.rounds or (3 if options.bench or options.fedgenie else 1)
    load = os.getloadavg()[0]
    capability = torch.backends.cpu.get_cpu_capability()
    print(f"PyTorch {torch.__version__} ({capability}), {options.processes} processes of one thread,", end=" ")
    print(f"{options.optimizer} optimizer, {options.layout}; {os.cpu_count()} cores, load {load:.2f} at the start")
    if options.bench:
        run([*shlex.split(options.bench.split(" -- ")[0]), "--no-run"], cwd=ROOT)
    table = Table(options.bench or options.fedgenie)
    notes = []
    for name in options.cases:
        if name == LR:
            notes.append(compare_lr(table, options, rounds))
            continue
        theirs, ours = [], []
        for _ in range(rounds):
            theirs.append(rates(name, options))
            if options.bench:
                ours.append(bench(name, options))
        table.add(name, CASES[name].unit, max, theirs, ours)
    table.print()
    print("\n".join(notes))


if __name__ == "__main__":
    main()
