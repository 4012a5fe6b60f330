"""Calls of code that draws from the random numbers of its process, and that may hang."""

from __future__ import annotations

import queue
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import numpy as np

__all__ = ["Hung", "call"]

T = TypeVar("T")

LOOK_S = 0.05
"""How often a call that is waited for looks whether it was cancelled."""


class Hung(RuntimeError):
    """A call did not end in its time."""


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """The random numbers of Python, of NumPy, and of PyTorch where that is loaded, from a seed; then as they were."""
    if "torch" in sys.modules:
        from fedgenie.torch import _alone

        of_torch: Any = _alone(seed)
    else:
        of_torch = nullcontext()
    plain, numpys = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        with of_torch:
            yield
    finally:
        random.setstate(plain)
        np.random.set_state(numpys)


class _Thread:
    """A thread that does one thing after another. It ends with the program, whatever it does."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="fedgenie-flower", daemon=True).start()

    def _work(self) -> None:
        while True:
            work, done, place = self._todo.get()
            try:
                place.append((True, work()))
            except BaseException as error:  # noqa: BLE001
                place.append((False, error))
            done.set()

    def begin(self, work: Callable[[], T]) -> tuple[threading.Event, list[tuple[bool, Any]]]:
        done, place = threading.Event(), list[tuple[bool, Any]]()
        self._todo.put((work, done, place))
        return done, place


class _Shared:
    """What the calls of a process share: they are carried out one after another, since its random numbers are."""

    lock = threading.Lock()
    thread: _Thread | None = None
    hung: str | None = None
    """The call that did not end, as long as it goes on."""


def call(
    work: Callable[[], T], seed: int, what: str, is_cancelled: Callable[[], bool], timeout_s: float | None
) -> T | None:
    """Calls `work` with random numbers from a seed; None if it was cancelled meanwhile.

    A call that takes longer than `timeout_s` raises `Hung`. Python cannot stop it: as long as it goes on it may draw
    random numbers, so that no other call is made in this process.
    """
    while not _Shared.lock.acquire(timeout=LOOK_S):
        if is_cancelled():
            return None
        _refuse_after_hung()
    try:
        _refuse_after_hung()
        if _Shared.thread is None:
            _Shared.thread = _Thread()

        def seeded() -> T:
            with _seeded(seed):
                return work()

        done, place = _Shared.thread.begin(seeded)
        waited = 0.0
        while not done.wait(LOOK_S):
            waited += LOOK_S
            if is_cancelled():
                _abandon(what, done)
                return None
            if timeout_s is not None and waited >= timeout_s:
                _abandon(what, done)
                message = f"{what} did not end in {timeout_s:g} s; its thread goes on until the program ends"
                raise Hung(message)
        is_good, found = place[0]
        if not is_good:
            raise found
        result: T = found
        return result
    finally:
        _Shared.lock.release()


def _abandon(what: str, done: threading.Event) -> None:
    """Leaves a call behind."""
    _Shared.thread, _Shared.hung = None, what

    def end() -> None:
        done.wait()
        _Shared.hung = None

    threading.Thread(target=end, name="fedgenie-flower-left", daemon=True).start()


def _refuse_after_hung() -> None:
    if _Shared.hung is not None:
        message = (
            f"{_Shared.hung} still goes on in this process, and may draw from the random numbers that others need; begin a "
            "new process"
        )
        raise Hung(message)
