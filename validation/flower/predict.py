"""Predicts the federation that `measure.py` measured, from the log of its warm-up."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import fedgenie
import measure
import numpy as np
from fedgenie.flower import Task
from flwr.app import ArrayRecord
from links import client, digits

INTERVAL = (0.025, 0.975)
RESAMPLES = 20
"""Warm-ups drawn of the one that was recorded."""


def population(out: Path, resample: int | None) -> dict[str, Any]:
    """Clients whose jobs take as long as their own in the warm-up, each equally likely.

    With a number, as many are drawn of them with replacement first: another warm-up that might have been as well.
    """
    groups = []
    for number in range(digits.CLIENTS):
        seconds = [
            float(job["total_s"])
            for job in measure.jobs(out / "warm-up")
            if int(job["client"]) == number and job["outcome"] == "arrived"
        ]
        if resample is not None:
            seconds = np.random.default_rng([resample, number]).choice(seconds, len(seconds)).tolist()
        file = out / f"client-{number}.csv"
        file.write_text("".join(f"{value!r}\n" for value in seconds))
        nothing = {"constant": "0 s"}
        latency = {"download": nothing, "compute": {"empirical": {"file": str(file)}}, "upload": nothing}
        groups.append({"name": f"client-{number}", "count": 1, "latency": latency})
    return {"group": groups}


def fitted(out: Path) -> dict[str, Any]:
    """The population that `fedgenie fit` makes of the warm-up, in the order of the log's clients: their data are."""
    scenario = out / "fleet.toml"
    scenario.unlink(missing_ok=True)
    program = str(Path(sys.executable).with_name("fedgenie"))
    subprocess.run([program, "fit", str(out / "warm-up" / "jobs.csv"), "-o", str(scenario)], check=True)
    text = scenario.read_text()
    members = [[int(number) for number in line.split(",")] for line in re.findall(r"# of the log: ([0-9, ]+)", text)]
    population: dict[str, Any] = tomllib.loads(text)["population"]
    clients: dict[int, dict[str, Any]] = {}
    for group, numbers in zip(population.pop("group"), members, strict=True):
        for index, number in enumerate(numbers):
            clients[number] = {**group, "name": f"client-{number}", "count": 1, "latency": own(group["latency"], index)}
    return {**population, "group": [clients[number] for number in range(digits.CLIENTS)]}


def own(law: Any, index: int) -> Any:
    """A law with the value of one client where each has its own."""
    if not isinstance(law, dict):
        return law
    return law["each"][index] if "each" in law else {name: own(value, index) for name, value in law.items()}


def task() -> Task:
    """The very ClientApp, which does not sleep."""

    def evaluate(arrays: ArrayRecord) -> dict[str, float]:
        return digits.measure(arrays["weights"].numpy())

    start = {"weights": digits.first()}
    examples = [digits.EXAMPLES] * digits.CLIENTS
    return Task(client.app, examples, start, evaluate, run_config={"sleeps": False, "seed": 1})


def played(
    population: dict[str, Any], seeds: list[int], policies: dict[str, dict[str, Any]]
) -> dict[str, list[dict[str, float]]]:
    """Times of each policy in the worlds of some seeds."""
    scenario = {
        "name": "predicted",
        "seeds": seeds,
        "stop": {"rounds": measure.ROUNDS},
        "protocol": {"synchronous": {"cohort": measure.COHORT}},
        "population": population,
        "policy": policies,
    }
    rounds = fedgenie.run(scenario, task=task(), allow_paths=True, progress=None).rounds
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    columns = [rounds[name] for name in ("policy", "seed", "round", "closed_s", "metric_test_accuracy")]
    for policy, seed, number, closed_s, accuracy in zip(*columns, strict=True):
        course = found.setdefault((str(policy), int(seed)), [])
        course.append({"round": int(number), "closed_s": float(closed_s), "accuracy": float(accuracy)})
    times: dict[str, list[dict[str, float]]] = {}
    for (policy, _), course in found.items():
        times.setdefault(policy, []).append(measure.times(course, 0.0))
    return times


def predicted(out: Path, policies: dict[str, dict[str, Any]]) -> dict[str, list[dict[str, float]]]:
    """Times of each policy, in worlds of warm-ups that might have been."""
    times: dict[str, list[dict[str, float]]] = {}
    each = measure.SEEDS // RESAMPLES
    for resample in range(RESAMPLES):
        seeds = list(range(1 + each * resample, 1 + each * (resample + 1)))
        for policy, found in played(population(out, resample), seeds, policies).items():
            times.setdefault(policy, []).extend(found)
    return times


def quantile(values: list[float], u: float) -> float:
    """The quantile by nearest rank, which infinite values do not disturb."""
    return sorted(values)[max(math.ceil(u * len(values)) - 1, 0)]


def told(seconds: float) -> str:
    return f"over {measure.ROUNDS} rounds" if math.isinf(seconds) else f"{seconds:.0f} s"


def predict(out: Path) -> None:
    """Prints the table: with the warm-up as it was, with its uncertainty, and with a fleet that was fitted to it."""
    policies = {name: given for name, given in measure.POLICIES.items() if (out / name / "result.json").exists()}
    warm_up = measure.jobs(out / "warm-up")
    counts = np.bincount([int(job["client"]) for job in warm_up], minlength=digits.CLIENTS)
    print(f"warm-up: {len(warm_up)} jobs, {counts.min()} to {counts.max()} a client; {measure.SEEDS} seeds")
    seeds = list(range(1, 1 + measure.SEEDS))
    columns = [played(population(out, None), seeds, policies), predicted(out, policies)]
    columns.append(played(fitted(out), seeds, policies))
    print(
        "| policy | time | own jobs: median, 95 % of runs | with other warm-ups | `fedgenie fit` | measured | within |\n"
        "|---|---|---|---|---|---|---|"
    )
    for policy in policies:
        real = measure.measured(out / policy)
        for name, what in (("to_target_s", f"to accuracy {measure.TARGET}"), ("rounds_s", f"{measure.ROUNDS} rounds")):
            cells, is_within = [], []
            for times in columns:
                values = [one[name] for one in times[policy]]
                low, high = (quantile(values, u) for u in INTERVAL)
                is_within.append(low <= real[name] <= high)
                cells.append(f"{told(quantile(values, 0.5))} ({told(low)} to {told(high)})")
            within = ", ".join("yes" if one else "**no**" for one in is_within)
            print(f"| `{policy}` | {what} | {' | '.join(cells)} | {told(real[name])} | {within} |")
