"""Calls of code that draws from the random numbers of its process, and that may hang."""

from __future__ import annotations

import math
import queue
import random
import sys
import threading
import time
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
    left: tuple[str, threading.Event] | None = None
    """A call that was left behind, and its end."""


def call(
    work: Callable[[], T], seed: int, what: str, is_cancelled: Callable[[], bool], timeout_s: float | None
) -> T | None:
    """Calls `work` with random numbers from a seed; None if it was cancelled meanwhile.

    A call that takes longer than `timeout_s` raises `Hung`. Python cannot stop it: as long as it goes on it may draw
    random numbers, so that the next call waits for its end, as long as for its own.
    """
    while not _Shared.lock.acquire(timeout=LOOK_S):
        if is_cancelled():
            return None
    try:
        if not _is_free(is_cancelled, timeout_s):
            return None
        if _Shared.thread is None:
            _Shared.thread = _Thread()

        def seeded() -> T:
            with _seeded(seed):
                return work()

        done, place = _Shared.thread.begin(seeded)
        if not _ends(done, is_cancelled, timeout_s):
            _Shared.thread, _Shared.left = None, (what, done)
            if is_cancelled():
                return None
            message = f"{what} did not end in {timeout_s:g} s; its thread goes on until the program ends"
            raise Hung(message)
        is_good, found = place[0]
        if not is_good:
            raise found
        result: T = found
        return result
    finally:
        _Shared.lock.release()


def _ends(done: threading.Event, is_cancelled: Callable[[], bool], timeout_s: float | None) -> bool:
    """Waits for the end of a call; False if it was cancelled or took too long."""
    until = math.inf if timeout_s is None else time.monotonic() + timeout_s
    while not done.wait(max(0.0, min(LOOK_S, until - time.monotonic()))):
        if is_cancelled() or time.monotonic() >= until:
            return False
    return True


def _is_free(is_cancelled: Callable[[], bool], timeout_s: float | None) -> bool:
    """Waits for a call that was left behind; False if that was cancelled."""
    if _Shared.left is None:
        return True
    what, done = _Shared.left
    if not _ends(done, is_cancelled, timeout_s):
        if is_cancelled():
            return False
        message = (
            f"{what} still goes on in this process, and may draw from the random numbers that others need; begin a new "
            "process"
        )
        raise Hung(message)
    _Shared.left = None
    return True
