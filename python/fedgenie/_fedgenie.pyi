"""The compiled part."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from fedgenie._views import Bounds, Probed, Segment
from fedgenie.errors import RunError

__all__ = [
    "__version__",
    "Updates",
    "Apart",
    "Gathering",
    "Ask",
    "BoundWorld",
    "Rng",
    "Choice",
    "Context",
    "Feedback",
    "Jobs",
    "Trained",
    "Round",
    "Subsets",
    "Columns",
    "Results",
    "Job",
    "Update",
    "command",
    "run",
    "load",
    "Chooser",
    "Playing",
    "chooser",
    "play",
    "verify",
    "gather",
    "merge",
    "so_far",
]

__version__: str

@final
class Rng:
    """The stream of random numbers of a decision: the very one that a policy in Rust draws from."""

    def random(self, size: int | None = None) -> Any:
        """A number between 0 and 1, or an array of them."""

    def integers(self, n: int, size: int | None = None) -> Any:
        """A whole number from 0 to n − 1, or an array of them."""

    def sample(self, ids: Iterable[int] | NDArray[Any], m: int) -> NDArray[np.uint32]:
        """Up to m different ones of some clients, every set equally likely, as `random` draws them."""

    def shuffled(self, ids: Iterable[int] | NDArray[Any]) -> NDArray[np.uint32]:
        """The clients in a random order."""

    def numpy(self) -> np.random.Generator:
        """A generator of NumPy, seeded by the next four numbers of the stream."""

@final
class Ask:
    """A selection request, with the knowledge of the server. Arrays are read-only; kept ones never change."""

    size: int
    """The size of the selection; may be set, up to `most`."""
    deadline: float | None
    """The longest wait of the round in seconds; may be set within `bounds`."""

    @property
    def turn(self) -> int:
        """Number of this selection among the policy's, from 1."""

    @property
    def round(self) -> int:
        """The server's round under way, from 1."""

    @property
    def now_s(self) -> float:
        """The virtual time in seconds."""

    @property
    def cohort(self) -> int:
        """The usual size of a selection; fewer candidates than that may be available."""

    @property
    def most(self) -> int:
        """At most this many clients may be chosen."""

    @property
    def take(self) -> int:
        """The round closes when this many updates have arrived."""

    @property
    def available(self) -> NDArray[np.uint32]:
        """The clients that can be chosen, ascending."""

    @property
    def counts(self) -> NDArray[np.uint32]:
        """Times each client was selected before this selection."""

    @property
    def data_sizes(self) -> NDArray[np.uint32]:
        """Examples per client."""

    @property
    def shares(self) -> NDArray[np.float64]:
        """Share of each client in all data, quality × size."""

    @property
    def probed(self) -> Probed:
        """Answers to `Probe.losses`."""

    @property
    def answers(self) -> NDArray[np.float64]:
        """Answers to `Probe.answers`, a row for each client asked."""

    @property
    def trained(self) -> Trained:
        """Answers to `Probe.training`, ascending by client."""

    @property
    def gains(self) -> NDArray[np.float64] | None:
        """The exploration term of the scenario's reward for each available client, where the round works it out."""

    @property
    def mean_speeds(self) -> NDArray[np.float64]:
        """Mean speed of each client, for a policy that declares `sees_truth`."""

    @property
    def foreseen(self) -> tuple[NDArray[np.uint32], float] | None:
        """The best set in hindsight, and its value."""

    @property
    def bounds(self) -> Bounds:
        """The bounds of the decision, for a policy that declares the capability `bounds`."""

    @property
    def layout(self) -> tuple[Segment, ...]:
        """The segments of the model, for a policy that declares the capability `layout`."""

    def forecast(self, client: int, from_s: float, to_s: float) -> bool:
        """Whether a client will be online throughout an interval, for policies that declare `forecast`."""

    @property
    def level_j(self) -> NDArray[np.float64]:
        """The level of each available client's battery in joules, for a policy that declares the capability `level`."""

    @property
    def capacity_j(self) -> NDArray[np.float64]:
        """The energy of each available client's full battery in joules, for a policy that declares `level`."""

    @property
    def rng(self) -> Rng:
        """The random numbers of this decision."""

    @property
    def solver_rng(self) -> Rng:
        """Random numbers for heuristic solvers, apart from those of the decision."""

