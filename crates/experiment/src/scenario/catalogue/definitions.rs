//! Definitions that `describe` shows for sections and values without documentation elsewhere.

use crate::scenario::seeds;
use fedgenie_core::catalogue::documentation;
use fedgenie_learning::adversary;
use fedgenie_learning::algorithm::{self, privacy};
use fedgenie_learning::compression;
use fedgenie_learning::ratings::split;
use fedgenie_learning::secure_aggregation;
use fedgenie_simulator::population::count;
use fedgenie_simulator::world::controls;

/// The definition of a component of this kind and name; `None` if its own file has it. A text before its first heading
/// is the summary.
pub(super) fn definition(kind: &str, name: &str) -> Option<String> {
    let source = match (kind, name) {
        ("section", "adversary") | ("value", "attack") => adversary::DOCUMENTED,
        ("section", "aggregation") => algorithm::fold::DOCUMENTED,
        ("section", "algorithm") => algorithm::DOCUMENTED,
        ("section", "compression") | ("value", "codec") => compression::DOCUMENTED,
        ("section", "controls") => controls::DOCUMENTED,
        ("section", "privacy.dp-fedavg") | ("value", "clip" | "adaptive-clip") => privacy::DOCUMENTED,
        ("section", "privacy.secure-aggregation") | ("value", "sum-protocol") => secure_aggregation::DOCUMENTED,
        ("value", "count-per-client") => count::DOCUMENTED,
        ("value", "split") => split::DOCUMENTED,
        ("value", "seeds") => seeds::DOCUMENTED,
        ("section", name) if name.starts_with("algorithm.") => {
            let entry = algorithm::CATALOGUE.entry(name.trim_start_matches("algorithm."))?;
            entry.source
        }
        _ => {
            let found = DEFINITIONS.iter().find(|(known, _)| known.split_once('/') == Some((kind, name)));
            return found.map(|(_, text)| format!("{}\n", text.trim()));
        }
    };
    Some(documentation(source))
}

