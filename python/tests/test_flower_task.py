"""ClientApps of Flower as tasks: trained under FedGenie's clock."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import fedgenie
import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: nothing of fedgenie.flower was tested")

from fedgenie import _called, flower
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

SIZES = [20, 40, 30, 10]

SCENARIO = """
name = "flower"
seeds = 1
stop.rounds = 8
protocol.synchronous = { cohort = 2 }

[population]
clients = 4
[population.latency]
download = { constant = "25 ms" }
compute = { exponential = { mean = { uniform = ["0.1 s", "1 s"] } } }
upload = { constant = "25 ms" }

[policy.round-robin]
"""

START = {"w": np.array([1.0, -1.0, 0.5], np.float32), "b": np.zeros((), np.float64)}


def data(client: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A client's rows of a linear model."""
    source = np.random.default_rng(client)
    inputs = source.normal(0, 1, (SIZES[client], 3))
    return inputs, inputs @ np.array([1.0, 2.0, 3.0]) + client


def gradient(client: int, w: np.ndarray[Any, Any], b: float) -> tuple[np.ndarray[Any, Any], float, float]:
    inputs, targets = data(client)
    errors = inputs @ w + b - targets
    return 2 * inputs.T @ errors / len(targets), float(2 * errors.mean()), float((errors**2).mean())


def app(**wrong: Any) -> ClientApp:
    """A step of gradient descent on a client's own rows."""
    made = ClientApp()

    @made.train()
    def train(message: Message, context: Context) -> Message:
        client, round = int(context.node_config["partition-id"]), int(message.content["config"]["server-round"])
        for name, does in wrong.items():
            found = does(client, round) if name == "does" else None
            if found is not None:
                return found(message)
        arrays = message.content["arrays"]
        w, b = arrays["w"].numpy(), arrays["b"].numpy()
        of_w, of_b, loss = gradient(client, w.astype(np.float64), float(b))
        made_of = {"w": Array((w - 0.1 * of_w).astype(np.float32)), "b": Array(np.asarray(b - 0.1 * of_b))}
        numbers = {"num-examples": SIZES[client], "train_loss": loss}
        content = {"arrays": ArrayRecord(made_of), "metrics": MetricRecord(numbers)}
        return Message(RecordDict(content), reply_to=message)

    return made


def measure(arrays: ArrayRecord) -> dict[str, float]:
    w, b = arrays["w"].numpy(), float(arrays["b"].numpy())
    return {"loss": sum(gradient(client, w.astype(np.float64), b)[2] for client in range(4)) / 4}


def task(made: ClientApp, clients: Any = SIZES, **given: Any) -> flower.Task:
    return flower.Task(made, clients, START, measure, **given)


def test_a_client_app_learns_as_written_plainly() -> None:
    result = fedgenie.run(SCENARIO, task=task(app()), progress=None)
    w, b, losses = START["w"].astype(np.float64), 0.0, []
    for round in range(8):
        chosen = [[0, 1], [2, 3]][round % 2]
        total = sum(SIZES[client] for client in chosen)
        steps = [(SIZES[client] / total, *gradient(client, w, b)) for client in chosen]
        w = w - 0.1 * sum(share * of_w for share, of_w, _, _ in steps)
        b = b - 0.1 * sum(share * of_b for share, _, of_b, _ in steps)
        losses.append(measure(ArrayRecord({"w": Array(w), "b": Array(np.asarray(b))}))["loss"])
    found = result.rounds["metric_test_loss"]
    assert found.tolist()[-8:] == pytest.approx(losses, rel=1e-5)
    assert losses[-1] < losses[0] / 4


def test_the_digest_is_the_same_on_any_threads_and_in_a_replay(tmp_path: Path) -> None:
    given = [fedgenie.run(SCENARIO, task=task(app()), threads=threads, seeds=2, progress=None) for threads in (1, 2)]
    assert given[0].digest == given[1].digest
    fedgenie.check(SCENARIO, task=task(app()), set={"stop.rounds": 3})


