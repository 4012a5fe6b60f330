"""Tasks of PyTorch."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable

import fedgenie
import numpy as np
import pytest

torch = pytest.importorskip("torch")

CLIENTS = 6

SCENARIO = """
name = "pytorch"
seeds = 1
stop.rounds = 12
protocol.synchronous = { cohort = 3 }
training = { batch = 16, optimizer = { sgd = { lr = 0.1 } } }

[population]
clients = 6
[population.latency]
download = { constant = "25 ms" }
compute = { exponential = { mean = { uniform = ["0.1 s", "1 s"] } } }
upload = { constant = "25 ms" }

[policy.random]
[policy.round-robin]
"""


def data(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Three classes in eight dimensions."""
    source = np.random.default_rng(seed)
    classes = source.integers(0, 3, count)
    points = source.normal(0, 1, (count, 8)) + 2 * np.eye(3, 8)[classes]
    return torch.tensor(points, dtype=torch.float32), torch.tensor(classes)


def linear() -> torch.nn.Module:
    return torch.nn.Linear(8, 3)


def normalised() -> torch.nn.Module:
    layers = [torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.2)]
    return torch.nn.Sequential(*layers, torch.nn.Linear(16, 3))


def task(make_model: Callable[[], torch.nn.Module] = linear, **settings: object) -> fedgenie.torch.Task:
    import fedgenie.torch

    clients = [data(40 + 10 * client, client) for client in range(CLIENTS)]
    return fedgenie.torch.Task(make_model, clients, data(200, 99), **settings)


@pytest.mark.parametrize("make_model", [linear, normalised])
def test_clients_learn_the_same_on_any_threads(make_model: Callable[[], torch.nn.Module]) -> None:
    results = [fedgenie.run(SCENARIO, task=task(make_model, epochs=2), threads=threads) for threads in (1, 4)]
    assert results[0].digest == results[1].digest
    for run in results[0].summary["runs"]:
        assert run["final"]["test_accuracy"] > 0.75
    kept = fedgenie.run(SCENARIO, task=task(make_model, epochs=2), threads=2)
    assert kept.digest == results[0].digest


def test_one_client_with_all_data_is_the_plain_loop() -> None:
    whole = data(240, 5)
    import fedgenie.torch

    alone = SCENARIO.replace("clients = 6", "clients = 1").replace("cohort = 3", "cohort = 1")
    seen: list[int] = []
    given = fedgenie.torch.Task(linear, [whole], data(200, 99), batch=32)

    class Watched(fedgenie.torch._Seeded):
        def train(self, job: fedgenie.Job) -> fedgenie.Update:
            seen.append(job.seed)
            return super().train(job)

    class Watching(fedgenie.torch.Task):
        def __call__(self, seed: int, clients: int) -> Watched:
            return Watched(self, seed, clients)

    result = fedgenie.run(alone, task=Watching(linear, [whole], data(200, 99), batch=32), threads=1, seeds=1)
    # The same loop, written plainly: the first run's jobs come first.
    torch.manual_seed(1)
    model = linear()
    for seed in seen[:12]:
        torch.manual_seed(seed)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for part in torch.randperm(240).split(32):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(whole[0][part]), whole[1][part])
            loss.backward()
            optimizer.step()
    inputs, targets = given.test
    with torch.no_grad():
        loss = float(torch.nn.functional.cross_entropy(model(inputs), targets))
    # The server's step adds and divides once more.
    assert result.summary["runs"][0]["final"]["test_loss"] == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("algorithm", ["fedprox", "scaffold", "fednova"])
def test_algorithms_fold_updates_of_pytorch(algorithm: str) -> None:
    text = SCENARIO.replace("[population]", f"algorithm.{algorithm} = {{}}\n[population]", 1)
    plain, changed = (fedgenie.run(scenario, task=task()).summary["runs"][0] for scenario in (SCENARIO, text))
    assert changed["final"]["test_accuracy"] > 0.75
    assert changed["digest"]["model"] != plain["digest"]["model"]


def test_data_of_other_clients_is_refused() -> None:
    with pytest.raises(fedgenie.TaskError, match="found data of 6 clients; the scenario has 4"):
        fedgenie.run(SCENARIO.replace("clients = 6", "clients = 4"), task=task())


def test_processes_train_to_the_same_bits() -> None:
    results = [
        fedgenie.run(SCENARIO, task=task(normalised, epochs=2, processes=processes), threads=2) for processes in (1, 2)
    ]
    assert results[0].digest == results[1].digest
    with pytest.raises(fedgenie.TaskError, match="no lambda"):
        fedgenie.run(SCENARIO, task=task(lambda: linear(), processes=2))
    with pytest.raises(ValueError, match="at least 1"):
        task(processes=0)
    children = multiprocessing.active_children()
    for child in children:
        child.join(10)
    assert not any(child.is_alive() for child in children), "processes end with the run"


def test_a_policy_decides_how_many_epochs() -> None:
    class Works:
        def __init__(self, context: fedgenie.Context, work: int) -> None:
            self.work = work

        def select(self, ask: fedgenie.Ask) -> list[fedgenie.Choice]:
            return [fedgenie.Choice(int(client), work=self.work) for client in ask.available[:3]]

    def model(work: int, **settings: object) -> str:
        given = {"works": (Works, {"work": work})}
        most = {"training.most_epochs": 3}
        found = fedgenie.run(SCENARIO, task=task(**settings), policies=given, set=most).summary
        (digest,) = (run["digest"]["model"] for run in found["runs"] if run["arm"] == "works")
        return str(digest)

    assert model(2) == model(2, epochs=5) != model(1)
