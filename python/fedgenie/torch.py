"""Tasks whose clients train a model of PyTorch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedgenie._fedgenie import Update
from fedgenie._pool import Pool

if TYPE_CHECKING:
    from fedgenie._pool import JobLike

__all__ = ["Task"]

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]

    _Data = tuple[torch.Tensor, torch.Tensor]
    _Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
else:
    try:
        import torch
    except ImportError as missing:

        class _Absent:
            """PyTorch, where it is not installed."""

            name = missing.name

            def __getattr__(self, attribute: str) -> object:
                message = f"{self.name} is not installed: `pip install 'fedgenie[torch]'` installs it"
                raise ImportError(message, name=self.name)

        torch = _Absent()

Weights = dict[str, NDArray[np.float32]]

_LOCK = threading.Lock()
"""PyTorch has one stream of random numbers and one number of threads for the whole process."""


@contextmanager
def _alone(seed: int) -> Iterator[None]:
    """PyTorch's random numbers from a seed, and one thread: the same bits on any number of cores."""
    with _LOCK, torch.random.fork_rng(devices=[]):
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def _sgd(parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1)


class Task:
    """Clients train a model of PyTorch: give it as `task=` to `fedgenie.run`.

    `make_model()` returns a module. `clients` has a pair of tensors for each client, inputs and targets, and `test` is
    such a pair. `loss(outputs, targets)` is a mean over a batch, cross entropy if none is given.
    `optimizer(parameters)` returns an optimizer, new for each job. Buffers, such as the means of batch normalisation,
    are averaged like parameters. Any algorithm of FedGenie folds the updates: its corrections of gradients, and the
    pull towards the model that was sent, are added to the gradients.

    PyTorch has one stream of random numbers for a process, so that jobs of one process train one after another.
    `processes` of at least 2 trains the jobs of a round in so many processes, with the same bits; then `make_model`,
    `loss` and `optimizer` are functions of a module that can be imported.

    Epochs, batches and the optimizer are those given here, not those of `[training]`; a policy's `Choice.work` takes the
    place of `epochs`.
    """

    def __init__(
        self,
        make_model: Callable[[], torch.nn.Module],
        clients: Sequence[_Data],
        test: _Data,
        loss: _Loss | None = None,
        optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] | None = None,
        epochs: int = 1,
        batch: int = 32,
        metrics: Mapping[str, str] | None = None,
        processes: int = 1,
    ) -> None:
        if processes < 1:
            message = f"found processes={processes}; expected at least 1"
            raise ValueError(message)
        cross_entropy: _Loss = torch.nn.functional.cross_entropy
        self.make_model = make_model
        self.clients = clients
        self.test = test
        self.loss = loss or cross_entropy
        self.optimizer = optimizer or _sgd
        self.epochs = epochs
        self.batch = batch
        self.processes = processes
        has_classes = not test[1].is_floating_point()
        self.metrics = dict(metrics or {"test_loss": "min", **({"test_accuracy": "max"} if has_classes else {})})
        """Metrics and their better direction; the first is the main one."""

    def __call__(self, seed: int, clients: int) -> _Seeded:
        """The task of a seed."""
        return self.alone(seed, clients) if self.processes == 1 else _Spread(self, seed, clients)

    def alone(self, seed: int, clients: int) -> _Seeded:
        """The task of a seed, trained in this process."""
        return _Seeded(self, seed, clients)


