"""APPFL: its simulator in virtual time, which trains the clients one after another in one process."""

import logging
import sys
import tempfile
from pathlib import Path

import torch
from appfl.agent import SimClientAgent, SimServerAgent
from appfl.vsim import ClientProfile, SyncSimDriver, VsimLogger
from omegaconf import OmegaConf
from torch.utils.data import TensorDataset
from work import Clock, Task

MODEL = str(Path(__file__).with_name("appfl_model.py"))


def configuration(task, out):
    work = task.work
    return {
        "model_configs": {"model_path": MODEL, "model_name": "Model", "model_kwargs": {"work": task.name}},
        "log_configs": {"logging_output_dirname": out},
        "algorithm_configs": {
            "trainer": "VanillaTrainer",
            "trainer_kwargs": {
                "mode": "epoch",
                "num_local_epochs": 1,
                "optim": "SGD",
                "optim_args": {"lr": work.rate},
                "loss_fn": "CrossEntropyLoss",
                "metric_path": MODEL,
                "metric_name": "accuracy",
                "train_batch_size": work.batch,
                "optimize_memory": False,
            },
            "scheduler": "SyncScheduler",
            "scheduler_kwargs": {"num_clients": task.clients, "num_clients_per_round": work.cohort},
            "aggregator": "FedAvgAggregator",
            "aggregator_kwargs": {"client_weights_mode": "equal", "optimize_memory": False},
            "num_global_epochs": work.rounds,
        },
    }


def main():
    torch.set_num_threads(int(sys.argv[3]))
    task, clock, found = Task(), Clock(), []
    work, model = task.work, task.model()

    class Driver(SyncSimDriver):
        def _run_round(self):
            clock.start()
            answer = super()._run_round()
            if task.tests(self._round + 1):
                found[:] = self.test()
            clock.stop()
            return answer

        def test(self):
            model.load_state_dict(self.server.get_parameters(serial_run=True))
            return task.test(model)

    with tempfile.TemporaryDirectory() as out:
        config = configuration(task, out)
        server = SimServerAgent(OmegaConf.create(config), num_clients=task.clients)
        clients = []
        for k in range(task.clients):
            data = TensorDataset(*task.client(k))
            clients.append(SimClientAgent(OmegaConf.create(config), client_id=f"c{k}", client_dataset=data))
        # Else each calls the garbage collector several times for a client, which takes most of the time.
        for part in (server, server.scheduler, server.aggregator, *clients):
            part.optimize_memory = False
        profiles = {client.get_id(): ClientProfile() for client in clients}
        logger = logging.getLogger("peers")
        driver = Driver(server, clients, profiles, work.cohort, logger, target_rounds=work.rounds)
        driver.run()
    clock.report(*(found or driver.test()))


if __name__ == "__main__":
    main()
