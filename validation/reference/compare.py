"""Runs scenarios with the program and with the reference, and compares them round by round.

    python compare.py --fedgenie path/to/fedgenie [SCENARIO.toml ...]

Exit code 0: every number agrees; 1: something differs.
"""

import argparse
import gzip
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import reference as ref

HERE = Path(__file__).parent
TOLERANCE = 1e-8


def close(a, b):
    return abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


def scenario_seeds(scenario):
    seeds = scenario.get("seeds", 1)
    return list(range(1, seeds + 1)) if isinstance(seeds, int) else seeds


def solvers(world):
    if world.take < world.ask or math.comb(world.K, world.ask) <= 40_000:
        return ref.Brute(world.K, world.ask, world.take), ref.Brute(world.K, world.ask, world.take)
    return ref.Walk(world.K, world.ask), ref.Walk(world.K, world.ask)


def check_events(path, world):
    """Phase times of every job that ended, against the drawn ones: (phases compared, largest difference in ns)."""
    opened, previous, compared, worst = {}, {}, 0, 0
    with gzip.open(path, "rt") as lines:
        for line in lines:
            event = json.loads(line)
            if event["event"] == "opened":
                opened[event["round"]] = event["time_ns"]
                previous.clear()
            elif event["event"] == "phase-ended":
                k, t = event["client"], event["round"]
                phase = ("download", "compute", "upload").index(event["phase"])
                length = event["time_ns"] - previous.get(k, opened[t])
                previous[k] = event["time_ns"]
                compared += 1
                worst = max(worst, abs(length - int(world.phases[phase, k, t - 1])))
    return compared, worst


def compare(task):
    path, label, seed, folder = task
    began = time.time()
    scenario = tomllib.loads(Path(path).read_text())
    kind = scenario["policy"][label].get("kind", label)
    config = {key: value for key, value in scenario["policy"][label].items() if key != "kind"}
    run = Path(folder) / "runs" / f"{label}-s{seed}"
    rows = [json.loads(line) for line in (run / "rounds.jsonl").read_text().splitlines()]
    rounds = scenario["stop"]["rounds"]
    assert len(rows) == rounds, f"{len(rows)} recorded rounds of {rounds}"
    world = ref.World(scenario, seed)
    world.draw(rounds)
    phases, phase_gap = check_events(run / "events.jsonl.gz", world)
    solver, latency_solver = solvers(world)
    policy = ref.POLICIES[kind](world, latency_solver if kind == "rbcs-f" else solver, config) if kind in ref.POLICIES else None
    given = None if policy else [row["selected"] for row in rows]
    totals = {meter: 0.0 for meter in world.meters}
    gap = {name: 0.0 for name in ["closed", "reward", *world.meters]}
    first = None
    for mine, row in zip(ref.simulate(world, solver, latency_solver, policy, rounds, given), rows):
        wrong = []
        if sorted(mine["selected"]) != sorted(row["selected"]):
            wrong.append(f"selected: reference {sorted(mine['selected'])}, program {sorted(row['selected'])}")
        if mine["arrived"] != row["arrived"]:
            wrong.append(f"arrived: reference {mine['arrived']}, program {row['arrived']}")
        if mine["late"] != sorted(row["late"]):
            wrong.append(f"late: reference {mine['late']}, program {row['late']}")
        dropped = sorted((entry["client"], entry["phase"]) for entry in row["dropped"])
        if mine["dropped"] != dropped:
            wrong.append(f"dropped: reference {mine['dropped']}, program {dropped}")
        for name, a, b in [("closed", mine["closed_ns"] / 1e9, row["closed_s"]), ("reward", mine["reward"], row["reward"])]:
            gap[name] = max(gap[name], abs(a - b))
            if not close(a, b):
                wrong.append(f"{name}: reference {a!r}, program {b!r}")
        for meter in world.meters:
            totals[meter] += mine["regret"][meter]
            a, b = totals[meter], row["regret"][meter]
            gap[meter] = max(gap[meter], abs(a - b))
            if not close(a, b):
                wrong.append(f"{meter} regret: reference {a!r}, program {b!r}")
        if wrong:
            first = (mine["round"], wrong)
            break
    return {
        "scenario": scenario["name"], "policy": label, "seed": seed, "rounds": rounds, "phases": phases,
        "phase_gap": phase_gap, "gap": gap, "first": first, "replayed": policy is None, "seconds": time.time() - began,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fedgenie", default=shutil.which("fedgenie") or "fedgenie", help="the program to check")
    parser.add_argument("--policy", action="append", help="only this policy; may be repeated")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("scenarios", nargs="*", type=Path, help="scenario files; all of this folder's if left out")
    arguments = parser.parse_args()
    paths = arguments.scenarios or sorted((HERE / "scenarios").glob("*.toml"))
    with tempfile.TemporaryDirectory() as temporary, ProcessPoolExecutor(arguments.jobs) as pool:
        pending = []
        for path in paths:
            scenario = tomllib.loads(path.read_text())
            out = Path(temporary) / scenario["name"]
            done = subprocess.run(
                [arguments.fedgenie, "run", str(path), "--out", str(out), "--events", "--quiet"],
                capture_output=True, text=True,
            )
            if done.returncode != 0:
                sys.exit(f"{path}: {done.stderr}")
            for seed in scenario_seeds(scenario):
                for label in scenario["policy"]:
                    if not arguments.policy or label in arguments.policy:
                        pending.append(pool.submit(compare, (str(path), label, seed, str(out))))
        results = [future.result() for future in pending]

    bar = "| " if arguments.markdown else ""
    columns = ["scenario", "policy", "seed", "rounds", "phases", "ns off", "closed", "reward", "mean", "realised", "expected", "verdict"]
    widths = [24, 12, 4, 6, 7, 6, 8, 8, 8, 8, 8, 8]

    def print_row(cells):
        print((bar + bar.join(str(c).ljust(w) + " " for c, w in zip(cells, widths)) + bar).rstrip())

    print_row(columns)
    if arguments.markdown:
        print("|" + "---|" * len(columns))
    bad = 0
    for r in results:
        gaps = [f"{r['gap'][name]:.1e}" if name in r["gap"] else "" for name in ("closed", "reward", "mean", "realised", "expected")]
        verdict = "equal" if r["first"] is None else f"round {r['first'][0]}"
        if r["first"] is None and r["replayed"]:
            verdict = "equal*"
        bad += r["first"] is not None
        print_row([r["scenario"], r["policy"], r["seed"], r["rounds"], r["phases"], r["phase_gap"], *gaps, verdict])
    for r in results:
        if r["first"]:
            print(f"\n{r['scenario']} / {r['policy']} seed {r['seed']}, round {r['first'][0]}:")
            for line in r["first"][1]:
                print("   ", line)
    if any(r["replayed"] for r in results):
        print("\n* selections taken from the record; everything else recomputed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
