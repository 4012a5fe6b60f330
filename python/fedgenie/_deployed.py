"""Policies outside a simulation: made as in a scenario, and asked by a deployment."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fedgenie import _fedgenie, _kinds, _scenario

__all__ = ["REWARD", "Described"]

REWARD = {"tau_min": "0.1 s", "alpha": 3.0, "beta": 1.2}
"""Parameters of the reward that policies maximise, where they are not given: the shortest latency that a deployment tells
from another, and the weights of the paper of BSFL."""


class Described(NamedTuple):
    """A policy with what a deployment knows."""

    policy: Any
    parameters: dict[str, Any]
    clients: int
    cohort: int
    seed: int
    data_sizes: Sequence[int] | None
    declared: Sequence[tuple[float, float]] | None
    metrics: Mapping[str, str]
    regret: Mapping[str, Any] | None

    @property
    def label(self) -> str:
        """The name of the policy."""
        if isinstance(self.policy, str):
            return self.policy
        made = self.policy[0] if isinstance(self.policy, tuple) else self.policy
        return _kinds.named_as(made)

    def told(self) -> str:
        """The policy with its parameters, and the reward that it takes others from."""
        reward = {**REWARD, **(self.regret or {})}
        return f"policy {self.label}, parameters {self.parameters or 'none'}, defaults from {reward}"

    def chooser(self, timeout_s: float | None) -> _fedgenie.Chooser:
        """The policy before its first selection."""
        sizes = self._sizes()
        policies: dict[str, Any] | None = None
        if not isinstance(self.policy, str):
            made, own = self.policy if isinstance(self.policy, tuple) else (self.policy, {})
            if not (inspect.isclass(made) or callable(made)):
                message = (
                    f"found policy={made!r}; give a name, such as 'bsfl', a class, or (Class, {{parameter: value}})"
                )
                raise TypeError(message)
            policies = {self.label: (made, {**own, **self.parameters})}
        scenario: dict[str, Any] = {
            "name": "deployment",
            "seeds": [self.seed],
            "stop": {"rounds": 1},
            "population": {
                "clients": self.clients,
                "latency": {phase: {"constant": "1 s"} for phase in ("download", "compute", "upload")},
            },
            "protocol": {"synchronous": {"cohort": self.cohort}},
            "regret": {**REWARD, **(self.regret or {})},
        }
        if policies is None:
            scenario["policy"] = {self.label: self.parameters}
        setup = _scenario.described(
            scenario,
            set=None,
            seeds=None,
            reference=None,
            data=None,
            allow_paths=False,
            policies=policies,
            task=None,
        )
        return _fedgenie.chooser(
            setup,
            {
                "label": self.label,
                "seed": self.seed,
                "cohort": self.cohort,
                "data_sizes": sizes,
                "timeout_s": timeout_s,
                "declared": self._declared(),
                "reports_loss": "loss" in self.metrics,
                "reports_loss_rms": "loss_rms" in self.metrics,
            },
        )

    def _sizes(self) -> list[int]:
        if self.data_sizes is None:
            return [1] * self.clients
        sizes = [int(size) for size in self.data_sizes]
        if len(sizes) != self.clients or not all(0 <= size < 2**32 for size in sizes) or not any(sizes):
            message = (
                f"found data_sizes of {len(sizes)} clients; expected the number of examples of each of the {self.clients}, "
                "not all 0"
            )
            raise ValueError(message)
        return sizes

    def _declared(self) -> list[tuple[float, float]] | None:
        if self.declared is None:
            return None
        declared = [(float(compute), float(transfer)) for compute, transfer in self.declared]
        is_good = all(math.isfinite(seconds) and seconds >= 0 for pair in declared for seconds in pair)
        if len(declared) != self.clients or not is_good:
            message = (
                f"found declared of {len(declared)} clients; expected a pair of seconds for each of the {self.clients}"
            )
            raise ValueError(message)
        return declared
