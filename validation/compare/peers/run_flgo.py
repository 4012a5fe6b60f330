"""FLGo: its FedAvg on a benchmark of the dealt clients, one after another in one process."""

import sys
import tempfile
from pathlib import Path

import flgo
import flgo.algorithm.fedavg as fedavg
import flgo_clients
from flgo.benchmark.partition import BasicPartitioner
from flgo.experiment.logger.simple_logger import SimpleLogger
from work import Clock, Task

CLOCK = Clock()


class Dealt(BasicPartitioner):
    """Consecutive examples: those of the same client."""

    def __init__(self, clients, size):
        self.num_clients, self.size = clients, size

    def __str__(self):
        return "dealt"

    def __call__(self, data):
        return [list(range(k * self.size, (k + 1) * self.size)) for k in range(self.num_clients)]


class Server(fedavg.Server):
    def iterate(self):
        CLOCK.start()
        answer = super().iterate()
        CLOCK.stop()
        return answer


class Logger(SimpleLogger):
    def log_once(self, *args, **kwargs):
        super().log_once(*args, **kwargs)
        CLOCK.stop()  # a test is part of the training; the clock of the one before it has not begun


class Algorithm:
    Server, Client = Server, fedavg.Client


def main():
    task = Task()
    work = task.work
    option = {
        "num_rounds": work.rounds,
        "proportion": work.cohort / task.clients,
        "num_epochs": 1,
        "batch_size": work.batch,
        "learning_rate": work.rate,
        "sample": "uniform",
        "aggregate": "uniform",
        "train_holdout": 0.0,
        "eval_interval": work.every or -1,
        "torch_num_threads": int(sys.argv[3]),
        "test_batch_size": len(task.test_labels),
        "no_log_console": True,
        "no_tqdm": True,
        "gpu": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "task")
        flgo.gen_task_by_(flgo_clients, Dealt(task.clients, work.size), place)
        # FLGo takes a function for one that makes a model, and anything else for a class of models.
        runner = flgo.init(place, Algorithm, option, model=flgo.convert_model(lambda: task.model()), Logger=Logger)
        runner.run()
    CLOCK.report(*task.test(runner.model))


if __name__ == "__main__":
    main()
