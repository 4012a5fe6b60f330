"""Policies and tasks as kinds that a scenario can name: parameters, defaults, a digest of the code."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

KindClass: TypeAlias = Any | tuple[Any, Mapping[str, Any]]

RELEVANT = ("numpy", "scipy", "torch", "pandas", "polars", "scikit-learn")
"""Packages on which results of a policy or a task may depend, where they are loaded."""


class Kind(NamedTuple):
    """A policy or a task for the compiled part."""

    name: str
    make: Callable[..., Any]
    defaults: str
    """Parameters with a value that a scenario can write, as JSON."""
    hidden: dict[str, Any]
    """Parameters whose values no scenario can write, such as functions: they cannot be swept."""
    required: list[str]
    is_open: bool
    fingerprint: str
    found_at: str | None


def plain(value: Any) -> Any:
    """NumPy's numbers and arrays, and paths, for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    message = f"found a {type(value).__name__}; a scenario has numbers, texts, truth values, lists and tables"
    raise TypeError(message)


def _can_be_written(value: Any) -> bool:
    try:
        json.dumps(value, default=plain, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return value is not None


def _fingerprint(make: Callable[..., Any]) -> str:
    """A digest of the source of a class; empty where there is none, as at a prompt."""
    try:
        source = inspect.getsource(make if inspect.isclass(make) or inspect.isfunction(make) else type(make))
    except (OSError, TypeError):
        return ""
    return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()


def _found_at(make: Callable[..., Any]) -> str | None:
    """Where the command finds it: module:Class, if that leads to it."""
    module, name = getattr(make, "__module__", None), getattr(make, "__qualname__", "")
    found: Any = sys.modules.get(module) if module and module != "__main__" else None
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is make else None


def _parameters(make: Callable[..., Any], first: int) -> tuple[dict[str, Any], list[str], bool]:
    """Defaults, names without one, and whether others are taken as well; `first` arguments are not parameters."""
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):
        return {}, [], True
    defaults, required, is_open = {}, [], False
    for number, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            is_open = True
        if number < first or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
        else:
            defaults[parameter.name] = parameter.default
    return defaults, required, is_open


def kind(name: str, given: KindClass, what: str, first: int) -> Kind:
    """A kind out of a class, or a class with parameters. Its first arguments are not parameters."""
    make, chosen = given if isinstance(given, tuple) else (given, {})
    if not callable(make):
        message = f"{what} {name}: found {make!r}; give the class, or (class, {{parameter: value}})"
        raise TypeError(message)
    defaults, required, is_open = _parameters(make, first)
    unknown = [parameter for parameter in chosen if parameter not in defaults and parameter not in required]
    if unknown and not is_open:
        known = ", ".join([*defaults, *required]) or "none"
        message = f"{what} {name}: found the parameter {unknown[0]!r}; its parameters: {known}"
        raise TypeError(message)
    values = {**defaults, **chosen}
    written = {key: value for key, value in values.items() if _can_be_written(value)}
    hidden = {key: value for key, value in chosen.items() if key not in written}
    return Kind(
        name=name,
        make=make,
        defaults=json.dumps(written, default=plain),
        hidden=hidden,
        required=[parameter for parameter in required if parameter not in values],
        is_open=is_open or any(key not in written for key in defaults),
        fingerprint=_fingerprint(make),
        found_at=_found_at(make),
    )


def policies(given: Mapping[str, KindClass] | None) -> list[Kind]:
    """Policies by the names of their kinds."""
    found = []
    for name, policy in (given or {}).items():
        made = policy[0] if isinstance(policy, tuple) else policy
        if inspect.isclass(made) and not hasattr(made, "select"):
            message = f"policy {name}: {made.__name__} has no method select(self, ask); a policy needs it"
            raise TypeError(message)
        found.append(kind(name, policy, "policy", 1))
    return found


def task(given: KindClass | None) -> list[Kind]:
    """The task, whose kind is called as its class."""
    if given is None:
        return []
    made = given[0] if isinstance(given, tuple) else given
    if not isinstance(getattr(made, "metrics", None), Mapping):
        message = f"task: {made!r} has no metrics; write metrics = {{'test_loss': 'min'}} into the class"
        raise TypeError(message)
    return [kind(named_as(made), given, "task", 2)]


def named_as(made: Any) -> str:
    """The name of a class, a function or an object as scenarios write names."""
    called = made.__name__ if inspect.isclass(made) or inspect.isfunction(made) else type(made).__name__
    return _name(called)


def _name(called: str) -> str:
    """The name of a class as scenarios write names: MyTask is my-task."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", called)
    return "-".join(word.lower() for word in words) or "task"


def kinds(
    given: Mapping[str, KindClass] | None, task_given: KindClass | None, algorithm: KindClass | None = None
) -> dict[str, Any]:
    """Policies, a task and an algorithm for the compiled part."""
    folds = None
    if algorithm is not None:
        made, parameters = algorithm if isinstance(algorithm, tuple) else (algorithm, {})
        folds = made(**parameters) if inspect.isclass(made) and hasattr(made, "fold") else made
        if not callable(getattr(folds, "fold", None)):
            message = f"algorithm: {made!r} has no method fold(self, updates); an algorithm needs it"
            raise TypeError(message)
    return {"program": program(), "policies": policies(given), "tasks": task(task_given), "algorithm": folds}


def program() -> str:
    """Python and the packages on which results may depend, with their versions."""
    versions = []
    for name in RELEVANT:
        if name.replace("-", "_").replace("scikit_learn", "sklearn") in sys.modules:
            try:
                versions.append(f"{name} {importlib.metadata.version(name)}")
            except importlib.metadata.PackageNotFoundError:
                continue
    return ", ".join([f"Python {platform.python_version()}", *versions])


def find(where: str) -> Any:
    """What `module:Class` names."""
    module, _, name = where.partition(":")
    if not module or not name:
        message = f"found {where!r}; expected module:Class, such as mine:Fastest"
        raise ValueError(message)
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    finally:
        sys.path.pop(0)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def named(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Policies and tasks that the command's `--with` names; a class with metrics is a task."""
    found = [(name, find(where)) for name, where in pairs]
    return {
        "program": program(),
        "policies": policies({name: made for name, made in found if not hasattr(made, "metrics")}),
        "tasks": [kind(name, made, "task", 2) for name, made in found if hasattr(made, "metrics")],
        "algorithm": None,
    }
