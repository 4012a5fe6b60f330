"""Graph networks in PyTorch beside FedGenie: the same steps on the same graphs, in turns.

    python validation/compare/pytorch_graphs.py                        # drawn ratings of Ciao's size
    python validation/compare/pytorch_graphs.py --data FOLDER          # Ciao, in its folder `ciao`

A step is the loss of all training ratings of each of ten clients, and its slopes: by convolution (five layers of 32 numbers) and by attention
(two layers, two heads), from 64 features a node. FedGenie's benchmark writes graphs, features, weights, losses and slopes; PyTorch reads them
and has to find the same losses and slopes. Then both are timed by turn, with as many threads.

PyTorch multiplies with sparse matrices (CSR, compressed rows) and multiplies by the weights before or after, whichever is narrower. The
matrix is symmetric, so that the way back is the same product: `torch.sparse` would transpose it in every step. The first convolution's sums
over neighbours are worked out once, as FedGenie does. Attention gathers the ends of edges and adds up with `index_add`; its softmax takes the
largest score of each node by `scatter_reduce`.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[2]
BENCH = "cargo bench -p fedgenie-learning --bench graphs --"
CLIENTS, HEADS = 10, 2
LAYERS = {"gcn": 5, "gat": 2}


def read(path):
    """The tensors of a safetensors file; all are of single precision."""
    raw = Path(path).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__", None)
    body = memoryview(raw)[8 + length :]
    tensors = {}
    for name, of in header.items():
        begin, end = of["data_offsets"]
        assert of["dtype"] == "F32"
        tensors[name] = torch.from_numpy(numpy.frombuffer(body[begin:end], "<f4").copy()).reshape(of["shape"])
    return tensors


class Symmetric(torch.autograd.Function):
    """A symmetric sparse matrix times a dense one."""

    @staticmethod
    def forward(ctx, matrix, dense):
        ctx.matrix = matrix
        return matrix @ dense

    @staticmethod
    def backward(ctx, slopes):
        return None, ctx.matrix @ slopes


class Client:
    """A graph with what does not depend on weights."""

    def __init__(self, graphs, number, case):
        edges, pairs = (graphs[f"{number}.{what}"].long() for what in ("edges", "pairs"))
        self.features, self.ratings = graphs[f"{number}.features"], graphs[f"{number}.ratings"]
        self.users, self.items = pairs
        nodes = self.nodes = len(self.features)
        own = torch.arange(nodes)
        # Sorted by target, each node among its own neighbours.
        both = torch.cat([edges, edges.flip(0), torch.stack([own, own])], 1)
        both = both[:, (both[0] * nodes + both[1]).argsort()]
        self.target, self.source = both
        degrees = torch.bincount(both[0], minlength=nodes).double() - 1
        shares = torch.where(degrees > 0, 1 / degrees, 0.0)
        transitions = torch.stack([shares[self.target], shares[self.source]], 1)
        transitions[self.target == self.source] = 0
        if case == "gcn":
            weights = 1 / ((degrees[self.target] + 1) * (degrees[self.source] + 1)).sqrt()
            offsets = torch.cat([torch.zeros(1).long(), torch.bincount(both[0], minlength=nodes).cumsum(0)])
            with_type = lambda kind: torch.sparse_csr_tensor(offsets, self.source, weights.to(kind), (nodes, nodes))
            self.matrix = with_type(torch.float32)
            self.first = (with_type(torch.float64) @ self.features.double()).float()
            sums = torch.zeros(nodes, 2, dtype=torch.float64)
            self.sums = sums.index_add(0, self.target, weights[:, None] * transitions).float()
        self.transitions = transitions.float()

    def gcn(self, weights):
        rows = None
        for layer in range(LAYERS["gcn"]):
            of = lambda name: weights[f"conv.{layer}.{name}"]
            sums = self.first if layer == 0 else Symmetric.apply(self.matrix, rows)
            rows = torch.addmm(of("bias"), sums, of("weight").T) + self.sums @ of("edge").T
            if layer + 1 < LAYERS["gcn"]:
                rows = rows.relu()
        return rows

    def gat(self, weights):
        rows = self.features
        nodes, target, source = self.nodes, self.target, self.source
        for layer in range(LAYERS["gat"]):
            of = lambda name: weights[f"conv.{layer}.{name}"]
            turned = (rows @ of("weight").T).unflatten(1, (HEADS, -1))
            of_target, of_source = ((turned * of(f"att_{end}")).sum(-1) for end in ("target", "source"))
            scores = of_target[target] + of_source[source] + self.transitions @ of("att_edge").T
            scores = F.leaky_relu(scores, 0.2)
            index = target[:, None].expand(-1, HEADS)
            most = torch.full((nodes, HEADS), -torch.inf).scatter_reduce(0, index, scores.detach(), "amax")
            powers = (scores - most[target]).exp()
            alpha = powers / powers.new_zeros(nodes, HEADS).index_add(0, target, powers)[target]
            messages = (alpha[:, :, None] * turned[source]).flatten(1)
            rows = of("bias") + messages.new_zeros(nodes, messages.shape[1]).index_add(0, target, messages)
            shares = alpha.new_zeros(nodes, HEADS, 2).index_add(0, target, alpha[:, :, None] * self.transitions[:, None])
            edge = of("edge").unflatten(0, (HEADS, -1))
            rows = rows + torch.einsum("nhz,hdz->nhd", shares, edge).flatten(1)
            if layer + 1 < LAYERS["gat"]:
                rows = rows.relu()
        return rows

    def step(self, case, weights):
        """The loss and the slopes of all weights."""
        for value in weights.values():
            value.grad = None
        rows = getattr(self, case)(weights)
        scores = (rows[self.users] * rows[self.items]).sum(1) + weights["readout.bias"]
        loss = (scores - self.ratings).square().mean()
        loss.backward()
        return loss.detach()


def check(case, clients, weights, told):
    """The largest difference of losses and of slopes, relative to a client's largest slope of the tensor."""
    of_loss, of_slopes = 0.0, 0.0
    for number, client in enumerate(clients):
        loss = client.step(case, weights)
        expected = told[f"{number}.loss"]
        of_loss = max(of_loss, float((loss - expected).abs() / expected))
        for name, value in weights.items():
            expected = told[f"{number}.{name}"]
            difference = (value.grad - expected).abs().max() / expected.abs().max().clamp_min(1e-6)
            of_slopes = max(of_slopes, float(difference))
    return of_loss, of_slopes


