"""Flower: policies that choose its clients."""

from __future__ import annotations

import logging
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fedgenie
import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: nothing of fedgenie.flower was tested")

import flwr.serverapp.strategy
from federation import SIZES, Clock, Nodes, adds, first, learn, rows, steady
from fedgenie import _flower, _selecting, flower
from flwr.app import ConfigRecord
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg, FedProx


@pytest.fixture(autouse=True)
def identity() -> None:
    """Servers of Flower give a message the numbers of their run, as its engines set them."""
    task_identity = pytest.importorskip("flwr.supercore.task_identity").TaskIdentity
    task_identity.task_id, task_identity.run_id, task_identity.node_id = 1, 1, 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_flower, "time", clock)
    monkeypatch.setattr(_selecting, "time", clock)
    return clock


# Clients chosen in a federation.


def test_weights_are_those_of_the_chosen_clients(clock: Clock, tmp_path: Path) -> None:
    log = tmp_path / "t.csv"
    found, selecting = learn(Nodes(adds(), clock, steady), record=log)
    jobs = rows(log)
    model = np.arange(3, dtype=np.float64)
    for round in range(1, 6):
        chosen = [int(job["client"]) for job in jobs if int(job["round"]) == round]
        assert len(set(chosen)) == 3
        total = sum(SIZES[client] for client in chosen)
        model = model + sum(SIZES[client] / total * (client + 1) * round / 7 for client in chosen)
    assert found.arrays["w"].numpy() == pytest.approx(model, rel=1e-5)
    assert selecting.counts.tolist() == [sum(int(job["client"]) == client for job in jobs) for client in range(6)]


def test_the_same_clients_as_in_a_run_of_fedgenie(clock: Clock, tmp_path: Path) -> None:
    log = tmp_path / "t.csv"
    learn(Nodes(adds(), clock, steady), rounds=8, seed=5, record=log)
    constant = {"constant": "1 s"}
    scenario = {
        "name": "same",
        "stop": {"rounds": 8},
        "protocol": {"synchronous": {"cohort": 3}},
        "population": {"clients": 6, "latency": {"download": constant, "compute": constant, "upload": constant}},
        "seeds": [5],
        "policy": {"random": {}},
    }
    run = fedgenie.Simulation(scenario, policy="random", seed=5)
    before = np.zeros(6, int)
    for view in run:
        chosen = np.flatnonzero(view.counts - before)
        assert chosen.tolist() == sorted(int(job["client"]) for job in rows(log) if int(job["round"]) == view.round)
        before = view.counts.astype(int)


def test_two_runs_end_in_equal_weights(clock: Clock) -> None:
    def ends(seconds: Callable[[int, int], float], strategy: FedAvg) -> tuple[bytes, dict[int, Any]]:
        found, _ = learn(Nodes(adds(), clock, seconds), strategy=strategy)
        return found.arrays["w"].numpy().tobytes(), {k: dict(v) for k, v in found.evaluate_metrics_clientapp.items()}

    source = random.Random(4)
    drawn = [ends(lambda client, round: source.uniform(0.1, 3), FedAvg()) for _ in range(4)]
    assert all(one == drawn[0] for one in drawn)
    proximal = ends(steady, FedProx(proximal_mu=0.1))
    assert proximal[0] == drawn[0][0], "the strategy's own messages are sent"


