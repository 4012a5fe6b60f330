"""Processes that train the jobs of a round: the same task is made in each of them."""

from __future__ import annotations

import concurrent.futures
import concurrent.futures.process
import multiprocessing
import pickle
import signal
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fedgenie._fedgenie import Update

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["JobLike", "Pool"]

LOOK_S = 0.05
"""How often a round that is waited for looks whether it was cancelled."""


class JobLike(Protocol):
    """A job, or its copy in another process."""

    @property
    def client(self) -> int: ...
    @property
    def round(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def weights(self) -> Mapping[str, NDArray[np.float32]]: ...
    @property
    def correction(self) -> Mapping[str, NDArray[np.float32]] | None: ...
    @property
    def proximal(self) -> float: ...
    @property
    def epochs(self) -> int | None: ...
    @property
    def work(self) -> int | None: ...
    @property
    def batch(self) -> int: ...
    @property
    def lr(self) -> float: ...
    @property
    def is_cancelled(self) -> bool: ...


class SentJob(NamedTuple):
    """A copy of a job for another process."""

    client: int
    round: int
    seed: int
    weights: dict[str, NDArray[np.float32]]
    correction: dict[str, NDArray[np.float32]] | None
    proximal: float
    epochs: int | None
    work: int | None
    batch: int
    lr: float
    is_cancelled: bool = False

    @classmethod
    def of(cls, job: JobLike) -> SentJob:
        """A copy."""
        correction = None if job.correction is None else dict(job.correction)
        return cls(
            job.client,
            job.round,
            job.seed,
            dict(job.weights),
            correction,
            job.proximal,
            job.epochs,
            job.work,
            job.batch,
            job.lr,
        )


class _Here:
    """What a process keeps: the task, and what it made for each seed."""

    task: Any = None
    seeded: dict[tuple[int, int], Any]


def _begin(pickled: bytes) -> None:
    # The process that waits is interrupted, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Here.task = pickle.loads(pickled)
    _Here.seeded = {}


def _train(seed: int, clients: int, job: SentJob) -> tuple[dict[str, Any], float | None, int]:
    made = _Here.seeded.get((seed, clients))
    if made is None:
        made = _Here.seeded[seed, clients] = _Here.task.alone(seed, clients)
    update: Update = made.train(job)
    return dict(update.weights), update.loss, update.steps


def _ready() -> None:
    return None


class Pool:
    """Processes of a task, for one of its seeds. They end when the last seed of the task does."""

    _shared: weakref.WeakKeyDictionary[Any, weakref.ref[_Processes]] = weakref.WeakKeyDictionary()
    _lock = threading.Lock()

    def __init__(self, processes: _Processes, seed: int, clients: int) -> None:
        self._processes = processes
        self._of = seed, clients

    @classmethod
    def of(cls, task: Any, processes: int, seed: int, clients: int) -> Pool:
        """The processes of a task, which is sent to them once."""
        with cls._lock:
            known = cls._shared.get(task)
            shared = None if known is None else known()
            if shared is None:
                shared = _Processes(task, processes)
                cls._shared[task] = weakref.ref(shared)
        return cls(shared, seed, clients)

    def train(self, jobs: Sequence[JobLike]) -> list[Update]:
        """The updates of some jobs."""
        pool = self._processes.pool
        futures = [pool.submit(_train, *self._of, SentJob.of(job)) for job in jobs]
        try:
            while concurrent.futures.wait(futures, timeout=LOOK_S).not_done:
                if jobs[0].is_cancelled:
                    # These updates are not used.
                    return [Update(job.weights) for job in jobs]
            found = [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
        return [Update(weights, loss, steps=steps) for weights, loss, steps in found]


class _Processes:
    """The processes themselves."""

    def __init__(self, task: Any, count: int) -> None:
        try:
            pickled = pickle.dumps(task)
        except Exception as error:
            message = (
                f"processes={count}: the task cannot be sent to other processes ({error}); give functions of a module "
                "that can be imported, no lambda and nothing of a notebook"
            )
            raise TypeError(message) from error
        self.pool = concurrent.futures.ProcessPoolExecutor(
            count, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(pickled,)
        )
        weakref.finalize(self, self.pool.shutdown, wait=False, cancel_futures=True)
        # A process that cannot begin is said before the first round.
        try:
            self.pool.submit(_ready).result()
        except concurrent.futures.process.BrokenProcessPool as error:
            message = (
                f"processes={count}: a process could not begin: give functions of a module that can be imported, and "
                'in a script call fedgenie under `if __name__ == "__main__":`'
            )
            raise RuntimeError(message) from error
