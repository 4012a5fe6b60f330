"""Worker processes of one thread each, and the local training that they do."""

import sys

from models import F, torch

# A forked worker has PyTorch imported and the data in memory already; elsewhere both have to be sent.
START = "fork" if sys.platform == "linux" else "spawn"


def serve(connection, make, arguments):
    torch.set_num_threads(1)
    call = make(*arguments)
    connection.send(None)
    while (message := connection.recv()) is not None:
        connection.send(call(message))


class Workers:
    """One process for each tuple of arguments; each answers messages with `make(*arguments)`."""

    def __init__(self, make, arguments):
        torch.set_num_threads(1)
        context = torch.multiprocessing.get_context(START)
        self.connections, self.processes = [], []
        for own in arguments:
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(there, make, own), daemon=True)
            process.start()
            there.close()
            self.connections.append(here)
            self.processes.append(process)
        for connection in self.connections:
            connection.recv()

    def ask(self, messages):
        """Sends each worker its message, then waits for all the answers."""
        for connection, message in zip(self.connections, messages):
            connection.send(message)
        return [connection.recv() for connection in self.connections]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.connections:
            try:
                connection.send(None)
            except BrokenPipeError:  # its own error message is on the terminal
                pass
        for process in self.processes:
            process.join()


class PlainSgd:
    """Gradient steps without the bookkeeping of torch.optim, which small models spend a third of their time in."""

    def __init__(self, parameters, lr, momentum):
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.velocities = None

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self):
        directions = [parameter.grad for parameter in self.parameters]
        if self.momentum:
            if self.velocities is None:
                self.velocities = [gradient.clone() for gradient in directions]
            else:
                for velocity, gradient in zip(self.velocities, directions):
                    velocity.mul_(self.momentum).add_(gradient)
            directions = self.velocities
        for parameter, direction in zip(self.parameters, directions):
            parameter.add_(direction, alpha=-self.lr)

    def forget(self):
        self.velocities = None


class TorchSgd:
    """torch.optim.SGD, as most programs use it, with its fused loop."""

    def __init__(self, parameters, lr, momentum):
        self.inner = torch.optim.SGD(parameters, lr=lr, momentum=momentum, fused=True)
        self.zero_grad, self.step = self.inner.zero_grad, self.inner.step

    def forget(self):
        self.inner.state.clear()


OPTIMIZERS = {"plain": PlainSgd, "torch": TorchSgd}


def train_client(model, optimizer, images, labels, batch):
    """One epoch in a fresh order: mean cross-entropy of every batch, the last of which may be short."""
    order = torch.randperm(len(labels))
    images, labels = images[order], labels[order]
    for x, y in zip(images.split(batch), labels.split(batch)):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def share(count, process, processes):
    """The places of `count` that belong to one of the processes: consecutive, of sizes that differ by one at most."""
    return range(count * process // processes, count * (process + 1) // processes)
