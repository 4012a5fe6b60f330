"""Flower's simulation engine: a ClientApp and a ServerApp on Ray, two actors of one thread."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent)])  # of the actors
os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from flower_client import train
from work import Clock, Task


def client_app(name, folder):
    app = ClientApp()

    @app.train()
    def reply(message: Message, context: Context) -> Message:
        state, size = train(name, folder, context.node_config["partition-id"], message.content["arrays"])
        content = {"arrays": ArrayRecord(state), "metrics": MetricRecord({"num-examples": size})}
        return Message(RecordDict(content), reply_to=message)

    return app


def main():
    task = Task()
    model, clock, server, found = task.model(), Clock(), ServerApp(), {}
    rounds = task.work.rounds

    def evaluate(number, arrays):
        if number == 0:  # called before the first round
            clock.start()
        elif number == rounds and not task.work.every:
            clock.stop()
        if number == rounds or (number and task.tests(number)):
            model.load_state_dict(arrays.to_torch_state_dict())
            found["loss"], found["accuracy"] = task.test(model)
            if task.work.every:
                clock.stop()
            return MetricRecord({"loss": found["loss"]})

    @server.main()
    def serve(grid: Grid, context: Context) -> None:
        fraction = task.work.cohort / task.clients
        strategy = FedAvg(fraction_train=fraction, fraction_evaluate=0.0, min_available_nodes=task.clients)
        arrays = ArrayRecord(model.state_dict())
        strategy.start(grid=grid, initial_arrays=arrays, num_rounds=rounds, evaluate_fn=evaluate)

    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0}, "init_args": {"num_cpus": 2}}
    app = client_app(task.name, str(task.folder.resolve()))
    run_simulation(server, app, num_supernodes=task.clients, backend_config=resources)
    clock.report(found["loss"], found["accuracy"])


if __name__ == "__main__":
    sys.exit(main())
