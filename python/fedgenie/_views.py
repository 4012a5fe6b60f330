"""Small values that policies meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Bounds", "Probe", "Probed", "Segment"]


class Probed(NamedTuple):
    """Losses of the clients that a probe asked."""

    client: NDArray[np.uint32]
    """Ids, in the order in which they were asked."""
    loss: NDArray[np.float64]
    """The loss of the current model on the data of each."""


class Bounds(NamedTuple):
    """Decisions open to a policy, and the values that hold where it decides nothing. Durations are in seconds."""

    cohort: int
    """The usual size of a selection."""
    most: int
    """The largest size."""
    deadline: float | None
    """The longest wait of a round; None without a deadline or timeout."""
    deadline_least: float | None
    """The shortest deadline that may be chosen; None if deadlines are fixed."""
    epochs: int | None
    """Epochs of a job; None if `[training]` counts steps."""
    most_epochs: int | None
    """Most epochs of a job; None if work is fixed."""


class Segment(NamedTuple):
    """A named part of a model."""

    name: str
    len: int
    """Number of parameters."""
    table: tuple[int, int] | None
    """Rows and numbers of a row; None for a dense segment."""
    trained: bool
    """Whether gradient descent changes it."""


class Probe(NamedTuple):
    """Information that a policy needs before it selects, made by one of six methods. Its time and traffic count."""

    form: Literal["none", "context", "losses", "qualities", "answers", "training"]
    clients: Any = ()
    value: Any = None

    @classmethod
    def none(cls) -> Probe:
        """Nothing."""
        return cls("none")

    @classmethod
    def context(cls, seconds: float) -> Probe:
        """Each available client answers a request of negligible size; all answers take this long."""
        return cls("context", (), float(seconds))

    @classmethod
    def losses(cls, clients: Iterable[int]) -> Probe:
        """Each of these clients downloads the model and evaluates it on its data: `ask.probed`."""
        return cls("losses", clients)

    @classmethod
    def qualities(cls, clients: Iterable[int]) -> Probe:
        """Each of these clients downloads the model and measures it on its data: `ask.probed`, larger is better."""
        return cls("qualities", clients)

    @classmethod
    def answers(cls, clients: Iterable[int], kind: str) -> Probe:
        """Each of these clients answers one of the task's questions, of `context.probes`: `ask.answers`."""
        return cls("answers", clients, kind)

    @classmethod
    def training(cls, clients: Iterable[int], answers: Literal["loss", "update"] = "loss") -> Probe:
        """Each of these clients does a whole job, whose result is discarded: `ask.trained`."""
        return cls("training", clients, answers)
