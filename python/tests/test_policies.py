"""Policies in Python count like those in Rust."""

from __future__ import annotations

from typing import Any

import fedgenie
import numpy as np
import pytest
from conftest import AWAY, LEARNS, SMALL, First, Random


def digests(result: fedgenie.Result, policy: str) -> list[str]:
    return [run["digest"]["timeline"] for run in result.summary["runs"] if run["arm"] == policy]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("scenario", [SMALL, LEARNS, AWAY], ids=["small", "learns", "away"])
def test_a_port_of_random_has_the_digests_of_random(scenario: str, threads: int) -> None:
    result = fedgenie.run(scenario, policies={"ported": Random}, threads=threads)
    assert digests(result, "ported") == digests(result, "random")
    assert len(set(digests(result, "random"))) == result.summary["runs"][-1]["seed"]


def test_the_question_has_the_knowledge_of_a_server() -> None:
    seen: list[dict[str, Any]] = []

    class Looks:
        def __init__(self, context: fedgenie.Context) -> None:
            assert (context.clients, context.among, context.cohort, context.take) == (20, 20, 4, 4)
            assert context.in_rounds and not context.trains and context.budget is None and context.least == 1
            assert context.data_sizes.dtype == np.uint32

        def select(self, ask: fedgenie.Ask) -> Any:
            seen.append({name: getattr(ask, name) for name in ("turn", "round", "now_s", "cohort", "most", "take")})
            seen[-1].update(available=ask.available, counts=ask.counts, shares=ask.shares, sizes=ask.data_sizes)
            assert ask.counts is ask.counts
            return ask.available[:4]

    fedgenie.run(SMALL, policies={"looks": Looks}, set={"stop.rounds": 3}, seeds=1, threads=1)
    assert [at["turn"] for at in seen] == [1, 2, 3]
    assert [at["round"] for at in seen] == [1, 2, 3]
    assert seen[0]["now_s"] == 0.0 < seen[1]["now_s"] < seen[2]["now_s"]
    assert all((at["cohort"], at["most"], at["take"]) == (4, 4, 4) for at in seen)
    for turn, at in enumerate(seen):
        assert np.array_equal(at["counts"], [turn] * 4 + [0] * 16), "kept arrays never change"
        assert np.array_equal(at["available"], np.arange(20))
        assert np.isclose(at["shares"].sum(), 1.0)
        for name in ("available", "counts", "shares", "sizes"):
            with pytest.raises(ValueError, match="read-only"):
                at[name][0] = 7
    assert seen[0]["shares"] is seen[1]["shares"], "constant arrays are made once"
    assert seen[0]["available"] is seen[2]["available"]
    assert seen[0]["counts"] is not seen[1]["counts"]


def test_a_question_is_over_when_it_is_answered() -> None:
    kept: list[Any] = []

    class Keeps(First):
        def select(self, ask: Any) -> Any:
            kept.append((ask, ask.rng))
            return super().select(ask)

    fedgenie.run(SMALL, policies={"keeps": Keeps}, set={"stop.rounds": 2}, seeds=1, threads=1)
    ask, rng = kept[0]
    assert ask.turn == 1 and np.array_equal(ask.available, np.arange(20)), "what was read stays"
    for read in (lambda: ask.counts, rng.random, lambda: ask.forecast(0, 0.0, 1.0)):
        with pytest.raises(RuntimeError, match="has been answered"):
            read()


def test_feedback_comes_at_each_close_in_one_call() -> None:
    told: list[Any] = []

    class Learns(First):
        def observe(self, feedback: Any) -> None:
            told.append(feedback)

    fedgenie.run(LEARNS, policies={"learns": Learns}, threads=1)
    assert len(told) == 6
    for number, feedback in enumerate(told, start=1):
        jobs, trained, (closed,) = feedback.jobs, feedback.trained, feedback.rounds
        assert sorted(jobs.client) == [0, 1, 2] and list(trained.client) == [0, 1, 2]
        assert np.array_equal(jobs.round, [number] * 3) and np.array_equal(jobs.turn, [number] * 3)
        assert list(jobs.outcome) == ["arrived"] * 3 and not jobs.censored.any() and not jobs.called_off.any()
        assert jobs.phases.shape == (3, 3)
        assert np.allclose(jobs.phases.sum(axis=1), jobs.waited_s)
        assert np.all(np.diff(jobs.waited_s) >= 0), "in the order of arrival"
        assert np.isclose(closed.duration_s, jobs.waited_s.max())
        assert closed.round == number and list(closed.selected) == [0, 1, 2]
        assert trained.loss.dtype == np.float64 and trained.quality is None and trained.update is None
        assert trained.examples.sum() > 0
        assert closed.down_bytes == closed.up_bytes > 0
    assert "test_loss" in told[-1].rounds[0].metrics


