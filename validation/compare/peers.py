"""Times FedGenie beside other simulators of federated learning that do the same work in the same run.

    python peers.py --data FOLDER --envs FOLDER --fedgenie target/release/fedgenie

Two works, FedAvg with one epoch a client:

| work       | model              | clients × images    | a round | rounds | batch | rate | tests            |
|------------|--------------------|---------------------|---------|--------|-------|------|------------------|
| lr-mnist   | softmax, 1×28×28   | 1,000 × 60          | 10      | 100    | 10    | 0.01 | every 20th round |
| simple-cnn | SimpleCNN, 3×32×32 | as many as fit × 50 | 50      | 5      | 10    | 0.01 | one, not timed   |

FOLDER of --data holds Fashion-MNIST in `fashion-mnist` and CIFAR-10 in `cifar10`. Each simulator lives in a virtual
environment of its own below --envs, with the versions in `peers/*.txt`, made when it is not there yet; those that use
PyTorch share that of `peers/torch.txt`. PyTorch's wheels for Linux bring several GB of CUDA; with
`PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu` pip takes the small ones. Needs Python 3.11 and Linux.
"""

import argparse
import ctypes
import json
import math
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PEERS = HERE / "peers"
RESULTS, FIGURE = HERE / "RESULTS.md", HERE / "peers.svg"
HEADING = "## Beside other simulators"
WORKS = {"lr-mnist": "LR-MNIST", "simple-cnn": "SimpleCNN"}
TRAININGS = {"lr-mnist": 1_000, "simple-cnn": 250}  # of clients, in all rounds
QUIET = 0.1  # of the processors: what other programs may have during a measurement
PATIENCE = 120  # seconds to wait for that
PR_SET_CHILD_SUBREAPER = 36  # of Linux: processes whose parents end become those of this program
LIMIT = 600  # seconds of one program; one that takes longer is listed as such


@dataclass(frozen=True)
class Peer:
    title: str
    package: str | None  # whose version is shown
    how: str
    threads: tuple = (1, 1)  # of PyTorch in a process, by work
    launch: tuple = ()  # between Python and the program
    own_torch: bool = False  # needs no PyTorch


