"""Tasks in Python."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import fedgenie
import numpy as np
import pytest
from conftest import LEARNS, First
from numpy.typing import NDArray

CLIENTS, FEATURES = 6, 3

SCENARIO = """
name = "regression"
seeds = 2
stop.rounds = 20
protocol.synchronous = { cohort = 3 }
training = { batch = "all", optimizer = { sgd = { lr = 0.05 } } }

[population]
clients = 6
[population.latency]
download = { constant = "25 ms" }
compute = { exponential = { mean = { uniform = ["0.1 s", "1 s"] } } }
upload = { constant = "25 ms" }

[policy.random]
[policy.round-robin]
"""


def rows(name: str) -> list[list[float]]:
    """Rows of numbers that are exact in float32."""
    source = np.random.default_rng({"train": 1, "test": 2}[name])
    count = 60 if name == "train" else 40
    x = source.integers(0, 256, (count, FEATURES)) / 128
    y = np.round((x @ [1.0, -2.0, 0.5] + 3 + source.normal(0, 0.1, count)) * 256) / 256
    # Clients have different numbers of rows.
    group = np.minimum(np.arange(count) // 4, CLIENTS - 1)
    return [[int(client), *features, target] for client, features, target in zip(group, x, y, strict=True)]


def data(name: str) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Features and targets of each client."""
    all_rows = np.array(rows(name))
    clients = [all_rows[all_rows[:, 0] == client] for client in range(CLIENTS)]
    return [(part[:, 1:-1].astype(np.float32), part[:, -1].astype(np.float32)) for part in clients]


class Regression:
    """The built-in linear regression, in NumPy: one step on all examples of a client."""

    metrics = {"test_loss": "min"}

    def __init__(self, seed: int, clients: int, scale: float = 1.0) -> None:
        assert clients == CLIENTS
        self.clients = data("train")
        self.test = [np.concatenate(part) for part in zip(*data("test"), strict=True)]
        self.examples = [len(targets) for _, targets in self.clients]
        self.scale = scale

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        return {"weight": np.zeros(FEATURES, np.float32), "bias": np.zeros((), np.float32)}

    def errors(self, weights: Any, x: Any, y: Any) -> Any:
        return x.astype(float) @ weights["weight"].astype(float) + float(weights["bias"]) - y

    def train(self, job: fedgenie.Job) -> fedgenie.Update:
        x, y = self.clients[job.client]
        errors = self.errors(job.weights, x, y)
        step = 2 * job.lr * self.scale / len(y)
        weights = {
            "weight": (job.weights["weight"] - step * (errors @ x)).astype(np.float32),
            "bias": (job.weights["bias"] - step * errors.sum()).astype(np.float32),
        }
        return fedgenie.Update(weights, loss=float(np.mean(errors**2)))

    def evaluate(self, weights: Any) -> dict[str, float]:
        return {"test_loss": float(np.mean(self.errors(weights, *self.test) ** 2))}


def built_in(folder: Path) -> fedgenie.Result:
    for name in ("train", "test"):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["client", *(f"x{index}" for index in range(FEATURES)), "y"])
            writer.writerows(rows(name))
    source = '{ csv = { train = "train.csv", test = "test.csv", target = "y", group = "client" } }'
    task = f'task.linear-regression = {{ data = {source}, partition = "by-column" }}'
    path = folder / "regression.toml"
    path.write_text(SCENARIO.replace("training =", f"{task}\ntraining ="))
    return fedgenie.run(path)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_trainer_in_numpy_agrees_with_the_built_in(tmp_path: Path, threads: int) -> None:
    ours = fedgenie.run(SCENARIO, task=Regression, threads=threads)
    theirs = built_in(tmp_path)
    assert len(ours.summary["runs"]) == 4
    for one, other in zip(ours.summary["runs"], theirs.summary["runs"], strict=True):
        assert one["digest"]["timeline"] == other["digest"]["timeline"]
        assert one["final"]["test_loss"] == pytest.approx(other["final"]["test_loss"], abs=1e-5)
        assert one["final"]["test_loss"] < 2.0
    losses = [result.rounds["metric_test_loss"].compressed() for result in (ours, theirs)]
    assert np.allclose(*losses, atol=1e-5)


