"""Times matrix factorisation of ratings in plain PyTorch, and FedGenie doing the same work in the same run.

    python pytorch_mf.py --bench

Of MovieLens-1M's shape: 6,040 users, 3,706 items, about 800,000 training ratings, 32 dimensions. Training is one epoch
of the triplets of 100 users at a time, each user from the same item table: PyTorch draws all negatives of a user in
bulk and takes its batches of 64 triplets by index, with plain SGD on the rows it touches. Evaluation ranks all items
for all users: PyTorch multiplies the tables, masks what users know, takes the best 20, and forms hit ratio and NDCG;
FedGenie forms AUC, hit ratio, NDCG, recall, precision and F1, with ties.
"""

import argparse
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
BENCH = ["cargo", "bench", "-p", "fedgenie-learning", "--bench", "recommendation"]
USERS, ITEMS, RATINGS, DIMENSIONS, BATCH, CUTOFF = 6_040, 3_706, 1_000_209, 32, 64, 20


def drawn():
    """Known and held-out items of each user, with the skew of drawn ratings."""
    generator = torch.Generator().manual_seed(1)
    weights = 1 / torch.arange(1, USERS + 1).float() ** 0.6
    counts = (weights / weights.sum() * RATINGS).long().clamp(20, ITEMS // 2)
    popular = 1 / torch.arange(1, ITEMS + 1).float() ** 0.8
    known, held_out = [], []
    for count in counts.tolist():
        items = torch.multinomial(popular, count, generator=generator)
        test = count // 5
        held_out.append(items[:test])
        known.append(items[test:])
    return known, held_out


def train_user(table, user, positives, rate=0.05):
    """An epoch of a user's triplets on copies of the rows that it touches; the user's row and the moved rows."""
    order = torch.randperm(len(positives))
    positives = positives[order]
    negatives = torch.randint(ITEMS, (len(positives),))
    rows, places = torch.unique(torch.cat([positives, negatives]), return_inverse=True)
    own, user = table[rows].clone(), user.clone()
    split = len(positives)
    for begin in range(0, split, BATCH):
        liked, other = places[begin : min(begin + BATCH, split)], places[split + begin : split + min(begin + BATCH, split)]
        one, two = own[liked], own[other]
        slope = -torch.sigmoid(-((one - two) @ user)) / len(liked)
        step = slope[:, None] * user
        change = (slope[:, None] * (one - two)).sum(0)
        own.index_add_(0, liked, step, alpha=-rate)
        own.index_add_(0, other, step, alpha=rate)
        user -= rate * change
    return user, rows, own


def training(known):
    table, users = torch.randn(ITEMS, DIMENSIONS) * 0.1, torch.randn(USERS, DIMENSIONS) * 0.1
    begin = time.perf_counter()
    for user in range(0, USERS, 12):
        train_user(table, users[user], known[user])
    triplets = sum(len(known[user]) for user in range(0, USERS, 12))
    return triplets / (time.perf_counter() - begin)


def evaluation(known, held_out):
    table, users = torch.randn(ITEMS, DIMENSIONS) * 0.1, torch.randn(USERS, DIMENSIONS) * 0.1
    rows = torch.cat([torch.full((len(items),), user) for user, items in enumerate(known)])
    columns = torch.cat(known)
    relevant = torch.zeros(USERS, ITEMS, dtype=torch.bool)
    for user, items in enumerate(held_out):
        relevant[user, items] = True
    discounts = 1 / torch.log2(torch.arange(CUTOFF) + 2.0)
    ideal = torch.cumsum(discounts, 0)
    begin = time.perf_counter()
    scores = users @ table.T
    scores[rows, columns] = -torch.inf
    best = torch.topk(scores, CUTOFF).indices
    hits = relevant.gather(1, best).float()
    counts = relevant.sum(1).clamp(1, CUTOFF)
    hit_ratio = (hits.sum(1) > 0).float().mean().item()
    ndcg = (hits @ discounts / ideal[counts - 1]).mean().item()
    seconds = time.perf_counter() - begin
    assert 0 <= ndcg <= hit_ratio <= 1
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", action="store_true", help="run FedGenie's benchmark too")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    torch.manual_seed(1)
    known, held_out = drawn()
    # A user's batches are too small for two threads; one process per thread is what PyTorch gains most from.
    torch.set_num_threads(1)
    rates = [options.threads * training(known) for _ in range(options.repetitions)]
    torch.set_num_threads(options.threads)
    evaluation(known, held_out)
    times = [evaluation(known, held_out) for _ in range(options.repetitions)]
    print(f"PyTorch {torch.__version__}, {options.threads} threads, best of {options.repetitions}")
    print(f"training, SGD, batch {BATCH}: {max(rates):.3g} triplets/s (median {statistics.median(rates):.3g}),")
    print(f"  as {options.threads} processes that do not slow each other down")
    print(f"evaluation of {USERS} users: {min(times):.3f} s (median {statistics.median(times):.3f})")
    if not options.bench:
        return
    done = subprocess.run(BENCH, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.stdout)
    print("\nFedGenie")
    print(done.stdout)
    own = float(re.search(rf"sgd, batch {BATCH}: (\S+) triplets/s", done.stdout)[1])
    seconds = float(re.search(r"evaluation of .*: (\S+) s", done.stdout)[1])
    print(f"FedGenie is {own / max(rates):.1f} × as fast in training, {min(times) / seconds:.1f} × in evaluation")


if __name__ == "__main__":
    main()