PEER = {
    "fedgenie": Peer("FedGenie", None, "one process, two threads"),
    "pytorch": Peer("plain PyTorch loop", "torch", "two processes of one thread"),
    "fedjax": Peer("FedJAX", "fedjax", "one process, threads of XLA", own_torch=True),
    "pfl": Peer(
        "pfl",
        "pfl",
        "two processes of one thread, torchrun",
        launch=("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
    ),
    "fluke": Peer("fluke", "fluke-fl", "one process", threads=(1, 2)),
    "flgo": Peer("FLGo", "flgo", "one process", threads=(1, 2)),
    "appfl": Peer("APPFL", "appfl", "simulator in virtual time: one process", threads=(1, 2)),
    "flower": Peer("Flower", "flwr", "simulation engine: two Ray actors of one thread"),
}


class Failed(Exception):
    pass


def checked(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines or [f"exit code {done.returncode}"]
        raise Failed(errors[-1].strip())
    return done.stdout


def install(name, envs, python):
    """Python of the environment, which is made unless it has these versions already."""
    pins, env = PEERS / f"{name}.txt", envs / name
    program, mark = env / "bin" / "python", env / "installed.txt"
    if mark.is_file() and mark.read_text() == pins.read_text():
        return program
    print(f"installing {name} …", file=sys.stderr, flush=True)
    checked([python, "-m", "venv", "--clear", env])
    # The pins are complete, but for PyTorch's, whose own requirements differ from index to index.
    complete = [] if name == "torch" else ["--no-deps"]
    checked([program, "-m", "pip", "install", "--no-cache-dir", *complete, "-r", pins])
    if name != "torch" and not PEER[name].own_torch:
        site = "import sysconfig; print(sysconfig.get_path('purelib'))"
        own, shared = (checked([at, "-c", site]).strip() for at in (program, envs / "torch" / "bin" / "python"))
        (Path(own) / "zz_torch.pth").write_text(shared + "\n")
    mark.write_text(pins.read_text())
    return program


def version(name):
    wanted = PEER[name].package
    pins = PEERS / ("torch.txt" if name == "pytorch" else f"{name}.txt")
    for line in pins.read_text().splitlines():
        package, _, number = line.partition("==")
        if package.lower() == wanted:
            return number.strip()
    sys.exit(f"{pins} does not pin {wanted}")


class Memory(threading.Thread):
    """Most memory of a process and those it started: shared pages are divided among those that share them."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.ended = pid, 0, threading.Event()
        self.start()

    def run(self):
        pause = 0.02
        while not self.ended.wait(pause):
            begin = time.perf_counter()
            self.peak = max(self.peak, sum(map(self.resident, self.tree())))
            pause = max(0.02, 50 * (time.perf_counter() - begin))  # takes 2 % of one core at most

    def tree(self):
        parents = {}
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                try:
                    stat = Path(entry.path, "stat").read_text()
                except OSError:
                    continue
                parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
        found = [self.pid]
        for pid in found:
            found += parents.get(pid, [])
        return found

    @staticmethod
    def resident(pid):
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
        except OSError:
            pass
        return 0


def busy():
    """Seconds that all processors were busy, and those of programs started here."""
    fields = [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    # User, nice, system, interrupts, and what the host took away.
    return sum(fields[k] for k in (0, 1, 2, 5, 6, 7)) / os.sysconf("SC_CLK_TCK"), own.ru_utime + own.ru_stime


def reap():
    """Ends the wait of processes whose parents have ended, so that their time counts as of programs started here."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def others(before, after, seconds):
    """The share of the processors that programs not started here had."""
    everyone, own = (two - one for one, two in zip(before, after))
    return max(0, everyone - own) / (seconds * os.cpu_count())


def wait_for_quiet(patience):
    """Until other programs leave the processors alone, but no longer than so many seconds."""
    end = time.perf_counter() + patience
    while time.perf_counter() < end:
        before = busy()
        time.sleep(1)
        if others(before, busy(), 1) < QUIET:
            return


def wait(process, ended):
    """Waits for a process; tells its exit code and its own most bytes of memory."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    ended.update(code=process.returncode, memory=used.ru_maxrss * 1024)


def program(command, watch=False, **more):
    """Output, seconds, others' share and peak memory (if `watch`) of a program in a session of its own."""
    wait_for_quiet(PATIENCE)
    before = busy()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command], stdout=out, stderr=errors, start_new_session=True, **more
        )
        memory = Memory(process.pid) if watch else None
        waiting = threading.Thread(target=wait, args=(process, ended := {}), daemon=True)
        waiting.start()
        waiting.join(LIMIT)
        seconds = time.perf_counter() - begin
        if memory:
            memory.ended.set()
            memory.join()
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what it left behind would take the next one's time
        except ProcessLookupError:
            pass
        is_late = not ended
        waiting.join()
        reap()
        if is_late:
            raise Failed(f"not done after {LIMIT} s")
        share = others(before, busy(), time.perf_counter() - begin)
        out.seek(0)
        errors.seek(0)
        text, error = out.read(), errors.read()
    if code := ended["code"]:
        lines = [line for line in error.splitlines() if "Error" in line] or error.splitlines() or [f"exit code {code}"]
        raise Failed(lines[0].strip() if "torch.distributed" in error else lines[-1].strip())
    # A program of one process may reach its peak between two looks at it.
    return text, seconds, share, max(memory.peak, ended["memory"]) if memory else 0


