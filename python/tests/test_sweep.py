"""Sweeps on engines: the folder is that of one process, whatever dies on the way."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fedgenie

SCENARIO = """
name = "swept"
seeds = 3
[stop]
rounds = 20
[population]
clients = 12
[population.latency]
download = { constant = "25 ms" }
compute = { lognormal = { median = { uniform = ["0.1 s", "1 s"] }, sigma = 0.5 } }
upload = { constant = "25 ms" }
[protocol.synchronous]
cohort = 3
[regret]
tau_min = "50 ms"
meters = ["mean"]
[policy.bsfl]
[policy.random]
"""
GRID = {"regret.alpha": [1.0, 3.0]}


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found
    return found


def same(one: Path, other: Path) -> bool:
    left, right = files(one), files(other)
    assert left.keys() == right.keys()
    differing = [name for name in left if left[name] != right[name]]
    assert not differing, differing
    return True


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the same scenario with the grid as its `[sweep]`."""
    monkeypatch.chdir(tmp_path)
    swept = SCENARIO + '[sweep]\n"regret.alpha" = [1.0, 3.0]\n'
    fedgenie.run(swept, out=tmp_path / "whole", progress=None)
    return tmp_path / "whole"


MODULE = '''
import os, signal
from pathlib import Path

class First:
    """Chooses the first candidates."""

    def __init__(self, context, fatal: int = 0, once: str = "", wrong: bool = False):
        self.fatal, self.once, self.wrong, self.seed = fatal, once, wrong, context.seed

    def select(self, ask):
        if self.wrong and self.seed == 2:
            raise ValueError("wrong on purpose")
        if self.fatal == self.seed and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return ask.available[: ask.cohort]
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of policies that other processes can import."""
    (tmp_path / "first_policy.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sys.modules.pop("first_policy", None)
    import first_policy  # type: ignore[import-not-found, unused-ignore]

    return first_policy


def test_threads_write_the_folder_of_the_scenario_with_that_sweep(whole: Path, tmp_path: Path) -> None:
    result = fedgenie.sweep(SCENARIO, GRID, out=tmp_path / "out", progress=None)
    assert same(whole, tmp_path / "out")
    assert len(result.runs["seed"]) == 12


def test_processes_write_the_same(whole: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    result = fedgenie.sweep(
        SCENARIO, GRID, out=tmp_path / "out", engine="processes", progress=lambda *news: told.append(news)
    )
    assert same(whole, tmp_path / "out")
    assert [news[0] for news in told] == list(range(1, 13))
    assert result.digest == fedgenie.load(whole).digest
    # Again, there is nothing to do.
    again = fedgenie.sweep(SCENARIO, GRID, out=tmp_path / "out", engine="processes", resume=True, progress=None)
    assert again.digest == result.digest
    assert same(whole, tmp_path / "out")


def test_seeds_and_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    change = {"record.packed": True, "stop.rounds": 3}
    fedgenie.run(SCENARIO, set=change, seeds=5, out=tmp_path / "whole", progress=None)
    fedgenie.sweep(SCENARIO, None, 5, set=change, out=tmp_path / "out", engine="processes", progress=None)
    assert same(tmp_path / "whole", tmp_path / "out")
    assert (tmp_path / "out/runs/00000.tar").is_file()


def test_events_and_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    learning = SCENARIO + (
        '[task.linear-regression]\nexamples = 200\npartition = "iid"\n'
        "[training]\nbatch = 16\noptimizer = { sgd = { lr = 0.01 } }\n"
    )
    fedgenie.run(learning, out=tmp_path / "whole", events=True, models=True, progress=None)
    fedgenie.sweep(learning, out=tmp_path / "out", events=True, models=True, engine="processes", progress=None)
    assert same(tmp_path / "whole", tmp_path / "out")
    assert (tmp_path / "out/runs/random-s1/model.safetensors").is_file()


def test_a_run_that_kills_its_process_fails_and_others_go_on(tmp_path: Path, module: Any) -> None:
    policies = {"first": module.First, "fatal": (module.First, {"fatal": 2})}
    result = fedgenie.sweep(
        SCENARIO,
        out=tmp_path / "out",
        engine="processes",
        policies=policies,
        retries=2,
        progress=None,
        on_failure="keep",
    )
    assert [failure.run for failure in result.failures] == ["fatal-s2"]
    assert "its process died 2 times" in str(result.failures[0])
    states = dict(
        zip(zip(result.runs["policy"], result.runs["seed"].tolist(), strict=True), result.runs["status"], strict=True)
    )
    assert states.pop(("fatal", 2)) == "failed"
    assert set(states.values()) == {"complete"}
    assert json.loads((tmp_path / "out/runs/fatal-s2/failed.json").read_text())["error"].startswith("its process died")
    with pytest.raises(fedgenie.RunError, match="fatal-s2 failed: its process died 2 times"):
        fedgenie.sweep(
            SCENARIO, out=tmp_path / "other", engine="processes", policies=policies, retries=2, progress=None
        )


def test_a_process_that_dies_once_is_tried_again(tmp_path: Path, module: Any) -> None:
    once = {"first": (module.First, {"fatal": 2, "once": str(tmp_path / "died")})}
    fedgenie.sweep(SCENARIO, out=tmp_path / "out", engine="processes", policies=once, progress=None)
    assert (tmp_path / "died").is_file()
    fedgenie.run(SCENARIO, out=tmp_path / "whole", policies=once, progress=None)
    assert same(tmp_path / "whole", tmp_path / "out")


def test_a_run_that_raises_failed_with_its_reason(tmp_path: Path, module: Any) -> None:
    wrong = {"first": (module.First, {"wrong": True})}
    kept = {"policies": wrong, "progress": None, "on_failure": "keep"}
    result = fedgenie.sweep(SCENARIO, out=tmp_path / "out", engine="processes", **kept)
    assert [failure.run for failure in result.failures] == ["first-s2"]
    assert "wrong on purpose" in str(result.failures[0])
    fedgenie.run(SCENARIO, out=tmp_path / "whole", **kept)
    assert same(tmp_path / "whole", tmp_path / "out")


def test_answers_are_read_meanwhile(tmp_path: Path) -> None:
    grid = {"regret.alpha": [1.0, 2.0, 3.0, 4.0]}
    more = {"set": {"stop.rounds": 3000}, "engine": "processes", "progress": None}
    going = fedgenie.sweep(SCENARIO, grid, 8, out=tmp_path / "out", wait=False, **more)
    seen = 0
    while not going.done and not seen:
        seen = len(going.result.summary["runs"])
        time.sleep(0.01)
    assert 0 < seen < 64
    assert going.answers
    going.stop()
    with pytest.raises(fedgenie.UsageError, match=r"stopped; \d+ runs are left"):
        going.wait()
    again = fedgenie.sweep(SCENARIO, grid, 8, out=tmp_path / "out", resume=True, **more)
    assert len(again.summary["runs"]) == 64
    assert fedgenie.sweep(SCENARIO, GRID, out=tmp_path / "other", wait=False, progress=None).wait().answers


DRIVER = """
import sys, fedgenie
if __name__ == "__main__":
    scenario, out, engine, address = sys.argv[1:]
    grid = {"regret.alpha": [1.0, 3.0]}
    fedgenie.sweep(scenario, grid, 8, set={"stop.rounds": 2000}, out=out, engine=engine, address=address or None,
                   resume=True, progress=None)
"""


def killed_driver(tmp_path: Path, engine: str, address: str = "") -> None:
    """Kills the program that gathers in the middle, and lets it go on."""
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "driver.py").write_text(DRIVER)
    words = [sys.executable, "driver.py", "scenario.toml", "out", engine, address]
    program = subprocess.Popen(words, cwd=tmp_path)
    until(lambda: len(list(tmp_path.glob("out/runs/*/run.json"))) >= 3)
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert len(list(tmp_path.glob("out/runs/*/run.json"))) < 32
    subprocess.run(words, cwd=tmp_path, check=True)
    swept = SCENARIO + '[sweep]\n"regret.alpha" = [1.0, 3.0]\n'
    (tmp_path / "swept.toml").write_text(swept)
    fedgenie.run(tmp_path / "swept.toml", set={"stop.rounds": 2000}, seeds=8, out=tmp_path / "whole", progress=None)
    assert same(tmp_path / "whole", tmp_path / "out")


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(1200):
        if is_so():
            return
        time.sleep(0.05)
    pytest.fail("nothing came of it in a minute")


def test_a_driver_that_is_killed_goes_on(tmp_path: Path) -> None:
    killed_driver(tmp_path, "processes")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_the_one_that_began_them(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "driver.py").write_text(DRIVER)
    words = [sys.executable, "driver.py", "scenario.toml", "out", "processes", ""]
    own = {**os.environ, "TMPDIR": str(tmp_path)}
    program = subprocess.Popen(words, cwd=tmp_path, env=own, start_new_session=True)

    def left() -> list[str]:
        """Processes of the program's session."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split() if entry.name.isdigit() else []
            except OSError:
                continue
            if fields and fields[0] != "Z" and int(fields[3]) == program.pid:
                found.append(entry.name)
        return found

    until(lambda: len(list(tmp_path.glob("out/runs/*/run.json"))) >= 3)
    assert len(left()) > 1
    program.send_signal(how)
    program.wait()
    until(lambda: not left())
    assert not list(tmp_path.glob("fedgenie-apart-*"))


def test_a_program_that_would_call_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    call = "import fedgenie\nfedgenie.sweep('scenario.toml', out='out', engine='processes', progress=None)\n"
    (tmp_path / "bare.py").write_text(call)
    words = [sys.executable, "bare.py"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode != 0 and 'put the call below `if __name__ == "__main__":`' in ended.stderr, ended.stderr
    assert ended.stderr.count("Traceback") == 1 and not (tmp_path / "out").exists()
    (tmp_path / "guarded.py").write_text(call.replace("fedgenie.sweep", "if __name__ == '__main__': fedgenie.sweep"))
    subprocess.run([sys.executable, "guarded.py"], cwd=tmp_path, check=True)
    assert (tmp_path / "out" / "manifest.json").exists()


def test_data_are_compared_by_digest_or_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedgenie import _fedgenie
    from fedgenie._apart import NodeError, Order, carry_out
    from fedgenie._kinds import kinds
    from fedgenie._scenario import described

    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/speeds.csv").write_text("".join(f"{0.1 + 0.01 * number}\n" for number in range(40)))
    text = SCENARIO.replace(
        'lognormal = { median = { uniform = ["0.1 s", "1 s"] }, sigma = 0.5 }',
        'empirical = { file = "data/speeds.csv" }',
    )
    more = {"progress": None}
    fedgenie.run(text, out=tmp_path / "whole", **more)
    for send in (False, True):
        out = tmp_path / f"out-{send}"
        fedgenie.sweep(text, out=out, engine="processes", send_files=send, **more)
        assert same(tmp_path / "whole", out)
    plain = {"set": None, "seeds": None, "reference": None, "allow_paths": False, "policies": None, "task": None}
    setup = described(text, data=None, **plain)
    wishes = {"out": tmp_path / "gathered", "earlier": "refuse", "events": False, "models": False}
    gathering = _fedgenie.gather(setup, wishes, False)
    import pickle

    order = Order("a", gathering.ticket, pickle.dumps((None, None, None)), None, 1)
    names = gathering.pending[0]
    assert carry_out(order, names).pack
    (tmp_path / "data/speeds.csv").write_text("0.5\n")
    with pytest.raises(NodeError, match=r"^node .*: data/speeds.csv is another file here"):
        carry_out(order._replace(key="b"), names)
    (tmp_path / "data/speeds.csv").unlink()
    with pytest.raises(NodeError, match=r"^node .*speeds.csv"):
        carry_out(order._replace(key="c"), names)
    ticket = json.loads(gathering.ticket)
    for change, why in [
        ({"version": "9.9.9"}, "and 9.9.9 .* gave the task; install the same one"),
        ({"build": "0123"}, "build 0123"),
    ]:
        with pytest.raises(NodeError, match=why):
            carry_out(order._replace(key=why, ticket=json.dumps({**ticket, **change})), names)
    # What comes back is looked at.
    with pytest.raises(fedgenie.UsageError, match="came back, and cannot be used: it is not there"):
        gathering.admit(names, b"")
    with pytest.raises(fedgenie.UsageError, match="has no such run"):
        gathering.admit(["nobody-s1"], b"")
    assert kinds(None, None)["policies"] == []


def test_other_code_is_refused_by_name(tmp_path: Path, module: Any) -> None:
    import pickle

    from fedgenie import _fedgenie
    from fedgenie._apart import NodeError, Order, carry_out
    from fedgenie._scenario import described

    plain = {"set": None, "seeds": None, "reference": None, "allow_paths": False, "data": None, "task": None}
    setup = described(SCENARIO, policies={"first": module.First}, **plain)
    wishes = {"out": tmp_path / "gathered", "earlier": "refuse", "events": False, "models": False}
    gathering = _fedgenie.gather(setup, wishes, False)
    ticket = json.loads(gathering.ticket)
    ticket["outside"]["policies"]["first"]["fingerprint"] = "0" * 32
    classes = pickle.dumps(({"first": module.First}, None, None))
    with pytest.raises(NodeError, match="the code of the policy first is not that of where the task was given"):
        carry_out(Order("x", json.dumps(ticket), classes, None, 1), gathering.pending[0])


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def local(ask: Any) -> Any:
        return ask

    class Unsendable:
        def __init__(self, context: Any, lock: Any) -> None:
            self.context, self.lock = context, lock

        def select(self, ask: Any) -> Any:
            return local(ask)

    for wrong, error, why in [
        ({"engine": "slurm"}, ValueError, "expected one of 'threads', 'processes', 'ray', 'dask'"),
        ({"retries": 0}, ValueError, "found retries=0"),
        ({"cores": True}, ValueError, "found cores=True"),
        ({"grid": [1]}, TypeError, "found grid of type list"),
        (
            {"address": "here"},
            fedgenie.UsageError,
            "engine='threads' is this process, .*: address is for other engines",
        ),
        ({"resume": True, "overwrite": True}, ValueError, "give one of the two"),
        (
            {"engine": "processes", "policies": {"mine": (Unsendable, {"lock": threading.Lock()})}},
            TypeError,
            "cannot be sent",
        ),
    ]:
        with pytest.raises(error, match=why):
            fedgenie.sweep(SCENARIO, **{"out": out, "progress": None, **wrong})
        assert not out.exists()


def test_folders_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    fedgenie.run("scenario.toml", out="whole", progress=None)
    for part in (0, 1):
        words = ["run", "scenario.toml", "--out", str(part), "--shard", f"{part}/2", "--quiet"]
        subprocess.run([sys.executable, "-m", "fedgenie", *words], check=True, stdout=subprocess.DEVNULL)
    result = fedgenie.merge("out", ["0", "1"])
    assert same(tmp_path / "whole", tmp_path / "out")
    assert result.digest == fedgenie.load("whole").digest
    with pytest.warns(fedgenie.FedGenieWarning, match="2 runs are in none of the folders: bsfl-s2, random-s2"):
        fedgenie.merge("half", ["0"])
    with pytest.raises(fedgenie.UsageError, match="is no folder that"):
        fedgenie.merge("never", ["nowhere"])


# ------------------------------------------------------------------------------------------------------------ clusters


@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="Dask is not installed")
def test_dask_writes_the_same(whole: Path, tmp_path: Path) -> None:
    import distributed

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        fedgenie.sweep(SCENARIO, GRID, out=tmp_path / "out", engine="dask", address=address, progress=None)
        assert same(whole, tmp_path / "out")
    with pytest.raises(fedgenie.UsageError, match="there is no cluster at tcp://127.0.0.1:9"):
        distributed.client  # noqa: B018
        import dask

        with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
            fedgenie.sweep(
                SCENARIO, GRID, out=tmp_path / "none", engine="dask", address="tcp://127.0.0.1:9", progress=None
            )


def test_what_killed_processes_left_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedgenie import _apart

    monkeypatch.setattr(_apart.tempfile, "gettempdir", lambda: str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left, mine, other = (tmp_path / f"fedgenie-apart-{who}-x" for who in (ended.pid, os.getpid(), "someone"))
    for folder in (left, mine, other):
        folder.mkdir()
    _apart.forget_dead()
    assert (left.exists(), mine.exists(), other.exists()) == (False, True, True)