def test_parameters_of_a_task_are_set_and_swept() -> None:
    swept = fedgenie.run(SCENARIO, task=Regression, set={"sweep": {"task.regression.scale": [0.0, 1.0]}}, seeds=1)
    still, moved = (run["final"]["test_loss"] for run in swept.summary["runs"] if run["arm"] == "random")
    assert moved < still
    given = fedgenie.run(SCENARIO, task=(Regression, {"scale": 0.0}), seeds=1)
    assert given.summary["runs"][0]["final"]["test_loss"] == still
    with pytest.raises(TypeError, match="found the parameter 'scael'"):
        fedgenie.run(SCENARIO, task=(Regression, {"scael": 0.0}))


def test_jobs_are_paired_over_policies() -> None:
    seen: dict[tuple[int, int], set[int]] = {}

    class Watched(Regression):
        def train(self, job: fedgenie.Job) -> fedgenie.Update:
            seen.setdefault((job.client, job.round), set()).add(job.seed)
            assert job.correction is None and job.proximal == 0.0 and job.epochs == 1
            with pytest.raises(ValueError, match="read-only"):
                job.weights["weight"][0] = 1.0
            return super().train(job)

    fedgenie.run(SCENARIO, task=Watched, seeds=1, policies={"first": First})
    assert all(len(seeds) == 1 for seeds in seen.values())
    assert len({seed for seeds in seen.values() for seed in seeds}) == len(seen)


@pytest.mark.parametrize("algorithm", ["fedprox", "scaffold", "fednova"])
def test_algorithms_of_the_catalogue_fold_updates(algorithm: str) -> None:
    class Corrected(Regression):
        def train(self, job: fedgenie.Job) -> fedgenie.Update:
            update = super().train(job)
            if algorithm == "scaffold":
                assert job.correction is not None and job.correction["weight"].shape == (FEATURES,)
            return update

        def client_loss(self, client: int, weights: Any) -> float:
            return float(np.mean(self.errors(weights, *self.clients[client]) ** 2))

        def gradient(self, job: fedgenie.Job) -> Any:
            x, y = self.clients[job.client]
            errors = 2 * self.errors(job.weights, x, y) / len(y)
            return {"weight": (errors @ x).astype(np.float32), "bias": np.float32(errors.sum())}

    text = SCENARIO.replace("[population]", f"algorithm.{algorithm} = {{}}\n[population]", 1)
    result = fedgenie.run(text, task=Corrected, seeds=1)
    assert result.summary["runs"][0]["final"]["test_loss"] < 3.0


WRONG = {
    "NaN": (lambda weights: {**weights, "bias": np.float32("nan") + weights["bias"]}, "not finite"),
    "another shape": (lambda weights: {**weights, "weight": np.zeros(4, np.float32)}, r"shape \[4\]; expected \[3\]"),
    "another type": (lambda weights: {**weights, "weight": np.zeros(3)}, "float64; expected an array of float32"),
    "another name": (lambda weights: {**weights, "wieght": np.zeros(3, np.float32)}, "found the weight .wieght"),
    "a missing one": (lambda weights: {"weight": weights["weight"]}, '"bias" is missing'),
    "no dict": (lambda weights: [1.0], "expected a dict"),
}


@pytest.mark.parametrize("name", WRONG)
def test_unusable_weights_are_refused_plainly(name: str) -> None:
    change, expected = WRONG[name]

    class Wrong(Regression):
        def train(self, job: fedgenie.Job) -> fedgenie.Update:
            return fedgenie.Update(change(self.parameters()))

    with pytest.raises(fedgenie.RunError, match=expected) as caught:
        fedgenie.run(SCENARIO, task=Wrong, seeds=1)
    assert caught.value.run is not None and caught.value.round == 1