PROTOCOLS = {
    "buffered": "protocol.buffered = { concurrency = 3, buffer = 2 }",
    "deadline": 'protocol.deadline = { cohort = 3, deadline = "2 s" }',
    "hierarchical": "protocol.hierarchical = { edges = 2, cohort = 1, edge_rounds = 2 }",
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_client_app_learns_under_every_protocol(name: str) -> None:
    text = SCENARIO.replace("protocol.synchronous = { cohort = 2 }", PROTOCOLS[name])
    digests = [fedgenie.run(text, task=given, threads=2, progress=None) for given in (task(app()), task(app()))]
    assert digests[0].digest == digests[1].digest
    final = digests[0].summary["runs"][0]["final"]["test_loss"]
    assert final < measure(ArrayRecord({name: Array(value) for name, value in START.items()}))["loss"] / 2


def counting() -> ClientApp:
    """Counts its own jobs in `Context.state`, and draws random numbers of Python and NumPy."""
    made = ClientApp()

    @made.train()
    def train(message: Message, context: Context) -> Message:
        state = context.state.setdefault("mine", ConfigRecord({"jobs": 0}))
        state["jobs"] = int(state["jobs"]) + 1
        w = message.content["arrays"]["w"].numpy()
        noise = random.random() + np.random.random()
        content = {
            "arrays": ArrayRecord({"w": Array(np.float32([w[0] + int(state["jobs"]), w[1] + noise]))}),
            "metrics": MetricRecord({"num-examples": 1, "train_loss": 1.0}),
        }
        return Message(RecordDict(content), reply_to=message)

    return made


def counted(clients: int = 4) -> flower.Task:
    def evaluate(arrays: ArrayRecord) -> dict[str, float]:
        jobs, noise = arrays["w"].numpy()
        return {"jobs": float(jobs), "noise": float(noise)}

    start = [np.zeros(2, np.float32)]
    given = {"metrics": {"jobs": "max", "noise": "min"}}
    made = counting()
    return flower.Task(made, [1] * clients, {"w": start[0]}, evaluate, **given)


def test_each_client_keeps_its_state_in_each_run() -> None:
    text = SCENARIO + "[policy.random]\n"
    result = fedgenie.run(text, task=counted(), seeds=2, threads=2, progress=None)
    # In turns each client has its n-th job in rounds 2n − 1 or 2n: the means of two add up to 1 + 1 + 2 + 2 + 3 + 3 + …
    for run in result.summary["runs"]:
        if run["arm"] == "round-robin":
            assert run["final"]["test_jobs"] == pytest.approx(1 + 1 + 2 + 2 + 3 + 3 + 4 + 4)
    again = fedgenie.run(text, task=counted(), seeds=2, threads=1, progress=None)
    assert again.digest == result.digest, "random numbers belong to seed, client and round"


def test_a_state_is_part_of_what_is_saved(tmp_path: Path) -> None:
    from fedgenie._fedgenie import Update

    with pytest.raises(fedgenie.TaskError, match="write keeps_state = True"):

        class Forgets:
            metrics = {"test_loss": "min"}

            def __init__(self, seed: int, clients: int) -> None:
                self.examples = [1] * clients

            def parameters(self) -> Any:
                return {"w": np.zeros(1, np.float32)}

            def train(self, job: Any) -> Update:
                return Update(job.weights, loss=0.0, state=b"mine")

            def evaluate(self, weights: Any) -> Any:
                return {"test_loss": 0.0}

        fedgenie.run(SCENARIO, task=Forgets, progress=None)
    seen: list[bytes | None] = []

    class Keeps(Forgets):
        keeps_state = True

        def train(self, job: Any) -> Update:
            seen.append(job.state)
            before = job.state or b""
            return Update(job.weights, loss=0.0, state=before + bytes([255 - job.client, 0, 128, 7])[: job.client])

    fedgenie.run(SCENARIO, task=Keeps, progress=None, threads=1)
    # Two clients a round in turns: each has a job in every second round, and its state grows by as many bytes as it is.
    expected: list[bytes | None] = []
    for job in range(4):
        for client in range(4):
            expected.append(None if job == 0 else bytes([255 - client, 0, 128, 7])[:client] * job)
    assert seen == expected


def test_an_interrupted_run_goes_on_with_the_state_of_its_clients(tmp_path: Path) -> None:
    is_due = [True]
    plain = counting()

    def interrupts(message: Message, context: Context) -> Message:
        if int(message.content["config"]["server-round"]) == 40 and is_due[0]:
            is_due[0] = False
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        return plain(message, context)

    made = counted()
    made.client_app = ClientApp()
    made.client_app.train()(interrupts)
    setting = {"stop.rounds": 80, "record": {"every": 10}}
    with pytest.raises(KeyboardInterrupt):
        fedgenie.run(SCENARIO, task=made, set=setting, out=tmp_path / "out", progress=None)
    resumed = fedgenie.run(SCENARIO, task=made, set=setting, out=tmp_path / "out", resume=True, progress=None)
    whole = fedgenie.run(SCENARIO, task=counted(), set=setting, progress=None)
    assert resumed.digest == whole.digest


WRONG: dict[str, tuple[Any, str]] = {
    "raises": (lambda m: 1 / 0, "division by zero"),
    "shape": (
        lambda m: _reply(m, {"w": np.zeros(4, np.float32), "b": np.zeros(())}),
        r"client 2, round 2: array 'w': found the shape \[4\]; the shape \[3\] was sent",
    ),
    "missing": (lambda m: _reply(m, {"w": np.zeros(3, np.float32)}), "array 'b': found none"),
    "more": (
        lambda m: _reply(m, {"w": np.zeros(3, np.float32), "b": np.zeros(()), "c": np.zeros(1)}),
        r"array 'c': found the shape \[1\]; none was sent",
    ),
    "nan": (lambda m: _reply(m, {"w": np.full(3, np.nan, np.float32), "b": np.zeros(())}), "not finite"),
    "nothing": (lambda m: 17, "client 2, round 2: the ClientApp returned a int"),
    "no arrays": (lambda m: Message(RecordDict(), reply_to=m), "0 ArrayRecords"),
    "no examples": (
        lambda m: _reply(m, {"w": np.zeros(3, np.float32), "b": np.zeros(())}, {"other": 1}),
        "no single number 'num-examples'; found other",
    ),
    "other examples": (
        lambda m: _reply(m, {"w": np.zeros(3, np.float32), "b": np.zeros(())}, {"num-examples": 7}),
        "client 2, round 2: num-examples is 7; clients= says 30",
    ),
    "hangs": (lambda m: time.sleep(1.0), r"client 2, round 2: the ClientApp did not end in 0.2 s"),
}


def _reply(message: Message, arrays: dict[str, Any], numbers: dict[str, Any] | None = None) -> Message:
    content = {
        "arrays": ArrayRecord({name: Array(value) for name, value in arrays.items()}),
        "metrics": MetricRecord(numbers or {"num-examples": 30}),
    }
    return Message(RecordDict(content), reply_to=message)


@pytest.mark.parametrize("name", WRONG)
def test_an_app_that_does_wrong_is_told_by_client_and_round(name: str) -> None:
    does, reason = WRONG[name]
    made = app(does=lambda client, round: does if (client, round) == (2, 2) else None)
    with pytest.raises(fedgenie.TaskError, match=f"(?s)client 2.*{reason}|{reason}") as raised:
        fedgenie.run(SCENARIO, task=task(made, timeout_s=0.2), progress=None, threads=1)
    assert raised.value.round == 2 and "client 2" in str(raised.value)
    if name == "raises":
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
    if name == "hangs":
        with pytest.raises(RuntimeError, match="client 2, round 2: the ClientApp still goes on in this process"):
            _called.call(lambda: 1, 0, "another", bool, 0.05)
        # Without a limit the one before is waited for.
        fedgenie.run(SCENARIO, task=task(app()), progress=None, set={"stop.rounds": 1})


def test_examples_that_are_not_given_are_asked_for() -> None:
    given = task(app(), clients=4)
    with pytest.warns(fedgenie.FedGenieWarning) as told:
        asked = fedgenie.run(SCENARIO, task=given, progress=None)
    warned = [str(one.message) for one in told if one.category is fedgenie.FedGenieWarning]
    assert "each of 4 clients trains once" in warned[0]
    assert warned[1:] == ["found clients=[20, 40, 30, 10]"]
    assert asked.digest == fedgenie.run(SCENARIO, task=task(app()), progress=None).digest


def test_arguments_are_checked() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"client_app": print}, "expected a flwr.clientapp.ClientApp"),
        ({"clients": 0}, "found clients=0"),
        ({"clients": [3, -1]}, r"found clients=\[3, -1\]"),
        ({"arrays": 3}, "found arrays of the type int"),
        ({"arrays": {"n": np.arange(3)}}, "no array of floating numbers"),
        ({"evaluate": lambda arrays: 3}, "evaluate returned a int"),
        ({"evaluate": lambda arrays: {}}, "no metric"),
        ({"evaluate": lambda arrays: {"f1": 0.5}}, "whether more of test_f1 is better"),
        ({"metrics": {"rmse": "min"}}, "'test_rmse' is not in the result of evaluate; found test_loss"),
        ({"timeout_s": 0}, "found timeout_s=0"),
    ]
    for given, reason in refused:
        arguments = {"client_app": app(), "clients": SIZES, "arrays": START, "evaluate": measure, **given}
        with pytest.raises((TypeError, ValueError), match=reason):
            flower.Task(**arguments)
    with pytest.raises(fedgenie.TaskError, match="found 4 clients of the ClientApp; the scenario has 5"):
        fedgenie.run(SCENARIO.replace("clients = 4", "clients = 5"), task=task(app()))
