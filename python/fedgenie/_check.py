"""Whether policies and a task keep their promise: equal bits on any threads, in any order, in any process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedgenie import _run
from fedgenie._kinds import KindClass
from fedgenie._notices import warn
from fedgenie._scenario import Scenario
from fedgenie.errors import CheckError, VerifyError

__all__ = ["check"]

Kinds = dict[str, Any]


def _replay(folder: str, kinds: Kinds, threads: int, backwards: bool = False) -> dict[str, Any] | None:
    """The verdict of a replay that differs."""
    try:
        _run.verify(folder, threads=threads, backwards=backwards, **kinds)
    except VerifyError as error:
        return error.verdict
    return None


def _child() -> None:
    """Replays in a process of its own: what to replay comes in, the verdict goes out, both pickled."""
    answer = sys.stdout.buffer
    # What policies print belongs elsewhere.
    sys.stdout = sys.stderr
    try:
        folder, pickled = pickle.load(sys.stdin.buffer)
        told: tuple[str, Any] = ("told", _replay(folder, pickle.loads(pickled), 1))
    except BaseException as error:  # noqa: BLE001
        told = ("raised", f"{type(error).__name__}: {error}")
    pickle.dump(told, answer)
    answer.flush()


def _elsewhere(folder: str, kinds: Kinds) -> dict[str, Any] | None:
    """The verdict of a replay in a process with other hashes. It imports the classes, and nothing of the script."""
    try:
        pickled = pickle.dumps(kinds)
        pickle.loads(pickled)
    except Exception as error:  # noqa: BLE001
        warn(f"nothing was replayed in another process, because the classes cannot be sent there: {error}")
        return None
    if b"__main__" in pickled:
        warn("nothing was replayed in another process: it cannot import classes of the script itself, or of a notebook")
        return None
    before = os.environ.get("PYTHONHASHSEED")
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "4711" if before != "4711" else "17",
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
    }
    words = [sys.executable, "-c", "from fedgenie._check import _child; _child()"]
    asked = pickle.dumps((folder, pickled))
    ended = subprocess.run(words, input=asked, stdout=subprocess.PIPE, env=environment, check=False)
    try:
        kind, found = pickle.loads(ended.stdout)
    except (EOFError, pickle.UnpicklingError):
        kind, found = "raised", f"it ended with code {ended.returncode}"
    if kind == "raised":
        warn(f"nothing was replayed in another process: {found}")
        return None
    verdict: dict[str, Any] | None = found
    return verdict


def check(
    scenario: Scenario,
    *,
    policies: Mapping[str, KindClass] | None = None,
    task: KindClass | None = None,
    algorithm: KindClass | None = None,
    set: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    data: str | os.PathLike[str] | None = None,
    allow_paths: bool = False,
) -> None:
    """Runs a scenario and replays it: again, with the runs in reverse, on two threads, in a process with other hashes.

    Raises `CheckError` with the first round that differs: something in a policy or a task depends on a clock, a global
    variable, the order of a set, or random numbers of its own.
    """
    kinds: Kinds = {
        "policies": policies,
        "task": task,
        "algorithm": algorithm,
        "data": data,
        "allow_paths": allow_paths,
    }
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "run")
        _run.run(scenario, set=set, seeds=seeds, out=out, threads=1, progress=None, **kinds)
        tries: list[tuple[str, Callable[[], dict[str, Any] | None]]] = [
            ("when it was run again", lambda: _replay(out, kinds, 1)),
            ("with the runs in reverse", lambda: _replay(out, kinds, 1, backwards=True)),
            ("on two threads", lambda: _replay(out, kinds, 2)),
            ("in a process with another PYTHONHASHSEED", lambda: _elsewhere(out, kinds)),
        ]
        for how, replay in tries:
            found = (replay() or {}).get("difference")
            if found:
                run, round = found.get("run"), found.get("round")
                where = f"run {run}, round {round}" if round else f"run {run}"
                message = f"{where} differs {how}: {found['what']}"
                raise CheckError(message, run, round)
