"""A federation of Flower in this process, whose clock passes when somebody sleeps; tests share it."""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from fedgenie import flower
from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

SIZES = [10, 30, 20, 40, 50, 60]


class Clock:
    """Time that passes when somebody sleeps, in the place of the module `time`."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Nodes(Grid):
    """Nodes with random numbers that answer after a known time, in random order."""

    def __init__(
        self, app: ClientApp, clock: Clock, seconds: Callable[[int, int], float], clients: int = 6, **config: Any
    ) -> None:
        self.app, self.clock, self.seconds = app, clock, seconds
        source = random.Random()
        nodes = [source.getrandbits(60) for _ in range(clients)]
        self.contexts = {
            node: Context(1, node, {"partition-id": client, **config}, RecordDict(), {})
            for client, node in enumerate(nodes)
        }
        self.gone: dict[int, Context] = {}
        """Nodes that disappeared."""
        self.replies: dict[str, tuple[float, Message]] = {}
        self.round = 0
        self.ahead_s = 0.0
        """How far the clocks of the nodes are ahead."""

    def client(self, node: int) -> int:
        return int({**self.contexts, **self.gone}[node].node_config["partition-id"])

    def set_run(self, run: Any) -> None:
        pass

    @property
    def run(self) -> Any:
        return None

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        nodes = list(self.contexts)
        random.shuffle(nodes)
        return nodes

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        sent = []
        for message in messages:
            number, node = str(uuid.uuid4()), message.metadata.dst_node_id
            message.metadata.__dict__["_message_id"] = number
            try:
                reply = self.app(message, self.contexts[node])
            except Exception as error:
                reply = Message(Error(2, f"{type(error)}:<'{error}'>"), reply_to=message)
            reply.metadata.__dict__["_created_at"] += self.ahead_s
            took = 0.01
            if message.metadata.message_type == "train":
                self.round = int(message.content["config"]["server-round"])
                took = self.seconds(self.client(node), self.round)
            self.replies[number] = self.clock.now + took, reply
            sent.append(number)
        return sent

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        asked = list(message_ids)
        random.shuffle(asked)
        ready = [number for number in asked if self.replies.get(number, (math.inf, None))[0] <= self.clock.now]
        return [self.replies.pop(number)[1] for number in ready]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        raise NotImplementedError


def adds(**wrong: Callable[[int, int], Any]) -> ClientApp:
    """Client k adds (k + 1)·round to a model; `wrong` has what it does otherwise."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        client, round = int(context.node_config["partition-id"]), int(message.content["config"]["server-round"])
        values = message.content["arrays"]["w"].numpy() + np.float32((client + 1) * round / 7)
        if "arrays" in wrong:
            values = wrong["arrays"](client, round) if wrong["arrays"](client, round) is not None else values
        if "raises" in wrong and wrong["raises"](client, round):
            message = "the disk is full"
            raise OSError(message)
        numbers: dict[str, Any] = {"num-examples": SIZES[client], "train_loss": 1 / (client + round)}
        numbers |= wrong["metrics"](client, round) if "metrics" in wrong else {}
        content = {"arrays": ArrayRecord({"w": Array(values)}), "metrics": MetricRecord(numbers)}
        return Message(RecordDict(content), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        value = float(message.content["arrays"]["w"].numpy().sum()) + int(context.node_config["partition-id"])
        return Message(RecordDict({"m": MetricRecord({"num-examples": 1, "value": value})}), reply_to=message)

    return flower.identify(app)


def first() -> ArrayRecord:
    return ArrayRecord({"w": Array(np.arange(3, dtype=np.float32))})


def steady(client: int, round: int) -> float:
    """A known latency, different for each job."""
    return 0.3 + 0.37 * client + 0.011 * round


def learn(
    nodes: Nodes, rounds: int = 5, timeout: float = 30.0, strategy: FedAvg | None = None, **given: Any
) -> tuple[Any, flower.Selecting]:
    settings = {"policy": "random", "clients": len(nodes.contexts), "cohort": 3, **given}
    selecting = flower.Selecting(strategy or FedAvg(), **settings)
    found = selecting.start(grid=nodes, initial_arrays=first(), num_rounds=rounds, timeout=timeout)
    return found, selecting


def rows(path: Path) -> list[dict[str, str]]:
    header, *lines = path.read_text().splitlines()
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
