"""Everything that touches Flower: its names, its grid, its messages, what replies hold."""

from __future__ import annotations

import copy
import functools
import importlib
import importlib.metadata
import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

try:
    _VERSION = importlib.metadata.version("flwr")
except importlib.metadata.PackageNotFoundError as _missing:
    _text = "flwr is not installed: `pip install 'fedgenie[flower]'` installs it"
    raise ImportError(_text, name="flwr") from _missing

try:
    from flwr.app import (  # type: ignore[import-not-found, unused-ignore]
        DEFAULT_TTL,
        Array,
        ArrayRecord,
        ConfigRecord,
        Context,
        Message,
        MetricRecord,
        RecordDict,
    )
    from flwr.app.metadata import Metadata  # type: ignore[import-not-found, unused-ignore]
    from flwr.clientapp import ClientApp  # type: ignore[import-not-found, unused-ignore]
    from flwr.serverapp import Grid  # type: ignore[import-not-found, unused-ignore]
    from flwr.serverapp.strategy import FedAvg, Strategy  # type: ignore[import-not-found, unused-ignore]
except ImportError as _lacking:
    _text = (
        f"flwr {_VERSION} lacks what fedgenie.flower needs ({_lacking}): the message API with its strategies; "
        "`pip install -U flwr` installs a version that has them"
    )
    raise ImportError(_text, name="flwr") from _lacking

__all__ = [
    "LOG",
    "Array",
    "ArrayRecord",
    "ClientApp",
    "ConfigRecord",
    "Context",
    "Exchange",
    "FedAvg",
    "Grid",
    "Message",
    "MetricRecord",
    "RecordDict",
    "Strategy",
    "WatchedGrid",
]

LOG = logging.getLogger("flwr")
"""Flower's own log, in which users look for what happens in a round."""

PARTITION = "partition-id"
"""Under this key a node's configuration has the number of its data."""

IDENTIFY = "fedgenie_identify"
"""The action that tells it."""

TRAIN = "train"
QUERY = "query"


class Arrival(NamedTuple):
    """A reply, when it was found."""

    message: Message
    node: int
    """The node that was asked."""
    waited_s: float
    """Seconds from sending to the look that found it."""
    doubt_s: float
    """It came at most so much earlier: seconds since the look before."""


class Exchange(NamedTuple):
    """Messages that were sent, and what came of them."""

    arrivals: list[Arrival]
    """In the order in which they were found."""
    missing: list[int]
    """Nodes that had not answered when the timeout was over."""
    unsent: list[int]
    """Nodes whose message Flower did not take."""
    waited_s: float


class _Announced:
    """The client of an `HttpGrid` that has one reply announced already, and passes all else on."""

    def __init__(self, client: Any, answer: Any) -> None:
        self._of = client
        self._answer = answer

    def PullMessages(self, request: Any) -> Any:
        return self._answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


class _Found(NamedTuple):
    """A reply, and when it was whole."""

    reply: Message
    at: float


class _Downloads:
    """Looks for replies, and receives each in a thread of its own.

    A SuperLink announces a reply before the client has uploaded it, and `HttpGrid.pull_messages` waits for the upload,
    with pauses of up to 10 s: meanwhile nothing is known of the others. So announcements are asked for here, all in one
    request, and each reply is received by a copy of the grid that has its announcement. Other grids are asked as they are.
    """

    def __init__(self, grid: Any, poll_s: float) -> None:
        self._grid = grid
        self._poll_s = poll_s
        self._going: set[str] = set()
        self._done: queue.SimpleQueue[tuple[str, float, list[Message] | BaseException]] = queue.SimpleQueue()
        self._http = _module_of_http(grid)
        self._before: Any = None if self._http is None else self._http.pull_objects

    def __enter__(self) -> Self:
        if self._http is not None:
            # The pauses of Flower's own function begin with a second.
            quick = {"initial_backoff": self._poll_s, "backoff_cap": self._poll_s, "max_tries_per_object": None}
            self._http.pull_objects = functools.partial(self._before, **quick)
        return self

    def __exit__(self, *error: object) -> None:
        if self._http is not None:
            self._http.pull_objects = self._before

    def look(self, numbers: Sequence[str]) -> list[_Found]:
        """Replies to these messages that are whole."""
        if self._http is None:
            looked = time.monotonic()
            return [_Found(reply, looked) for reply in self._grid.pull_messages(numbers)]
        asked = [number for number in numbers if number not in self._going]
        if asked:
            self._announce(asked)
        found = []
        while not self._done.empty():
            number, at, came = self._done.get()
            self._going.discard(number)
            if isinstance(came, BaseException):
                raise came
            found += [_Found(reply, at) for reply in came]
        return found

    def _announce(self, numbers: Sequence[str]) -> None:
        client, http = self._grid._runtime_client, self._http
        response = client.PullMessages(http.PullAppMessagesRequest(message_ids=numbers))
        for message, tree in zip(response.messages_list, response.message_object_trees, strict=True):
            number = message.metadata.reply_to_message_id
            if number not in numbers:
                continue
            self._going.add(number)
            grid = copy.copy(self._grid)
            one = http.PullAppMessagesResponse(messages_list=[message], message_object_trees=[tree])
            grid._client = _Announced(client, one)
            threading.Thread(target=self._receive, args=(grid, number), daemon=True).start()

    def _receive(self, grid: Any, number: str) -> None:
        try:
            came: list[Message] | BaseException = list(grid.pull_messages([number]))
        except BaseException as error:  # noqa: BLE001
            came = error
        self._done.put((number, time.monotonic(), came))