def test_what_is_wanted_is_told() -> None:
    told: list[Any] = []

    class Wants(First):
        wants = {"loss_rms": True, "deviation": "aggregated", "change": True, "quality": False}

        def observe(self, feedback: Any) -> None:
            told.append(feedback.trained)

    fedgenie.run(LEARNS, policies={"wants": Wants}, set={"stop.rounds": 1}, threads=1)
    (trained,) = told
    assert trained.quality is None
    assert np.all(trained.loss_rms >= trained.loss * 0) and len(trained.loss_rms) == 3
    assert np.all(trained.deviation > 0)
    assert [change.dtype for change in trained.change] == [np.float32] * 3


def test_parameters_reach_the_class() -> None:
    class Takes(First):
        def __init__(self, context: Any, c: float, d: int = 3) -> None:
            assert (c, d) == (2.5, 3)

    fedgenie.run(SMALL, policies={"takes": (Takes, {"c": 2.5})}, seeds=1)


def test_draws_are_those_of_the_stream() -> None:
    drawn: list[Any] = []

    class Draws(First):
        def select(self, ask: Any) -> Any:
            one = ask.rng.random()
            drawn.append(
                (one, ask.rng.integers(10), ask.rng.random(3), ask.rng.integers(5, 4), ask.rng.numpy().random())
            )
            return ask.rng.sample([3, 5, 7, 11, 13], 4)

    for _ in range(2):
        fedgenie.run(SMALL, policies={"draws": Draws}, set={"stop.rounds": 2}, seeds=1, threads=1)
    first, second, again, _ = drawn
    assert first[0] == again[0] != second[0]
    assert 0 < first[0] < 1 and 0 <= first[1] < 10
    assert first[2].shape == (3,) and set(first[3]) <= set(range(5))
    assert first[4] == again[4] != second[4]