def run_fedgenie(work, options, watch):
    """A run, and one of other length, by whose difference the start, the data and the end go out.

    LR-MNIST: (1,100 rounds, 55 tests) - (100 rounds, 5 tests), over ten. SimpleCNN: (five rounds - one), by 5/4.
    """
    scenario = ROOT / "scenarios/compare/lr_mnist.toml" if work == "lr-mnist" else PEERS / "simple_cnn.toml"

    def once(rounds, watch=False):
        with tempfile.TemporaryDirectory() as out:
            command = [options.fedgenie, "run", scenario, "--data", options.data, "--out", Path(out) / "run"]
            command += ["--set", f"stop.rounds={rounds}", "--threads", 2, "--quiet", "--json"]
            if work == "simple-cnn":
                command += ["--set", f"population.clients={options.clients}"]
            return program(command, watch)

    text, whole, share, memory = once(100 if work == "lr-mnist" else 5, watch)
    _, other, share_other, _ = once(1_100 if work == "lr-mnist" else 1)
    run = json.loads(text)["runs"][0]
    final = run["final"]
    if run["arrived"] != TRAININGS[work]:
        raise Failed(f"trained {run['arrived']:,} clients, not {TRAININGS[work]:,}")
    if work == "lr-mnist":
        training = (other - whole) / 10
    else:
        training = (whole - other) * 5 / 4
    found = {"training": training, "loss": final["test_loss"], "accuracy": final["test_accuracy"]}
    return found | {"whole": whole, "memory": memory, "others": max(share, share_other)}


def run_peer(name, work, options, pythons, watch):
    peer = PEER[name]
    threads = str(peer.threads[list(WORKS).index(work)])
    command = [pythons[name], *peer.launch, PEERS / f"run_{name}.py", work, options.dealt, threads]
    environment = os.environ | {"OMP_NUM_THREADS": threads, "PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "0"}
    if peer.own_torch:
        del environment["OMP_NUM_THREADS"]
    with tempfile.TemporaryDirectory() as folder:  # some leave files where they run
        text, whole, share, memory = program(command, watch, env=environment, cwd=folder)
    lines = [line for line in text.splitlines() if line.startswith('{"training"')]
    if not lines:
        raise Failed("ended without a result")
    found = json.loads(lines[-1])
    if found["trainings"] != TRAININGS[work]:
        raise Failed(f"trained {found['trainings']:,} clients, not {TRAININGS[work]:,}")
    return found | {"whole": whole, "memory": memory, "others": share}


def run(name, work, options, pythons, watch):
    """One that other programs disturbed is done again, twice at most; then the least disturbed counts."""
    tries = []
    most = 1 if options.any_load else 3
    while len(tries) < most and (not tries or tries[-1]["others"] > QUIET):
        if name == "fedgenie":
            tries.append(run_fedgenie(work, options, watch))
        else:
            tries.append(run_peer(name, work, options, pythons, watch))
    return min(tries, key=lambda found: found["others"])


def measure(options):
    """Repetitions by work and peer, and what could not be measured."""
    pythons, failures = {}, {}
    torch = install("torch", options.envs, options.python)
    for name in options.peers:
        if name == "fedgenie":
            continue
        try:
            pythons[name] = torch if name == "pytorch" else install(name, options.envs, options.python)
        except Failed as error:
            failures[name] = f"not installed: {error}"
    options.dealt = options.envs / "data"
    checked([torch, PEERS / "work.py", options.data, options.dealt])
    count = "import numpy, sys; print(len(numpy.load(sys.argv[1], mmap_mode='r')))"
    options.clients = int(checked([torch, "-c", count, options.dealt / "simple-cnn/labels.npy"]))
    found = {work: {name: [] for name in options.peers} for work in options.works}
    measured = {
        "found": found,
        "failures": failures,
        "clients": options.clients,
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "python": checked([torch, "-c", "import platform; print(platform.python_version())"]).strip(),
        "fedgenie": checked([options.fedgenie, "--version"]).split()[-1] if "fedgenie" in options.peers else None,
    }
    able = [(work, name) for work in options.works for name in options.peers if name == "fedgenie" or name in pythons]
    for turn in range(options.repetitions):
        for work, name in list(able):
            try:
                last = run(name, work, options, pythons, turn == 0)
            except Failed as error:
                able.remove((work, name))
                failures[name] = "; ".join([*filter(None, [failures.get(name)]), f"{WORKS[work]}: {error}"])
                print(f"{name}: {failures[name]}", file=sys.stderr, flush=True)
                continue
            found[work][name].append(last)
            print(f"{work} {turn} {name}: {json.dumps(last)}", file=sys.stderr, flush=True)
            if options.save:  # also on the way, for those who lose patience
                options.save.write_text(json.dumps(measured) + "\n")
    return measured


def machine():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.partition(':')[2].strip()}, {os.cpu_count()} cores"
    return f"{platform.machine()}, {os.cpu_count()} cores"