def _module_of_http(grid: Any) -> Any:
    """The module of an `HttpGrid` whose parts are those that `_Downloads` uses; None for other grids."""
    if type(grid).__name__ != "HttpGrid":
        return None
    found = importlib.import_module(type(grid).__module__)
    parts = ("pull_objects", "PullAppMessagesRequest", "PullAppMessagesResponse")
    if all(hasattr(found, part) for part in parts) and hasattr(type(grid), "_runtime_client"):
        return found
    LOG.warning(
        "flwr %s has a grid that is not known here: while it receives one reply others are not looked for, and latencies "
        "may be too long by that time, which is said where it happens",
        _VERSION,
    )
    return None


class _Passing(Grid):  # type: ignore[misc, unused-ignore]
    """A grid that passes all on to another."""

    def __init__(self, grid: Grid) -> None:
        self.grid: Any = grid

    def set_run(self, run: Any) -> None:
        self.grid.set_run(run)

    @property
    def run(self) -> Any:
        return self.grid.run

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        message: Message = self.grid.create_message(*args, **kwargs)
        return message

    def get_node_ids(self) -> Iterable[int]:
        found: Iterable[int] = self.grid.get_node_ids()
        return found

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        numbers: Iterable[str] = self.grid.push_messages(messages)
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        replies: Iterable[Message] = self.grid.pull_messages(message_ids)
        return replies

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        replies: Iterable[Message] = self.grid.send_and_receive(messages, timeout=timeout)
        return replies


