"""Measures a federation on this machine, and predicts it from a recorded warm-up: `python measure.py OUT`.

OUT keeps what was measured: the same command goes on where it was interrupted. `--only real` measures and predicts
nothing, `--only predict` predicts from what was measured. `--seed` is that of the drawn times and of the policies. Needs
`flwr` and FedGenie's package.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "app")]

from links import digits
from loopback import Loopback

LINKS = {
    "first": [(60e3, 30e3), (60e3, 30e3), (40e3, 20e3), (40e3, 20e3), (30e3, 15e3), (30e3, 15e3)],
    # Not ordered as computing is, and as fast up as down.
    "other": [(15e3, 15e3), (80e3, 80e3), (20e3, 20e3), (60e3, 60e3), (40e3, 40e3), (100e3, 100e3)],
}
"""Bytes per second of each client's link, down and up; the model has 31,400 bytes."""

COHORT, ROUNDS, WARM_UP = 2, 10, 24
TARGET = 0.6
POLICIES: dict[str, dict[str, Any]] = {
    "random": {},
    "bsfl": {"alpha": 1.0, "beta": 1.2, "tau_min": "3 s"},
    "cs-ucb": {"tau_max": "60 s"},
    "cs-ucb-q": {"tau_max": "60 s", "beta": 0.1},
}
SEEDS = 200


def real(out: Path, seed: int, links: str) -> None:
    """The warm-up, whose clients take turns, and the policies."""
    runs: dict[str, tuple[str, dict[str, Any], int, int]] = {"warm-up": ("round-robin", {}, WARM_UP, 10 + seed)}
    runs |= {name: (name, parameters, ROUNDS, seed) for name, parameters in POLICIES.items()}
    for name, (policy, parameters, rounds, drawn) in runs.items():
        folder = out / name
        if (folder / "result.json").exists():
            continue
        (folder / "jobs.csv").unlink(missing_ok=True)
        with Loopback(folder, digits.CLIENTS, LINKS[links]) as federation:
            told = federation.run(
                HERE / "app",
                1500,
                policy=policy,
                parameters=json.dumps(parameters),
                rounds=rounds,
                seed=drawn,
                clients=digits.CLIENTS,
                cohort=COHORT,
                record=folder / "jobs.csv",
                result=folder / "part.json",
            )
        if not (folder / "part.json").exists():
            sys.exit(f"{name}: the run did not end; the last of its log:\n{told[-3000:]}")
        (folder / "part.json").rename(folder / "result.json")
        print(name, json.dumps(measured(folder)))


def jobs(folder: Path) -> list[dict[str, str]]:
    with (folder / "jobs.csv").open() as file:
        return list(csv.DictReader(file))


def times(course: list[dict[str, float]], opened_s: float) -> dict[str, float]:
    """Seconds from the first sending to the target, infinite if it is not reached, and to the end."""
    reached = [one["closed_s"] - opened_s for one in course if one["round"] > 0 and one["accuracy"] >= TARGET]
    return {"to_target_s": reached[0] if reached else float("inf"), "rounds_s": course[-1]["closed_s"] - opened_s}


def measured(folder: Path) -> dict[str, float]:
    told = json.loads((folder / "result.json").read_text())
    opened = min(float(job["sent_s"]) for job in jobs(folder))
    return times(told["course"], opened)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", choices=["real", "predict"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--links", choices=list(LINKS), default="first")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.only != "predict":
        real(given.out.resolve(), given.seed, given.links)
    if given.only != "real":
        from predict import predict

        predict(given.out.resolve())


if __name__ == "__main__":
    main()
