"""Speed of sweeps on Ray, of putting folders together, and of large folders: `python benches/sweep.py [--quick]`.

Starts two nodes of one processor on 127.0.0.2 and 127.0.0.3, and stops them. Needs the package with Ray, and the command
`fedgenie` of the same environment. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "python/tests"))
os.environ.update({"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"})

import fedgenie
from test_ray import Cluster

SCENARIO = """
name = "speed"
seeds = 1
[stop]
rounds = {rounds}
[population]
clients = 20
[population.latency]
download = {{ constant = "25 ms" }}
compute = {{ lognormal = {{ median = {{ uniform = ["0.1 s", "1 s"] }}, sigma = 0.5 }} }}
upload = {{ constant = "25 ms" }}
[protocol.synchronous]
cohort = 5
[regret]
tau_min = "50 ms"
meters = ["mean"]
[policy.bsfl]
"""


def swept(folder: Path, engine: str, rounds: int, seeds: int) -> float:
    """Seconds of a sweep."""
    began = time.perf_counter()
    fedgenie.sweep(SCENARIO.format(rounds=rounds), None, seeds, out=folder, engine=engine, progress=None)  # type: ignore[arg-type]
    return time.perf_counter() - began


def empty_tasks(count: int) -> float:
    """Seconds of so many empty tasks of Ray, given out like those of a sweep."""
    import ray

    @ray.remote(num_cpus=1)
    def nothing() -> None:
        return None

    ray.get([nothing.remote() for _ in range(8)])
    began = time.perf_counter()
    ray.get([nothing.remote() for _ in range(count)])
    return time.perf_counter() - began


def on_ray(folder: Path, quick: bool) -> None:
    import ray

    cluster = Cluster()
    try:
        ray.init(address="127.0.0.2:26379", _node_ip_address="127.0.0.2", log_to_driver=False)
        # Both nodes begin their processes, which is not measured.
        swept(folder / "warm", "ray", 10, 40)
        runs, repeats = (200, 2) if quick else (2_000, 5)
        rows = []
        for repeat in range(repeats):
            alone = swept(folder / f"alone-{repeat}", "threads", 10, runs)
            spread = swept(folder / f"spread-{repeat}", "ray", 10, runs)
            rows.append((spread - alone, empty_tasks(runs)))
        beyond, empty = (statistics.median(column) / runs * 1e3 for column in zip(*rows, strict=True))
        print(
            f"| a run on Ray beyond its own time, {runs} runs of 10 rounds | {beyond:.2f} ms | an empty task {empty:.2f} ms | {beyond / empty:.2f} of 3 |"
        )
        rounds = 2_000 if quick else 120_000
        rows = []
        for repeat in range(2 if quick else 5):
            two = swept(folder / f"two-{repeat}", "threads", rounds, 20)
            rows.append((swept(folder / f"nodes-{repeat}", "ray", rounds, 20), two))
        nodes, two = (statistics.median(column) for column in zip(*rows, strict=True))
        print(
            f"| 20 runs on two nodes of one processor | {nodes:.2f} s | two threads {two:.2f} s | {nodes / two:.2f} of 1.2 |"
        )
        ray.shutdown()
    finally:
        cluster.stop()


def merged(folder: Path, quick: bool) -> None:
    """Processor time of putting four parts together."""
    seeds = 1_000 if quick else 10_000
    (folder / "study.toml").write_text(SCENARIO.format(rounds=10).replace("seeds = 1", f"seeds = {seeds}"))
    program = str(Path(sys.executable).with_name("fedgenie"))
    for packed in ("false", "true"):
        change = ["--set", f"record.packed={packed}", "--quiet"]
        parts = [f"{packed}-{part}" for part in range(4)]
        for number, part in enumerate(parts):
            words = [program, "run", "study.toml", "--out", part, "--shard", f"{number}/4", *change]
            subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [program, "merge", f"{packed}-all", *parts]
        subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        how = "in packs" if packed == "true" else "in folders of their own"
        print(
            f"| `merge` of {seeds} runs {how} | {used:.2f} s of processor | | {used / seeds * 1000:.2f} s for 1,000, of 1 |"
        )


def measured(words: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of a command, and the most memory that it held, in MB."""
    began = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, words)
    # Linux counts in KiB, others in bytes.
    return time.perf_counter() - began, used.ru_maxrss * (1024 if sys.platform == "linux" else 1) / 1e6


def large(folder: Path, quick: bool) -> None:
    """A folder of a hundred thousand runs: two policies, four points, seeds."""
    seeds = 500 if quick else 12_500
    text = SCENARIO.format(rounds=10).replace("seeds = 1", f"seeds = {seeds}").replace("sigma = 0.5", "sigma = 0.3")
    text += (
        '[policy.random]\n[task.scripted]\n[sweep]\n"regret.alpha" = [0.5, 1.0, 2.0, 3.0]\n[record]\npacked = true\n'
    )
    (folder / "study.toml").write_text(text)
    program = str(Path(sys.executable).with_name("fedgenie"))
    for command in ("run study.toml --out all --quiet", "report all", "export all --to csv -o tables"):
        seconds, most = measured([program, *command.split()], folder)
        files = sum(1 for path in (folder / "all").rglob("*") if path.is_file())
        goal = "" if command.startswith("run") else f"{seconds:.0f} of 60 s, {most / 1073.74:.2f} of 1 GiB"
        print(
            f"| `{command.split()[0]}` of {8 * seeds} runs of 10 rounds | {seconds:.1f} s, {most:.0f} MB | {files} files | {goal} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="sizes that show that everything works")
    quick = parser.parse_args().quick
    print("| what | measured | beside | share of the goal |\n|---|---|---|---|")
    for part in (large, merged):
        with tempfile.TemporaryDirectory() as place:
            part(Path(place), quick)
    with tempfile.TemporaryDirectory() as place:
        on_ray(Path(place), quick)


if __name__ == "__main__":
    main()
