"""A run that is played round by round."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedgenie import _fedgenie, _scenario

if TYPE_CHECKING:
    from fedgenie._kinds import KindClass
    from fedgenie._scenario import Scenario
    from fedgenie._views import Bounds

__all__ = ["Question", "RoundView", "Simulation", "SimulationRng"]


class SimulationRng:
    """The random numbers of a question: the stream that a policy would draw from."""

    def __init__(self, playing: _fedgenie.Playing, question: Question) -> None:
        self._playing = playing
        self._question = question

    def _open(self) -> _fedgenie.Playing:
        if self._question._is_answered:
            message = "this question has been answered; its random numbers are over"
            raise RuntimeError(message)
        return self._playing

    def random(self, size: int | None = None) -> Any:
        """A number between 0 and 1, or an array of them."""
        drawn = self._open().uniform(1 if size is None else size)
        return float(drawn[0]) if size is None else drawn

    def integers(self, n: int, size: int | None = None) -> Any:
        """A whole number from 0 to n − 1, or an array of them."""
        drawn = self._open().below(n, 1 if size is None else size)
        return int(drawn[0]) if size is None else drawn

    def sample(self, ids: Iterable[int] | NDArray[Any], m: int) -> NDArray[np.uint32]:
        """Up to m different ones of some clients, every set equally likely, as `random` draws them."""
        return self._open().sample(ids, m)

    def shuffled(self, ids: Iterable[int] | NDArray[Any]) -> NDArray[np.uint32]:
        """The clients in a random order."""
        return self._open().shuffled(ids)

    def numpy(self) -> np.random.Generator:
        """A generator of NumPy, seeded by the next four numbers of the stream."""
        return np.random.Generator(np.random.PCG64([int(bits) for bits in self._open().bits(4)]))


class Question:
    """A selection request with the knowledge of the server, under the names of `fedgenie.Ask`."""

    def __init__(self, playing: _fedgenie.Playing, known: Mapping[str, Any]) -> None:
        self.turn: int = known["turn"]
        """Number of this selection, from 1."""
        self.round: int = known["round"]
        """The round under way."""
        self.now_s: float = known["now_s"]
        """The virtual time in seconds."""
        self.cohort: int = known["cohort"]
        """The usual size of a selection."""
        self.most: int = known["most"]
        """At most this many clients may be chosen."""
        self.take: int = known["take"]
        """The round closes when this many updates have arrived."""
        self.available: NDArray[np.uint32] = known["available"]
        """The clients that can be chosen, ascending."""
        self.counts: NDArray[np.uint32] = known["counts"]
        """Times each client was selected before."""
        self.data_sizes: NDArray[np.uint32] = known["data_sizes"]
        """Examples per client."""
        self.shares: NDArray[np.float64] = known["shares"]
        """Share of each client in all data."""
        self.gains: NDArray[np.float64] | None = known["gains"]
        """What each available client adds to the reward for balance; None without `[regret]`."""
        self.bounds: Bounds = known["bounds"]
        """The bounds of decisions."""
        self.deadline: float | None = self.bounds.deadline
        """The longest wait of the round in seconds; may be set within `bounds`."""
        self.rng = SimulationRng(playing, self)
        """The random numbers of this decision."""
        self._is_answered = False

    def __repr__(self) -> str:
        return f"<fedgenie.Question turn={self.turn} round={self.round} now_s={self.now_s:.3f}>"


class RoundView(NamedTuple):
    """A round that was played."""

    round: int
    """Its number, from 1."""
    now_s: float
    """The virtual time of its closing, in seconds."""
    counts: NDArray[np.uint32]
    """Times each client was selected so far."""
    metrics: dict[str, float]
    """Metrics measured after it; empty if it was not evaluated."""
    regret: dict[str, float]
    """Cumulative regret by meter."""
    down_bytes: int
    """Bytes sent to clients so far."""
    up_bytes: int
    """Bytes sent by clients so far."""


class Simulation:
    """A run that is played round by round: by its policy, or by you.

    With a policy, it is an iterator over rounds. Without one, `ask` returns the next question, and `tell` plays the
    round with your answer. Ends are those of `[stop]` that need no measurement: rounds, virtual time and traffic.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        policy: str | None = None,
        seed: int = 1,
        point: int = 0,
        set: Mapping[str, Any] | None = None,
        policies: Mapping[str, KindClass] | None = None,
        task: KindClass | None = None,
        algorithm: KindClass | None = None,
        data: str | os.PathLike[str] | None = None,
        allow_paths: bool = False,
    ) -> None:
        setup = _scenario.described(
            scenario,
            set=set,
            seeds=None,
            reference=None,
            data=data,
            allow_paths=allow_paths,
            policies=policies,
            task=task,
            algorithm=algorithm,
        )
        self._playing = _fedgenie.play(setup, {"policy": policy, "seed": seed, "point": point})
        self._question: Question | None = None

    def __iter__(self) -> Iterator[RoundView]:
        if self._playing.is_asked:
            message = "this simulation has no policy: play it by ask() and tell(ids), or give policy="
            raise TypeError(message)
        while self._playing.step():
            yield self.view

    def ask(self) -> Question | None:
        """The question of the next round; None at the end. Until it is answered, it stays the same."""
        if not self._playing.is_asked:
            message = "this simulation has a policy: iterate over it, or leave policy out"
            raise TypeError(message)
        if self._question is None:
            known = self._playing.ask()
            self._question = None if known is None else Question(self._playing, known)
        return self._question

    def tell(self, ids: Any) -> _fedgenie.Feedback:
        """Plays the round with these clients, and returns the feedback on it."""
        asked = self.ask()
        if asked is None:
            message = "the simulation is over: nothing is asked any more"
            raise RuntimeError(message)
        deadline = None if asked.deadline == asked.bounds.deadline else asked.deadline
        feedback = self._playing.tell(ids, deadline)
        asked._is_answered = True
        self._question = None
        return feedback

    @property
    def view(self) -> RoundView:
        """The round that was played last."""
        playing = self._playing
        down, up = playing.traffic
        return RoundView(playing.round, playing.now_s, playing.counts, playing.metrics, playing.regret, down, up)

    @property
    def round(self) -> int:
        """The round that was played last; 0 before the first."""
        return self._playing.round

    @property
    def now_s(self) -> float:
        """The virtual time in seconds."""
        return self._playing.now_s

    @property
    def digest(self) -> str:
        """The timeline digest so far: that of the same run by `fedgenie.run`."""
        return self._playing.digest

    def __repr__(self) -> str:
        return f"<fedgenie.Simulation after round {self.round}, {self.now_s:.3f} s>"