def summary(runs):
    """Medians over the repetitions; memory was watched in the first."""
    found = {key: statistics.median(run[key] for run in runs) for key in ("training", "whole", "loss", "accuracy")}
    found["least"], found["most"] = (pick(run["training"] for run in runs) for pick in (min, max))
    return found | {"memory": runs[0]["memory"]}


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def section(measured):
    rows = measured["found"]
    runs = [run for peers in rows.values() for found in peers.values() for run in found]
    repetitions = min(len(found) for peers in rows.values() for found in peers.values() if found)
    shares = [100 * run["others"] for run in runs]
    lines = [HEADING, ""]
    lines += [
        f"`python validation/compare/peers.py --data FOLDER --envs FOLDER --fedgenie PROGRAM`: {measured['machine']}, "
        f"{measured['date']}, Python {measured['python']}, FedGenie {measured['fedgenie'] or '–'}. Medians of "
        f"{repetitions} repetitions in which the programs take turns. "
        f"Other programs had {statistics.median(shares):.0f} % of the processors meanwhile (median of the runs; "
        f"{max(shares):.0f} % at most); a run in which they had more than {100 * QUIET:.0f} % was done again, twice at "
        "most.",
        "",
        "The *training* is from the start of the first round to the end of the last: without imports, reading of data, "
        "starting of workers, but with all that a simulator does in a round. The *whole program* is from its start to "
        "its end. *Memory* is the most of a program and all the processes it started (shared pages counted once). "
        "Every program trains as many clients on as many examples, with the same batches, epochs and learning rate; "
        "they draw their own cohorts and orders, so that they end near the same test loss, not in it. FedGenie's "
        "training is the difference of two whole programs: of 1,100 rounds and 100, over ten (LR-MNIST); of five "
        "rounds and one, by 5/4 (SimpleCNN). FedJAX compiles in its first round, which is in its training.",
        "",
        "![Seconds of training](peers.svg)",
        "",
    ]
    for work, peers in rows.items():
        done = {name: summary(runs) for name, runs in peers.items() if runs}
        ours = done.get("fedgenie")
        about = (
            "softmax regression, 1,000 clients of 60 images, 10 in each of 100 rounds, a test after every 20th"
            if work == "lr-mnist"
            else f"{measured['clients']:,} clients of 50 images, 50 in each of 5 rounds: 250 client trainings; the "
            "test after the last is not in the training"
        )
        lines += [f"{WORKS[work]}: {about}.", ""]
        columns = ["", "version", "how", "training [s]", "least–most", "FedGenie takes", "whole program [s]"]
        columns += ["memory [MB]", "test loss", "accuracy"]
        lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        for name, row in sorted(done.items(), key=lambda item: item[1]["training"]):
            peer = PEER[name]
            own = measured["fedgenie"] if name == "fedgenie" else version(name)
            ratio = "" if name == "fedgenie" or not ours else f"1/{number(row['training'] / ours['training'])}"
            how = peer.how
            if peer.threads != (1, 1):
                how += f", {('one thread', 'two threads')[peer.threads[list(WORKS).index(work)] - 1]} of PyTorch"
            cells = [peer.title, own, how, number(row["training"])]
            cells += [f"{number(row['least'])}–{number(row['most'])}", ratio, number(row["whole"])]
            cells += [f"{row['memory'] / 1e6:.0f}", f"{row['loss']:.4f}", f"{row['accuracy']:.4f}"]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    if measured["failures"]:
        lines += ["Not measured:", ""]
        for name, reason in measured["failures"].items():
            lines.append(f"- {PEER[name].title} {version(name)}: {reason}")
        lines.append("")
    return "\n".join(lines)


def write_section(text):
    """Puts the section in the place of that of before, or at the end."""
    old = RESULTS.read_text() if RESULTS.is_file() else "# Results of comparisons\n\n"
    head, found, tail = old.partition(HEADING + "\n")
    following = tail.find("\n## ")
    rest = tail[following + 1 :] if found and following >= 0 else ""
    RESULTS.write_text(head.rstrip("\n") + "\n\n" + text.rstrip("\n") + "\n" + (f"\n{rest}" if rest else ""))


