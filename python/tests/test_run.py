"""Running scenarios."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

import fedgenie
import pytest
from conftest import LEARNS, SMALL, First


def test_a_scenario_is_a_path_a_text_or_a_dict(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    results = [fedgenie.run(scenario, seeds=1) for scenario in (path, str(path), SMALL, tomllib.loads(SMALL))]
    assert len({result.digest for result in results}) == 1


def test_settings_are_changed() -> None:
    changed = fedgenie.run(
        SMALL, set={"stop.rounds": 7, "policy.random.probability": 0.5, "title": 'A "title"'}, seeds=1
    )
    assert changed.title == 'A "title"'
    assert changed.summary["runs"][0]["rounds"] == 7
    without = fedgenie.run(SMALL, set={"regret": None}, seeds=1)
    assert "[regret]" not in without.scenario


def test_a_wrong_scenario_says_where() -> None:
    with pytest.raises(fedgenie.ScenarioError, match="clienst") as caught:
        fedgenie.run(SMALL.replace("clients", "clienst"))
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.line == 8 and error.path == "scenario" and error.key == "population.clienst"
    assert "clients" in error.message
    with pytest.raises(FileNotFoundError, match="absent.toml"):
        fedgenie.run("absent.toml")
    with pytest.raises(fedgenie.ScenarioError):
        fedgenie.run("name = ")


def test_results_are_shown() -> None:
    result = fedgenie.run(SMALL, policies={"first": First})
    assert "random" in result.table() and "first" in str(result.table())
    assert repr(result.table()) == result.table()
    assert result.answers and all(isinstance(sentence, str) for sentence in result.answers)
    assert "<pre>" in result._repr_html_()
    assert "regret" in result.figure("regret").name
    assert result.figure("regret").svg.startswith("<svg")
    assert len(result.digest) == 32
    with pytest.raises(KeyError, match="expected one of"):
        result.figure("absent")


def test_files_are_written(tmp_path: Path) -> None:
    result = fedgenie.run(SMALL, seeds=2)
    page = result.report(tmp_path / "page.html")
    assert "<!DOCTYPE html>" in page.read_text()
    figure = result.figure("regret")
    assert figure.save(tmp_path / "a.svg").read_text() == figure.svg
    assert figure.save(tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(ValueError, match="svg or .pdf"):
        figure.save(tmp_path / "a.png")


def test_a_folder_is_loaded(tmp_path: Path) -> None:
    run = fedgenie.run(SMALL, policies={"first": First}, out=tmp_path / "out")
    loaded = fedgenie.load(tmp_path / "out")
    assert loaded.digest == run.digest and loaded.table() == run.table() and loaded.answers == run.answers
    with pytest.raises(fedgenie.UsageError, match="no folder"):
        fedgenie.load(tmp_path / "absent")
    with pytest.raises(fedgenie.UsageError, match="very experiment"):
        fedgenie.run(SMALL, policies={"first": First}, out=tmp_path / "out")
    again = fedgenie.run(SMALL, policies={"first": First}, out=tmp_path / "out", overwrite=True)
    assert again.digest == run.digest


def test_progress_is_told() -> None:
    told: list[Any] = []
    fedgenie.run(SMALL, progress=lambda *news: told.append(news), threads=1)
    assert told == [(1, 2, "random-s1"), (2, 2, "random-s2")]

    def stops(done: int, total: int, run: str) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        fedgenie.run(SMALL, progress=stops)


def test_wrong_arguments_are_refused() -> None:
    for wrong, expected in [
        ({"on_failure": "ignore"}, "on_failure"),
        ({"resume": True}, "out="),
        ({"progress": "loud"}, "progress"),
        ({"threads": 10**9}, "threads"),
    ]:
        with pytest.raises(ValueError, match=expected):
            fedgenie.run(SMALL, **wrong)


LONG = SMALL.replace("stop.rounds = 30", "stop.rounds = 100_000_000")

INTERRUPTED = """
import os, signal, sys, threading, time
import numpy  # has threads of its own
import fedgenie
class First:
    def __init__(self, context): pass
    def select(self, ask): return ask.available[:4]
    def observe(self, feedback): pass
def count(): return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
before, handler = count(), signal.getsignal(signal.SIGINT)
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    fedgenie.run(sys.stdin.read(), policies={"first": First}, threads=2, out=sys.argv[1])
except KeyboardInterrupt:
    print(time.monotonic() - began)
