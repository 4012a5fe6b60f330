"""The multimodal recommendation model in PyTorch beside FedGenie, in one run on the same processors.

    python validation/compare/pytorch_dmrl.py
    python validation/compare/pytorch_dmrl.py --bench      # also FedGenie's, in turns, and the ratios

MovieLens-100K's shape: 943 users, 1,682 items with 64 features of text, 70,000 training ratings at eight clients (exponential
profile, index 0.0146), 20,000 for testing. One epoch of all clients: batches of 128 pairs with 4 negatives, hinge of margin 1, distance
correlation over channels and pairs of factors, dropout 0.1, AdamW 1e-3 with decay 0.01 over all parameters. PyTorch draws negatives in
bulk and is vectorised over the batch; it runs in two processes of one thread and in one of two, and the faster counts. Evaluation:
scores of all pairs of users and items, item projections and the items' part of the attention worked out once; AUC, and HR, NDCG,
recall, precision and F1 at 10 and 50, per user, in blocks of users.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

from models import F, torch
from workers import Workers

ROOT = Path(__file__).resolve().parents[2]
BENCH = "cargo bench -p fedgenie-learning --bench dmrl -- --json"
USERS, ITEMS, FEATURES, TRAIN, TEST = 943, 1_682, 64, 70_000, 20_000
DIM, FACTORS, HIDDEN, ATTENTION = 64, 4, 128, 16
NEGATIVES, MARGIN, DISENTANGLE, DROPOUT, BATCH = 4, 1.0, 0.01, 0.1, 128
CUTOFFS = (10, 50)
nn = torch.nn


class Dmrl(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features = features
        self.users = nn.Embedding(USERS, DIM)
        self.items = nn.Embedding(ITEMS, DIM)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.1)
        self.text = nn.ModuleList([nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, DIM)])
        self.attention = nn.ModuleList([nn.Linear(3 * DIM // FACTORS, ATTENTION), nn.Linear(ATTENTION, 3)])
        for layer in (*self.text, *self.attention):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def of_items(self, ids):
        """Id and text of items: … × channel × factor × dimension."""
        hidden = F.dropout(F.leaky_relu(self.text[0](self.features[ids])), DROPOUT, self.training)
        text = F.leaky_relu(self.text[1](hidden))
        return torch.stack([self.items(ids), text], -2).unflatten(-1, (FACTORS, -1))

    def split(self):
        """The attention's first layer, by user, id and text."""
        return self.attention[0].weight.split(DIM // FACTORS, 1)

    def item_part(self, channels):
        _, of_id, of_text = self.split()
        return channels[..., 0, :, :] @ of_id.T + channels[..., 1, :, :] @ of_text.T

    def score(self, user, user_part, channels, item_part):
        shares = self.attention[1](torch.tanh(user_part + item_part)).softmax(-1)[..., 1:]
        products = (user.unsqueeze(-3) * channels).sum(-1).transpose(-1, -2)
        return (shares * F.gelu(products)).sum((-1, -2))

    def forward(self, users, items):
        """Scores of users with several items each, and the channels of both."""
        user = self.users(users).unflatten(-1, (FACTORS, -1))
        part = user @ self.split()[0].T + self.attention[0].bias
        channels = self.of_items(items)
        return self.score(user[:, None], part[:, None], channels, self.item_part(channels)), user, channels


PAIRS = torch.triu_indices(FACTORS, FACTORS, 1)


def distance_correlation(channels):
    """Mean over channels and pairs of factors; `channels` is channel × factor × row × dimension."""
    squares = channels.square().sum(-1)
    products = channels @ channels.transpose(-1, -2)
    distances = (squares[..., :, None] + squares[..., None, :] - 2 * products).clamp_min(0).add(1e-8).sqrt()
    rows = distances.mean(-1, keepdim=True)
    centred = (distances - rows - rows.transpose(-1, -2) + rows.mean(-2, keepdim=True)).flatten(-2)
    covariance = (centred @ centred.transpose(-1, -2) / centred.shape[-1]).clamp_min(0).add(1e-8).sqrt()
    own = covariance.diagonal(dim1=-2, dim2=-1)
    x, y = PAIRS
    return (covariance[:, x, y] / (own[:, x] * own[:, y]).sqrt()).mean()


class Worker:
    """Trains the clients of one process; evaluates for all."""

    def __init__(self, seed, threads, clients, features, lists, relevant):
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        self.model = Dmrl(features)
        self.start = [value.detach().clone() for value in self.model.parameters()]
        self.clients, self.lists, self.relevant = clients, lists, relevant

    def __call__(self, work):
        return self.train() if work == "train" else self.evaluate()

    def train(self):
        self.model.train()
        for users, items in self.clients:
            with torch.no_grad():
                for value, start in zip(self.model.parameters(), self.start):
                    value.copy_(start)
            optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
            order = torch.randperm(len(users))
            users, items = users[order], items[order]
            # Uniform over the items that are not known: what hits a known one is drawn again.
            negatives = torch.randint(ITEMS, (len(users), NEGATIVES))
            known = torch.zeros(USERS, ITEMS, dtype=torch.bool)
            known[users, items] = True
            while (hit := known[users[:, None], negatives]).any():
                negatives[hit] = torch.randint(ITEMS, (int(hit.sum()),))
            items = torch.cat([items[:, None], negatives], 1)
            for user, item in zip(users.split(BATCH), items.split(BATCH)):
                optimizer.zero_grad(set_to_none=True)
                scores, own, channels = self.model(user, item)
                hinge = (MARGIN - scores[:, :1] + scores[:, 1:]).clamp_min(0).mean()
                rows = torch.cat([own[:, None], channels[:, 0]], 1).permute(1, 2, 0, 3)
                (hinge + DISENTANGLE * distance_correlation(rows)).backward()
                optimizer.step()

    @torch.inference_mode()
    def evaluate(self):
        model = self.model.eval()
        channels = model.of_items(torch.arange(ITEMS))
        item_part = model.item_part(channels)
        user = model.users.weight.unflatten(-1, (FACTORS, -1))
        part = user @ model.split()[0].T + model.attention[0].bias
        discounts = 1 / torch.log2(torch.arange(2, max(CUTOFFS) + 2, dtype=torch.float64))
        sums = torch.zeros(1 + 5 * len(CUTOFFS), dtype=torch.float64)
        for block in torch.arange(USERS).split(32):
            scores = model.score(user[block][:, None], part[block][:, None], channels[None], item_part[None])
            excluded, relevant = self.lists[block], self.relevant[block]
            scores = scores.masked_fill(excluded, -torch.inf)
            hits = relevant.gather(1, scores.argsort(1, descending=True)).double()
            count = relevant.sum(1).double()
            candidates = (~excluded).sum(1)
            # Places of relevant items give the AUC.
            places = (hits * torch.arange(1, ITEMS + 1)).sum(1)
            below = count * candidates - places - count * (count - 1) / 2
            values = [below / (count * (candidates - count))]
            for cutoff in CUTOFFS:
                top = hits[:, :cutoff]
                found = top.sum(1)
                ideal = discounts.cumsum(0)[count.clamp_max(cutoff).long() - 1]
                values += [(found > 0).double(), (top * discounts[:cutoff]).sum(1) / ideal]
                values += [found / count, found / cutoff, 2 * found / (cutoff + count)]
            sums += torch.stack(values).sum(1)
        return (sums / USERS).tolist()


def shares(count):
    weights = [0.0146 ** (k / 7) for k in range(8)]
    return [round(count * weight / sum(weights)) for weight in weights]


def data():
    """Skewed ratings, as many as there are; each user has test ratings."""
    generator = torch.Generator().manual_seed(1)
    weights = torch.exp(torch.randn(ITEMS, generator=generator))
    of_user = torch.exp(0.8 * torch.randn(USERS, generator=generator))
    counts = (of_user / of_user.sum() * (TRAIN + TEST)).long().clamp(10, ITEMS // 2)
    train, excluded, relevant = [], torch.zeros(USERS, ITEMS, dtype=torch.bool), torch.zeros(USERS, ITEMS, dtype=torch.bool)
    for user in range(USERS):
        items = torch.multinomial(weights, int(counts[user]), generator=generator)
        held = max(1, len(items) * 2 // 9)
        relevant[user, items[:held]] = True
        excluded[user, items[held:]] = True
        train.append(torch.stack([torch.full_like(items[held:], user), items[held:]], 1))
    train = torch.cat(train)
    while len(train) < TRAIN:
        train = torch.cat([train, train[: TRAIN - len(train)]])
    train = train[torch.randperm(len(train), generator=generator)[:TRAIN]]
    clients = [(part[:, 0], part[:, 1]) for part in train.split(shares(len(train)))][:8]
    return torch.randn(ITEMS, FEATURES, generator=generator), clients, excluded, relevant


def measure(work, layout, material, repetitions):
    """Seconds of each repetition, after one that is not counted; `layout` is threads, and the clients of each process."""
    threads, parts = layout
    features, clients, excluded, relevant = material
    own = [[clients[k] for k in part] for part in parts]
    arguments = [(k, threads, own[k], features, excluded, relevant) for k in range(len(own))]
    found = []
    with Workers(Worker, arguments) as workers:
        for _ in range(repetitions + 1):
            begin = time.perf_counter()
            workers.ask([work] * len(own))
            found.append(time.perf_counter() - begin)
    return found[1:]


def bench(options):
    command = shlex.split(options.bench)
    environment = os.environ | {"RAYON_NUM_THREADS": "2"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{options.bench}: exit code {done.returncode}\n{done.stdout}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["case"]: line["median"] for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3, help="turns of PyTorch and FedGenie")
    parser.add_argument("--bench", nargs="?", const=BENCH, help=f"also run FedGenie's benchmark; by default: {BENCH}")
    options = parser.parse_args()
    # A forked process can have threads of its own only if this one never had any.
    torch.set_num_threads(1)
    material = data()
    # The largest client is nearly half of the work: it has a process of its own.
    layouts = {"two processes": (1, [[0], list(range(1, 8))]), "two threads": (2, [list(range(8))])}
    evaluations = {"one process of two threads": (2, [[]])}
    print(f"PyTorch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}), load {os.getloadavg()[0]:.2f}")
    theirs, ours = {}, {}
    for _ in range(options.rounds):
        for case, work, ways in (("dmrl-epoch", "train", layouts), ("dmrl-evaluation", "evaluate", evaluations)):
            for way, layout in ways.items():
                seconds = measure(work, layout, material, options.repetitions)
                theirs.setdefault(case, {}).setdefault(way, []).extend(seconds)
        if options.bench:
            for case, median in bench(options).items():
                ours.setdefault(case, []).append(median)
    for case, ways in theirs.items():
        medians = {way: statistics.median(seconds) for way, seconds in ways.items()}
        best = min(medians.values())
        told = ", ".join(f"{way} {seconds:.3f} s" for way, seconds in medians.items())
        line = f"{case}: PyTorch {told}"
        if case in ours:
            own = statistics.median(ours[case])
            line += f"; FedGenie {own:.4f} s: {best / own:.2f} times as fast"
        print(line)


if __name__ == "__main__":
    main()
