"""Which scenarios' results depend on the order of simultaneous events?

Runs each scenario, made small, with events of the same instant and class in the order of scheduling, and in random orders, and compares
every result of every run. The timeline digest always differs where ties exist, because it records the order itself.

    python3 ties.py --fedgenie ../../target/release/fedgenie [--data FOLDER] > RESULTS.md
"""

import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SCENARIOS = HERE.parent.parent / "scenarios"
SHUFFLES = [1, 2, 3]


def run(fedgenie, scenario, ties, data):
    words = [fedgenie, "run", str(scenario), "--quiet", "--json", "--seeds", "2", "--set", "stop.rounds=30", "--ties", ties]
    text = scenario.read_text()
    if "[task.classification]" in text:
        words += ["--set", "training.epochs=1", "--set", "stop.rounds=5"]
    if '"resnet18"' in text:
        words += ["--set", 'task.classification.model="lenet5"']
    if data:
        words += ["--data", data]
    answer = subprocess.run(words, capture_output=True, text=True)
    if answer.returncode != 0:
        return None, answer.stderr.strip().splitlines()[-1] if answer.stderr.strip() else "failed"
    return json.loads(answer.stdout)["runs"], None


def results(run):
    """Everything that is a result: all numbers but the digests."""
    return {key: value for key, value in run.items() if key != "digest"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fedgenie", required=True)
    parser.add_argument("--data")
    words = parser.parse_args()
    print("# Sensitivity to the order of simultaneous events\n")
    print("`python3 ties.py`: 30 rounds (5 where networks are trained), 2 seeds, three random orders against that of scheduling.\n")
    print("| scenario | order recorded differs | runs whose results differ | what differs |")
    print("|---|---|---|---|")
    for scenario in sorted(SCENARIOS.rglob("*.toml")):
        if scenario.parent.name == "scale":
            continue
        name = scenario.relative_to(SCENARIOS)
        plain, problem = run(words.fedgenie, scenario, "fifo", words.data)
        if plain is None:
            print(f"skipped {name}: {problem}", file=sys.stderr)
            continue
        orders, differing, keys, total = 0, 0, set(), 0
        for seed in SHUFFLES:
            shuffled, _ = run(words.fedgenie, scenario, f"shuffle:{seed}", words.data)
            for one, other in zip(plain, shuffled):
                total += 1
                orders += one["digest"]["timeline"] != other["digest"]["timeline"]
                changed = {key for key, value in results(one).items() if other.get(key) != value}
                differing += bool(changed)
                keys |= changed
        print(f"| {name} | {orders} of {total} | {differing} of {total} | {', '.join(sorted(keys)) or '–'} |", flush=True)


main()