assert signal.getsignal(signal.SIGINT) is handler
time.sleep(0.3)
assert threading.active_count() == 1, threading.enumerate()
print(count() - before)
print(fedgenie.run("scenario.toml", seeds=1, threads=1).digest)
"""


def test_an_interrupt_stops_within_a_second_and_python_goes_on(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SMALL)
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "out"],
        input=LONG,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=True,
    )
    seconds, threads, digest = done.stdout.split()
    assert 0.9 < float(seconds) < 2.0, "a second until the signal, and at most one after it"
    assert int(threads) == 0, "no thread is left"
    assert digest == fedgenie.run(SMALL, seeds=1).digest
    # The folder was saved, and is resumed.
    short = fedgenie.run(LONG, set={"stop.rounds": 20}, policies={"first": First}, seeds=1)
    assert short.summary["runs"]
    assert (tmp_path / "out" / "scenario.toml").is_file()


def test_other_threads_run_meanwhile() -> None:
    counted = [0]
    is_over = threading.Event()

    def count() -> None:
        while not is_over.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    began = time.monotonic()
    fedgenie.run(SMALL, set={"stop.rounds": 60_000}, seeds=2, threads=1)
    took = time.monotonic() - began
    is_over.set()
    thread.join()
    assert counted[0] > 100 * took, "the interpreter is free while runs are simulated"


def files(folder: Path) -> dict[str, bytes]:
    """All files but those of processes at work."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def command(*words: str | Path, cwd: Path, code: int = 0) -> str:
    """What the command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "fedgenie", *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_the_folder_is_that_of_the_command_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    command("run", path, "--out", "command", "--events", "--set", "policy.random.probability=0.5", cwd=tmp_path)
    result = fedgenie.run(path, out=tmp_path / "package", events=True, set={"policy.random.probability": 0.5})
    ours, theirs = files(tmp_path / "package"), files(tmp_path / "command")
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []
    assert result.digest in command("run", path, "--set", "policy.random.probability=0.5", cwd=tmp_path)


def test_the_command_comes_with_the_package(tmp_path: Path) -> None:
    assert fedgenie.__version__ in command("--version", cwd=tmp_path)
    assert "policy/bsfl" in command("list", "policy", cwd=tmp_path)
    assert "absent" in command("verify", "absent", cwd=tmp_path, code=2)
    assert "unexpected argument" in command("run", "--absent", cwd=tmp_path, code=2)


OWN = """
class Fixed:
    def __init__(self, context, first=0):
        self.first = first
    def select(self, ask):
        return ask.available[self.first : self.first + ask.cohort]
