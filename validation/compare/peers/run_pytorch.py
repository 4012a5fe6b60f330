"""The plain loop in PyTorch: two processes of one thread, the models in memory that they share."""

import numpy as np
from work import Clock, Task

from lr_mnist import Worker as LrWorker, loop
from models import torch
from workers import OPTIMIZERS, Workers, share, train_client

PROCESSES = 2


@torch.no_grad()
def unpack(vector, model):
    """Copies, so that the parameters keep their layout."""
    at = 0
    for values in model.parameters():
        values.copy_(vector[at : at + values.numel()].view(values.shape))
        at += values.numel()


@torch.no_grad()
def pack(model, vector):
    at = 0
    for values in model.parameters():
        vector[at : at + values.numel()].view(values.shape).copy_(values)
        at += values.numel()


class Worker:
    """Trains clients of a network into rows of `updates`."""

    def __init__(self, seed, task, start, updates):
        torch.manual_seed(seed)
        self.task, self.start, self.updates = task, start, updates
        self.model = task.model().to(memory_format=torch.channels_last).train()
        self.optimizer = OPTIMIZERS["plain"](self.model.parameters(), task.work.rate, 0.0)

    @torch.no_grad()
    def __call__(self, clients):
        for row, client in clients:
            unpack(self.start, self.model)
            images, labels = self.task.client(client)
            images = images.contiguous(memory_format=torch.channels_last)
            with torch.enable_grad():
                train_client(self.model, self.optimizer, images, labels, self.task.work.batch)
            pack(self.model, self.updates[row])


def linear(task):
    train = [torch.from_numpy(np.array(values)) for values in (task.images, task.labels)]
    images, labels = task.test_set()
    state, updates = torch.zeros(7_850).share_memory_(), torch.zeros(task.work.cohort, 7_850).share_memory_()
    arguments = []
    for process in range(PROCESSES):
        part = share(len(labels), process, PROCESSES)
        own = [values[part.start : part.stop] for values in (images, labels)]
        arguments.append((process, train, own, state, updates, "plain", task.work.rate))
    clock = Clock()
    with Workers(LrWorker, arguments) as workers:
        clock.start()
        loss, accuracy = loop(workers, state, updates, len(labels), 0)
        clock.stop()
    clock.report(loss, accuracy)


def network(task):
    model = task.model()
    start = torch.zeros(sum(values.numel() for values in model.parameters())).share_memory_()
    pack(model, start)
    updates = torch.zeros(task.work.cohort, len(start)).share_memory_()
    generator = torch.Generator().manual_seed(1)
    clock = Clock()
    with Workers(Worker, [(process, task, start, updates) for process in range(PROCESSES)]) as workers:
        clock.start()
        for _ in range(task.work.rounds):
            cohort = torch.randperm(task.clients, generator=generator)[: task.work.cohort].tolist()
            rows = list(enumerate(cohort))
            parts = (share(len(rows), process, PROCESSES) for process in range(PROCESSES))
            workers.ask([[rows[k] for k in part] for part in parts])
            torch.mean(updates, 0, out=start)
        clock.stop()
    unpack(start, model)
    torch.set_num_threads(PROCESSES)
    clock.report(*task.test(model))


if __name__ == "__main__":
    task = Task()
    (linear if task.name == "lr-mnist" else network)(task)