STRATEGIES: dict[str, dict[str, Any]] = {
    "FedAvgM": {},
    "FedAdam": {},
    "FedAdagrad": {},
    "FedYogi": {},
    "FedMedian": {},
    "FedTrimmedAvg": {},
    "Krum": {},
    "MultiKrum": {"num_nodes_to_select": 2},
    "Bulyan": {},
    "QFedAvg": {"client_learning_rate": 0.1},
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_averaging_strategy_is_wrapped(clock: Clock, name: str) -> None:
    def ends() -> tuple[bytes, Any]:
        strategy = getattr(flwr.serverapp.strategy, name)(**STRATEGIES[name])
        found, selecting = learn(Nodes(adds(), clock, steady), strategy=strategy, rounds=3)
        return found.arrays["w"].numpy().tobytes(), selecting

    one, other = ends(), ends()
    assert one[0] == other[0] != first()["w"].numpy().tobytes()
    assert one[1].counts.sum() == 3 * 3
    untouched = one[1].strategy
    assert (untouched.fraction_train, untouched.min_train_nodes, untouched.min_available_nodes) == (1.0, 2, 2)


@pytest.mark.parametrize("name", ["FedXgbBagging", "FedXgbCyclic", "DifferentialPrivacyServerSideFixedClipping"])
def test_other_strategies_are_refused_by_name(name: str) -> None:
    made = getattr(flwr.serverapp.strategy, name)
    strategy = made(FedAvg(), 0.1, 1.0, 2) if name.startswith("Diff") else made()
    with pytest.raises(TypeError, match=f"found .*{name}"):
        flower.Selecting(strategy, "random", {}, 6, cohort=2)


def test_a_strategy_that_selects_by_itself_is_refused(clock: Clock) -> None:
    class Picks(FedAvg):
        def configure_train(self, *given: Any) -> Any:
            return list(super().configure_train(*given))[:1]

    with pytest.raises(TypeError, match="Picks made 1 messages for 1 of the 3 nodes"):
        learn(Nodes(adds(), clock, steady), strategy=Picks())


def test_clocks_that_are_hours_apart_change_nothing(clock: Clock, tmp_path: Path) -> None:
    logs = []
    for hours in (0.0, 7.5, -7.5):
        nodes, log = Nodes(adds(), clock, steady), tmp_path / f"{hours}.csv"
        nodes.ahead_s = 3600 * hours
        learn(nodes, record=log)
        logs.append([(job["client"], job["round"], round(float(job["total_s"]), 6)) for job in rows(log)])
    assert logs[0] == logs[1] == logs[2]


def test_a_latency_is_known_within_the_pause_between_two_looks(clock: Clock, tmp_path: Path) -> None:
    log = tmp_path / "t.csv"
    learn(Nodes(adds(), clock, steady), record=log, poll_s=0.05)
    for job in rows(log):
        late = float(job["total_s"]) - steady(int(job["client"]), int(job["round"]))
        assert -1e-9 <= late <= 0.05 + 1e-9
        assert job["outcome"] == "arrived" and job["compute_s"] == job["download_s"] == job["upload_s"] == ""


class Told:
    """Keeps what it is told, and chooses the first."""

    def __init__(self, context: fedgenie.Context) -> None:
        pass

    def select(self, ask: fedgenie.Ask) -> Any:
        return ask.available[: ask.cohort]

    told: list[tuple[Any, ...]] = []

    def observe(self, feedback: fedgenie.Feedback) -> None:
        jobs, trained, (closed,) = feedback.jobs, feedback.trained, feedback.rounds
        waits = {int(c): (str(o), float(w)) for c, o, w in zip(jobs.client, jobs.outcome, jobs.waited_s, strict=True)}
        losses = dict(zip(trained.client.tolist(), trained.loss.tolist(), strict=True))
        examples = dict(zip(trained.client.tolist(), trained.examples.tolist(), strict=True))
        self.told.append((closed.round, list(jobs.client), waits, losses, examples, closed.selected.tolist()))


def test_a_policy_hears_latencies_failures_timeouts_and_losses(clock: Clock, tmp_path: Path) -> None:
    class Hears(Told):
        told: list[tuple[Any, ...]] = []

        def select(self, ask: fedgenie.Ask) -> Any:
            return [4, 1, 3, 0]

    log = tmp_path / "t.csv"
    seconds = lambda client, round: {4: 100.0, 1: 0.9, 3: 0.2, 0: 0.5}[client]
    app = adds(raises=lambda client, round: client == 1)
    found, _ = learn(Nodes(app, clock, seconds), rounds=1, timeout=7.0, policy=Hears, cohort=4, record=log)
    ((round, order, waits, losses, examples, selected),) = Hears.told
    assert (round, selected) == (1, [4, 1, 3, 0])
    assert order == [3, 0, 4, 1], "arrivals in their order, then the others as they were selected"
    assert {client: outcome for client, (outcome, _) in waits.items()} == {
        3: "arrived",
        0: "arrived",
        4: "late",
        1: "dropped",
    }
    assert waits[3][1] == pytest.approx(0.2, abs=0.051) and waits[0][1] == pytest.approx(0.5, abs=0.051)
    # A client that fails counts as the timeout, however soon it fails: failing fast is not speed.
    assert waits[1][1] == 7.0 and waits[4][1] == pytest.approx(7.0, abs=0.051)
    assert losses == {3: 1 / 4, 0: 1.0} and examples == {3: 40, 0: 10}
    expected = np.arange(3) + (40 * 4 + 10 * 1) / 50 / 7
    assert found.arrays["w"].numpy() == pytest.approx(expected, rel=1e-6)
    by_client = {int(job["client"]): job for job in rows(log)}
    assert [by_client[client]["outcome"] for client in (4, 1, 3, 0)] == ["late", "dropped", "arrived", "arrived"]
    assert float(by_client[1]["total_s"]) == pytest.approx(0.9, abs=0.051)
    assert [job["client"] for job in rows(log)] == ["3", "0", "1", "4"], "a line as soon as a job is over"


def test_a_client_that_hangs_is_not_chosen_until_it_has_answered(clock: Clock, tmp_path: Path) -> None:
    log = tmp_path / "t.csv"
    seconds = lambda client, round: 12.0 if client == 0 else 0.5
    given = {"policy": "round-robin", "cohort": 6, "record": log}
    learn(Nodes(adds(), clock, seconds), rounds=6, timeout=5.0, **given)
    of_hanging = {int(job["round"]): job["outcome"] for job in rows(log) if job["client"] == "0"}
    assert of_hanging[1] == "late"
    # Rounds without it last half a second: 7 s after the first round's end are over in the rounds that follow.
    assert 2 not in of_hanging and all(outcome == "late" for outcome in of_hanging.values())
    others = [int(job["client"]) for job in rows(log) if job["round"] == "2"]
    assert sorted(others) == [1, 2, 3, 4, 5]


def test_a_node_that_disappears_for_good_is_late_and_then_left_out(clock: Clock, tmp_path: Path) -> None:
    log, nodes = tmp_path / "t.csv", Nodes(adds(), clock, steady)

    def goes(client: int, round: int) -> float:
        if client == 4 and round == 2:
            node = next(node for node in nodes.contexts if nodes.client(node) == 4)
            nodes.gone[node] = nodes.contexts.pop(node)
            return math.inf
        return 0.5

    nodes.seconds = goes
    _, selecting = learn(nodes, policy="round-robin", cohort=6, rounds=5, timeout=3.0, record=log)
    outcomes = [(int(job["round"]), job["outcome"]) for job in rows(log) if job["client"] == "4"]
    assert outcomes == [(1, "arrived"), (2, "late")]
    assert selecting.counts.tolist() == [5, 5, 5, 5, 2, 5]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (
            {"arrays": lambda c, r: np.zeros(4, np.float32) if c == 2 else None},
            r"found the shape \[4\]; the shape \[3\]",
        ),
        ({"arrays": lambda c, r: np.zeros((1,), np.float32) if c == 2 else None}, r"found the shape \[1\]"),
        ({"arrays": lambda c, r: np.full(3, np.nan, np.float32) if c == 2 else None}, "not finite"),
        ({"metrics": lambda c, r: {"num-examples": -1} if c == 2 else {}}, "num-examples is -1"),
        ({"metrics": lambda c, r: {"num-examples": [1, 2]} if c == 2 else {}}, "no single number 'num-examples'"),
        ({"raises": lambda c, r: c == 2}, "the disk is full"),
    ],
)
def test_an_update_that_cannot_be_averaged_is_left_out_and_told(
    clock: Clock, caplog: pytest.LogCaptureFixture, wrong: dict[str, Any], reason: str
) -> None:
    with caplog.at_level(logging.WARNING, "flwr"):
        logging.getLogger("flwr").addHandler(caplog.handler)
        found, _ = learn(Nodes(adds(**wrong), clock, steady), rounds=2, policy="round-robin", cohort=6)
        logging.getLogger("flwr").removeHandler(caplog.handler)
    assert re.search(f"round 1, client 2: its update is not used: .*{reason}", caplog.text)
    model = np.arange(3, dtype=np.float64)
    good = [0, 1, 3, 4, 5]
    for round in (1, 2):
        model = model + sum(SIZES[c] * (c + 1) for c in good) / sum(SIZES[c] for c in good) * round / 7
    assert found.arrays["w"].numpy() == pytest.approx(model, rel=1e-5)


