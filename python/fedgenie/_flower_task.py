"""ClientApps of Flower as tasks of FedGenie."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedgenie import _called, _flower
from fedgenie._fedgenie import Job, Update
from fedgenie._flower import ArrayRecord, ClientApp, MetricRecord, RecordDict
from fedgenie._notices import warn

__all__ = ["Task"]

Weights: TypeAlias = dict[str, NDArray[np.float32]]
Config: TypeAlias = Mapping[str, Any] | Callable[[int], Mapping[str, Any]]

BETTER = {"loss": "min", "accuracy": "max"}
"""Directions of metrics whose names say it."""


class Task:
    """An unmodified ClientApp, trained under FedGenie's clock, devices and policies: give it as `task=` to `fedgenie.run`.

    `clients` are their numbers of examples, one for each client, as its replies say them (`num-examples`); the updates of
    a round are weighed by them. With the number of clients alone each trains once beforehand, to tell it. `arrays` is the
    first model: an `ArrayRecord`, or arrays by name, or a list of arrays. `evaluate(arrays)` returns metrics by name, on
    the server's own data; `metrics` has their better direction, the main one first, where their names do not say it
    (`loss` and `accuracy` do).

    A client is called with its `partition-id` and `num-partitions`, and the `node_config` and `run_config` that are given.
    Its `Context.state` belongs to the run: it is kept from job to job once the update is aggregated, apart for each policy
    and seed, and saved with checkpoints. A message has `arrays` and `config`, which holds `server-round` and what `config`
    (a table, or a function of the round) adds.

    Jobs of a process train one after another, each with the random numbers of Python, NumPy and PyTorch seeded by seed,
    client and round. An app that draws from others is not repeatable; `fedgenie.check` finds it. A job of more than
    `timeout_s` seconds fails.

    FedGenie's models are `float32`: wider arrays are rounded when they come back. Arrays of whole numbers, such as counters
    of batches, are not averaged: each job begins with those of the first model.
    """

    def __init__(
        self,
        client_app: ClientApp,
        clients: int | Sequence[int],
        arrays: ArrayRecord | Mapping[str, NDArray[Any]] | Sequence[NDArray[Any]],
        evaluate: Callable[[ArrayRecord], Mapping[str, Any] | MetricRecord],
        *,
        metrics: Mapping[str, str] | None = None,
        config: Config | None = None,
        node_config: Mapping[str, Any] | None = None,
        run_config: Mapping[str, Any] | None = None,
        loss: str = "train_loss",
        weight: str = "num-examples",
        action: str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        if not isinstance(client_app, ClientApp):
            message = f"found a client_app of the type {type(client_app).__name__}; expected a flwr.clientapp.ClientApp"
            raise TypeError(message)
        if timeout_s is not None and not timeout_s > 0:
            message = f"found timeout_s={timeout_s!r}; expected a positive number of seconds"
            raise ValueError(message)
        self.client_app = client_app
        self.model = _Model(_record(arrays))
        self.evaluate = evaluate
        self.config = config or {}
        self.node_config = dict(node_config or {})
        self.run_config = dict(run_config or {})
        self.loss = loss
        self.weight = weight
        self.kind = _flower.TRAIN if action is None else f"{_flower.TRAIN}.{action}"
        self.timeout_s = timeout_s
        self.clients, self._examples = _counts(clients)
        self.metrics = self._directions(metrics)
        """Metrics and their better direction; the first is the main one."""
        self._has_warned = False

    def __call__(self, seed: int, clients: int) -> _Seeded:
        """The task of a seed."""
        if clients != self.clients:
            message = f"found {self.clients} clients of the ClientApp; the scenario has {clients}"
            raise ValueError(message)
        return _Seeded(self)

    def _directions(self, given: Mapping[str, str] | None) -> dict[str, str]:
        found = self.measured(self.model.start)
        if given is not None:
            directions = {_named(name): direction for name, direction in given.items()}
            for name in directions:
                if name not in found:
                    message = f"metrics: {name!r} is not in the result of evaluate; found {', '.join(found) or 'none'}"
                    raise ValueError(message)
            return directions
        unknown = [name for name in found if name.rsplit("_", 1)[-1] not in BETTER]
        if unknown or not found:
            name = unknown[0] if unknown else "test_loss"
            message = (
                f"evaluate returned {', '.join(found) or 'no metric'}, and it is not known whether more of {name} is better; "
                f"give metrics={{{name!r}: 'max'}} or 'min', the main one first"
            )
            raise ValueError(message)
        return {name: BETTER[name.rsplit("_", 1)[-1]] for name in found}

    def measured(self, weights: Weights) -> dict[str, float]:
        """Metrics of a model on the server's data, under the names of FedGenie."""
        found = _called.call(lambda: self.evaluate(self.model.record(weights)), 0, "evaluate", bool, None)
        if not isinstance(found, Mapping):
            message = f"evaluate returned a {type(found).__name__}; expected numbers by name"
            raise TypeError(message)
        listed = [name for name, value in found.items() if isinstance(value, list)]
        if listed:
            message = f"evaluate returned a list as {listed[0]!r}; expected a number"
            raise TypeError(message)
        return {_named(name): float(value) for name, value in found.items() if not isinstance(value, list)}

    @property
    def examples(self) -> list[int]:
        """Examples of each client."""
        if self._examples is None:
            warn(
                f"the number of examples of each client is not given: each of {self.clients} clients trains once to tell "
                "it; give clients=[…] to spare that"
            )
            found = [self._told(client) for client in range(self.clients)]
            warn(f"found clients={found}")
            self._examples = found
        return self._examples

    def _told(self, client: int) -> int:
        reply, _ = self.reply(client, 1, client, self.model.start, None, bool)
        return _whole(_flower.numbers_of(reply)[self.weight], f"client {client}: {self.weight}")

    def reply(
        self,
        client: int,
        round: int,
        seed: int,
        weights: Weights,
        state: bytes | None,
        is_cancelled: Callable[[], bool],
    ) -> tuple[_flower.Message, RecordDict]:
        """What a client answers, and its state afterwards. Raises `InterruptedError` if it was cancelled."""
        where = f"client {client}, round {round}"
        config = self.config(round) if callable(self.config) else self.config
        sent = self.model.record(weights)
        node = {_flower.PARTITION: client, "num-partitions": self.clients, **self.node_config}
        kept = RecordDict() if state is None else pickle.loads(state)
        context = _flower.context(client, node, kept, self.run_config)
        message = _flower.instruction(client, self.kind, sent, {"server-round": round, **config})
        found = _called.call(
            lambda: self.client_app(message, context), seed, f"{where}: the ClientApp", is_cancelled, self.timeout_s
        )
        if is_cancelled():
            raise InterruptedError(where)
        if not isinstance(found, _flower.Message):
            message_type = type(found).__name__
            text = f"{where}: the ClientApp returned a {message_type}; expected a flwr.app.Message"
            raise TypeError(text)
        fault = _flower.told_reason(found) if found.has_error() else _flower.fault_of(found, sent, self.weight)
        if fault is not None:
            text = f"{where}: {fault}"
            raise ValueError(text)
        return found, context.state

    def loss_of(self, numbers: Mapping[str, float]) -> float | None:
        """The loss that a reply tells."""
        if self.loss in numbers:
            return numbers[self.loss]
        if not self._has_warned:
            self._has_warned = True
            found = ", ".join(numbers) or "none"
            warn(f"replies have no metric {self.loss!r} (found {found}): policies meet the loss 0; loss= names another")
        return None


