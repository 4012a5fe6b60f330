"""Scenarios, settings and policies as Python gives them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from fedgenie._kinds import KindClass, kinds, plain

Scenario: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]


def source(scenario: Scenario) -> tuple[Path, str | None]:
    """The path, or a name and the text."""
    if isinstance(scenario, Mapping):
        return Path("scenario.json"), json.dumps(scenario, default=plain, ensure_ascii=False, indent=1)
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
    return _value(plain(value))


def settings(set: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Paths and values of `--set`."""
    return [(path, _value(value)) for path, value in (set or {}).items()]


def described(
    scenario: Scenario,
    *,
    set: Mapping[str, Any] | None,
    seeds: int | None,
    reference: str | None,
    data: str | os.PathLike[str] | None,
    allow_paths: bool,
    policies: Mapping[str, KindClass] | None,
    task: KindClass | None,
    algorithm: KindClass | None = None,
) -> dict[str, Any]:
    """The experiment for the compiled part."""
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1):
        message = f"found seeds={seeds!r}; expected a whole number of at least 1"
        raise ValueError(message)
    for name, given in (("set", set), ("policies", policies)):
        if given is not None and not isinstance(given, Mapping):
            example = '{"stop.rounds": 50}' if name == "set" else '{"mine": Mine}'
            message = f"found {name} of type {type(given).__name__}; expected a dictionary such as {example}"
            raise TypeError(message)
    if not isinstance(scenario, (str, os.PathLike, Mapping)) or scenario == "":
        message = f"found the scenario {scenario!r}; expected a path, a text of TOML or a dictionary"
        raise TypeError(message)
    path, text = source(scenario)
    return {
        "path": path,
        "text": text,
        "set": settings(set),
        "seeds": seeds,
        "reference": reference,
        "data": None if data is None else Path(data),
        "allow_paths": allow_paths,
        **kinds(policies, task, algorithm),
    }
