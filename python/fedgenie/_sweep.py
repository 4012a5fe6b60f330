"""Sweeps on threads, on processes, or on the machines of a cluster."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, overload

from fedgenie import _engines, _fedgenie, _progress, _run, _scenario
from fedgenie._apart import Made, Order
from fedgenie._engines import Died, Engine
from fedgenie._kinds import KindClass, kinds
from fedgenie._notices import warn
from fedgenie._results import Answers, Result
from fedgenie._scenario import Scenario
from fedgenie.errors import RunError, UsageError

__all__ = ["Sweep", "merge", "sweep"]

LOOK_S = 0.2
"""How often a sweep looks whether it was stopped."""

TASK_S = 0.5
"""Short runs share tasks of about this length."""


class _Driver:
    """Gives out tasks, and gathers what comes back."""

    def __init__(self, gathering: _fedgenie.Gathering, engine: Engine, retries: int) -> None:
        self.gathering, self.engine, self.retries = gathering, engine, retries
        self.progress: _progress.Progress | None = None
        self.waiting: deque[list[str]] = deque(gathering.pending)
        self.alone: deque[list[str]] = deque()
        """Tasks one of which may have killed a process: each is tried with no other beside it."""
        self.under_way: dict[Any, list[str]] = {}
        self.deaths: dict[str, int] = {}
        self.seconds: float | None = None
        """How long a run takes."""
        self.failures: list[tuple[str, str]] = []
        self.warned: set[str] = set()
        self.runs = self.left = sum(map(len, self.waiting))
        self.stopped = threading.Event()

    def work(self) -> None:
        """Until nothing is left, or it is stopped."""
        while (self.waiting or self.alone or self.under_way) and not self.stopped.is_set():
            self._give()
            for key, outcome in self.engine.wait(LOOK_S):
                self._take(self.under_way.pop(key), outcome)

    def _give(self) -> None:
        if self.alone:
            if not self.under_way:
                self._submit(self.alone.popleft())
            return
        slots = self.engine.slots
        while self.waiting and len(self.under_way) < slots:
            self._submit(self._task(slots))

    def _submit(self, names: list[str]) -> None:
        self.under_way[self.engine.submit(names)] = names

    def _task(self, slots: int) -> list[str]:
        """The next runs, so many that giving them out costs little beside them."""
        names = self.waiting.popleft()
        if self.seconds is not None:
            fair = 1 + sum(map(len, self.waiting)) // (2 * slots)
            while self.waiting and len(names) < fair and self.seconds * len(names) < TASK_S:
                names = [*names, *self.waiting.popleft()]
        return names

    def _take(self, names: list[str], outcome: _engines.Outcome) -> None:
        if isinstance(outcome, Made):
            seconds = outcome.seconds / len(names)
            if outcome.warning is not None and outcome.warning not in self.warned:
                self.warned.add(outcome.warning)
                warn(outcome.warning)
            self.seconds = seconds if self.seconds is None else 0.5 * (self.seconds + seconds)
            self.failures.extend(self.gathering.admit(names, outcome.pack))
            self._ended(names)
        elif isinstance(outcome, Died):
            self._died(names, outcome)
        else:
            raise outcome

    def _died(self, names: list[str], death: Died) -> None:
        if not death.alone:
            self.alone.append(names)
        elif len(names) > 1:
            self.alone.extend([name] for name in names)
        else:
            (name,) = names
            self.deaths[name] = self.retries if death.is_final else self.deaths.get(name, 0) + 1
            if self.deaths[name] < self.retries:
                self.alone.append(names)
                return
            why = f"its process died {self.retries} times: {death.why}"
            self.gathering.give_up(name, why)
            self.failures.append((name, why))
            self._ended(names)

    def _ended(self, names: list[str]) -> None:
        for name in names:
            self.left -= 1
            if self.progress is not None:
                self.progress(self.runs - self.left, self.runs, name)


class Sweep:
    """A sweep that goes on in the background."""

    def __init__(self, begin: Any, so_far: Any, stop: Any) -> None:
        self._so_far, self._stop = so_far, stop
        self._found: Result | BaseException | None = None

        def work() -> None:
            try:
                self._found = begin()
            except BaseException as error:  # noqa: BLE001
                self._found = error

        self._thread = threading.Thread(target=work, name="fedgenie-sweep", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return not self._thread.is_alive()

    @property
    def result(self) -> Result:
        """The results of the runs that are complete by now, read from the folder."""
        if isinstance(self._found, Result):
            return self._found
        result: Result = self._so_far()
        return result

    @property
    def answers(self) -> Answers:
        """Which policy is best by now, in sentences."""
        return self.result.answers

    def wait(self) -> Result:
        """Waits for its end. Raises what the sweep raised."""
        while self._thread.is_alive():
            self._thread.join(LOOK_S)
        if isinstance(self._found, Result):
            return self._found
        assert self._found is not None, "a thread that has ended left something"
        raise self._found

    def stop(self) -> None:
        """Ends it. What is complete stays in the folder, and `resume=True` goes on."""
        self._stop()
        self._thread.join()

    def __repr__(self) -> str:
        return f"<fedgenie.Sweep {'that has ended' if self.done else 'under way'}>"


def _check(engine: str, cores: int, retries: int) -> None:
    if engine not in _engines.ENGINES:
        message = f"found engine={engine!r}; expected one of {', '.join(map(repr, _engines.ENGINES))}"
        raise ValueError(message)
    for name, value in (("cores", cores), ("retries", retries)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            message = f"found {name}={value!r}; expected a whole number of at least 1"
            raise ValueError(message)


@overload
def sweep(
    scenario: Scenario,
    grid: Mapping[str, Any] | None = ...,
    seeds: int | None = ...,
    *,
    out: str | os.PathLike[str],
    engine: Literal["threads", "processes", "ray", "dask"] = ...,
    address: str | None = ...,
    retries: int = ...,
    cores: int = ...,
    send_files: bool = ...,
    set: Mapping[str, Any] | None = ...,
    policies: Mapping[str, KindClass] | None = ...,
    reference: str | None = ...,
    task: KindClass | None = ...,
    algorithm: KindClass | None = ...,
    data: str | os.PathLike[str] | None = ...,
    allow_paths: bool = ...,
    resume: bool = ...,
    overwrite: bool = ...,
    events: bool = ...,
    models: bool = ...,
    progress: Literal["auto"] | bool | None | _progress.Progress = ...,
    on_failure: Literal["raise", "keep"] = ...,
    wait: Literal[True] = ...,
) -> Result: ...


@overload
def sweep(
    scenario: Scenario,
    grid: Mapping[str, Any] | None = ...,
    seeds: int | None = ...,
    *,
    out: str | os.PathLike[str],
    engine: Literal["threads", "processes", "ray", "dask"] = ...,
    address: str | None = ...,
    retries: int = ...,
    cores: int = ...,
    send_files: bool = ...,
    set: Mapping[str, Any] | None = ...,
    policies: Mapping[str, KindClass] | None = ...,
    reference: str | None = ...,
    task: KindClass | None = ...,
    algorithm: KindClass | None = ...,
    data: str | os.PathLike[str] | None = ...,
    allow_paths: bool = ...,
    resume: bool = ...,
    overwrite: bool = ...,
    events: bool = ...,
    models: bool = ...,
    progress: Literal["auto"] | bool | None | _progress.Progress = ...,
    on_failure: Literal["raise", "keep"] = ...,
    wait: Literal[False],
) -> Sweep: ...


def sweep(
    scenario: Scenario,
    grid: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    *,
    out: str | os.PathLike[str],
    engine: Literal["threads", "processes", "ray", "dask"] = "threads",
    address: str | None = None,
    retries: int = 3,
    cores: int = 1,
    send_files: bool = False,
    set: Mapping[str, Any] | None = None,
    policies: Mapping[str, KindClass] | None = None,
    reference: str | None = None,
    task: KindClass | None = None,
    algorithm: KindClass | None = None,
    data: str | os.PathLike[str] | None = None,
    allow_paths: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    events: bool = False,
    models: bool = False,
    progress: Literal["auto"] | bool | None | _progress.Progress = "auto",
    on_failure: Literal["raise", "keep"] = "raise",
    wait: bool = True,
) -> Result | Sweep:
    """Carries out a scenario at every point of a grid: the folder is that of the same scenario with this `[sweep]`.

    `grid` has a list of values for each path. `engine` carries the runs out: "threads" of this process, "processes" of
    this machine, a cluster of "ray" or of "dask" at `address`. There a task has `cores` threads, and the policies of a
    point and a seed are in one task. A run whose process has died `retries` times failed; others go on. Data are read on
    each node from the same path and compared by digest, or sent to it with `send_files`.

    Results are written into `out` as they come. If this program dies, `resume=True` goes on. With `wait=False` a `Sweep`
    is returned at once, whose `answers` are those of the runs that are complete. The other arguments are those of `run`.
    """
    _check(engine, cores, retries)
    if on_failure not in ("raise", "keep"):
        message = f"found on_failure={on_failure!r}; expected 'raise' or 'keep'"
        raise ValueError(message)
    if resume and overwrite:
        message = "resume keeps the runs of the folder, and overwrite deletes them; give one of the two"
        raise ValueError(message)
    if grid is not None and not isinstance(grid, Mapping):
        message = (
            f"found grid of type {type(grid).__name__}; expected a dictionary such as {{'regret.alpha': [1.0, 2.0]}}"
        )
        raise TypeError(message)
    changes = {**(set or {}), **({"sweep": grid} if grid else {})}
    described: dict[str, Any] = {
        "set": changes,
        "seeds": seeds,
        "reference": reference,
        "data": data,
        "allow_paths": allow_paths,
        "policies": policies,
        "task": task,
        "algorithm": algorithm,
    }
    setup = _scenario.described(scenario, **described)
    folder, shown = Path(out), _progress.choose(progress)

    def so_far() -> Result:
        return Result(_fedgenie.so_far(setup, folder))

    if engine == "threads":
        for name, is_given in (("address", address is not None), ("cores", cores != 1), ("send_files", send_files)):
            if is_given:
                message = (
                    f"engine='threads' is this process, with all of its cores and files: {name} is for other engines"
                )
                raise UsageError(message)

        def begin() -> Result:
            return _run.run(
                scenario,
                **described,
                out=out,
                resume=resume,
                overwrite=overwrite,
                events=events,
                models=models,
                progress=shown,
                on_failure=on_failure,
            )

        def no_stop() -> None:
            message = (
                "engine='threads' cannot be stopped from outside; it ends with the program, and resume=True goes on"
            )
            raise UsageError(message)

        return begin() if wait else Sweep(begin, so_far, no_stop)

    classes = _engines.pickled(engine, (policies, task, algorithm))
    earlier = "resume" if resume else "overwrite" if overwrite else "refuse"
    wishes = {"out": folder, "earlier": earlier, "events": events, "models": models}
    opened = _engines.open_engine(engine, address, retries)
    try:
        gathering = _fedgenie.gather(setup, wishes, allow_paths)
        try:
            driver = _driver(gathering, opened, (classes, cores, send_files), retries)
        except BaseException:
            gathering.close()
            raise
    except BaseException:
        opened.close()
        raise
    driver.progress = shown

    def carried_out() -> Result:
        return _gathered(driver, on_failure)

    return carried_out() if wait else Sweep(carried_out, so_far, driver.stopped.set)


def _driver(gathering: _fedgenie.Gathering, engine: Engine, what: tuple[bytes, int, bool], retries: int) -> _Driver:
    """The driver of an engine that has been told what is to be made."""
    classes, cores, send_files = what
    for warning in gathering.warnings:
        warn(warning)
    files = {name: path.read_bytes() for name, path in gathering.files.items()} if send_files else None
    ticket = gathering.ticket
    key = hashlib.blake2b(ticket.encode() + classes, digest_size=16).hexdigest()
    engine.begin(Order(key, ticket, classes, files, cores))
    return _Driver(gathering, engine, retries)


def _gathered(driver: _Driver, on_failure: str) -> Result:
    """All results, when the last run has come back."""
    try:
        driver.work()
    except BaseException as error:
        driver.gathering.close()
        if isinstance(error, KeyboardInterrupt):
            message = "stopped; what is complete is kept, and the same call with resume=True goes on"
            raise KeyboardInterrupt(message) from None
        raise
    finally:
        driver.engine.close()
    if driver.stopped.is_set() and driver.left:
        driver.gathering.close()
        message = f"stopped; {driver.left} runs are left, and the same call with resume=True goes on"
        raise UsageError(message)
    failures = tuple(RunError(f"run {name} failed: {why}", name, None) for name, why in driver.failures)
    result = Result(driver.gathering.finish(), failures)
    if failures and on_failure == "raise":
        failures[0].result = result
        raise failures[0]
    return result


def merge(
    out: str | os.PathLike[str],
    folders: list[str | os.PathLike[str]],
    *,
    policies: Mapping[str, KindClass] | None = None,
    task: KindClass | None = None,
    algorithm: KindClass | None = None,
    data: str | os.PathLike[str] | None = None,
) -> Result:
    """Puts folders of parts of an experiment together in a new one, as `fedgenie merge` does.

    The new folder is the one that a single process would have written. Runs that no folder has are warned about.
    """
    if isinstance(folders, (str, os.PathLike)):
        message = f"found folders={folders!r}; expected a list of folders"
        raise TypeError(message)
    program = kinds(policies, task, algorithm)
    paths = [Path(folder) for folder in folders]
    found, missing = _fedgenie.merge(Path(out), paths, None if data is None else Path(data), program)
    if missing:
        warn(f"{len(missing)} runs are in none of the folders: {', '.join(missing[:5])}{', …' if missing[5:] else ''}")
    return Result(found)
