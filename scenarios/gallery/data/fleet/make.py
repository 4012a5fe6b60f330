"""Draws the phones in this folder from published statistics and a fixed seed. Needs Python 3.9 or newer, nothing else: `python3 make.py`.

Each number of a phone is a quantile of a published distribution, so that few phones have its percentiles: phone k of n in a random order gets
the quantile (k + 1/2) / n. Times of intervals are drawn: longest first, where they meet no other, at hours as likely as the published share of
phones that are ready.
"""

import bisect
import pathlib
import random

HERE = pathlib.Path(__file__).resolve().parent
PHONES, DAYS, DAY = 120, 7, 86_400

# Percentiles of FLHetBench's 710 valid phones, its 978 training latencies above 0, and its 168 MobiPerf records.
SHARE_READY = [(0, 0), (0.05, 0.0002), (0.1, 0.0011), (0.25, 0.0126), (0.5, 0.0547), (0.75, 0.1307), (0.9, 0.2549), (0.95, 0.324), (0.98, 0.444), (0.99, 0.468), (1, 0.7844)]
PER_DAY = [(0, 0.15), (0.05, 0.2), (0.1, 0.4), (0.25, 1), (0.5, 2.667), (0.75, 5.667), (0.9, 9.017), (0.95, 11.67), (1, 30)]
BATCH_MS = [(0, 40), (0.05, 59.9), (0.25, 96), (0.5, 172), (0.75, 309), (0.95, 559), (1, 2_000)]
LINK_KBPS = [(0, 3_000), (0.05, 11_208), (0.25, 38_080), (0.5, 41_906), (0.75, 47_059), (0.95, 75_923), (1, 110_000)]
READY_BY_HOUR = [106, 117, 129, 135, 137, 134, 122, 111, 100, 89, 78, 69, 69, 65, 66, 70, 76, 80, 89, 77, 69, 73, 87, 98]


def quantile(table, p):
    for (low, below), (high, above) in zip(table, table[1:]):
        if p <= high:
            return below + (above - below) * (p - low) / (high - low)


def quantiles(rng, table, noisy_order=None):
    """A quantile for each phone. Phones are in a random order, or in that of other numbers with noise."""
    order = list(range(PHONES))
    if noisy_order:
        order.sort(key=lambda k: noisy_order[k] + rng.gauss(0, 0.15))
    else:
        rng.shuffle(order)
    values = [0.0] * PHONES
    for rank, k in enumerate(order):
        values[k] = quantile(table, (rank + 0.5) / PHONES)
    return values


def lengths(rng, seconds, count):
    """Whole seconds of the given sum, a few long ones among many short ones."""
    raw = [rng.lognormvariate(0, 2.2) for _ in range(count)]
    whole = [max(1, round(seconds * part / sum(raw))) for part in raw]
    whole[whole.index(max(whole))] += max(0, round(seconds) - sum(whole))
    return sorted(whole, reverse=True)


def place(rng, wanted):
    """Intervals that do not meet; those for which no place is found in 400 tries are left out."""
    weights = [hour ** 1.6 for hour in READY_BY_HOUR] * DAYS
    placed = []
    for length in wanted:
        for _ in range(400):
            middle = 3_600 * (rng.choices(range(24 * DAYS), weights)[0] + rng.random())
            start = int(middle - length / 2)
            end = start + length
            at = bisect.bisect(placed, (start, end))
            if start >= 0 and end <= DAYS * DAY and (at == 0 or placed[at - 1][1] < start) and (at == len(placed) or end < placed[at][0]):
                placed.insert(at, (start, end))
                break
    return placed


rng = random.Random("fleet")
shares = quantiles(rng, SHARE_READY)
counts = quantiles(rng, PER_DAY, noisy_order=[sorted(shares).index(share) / PHONES for share in shares])
batches, links = quantiles(rng, BATCH_MS), quantiles(rng, LINK_KBPS)
intervals, phones = ["phone,start_s,end_s\n"], ["phone,batch_ms,down_kbps,up_kbps\n"]
for k in range(PHONES):
    name = f"drawn-{k:03}"
    for start, end in place(rng, lengths(rng, shares[k] * DAYS * DAY, max(1, round(counts[k] * DAYS)))):
        intervals.append(f"{name},{start},{end}\n")
    phones.append(f"{name},{batches[k]:.1f},{links[k]:.0f},{links[k] / 4:.0f}\n")
(HERE / "intervals.csv").write_text("".join(intervals))
(HERE / "phones.csv").write_text("".join(phones))
