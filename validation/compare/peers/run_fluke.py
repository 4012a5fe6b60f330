"""fluke: its FedAVG, which trains the clients one after another in one process."""

import sys

import torch
from fluke import FlukeENV
from fluke.algorithms.fedavg import FedAVG
from fluke.client import Client
from fluke.config import OptimizerConfigurator
from fluke.data import FastDataLoader
from fluke.server import Server
from fluke.utils import FederationObserver
from work import Clock, Task


class Watch(FederationObserver):
    """Keeps the time, and tests the global model."""

    def __init__(self, task, model, clock):
        self.task, self.model, self.clock = task, model, clock
        self.found = None

    def start_round(self, round, global_model):
        self.clock.start()

    def end_round(self, round):
        if self.task.tests(round):
            self.found = self.task.test(self.model)
        self.clock.stop()
        if round == self.task.work.rounds and self.found is None:
            self.found = self.task.test(self.model)


def main():
    torch.set_num_threads(int(sys.argv[3]))
    task = Task()
    work, clock, model = task.work, Clock(), task.model()
    environment = FlukeENV()
    environment.set_seed(1)
    environment.set_device("cpu")
    environment.set_eval_cfg(pre_fit=False, post_fit=False, locals=False, server=False)
    optimizer = OptimizerConfigurator({"name": "SGD", "lr": work.rate})
    loss = torch.nn.CrossEntropyLoss()
    clients = []
    for k in range(task.clients):
        loader = FastDataLoader(*task.client(k), num_labels=10, batch_size=work.batch, shuffle=True)
        # Without it each client would keep a model of its own between its rounds.
        clients.append(Client(k, loader, None, optimizer, loss, local_epochs=1, persistency=False))
    server = Server(model, None, clients)
    algorithm = FedAVG(task.clients, None, {}, clients=clients, server=server)
    watch = Watch(task, model, clock)
    algorithm.set_callbacks(watch)
    algorithm.run(work.rounds, work.cohort / task.clients)
    clock.report(*watch.found)


if __name__ == "__main__":
    main()
