"""The ServerApp: a policy of FedGenie chooses, and the server measures each model."""

from __future__ import annotations

import json
import time
from pathlib import Path

from fedgenie.flower import Selecting
from flwr.app import Array, ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from links import digits

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    selecting = Selecting(
        FedAvg(fraction_evaluate=0.0),
        str(config["policy"]),
        json.loads(str(config["parameters"])),
        int(config["clients"]),
        cohort=int(config["cohort"]),
        seed=int(config["seed"]),
        metrics={"compute_s": "compute_s"},
        record=str(config["record"]) or None,
    )
    course: list[dict[str, float]] = []
    began = [0.0]

    def evaluate(round: int, arrays: ArrayRecord) -> MetricRecord:
        if round == 1 or not course:
            began[0] = began[0] or time.monotonic()
        measured = digits.measure(arrays["weights"].numpy())
        course.append({"round": round, "closed_s": time.monotonic() - began[0], **measured})
        return MetricRecord(measured)

    start = ArrayRecord({"weights": Array(digits.first())})
    found = selecting.start(
        grid=grid,
        initial_arrays=start,
        num_rounds=int(config["rounds"]),
        timeout=float(config["timeout"]),
        evaluate_fn=evaluate,
    )
    if config["result"]:
        told = {
            "course": course,
            "counts": selecting.counts.tolist(),
            "weights": found.arrays["weights"].numpy().ravel()[:20].tolist(),
        }
        Path(str(config["result"])).write_text(json.dumps(told))
    print("ended", json.dumps(course[-1]), flush=True)
