"""Drawn images of ten classes, some of which each client has, and softmax regression on them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

CLIENTS, CLASSES, PIXELS, EXAMPLES = 6, 10, 784, 80
RATE, STEPS, BATCH = 0.05, 10, 20

MEDIAN_S = [0.5, 1.0, 2.0, 3.0, 5.0, 8.0]
"""Median seconds of computing of each client; a lognormal law with σ = 0.4."""


@cache
def _prototypes() -> Array:
    return np.random.default_rng(7).normal(0, 1, (CLASSES, PIXELS))


def _draw(source: np.random.Generator, labels: Array) -> Array:
    return 0.12 * _prototypes()[labels] + source.normal(0, 1, (len(labels), PIXELS))


@cache
def of_client(client: int) -> tuple[Array, Array]:
    """Four neighbouring classes for each client, so that nobody has all."""
    source = np.random.default_rng(100 + client)
    labels = (2 * client + source.integers(0, 4, EXAMPLES)) % CLASSES
    return _draw(source, labels), labels


@cache
def test() -> tuple[Array, Array]:
    source = np.random.default_rng(99)
    labels = np.arange(1000) % CLASSES
    return _draw(source, labels), labels


def first() -> Array:
    return np.zeros((PIXELS + 1, CLASSES), np.float32)


def _probabilities(weights: Array, inputs: Array) -> Array:
    scores = inputs @ weights[:-1] + weights[-1]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def train(client: int, round: int, weights: Array) -> tuple[Array, float]:
    """Some steps of gradient descent; the loss before them."""
    inputs, labels = of_client(client)
    source = np.random.default_rng([3, client, round])
    found = weights.astype(np.float64)
    loss = float(-np.log(_probabilities(found, inputs)[np.arange(len(labels)), labels] + 1e-12).mean())
    for _ in range(STEPS):
        chosen = source.integers(0, len(labels), BATCH)
        slopes = _probabilities(found, inputs[chosen])
        slopes[np.arange(BATCH), labels[chosen]] -= 1
        found[:-1] -= RATE * inputs[chosen].T @ slopes / BATCH
        found[-1] -= RATE * slopes.mean(axis=0)
    return found.astype(np.float32), loss


def measure(weights: Array) -> dict[str, float]:
    inputs, labels = test()
    probabilities = _probabilities(weights.astype(np.float64), inputs)
    loss = -np.log(probabilities[np.arange(len(labels)), labels] + 1e-12).mean()
    return {"loss": float(loss), "accuracy": float((probabilities.argmax(axis=1) == labels).mean())}


def seconds(client: int, round: int, seed: int) -> float:
    """Drawn seconds of computing."""
    return float(MEDIAN_S[client] * np.exp(0.4 * np.random.default_rng([seed, client, round]).normal()))
