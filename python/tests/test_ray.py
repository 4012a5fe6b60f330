"""A sweep on two nodes of Ray, of which parts are killed: every file is that of the local sweep.

The nodes are processes of this machine on 127.0.0.2 and 127.0.0.3 (Ray replaces 127.0.0.1 by the outside address). What
is started here is stopped here, by process id.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_sweep import GRID, SCENARIO, same, until

import fedgenie

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc"),
]

PORT = 26379
ENVIRONMENT = {
    **os.environ,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_worker_niceness": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # How long a node may be silent before it counts as dead.
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "4",
    "RAY_health_check_initial_delay_ms": "1000",
}

DRIVER = """
import sys, fedgenie
out, seeds, rounds, resume = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "resume"
import ray
ray.init(address="127.0.0.2:26379", _node_ip_address="127.0.0.2", log_to_driver=False)
more = {"set": {"stop.rounds": rounds}, "resume": resume, "progress": None}
fedgenie.sweep("scenario.toml", {"regret.alpha": [1.0, 3.0]}, seeds, out=out, engine="ray", **more)
"""


class Node:
    """A node whose processes can be told from all others."""

    def __init__(self, address: str, temporary: str) -> None:
        program = Path(sys.executable).with_name("ray")
        of_node = ["--head", f"--port={PORT}", f"--temp-dir={temporary}", "--include-dashboard=false"]
        words = of_node if address == "127.0.0.2" else [f"--address=127.0.0.2:{PORT}"]
        self.log = Path(temporary) / f"{address}.txt"
        with self.log.open("wb") as log:
            self.program = subprocess.Popen(
                [str(program), "start", *words, f"--node-ip-address={address}", "--num-cpus=1", "--block"],
                env=ENVIRONMENT,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def processes(self, named: str) -> list[int]:
        """Those of the node whose command line has this text."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                session = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3]) if entry.name.isdigit() else 0
                if session == self.program.pid and named.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def stop(self) -> None:
        for process in self.processes(""):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.program.wait()


class Cluster:
    """Two nodes of one processor."""

    def __init__(self) -> None:
        self.temporary = tempfile.mkdtemp(prefix="fgray", dir="/tmp")
        self.head, self.other = Node("127.0.0.2", self.temporary), None
        until(lambda: "Ray runtime started" in self.head.log.read_text() or self.head.program.poll() is not None)
        self.join()

    def join(self) -> None:
        """Starts the other node."""
        self.other = Node("127.0.0.3", self.temporary)
        until(lambda: "Ray runtime started" in self.other.log.read_text() or self.other.program.poll() is not None)

    def stop(self) -> None:
        for node in (self.other, self.head):
            if node is not None:
                node.stop()
        shutil.rmtree(self.temporary, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    started = Cluster()
    try:
        assert started.head.program.poll() is None, started.head.log.read_text()
        yield started
    finally:
        started.stop()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "driver.py").write_text(DRIVER)
    return tmp_path


def driven(place: Path, seeds: int, rounds: int, how: str = "new") -> subprocess.Popen[bytes]:
    words = [sys.executable, "driver.py", "out", str(seeds), str(rounds), how]
    return subprocess.Popen(words, cwd=place, env=ENVIRONMENT)


def is_the_local_sweep(place: Path, seeds: int, rounds: int) -> bool:
    more = {"set": {"stop.rounds": rounds}, "progress": None}
    fedgenie.sweep(place / "scenario.toml", GRID, seeds, out=place / "whole", **more)
    return same(place / "whole", place / "out")


def complete(place: Path) -> int:
    return len(list(place.glob("out/runs/*/run.json")))


def test_two_nodes(cluster: Cluster, place: Path) -> None:
    assert driven(place, 3, 20).wait() == 0
    assert is_the_local_sweep(place, 3, 20)


def test_a_node_dies(cluster: Cluster, place: Path) -> None:
    program = driven(place, 8, 3000)
    until(lambda: complete(place) >= 4)
    assert cluster.other is not None
    (raylet,) = [pid for pid in cluster.other.processes("raylet/raylet") if pid != cluster.other.program.pid]
    os.kill(raylet, signal.SIGKILL)
    assert complete(place) < 32
    try:
        assert program.wait(timeout=240) == 0
    finally:
        program.kill()
    assert is_the_local_sweep(place, 8, 3000)
    cluster.other.stop()
    cluster.join()


def test_a_worker_dies(cluster: Cluster, place: Path) -> None:
    program = driven(place, 8, 3000)
    until(lambda: complete(place) >= 2)
    workers: list[int] = []
    until(lambda: bool(workers.extend(cluster.head.processes("ray::_on_ray")) or workers))
    os.kill(workers[0], signal.SIGKILL)
    assert complete(place) < 32
    assert program.wait(timeout=240) == 0
    assert is_the_local_sweep(place, 8, 3000)


def test_the_driver_dies(cluster: Cluster, place: Path) -> None:
    program = driven(place, 8, 3000)
    until(lambda: complete(place) >= 4)
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert 4 <= complete(place) < 32
    assert driven(place, 8, 3000, "resume").wait(timeout=240) == 0
    assert is_the_local_sweep(place, 8, 3000)


def test_no_node_can_take_a_task(cluster: Cluster, place: Path) -> None:
    patient = f"import fedgenie._engines\nfedgenie._engines.Ray.PATIENCE_S = 2.0\n{DRIVER}"
    (place / "greedy.py").write_text(patient.replace('engine="ray"', 'engine="ray", cores=2'))
    words = [sys.executable, "greedy.py", "out", "3", "20", "new"]
    ended = subprocess.run(words, cwd=place, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode != 0
    assert "no node of the cluster could take a task of 2 cores" in ended.stderr, ended.stderr[-2000:]
    assert complete(place) == 0
    assert driven(place, 3, 20, "resume").wait(timeout=120) == 0
    assert is_the_local_sweep(place, 3, 20)


def test_there_is_no_cluster(place: Path) -> None:
    script = (
        "import fedgenie\n"
        "fedgenie.sweep('scenario.toml', out='out', engine='ray', address='127.0.0.4:1', progress=None)\n"
    )
    environment = ENVIRONMENT
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode != 0
    assert "there is no cluster at 127.0.0.4:1" in ended.stderr, ended.stderr[-2000:]
