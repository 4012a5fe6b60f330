"""The run of a log of jobs, once more: with its own choices, and with those of other policies."""

from __future__ import annotations

import csv
import gzip
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fedgenie import _run
from fedgenie._kinds import KindClass
from fedgenie._results import Result

__all__ = ["replay"]

NEEDED = ("client", "round", "total_s", "outcome")


class _Shape(NamedTuple):
    """What a scenario needs to know of a log."""

    rounds: int
    cohort: int
    timeout_s: float | None
    """The longest wait for a job that was late."""
    lost: int
    """Jobs that did not arrive."""


def replay(
    log: str | os.PathLike[str],
    *,
    policies: Mapping[str, Any] | Sequence[str] = (),
    task: KindClass | None = None,
    cohort: int | None = None,
    timeout_s: float | None = None,
    seeds: int = 1,
    set: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Result:
    """Replays a log that `Selecting(record=)` wrote, and tries other policies on its clients.

    The policy `recorded` makes the choices of the log, whose jobs take their recorded times to the nanosecond. `policies`
    are names of others, or parameters or classes by name; a job that the log does not have is drawn from the client's
    own. `exact_jobs` and `drawn_jobs` of `Result.summary` count both, and a warning tells of the drawn.

    `cohort` is the largest of the log if none is given, `timeout_s` the longest wait for a job that was late; a log in which
    clients failed and none was late needs it. `task` is what clients learn, such as `fedgenie.flower.Task`. Other
    arguments are those of `fedgenie.run`.
    """
    path = Path(log).absolute()
    shape = _shape(path)
    names: dict[str, Any] = {name: {} for name in policies} if not isinstance(policies, Mapping) else dict(policies)
    if isinstance(policies, str):
        message = f"found policies={policies!r}; expected a list of names, or parameters or classes by name"
        raise TypeError(message)
    built_in = {name: given for name, given in names.items() if isinstance(given, Mapping)}
    classes = {name: given for name, given in names.items() if name not in built_in}
    timeout_s = shape.timeout_s if timeout_s is None else timeout_s
    if timeout_s is None and shape.lost:
        message = (
            f"{path}: {shape.lost} jobs were lost and none was late, so that the log does not tell how long the server would "
            "have waited; give timeout_s"
        )
        raise ValueError(message)
    protocol: dict[str, Any] = {"cohort": shape.cohort if cohort is None else cohort}
    if timeout_s is not None:
        protocol["timeout"] = f"{timeout_s!r} s"
    scenario = {
        "name": "replay",
        "title": f"The jobs of {path.name}, under its own choices and others",
        "seeds": seeds,
        "stop": {"rounds": shape.rounds},
        "population": {"recorded": str(path)},
        "protocol": {"synchronous": protocol},
        "policy": {"recorded": {}, **built_in},
    }
    given = {"policies": classes, "task": task, "set": set, "allow_paths": True, "reference": "recorded", **settings}
    return _run.run(scenario, **given)


def _shape(path: Path) -> _Shape:
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    opened = gzip.open if is_packed else open
    with opened(path, "rt", encoding="utf-8", newline="") as text:
        lines = csv.DictReader(text)
        missing = [name for name in NEEDED if name not in (lines.fieldnames or [])]
        if missing:
            message = f"{path}, line 1: there is no column {missing[0]!r}; a log of jobs has {', '.join(NEEDED)}"
            raise ValueError(message)
        jobs = list(lines)
    if not jobs:
        message = f"{path}: the log has no jobs"
        raise ValueError(message)
    rounds = [job["round"] for job in jobs]
    waits = [float(job["total_s"]) for job in jobs if job["outcome"] == "late" and job["total_s"]]
    return _Shape(
        rounds=len(dict.fromkeys(rounds)),
        cohort=max(map(rounds.count, dict.fromkeys(rounds))),
        # A late job takes longer than it was awaited: the timeout is that wait.
        timeout_s=max(waits, default=math.nan) if waits else None,
        lost=sum(job["outcome"] == "dropped" for job in jobs),
    )