class _Seeded:
    """The task of a seed: the model that all policies start from. Training changes nothing in it."""

    def __init__(self, task: Task, seed: int, clients: int) -> None:
        if len(task.clients) != clients:
            message = f"found data of {len(task.clients)} clients; the scenario has {clients}"
            raise ValueError(message)
        self.task = task
        self.metrics = task.metrics
        self.examples = [len(targets) for _, targets in task.clients]
        with _alone(seed):
            self.model = task.make_model()
        state: dict[str, torch.Tensor] = self.model.state_dict()
        self.start = {name: _array(value) for name, value in state.items() if value.is_floating_point()}
        # Counters, such as the batches that a normalisation has met: each job begins with those of the first model.
        self.counters = {name: value.clone() for name, value in state.items() if not value.is_floating_point()}

    def parameters(self) -> Weights:
        """Parameters and buffers of the first model."""
        return self.start

    def _load(self, weights: Mapping[str, NDArray[np.float32]]) -> dict[str, torch.Tensor]:
        state: dict[str, torch.Tensor] = self.model.state_dict()
        with torch.no_grad():
            for name, value in state.items():
                value.copy_(self.counters[name] if name in self.counters else torch.from_numpy(weights[name].copy()))
        return {name: value for name, value in state.items() if name not in self.counters}

    def train(self, job: JobLike) -> Update:
        """The job of a client."""
        with _alone(job.seed):
            return self._train(job)

    def _train(self, job: JobLike) -> Update:
        task = self.task
        inputs, targets = task.clients[job.client]
        state = self._load(job.weights)
        self.model.train()
        pulls = [
            (parameter, torch.from_numpy(job.weights[name].copy()), _tensor(job.correction, name))
            for name, parameter in self.model.named_parameters()
            if job.proximal or job.correction is not None
        ]
        optimizer = task.optimizer(self.model.parameters())
        steps, told = 0, 0.0
        for epoch in range(job.work or task.epochs):
            order = torch.randperm(len(targets))
            for part in order.split(task.batch):
                if job.is_cancelled:
                    break
                optimizer.zero_grad()
                loss = task.loss(self.model(inputs[part]), targets[part])
                loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
                for parameter, sent, correction in pulls:
                    if parameter.grad is None:
                        continue
                    if correction is not None:
                        parameter.grad += correction
                    if job.proximal:
                        parameter.grad += job.proximal * (parameter.detach() - sent)
                optimizer.step()
                steps += 1
                if epoch == 0:
                    told += float(loss.detach()) * len(part)
        self.model.zero_grad()
        mean = told / max(len(targets), 1)
        return Update({name: _array(value) for name, value in state.items()}, loss=mean, steps=steps)

    def gradient(self, job: JobLike) -> Weights:
        """The mean gradient of a client's loss at the model that it was sent."""
        with _alone(job.seed):
            inputs, targets = self.task.clients[job.client]
            self._load(job.weights)
            self.model.train()
            self.model.zero_grad()
            self.task.loss(self.model(inputs), targets).backward()  # type: ignore[no-untyped-call, unused-ignore]
            found = {name: np.zeros_like(value) for name, value in job.weights.items()}
            for name, parameter in self.model.named_parameters():
                if parameter.grad is not None:
                    found[name] = _array(parameter.grad)
            self.model.zero_grad()
        return found

    def client_loss(self, client: int, weights: Mapping[str, NDArray[np.float32]]) -> float:
        """The loss of a model on a client's data."""
        inputs, targets = self.task.clients[client]
        with _alone(0), torch.no_grad():
            self._load(weights)
            self.model.eval()
            return float(self.task.loss(self.model(inputs), targets))

    def evaluate(self, weights: Mapping[str, NDArray[np.float32]]) -> dict[str, float]:
        """Metrics on test data."""
        inputs, targets = self.task.test
        with _alone(0), torch.no_grad():
            self._load(weights)
            self.model.eval()
            outputs = self.model(inputs)
            measured = {"test_loss": float(self.task.loss(outputs, targets))}
            if "test_accuracy" in self.metrics:
                measured["test_accuracy"] = float((outputs.argmax(dim=1) == targets).double().mean())
        return measured


class _Spread(_Seeded):
    """The task of a seed whose jobs are trained in processes."""

    def __init__(self, task: Task, seed: int, clients: int) -> None:
        super().__init__(task, seed, clients)
        self.pool = Pool.of(task, task.processes, seed, clients)

    def train_many(self, jobs: Sequence[JobLike]) -> list[Update]:
        """The jobs of a round."""
        return self.pool.train(jobs)


def _array(value: torch.Tensor) -> NDArray[np.float32]:
    found: NDArray[np.float32] = value.detach().to(torch.float32).cpu().numpy().copy()
    return found


def _tensor(arrays: Mapping[str, NDArray[np.float32]] | None, name: str) -> torch.Tensor | None:
    return None if arrays is None else torch.from_numpy(arrays[name].copy())
