"""Strategies of Flower whose clients a policy of FedGenie chooses."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fedgenie import _deployed, _flower
from fedgenie._flower import LOG, ArrayRecord, Arrival, ConfigRecord, FedAvg, Grid, Message, MetricRecord, Strategy
from fedgenie._job_log import JobLog

__all__ = ["Selecting"]

Partitions: TypeAlias = Mapping[int, int] | Callable[[Any], Mapping[int, int]]

OF_METRICS = ("loss", "loss_rms", "download_s", "compute_s", "upload_s", "total_s")
"""What a client may report, beside the number of its examples."""

PHASES = ("download_s", "compute_s", "upload_s")

LOOK_S = 1.0
"""How often nodes that are waited for are looked for."""

DOUBT_S = 0.1
"""Latencies are known within this, or else it is said."""


class _Job(NamedTuple):
    """A job that is over."""

    client: int
    outcome: str
    latency_s: float
    """As the policy is told it."""
    total_s: float
    """By the server's clock."""
    phases_s: tuple[float | None, float | None, float | None]
    numbers: dict[str, float]
    reply: Message | None


class _Open(NamedTuple):
    """A round under way."""

    round: int
    chosen: list[int]
    """In the order of the policy."""
    arrays: ArrayRecord
    sent_s: float


class Selecting(Strategy):  # type: ignore[misc, unused-ignore]
    """One of Flower's averaging strategies, whose clients a policy of FedGenie chooses.

    `strategy` is `FedAvg` or one that is derived from it. `policy` is the name of a policy of FedGenie, or a class of
    one's own, `parameters` are its parameters as a scenario has them. `clients` is their number: a client is called by its
    `partition-id`, from 0. A ClientApp tells it by `fedgenie.flower.identify(app)`; otherwise `partitions` maps the
    numbers of nodes to those of clients, or is a function of the grid that returns such a map.

    `cohort` is how many clients the policy chooses, by default as many as the strategy would of all of them. `seed` is
    that of the policy's random numbers: those of a run of FedGenie with the same seed. `data_sizes` are the clients'
    numbers of examples, all alike by default; `declared` has a pair of seconds for each client, of computing and of
    transfer, for policies that ask devices.

    A latency is the time from sending to the reply by the server's clock, which looks every `poll_s` seconds. `metrics`
    are names of numbers that clients report: `loss` (`train_loss` if none is given), `loss_rms`, and `download_s`,
    `compute_s`, `upload_s`, `total_s` in seconds; with `total_s` the policy is told that number as the latency.

    `record` is a file for a log of jobs. `regret` has `tau_min`, `alpha` and `beta`, from which policies take parameters
    that they are not given. Before the first round all clients are waited for, later `min_available` of them, at most
    `connect_s` seconds.
    """

    def __init__(
        self,
        strategy: FedAvg,
        policy: Any = "bsfl",
        parameters: Mapping[str, Any] | None = None,
        clients: int = 0,
        *,
        cohort: int | None = None,
        seed: int = 1,
        partitions: Partitions | None = None,
        data_sizes: Sequence[int] | None = None,
        declared: Sequence[tuple[float, float]] | None = None,
        metrics: Mapping[str, str] | None = None,
        regret: Mapping[str, Any] | None = None,
        record: str | os.PathLike[str] | None = None,
        min_available: int | None = None,
        poll_s: float = 0.05,
        connect_s: float = 300.0,
    ) -> None:
        _check(strategy, clients, poll_s, connect_s)
        self.strategy = strategy
        self.clients = clients
        self.cohort = _cohort(strategy, clients, cohort)
        self.metrics = {"loss": "train_loss", **(metrics or {})}
        for name in self.metrics:
            if name not in OF_METRICS:
                message = f"metrics: found {name!r}; expected one of {', '.join(OF_METRICS)}"
                raise ValueError(message)
        self.min_available = min_available
        if min_available is not None and not 1 <= min_available <= clients:
            message = f"found min_available={min_available!r}; expected a number from 1 to {clients}"
            raise ValueError(message)
        self._partitions = partitions
        self._times = poll_s, connect_s
        self._described = _deployed.Described(
            policy=policy,
            parameters=dict(parameters or {}),
            clients=clients,
            cohort=self.cohort,
            seed=seed,
            data_sizes=data_sizes,
            declared=declared,
            metrics=self.metrics,
            regret=regret,
        )
        # Whether the policy can be used here is said now, and not when clients wait.
        self._chooser = self._described.chooser(None)
        self.record = None if record is None else JobLog(record)
        self._grid: _flower.WatchedGrid | None = None
        self._forget()

    def _forget(self) -> None:
        """The state before the first round."""
        self._began = self._closed = time.monotonic()
        self._node_of: dict[int, int] = {}
        self._client_of: dict[int, int] = {}
        self._refused: dict[int, str] = {}
        self._open: _Open | None = None
        self._jobs: list[_Job] = []
        self._timeout: float | None = None

    @property
    def counts(self) -> Any:
        """How often each client was chosen."""
        return self._chooser.counts

    @property
    def latency_source(self) -> str:
        """What the policy is told as the latency of a client."""
        if "total_s" in self.metrics:
            return f"the metric {self.metrics['total_s']!r} that clients report"
        return f"the server's clock, which looks for replies every {self._times[0]:g} s"

    def summary(self) -> None:
        """Logs the settings."""
        LOG.info("\t├──> Clients are chosen by FedGenie: %s", self._described.told())
        LOG.info("\t│\t├── %s of %s clients a round, seed %s", self.cohort, self.clients, self._described.seed)
        LOG.info("\t│\t├── Latencies: %s", self.latency_source)
        if self._described.data_sizes is None:
            LOG.info("\t│\t├── data_sizes is not given: all clients count as having equally many examples")
        LOG.info("\t│\t└── Log of jobs: %s", "none" if self.record is None else self.record.path)
        self.strategy.summary()

    def start(self, grid: Grid, *args: Any, **kwargs: Any) -> Any:
        """As Flower's `start`. The policy begins anew."""
        self._forget()
        # The third argument after the grid, as Flower has it.
        self._timeout = kwargs.get("timeout", args[2] if len(args) > 2 else 3600.0)
        if self._timeout is not None and not (math.isfinite(self._timeout) and self._timeout > 0):
            message = f"found timeout={self._timeout!r}; expected a positive number of seconds"
            raise ValueError(message)
        self._chooser = self._described.chooser(self._timeout)
        self._grid = _flower.WatchedGrid(grid, self._times[0], self._take)
        if self._grid.is_simulated and "total_s" not in self.metrics:
            LOG.warning(
                "in a simulation of Flower clients wait for a process that trains them, and latencies by the server's "
                "clock contain that; fedgenie.flower.Task simulates devices"
            )
        if self.cohort == self.clients:
            LOG.warning("all %s clients are chosen in every round; give cohort=, or fraction_train", self.clients)
        if self.record is not None:
            self.record.begin()
        try:
            return super().start(self._grid, *args, **kwargs)
        finally:
            if self.record is not None:
                self.record.close()

    def _now(self) -> float:
        return time.monotonic() - self._began

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Asks the policy, and has the strategy write to the nodes of its clients."""
        grid = self._watched(grid)
        available = self._available(grid, server_round)
        chosen = self._chooser.choose(server_round, self._now(), sorted(available))
        self._jobs = []
        self._open = _Open(server_round, chosen, arrays, self._now())
        LOG.info("configure_train: %s chose clients %s of %s", self._described.label, chosen, len(available))
        if not chosen:
            return []
        nodes = [available[client] for client in chosen]
        messages = _flower.training_messages(self.strategy, server_round, arrays, config, grid, nodes)
        self._open = self._open._replace(sent_s=self._now())
        return messages

    def _watched(self, grid: Grid) -> _flower.WatchedGrid:
        if self._grid is None or grid is not self._grid:
            message = (
                "the grid is not that of Selecting.start, which notes when replies arrive; call start(grid, …) instead of "
                "the single steps"
            )
            raise TypeError(message)
        return self._grid

    def _available(self, grid: _flower.WatchedGrid, round: int) -> dict[int, int]:
        """Clients that can be chosen, and their nodes; waits until there are enough."""
        least = self.min_available or (self.clients if round == 1 else 1)
        began = time.monotonic()
        told = began
        while True:
            grid.look_for_late()
            nodes = list(grid.get_node_ids())
            self._identify(grid, [node for node in nodes if node not in self._client_of and node not in self._refused])
            free = set(nodes) - grid.busy
            found = {self._client_of[node]: node for node in nodes if node in free and node in self._client_of}
            if len(found) >= least:
                return found
            waited = time.monotonic() - began
            if waited >= self._times[1]:
                raise TimeoutError(self._too_few(round, found, least, grid))
            if time.monotonic() - told >= 10 or told == began:
                told = time.monotonic()
                LOG.info("waiting for clients: %s of %s are there", len(found), least)
            time.sleep(LOOK_S)

    def _too_few(self, round: int, found: Mapping[int, int], least: int, grid: _flower.WatchedGrid) -> str:
        away = [client for client in range(self.clients) if client not in found]
        busy = [self._client_of[node] for node in sorted(grid.busy) if node in self._client_of]
        told = "".join(f"; node {node}: {reason}" for node, reason in sorted(self._refused.items())[:3])
        return (
            f"round {round}: after {self._times[1]:g} s {len(found)} clients can be chosen; expected {least}. Not there: "
            f"{away[:20]}{' …' if len(away) > 20 else ''}; still busy with an earlier job: {busy}{told}"
        )

    def _identify(self, grid: _flower.WatchedGrid, nodes: Sequence[int]) -> None:
        """Learns which clients some nodes are."""
        if not nodes:
            return
        failed: Mapping[int, str] = {}
        if self._partitions is None:
            told, failed = _flower.identities(grid, nodes, min(60.0, self._times[1]))
        else:
            known = self._partitions(grid.grid) if callable(self._partitions) else self._partitions
            told = {node: known[node] for node in nodes if node in known}
            failed = {node: "partitions does not have it" for node in nodes if node not in told}
        for node, reason in failed.items():
            self._refused[node] = reason
            LOG.warning("node %s cannot be chosen, since it is not known which client it is: %s", node, reason)
        if self._partitions is None and failed and not told and not self._client_of:
            reason = next(iter(failed.values()))
            message = (
                f"no node told which client it is ({reason}); write `app = fedgenie.flower.identify(app)` where the "
                "ClientApp is made, or give partitions="
            )
            raise ValueError(message)
        self._take_over(told)

    def _take_over(self, told: Mapping[int, int]) -> None:
        both = {client: [node for node in told if told[node] == client] for client in told.values()}
        for client, nodes in both.items():
            if not 0 <= client < self.clients:
                message = (
                    f"node {nodes[0]} is client {client}; clients={self.clients} has those from 0 to {self.clients - 1}"
                )
                raise ValueError(message)
            if len(nodes) > 1:
                message = (
                    f"nodes {nodes[0]} and {nodes[1]} are both client {client}; give each a partition-id of its own"
                )
                raise ValueError(message)
            before = self._node_of.get(client)
            if before is not None:
                LOG.warning("client %s was node %s, and is node %s from now on", client, before, nodes[0])
                del self._client_of[before]
                self._refused[before] = f"client {client} is node {nodes[0]}"
            self._node_of[client], self._client_of[nodes[0]] = nodes[0], client

    def _take(self, arrival: Arrival) -> None:
        """Takes a reply in, as soon as it is there."""
        assert self._open is not None
        client, round = self._client_of[arrival.node], self._open.round
        if arrival.doubt_s > DOUBT_S and "total_s" not in self.metrics:
            LOG.warning(
                "round %s, client %s: its latency of %.2f s may be up to %.2f s too long, since it was not looked for",
                round, client, arrival.waited_s, arrival.doubt_s,
            )  # fmt: skip
        numbers: dict[str, float] = {}
        if arrival.message.has_error():
            fault: str | None = _flower.told_reason(arrival.message)
        else:
            numbers = _flower.numbers_of(arrival.message)
            fault = _flower.fault_of(arrival.message, self._open.arrays, self.strategy.weighted_by_key)
            fault = fault or self._fault_of_numbers(numbers, client)
        phases = self._phases(numbers, arrival.waited_s, client)
        if fault is not None:
            LOG.warning("round %s, client %s: its update is not used: %s", round, client, fault)
            self._end(_Job(client, "dropped", arrival.waited_s, arrival.waited_s, phases, numbers, None))
            return
        told = numbers[self.metrics["total_s"]] if "total_s" in self.metrics else arrival.waited_s
        self._end(_Job(client, "arrived", told, arrival.waited_s, phases, numbers, arrival.message))

    def _fault_of_numbers(self, numbers: Mapping[str, float], client: int) -> str | None:
        """What the policy needs that a reply does not have. In the first round it is a name that is wrong."""
        needed = [*(["loss"] if self._chooser.needs_losses else []), *(n for n in self.metrics if n != "loss")]
        for name in needed:
            key = self.metrics[name]
            if key not in numbers:
                fault = f"its metrics have no number {key!r} ({name}); found {', '.join(numbers) or 'none'}"
                if self._open is not None and self._open.round == 1:
                    message = f"round 1, client {client}: {fault}; metrics={{{name!r}: …}} names it"
                    raise ValueError(message)
                return fault
            if name.endswith("_s") and not (math.isfinite(numbers[key]) and numbers[key] >= 0):
                return f"{key} ({name}) is {numbers[key]}; expected seconds"
        return None

    def _phases(
        self, numbers: Mapping[str, float], total_s: float, client: int
    ) -> tuple[float | None, float | None, float | None]:
        """Reported phases of a job, unless they are longer than the whole."""
        download, compute, upload = (numbers.get(self.metrics.get(name, "")) for name in PHASES)
        known = [value for value in (download, compute, upload) if value is not None]
        if sum(known) > total_s or any(not value >= 0 for value in known):
            LOG.warning(
                "client %s reports phases of %s s in a job of %.3f s: they are left out", client, known, total_s
            )
            return None, None, None
        return download, compute, upload

    def _end(self, job: _Job) -> None:
        assert self._open is not None
        self._jobs.append(job)
        if self.record is not None:
            self.record.add(
                job.client, self._open.round, self._open.sent_s, job.phases_s, job.total_s, job.outcome
            )  # fmt: skip

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Aggregates replies in the order of clients, and tells the policy how the round went."""
        if self._open is None or self._grid is None or self._open.round != server_round:
            message = f"round {server_round} was not configured by this strategy; call start(grid, …)"
            raise TypeError(message)
        opened, exchange = self._open, self._grid.last
        if opened.chosen and exchange is not None:
            for node in exchange.missing:
                client = self._client_of[node]
                LOG.warning("round %s, client %s: no answer within the timeout", server_round, client)
                waited = exchange.waited_s if self._timeout is None else self._timeout
                self._end(_Job(client, "late", waited, waited, (None, None, None), {}, None))
            for node in exchange.unsent:
                client = self._client_of[node]
                LOG.warning("round %s, client %s: Flower did not take its message", server_round, client)
                self._end(_Job(client, "dropped", 0.0, 0.0, (None, None, None), {}, None))
        arrived = sorted((job for job in self._jobs if job.reply is not None), key=lambda job: job.client)
        weights = [job.numbers[self.strategy.weighted_by_key] for job in arrived]
        if arrived and not sum(weights) > 0:
            LOG.warning("round %s: all updates have the weight 0, and none is used", server_round)
            arrived = []
        replies = [job.reply for job in arrived if job.reply is not None]
        aggregated: tuple[ArrayRecord | None, MetricRecord | None] = self.strategy.aggregate_train(
            server_round, replies
        )
        now = time.monotonic()
        news = self._news(opened, arrived, aggregated[0], now - self._closed)
        self._closed, self._open = now, None
        self._chooser.tell(server_round, news)
        return aggregated

    def _news(
        self, opened: _Open, arrived: Sequence[_Job], made: ArrayRecord | None, duration_s: float
    ) -> dict[str, Any]:
        """The round for the policy."""
        place = {client: number for number, client in enumerate(opened.chosen)}
        late = sorted((job for job in self._jobs if job.outcome != "arrived"), key=lambda job: place[job.client])
        jobs = [*(job for job in self._jobs if job.outcome == "arrived"), *late]
        order, models = list(opened.arrays), self._chooser.wants_models
        record = {job.client: next(iter(job.reply.content.array_records.values())) for job in arrived if job.reply}

        def number(job: _Job, name: str) -> float | None:
            return job.numbers.get(self.metrics.get(name, ""))

        return {
            "jobs": [self._told(job) for job in jobs],
            "trained": [
                {
                    "client": job.client,
                    "latency_s": job.latency_s,
                    "examples": int(job.numbers[self.strategy.weighted_by_key]),
                    "loss": number(job, "loss") if number(job, "loss") is not None else math.nan,
                    "loss_rms": number(job, "loss_rms"),
                    "model": _flower.row(record[job.client], order) if models else None,
                }
                for job in arrived
            ],
            "duration_s": duration_s,
            "down_bytes": opened.arrays.count_bytes() * len(opened.chosen),
            "up_bytes": sum(arrays.count_bytes() for arrays in record.values()),
            "sent": _flower.row(opened.arrays, order) if models else None,
            "made": _flower.row(made or opened.arrays, order) if models else None,
        }

    def _told(self, job: _Job) -> dict[str, Any]:
        """A job for the policy. The effective latency of a client that failed is the timeout, as in a run."""
        waited = job.latency_s
        if job.outcome != "arrived":
            waited = max(job.total_s, self._timeout if self._timeout is not None else 0.0)
        download, compute, upload = (value or 0.0 for value in job.phases_s)
        # What is in no phase is computing, so that the phases are the whole.
        rest = max(waited - download - compute - upload, 0.0) if job.outcome == "arrived" else 0.0
        return {
            "client": job.client,
            "outcome": job.outcome,
            "waited_s": waited,
            "is_called_off": False,
            "phases_s": [download, compute + rest, upload],
        }

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Evaluates as the strategy does, on clients that are there and have no job left."""
        grid = self._watched(grid)
        nodes = [self._node_of[client] for client in sorted(self._node_of)]
        there = set(grid.get_node_ids()) - grid.busy
        nodes = [node for node in nodes if node in there]
        return _flower.evaluation_messages(self.strategy, server_round, arrays, config, grid, nodes) if nodes else []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Aggregates replies in the order of clients."""
        client_of: Callable[[Message], int] = lambda m: self._client_of.get(m.metadata.src_node_id, self.clients)
        return self.strategy.aggregate_evaluate(server_round, sorted(replies, key=client_of))


