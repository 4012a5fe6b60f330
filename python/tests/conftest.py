"""Scenarios and policies that tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SMALL = """
name = "small"
seeds = 2
stop.rounds = 30
protocol.synchronous = { cohort = 4 }

[population]
clients = 20
[population.latency]
download = { constant = "25 ms" }
compute = { exponential = { mean = { uniform = ["0.1 s", "1 s"] } } }
upload = { constant = "25 ms" }

[policy.random]

[regret]
tau_min = "50 ms"
alpha = 3.0
beta = 1.2
"""

LEARNS = """
name = "learns"
seeds = 1
stop.rounds = 6
protocol.synchronous = { cohort = 3 }
task.linear-regression = { examples = 700 }
training = { batch = 32, optimizer = { sgd = { lr = 0.01 } } }

[population]
clients = 8
[population.latency]
download = { constant = "25 ms" }
compute = { exponential = { mean = { uniform = ["0.1 s", "1 s"] } } }
upload = { constant = "25 ms" }

[policy.random]
"""

AWAY = """
name = "away"
seeds = 2
stop.rounds = 40
protocol.synchronous = { cohort = 4 }

[population]
clients = 60
interrupted = "pause"
[population.latency]
download = { constant = "25 ms" }
compute = { exponential = { mean = "0.4 s" } }
upload = { constant = "25 ms" }
[population.availability.on-off]
on = { exponential = { mean = "20 s" } }
off = { exponential = { mean = "30 s" } }

[policy.random]
"""


class Random:
    """The built-in policy `random`, in Python."""

    def __init__(self, context: Any) -> None:
        pass

    def select(self, ask: Any) -> Any:
        return ask.rng.sample(ask.available, ask.cohort)


class First:
    """The first clients that are available."""

    def __init__(self, context: Any, **parameters: Any) -> None:
        self.parameters = parameters

    def select(self, ask: Any) -> Any:
        return ask.available[: ask.cohort]


@pytest.fixture
def small() -> str:
    return SMALL


@pytest.fixture
def root() -> Path:
    """The repository, where it is there."""
    return Path(__file__).parent.parent.parent
