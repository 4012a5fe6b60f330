"""A bar on terminals and in notebooks, nothing in pipes, or a function of one's own."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Literal

Progress = Callable[[int, int, str], Any]

WIDTH = 30


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    shell = shell.get_ipython() if shell is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class Bar:
    """A bar of one line."""

    def __init__(self, draw: Callable[[str], None], clear: Callable[[], None]) -> None:
        self.draw, self.clear = draw, clear
        self.began = time.monotonic()

    def __call__(self, done: int, total: int, run: str) -> None:
        filled = WIDTH * done // max(total, 1)
        elapsed = time.monotonic() - self.began
        left = elapsed * (total - done) / max(done, 1)
        bar = "█" * filled + "░" * (WIDTH - filled)
        self.draw(f"{bar} {done}/{total} runs, {elapsed:.0f} s elapsed, {left:.0f} s left ({run})")
        if done == total:
            self.clear()


def _on_terminal() -> Bar:
    def draw(line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    return Bar(draw, lambda: draw(""))


def _in_cell() -> Bar:
    from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

    shown: list[Any] = []

    def draw(line: str) -> None:
        data = {"text/plain": line}
        if shown:
            shown[0].update(data, raw=True)
        else:
            shown.append(display(data, raw=True, display_id=True))  # type: ignore[no-untyped-call, unused-ignore]

    return Bar(draw, lambda: draw("") if shown else None)


def choose(progress: Literal["auto"] | bool | None | Progress) -> Progress | None:
    """The function to call when a run has ended."""
    if callable(progress):
        return progress
    if progress is None or progress is False:
        return None
    if progress not in ("auto", True):
        message = f"found progress={progress!r}; expected 'auto', True, False, or a function of done, total and run"
        raise ValueError(message)
    if _in_notebook():
        return _in_cell()
    if progress is True or sys.stderr.isatty():
        return _on_terminal()
    return None
