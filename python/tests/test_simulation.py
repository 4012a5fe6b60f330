"""Runs that are played round by round."""

from __future__ import annotations

from typing import Any

import fedgenie
import numpy as np
import pytest
from conftest import AWAY, LEARNS, SMALL, First


@pytest.mark.parametrize("scenario", [SMALL, LEARNS, AWAY], ids=["small", "learns", "away"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_simulation_has_the_digest_of_the_run(scenario: str, seed: int) -> None:
    expected = {
        (run["arm"], run["seed"]): run["digest"]["timeline"]
        for run in fedgenie.run(scenario, seeds=2, policies={"first": First}).summary["runs"]
    }
    for policy in ("random", "first"):
        simulation = fedgenie.Simulation(scenario, policy=policy, seed=seed, policies={"first": First})
        views = list(simulation)
        assert simulation.digest == expected[policy, seed]
        assert [view.round for view in views] == list(range(1, len(views) + 1))
        assert np.all(np.diff([view.now_s for view in views]) > 0)
        assert views[-1].counts.sum() == views[-1].round * (3 if scenario is LEARNS else 4)
    asked = fedgenie.Simulation(scenario, seed=seed)
    rounds = 0
    while (ask := asked.ask()) is not None:
        feedback = asked.tell(ask.rng.sample(ask.available, ask.cohort))
        rounds += 1
        assert feedback.rounds[0].round == rounds and len(feedback.jobs) > 0
    assert asked.digest == expected["random", seed]
    assert asked.ask() is None and rounds == asked.round


def test_a_question_stays_until_it_is_answered() -> None:
    simulation = fedgenie.Simulation(SMALL)
    first = simulation.ask()
    assert first is not None and simulation.ask() is first and first.turn == 1
    drawn = first.rng.random()
    assert drawn != first.rng.random(), "draws go on"
    assert 0 <= first.rng.integers(5) < 5 and first.rng.numpy().random() < 1
    simulation.tell([3, 1, 2, 0])
    with pytest.raises(RuntimeError, match="answered"):
        first.rng.random()
    second = simulation.ask()
    assert second is not None and second.turn == 2 and list(second.counts[:5]) == [1, 1, 1, 1, 0]
    assert fedgenie.Simulation(SMALL).ask().rng.random() == drawn  # type: ignore[union-attr]


def test_a_wrong_answer_can_be_told_again() -> None:
    simulation = fedgenie.Simulation(SMALL)
    for wrong, kind, expected in [
        ([1.5], ValueError, "whole numbers"),
        ([1, 1], fedgenie.PolicyError, "twice"),
        ([99], fedgenie.PolicyError, "not available"),
        (None, ValueError, "found None"),
    ]:
        with pytest.raises(kind, match=expected):
            simulation.tell(wrong)
    simulation.tell([0, 1, 2, 3])
    assert simulation.round == 1


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(fedgenie.UsageError, match="absent"):
        fedgenie.Simulation(SMALL, policy="absent")
    with pytest.raises(fedgenie.UsageError, match="point 3"):
        fedgenie.Simulation(SMALL, point=3)
    buffered = SMALL.replace("synchronous = { cohort = 4 }", "buffered = { concurrency = 4, buffer = 2 }")
    buffered = buffered[: buffered.index("[regret]")]
    with pytest.raises(fedgenie.UsageError, match="rounds"):
        fedgenie.Simulation(buffered)
    assert len(list(fedgenie.Simulation(buffered, policy="random"))) == 30
    with pytest.raises(TypeError, match="ask"):
        iter(fedgenie.Simulation(SMALL)).__next__()
    with pytest.raises(TypeError, match="iterate"):
        fedgenie.Simulation(SMALL, policy="random").ask()


def test_an_exception_ends_a_simulation() -> None:
    class Fails(First):
        def select(self, ask: Any) -> Any:
            if ask.turn == 3:
                raise KeyError("lost")
            return super().select(ask)

    simulation = fedgenie.Simulation(SMALL, policy="fails", policies={"fails": Fails})
    with pytest.raises(fedgenie.PolicyError) as caught:
        list(simulation)
    assert isinstance(caught.value.__cause__, KeyError) and caught.value.round == 3


def test_a_deadline_is_set_within_its_bounds() -> None:
    scenario = SMALL.split("[regret]", maxsplit=1)[0].replace(
        "protocol.synchronous = { cohort = 4 }",
        'protocol.deadline = { cohort = 4, deadline = "1 s", deadline_least = "0.1 s" }',
    )

    class Short(First):
        capabilities = ("bounds",)

        def select(self, ask: Any) -> Any:
            ask.deadline = 0.25
            return super().select(ask)

    simulation = fedgenie.Simulation(scenario)
    while (question := simulation.ask()) is not None:
        assert question.bounds.deadline == 1.0 and question.deadline == 1.0
        assert question.gains is None
        question.deadline = 0.25
        simulation.tell(question.available[: question.cohort])
    played = fedgenie.Simulation(scenario, policies={"short": Short}, policy="short")
    last = [view.round for view in played][-1]
    assert (simulation.round, simulation.digest) == (last, played.digest)
    rewarded = fedgenie.Simulation(SMALL).ask()
    assert rewarded is not None and rewarded.gains is not None and len(rewarded.gains) == len(rewarded.available)
    refused = fedgenie.Simulation(scenario)
    question = refused.ask()
    assert question is not None
    question.deadline = 2.0
    with pytest.raises(fedgenie.RunError, match="deadline"):
        refused.tell(question.available[:4])