def test_exceptions_of_a_task_are_causes() -> None:
    class Fails(Regression):
        def train(self, job: fedgenie.Job) -> fedgenie.Update:
            if job.round == 4:
                raise KeyError("lost")
            return super().train(job)

    with pytest.raises(fedgenie.TaskError, match="KeyError") as caught:
        fedgenie.run(SCENARIO, task=Fails, seeds=1)
    assert isinstance(caught.value.__cause__, KeyError) and caught.value.round == 4

    class Broken(Regression):
        def parameters(self) -> Any:
            raise ZeroDivisionError("broken")

    with pytest.raises(fedgenie.TaskError, match="broken"):
        fedgenie.run(SCENARIO, task=Broken, seeds=1)


def test_jobs_of_a_round_may_be_trained_together() -> None:
    sizes = []

    class Together(Regression):
        def train_many(self, jobs: list[fedgenie.Job]) -> list[fedgenie.Update]:
            sizes.append(len(jobs))
            return [self.train(job) for job in jobs]

    together, alone = (fedgenie.run(SCENARIO, task=task, threads=1) for task in (Together, Regression))
    assert sizes == [3] * 20 * 4
    models = [[run["digest"]["model"] for run in result.summary["runs"]] for result in (together, alone)]
    assert models[0] == models[1]

    class Few(Regression):
        def train_many(self, jobs: list[fedgenie.Job]) -> list[fedgenie.Update]:
            return [self.train(jobs[0])]

    with pytest.raises(fedgenie.TaskError, match="found 1 updates; expected one for each of 3 jobs"):
        fedgenie.run(SCENARIO, task=Few, seeds=1)


def test_a_task_says_what_its_updates_weigh() -> None:
    class Packed(Regression):
        payload_bytes = 7

        def train(self, job: fedgenie.Job) -> fedgenie.Update:
            update = super().train(job)
            return fedgenie.Update(update.weights, update.loss, 7)

    plain, packed = (fedgenie.run(SCENARIO, task=task, seeds=1) for task in (Regression, Packed))
    up = [result.summary["runs"][0]["traffic"]["up_bytes"] for result in (plain, packed)]
    down = [result.summary["runs"][0]["traffic"]["down_bytes"] for result in (plain, packed)]
    assert up == [20 * 3 * 4 * (FEATURES + 1), 20 * 3 * 7] and down[0] == down[1] == up[0]
    models = [result.summary["runs"][0]["digest"]["model"] for result in (plain, packed)]
    assert models[0] == models[1]

    class Claims(Packed):
        payload_bytes = 8

    with pytest.raises(fedgenie.TaskError, match="found 7, and the upload of 8 bytes was simulated before"):
        fedgenie.run(SCENARIO, task=Claims, seeds=1)

    class Wrong(Packed):
        payload_bytes = -1

    with pytest.raises(fedgenie.TaskError, match="expected a whole number of bytes"):
        fedgenie.run(SCENARIO, task=Wrong, seeds=1)


def test_losses_of_clients_can_be_probed() -> None:
    class Lossy(Regression):
        def client_loss(self, client: int, weights: Any) -> float:
            return float(np.mean(self.errors(weights, *self.clients[client]) ** 2))

    probed: list[Any] = []

    class Worst(First):
        needs_losses = True

        def probe(self, ask: Any) -> fedgenie.Probe:
            return fedgenie.Probe.losses(ask.available)

        def select(self, ask: Any) -> Any:
            clients, losses = ask.probed
            probed.append((clients, losses))
            return clients[np.argsort(-losses, kind="stable")][: ask.cohort]

    result = fedgenie.run(SCENARIO, task=Lossy, policies={"worst": Worst}, seeds=1, threads=1)
    assert list(probed[0][0]) == list(range(CLIENTS)) and np.all(probed[0][1] > 0)
    task = Lossy(1, CLIENTS)
    assert probed[0][1][2] == task.client_loss(2, task.parameters())
    assert len(result.summary["runs"]) == 3


