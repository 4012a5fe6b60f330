"""A federation of Flower on this machine: a SuperLink, and SuperNodes as processes."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: nothing of fedgenie.flower was tested")

FOLDER = Path(__file__).parent.parent.parent / "validation" / "flower"

if not FOLDER.is_dir():
    pytest.skip("the app of the test is in a clone only", allow_module_level=True)
if os.environ.get("FEDGENIE_LOOPBACK") != "1":
    reason = "a federation of processes takes a minute: FEDGENIE_LOOPBACK=1 tests it"
    pytest.skip(reason, allow_module_level=True)


def module(name: str) -> Any:
    """A module of the app's folder."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_a_policy_chooses_processes(tmp_path: Path) -> None:
    sys.path.insert(0, str(FOLDER / "app"))
    from links import digits

    rounds, cohort = 3, 2
    with module("loopback").Loopback(tmp_path, 4) as federation:
        told = federation.run(
            FOLDER / "app",
            300,
            clients=4,
            cohort=cohort,
            rounds=rounds,
            sleeps=False,
            policy="random",
            seed=5,
            fails=3,
            record=tmp_path / "jobs.csv",
            result=tmp_path / "result.json",
        )
    assert (tmp_path / "result.json").exists(), told[-4000:]
    result = json.loads((tmp_path / "result.json").read_text())
    jobs = list(csv.DictReader((tmp_path / "jobs.csv").open()))
    assert len(jobs) == rounds * cohort and sum(result["counts"]) == rounds * cohort
    assert {job["outcome"] for job in jobs if job["client"] == "3"} <= {"dropped"}
    assert {job["outcome"] for job in jobs if job["client"] != "3"} == {"arrived"}
    weights = digits.first()
    for round in range(1, rounds + 1):
        chosen = sorted(int(job["client"]) for job in jobs if int(job["round"]) == round)
        good = [digits.train(client, round, weights)[0] for client in chosen if client != 3]
        if good:
            weights = np.mean(good, axis=0, dtype=np.float64).astype(np.float32)
    assert result["weights"] == pytest.approx(weights.ravel()[:20].tolist(), rel=1e-4, abs=1e-6)
    assert digits.measure(weights)["accuracy"] == pytest.approx(result["course"][-1]["accuracy"], abs=1e-9)