def test_a_metric_that_clients_report_may_be_the_latency(clock: Clock, tmp_path: Path) -> None:
    class Hears(Told):
        told: list[tuple[Any, ...]] = []

    def report(client: int, round: int) -> dict[str, Any]:
        return {"took": 0.125 * (client + 1), "fit": 0.05, "down": 0.03}

    log = tmp_path / "t.csv"
    metrics = {"total_s": "took", "compute_s": "fit", "download_s": "down"}
    given = {"policy": Hears, "metrics": metrics, "record": log, "cohort": 6}
    _, selecting = learn(Nodes(adds(metrics=report), clock, steady), rounds=1, **given)
    assert "'took' that clients report" in selecting.latency_source
    assert {client: wait for client, (_, wait) in Hears.told[0][2].items()} == {c: 0.125 * (c + 1) for c in range(6)}
    for job in rows(log):
        assert float(job["total_s"]) == pytest.approx(steady(int(job["client"]), 1), abs=0.051), "by the server's clock"
        assert (job["download_s"], job["compute_s"], job["upload_s"]) == ("0.030000000", "0.050000000", "")


def test_a_clients_clock_that_cannot_be_is_left_out_of_the_log(clock: Clock, tmp_path: Path) -> None:
    log = tmp_path / "t.csv"
    app = adds(metrics=lambda client, round: {"fit": 7200.0 if client == 1 else 0.01})
    learn(Nodes(app, clock, steady), rounds=1, record=log, metrics={"compute_s": "fit"}, policy="round-robin", cohort=6)
    assert {job["client"]: job["compute_s"] for job in rows(log)}["1"] == ""
    assert [job["compute_s"] for job in rows(log)].count("0.010000000") == 5


