"""Scenarios, settings and policies as Python gives them."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

Scenario: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
PolicyClass: TypeAlias = "type[Any] | tuple[type[Any], Mapping[str, Any]]"


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, and paths, for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    message = f"found a {type(value).__name__}; a scenario has numbers, texts, truth values, lists and tables"
    raise TypeError(message)


def source(scenario: Scenario) -> tuple[Path, str | None]:
    """The path, or a name and the text."""
    if isinstance(scenario, Mapping):
        return Path("scenario.json"), json.dumps(scenario, default=_plain, ensure_ascii=False, indent=1)
    if isinstance(scenario, str) and ("\n" in scenario or "=" in scenario):
        return Path("scenario"), scenario
    return Path(scenario), None


def _value(value: Any) -> str:
    """A value as TOML has it; an empty text takes the key out."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return _value(_plain(value))


def settings(set: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Paths and values of `--set`."""
    return [(path, _value(value)) for path, value in (set or {}).items()]


def policies(given: Mapping[str, PolicyClass] | None) -> list[tuple[str, Any, dict[str, Any]]]:
    """Labels, classes and parameters."""
    found = []
    for label, policy in (given or {}).items():
        made, parameters = policy if isinstance(policy, tuple) else (policy, {})
        if not callable(made):
            message = f"policy {label}: found {made!r}; give the class, or (class, {{parameter: value}})"
            raise TypeError(message)
        if inspect.isclass(made) and not hasattr(made, "select"):
            message = f"policy {label}: {made.__name__} has no method select(self, ask); a policy needs it"
            raise TypeError(message)
        found.append((label, made, dict(parameters)))
    return found


def described(
    scenario: Scenario,
    set: Mapping[str, Any] | None,
    seeds: int | None,
    policies_given: Mapping[str, PolicyClass] | None,
    reference: str | None,
    data: str | os.PathLike[str] | None,
    allow_paths: bool,
) -> dict[str, Any]:
    """The experiment for the compiled part."""
    path, text = source(scenario)
    return {
        "path": path,
        "text": text,
        "set": settings(set),
        "seeds": seeds,
        "reference": reference,
        "data": None if data is None else Path(data),
        "allow_paths": allow_paths,
        "policies": policies(policies_given),
    }
