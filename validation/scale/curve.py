"""Cost over size: clients, parameters, batch, rounds, and one or two threads.

    python3 curve.py --fedgenie ../../target/release/fedgenie

writes RESULTS.md and the figures beside it. A round's time is the difference between two numbers of rounds, so that building the world does
not count; all runs are timed from outside, as a user meets them. Memory is the largest resident size. Each number is the median of
--repetitions. Exponents are of least squares on logarithms, with Student's 95 % interval.
"""

import argparse
import math
import os
import pathlib
import platform
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SCENARIOS = HERE.parent.parent / "scenarios" / "scale"

# Rounds without training, by number of clients.
FLEETS = [
    ("on_off_random.toml", "random, 1,000 per round", "protocol.synchronous.cohort", 1000, (20, 220)),
    ("on_off_bsfl.toml", "BSFL, 1,000 per round", "protocol.synchronous.cohort", 1000, (5, 25)),
    ("buffered.toml", "buffered, 10,000 at work, a round is 1,000 updates", "protocol.buffered.concurrency", 10_000, (20, 220)),
]

# A round trains 16 of 100 clients, on 60 images each.
TRAINING = """
name = "scale-training"
seeds = 1
[stop]
rounds = 10
[population]
clients = 100
[population.latency]
download = { constant = "25 ms" }
compute = { uniform = ["0.1 s", "1 s"] }
upload = { constant = "25 ms" }
[task.classification]
data = { synthetic = { train = 6000, test = 1000 } }
model = { mlp = { hidden = [64] } }
partition = "iid"
[training]
batch = 10
optimizer = { sgd = { lr = 0.01 } }
[evaluate]
every = 1_000_000
[protocol.synchronous]
cohort = 16
[policy.random]
"""
WIDTHS = [16, 32, 64, 128, 256, 512, 1024]
BATCHES = [1, 2, 4, 8, 16, 32]
ROUNDS = [50, 100, 200, 400, 800]
THREADS = [1, 2]

# Student's quantile of 0.975 by degrees of freedom.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]
COLOURS = ["#1f5fa8", "#c2571a", "#2b7d4f"]


class Laboratory:
    def __init__(self, fedgenie, repetitions):
        self.fedgenie, self.repetitions = fedgenie, repetitions

    def once(self, scenario, sets, threads):
        words = [self.fedgenie, "run", str(scenario), "--quiet", "--threads", str(threads)]
        for key, value in sets.items():
            words += ["--set", f"{key}={value}"]
        began = time.perf_counter()
        # Warnings are about cohorts that few clients fill.
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, words
        return time.perf_counter() - began, usage.ru_maxrss / 1024

    def median(self, scenario, sets, threads):
        """Seconds and MiB of a whole command."""
        found = [self.once(scenario, sets, threads) for _ in range(self.repetitions)]
        return tuple(statistics.median(column) for column in zip(*found))

    def per_round(self, scenario, sets, threads, rounds):
        """Seconds of the first rounds with all that comes before, milliseconds of a later round, and MiB."""
        few, many = rounds
        short, _ = self.median(scenario, {**sets, "stop.rounds": few}, threads)
        long, memory = self.median(scenario, {**sets, "stop.rounds": many}, threads)
        return short, max(long - short, 1e-6) / (many - few) * 1000, memory


def fit(points):
    """The power of the size that the cost grows with, half of its interval, and the factor."""
    logs = [(math.log(size), math.log(cost)) for size, cost in points]
    count = len(logs)
    mean_x, mean_y = (statistics.fmean(column) for column in zip(*logs))
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    power = sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
    level = mean_y - power * mean_x
    residual = sum((y - level - power * x) ** 2 for x, y in logs)
    error = math.sqrt(residual / (count - 2) / spread)
    return power, STUDENT[count - 3] * error, math.exp(level)


def exponent(points):
    power, half, _ = fit(points)
    return f"{power:.2f} ± {half:.2f}"