def test_a_policy_that_wants_models_gets_them(clock: Clock) -> None:
    class Looks(Told):
        wants = ("update", "change", "deviation")
        seen: list[tuple[Any, ...]] = []

        def observe(self, feedback: fedgenie.Feedback) -> None:
            trained = feedback.trained
            self.seen.append((trained.client.tolist(), trained.update, trained.change, trained.deviation.tolist()))

    learn(Nodes(adds(), clock, steady), rounds=2, policy=Looks, cohort=6)
    clients, update, change, deviation = Looks.seen[0]
    assert clients == list(range(6))
    for client in clients:
        assert update[client] == pytest.approx(np.arange(3) + (client + 1) / 7, rel=1e-6)
        assert change[client] == pytest.approx(np.full(3, (client + 1) / 7), rel=1e-5)
        assert deviation[client] == pytest.approx((client + 1) / 7, rel=1e-5)


# Who is who, and what is refused.


def test_clients_that_cannot_be_told_apart_are_refused(clock: Clock) -> None:
    plain = ClientApp()
    with pytest.raises(ValueError, match=r"no node told which client it is .*No query function.*identify\(app\)"):
        learn(Nodes(plain, clock, steady))
    twins = Nodes(adds(), clock, steady)
    list(twins.contexts.values())[3].node_config["partition-id"] = 1
    with pytest.raises(ValueError, match="are both client 1"):
        learn(twins)
    many = Nodes(adds(), clock, steady)
    with pytest.raises(ValueError, match=r"is client \d; clients=4 has those from 0 to 3"):
        learn(many, clients=4)
    nameless = Nodes(adds(), clock, steady)
    for context in nameless.contexts.values():
        del context.node_config["partition-id"]
    with pytest.raises(ValueError, match="node_config has no partition-id"):
        learn(nameless)
    with pytest.raises(ValueError, match="takes no further function"):
        flower.identify(ClientApp(client_fn=lambda context: None))


