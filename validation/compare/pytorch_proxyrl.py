"""A round of ProxyRL-FRS in PyTorch and in FedGenie: the same work in the same run, with results that are checked equal.

    python pytorch_proxyrl.py

Of MovieLens-1M's shape: 6,040 users, 3,706 items, about 800,000 training ratings, rows of 32 numbers, 32 hidden numbers.
In a round all users predict their losses, 100 of them train for an epoch (batches of 32, Adam), and the server averages.
FedGenie's benchmark writes what the round begins with and its triplets; PyTorch works through them twice:

- client by client, as one writes it: modules, `torch.optim`, sparse gradients of item rows;
- batched: all predictions at once, and the jobs of all clients side by side, one mini-batch of each at a time, with
  slopes from autograd and Adam by hand.

The ranking scores all items for all users on test and validation data; the first layer is split into a part for users
and one for items, as in FedGenie. PyTorch forms hit ratio and NDCG, FedGenie also AUC, recall, precision and F1.
Needs torch, numpy and safetensors.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
BENCH = ["cargo", "bench", "--quiet", "-p", "fedgenie-learning", "--bench", "proxyrl", "--"]
RATE, BATCH, CUTOFF = 1e-2, 32, 20


class Score(nn.Module):
    """A network over a user's and an item's row."""

    def __init__(self, weights):
        super().__init__()
        hidden, width = weights["0.weight"].shape
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, 1)
        self.load_state_dict({f"{layer}.{part}": weights[f"{number}.{part}"]
                              for layer, number in (("first", 0), ("second", 2)) for part in ("weight", "bias")})

    def forward(self, users, items):
        return self.second(torch.relu(self.first(torch.cat([users.expand_as(items), items], -1)))).squeeze(-1)


class World:
    """What the benchmark wrote."""

    def __init__(self, file):
        tensors = load_file(file)
        self.items, self.users = tensors["items.weight"], tensors["users.weight"]
        part = lambda name: {key[len(name) + 1 :]: value for key, value in tensors.items() if key.startswith(name + ".")}
        self.ncf, self.proxy, self.found = part("ncf"), part("proxy"), part("found")
        self.triplets = tensors["triplets"].long().view(-1, 2)
        self.ends = [0, *tensors["ends"].long().tolist()]
        self.clients = tensors["clients"].long().tolist()
        self.lists = {name: (tensors[f"{name}.items"].long(), tensors[f"{name}.ends"].long()) for name in ("train", "valid", "test")}

    def of(self, client):
        return self.triplets[self.ends[client] : self.ends[client + 1]]


def predicted_alone(world):
    """Sums of predicted losses, client by client."""
    proxy, sums = Score(world.proxy), []
    with torch.no_grad():
        for client in range(len(world.users)):
            positive, negative = world.of(client).T
            user = world.users[client]
            difference = proxy(user, world.items[positive]) - proxy(user, world.items[negative])
            sums.append(F.softplus(-difference).sum())
    return torch.stack(sums)


def train_alone(world, client):
    """A client's job: its networks, its row, and the rows of its positives."""
    ncf, proxy = Score(world.ncf), Score(world.proxy)
    positives, places = torch.unique(world.of(client)[:, 0], return_inverse=True)
    rows = nn.Embedding.from_pretrained(world.items[positives].clone(), freeze=False, sparse=True)
    user = nn.Parameter(world.users[client].clone())
    dense = torch.optim.Adam([*ncf.parameters(), *proxy.parameters(), user], lr=RATE)
    sparse = torch.optim.SparseAdam(rows.parameters(), lr=RATE)
    negatives = world.items[world.of(client)[:, 1]]
    for begin in range(0, len(places), BATCH):
        mine = slice(begin, begin + BATCH)
        liked, other = rows(places[mine]), negatives[mine]
        losses = F.softplus(ncf(user, other) - ncf(user, liked))
        still = (user.detach(), liked.detach())
        guesses = F.softplus(proxy(still[0], other) - proxy(*still))
        dense.zero_grad(), sparse.zero_grad()
        (losses.mean() + ((guesses - losses.detach()) ** 2).mean()).backward()
        # The last bias cancels: nobody moves it.
        ncf.second.bias.grad = proxy.second.bias.grad = None
        dense.step(), sparse.step()
    networks = torch.cat([values.detach().reshape(-1) for network in (ncf, proxy) for values in network.parameters()])
    return networks, user.detach(), positives, rows.weight.detach()