class WatchedGrid(_Passing):
    """A grid that looks for replies every `poll_s` seconds, and notes by this machine's clock when they came.

    Flower's own grids look every 3 s, or every 0.1 s in a simulation, and do not say when a reply came. Replies that come
    after their timeout are looked for as well: until then their node is `busy`.
    """

    def __init__(self, grid: Grid, poll_s: float, found: Callable[[Arrival], None]) -> None:
        super().__init__(grid)
        self.poll_s = poll_s
        self.found = found
        """Called with each reply of training, as soon as it is there."""
        self.last: Exchange | None = None
        """Of the last messages that were sent by `send_and_receive`."""
        self._overdue: dict[str, tuple[int, float]] = {}
        self._downloads = _Downloads(grid, poll_s)

    @property
    def is_simulated(self) -> bool:
        """Whether nodes are those of Flower's simulation, whose clients wait for a process that trains them."""
        return type(self.grid).__name__ == "InMemoryGrid"

    @property
    def busy(self) -> set[int]:
        """Nodes that have not answered an earlier message."""
        return {node for node, _ in self._overdue.values()}

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Sends, and waits until all have answered or the timeout is over."""
        self.last = self.exchange(messages, timeout)
        return [arrival.message for arrival in self.last.arrivals]

    def exchange(self, messages: Iterable[Message], timeout: float | None) -> Exchange:
        """The same, with what came of each message."""
        messages = list(messages)
        if not messages:
            return Exchange([], [], [], 0.0)
        sent = looked = time.monotonic()
        taken = {number for number in self.grid.push_messages(messages) if number}
        # Flower writes the number of a message into it. Its list of numbers may lack those that it did not take.
        waiting = {
            message.metadata.message_id: message.metadata.dst_node_id
            for message in messages
            if message.metadata.message_id in taken
        }
        unsent = [m.metadata.dst_node_id for m in messages if m.metadata.message_id not in taken]
        is_training = messages[0].metadata.message_type.split(".")[0] == TRAIN
        arrivals: list[Arrival] = []
        with self._downloads:
            while waiting:
                before, looked = looked, time.monotonic()
                for reply, at in self._look(waiting):
                    node = waiting.pop(reply.metadata.reply_to_message_id)
                    # What the last look finds came before the timeout, or at it.
                    waited = at - sent if timeout is None else min(at - sent, timeout)
                    arrivals.append(Arrival(reply, node, waited, looked - before))
                    if is_training:
                        self.found(arrivals[-1])
                if timeout is not None and looked - sent >= timeout:
                    break
                rest = self.poll_s if timeout is None else min(self.poll_s, timeout - (time.monotonic() - sent))
                if waiting and rest > 0:
                    time.sleep(rest)
        self._overdue |= {number: (node, sent) for number, node in waiting.items()}
        return Exchange(arrivals, list(waiting.values()), unsent, time.monotonic() - sent)

    def _look(self, waiting: Mapping[str, int]) -> list[_Found]:
        """Replies to these messages; those to earlier ones free their nodes."""
        found = []
        for one in self._downloads.look([*waiting, *self._overdue]):
            number = one.reply.metadata.reply_to_message_id
            if number in waiting:
                found.append(one)
            elif number in self._overdue:
                node, sent = self._overdue.pop(number)
                LOG.info(
                    "node %s answered an earlier message after %.1f s: too late, it is not used", node, one.at - sent
                )
        return sorted(found, key=lambda one: one.at)

    def look_for_late(self) -> None:
        """Looks for replies to earlier messages alone."""
        if self._overdue:
            self._look({})


class _Some(_Passing):
    """A grid that knows some of the nodes only."""

    def __init__(self, grid: Grid, nodes: Sequence[int]) -> None:
        super().__init__(grid)
        self.nodes = list(nodes)

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)


@contextmanager
def _set(strategy: FedAvg, **values: float) -> Iterator[None]:
    """Other settings of a strategy for a while, and the state of Python's random numbers as it was."""
    before, state = {name: getattr(strategy, name) for name in values}, random.getstate()
    for name, value in values.items():
        setattr(strategy, name, value)
    try:
        yield
    finally:
        random.setstate(state)
        for name, value in before.items():
            setattr(strategy, name, value)


def training_messages(
    strategy: FedAvg, round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid, nodes: Sequence[int]
) -> list[Message]:
    """The messages of a strategy to exactly these nodes, in this order."""
    with _set(strategy, fraction_train=1.0, min_train_nodes=len(nodes), min_available_nodes=len(nodes)):
        messages = list(strategy.configure_train(round, arrays, config, _Some(grid, nodes)))
    found = {message.metadata.dst_node_id: message for message in messages}
    if len(messages) != len(nodes) or set(found) != set(nodes):
        text = (
            f"{type(strategy).__name__} made {len(messages)} messages for {len(found)} of the {len(nodes)} nodes that "
            "were chosen: it selects by itself; Selecting wraps strategies that ask every node they are given"
        )
        raise TypeError(text)
    return [found[node] for node in nodes]


def evaluation_messages(
    strategy: FedAvg, round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid, nodes: Sequence[int]
) -> list[Message]:
    """The messages of a strategy that evaluates on some of these nodes; fewer than it wants are no reason to wait."""
    least = min(strategy.min_evaluate_nodes, len(nodes))
    with _set(strategy, min_evaluate_nodes=least, min_available_nodes=min(strategy.min_available_nodes, len(nodes))):
        return list(strategy.configure_evaluate(round, arrays, config, _Some(grid, nodes)))


def told_reason(message: Message) -> str:
    """Why a client failed, in a line."""
    reason = " ".join(str(message.error.reason or "it gave no reason").split())
    return f"error {message.error.code}: {reason[:500]}"