SELECTIONS = {
    "floats": (lambda ask: np.array([1.0, 2.0]), "floats"),
    "a float": (lambda ask: [1.5], "whole numbers"),
    "a mask": (lambda ask: ask.counts == 0, "mask"),
    "a list of truth values": (lambda ask: [True, False], "mask"),
    "repeats": (lambda ask: [1, 2, 1], "selected client 1 twice"),
    "a stranger": (lambda ask: [20], "selected client 20, which is not available"),
    "a negative id": (lambda ask: [-1], "found the client -1"),
    "a negative id in an array": (lambda ask: np.array([-1]), "found the client -1"),
    "none": (lambda ask: None, "found None"),
    "two dimensions": (lambda ask: np.zeros((2, 2), dtype=int), "2 dimensions"),
    "a set": (lambda ask: {1, 2}, "no order"),
    "a number": (lambda ask: 3, r"return \[3\]"),
    "a text": (lambda ask: "1", "found a str"),
    "too many": (lambda ask: ask.available[:5], "selected 5 clients"),
    "nobody": (lambda ask: [], "selected 0 clients"),
    "objects": (lambda ask: [object()], "of type object"),
    "mixed": (lambda ask: [1, fedgenie.Choice(2)], "one kind"),
    "some weights": (lambda ask: [fedgenie.Choice(1, weight=0.5), fedgenie.Choice(2)], "weight"),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_unusable_selections_are_refused_plainly(name: str) -> None:
    answer, expected = SELECTIONS[name]

    class Wrong(First):
        def select(self, ask: Any) -> Any:
            return answer(ask)

    with pytest.raises(fedgenie.PolicyError, match=expected) as caught:
        fedgenie.run(SMALL, policies={"wrong": Wrong}, seeds=1)
    assert caught.value.run == "wrong-s1" and caught.value.round == 1
    assert caught.value.result is not None
    assert digests(caught.value.result, "random"), "other runs went on"


USABLE = {
    "a list": lambda ask: [3, 1, 2],
    "a tuple": lambda ask: (3, 1, 2),
    "NumPy's numbers": lambda ask: [np.int64(3), np.uint8(1), np.int32(2)],
    "signed": lambda ask: np.array([3, 1, 2]),
    "short": lambda ask: np.array([3, 1, 2], dtype=np.int16),
    "unsigned": lambda ask: np.array([3, 1, 2], dtype=np.uint32),
    "wide": lambda ask: np.array([3, 1, 2], dtype=np.uint64),
    "strided": lambda ask: np.array([3, 0, 1, 0, 2, 0], dtype=np.uint32)[::2],
    "objects": lambda ask: np.array([3, 1, 2], dtype=object),
    "a generator": lambda ask: (client for client in (3, 1, 2)),
    "choices": lambda ask: [fedgenie.Choice(3), fedgenie.Choice(1), fedgenie.Choice(np.int64(2))],
}


@pytest.mark.parametrize("name", USABLE)
def test_ids_of_any_form_are_taken(name: str) -> None:
    class Same(First):
        def select(self, ask: Any) -> Any:
            return USABLE[name](ask)

    class Listed(First):
        def select(self, ask: Any) -> Any:
            return [3, 1, 2]

    result = fedgenie.run(SMALL, policies={"same": Same, "listed": Listed}, seeds=1)
    assert digests(result, "same") == digests(result, "listed")


def test_exceptions_are_causes_and_other_runs_go_on() -> None:
    class Fails(First):
        def select(self, ask: Any) -> Any:
            if ask.turn == 3:
                raise KeyError("lost")
            return super().select(ask)

    with pytest.raises(fedgenie.PolicyError, match="KeyError") as caught:
        fedgenie.run(SMALL, policies={"fails": Fails})
    assert caught.value.round == 3 and isinstance(caught.value.__cause__, KeyError)
    kept = fedgenie.run(SMALL, policies={"fails": Fails}, on_failure="keep")
    assert [error.run for error in kept.failures] == ["fails-s1", "fails-s2"]
    assert all(isinstance(error.__cause__, KeyError) for error in kept.failures)
    assert len(digests(kept, "random")) == 2


def test_a_bound_is_compared_after_every_round() -> None:
    seen: list[Any] = []

    class Bounded(First):
        bound_name = "the largest gap"

        def bound(self, round: int, world: fedgenie.BoundWorld) -> float:
            seen.append((round, world))
            return round * float(world.means.max() - world.means.min() + 2 * world.alpha)

    class Wrong(First):
        bound_meter = "mean"

        def bound(self, round: int, world: fedgenie.BoundWorld) -> float | None:
            return None if round < 5 else 0.25

    result = fedgenie.run(SMALL, policies={"bounded": Bounded, "wrong": Wrong})
    regret: dict[tuple[str, int], list[float]] = {}
    rounds = result.rounds
    for policy, seed, mean in zip(rounds["policy"], rounds["seed"], rounds["regret_mean"], strict=True):
        regret.setdefault((policy, int(seed)), []).append(float(mean))
    for run in result.summary["runs"]:
        found, course = run.get("bound"), regret[run["arm"], run["seed"]]
        if run["arm"] == "bounded":
            world = seen[0][1]
            gap = world.means.max() - world.means.min() + 2 * world.alpha
            assert world.clients == 20 and world.cohort == world.take == 4 and world.quantum is None
            assert world.waits_for_all and world.is_always_available and world.tau_min_s == 0.05
            assert found["name"] == "the largest gap" and found["exceeded"] is None
            if run["seed"] == 1:
                assert found["ratio"] == pytest.approx(max(r / (n * gap) for n, r in enumerate(course, 1)))
        elif run["arm"] == "wrong":
            assert found["name"] == "Wrong" and found["exceeded"] == 5
            assert found["ratio"] == pytest.approx(max(course[4:]) / 0.25)
            assert any("exceeds the bound of Wrong" in warning for warning in run["warnings"])
        else:
            assert found is None
    assert [round for round, _ in seen] == [*range(1, 31), *range(1, 31)]


@pytest.mark.parametrize(
    ("bound", "message"),
    [(lambda: float("nan"), "found NaN"), (lambda: "x", "str"), (lambda: 1 // 0, "ZeroDivisionError")],
)
def test_a_bound_that_is_no_number_ends_its_run(bound: Any, message: str) -> None:
    class Wrong(First):
        def bound(self, round: int, world: fedgenie.BoundWorld) -> Any:
            return bound()

    with pytest.raises(fedgenie.PolicyError, match=message):
        fedgenie.run(SMALL, policies={"wrong": Wrong}, seeds=1)

    class Unknown(First):
        bound_meter = "median"

        def bound(self, round: int, world: fedgenie.BoundWorld) -> Any:
            return 1.0

    with pytest.raises(fedgenie.PolicyError, match="expected one of mean, realised"):
        fedgenie.run(SMALL, policies={"unknown": Unknown}, seeds=1)


def test_a_class_that_cannot_be_made_is_refused_before_the_first_run() -> None:
    class Broken:
        def __init__(self, context: Any) -> None:
            raise ZeroDivisionError("broken")

        def select(self, ask: Any) -> Any:
            return []

    with pytest.raises(fedgenie.PolicyError, match="broken") as caught:
        fedgenie.run(SMALL, policies={"broken": Broken})
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(TypeError, match="no method select"):
        fedgenie.run(SMALL, policies={"empty": object})
    with pytest.raises(fedgenie.UsageError, match="already"):
        fedgenie.run(SMALL, policies={"random": Random})
    with pytest.raises(fedgenie.UsageError, match="lower-case"):
        fedgenie.run(SMALL, policies={"No Folder": Random})


def test_a_bound_that_is_compared_with_nothing_is_warned_of() -> None:
    class Bounded(First):
        def bound(self, round: int, world: fedgenie.BoundWorld) -> float:
            return float(round)

    told = "its bound was compared with nothing"
    plain = SMALL.split("[regret]", maxsplit=1)[0]
    for scenario in (plain, SMALL + 'meters = ["realised"]\n'):
        result = fedgenie.run(scenario, policies={"bounded": Bounded}, seeds=1)
        assert any("bounded" in warning and told in warning for warning in result.warnings)
    result = fedgenie.run(SMALL, policies={"bounded": Bounded}, seeds=1)
    assert not any(told in warning for warning in result.warnings)
