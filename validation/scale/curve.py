"""Time and memory against the number of clients.

    python3 curve.py --fedgenie ../../target/release/fedgenie > RESULTS.md

For K = 10^3 ... 10^7: the wall time of a whole command, and of one round: the difference between two numbers of rounds, so that building the
world does not count. Memory is the largest resident size. The median of --repetitions.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import time

SCENARIOS = pathlib.Path(__file__).resolve().parent.parent.parent / "scenarios" / "scale"


def run(fedgenie, scenario, sets):
    words = [fedgenie, "run", str(SCENARIOS / scenario), "--quiet"]
    for pair in sets:
        words += ["--set", pair]
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, words
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fedgenie", required=True)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--largest", type=int, default=7)
    words = parser.parse_args()
    cases = [
        ("on_off_random.toml", "random, 1,000 per round", "protocol.synchronous.cohort", 1000, (20, 220)),
        ("on_off_bsfl.toml", "BSFL, 1,000 per round", "protocol.synchronous.cohort", 1000, (5, 25)),
        ("buffered.toml", "buffered, 10,000 at work, a round is 1,000 updates", "protocol.buffered.concurrency", 10_000, (20, 220)),
    ]
    print("| scenario | clients | first rounds [s] | a round [ms] | resident [MiB] |")
    print("|---|---|---|---|---|")
    for scenario, name, key, most, (few, many) in cases:
        for power in range(3, words.largest + 1):
            clients = 10**power
            sets = [f"population.clients={clients}", f"{key}={min(most, clients // 4)}"]
            short, long, memory = [], [], []
            for _ in range(words.repetitions):
                short.append(run(words.fedgenie, scenario, [*sets, f"stop.rounds={few}"])[0])
                seconds, resident = run(words.fedgenie, scenario, [*sets, f"stop.rounds={many}"])
                long.append(seconds)
                memory.append(resident)
            per_round = (statistics.median(long) - statistics.median(short)) / (many - few) * 1000
            print(
                f"| {name} | 10^{power} | {statistics.median(short):.2f} | {per_round:.2f} | {statistics.median(memory):.0f} |",
                flush=True,
            )


main()