def test_a_map_of_nodes_serves_as_well(clock: Clock) -> None:
    nodes = Nodes(adds(), clock, steady)
    by_map = {node: nodes.client(node) for node in nodes.contexts}
    ends = [learn(nodes, partitions=given)[0] for given in (by_map, lambda grid: by_map, None)]
    assert len({found.arrays["w"].numpy().tobytes() for found in ends}) == 1


def test_clients_that_are_not_there_are_waited_for_and_named(clock: Clock) -> None:
    nodes = Nodes(adds(), clock, steady)
    with pytest.raises(
        TimeoutError, match=r"round 1: after 9 s 6 clients can be chosen; expected 8. Not there: \[6, 7\]"
    ):
        learn(nodes, clients=8, connect_s=9.0)
    found, _ = learn(nodes, clients=8, connect_s=9.0, min_available=6)
    assert found.arrays is not None


def test_a_node_that_comes_again_under_another_number_is_the_same_client(clock: Clock) -> None:
    nodes = Nodes(adds(), clock, steady)

    def moves(client: int, round: int) -> float:
        node = next(node for node, context in nodes.contexts.items() if context.node_config["partition-id"] == 2)
        if round == 3:
            nodes.contexts[node + 1] = nodes.contexts.pop(node)
        return 0.1

    nodes.seconds = moves
    _, selecting = learn(nodes, policy="round-robin", cohort=1, rounds=12)
    assert selecting.counts.tolist() == [2] * 6


def test_arguments_are_checked(clock: Clock, tmp_path: Path) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"clients": 0}, "found clients=0"),
        ({"cohort": 7}, "found cohort=7"),
        ({"metrics": {"latency": "x"}}, "metrics: found 'latency'"),
        ({"data_sizes": [1, 2]}, "found data_sizes of 2 clients"),
        ({"declared": [(1.0, math.nan)] * 6}, "found declared of 6"),
        ({"poll_s": 0}, "found poll_s=0"),
        ({"min_available": 9}, "found min_available=9"),
        ({"regret": {"tau_min": "no time"}}, "tau_min"),
    ]
    for given, reason in refused:
        with pytest.raises((ValueError, TypeError), match=reason):
            flower.Selecting(FedAvg(), **{"policy": "bsfl", "clients": 6, "cohort": 2, **given})
    with pytest.raises(TypeError, match="averaging strategies"):
        flower.Selecting("FedAvg", clients=6)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="found timeout=0"):
        learn(Nodes(adds(), clock, steady), timeout=0)
    plain = flower.Selecting(FedAvg(fraction_train=0.5), policy="bsfl", parameters={}, clients=6)
    assert plain.cohort == 3, "as many as the strategy would choose of all"
    taken = tmp_path / "t.csv"
    taken.write_text("mine")
    with pytest.raises(FileExistsError, match="never written over"):
        flower.Selecting(FedAvg(), "random", {}, 6, cohort=2, record=taken)
    log = tmp_path / "once.csv"
    _, once = learn(Nodes(adds(), clock, steady), rounds=1, record=log)
    with pytest.raises(ValueError, match="once.csv has the log of a federation that ended"):
        once.start(grid=Nodes(adds(), clock, steady), initial_arrays=first(), num_rounds=1)
    with pytest.raises(TypeError, match="call start"):
        selecting = flower.Selecting(FedAvg(), "random", {}, 6, cohort=2)
        list(selecting.configure_train(1, first(), ConfigRecord(), Nodes(adds(), clock, steady)))
    app = adds(metrics=lambda client, round: {})
    with pytest.raises(
        ValueError, match=r"round 1, client \d: its metrics have no number 'lost' \(loss\); found num-examples"
    ):
        losses = {"losses": "last-known", "candidates": 4}
        learn(Nodes(app, clock, steady), policy="power-of-choice", parameters=losses, metrics={"loss": "lost"})