def numbers_of(message: Message) -> dict[str, float]:
    """The single numbers of a reply's metrics, by name."""
    found: dict[str, float] = {}
    for record in message.content.metric_records.values():
        found |= {name: float(value) for name, value in record.items() if not isinstance(value, list)}
    return found


def _shapes(arrays: ArrayRecord) -> dict[str, tuple[int, ...]]:
    return {name: tuple(array.shape) for name, array in arrays.items()}


def fault_of(message: Message, sent: ArrayRecord, weight: str) -> str | None:
    """Why a reply cannot be averaged; None if it can."""
    records = list(message.content.array_records.values())
    if len(records) != 1:
        return f"its reply has {len(records)} ArrayRecords; expected 1"
    if len(message.content.metric_records) != 1:
        return f"its reply has {len(message.content.metric_records)} MetricRecords; expected 1"
    found, expected = _shapes(records[0]), _shapes(sent)
    for name in [*expected, *found]:
        if found.get(name) != expected.get(name):
            return (
                f"array {name!r}: found {_shape(found.get(name))}; {_shape(expected.get(name))} was sent, and the same is "
                "expected back"
            )
    for name, array in records[0].items():
        values = array.numpy()
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            return f"array {name!r} has a number that is not finite"
    numbers = numbers_of(message)
    if weight not in numbers:
        return f"its metrics have no single number {weight!r}; found {', '.join(numbers) or 'none'}"
    if not (np.isfinite(numbers[weight]) and numbers[weight] >= 0):
        return f"{weight} is {numbers[weight]}; expected a number of at least 0"
    return None


def _shape(shape: tuple[int, ...] | None) -> str:
    return "none" if shape is None else f"the shape {list(shape)}"


def row(arrays: ArrayRecord, order: Iterable[str]) -> NDArray[np.float32]:
    """All numbers of a model in a row."""
    parts = [np.asarray(arrays[name].numpy(), dtype=np.float32).ravel() for name in order]
    return np.ascontiguousarray(np.concatenate(parts)) if parts else np.zeros(0, np.float32)


def register_identity(app: ClientApp) -> None:
    """Lets a ClientApp tell the number of its data."""

    def tell(message: Message, context: Context) -> Message:
        found = context.node_config.get(PARTITION)
        if found is None:
            text = f"node_config has no {PARTITION}; start the SuperNode with --node-config '{PARTITION}=0'"
            raise ValueError(text)
        return Message(RecordDict({"identity": ConfigRecord({PARTITION: int(found)})}), reply_to=message)

    app.query(IDENTIFY)(tell)


def identities(grid: WatchedGrid, nodes: Sequence[int], timeout: float) -> tuple[dict[int, int], dict[int, str]]:
    """The number of the data of each of these nodes, and why others told none."""
    kind = f"{QUERY}.{IDENTIFY}"
    exchange = grid.exchange([Message(RecordDict(), node, kind) for node in nodes], timeout)
    told: dict[int, int] = {}
    failed = dict.fromkeys(exchange.missing, f"it had not answered after {timeout:g} s")
    failed |= dict.fromkeys(exchange.unsent, "Flower did not take the question")
    for arrival in exchange.arrivals:
        if arrival.message.has_error():
            failed[arrival.node] = told_reason(arrival.message)
        else:
            (record,) = arrival.message.content.config_records.values()
            told[arrival.node] = int(str(record[PARTITION]))
    return told, failed


def context(client: int, node_config: Mapping[str, Any], state: RecordDict, run_config: Mapping[str, Any]) -> Context:
    """The context of a client outside a federation."""
    return Context(
        run_id=1, node_id=client + 1, node_config=dict(node_config), state=state, run_config=dict(run_config)
    )  # fmt: skip


def instruction(client: int, kind: str, arrays: ArrayRecord, config: Mapping[str, Any]) -> Message:
    """A message to a client outside a federation, where no server gives messages their metadata."""
    metadata = Metadata(
        run_id=1,
        message_id=f"{client}",
        src_node_id=1,
        dst_node_id=client + 1,
        reply_to_message_id="",
        group_id="",
        created_at=time.time(),
        ttl=float(DEFAULT_TTL),
        message_type=kind,
    )
    content = RecordDict({"arrays": arrays, "config": ConfigRecord(dict(config))})
    made: Any = Message
    message: Message = made(content=content, metadata=metadata)
    return message