@final
class BoundWorld:
    """The world of a run as theorems see it, for a policy's `bound(round, world)`. Nothing is selected by it."""

    @property
    def clients(self) -> int:
        """Number of clients."""

    @property
    def cohort(self) -> int:
        """Clients asked in each round."""

    @property
    def take(self) -> int:
        """Updates that each round waits for."""

    @property
    def waits_for_all(self) -> bool:
        """Whether each round lasts until all clients that were asked have answered."""

    @property
    def is_always_available(self) -> bool:
        """Whether all clients can be asked at any time."""

    @property
    def shares(self) -> NDArray[np.float64]:
        """Each client's share of the data."""

    @property
    def means(self) -> NDArray[np.float64]:
        """Each client's mean speed, on the grid of the quantum where there is one."""

    @property
    def mean_speeds(self) -> NDArray[np.float64]:
        """The same before any rounding."""

    @property
    def tau_min_s(self) -> float:
        """The shortest conceivable latency in seconds."""

    @property
    def alpha(self) -> float:
        """Weight of generalisation in the reward."""

    @property
    def beta(self) -> float:
        """Exponent of the generalisation function."""

    @property
    def quantum(self) -> float | None:
        """Grid of speeds and generalisation, where there is one."""

@final
class Choice:
    """A client with the parts of a decision that are its own."""

    def __new__(cls, client: int, weight: float | None = None, work: int | None = None) -> Choice: ...
    @property
    def client(self) -> int:
        """The client."""

    @property
    def weight(self) -> float | None:
        """The coefficient of its update."""

    @property
    def work(self) -> int | None:
        """The epochs of its job."""

