"""The exceptions of FedGenie. Their texts are those of the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedgenie._results import Result

__all__ = [
    "ChangedError",
    "CheckError",
    "FedGenieError",
    "PolicyError",
    "RunError",
    "ScenarioError",
    "TaskError",
    "UsageError",
    "VerifyError",
]


class FedGenieError(Exception):
    """Any error of FedGenie."""


class ScenarioError(FedGenieError, ValueError):
    """A scenario is wrong; nothing was run."""

    def __init__(self, text: str, path: str | None, line: int | None, key: str, message: str) -> None:
        super().__init__(text)
        self.path = path
        """The file, or where else the value was written."""
        self.line = line
        """The line, from 1."""
        self.key = key
        """The key, from the scenario's root."""
        self.message = message
        """The fault."""


class UsageError(FedGenieError, ValueError):
    """Arguments are wrong, or a folder cannot be used."""


class ChangedError(FedGenieError):
    """Files of a result folder were changed, and were not used."""


class RunError(FedGenieError, RuntimeError):
    """A run failed. The others were carried out."""

    def __init__(self, text: str, run: str | None, round: int | None) -> None:
        super().__init__(text)
        self.run = run
        """The run's name."""
        self.round = round
        """The round in which it failed, where that is known."""
        self.result: Result | None = None
        """The results of the other runs."""


class PolicyError(RunError):
    """A policy raised an exception, which is the cause, or broke the rules of selections."""


class TaskError(RunError):
    """A task raised an exception, which is the cause, or returned something unusable."""


class VerifyError(FedGenieError):
    """A replay differs from the stored files, or runs are missing."""

    def __init__(self, text: str, verdict: dict[str, Any]) -> None:
        super().__init__(text)
        self.verdict = verdict
        """What `fedgenie verify --json` prints."""


class CheckError(FedGenieError):
    """Two tries of the same run differ."""

    def __init__(self, text: str, run: str, round: int) -> None:
        super().__init__(text)
        self.run = run
        """The run's name."""
        self.round = round
        """The first round that differs."""