"""


def test_the_command_finds_policies_and_a_folder_is_replayed_by_both(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "small.toml").write_text(SMALL)
    found = ("--with", "fixed=own:Fixed")
    command("run", "small.toml", *found, "--set", "policy.fixed.first=2", "--out", "out", cwd=tmp_path)
    assert "no difference" in command("verify", "out", *found, cwd=tmp_path)
    assert "--with fixed=own:Fixed" in command("verify", "out", cwd=tmp_path, code=2)
    for wrong, expected in [
        ("fixed=absent:Fixed", "absent"),
        ("fixed=own:Absent", "Absent"),
        ("fixed", "MODULE:CLASS"),
    ]:
        assert expected in command("verify", "out", "--with", wrong, cwd=tmp_path, code=2)
    source: dict[str, Any] = {"__name__": "elsewhere"}
    exec(OWN, source)
    verdict = fedgenie.verify(tmp_path / "out", policies={"fixed": source["Fixed"]})
    assert verdict["runs"] == 4 and verdict["difference"] is None


def test_parameters_are_swept_and_written_into_the_scenario() -> None:
    swept = fedgenie.run(SMALL, policies={"fixed": First}, set={"policy.fixed.c": [1, 2], "stop.rounds": 3}, seeds=1)
    assert "c = [" in swept.scenario

    class Takes(First):
        def __init__(self, context: fedgenie.Context, first: int = 0, c: float = 1.0) -> None:
            self.first = first
            assert context.point == {"policy.takes.first": str(first)} and context.seed == 1

        def select(self, ask: Any) -> Any:
            return ask.available[self.first : self.first + ask.cohort]

    swept = fedgenie.run(
        SMALL, policies={"takes": (Takes, {"c": 2.0})}, seeds=1, set={"sweep": {"policy.takes.first": [0, 8]}}
    )
    assert "first = 0\nc = 2.0" in fedgenie.run(SMALL, policies={"plain": (Plain, {"c": 2.0})}, seeds=1).scenario
    runs = [run for run in swept.summary["runs"] if run["arm"] == "takes"]
    assert runs[0]["digest"]["timeline"] != runs[1]["digest"]["timeline"]
    with pytest.raises(fedgenie.ScenarioError, match="frist.*did you mean"):
        fedgenie.run(SMALL, policies={"takes": Takes}, set={"policy.takes.frist": 3})


def test_verify_raises_on_a_difference(tmp_path: Path) -> None:
    class Drifts(First):
        drift = 0

        def select(self, ask: Any) -> Any:
            return ask.available[Drifts.drift * (ask.turn > 5) :][: ask.cohort]

    fedgenie.run(SMALL, policies={"drifts": Drifts}, out=tmp_path / "out", seeds=1)
    assert fedgenie.verify(tmp_path / "out", policies={"drifts": Drifts})["runs"] == 2
    Drifts.drift = 1
    with pytest.raises(fedgenie.VerifyError, match="run drifts-s1, round 6") as caught:
        fedgenie.verify(tmp_path / "out", policies={"drifts": Drifts})
    assert caught.value.verdict["difference"]["round"] == 6
    with pytest.raises(fedgenie.UsageError, match="drifts"):
        fedgenie.verify(tmp_path / "out")


def test_check_finds_what_depends_on_more_than_the_stream() -> None:
    fedgenie.check(SMALL, policies={"first": First}, seeds=1)
    calls = [0]

    class Counts(First):
        def select(self, ask: Any) -> Any:
            calls[0] += 1
            return ask.available[calls[0] % 7 :][: ask.cohort]

    with pytest.raises(fedgenie.CheckError, match="differs when it was run again") as caught:
        fedgenie.check(SMALL, policies={"counts": Counts}, seeds=1)
    assert caught.value.run == "counts-s1" and caught.value.round == 1

    class Shares(First):
        """Remembers the last run that it was in, in a variable of the class."""

        last = 0

        def __init__(self, context: Any) -> None:
            self.before = Shares.last
            Shares.last = context.seed

        def select(self, ask: Any) -> Any:
            return ask.available[self.before % 5 :][: ask.cohort]

    with pytest.raises(fedgenie.CheckError, match="differs"):
        fedgenie.check(SMALL, policies={"shares": Shares}, seeds=3)
    with pytest.raises(fedgenie.CheckError, match="PYTHONHASHSEED"):
        fedgenie.check(SMALL, policies={"hashes": Hashes}, seeds=1)


class Plain(First):
    def __init__(self, context: Any, first: int = 0, c: float = 1.0) -> None:
        pass


class Hashes(First):
    """Orders by hashes of texts, which differ from process to process."""

    def select(self, ask: Any) -> Any:
        return sorted(ask.available, key=lambda client: hash(f"client {client}"))[: ask.cohort]


class Interrupts(First):
    """Interrupts its process once, as a person would by Ctrl-C; remembers what it was told."""

    is_due = True

    def __init__(self, context: Any) -> None:
        self.waited = [0.0] * context.clients

    def select(self, ask: Any) -> Any:
        if ask.turn == 300 and Interrupts.is_due:
            Interrupts.is_due = False
            os.kill(os.getpid(), signal.SIGINT)
        return sorted(ask.available, key=lambda client: self.waited[client])[: ask.cohort]

    def observe(self, feedback: Any) -> None:
        for client, seconds in zip(feedback.jobs.client, feedback.jobs.waited_s, strict=True):
            self.waited[client] += seconds


def test_an_interrupted_folder_is_resumed_with_the_memory_of_its_policies(tmp_path: Path) -> None:
    setting = {"stop.rounds": 60_000, "record": {"every": 1000}}
    arguments: dict[str, Any] = {"set": setting, "policies": {"interrupts": Interrupts}, "seeds": 1, "threads": 2}
    with pytest.raises(KeyboardInterrupt):
        fedgenie.run(SMALL, out=tmp_path / "out", **arguments)
    assert not (tmp_path / "out" / "manifest.json").exists()
    resumed = fedgenie.run(SMALL, out=tmp_path / "out", resume=True, **arguments)
    whole = fedgenie.run(SMALL, **arguments)
    assert resumed.digest == whole.digest


def test_memory_that_cannot_be_pickled_is_said_where_it_is_needed(tmp_path: Path) -> None:
    class Locked(First):
        def __init__(self, context: Any) -> None:
            self.lock = threading.Lock()

        def select(self, ask: Any) -> Any:
            if ask.turn == 300:
                os.kill(os.getpid(), signal.SIGINT)
            return super().select(ask)

    arguments: dict[str, Any] = {"set": {"stop.rounds": 60_000}, "seeds": 1, "threads": 1}
    assert fedgenie.run(SMALL, policies={"locked": Locked}, seeds=1).summary["runs"], (
        "where nothing is saved, nothing is"
    )
    with pytest.raises((KeyboardInterrupt, fedgenie.PolicyError)):
        fedgenie.run(SMALL, out=tmp_path / "out", policies={"locked": Locked}, **arguments)


FORKED = """
import os, sys
import fedgenie
scenario = sys.stdin.read()
first = fedgenie.run(scenario, threads=2).digest
child = os.fork()
if child == 0:
    os._exit(0 if fedgenie.run(scenario, threads=2).digest == first else 1)