def bench(options, *arguments):
    command = [*shlex.split(options.bench), "--json", "--threads", str(options.threads), *arguments]
    command += ["--data", str(Path(options.data).resolve())] if options.data else []
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stdout}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["case"]: line["median"] for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="the folder above `ciao`; drawn ratings without it")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3, help="PyTorch's steps of a turn")
    parser.add_argument("--rounds", type=int, default=3, help="turns of PyTorch and FedGenie")
    parser.add_argument("--bench", default=BENCH, help=f"FedGenie's benchmark; by default: {BENCH}")
    parser.add_argument("--only", choices=list(LAYERS), help="one of the two networks")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}), load {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        bench(options, "--write", folder)
        graphs = read(Path(folder) / "graphs.safetensors")
        told = {case: read(Path(folder) / f"{case}.safetensors") for case in LAYERS}
    for case in [options.only] if options.only else LAYERS:
        clients = [Client(graphs, number, case) for number in range(CLIENTS)]
        weights = {name: value for name, value in told[case].items() if not name[0].isdigit()}
        for value in weights.values():
            value.requires_grad_()
        of_loss, of_slopes = check(case, clients, weights, told[case])
        print(f"{case}: losses differ by {of_loss:.1e}, slopes by {of_slopes:.1e} of the largest")
        if max(of_loss, of_slopes) > 1e-3:
            sys.exit("losses or slopes differ")
        theirs, ours = [], []
        for _ in range(options.rounds):
            for _ in range(options.repetitions):
                begin = time.perf_counter()
                for client in clients:
                    client.step(case, weights)
                theirs.append(time.perf_counter() - begin)
            ours.append(bench(options, "--only", case)[case])
        told_of = [statistics.median(seconds) for seconds in (theirs, ours)]
        ratio = told_of[0] / told_of[1]
        print(f"{case}: PyTorch {told_of[0]:.3f} s, FedGenie {told_of[1]:.4f} s: {ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