@final
class Context:
    """Facts about the scenario, from which a policy is made."""

    @property
    def seed(self) -> int:
        """The seed of the run."""

    @property
    def point(self) -> dict[str, str]:
        """Values of the swept settings, by path."""

    @property
    def clients(self) -> int:
        """Number of clients."""

    @property
    def among(self) -> int:
        """How many of them the policy chooses among."""

    @property
    def cohort(self) -> int:
        """Clients asked per round."""

    @property
    def take(self) -> int:
        """Updates waited for per round."""

    @property
    def in_rounds(self) -> bool:
        """Whether one server asks clients in rounds."""

    @property
    def trains(self) -> bool:
        """Whether clients train, so that there are losses."""

    @property
    def evaluates_every_round(self) -> bool:
        """Whether every round is evaluated."""

    @property
    def budget(self) -> int | None:
        """The most bytes that the run may move, where it has a budget."""

    @property
    def least(self) -> int:
        """The fewest clients of a round."""

    @property
    def probes(self) -> list[str]:
        """Questions that clients can answer, for `Probe.answers`."""

    @property
    def metrics(self) -> list[str]:
        """Metrics that rounds may measure."""

    @property
    def bounds(self) -> Bounds:
        """The bounds of decisions."""

    @property
    def data_sizes(self) -> NDArray[np.uint32]:
        """Examples per client."""

    def declared(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Seconds of computing and of transfer that each client declares of a typical job."""

    def slowest_latency(self, u: float) -> float:
        """The largest quantile u of the effective latency over all clients, in seconds."""

    def usual_latency(self) -> float:
        """The 80th percentile over clients of the sum of the mean durations of their phases, in seconds."""

    def categories(self) -> NDArray[np.uint64] | None:
        """Number of training examples of each class or category, a row for each client."""

    def features(self) -> NDArray[np.float64] | None:
        """Features of the user, a row for each client."""

@final
class Jobs:
    """Jobs that ended, one per place of each array, in the order of arrival; missing ones last."""

    @property
    def client(self) -> NDArray[np.uint32]:
        """The client."""

    @property
    def turn(self) -> NDArray[np.uint32]:
        """The selection that it belongs to."""

    @property
    def round(self) -> NDArray[np.uint32]:
        """The round in which it was dispatched."""

    @property
    def staleness(self) -> NDArray[np.uint32]:
        """Models made by the server since the one that was sent."""

    @property
    def phases(self) -> NDArray[np.float64]:
        """Seconds in download, compute and upload, a row for each job."""

    @property
    def waited_s(self) -> NDArray[np.float64]:
        """Seconds that the server waited for it."""

    @property
    def censored(self) -> NDArray[np.bool_]:
        """Whether the wait is only a lower bound of the latency."""

    @property
    def called_off(self) -> NDArray[np.bool_]:
        """Whether it was called off because enough others had arrived: it was not observed."""

    @property
    def outcome(self) -> NDArray[np.str_]:
        """arrived, late or dropped."""

    def __len__(self) -> int: ...

@final
class Trained:
    """Updates that were aggregated, one per place of each array, ascending by client. Unwanted statistics are None."""

    @property
    def client(self) -> NDArray[np.uint32]:
        """The client."""

    @property
    def turn(self) -> NDArray[np.uint32]:
        """The selection that it belongs to."""

    @property
    def round(self) -> NDArray[np.uint32]:
        """The round in which its job was dispatched."""

    @property
    def staleness(self) -> NDArray[np.uint32]:
        """Models made by the server between the one that was sent and this aggregation."""

    @property
    def latency_s(self) -> NDArray[np.float64]:
        """Seconds from dispatch to arrival."""

    @property
    def examples(self) -> NDArray[np.int64]:
        """Examples that the client trained on."""

    @property
    def loss(self) -> NDArray[np.float64]:
        """Mean loss over the first local epoch."""

    @property
    def loss_rms(self) -> NDArray[np.float64] | None:
        """Root mean square of the losses of single examples."""

    @property
    def quality(self) -> NDArray[np.float64] | None:
        """The task's main measure of the client's own model, negated where smaller is better."""

    @property
    def deviation(self) -> NDArray[np.float64] | None:
        """Mean absolute difference between the client's trained parameters and those of a model."""

    @property
    def norm(self) -> NDArray[np.float64] | None:
        """Euclidean norm of the client's change of all trained parameters."""

    @property
    def update(self) -> list[NDArray[np.float32]] | None:
        """The client's model."""

    @property
    def change(self) -> list[NDArray[np.float32]] | None:
        """The client's change of each trained parameter."""

    def __len__(self) -> int: ...

@final
class Round:
    """A closed round."""

    @property
    def turn(self) -> int:
        """The policy's last selection before it closed."""

    @property
    def round(self) -> int:
        """The server's round."""

    @property
    def selected(self) -> NDArray[np.uint32]:
        """Selected clients, in dispatch order."""

    @property
    def duration_s(self) -> float:
        """Seconds from the end of the round before to its closing."""

    @property
    def down_bytes(self) -> int:
        """Bytes to this policy's clients since its last report."""

    @property
    def up_bytes(self) -> int:
        """Bytes from them."""

    @property
    def metrics(self) -> dict[str, float]:
        """Metrics measured after the round."""

    @property
    def quality(self) -> tuple[float, float] | None:
        """Quality of the model before and after the round, if wanted."""

    @property
    def edge_accuracy(self) -> tuple[float, float] | None:
        """Accuracy of the server's own model before and after the round, if wanted."""

@final
class Subsets:
    """The updates of a round, any subset of which may be averaged and evaluated: given to `judge`."""

    @property
    def clients(self) -> NDArray[np.uint32]:
        """Clients whose updates were aggregated, ascending."""

    def quality(self, members: Iterable[int] | NDArray[Any]) -> float:
        """The quality of the average of the updates of these clients; costs an evaluation."""

@final
class Feedback:
    """News since the last time."""

    @property
    def jobs(self) -> Jobs:
        """Jobs that ended."""

    @property
    def trained(self) -> Trained:
        """Updates that were aggregated."""

    @property
    def rounds(self) -> tuple[Round, ...]:
        """Rounds that closed."""

@final
class Job:
    """The job of a client."""

    @property
    def client(self) -> int:
        """The client."""

    @property
    def round(self) -> int:
        """The round in which it was dispatched."""

    @property
    def seed(self) -> int:
        """For random numbers of the job: from the scenario's seed, client and round alone."""

    @property
    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The model that was sent."""

    @property
    def correction(self) -> dict[str, NDArray[np.float32]] | None:
        """Numbers that an algorithm adds to every gradient."""

    @property
    def proximal(self) -> float:
        """The weight of the pull towards the model that was sent; 0 without one."""

    @property
    def epochs(self) -> int | None:
        """Passes over the client's examples; None where steps are counted."""

    @property
    def work(self) -> int | None:
        """The epochs that the policy asked for; None if it left that to the task."""

    @property
    def batch(self) -> int:
        """Examples in a mini-batch."""

    @property
    def lr(self) -> float:
        """The learning rate of the round."""

    @property
    def state(self) -> bytes | None:
        """What the client keeps to itself, since its last update that was aggregated; None before."""

    @property
    def is_cancelled(self) -> bool:
        """Whether the run was interrupted: training may return any update at once, which is not used."""

@final
class Update:
    """The result of a job.

    `payload_bytes` is what it moved. The simulation had to know it before: the task's own `payload_bytes` says the same.
    `state` is what the client keeps to itself once the update is aggregated, for a task that says `keeps_state = True`;
    its next job has it.
    """

    def __new__(
        cls,
        weights: Mapping[str, NDArray[np.float32]],
        loss: float | None = None,
        payload_bytes: int | None = None,
        *,
        steps: int = 1,
        state: bytes | None = None,
    ) -> Update: ...
    @property
    def weights(self) -> Mapping[str, NDArray[np.float32]]:
        """The parameters after training."""

    @property
    def loss(self) -> float | None:
        """The mean loss of the first epoch."""

    @property
    def payload_bytes(self) -> int | None:
        """Bytes that it moved, if it says so."""

    @property
    def steps(self) -> int:
        """Steps of the optimizer."""

    @property
    def state(self) -> bytes | None:
        """What the client keeps to itself."""

@final
class Updates:
    """The updates of a round, one row of each array for each, ascending by client: given to `Algorithm.fold`."""

    @property
    def model(self) -> NDArray[np.float32]:
        """The model before the step: all parameters in a row."""

    @property
    def client(self) -> NDArray[np.uint32]:
        """The clients that trained."""

    @property
    def examples(self) -> NDArray[np.int64]:
        """How many examples each trained on."""

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """The policy's coefficients; None if it gave none."""

    @property
    def staleness_weight(self) -> NDArray[np.float64]:
        """Weight for the age of each: 1 for a fresh update."""

    @property
    def start(self) -> NDArray[np.float32]:
        """The models that were sent, a row for each."""

    @property
    def parameters(self) -> NDArray[np.float32]:
        """The models that came back, a row for each."""

    @property
    def memory(self) -> NDArray[np.float64]:
        """Numbers that stay from round to round, zeros at first; may be written to."""

@final
class Columns:
    @property
    def meaning(self) -> str: ...
    @property
    def names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def described(self, name: str) -> dict[str, Any]: ...
    def values(self, name: str) -> tuple[NDArray[Any], Any]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Gathering:
    @property
    def pending(self) -> list[list[str]]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def total(self) -> int: ...
    @property
    def ticket(self) -> str: ...
    @property
    def files(self) -> dict[str, Path]: ...
    def admit(self, names: list[str], pack: bytes) -> list[tuple[str, str]]: ...
    def give_up(self, name: str, why: str) -> None: ...
    def so_far(self) -> Results: ...
    def close(self) -> None: ...
    def finish(self) -> Results: ...

@final
class Apart:
    def __new__(cls, ticket: str, program: dict[str, Any], files: Path | None) -> Apart: ...
    @property
    def warning(self) -> str | None: ...
    def carry_out(self, names: list[str], folder: Path, count: int) -> bytes: ...

@final
class Results:
    @property
    def title(self) -> str: ...
    @property
    def folder(self) -> Path | None: ...
    @property
    def scenario(self) -> str: ...
    @property
    def answers(self) -> list[str]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def digest(self) -> str: ...
    @property
    def figures(self) -> list[str]: ...
    def frame(self, name: str) -> Columns: ...
    def table(self) -> str: ...
    def summary_json(self) -> str: ...
    def write_report(self, path: Path) -> None: ...
    def report_html(self) -> str: ...
    def figure(self, name: str, as_pdf: bool) -> bytes: ...

@final
class Playing:
    @property
    def is_asked(self) -> bool: ...
    def step(self) -> bool: ...
    def ask(self) -> dict[str, Any] | None: ...
    def tell(self, answer: Any, deadline: float | None) -> Feedback: ...
    def uniform(self, count: int) -> NDArray[np.float64]: ...
    def below(self, n: int, count: int) -> NDArray[np.int64]: ...
    def sample(self, ids: Any, m: int) -> NDArray[np.uint32]: ...
    def shuffled(self, ids: Any) -> NDArray[np.uint32]: ...
    def bits(self, count: int) -> NDArray[np.uint64]: ...
    @property
    def round(self) -> int: ...
    @property
    def now_s(self) -> float: ...
    @property
    def counts(self) -> NDArray[np.uint32]: ...
    @property
    def metrics(self) -> dict[str, float]: ...
    @property
    def regret(self) -> dict[str, float]: ...
    @property
    def traffic(self) -> tuple[int, int]: ...
    @property
    def digest(self) -> str: ...

@final
class Chooser:
    @property
    def wants_models(self) -> bool: ...
    @property
    def needs_losses(self) -> bool: ...
    @property
    def counts(self) -> NDArray[np.uint32]: ...
    def choose(self, round: int, now_s: float, available: Any) -> list[int]: ...
    def tell(self, round: int, news: dict[str, Any]) -> None: ...

def chooser(setup: dict[str, Any], wishes: dict[str, Any]) -> Chooser: ...
def play(setup: dict[str, Any], which: dict[str, Any]) -> Playing: ...
def run(
    setup: dict[str, Any], wishes: dict[str, Any], progress: Callable[[int, int, str], Any] | None
) -> tuple[Results, list[RunError]]: ...
def load(folder: Path, allow_changed: bool) -> tuple[Results, list[str]]: ...
def gather(setup: dict[str, Any], wishes: dict[str, Any], allow_paths: bool) -> Gathering: ...
def so_far(setup: dict[str, Any], folder: Path) -> Results: ...
def merge(out: Path, folders: list[Path], data: Path | None, program: dict[str, Any]) -> tuple[Results, list[str]]: ...
def command(words: list[str]) -> int: ...
def verify(program: dict[str, Any]) -> tuple[bool, str]: ...
