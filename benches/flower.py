"""The same ClientApp under `fedgenie.flower.Task` and under Flower's own engine, each as a whole program:
`python benches/flower.py [--rounds N] [--clients K] [--repeats R]`.

Softmax regression 784 → 10 in NumPy, all clients in every round, so that both end in the same weights, which is checked.
Programs take turns; the median of each is printed. Needs `flwr` and `ray`. Nothing is asserted of times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

CLASSES, PIXELS, EXAMPLES = 10, 784, 600


def data(client: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Drawn rows of a client."""
    source = np.random.default_rng(client)
    labels = source.integers(0, CLASSES, EXAMPLES)
    return source.normal(0, 1, (EXAMPLES, PIXELS)) + 3 * np.eye(CLASSES, PIXELS)[labels], labels


def client_app() -> Any:
    """An epoch of gradient descent in batches of 10."""
    from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp

    app = ClientApp()
    kept: dict[int, Any] = {}

    @app.train()
    def train(message: Message, context: Context) -> Message:
        client = int(context.node_config["partition-id"])
        inputs, labels = kept.setdefault(client, data(client))
        weights = message.content["arrays"]["weights"].numpy().astype(np.float64)
        loss = 0.0
        for batch in np.arange(EXAMPLES).reshape(-1, 10):
            scores = inputs[batch] @ weights
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            slopes = scores / scores.sum(axis=1, keepdims=True)
            loss -= float(np.log(slopes[np.arange(10), labels[batch]]).sum())
            slopes[np.arange(10), labels[batch]] -= 1
            weights -= 0.01 * inputs[batch].T @ slopes / 10
        content = {
            "arrays": ArrayRecord({"weights": Array(weights.astype(np.float32))}),
            "metrics": MetricRecord({"num-examples": EXAMPLES, "train_loss": loss / EXAMPLES}),
        }
        return Message(RecordDict(content), reply_to=message)

    return app


def measure(arrays: Any) -> dict[str, float]:
    """The share of test rows of the right class."""
    inputs, labels = data(10_000)
    return {"accuracy": float(((inputs @ arrays["weights"].numpy()).argmax(axis=1) == labels).mean())}


def task(clients: int, rounds: int) -> Any:
    """Under FedGenie's clock."""
    import fedgenie
    from fedgenie.flower import Task

    constant = {"constant": "1 s"}
    scenario = {
        "name": "bench",
        "seeds": [1],
        "stop": {"rounds": rounds},
        "protocol": {"synchronous": {"cohort": clients}},
        "population": {"clients": clients, "latency": {"download": constant, "compute": constant, "upload": constant}},
        "policy": {"random": {}},
    }
    given = Task(client_app(), [EXAMPLES] * clients, {"weights": np.zeros((PIXELS, CLASSES), np.float32)}, measure)
    found = fedgenie.run(scenario, task=given, progress=None)
    return found.summary["runs"][0]["final"]["test_accuracy"]


def simulation(clients: int, rounds: int) -> Any:
    """Under Flower's engine."""
    from flwr.app import Array, ArrayRecord, Context, MetricRecord
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    server, found = ServerApp(), dict[str, float]()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        strategy = FedAvg(fraction_evaluate=0.0, min_available_nodes=clients)
        result = strategy.start(
            grid=grid,
            initial_arrays=ArrayRecord({"weights": Array(np.zeros((PIXELS, CLASSES), np.float32))}),
            num_rounds=rounds,
            evaluate_fn=lambda round, arrays: MetricRecord(measure(arrays)),
        )
        found.update(measure(result.arrays))

    run_simulation(server, client_app(), num_supernodes=clients)
    return found["accuracy"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--program", choices=["task", "simulation"])
    given = parser.parse_args()
    if given.program:
        work = task if given.program == "task" else simulation
        print("ended " + json.dumps(work(given.clients, given.rounds)), flush=True)
        return
    seconds: dict[str, list[float]] = {"task": [], "simulation": []}
    ends: set[str] = set()
    for _ in range(given.repeats):
        for program, found in seconds.items():
            words = [sys.executable, __file__, "--program", program, "--rounds", str(given.rounds)]
            begun = time.perf_counter()
            ended = subprocess.run(
                [*words, "--clients", str(given.clients)], capture_output=True, text=True, check=True
            )  # fmt: skip
            found.append(time.perf_counter() - begun)
            ends |= {line for line in ended.stdout.splitlines() if line.startswith("ended ")}
    if len({round(float(end.split()[1]), 2) for end in ends}) != 1:
        sys.exit(f"the two end in different accuracies: {sorted(ends)}")
    ours, theirs = (statistics.median(found) for found in seconds.values())
    print(
        f"| {given.clients} clients, {given.rounds} rounds, whole program | {ours:.2f} s | {theirs:.2f} s: 1/{theirs / ours:.1f} |"
    )


if __name__ == "__main__":
    main()