def figure(measured):
    """Bars of the training's seconds on a logarithmic axis, a panel for each work."""
    left, right, bar, gap, width = 150, 70, 18, 8, 720
    parts, top = [], 16
    for work, peers in measured["found"].items():
        done = {name: summary(runs)["training"] for name, runs in peers.items() if runs}
        low, high = (math.log10(pick(done.values())) for pick in (min, max))
        low, high = math.floor(low - 0.1), math.ceil(high)
        scale = (width - left - right) / (high - low)
        parts.append(f'<text x="{left}" y="{top + 4}" class="title">{WORKS[work]}: seconds of training</text>')
        top += 16
        bottom = top + len(done) * (bar + gap)
        for power in range(low, high + 1):
            x = left + (power - low) * scale
            parts.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" class="grid"/>')
            parts.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{10**power:g}</text>')
        for k, (name, seconds) in enumerate(sorted(done.items(), key=lambda item: item[1])):
            y, length = top + k * (bar + gap) + gap / 2, (math.log10(seconds) - low) * scale
            kind = "ours" if name == "fedgenie" else "bar"
            parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{PEER[name].title}</text>')
            parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar}" class="{kind}"/>')
            parts.append(f'<text x="{left + length + 6:.1f}" y="{y + 13}">{number(seconds)}</text>')
        top = bottom + 44
    style = (
        "text{font:12px sans-serif;fill:#222}.title{font-weight:bold}.grid{stroke:#ddd}.bar{fill:#9ab}.ours{fill:#2a6}"
    )
    FIGURE.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top - 20}" width="{width}" '
        f'height="{top - 20}"><style>{style}</style><rect width="100%" height="100%" fill="#fff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder that holds fashion-mnist and cifar10")
    parser.add_argument("--envs", type=Path, help="folder for the environments and the dealt data; kept")
    parser.add_argument("--fedgenie", type=Path, help="the program; left out of the comparison if not given")
    parser.add_argument("--python", default=sys.executable, help="Python 3.11 of the environments")
    parser.add_argument("--works", default=",".join(WORKS), help="comma-separated; all by default")
    parser.add_argument("--peers", default=",".join(PEER), help="comma-separated; all by default")
    parser.add_argument("--repetitions", type=int, default=5, help="of each program")
    parser.add_argument("--any-load", action="store_true", help="do nothing again because other programs were busy")
    parser.add_argument("--save", type=Path, help="also write the measurements to this file")
    parser.add_argument("--load", type=Path, help="write table and figure from such a file, without measuring")
    parser.add_argument("--print", action="store_true", help=f"print the table instead of writing {RESULTS.name}")
    options = parser.parse_args()
    options.works, options.peers = options.works.split(","), options.peers.split(",")
    for chosen, there in ((options.works, WORKS), (options.peers, PEER)):
        if unknown := [name for name in chosen if name not in there]:
            parser.error(f"no such name: {', '.join(unknown)}; there are {', '.join(there)}")
    if options.repetitions < 1:
        parser.error("--repetitions is at least 1")
    if options.load:
        return options
    if not options.data or not options.envs:
        parser.error("--data and --envs are needed")
    found = checked([options.python, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]).strip()
    if found != "3.11":
        parser.error(f"{options.python} is Python {found}, the pinned versions are for 3.11: name one with --python")
    if options.fedgenie:
        options.fedgenie = options.fedgenie.resolve()
        if not options.fedgenie.is_file():
            parser.error(f"{options.fedgenie} is not there: cargo build --release, or name the program with --fedgenie")
    else:
        options.peers = [name for name in options.peers if name != "fedgenie"]
    options.data, options.envs = options.data.resolve(), options.envs.resolve()
    options.envs.mkdir(parents=True, exist_ok=True)
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the program under way is ended as well
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        measured = json.loads(options.load.read_text()) if options.load else measure(options)
    except Failed as error:
        sys.exit(str(error))
    if options.save:
        options.save.write_text(json.dumps(measured) + "\n")
    if options.print:
        print(section(measured))
    else:
        write_section(section(measured))
        figure(measured)


if __name__ == "__main__":
    main()
