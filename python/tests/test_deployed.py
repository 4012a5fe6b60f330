"""Policies outside a simulation, as a deployment asks and tells them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import fedgenie
import numpy as np
import pytest
from conftest import AWAY, LEARNS
from fedgenie._deployed import Described


def described(policy: Any, clients: int, cohort: int, **given: Any) -> Described:
    known = {"parameters": {}, "seed": 1, "data_sizes": None, "declared": None, "metrics": {}, "regret": None, **given}
    return Described(policy=policy, clients=clients, cohort=cohort, **known)


def news(feedback: fedgenie.Feedback) -> dict[str, Any]:
    jobs, trained, (closed,) = feedback.jobs, feedback.trained, feedback.rounds
    return {
        "jobs": [
            {
                "client": int(jobs.client[i]),
                "outcome": str(jobs.outcome[i]),
                "waited_s": float(jobs.waited_s[i]),
                "is_called_off": bool(jobs.called_off[i]),
                "phases_s": jobs.phases[i].tolist(),
            }
            for i in range(len(jobs))
        ],
        "trained": [
            {
                "client": int(trained.client[i]),
                "latency_s": float(trained.latency_s[i]),
                "examples": int(trained.examples[i]),
                "loss": float(trained.loss[i]),
                "loss_rms": None,
                "model": None,
            }
            for i in range(len(trained))
        ],
        "duration_s": closed.duration_s,
        "down_bytes": closed.down_bytes,
        "up_bytes": closed.up_bytes,
        "sent": None,
        "made": None,
    }


class Scores:
    """Waits, losses, counts, and a random number."""

    def __init__(self, context: fedgenie.Context, weight: float = 1.0) -> None:
        self.scores = np.full(context.clients, 1e9)
        self.weight = weight

    def select(self, ask: fedgenie.Ask) -> Any:
        scores = self.scores - 0.1 * ask.counts + 0.01 * ask.rng.random(len(self.scores))
        return ask.available[np.argsort(-scores[ask.available], kind="stable")][: ask.cohort]

    def observe(self, feedback: fedgenie.Feedback) -> None:
        self.scores[feedback.jobs.client] = -self.weight * feedback.jobs.waited_s
        self.scores[feedback.trained.client] += feedback.trained.loss


POLICIES = {
    "random": ("random", {}),
    "by size": ("random", {"weights": "data-size"}),
    "round-robin": ("round-robin", {}),
    "bsfl": ("bsfl", {"alpha": 3.0, "beta": 1.2, "tau_min": "50 ms"}),
    "annealed": ("bsfl", {"alpha": 3.0, "beta": 1.2, "tau_min": "50 ms", "solver": {"sa": {}}}),
    "cs-ucb": ("cs-ucb", {"tau_max": "3 s"}),
    "rbcs-f": ("rbcs-f", {"context_time": "0 s"}),
    "power-of-choice": ("power-of-choice", {"losses": "last-known", "candidates": 5}),
    "class": (Scores, {"weight": 0.5}),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("world", ["learns", "away"])
def test_a_policy_decides_as_in_a_run_that_tells_it_the_same(name: str, world: str) -> None:

    policy, parameters = POLICIES[name]
    text = LEARNS if world == "learns" else AWAY
    if world == "away" and name in ("class", "power-of-choice"):
        pytest.skip("it compares losses, and this world has none")
    seen: dict[str, Any] = {}

    class Looks:
        def __init__(self, context: fedgenie.Context) -> None:
            seen["declared"] = list(zip(*(part.tolist() for part in context.declared()), strict=True))

        def select(self, ask: fedgenie.Ask) -> Any:
            return ask.available[:1]

    fedgenie.Simulation(text, policies={"looks": Looks}, policy="looks", seed=3, set={"seeds": [3]})
    text = text.replace("[policy.random]", "")
    if isinstance(policy, str):
        lines = "\n".join(f"{key} = {fedgenie._scenario._value(value)}" for key, value in parameters.items())
        run = fedgenie.Simulation(f"{text}\n[policy.{policy}]\n{lines}", policy=policy, seed=3, set={"seeds": [3]})
    else:
        run = fedgenie.Simulation(text, policies={"it": (policy, parameters)}, policy="it", seed=3, set={"seeds": [3]})
    rounds = sum(1 for _ in run)
    assert rounds >= 6
    asked = fedgenie.Simulation(f"{text}\n[policy.random]", seed=3, set={"seeds": [3]})
    question = asked.ask()
    assert question is not None
    given = {"data_sizes": question.data_sizes.tolist(), "declared": seen["declared"], "seed": 3}
    given |= {"parameters": parameters, "metrics": {"loss": "train_loss"} if world == "learns" else {}}
    chooser = described(policy, len(question.counts), question.bounds.cohort, **given).chooser(None)
    while (question := asked.ask()) is not None:
        assert chooser.counts.tolist() == question.counts.tolist()
        chosen = chooser.choose(question.round, question.now_s, question.available)
        chooser.tell(question.round, news(asked.tell(chosen)))
    assert asked.digest == run.digest


REFUSED = {
    "genie": ("genie", {}, "sees the truth"),
    "hindsight": ("hindsight", {}, "sees the truth"),
    "fresh losses": (
        "power-of-choice",
        {"losses": "fresh", "candidates": 5},
        "asks clients for the loss of the current",
    ),
    "thompson": ("thompson", {}, "the quality of models before and after"),
    "oort": ("oort", {}, "asks for what clients declare"),
    "cs-ucb": ("cs-ucb", {}, "a quantile of the latency of the slowest client"),
    "rbcs-f": ("rbcs-f", {}, "give declared ="),
    "fedgst": ("fedgst", {}, "asks clients for"),
    "misspelt": ("bsfk", {}, "bsfl"),
    "key": ("bsfl", {"alhpa": 1}, "alpha"),
    "value": ("bsfl", {"beta": -1}, "beta"),
    "nothing": (None, {}, "found policy=None"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_policy_that_needs_more_than_a_deployment_knows_is_refused(name: str) -> None:
    policy, parameters, reason = REFUSED[name]
    with pytest.raises((fedgenie.FedGenieError, TypeError), match=reason):
        described(policy, 6, 2, parameters=parameters, metrics={"loss": "train_loss"}).chooser(None)


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ({"sees_truth": True}, "sees the truth"),
        ({"capabilities": ("forecast",)}, "forecasts of availability"),
        ({"capabilities": ("subsets",)}, "the quality of subsets"),
        ({"wants": ("loss_rms",)}, "loss_rms"),
        ({"wants": ("quality",)}, "the quality of each update"),
        ({"probe": lambda self, ask: fedgenie.Probe.losses([0])}, "the loss of the current model"),
    ],
)
def test_so_is_a_class_that_declares_it(attribute: dict[str, Any], reason: str) -> None:
    class Needy(Scores):
        pass

    for name, value in attribute.items():
        setattr(Needy, name, value)
    with pytest.raises(fedgenie.UsageError, match=f"policy needy: .*{reason}"):
        described(Needy, 6, 2, metrics={"loss": "train_loss"}).chooser(None)


def test_decisions_that_a_deployment_leaves_open_to_nobody_are_refused() -> None:
    choices: dict[str, Any] = {
        "weights": lambda ask: [fedgenie.Choice(0, weight=1.0)],
        "epochs": lambda ask: [fedgenie.Choice(0, work=2)],
        "selected 4 clients": lambda ask: ask.available[:4],
        "twice": lambda ask: [1, 1],
        "not available": lambda ask: [17],
    }
    for reason, select in choices.items():

        class Decides:
            def __init__(self, context: Any) -> None:
                pass

        Decides.select = lambda self, ask, select=select: select(ask)  # type: ignore[attr-defined]
        with pytest.raises(fedgenie.PolicyError, match=f"round 1: select: .*{reason}") as raised:
            described(Decides, 6, 3).chooser(None).choose(1, 0.0, [0, 1, 2, 3, 4, 5])
        assert raised.value.round == 1


def test_questions_are_checked() -> None:
    chooser = described("random", 6, 3).chooser(None)
    for available, reason in (([], "no client that can be chosen"), ([1, 6], "found the client 6; clients are 0 to 5")):
        with pytest.raises(ValueError, match=reason):
            chooser.choose(1, 0.0, available)
    with pytest.raises(ValueError, match="-1"):
        chooser.choose(1, -1.0, [0])
    assert sorted(chooser.choose(1, 0.0, [5, 2])) == [2, 5], "fewer than the cohort are there"
    with pytest.raises(ValueError, match='found the outcome "lost"'):
        job = {"client": 1, "outcome": "lost", "waited_s": 1.0, "is_called_off": False, "phases_s": [0.0, 1.0, 0.0]}
        chooser.tell(
            1,
            {
                "jobs": [job],
                "trained": [],
                "duration_s": 1.0,
                "down_bytes": 0,
                "up_bytes": 0,
                "sent": None,
                "made": None,
            },
        )


def test_an_exception_of_a_class_is_told_with_its_round() -> None:
    class Breaks(Scores):
        def select(self, ask: fedgenie.Ask) -> Any:
            message = "no idea"
            raise KeyError(message)

    with pytest.raises(fedgenie.PolicyError, match='policy "breaks", round 3: select: .*no idea') as raised:
        described(Breaks, 6, 3).chooser(None).choose(3, 0.0, [0, 1])
    assert isinstance(raised.value.__cause__, KeyError)


WITHOUT = """
import importlib.metadata, sys
found = importlib.metadata.version
def version(name):
    if name == "flwr" and {is_missing}:
        raise importlib.metadata.PackageNotFoundError(name)
    return "0.9" if name == "flwr" else found(name)
importlib.metadata.version = version
sys.modules["flwr.app"] = None
import fedgenie
try:
    import fedgenie.flower
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("is_missing", "told"),
    [
        (True, "flwr is not installed: `pip install 'fedgenie[flower]'` installs it"),
        (False, "flwr 0.9 lacks what fedgenie.flower needs (import of flwr.app halted"),
    ],
)
def test_the_package_works_without_flower(is_missing: bool, told: str) -> None:
    code = WITHOUT.format(is_missing=is_missing)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith(told), ended.stdout