/// By kind and name.
const DEFINITIONS: [(&str, &str); 37] = [
    (
        "section/stop",
        "
# Definition
A run ends after the first round at whose end one of these holds: `rounds` rounds have closed, virtual time has
reached `virtual_time`, clients have moved `traffic` bytes both ways together, the metric of `target` has its value,
or that of `plateau` has stopped improving. Metrics count in evaluated rounds only. A condition that a run may never
meet (`traffic`, `target`, `plateau`) needs `rounds`, `virtual_time` or a budget beside it.
",
    ),
    (
        "section/stop.target",
        "
# Definition
The first evaluated round in which the metric is at least `at_least`, or at most `at_most`, reaches the target;
exactly one of the two is given. A metric that is not a number reaches no target.
",
    ),
    (
        "section/stop.plateau",
        "
# Definition
Each evaluated round whose metric is better than the best before by more than `least` is an improvement. The plateau
is reached after `evaluations` evaluations in a row without improvement.
",
    ),
    (
        "section/budget",
        "
# Definition
`B` is `traffic`, or `full_rounds` times the bytes of the first jobs of all clients, down and up. Before each
selection the cohort is at most ⌊rest/price⌋: the rest is `B` less the bytes that clients have moved and that jobs
under way will move, the price is that of the dearest candidate. The run ends when the rest pays for fewer than
`least` clients. No target and no plateau ends it before `selections` selections of clients.
",
    ),
    (
        "section/population",
        "
# Definition
A client is a device with data. A job has three phases: download, compute, upload. Their durations come from
`latency`, a law per phase, or from the speeds of `device`, a profile. `availability` says when devices are online,
`interrupted` how a job continues if its device goes away, `dropout` how clients are lost with their jobs, `battery`
what energy they have for them. Groups have their own values of all these, or else the population's.
",
    ),
    (
        "section/population.latency",
        "
# Definition
A job of client `k` takes `D_k + C_k + U_k`, three independent draws from the laws of download, compute and upload,
anew for each job. A parameter of a law may differ between clients: see `describe value/number`.
",
    ),
    (
        "section/population.device",
        "
# Definition
With `n` training examples, `e` epochs and `s` examples per second a client computes for `n·e/s`; the model's bits
travel at the rates of `downlink` and `uplink`. Each duration is multiplied by a draw of its `jitter`.
",
    ),
    (
        "section/population.device.jitter",
        "
# Definition
Laws of factors without a unit, drawn anew for each job: the phase takes the duration of the profile times the
factor. A phase without a law takes exactly the duration.
",
    ),
    (
        "section/population.group",
        "
# Definition
A group is `count` clients with consecutive ids, or a `share` of `population.clients`; the first group has the first
ids. Settings that a group omits are the population's.
",
    ),
    (
        "section/training",
        "
# Definition
A job makes `epochs` passes over the client's examples in mini-batches of `batch`, in an order drawn for each pass,
or a number of `steps`. A policy may choose between 1 and `most_epochs` for each job: the compute phase takes the
chosen share of `epochs` of its time, to the nearest nanosecond, under laws and under devices. Probes and the
counterfactual training of regret do the usual work. In each step the gradient `g` of the mean loss of a batch is
scaled down to the norm `clip` if it is longer; `proximal`·(w − w_sent) is added, and the `optimizer` moves the
weights with the learning rate that `schedule` gives the round.

*Partial work.* `epochs` and `steps` may differ from client to client: `{ each = [1, 3, 2] }`, or a law from which each
client draws once, `{ uniform = [1, 5] }`, rounded to whole numbers (`describe value/count-per-client`). With a device
the compute phase takes as long as the client's own work needs; a law says how long it takes whatever the work.
",
    ),
    (
        "section/privacy",
        "
# Definition
By `sigma`, a client adds to each number that it sends back an independent draw from the normal distribution of mean
0 and deviation `sigma`, which belongs to client and job. `scope` says whether whole tables have noise, or only the
rows that a job sends anyway. `[privacy.dp-fedavg]` shortens changes, adds noise to their mean and works out ε:
`describe section/privacy.dp-fedavg`. `[privacy.secure-aggregation]` charges clients for sums in the place of single
updates: `describe section/privacy.secure-aggregation`.
",
    ),
    (
        "section/regret",
        "
# Definition
The reward of round `t` is `min_{k∈A} τ_min/τ_k + (α/m) Σ_{k∈A} g_k` for the set `A` of the `m` selected clients with
latencies `τ_k`, where `g_k = sign(x_k)|x_k|^β` and `x_k = ρ_k − c_k/t`: `c_k` counts the client's selections before
the round, `ρ_k` is `m` times its share of the data. A meter adds up, over rounds, the reward of the genie's set less
that of the policy's; `fedgenie list meter` has them. With `counterfactual`, sets are compared by the utility of
their updates in hindsight, less `kappa` times the round's time in units of `t_semi`.
",
    ),
    (
        "section/evaluate",
        "
# Definition
A round is evaluated if `every` divides its number, or if it is the first to end at or after one of the instants `at`
or a multiple of `period`; the last round always is. Metrics are those of the model after the round: on test data, on
validation data where there are some, and with `clients` or `servers` on the data of each. Evaluating takes no
virtual time, unless a task charges for it.
",
    ),
    (
        "section/evaluate.targets",
        "
# Definition
The first evaluated round in which the metric is at least `at_least`, or at most `at_most`, reaches a target. The run
goes on. Runs that never reach it count with the earliest end of such a run.
",
    ),
    (
        "section/evaluate.converged",
        "
# Definition
The round of convergence is the first at whose end the metric had not improved on its best, by more than `least`, for
`evaluations` evaluations in a row.
",
    ),
    (
        "section/record",
        "
# Definition
`rounds.jsonl` has every round whose number `every` divides, and the last. Its cumulative values are exact
nevertheless, and digests cover all rounds.
",
    ),
    (
        "section/report",
        "
# Definition
A difference is a policy's number less that of the policy called `reference`, paired by seed.
",
    ),
    (
        "value/data",
        "
Labelled examples: a folder of a published data set, files, or a generator.

# Definition
`data = \"fashion-mnist\"` is a folder, whose files show its format. `data = { csv = { .. } }` and the other kinds of
`fedgenie list data` name files or draw examples.
",
    ),
    (
        "value/shape",
        "
# Definition
An example is an image of so many channels, rows and columns, whose numbers stand in this order, columns fastest.
",
    ),
    (
        "value/numbers",
        "
# Definition
A list in the order of clients, one number for each; or the name of a CSV file with the columns `client` and `value`.
The file needs rows only for clients whose numbers are used.
",
    ),
    (
        "value/ratings",
        "
Ratings: a folder of a published data set, files, or a generator.

# Definition
`data = \"ml-100k\"` is a folder, whose files show its format. `data = { csv = { .. } }` names columns of the user's
own file, `data = { synthetic = { .. } }` draws ratings; `fedgenie list ratings` has all kinds.
",
    ),
    (
        "value/ratings-partition",
        "
The ratings that each client holds for training.

# Definition
`\"users\"`: each user is a client and holds the user's own ratings. Any other partition deals ratings as it deals
examples, so that clients may share users: see `fedgenie list partition`.
",
    ),
    (
        "value/transfer",
        "
The part of the item table that travels, each way.

# Definition
`down` is sent to a client, `up` is sent back: `\"table\"`, the whole table, at 4 bytes a number; or `\"rows\"`, the
rows that the job moves, with 4 bytes more for the id of each.
",
    ),
    (
        "value/social",
        "
Ratings with trust between users and categories of items: a folder of a published data set, or a generator.

# Definition
`data = \"ciao\"` is a folder, whose files show its format; `data = { synthetic = { .. } }` draws users, items,
ratings and trust.
",
    ),
    (
        "value/features",
        "
Input features of users and items in a graph network.

# Definition
Each node has a row of numbers: a draw (`\"random\"`), a one at the place of its number of neighbours
(`\"degree\"`), ones (`\"constant\"`), or its row of a file.
",
    ),
    (
        "value/category-name",
        "
# Definition
A text or a whole number, the name of the category in the data files.
",
    ),
    (
        "value/late",
        "
# Definition
`\"drop\"`: a job whose update has not arrived when its round closes is called off. `{ carry = { staleness = .. } }`:
the client goes on, and its update joins the aggregation of the round in which it arrives, with the weight that
`staleness` gives its age.
",
    ),
    (
        "value/staleness",
        "
# Definition
An update `s` rounds old, 0 if it is fresh, has the weight 1 under `constant`; `(1 + s)^−a` under `polynomial`; under
`hinge` 1 up to `s = b`, and beyond it `1/(1 + a (s − b))`.
",
    ),
    (
        "value/edge-link",
        "
# Definition
`download` is the law of the time that a model travels from the cloud to an edge server, `upload` of the way back;
both are drawn anew for each model that the server is sent.
",
    ),
    (
        "value/cloud",
        "
# Definition
With `cohort` and `policy`, the policy chooses `cohort` edge servers for each round of the cloud, which waits for
them, or until its `timeout`. With `buffer`, edge servers do not wait for each other, and every `buffer` models that
arrive make a new one, each with the weight of its `staleness`.
",
    ),
    (
        "value/longest-latency",
        "
# Definition
`τ_max` is a duration, or with `{ quantile = u }` the largest quantile `u` of the effective latency over all clients.
A latency `τ` has the reward `max(0, 1 − τ/τ_max)`.
",
    ),
    (
        "value/estimate",
        "
# Definition
The index of a client is an estimate of its reward plus a bonus that falls with the number of its pulls. The
estimate is the mean of its rewards, a mean with weights `factor^(rounds since)`, the mean of the last `size`, or
the prediction of a ridge regression on its context.
",
    ),
    (
        "value/actor",
        "
# Definition
Clients are drawn one after the other without replacement, each with the probability that the actor gives it among
the remaining clients. The actor is a network with an output for each client, a network that scores every candidate
by itself, or weights `exp(x/temperature)` of the standardised numbers `x`.
",
    ),
    (
        "value/softmax",
        "
An actor that draws clients in proportion to the exponential of their numbers, and does not learn.

# Definition
With standardised numbers `x_i` and temperature `T`, client `i` has the weight `exp(x_i/T)`.
",
    ),
    (
        "value/step",
        "
The step by which Oort's pacer moves the preferred duration of a client.

# Definition
A duration, which is added to the preferred duration (`variant = \"paper\"`); or a number of points, by which the
percentile of latencies moves (`variant = \"released\"`).
",
    ),
    (
        "value/initial",
        "
# Definition
`\"round-robin\"`: server `m` belongs to cluster `m mod count`. `\"single\"`: all belong to cluster 0. A list has
the cluster of each server, in their order.
",
    ),
    (
        "value/ties",
        "
The order of events of the same instant and class.

# Definition
`\"fifo\"`: the event that was scheduled first comes first. `{ shuffle = n }`: an order drawn from a stream of the
number `n`. Events of different classes have a fixed order: phases end before clients are lost, and both before
timers.
",
    ),
];
