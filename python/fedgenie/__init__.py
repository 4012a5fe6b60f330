"""FedGenie: a deterministic simulator of federated learning under client selection, with exact regret."""

from __future__ import annotations

from fedgenie._algorithm import Algorithm
from fedgenie._check import check
from fedgenie._fedgenie import (
    Ask,
    BoundWorld,
    Choice,
    Context,
    Feedback,
    Job,
    Jobs,
    Rng,
    Round,
    Subsets,
    Trained,
    Update,
    Updates,
    __version__,
)
from fedgenie._frames import Frame
from fedgenie._notices import FedGenieWarning
from fedgenie._results import Answers, Figure, Result, TextTable
from fedgenie._run import load, run, verify
from fedgenie._simulation import Question, RoundView, Simulation
from fedgenie._sweep import Sweep, merge, sweep
from fedgenie._views import Bounds, Probe, Probed, Segment
from fedgenie.errors import (
    ChangedError,
    CheckError,
    FedGenieError,
    PolicyError,
    RunError,
    ScenarioError,
    TaskError,
    UsageError,
    VerifyError,
)

__all__ = [
    "Algorithm",
    "Answers",
    "Ask",
    "BoundWorld",
    "Bounds",
    "ChangedError",
    "CheckError",
    "Choice",
    "Context",
    "FedGenieError",
    "FedGenieWarning",
    "Feedback",
    "Figure",
    "Frame",
    "Job",
    "Jobs",
    "PolicyError",
    "Probe",
    "Probed",
    "Question",
    "Result",
    "Rng",
    "Round",
    "RoundView",
    "RunError",
    "ScenarioError",
    "Segment",
    "Simulation",
    "Subsets",
    "Sweep",
    "TaskError",
    "TextTable",
    "Trained",
    "Update",
    "Updates",
    "UsageError",
    "VerifyError",
    "__version__",
    "check",
    "load",
    "merge",
    "run",
    "sweep",
    "verify",
]