class _Seeded:
    """The task of a seed. All that changes belongs to the run: the model, and the state of each client."""

    keeps_state = True

    def __init__(self, task: Task) -> None:
        self.task = task
        self.metrics = task.metrics
        self.examples = task.examples

    def parameters(self) -> Weights:
        """The first model."""
        return self.task.model.start

    def train(self, job: Job) -> Update:
        """The job of a client."""
        task, client = self.task, job.client
        try:
            reply, state = task.reply(
                client, job.round, job.seed, job.weights, job.state, lambda: job.is_cancelled
            )  # fmt: skip
        except InterruptedError:
            return Update(job.weights)
        numbers = _flower.numbers_of(reply)
        where = f"client {client}, round {job.round}"
        found, expected = _whole(numbers[task.weight], f"{where}: {task.weight}"), self.examples[client]
        if found != expected:
            message = f"{where}: {task.weight} is {found}; clients= says {expected}, by which updates are weighed"
            raise ValueError(message)
        (record,) = reply.content.array_records.values()
        kept = pickle.dumps(state, protocol=5) if len(state) or job.state is not None else None
        return Update(task.model.weights(record), loss=task.loss_of(numbers), state=kept)

    def evaluate(self, weights: Weights) -> dict[str, float]:
        """Metrics of a model."""
        return self.task.measured(weights)