def average(world, networks, rows):
    """The model after the server's step; `rows` has positives and their rows of each client."""
    counts = torch.tensor([float(world.ends[client + 1] - world.ends[client]) for client in world.clients])
    shares = counts / counts.sum()
    items = world.items.clone()
    for share, (positives, moved) in zip(shares, rows):
        items.index_add_(0, positives, share * (moved - world.items[positives]))
    return torch.cat([shares @ networks, items.reshape(-1)])


def round_alone(world):
    predicted = predicted_alone(world)
    jobs = [train_alone(world, client) for client in world.clients]
    networks, users, positives, rows = zip(*jobs)
    return predicted, average(world, torch.stack(networks), zip(positives, rows)), torch.stack(users)


def parts(network, users, items):
    """The first layer on both sides."""
    user, item = network["0.weight"].split(users.shape[1], 1)
    return users @ user.T + network["0.bias"], items @ item.T


def predicted_together(world):
    users, items = parts(world.proxy, world.users, world.items)
    second = world.proxy["2.weight"][0]
    ends = torch.tensor(world.ends)
    of = torch.repeat_interleave(torch.arange(len(world.users)), ends.diff())
    losses = torch.empty(len(of))
    for begin in range(0, len(of), 1 << 16):
        mine = slice(begin, begin + (1 << 16))
        user = users[of[mine]]
        positive, negative = (torch.relu(user + items[side]) @ second for side in world.triplets[mine].T)
        losses[mine] = F.softplus(negative - positive)
    return torch.zeros(len(world.users)).index_add_(0, of, losses)


def forward_all(networks, users, items):
    """Answers of each client's network to its rows: clients × examples."""
    first, bias, second = networks
    inputs = torch.cat([users[:, None].expand(-1, items.shape[1], -1), items], -1)
    hidden = torch.relu(torch.baddbmm(bias[:, None], inputs, first.transpose(1, 2)))
    return torch.bmm(hidden, second.transpose(1, 2)).squeeze(-1)


def round_together(world):
    predicted = predicted_together(world)
    own = [world.of(client) for client in world.clients]
    count, longest = len(own), max(map(len, own))
    triplets = torch.zeros(count, longest, 2, dtype=torch.long)
    lengths = torch.tensor([len(triplets) for triplets in own])
    for place, mine in enumerate(own):
        triplets[place, : len(mine)] = mine
    each = lambda values: values.expand(count, *values.shape).clone()
    # Of each network the first layer, its bias, the second layer; the user's row; a row for each example's positive.
    weights = [each(network[name]) for network in (world.ncf, world.proxy) for name in ("0.weight", "0.bias", "2.weight")]
    users = world.users[world.clients].clone()
    rows = world.items[triplets[..., 0]]
    parameters = [*weights, users]
    moments = [[torch.zeros_like(values), torch.zeros_like(values)] for values in parameters]
    places = torch.arange(BATCH)
    for step, begin in enumerate(range(0, longest, BATCH), 1):
        # A positive comes once in an epoch: so a row's moments begin at zero in its only step.
        present = begin + places[: min(BATCH, longest - begin)] < lengths[:, None]
        active = present.any(1)
        width = present.shape[1]
        liked = rows[:, begin : begin + width]
        other = world.items[triplets[:, begin : begin + width, 1]]
        variables = [values.requires_grad_() for values in (*(values.detach() for values in parameters), liked.detach())]
        ncf, proxy, user, liked = variables[:3], variables[3:6], variables[6], variables[7]
        losses = F.softplus(forward_all(ncf, user, other) - forward_all(ncf, user, liked))
        still = (user.detach(), liked.detach())
        guesses = F.softplus(forward_all(proxy, still[0], other) - forward_all(proxy, *still))
        share = present / present.sum(1, keepdim=True).clamp(min=1)
        slopes = torch.autograd.grad((share * (losses + (guesses - losses.detach()) ** 2)).sum(), variables)
        corrections = 1 - 0.9**step, 1 - 0.999**step

        def move(values, slope, mean, square):
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
            return values - RATE * (mean / corrections[0]) / ((square / corrections[1]).sqrt() + 1e-8), mean, square

        with torch.no_grad():
            for index, slope in enumerate(slopes[:-1]):
                moved = move(parameters[index], slope, *moments[index])
                if active.all():
                    parameters[index], moments[index] = moved[0], list(moved[1:])
                else:
                    is_active = active.view(-1, *[1] * (slope.dim() - 1))
                    parameters[index] = torch.where(is_active, moved[0], parameters[index])
                    moments[index] = list(moved[1:])
            rows[:, begin : begin + width] = torch.where(present[..., None], move(liked, slopes[-1], 0.0, 0.0)[0], liked)
    flat = []
    for network, first in ((world.ncf, 0), (world.proxy, 3)):
        flat += [values.reshape(count, -1) for values in parameters[first : first + 3]] + [each(network["2.bias"])]
    sent = [(triplets[place, :length, 0], rows[place, :length]) for place, length in enumerate(lengths.tolist())]
    return predicted, average(world, torch.cat(flat, 1), sent), parameters[6]