def figure(path, title, horizontal, vertical, series):
    """Points and fitted lines on logarithmic axes. A series is a name, its points, and the size from which it is fitted."""
    width, height, left, right, top, bottom = 640, 400, 70, 20, 40, 110
    points = [point for _, points, _ in series for point in points]

    def ends(values):
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return low, max(high, low + 1)

    (x_low, x_high), (y_low, y_high) = ends([x for x, _ in points]), ends([y for _, y in points])
    at_x = lambda x: left + (math.log10(x) - x_low) / (x_high - x_low) * (width - left - right)
    at_y = lambda y: height - bottom - (math.log10(y) - y_low) / (y_high - y_low) * (height - top - bottom)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="24" font-size="15">{title}</text>',
    ]
    power = lambda exponent: f'10<tspan dy="-5" font-size="9">{exponent}</tspan>'
    for tick in range(x_low, x_high + 1):
        x = at_x(10**tick)
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{height - bottom}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{height - bottom + 18}" text-anchor="middle">{power(tick)}</text>')
    for tick in range(y_low, y_high + 1):
        y = at_y(10**tick)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - right}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{power(tick)}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - bottom + 38}" text-anchor="middle">{horizontal}</text>')
    middle = (top + height - bottom) / 2
    out.append(f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">{vertical}</text>')
    for place, (name, points, least) in enumerate(series):
        colour = COLOURS[place]
        fitted = [point for point in points if point[0] >= least]
        raised, half, factor = fit(fitted)
        line = " ".join(f"{at_x(x):.1f},{at_y(factor * x**raised):.1f}" for x in (fitted[0][0], fitted[-1][0]))
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out += [f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
        y = height - bottom + 58 + 17 * place
        out.append(f'<circle cx="{left + 4}" cy="{y - 4}" r="3.5" fill="{colour}"/>')
        out.append(f'<text x="{left + 16}" y="{y}">{name}: exponent {raised:.2f} ± {half:.2f}</text>')
    path.write_text("\n".join([*out, "</svg>", ""]))


def table(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def of_clients(laboratory, largest):
    rows, rounds, memory, fits = [], [], [], []
    for scenario, name, key, most, ends in FLEETS:
        times, sizes = [], []
        halves = [3 * 10**power for power in range(5, largest)]
        for clients in sorted([10**power for power in range(3, largest + 1)] + halves):
            sets = {"population.clients": clients, key: min(most, clients // 4)}
            short, per_round, resident = laboratory.per_round(SCENARIOS / scenario, sets, 1, ends)
            rows.append([name, f"{clients:,}", f"{short:.2f}", f"{per_round:.2f}", f"{resident:.0f}"])
            times.append((clients, per_round))
            sizes.append((clients, resident))
            print(rows[-1], flush=True)
        rounds.append((name, times, 1e5))
        memory.append((name, sizes, 1e5))
        fitted = lambda points: exponent([point for point in points if point[0] >= 1e5])
        fits.append([name, fitted(times), fitted(sizes)])
    figure(HERE / "clients.svg", "A round without training", "clients", "milliseconds", rounds)
    figure(HERE / "memory.svg", "Memory without training", "clients", "MiB", memory)
    return rows, fits


def over(laboratory, scenario, sizes, change, rounds):
    """Milliseconds of a round by size and threads."""
    rows, series = [], []
    for threads in THREADS:
        points = []
        for size, sets in change(sizes):
            _, per_round, resident = laboratory.per_round(scenario, sets, threads, rounds)
            points.append((size, per_round))
            rows.append([size, threads, f"{per_round:.2f}", f"{resident:.0f}"])
            print(rows[-1], flush=True)
        series.append((f"{threads} thread{'s' if threads > 1 else ''}", points, 0))
    return rows, series


def speedups(series):
    (_, one, _), (_, two, _) = series
    return ", ".join(f"{alone / both:.2f}" for (_, alone), (_, both) in zip(one, two))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fedgenie", required=True)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--largest", type=int, default=7, help="the largest number of clients is this power of ten")
    words = parser.parse_args()
    assert words.largest >= 7, "exponents over clients are fitted from 10^5 on, to three points at least"
    laboratory = Laboratory(words.fedgenie, words.repetitions)
    load = [os.getloadavg()[0]]
    clients, fits = of_clients(laboratory, words.largest)
    with tempfile.TemporaryDirectory() as folder:
        scenario = pathlib.Path(folder) / "training.toml"
        scenario.write_text(TRAINING)
        # 28 × 28 inputs, ten classes.
        parameters = lambda width: (784 + 1) * width + (width + 1) * 10
        widths = lambda sizes: [(parameters(width), {"task.classification.model.mlp.hidden": [width]}) for width in sizes]
        batches = lambda sizes: [(batch, {"training.batch": batch}) for batch in sizes]
        of_parameters = over(laboratory, scenario, WIDTHS, widths, (5, 45))
        of_batch = over(laboratory, scenario, BATCHES, batches, (5, 105))
        whole, of_rounds = [], []
        for threads in THREADS:
            points = [(rounds, laboratory.median(scenario, {"stop.rounds": rounds}, threads)[0]) for rounds in ROUNDS]
            whole += [[rounds, threads, f"{seconds:.2f}"] for rounds, seconds in points]
            of_rounds.append((f"{threads} thread{'s' if threads > 1 else ''}", points, 0))
    figure(HERE / "parameters.svg", "A round of 16 clients, 60 images each", "parameters", "milliseconds", of_parameters[1])
    figure(HERE / "batch.svg", "A round of 16 clients, 60 images each", "images in a batch", "milliseconds", of_batch[1])
    figure(HERE / "rounds.svg", "A whole command", "rounds", "seconds", of_rounds)
    powers = lambda series: [exponent(points) for _, points, _ in series]
    trained = [
        ["a round over parameters", *powers(of_parameters[1]), speedups(of_parameters[1])],
        ["a round over the batch", *powers(of_batch[1]), speedups(of_batch[1])],
        ["a command over rounds", *powers(of_rounds), speedups(of_rounds)],
    ]
    load.append(os.getloadavg()[0])
    processor = platform.processor() or platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []:
        if line.startswith("model name"):
            processor = line.split(": ", 1)[1]
            break
    text = f"""# Cost over size

`python3 curve.py --fedgenie ../../target/release/fedgenie --repetitions {words.repetitions}` on {os.cpu_count()} cores of {processor}, {time.strftime("%Y-%m-%d")}; medians of
{words.repetitions}. Load average at the beginning {load[0]:.1f}, at the end {load[1]:.1f}; about 1 to 2 of it is the measurement itself, and what is
more are other programs, which blur these numbers. `fedgenie run --dry-run` measures a scenario of your own on your machine.

An exponent `p` says that cost grows like the p-th power of the size: with 1, twice the size costs twice as much. It is the slope of least
squares on logarithms, with Student's 95 % interval; where the points bend, it is a summary of them and no law.

## Clients, without training

One thread. With 10³ clients 250 are selected (kept at work), with 10⁴ 1,000 (2,500); from 10⁵ on the cohort is the same, so that
these rows compare, and exponents are fitted to them.

![Milliseconds of a round over clients](clients.svg)

![MiB over clients](memory.svg)

{table(["scenario", "exponent of a round", "exponent of memory"], fits)}
{table(["scenario", "clients", "first rounds [s]", "a round [ms]", "resident [MiB]"], clients)}
Random selection looks at as many devices as it takes to find 1,000 that are there, about 10,700, whatever the number of clients; what
grows from 10⁵ on is the time to fetch them from memory. BSFL reads what it knows of every device: its round grows with the number of
clients. With few rounds most devices are asked about for the first time; the benchmark `cargo bench --bench scale` runs longer.

## Parameters, batch, rounds, with training

A multilayer perceptron with one hidden layer on drawn images of 28 × 28, 16 clients a round with 60 images each, one epoch in batches of
10, one evaluation at the end; 64 hidden units where the width is not what varies. A run alone spreads its clients over the threads.

![Milliseconds of a round over parameters](parameters.svg)

![Milliseconds of a round over images in a batch](batch.svg)

![Seconds of a command over rounds](rounds.svg)

{table(["cost", "exponent, 1 thread", "exponent, 2 threads", "gain of the second thread, by size"], trained)}
{table(["parameters", "threads", "a round [ms]", "resident [MiB]"], of_parameters[0])}
{table(["images in a batch", "threads", "a round [ms]", "resident [MiB]"], of_batch[0])}
{table(["rounds", "threads", "whole command [s]"], whole)}"""
    (HERE / "RESULTS.md").write_text(text.rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