class _Model:
    """The arrays of a model: those that FedGenie averages, and the others."""

    def __init__(self, record: ArrayRecord) -> None:
        arrays = {name: array.numpy() for name, array in record.items()}
        kinds = {name: array.dtype.kind for name, array in arrays.items()}
        strange = [name for name, kind in kinds.items() if kind not in "fiub"]
        if strange:
            name = strange[0]
            message = f"array {name!r} has the type {arrays[name].dtype}; expected floating or whole numbers"
            raise TypeError(message)
        self.start: Weights = {
            name: np.asarray(array, dtype=np.float32) for name, array in arrays.items() if kinds[name] == "f"
        }
        if not self.start:
            message = "arrays: found no array of floating numbers; there is nothing to learn"
            raise ValueError(message)
        self.types = {name: array.dtype for name, array in arrays.items()}
        self.others = {name: array for name, array in record.items() if kinds[name] != "f"}
        self.names = list(arrays)

    def record(self, weights: Mapping[str, NDArray[np.float32]]) -> ArrayRecord:
        """A model as a ClientApp is sent it."""
        made = {
            name: self.others[name] if name in self.others else _flower.Array(weights[name].astype(self.types[name]))
            for name in self.names
        }
        return ArrayRecord(made)

    def weights(self, record: ArrayRecord) -> Weights:
        """A model as FedGenie averages it."""
        return {name: np.asarray(record[name].numpy(), dtype=np.float32) for name in self.start}


def _record(arrays: Any) -> ArrayRecord:
    if isinstance(arrays, ArrayRecord):
        return arrays
    if isinstance(arrays, Mapping):
        return ArrayRecord({name: _flower.Array(np.asarray(array)) for name, array in arrays.items()})
    if isinstance(arrays, Sequence) and not isinstance(arrays, str):
        return ArrayRecord([np.asarray(array) for array in arrays])
    message = (
        f"found arrays of the type {type(arrays).__name__}; expected an ArrayRecord, arrays by name, or a list of them"
    )
    raise TypeError(message)


def _counts(clients: int | Sequence[int]) -> tuple[int, list[int] | None]:
    """How many clients there are, and their examples, if these are said."""
    if isinstance(clients, (int, np.integer)) and not isinstance(clients, bool) and clients >= 1:
        return int(clients), None
    if (
        isinstance(clients, Sequence)
        and clients
        and all(isinstance(one, (int, np.integer)) and one >= 0 for one in clients)
    ):
        return len(clients), [int(one) for one in clients]
    message = f"found clients={clients!r}; expected the number of examples of each client, or the number of clients"
    raise ValueError(message)


def _whole(value: float, what: str) -> int:
    if not float(value).is_integer() or value < 0:
        message = f"{what} is {value}; expected a whole number"
        raise ValueError(message)
    return int(value)


def _named(name: str) -> str:
    """A metric's name in FedGenie."""
    bare = name.replace("-", "_")
    return bare if bare.startswith("test_") else f"test_{bare}"