assert os.waitpid(child, 0)[1] == 0
assert fedgenie.run(scenario, threads=2).digest == first
"""

FULL = """
import resource, sys
import fedgenie
scenario = sys.stdin.read()
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
try:
    fedgenie.run(scenario, out="out", set={"stop.rounds": 5000})
except OSError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
again = fedgenie.run(scenario, out="out", set={"stop.rounds": 5000}, resume=True)
assert again.digest == fedgenie.run(scenario, set={"stop.rounds": 5000}).digest
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks and limits of files are as Linux has them")
@pytest.mark.parametrize("program", [FORKED, FULL], ids=["fork", "full disk"])
def test_a_fork_and_a_full_disk_are_outlived(program: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        input=SMALL,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert program is FORKED or "File too large" in done.stdout


def test_a_folder_of_another_version_is_refused(tmp_path: Path) -> None:
    fedgenie.run(SMALL, out=tmp_path / "out", seeds=1)
    manifest = tmp_path / "out" / "manifest.json"
    written = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**written, "format": 1, "version": "0.0.1"}))
    with pytest.raises(fedgenie.UsageError, match="written by fedgenie 0.0.1 .* run the scenario again"):
        fedgenie.load(tmp_path / "out")
    manifest.write_text(json.dumps(written))
    (tmp_path / "out" / "runs" / "random-s1" / "rounds.jsonl").write_text("{}\n")
    with pytest.raises(fedgenie.ChangedError, match="rounds.jsonl"):
        fedgenie.load(tmp_path / "out")
    assert fedgenie.load(tmp_path / "out", allow_changed=True).summary["runs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": -1}, "found seeds=-1"),
        ({"seeds": True}, "found seeds=True"),
        ({"seeds": "3"}, "found seeds='3'"),
        ({"threads": 1.5}, "found threads=1.5"),
        ({"set": "stop.rounds=4"}, "found set of type str; expected a dictionary"),
        ({"policies": [First]}, "found policies of type list; expected a dictionary"),
    ],
)
def test_arguments_of_other_types_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        fedgenie.run(SMALL, **arguments)


def test_a_report_is_a_page(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a report is a page"):
        fedgenie.run(SMALL, seeds=1).report(tmp_path / "report.pdf")


def test_a_script_is_not_run_again_by_check(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import fedgenie\nprint('begun')\n"
        "class Mine:\n    def __init__(self, context): pass\n    def select(self, ask): return ask.available[:4]\n"
        f"fedgenie.check({SMALL!r}, policies={{'mine': Mine}}, seeds=1)\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert ended.stdout == "begun\n" and "cannot import classes of the script itself" in ended.stderr


def test_a_task_beside_that_of_the_scenario_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("class Own:\n    metrics = {'test_loss': 'min'}\n    def train(self, job): ...\n")
    (tmp_path / "learns.toml").write_text(LEARNS)
    words = [sys.executable, "-m", "fedgenie", "run", "learns.toml", "--with", "own=own:Own"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and "leave one of the two out" in ended.stderr, ended.stderr