def test_what_is_no_task_is_refused() -> None:
    with pytest.raises(TypeError, match="no metrics"):
        fedgenie.run(SCENARIO, task=First)
    with pytest.raises(ValueError, match="task"):
        fedgenie.run(LEARNS, task=Regression)


class Average(fedgenie.Algorithm):
    """The mean of the models that came back, weighted by examples."""

    def fold(self, updates: fedgenie.Updates) -> NDArray[np.float32]:
        share = updates.examples / updates.examples.sum()
        change = share @ (updates.parameters.astype(float) - updates.start)
        return (updates.model + change).astype(np.float32)


class Momentum(Average):
    """The same with a heavy ball, whose speed is the memory."""

    memory = 1

    def __init__(self, beta: float = 0.5) -> None:
        self.beta = beta

    def fold(self, updates: fedgenie.Updates) -> NDArray[np.float32]:
        change = super().fold(updates).astype(float) - updates.model
        updates.memory[:] = self.beta * updates.memory + change
        return (updates.model + updates.memory).astype(np.float32)


def test_an_algorithm_folds_updates() -> None:
    def losses(**arguments: Any) -> list[float]:
        runs = fedgenie.run(SCENARIO, task=Regression, **arguments).summary["runs"]
        return [run["final"]["test_loss"] for run in runs]

    assert losses(algorithm=Average) == pytest.approx(losses(), abs=1e-5)
    server = {"aggregation.server": {"momentum": {"lr": 1.0, "momentum": 0.5}}}
    assert losses(algorithm=(Momentum, {"beta": 0.5})) == pytest.approx(losses(set=server), abs=1e-4)
    assert losses(algorithm=Momentum()) != losses(algorithm=Average)


def test_an_algorithm_that_fails_is_told() -> None:
    class Fails(Average):
        def fold(self, updates: fedgenie.Updates) -> Any:
            raise KeyError("lost")

    with pytest.raises(fedgenie.RunError) as caught:
        fedgenie.run(SCENARIO, task=Regression, algorithm=Fails, seeds=1)
    assert isinstance(caught.value.__cause__, KeyError) and caught.value.round == 1
    for wrong, expected in [
        (lambda model: model[:2], "found 2 numbers"),
        (lambda model: model.astype(float), "float64"),
    ]:

        class Wrong(Average):
            def fold(self, updates: fedgenie.Updates) -> Any:
                return wrong(updates.model)

        with pytest.raises(fedgenie.RunError, match=expected):
            fedgenie.run(SCENARIO, task=Regression, algorithm=Wrong, seeds=1)
    with pytest.raises(TypeError, match="no method fold"):
        fedgenie.run(SCENARIO, task=Regression, algorithm=First)


def test_metrics_that_are_never_a_number_are_told() -> None:
    class Unmeasured(Regression):
        metrics = {"test_loss": "min", "test_accuracy": "max"}

        def evaluate(self, weights: Any) -> dict[str, float]:
            return {**super().evaluate(weights), "test_accuracy": float("nan")}

    result = fedgenie.run(SCENARIO, task=Unmeasured, seeds=1)
    assert any("test_accuracy was measured, and was a finite number in no" in warning for warning in result.warnings)


def test_clients_without_any_example_are_refused() -> None:
    class Empty(Regression):
        def __init__(self, seed: int, clients: int) -> None:
            super().__init__(seed, clients)
            self.examples = [0] * clients

    with pytest.raises(fedgenie.TaskError, match="found 0 for every client"):
        fedgenie.run(SCENARIO, task=Empty, seeds=1)
