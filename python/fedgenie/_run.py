"""Running, loading."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from fedgenie import _fedgenie, _progress, _scenario
from fedgenie._kinds import KindClass, kinds
from fedgenie._notices import warn
from fedgenie._results import Result
from fedgenie._scenario import Scenario
from fedgenie.errors import VerifyError

__all__ = ["load", "run", "verify"]


def run(
    scenario: Scenario,
    *,
    set: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    policies: Mapping[str, KindClass] | None = None,
    reference: str | None = None,
    task: KindClass | None = None,
    algorithm: KindClass | None = None,
    data: str | os.PathLike[str] | None = None,
    allow_paths: bool = False,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    events: bool = False,
    models: bool = False,
    threads: int = 0,
    progress: Literal["auto"] | bool | None | _progress.Progress = "auto",
    on_failure: Literal["raise", "keep"] = "raise",
) -> Result:
    """Carries out policies × seeds × the points of a sweep, as `fedgenie run` does.

    `scenario` is a path, a text of TOML or a dictionary; `set` changes values by their paths, and None takes a key
    away. `policies` has classes of policies by label, `task` and `algorithm` are classes; each may be
    `(Class, {parameters})`. `reference` is the policy that the others are compared with, `data` the folder of data
    sets, outside of which nothing is read unless `allow_paths`.

    `out` keeps results in a folder: `resume` continues one, `overwrite` replaces it, `events` records every event,
    `models` keeps final models. `threads` is a number, 0 for one per core. `progress` is "auto" (a bar in terminals and
    notebooks), None, or a function of runs that ended, runs in all, and the name of the last.

    A run that fails does not stop the others; then its error is raised, with the others in `.result`, or kept in
    `failures` with `on_failure="keep"`.
    """
    if on_failure not in ("raise", "keep"):
        message = f"found on_failure={on_failure!r}; expected 'raise' or 'keep'"
        raise ValueError(message)
    if resume and overwrite:
        message = "resume keeps the runs of the folder, and overwrite deletes them; give one of the two"
        raise ValueError(message)
    if out is None and (resume or overwrite or models):
        message = "resume, overwrite and models are about a folder; give it by out="
        raise ValueError(message)
    setup = _scenario.described(
        scenario,
        set=set,
        seeds=seeds,
        reference=reference,
        data=data,
        allow_paths=allow_paths,
        policies=policies,
        task=task,
        algorithm=algorithm,
    )
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 0:
        message = f"found threads={threads!r}; expected a whole number, 0 for one per core"
        raise ValueError(message)
    # Records of runs without a folder lie in one that is deleted with the result.
    records = tempfile.TemporaryDirectory(prefix="fedgenie-") if out is None else None
    wishes = {
        "out": Path(records.name) / "run" if records is not None else Path(out or ""),
        "is_kept": records is None,
        "earlier": "resume" if resume else "overwrite" if overwrite else "refuse",
        "events": events,
        "models": models,
        "threads": threads,
    }
    found, failures = _fedgenie.run(setup, wishes, _progress.choose(progress))
    result = Result(found, tuple(failures), records)
    if failures and on_failure == "raise":
        failures[0].result = result
        raise failures[0]
    return result


def load(folder: str | os.PathLike[str], *, allow_changed: bool = False) -> Result:
    """Reads a folder that `run(out=)` or `fedgenie run --out` wrote."""
    found, notices = _fedgenie.load(Path(folder), allow_changed)
    for notice in notices:
        warn(notice)
    return Result(found)


def verify(
    folder: str | os.PathLike[str],
    *,
    policies: Mapping[str, KindClass] | None = None,
    task: KindClass | None = None,
    algorithm: KindClass | None = None,
    data: str | os.PathLike[str] | None = None,
    allow_paths: bool = False,
    threads: int = 0,
    backwards: bool = False,
) -> dict[str, Any]:
    """Replays a folder, and compares every round. Returns what `fedgenie verify --json` prints.

    With `backwards` the last run is replayed first, which finds what runs share. Raises `VerifyError` if something
    differs or is missing.
    """
    is_good, told = _fedgenie.verify(
        {
            "folder": Path(folder),
            "data": None if data is None else Path(data),
            "allow_paths": allow_paths,
            "threads": threads,
            "backwards": backwards,
            **kinds(policies, task, algorithm),
        }
    )
    verdict: dict[str, Any] = json.loads(told)
    if not is_good:
        raise VerifyError(_told(Path(folder), verdict), verdict)
    return verdict


def _told(folder: Path, verdict: dict[str, Any]) -> str:
    """A verdict that is not good, in a sentence."""
    difference = verdict.get("difference")
    if difference is None:
        missing = verdict["missing"]
        what = (
            f"{len(missing)} runs are missing in {folder}: {', '.join(missing)}"
            if missing
            else f"{folder} has no summary"
        )
        return f"{what}; `{verdict['completion']}` completes it"
    places = [f"{name} {difference[name]}" for name in ("run", "round", "event") if difference.get(name) is not None]
    edited = f"{verdict['edited']}; then " if verdict.get("edited") else ""
    return f"first difference: {edited}{', '.join(places) or 'files'}: {difference['what']}"