def _check(strategy: Any, clients: Any, poll_s: float, connect_s: float) -> None:
    if not isinstance(strategy, FedAvg):
        message = (
            f"found a strategy of the type {type(strategy).__name__}; expected one of Flower's averaging strategies with "
            "the message API: flwr.serverapp.strategy.FedAvg, or one that is derived from it"
        )
        raise TypeError(message)
    if type(strategy).__name__.startswith("FedXgb"):
        message = (
            f"found {type(strategy).__name__}, which averages no arrays but joins trees; take an averaging strategy"
        )
        raise TypeError(message)
    if isinstance(clients, bool) or not isinstance(clients, (int, np.integer)) or clients < 1:
        message = f"found clients={clients!r}; expected the number of clients, at least 1"
        raise ValueError(message)
    for name, value in (("poll_s", poll_s), ("connect_s", connect_s)):
        if not (math.isfinite(value) and value > 0):
            message = f"found {name}={value!r}; expected a positive number of seconds"
            raise ValueError(message)


def _cohort(strategy: FedAvg, clients: int, cohort: int | None) -> int:
    """How many clients are chosen: as many as the strategy would of all, unless it is said."""
    if cohort is None:
        wanted: int = max(int(clients * strategy.fraction_train), strategy.min_train_nodes, 1)
        return min(wanted, clients)
    if isinstance(cohort, bool) or not isinstance(cohort, (int, np.integer)) or not 1 <= cohort <= clients:
        message = f"found cohort={cohort!r}; expected a number from 1 to {clients}"
        raise ValueError(message)
    return int(cohort)