def ranking(world):
    """Hit ratio and NDCG at 20 on validation and test data."""
    users, items = parts(world.ncf, world.users, world.items)
    second, found = world.ncf["2.weight"][0], {}
    discounts = 1 / torch.log2(torch.arange(CUTOFF) + 2.0)
    ideal = torch.cumsum(discounts, 0)
    sums, counts = torch.zeros(2, 2), torch.zeros(2)
    chunk = 64
    bounds = {name: [0, *ends.tolist()] for name, (_, ends) in world.lists.items()}
    for begin in range(0, len(users), chunk):
        end = min(begin + chunk, len(users))
        scores = torch.relu(users[begin:end, None] + items) @ second

        def mark(target, name, value):
            first, last = bounds[name][begin], bounds[name][end]
            lengths = torch.tensor(bounds[name][begin : end + 1]).diff()
            target[torch.repeat_interleave(torch.arange(end - begin), lengths), world.lists[name][0][first:last]] = value

        mark(scores, "train", -torch.inf)
        for part, name in enumerate(("valid", "test")):
            relevant = torch.zeros(scores.shape, dtype=torch.bool)
            mark(relevant, name, True)
            best = torch.topk(scores, CUTOFF).indices
            hits = relevant.gather(1, best).float()
            of_user = relevant.sum(1)
            known = of_user > 0
            sums[part, 0] += (hits.sum(1) > 0)[known].sum()
            sums[part, 1] += (hits @ discounts / ideal[of_user.clamp(1, CUTOFF) - 1])[known].sum()
            counts[part] += known.sum()
            mark(scores, "valid", -torch.inf)
    return sums / counts[:, None]


def measured(work, repetitions):
    work()
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times), min(times), result


def check(name, found, expected, tolerance):
    """Compares by the root of the mean square: Adam divides a slope by its size, and of one near zero rounding decides the sign."""
    difference = found - expected
    error = difference.square().mean().sqrt().item()
    print(f"  {name}: differences {error:.1e} (largest {difference.abs().max().item():.1e})")
    if not error <= tolerance:
        sys.exit(f"{name} differs")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="leave out the clients one by one")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "round.safetensors")
        environment = os.environ | {"RAYON_NUM_THREADS": str(options.threads)}

        def bench(*more):
            done = subprocess.run([*BENCH, "--json", *more], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            lines = map(json.loads, filter(lambda line: line.startswith("{"), done.stdout.splitlines()))
            return {line["case"]: line for line in lines}

        bench("--write", str(file))
        world = World(file)
        print(f"PyTorch {torch.__version__}, {options.threads} threads; {len(world.triplets)} training ratings")
        cases = {"round, client by client": (round_alone, 1), "round, batched": (round_together, options.repetitions)}
        if options.quick:
            del cases["round, client by client"]
        times = {}
        for name, (work, repetitions) in cases.items():
            times[name] = measured(lambda: work(world), repetitions)
            median, best, (predicted, model, users) = times[name]
            print(f"{name}: {median:.3f} s (best {best:.3f})")
            check("predicted losses", predicted, world.found["predicted"], 1e-3)
            check("model", model, world.found["model"], 1e-5)
            check("users' rows", users.reshape(-1), world.found["users"], 1e-3)
        times["ranking"] = measured(lambda: ranking(world), options.repetitions)
        median, best, means = times["ranking"]
        print(f"ranking: {median:.3f} s (best {best:.3f})")
        for part, name in enumerate(("valid", "test")):
            check(f"hit ratio and NDCG, {name}", means[part], world.found[name][1:3], 2e-4)
        # Again, after PyTorch: the machine may have been busier before.
        own = bench()
    for case, line in own.items():
        print(f"FedGenie, {case}: {line['median']:.4f} s (best {line['best']:.4f})")
    for name, (_, best, _) in times.items():
        print(f"FedGenie is {best / own[name.split(',')[0]]['best']:.1f} × as fast as PyTorch: {name}")


if __name__ == "__main__":
    main()
