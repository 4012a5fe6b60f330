"""A second implementation of the computation behind `fedgenie run`, written from the definitions and for clarity.

Scope: latency laws per phase, dropouts, groups, the three round protocols (late updates dropped), task `none`, the
policies bsfl (exact), cs-ucb, cs-ucb-q, rbcs-f, round-robin and genie, and the meters mean, realised, expected.
Nothing here is fast and nothing is shared with the program: random streams, laws, optimiser and integrals are separate.
"""

import itertools
import math
import re

import numpy as np
from scipy import optimize, special

TIE = 1e-12
INF = float("inf")

# ---------------------------------------------------------------------------------------------- random streams

PARAMETER, LATENCY, DROPOUT = 1, 2, 3


def chacha8(key_words, stream_low, stream_high):
    """The first six output words of ChaCha8 for arrays of 64-bit stream ids; the block counter is 0."""
    n = len(stream_low)
    state = np.zeros((16, n), dtype=np.uint32)
    state[0:4] = np.frombuffer(b"expand 32-byte k", dtype="<u4")[:, None]
    state[4:12] = key_words[:, None]
    state[14] = stream_low
    state[15] = stream_high
    x = state.copy()

    def rotate(v, bits):
        return (v << np.uint32(bits)) | (v >> np.uint32(32 - bits))

    def quarter(a, b, c, d):
        x[a] += x[b]
        x[d] = rotate(x[d] ^ x[a], 16)
        x[c] += x[d]
        x[b] = rotate(x[b] ^ x[c], 12)
        x[a] += x[b]
        x[d] = rotate(x[d] ^ x[a], 8)
        x[c] += x[d]
        x[b] = rotate(x[b] ^ x[c], 7)

    for _ in range(4):
        quarter(0, 4, 8, 12), quarter(1, 5, 9, 13), quarter(2, 6, 10, 14), quarter(3, 7, 11, 15)
        quarter(0, 5, 10, 15), quarter(1, 6, 11, 12), quarter(2, 7, 8, 13), quarter(3, 4, 9, 14)
    return x + state


def uniforms(seed, purpose, entities, indices, count):
    """`count` uniforms (at most 8) of each stream (entity, index), and their complements to 1.

    A uniform is (k + 1/2) / 2^53, rounded to a double; above 1/2 that rounding is felt in far upper tails.
    """
    key = seed.to_bytes(8, "little") + purpose.to_bytes(8, "little") + b"fedgenie-streams"
    words = np.frombuffer(key, dtype="<u4")
    entities, indices = np.broadcast_arrays(np.asarray(entities, np.uint32), np.asarray(indices, np.uint32))
    shape = entities.shape
    block = chacha8(words, indices.ravel(), entities.ravel()).astype(np.uint64)  # entity << 32 | index
    u = np.empty((count,) + shape)
    v = np.empty((count,) + shape)
    for i in range(count):
        w = block[2 * i] | (block[2 * i + 1] << np.uint64(32))
        k = (w >> np.uint64(11)).astype(np.float64)  # below 2^53: exact
        u[i] = ((k + 0.5) * 2.0**-53).reshape(shape)
        v[i] = 1 - u[i]
    return u, v


# ------------------------------------------------------------------------------------------------------- laws

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def number(value):
    """A number, a duration in seconds, or a rate per second."""
    if isinstance(value, (int, float)):
        return float(value)
    rate = re.fullmatch(r"\s*([0-9.eE+-]+)\s*/\s*([a-z]+)\s*", value)
    if rate:
        return float(rate[1]) / UNITS[rate[2]]
    text = re.fullmatch(r"\s*([0-9._eE+-]+)\s*([a-z]+)\s*", value)
    amount, unit = float(text[1].replace("_", "")), text[2]
    inverse = {"ns": 1e9, "us": 1e6, "ms": 1e3}
    return amount / inverse[unit] if unit in inverse else amount * UNITS[unit]


def exponential_variate(u, v):
    return np.where(u < 0.5, -np.log1p(-np.minimum(u, 0.5)), -np.log(v))


def normal_variate(u, v):
    return np.where(u < 0.5, special.ndtri(u), -special.ndtri(v))


class Constant:
    random = False

    def __init__(self, value):
        self.low = self.value = value

    def quantile(self, u, v):
        return np.full(np.shape(u), self.value)


class Law:
    random = True
    singular = False  # whether the cdf behaves like a fractional power at its lower end

    def normal_scale(self, x):
        """The z at which the standard normal law has the same probability as this law has up to x."""
        p, q = self.cdf(x), self.sf(x)
        with np.errstate(divide="ignore"):
            return np.where(p < 0.5, special.ndtri(p), -special.ndtri(q))

    def at_normal(self, z):
        return self.quantile(special.ndtr(z), special.ndtr(-z))

    def spread(self):
        return float(self.at_normal(np.float64(2.0)) - self.at_normal(np.float64(-2.0)))


class Uniform(Law):
    def __init__(self, low, high):
        self.low, self.high = low, high

    def quantile(self, u, v):
        return self.low + (self.high - self.low) * u

    def cdf(self, x):
        return np.clip((x - self.low) / (self.high - self.low), 0, 1)

    def sf(self, x):
        return np.clip((self.high - x) / (self.high - self.low), 0, 1)

    def pdf(self, x):
        return np.where((x > self.low) & (x < self.high), 1 / (self.high - self.low), 0.0)


class Exponential(Law):
    def __init__(self, mean, shift=0.0):
        self.mean, self.low = mean, shift

    def quantile(self, u, v):
        return self.low + self.mean * exponential_variate(u, v)

    def cdf(self, x):
        return -np.expm1(-np.maximum(x - self.low, 0) / self.mean)

    def sf(self, x):
        return np.exp(-np.maximum(x - self.low, 0) / self.mean)

    def pdf(self, x):
        return np.where(x > self.low, self.sf(x) / self.mean, 0.0)


class Lognormal(Law):
    low = 0.0

    def __init__(self, median, sigma):
        self.median, self.sigma = median, sigma

    def quantile(self, u, v):
        return self.median * np.exp(self.sigma * normal_variate(u, v))

    def at_normal(self, z):
        return self.median * np.exp(self.sigma * z)

    def normal_scale(self, x):
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(x, 0) / self.median) / self.sigma

    def cdf(self, x):
        return special.ndtr(self.normal_scale(x))

    def sf(self, x):
        return special.ndtr(-self.normal_scale(x))

    def pdf(self, x):
        x = np.maximum(x, 1e-300)
        z = np.log(x / self.median) / self.sigma
        return np.exp(-0.5 * z * z) / (math.sqrt(2 * math.pi) * self.sigma * x)


class Gamma(Law):
    low = 0.0
    singular = True

    def __init__(self, shape, scale):
        self.shape, self.scale = shape, scale

    def quantile(self, u, v):
        return self.scale * np.where(u < 0.5, special.gammaincinv(self.shape, u), special.gammainccinv(self.shape, v))

    def cdf(self, x):
        return special.gammainc(self.shape, np.maximum(x, 0) / self.scale)

    def sf(self, x):
        return special.gammaincc(self.shape, np.maximum(x, 0) / self.scale)

    def pdf(self, x):
        y = np.maximum(x, 1e-300) / self.scale
        return np.exp((self.shape - 1) * np.log(y) - y - special.gammaln(self.shape)) / self.scale


class Weibull(Law):
    low = 0.0
    singular = True

    def __init__(self, shape, scale):
        self.shape, self.scale = shape, scale

    def quantile(self, u, v):
        return self.scale * exponential_variate(u, v) ** (1 / self.shape)

    def cdf(self, x):
        return -np.expm1(-((np.maximum(x, 0) / self.scale) ** self.shape))

    def sf(self, x):
        return np.exp(-((np.maximum(x, 0) / self.scale) ** self.shape))

    def pdf(self, x):
        y = np.maximum(x, 1e-300) / self.scale
        return self.shape / self.scale * y ** (self.shape - 1) * np.exp(-(y**self.shape))


class Pareto(Law):
    def __init__(self, shape, minimum):
        self.shape, self.low = shape, minimum

    def quantile(self, u, v):
        return self.low * np.exp(exponential_variate(u, v) / self.shape)

    def sf(self, x):
        return (self.low / np.maximum(x, self.low)) ** self.shape

    def cdf(self, x):
        return -np.expm1(self.shape * np.log(self.low / np.maximum(x, self.low)))

    def pdf(self, x):
        return np.where(x > self.low, self.shape / np.maximum(x, self.low) * self.sf(x), 0.0)


class TruncatedNormal(Law):
    def __init__(self, mean, sd, min=0.0, max=INF):
        self.mean, self.sd, self.low, self.high = mean, sd, min, max
        a, b = (min - mean) / sd, (max - mean) / sd
        self.below, self.above = special.ndtr(a), special.ndtr(-b)
        self.mass = 1 - self.below - self.above

    def quantile(self, u, v):
        p, q = self.below + u * self.mass, self.above + v * self.mass
        return np.clip(self.mean + self.sd * normal_variate(p, q), self.low, self.high)

    def cdf(self, x):
        return np.clip((special.ndtr((x - self.mean) / self.sd) - self.below) / self.mass, 0, 1)

    def sf(self, x):
        return np.clip((special.ndtr((self.mean - x) / self.sd) - self.above) / self.mass, 0, 1)

    def pdf(self, x):
        z = (x - self.mean) / self.sd
        inside = (x > self.low) & (x < self.high)
        return np.where(inside, np.exp(-0.5 * z * z) / (math.sqrt(2 * math.pi) * self.sd * self.mass), 0.0)


LAWS = {
    "constant": (Constant, ["value"]),
    "uniform": (Uniform, ["low", "high"]),
    "exponential": (Exponential, ["mean", "shift"]),
    "truncated-normal": (TruncatedNormal, ["mean", "sd", "min", "max"]),
    "lognormal": (Lognormal, ["median", "sigma"]),
    "gamma": (Gamma, ["shape", "scale"]),
    "weibull": (Weibull, ["shape", "scale"]),
    "pareto": (Pareto, ["shape", "minimum"]),
}


def parameter(value, seed, client, position, index):
    """A plain parameter, one listed per client of the group, or one drawn per client."""
    if not isinstance(value, dict):
        return number(value)
    if "each" in value:
        return number(value["each"][position])
    law = build_law(value, seed, client, position, None)
    u, v = uniforms(seed, PARAMETER, [client], [index], 1)
    return float(law.quantile(u[0], v[0])[0])


def build_law(config, seed, client, position, phase):
    (kind, body), = config.items()
    cls, names = LAWS[kind]
    if kind == "constant":
        body = {"value": body}
    elif isinstance(body, list):
        body = dict(zip(names, body))
    values = {
        name: parameter(body[name], seed, client, position, None if phase is None else 16 * phase + names.index(name))
        for name in body
    }
    return cls(**values)


# -------------------------------------------------------------------------------- quadrature over a job's latency

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def composite(edges):
    """Gauss–Legendre nodes and weights on the panels between consecutive edges."""
    edges = np.asarray(edges)
    half = np.diff(edges) / 2
    x = edges[:-1, None] + half[:, None] * (1 + NODES)
    return x.ravel(), (half[:, None] * WEIGHTS).ravel()


FRACTION, FRACTION_WEIGHT = composite(np.linspace(0, 1, 41))
FAR = 9.5  # standard deviations; the normal law has 1e-21 beyond


def nodes_below(law, cap, hazard):
    """Values of the law up to `cap` (an array), with weights that sum to E[exp(-hazard X); X ≤ cap]."""
    cap = np.asarray(cap, float)[..., None]
    top = np.clip(law.normal_scale(cap), -FAR, FAR)
    z = -FAR + (top + FAR) * FRACTION
    x = law.at_normal(z)
    weight = (top + FAR) * FRACTION_WEIGHT * np.exp(-0.5 * z * z - hazard * x) / math.sqrt(2 * math.pi)
    return x, weight


class Job:
    """The effective latency of one client: three phases, hazards, and how long a round waits (None: forever)."""

    def __init__(self, laws, hazards, cut):
        self.laws, self.hazards, self.cut = laws, hazards, cut
        self.base = sum(law.value for law in laws if not law.random)
        self.alive = math.exp(-sum(h * law.value for law, h in zip(laws, hazards) if not law.random))
        # Phases with a hazard come first, so that the innermost integral is a cdf where possible; then laws whose cdf
        # has a kink at its upper end, and then narrow laws: either would be a jump inside the integral around it.
        parts = [(law, h) for law, h in zip(laws, hazards) if law.random]
        self.parts = sorted(parts, key=lambda part: (-part[1], -hasattr(part[0], "high"), part[0].spread()))
        self.low = sum(law.low for law in laws)
        self.singular = any(law.singular for law, _ in self.parts)

    def arrives_by(self, x):
        """P(τ ≤ x and the client survives), for an array x."""
        return self.alive * self._below(self.parts, np.asarray(x, float) - self.base)

    def _below(self, parts, y):
        if not parts:
            return np.where(y >= 0, 1.0, 0.0)
        (law, hazard), rest = parts[0], parts[1:]
        if not rest:
            if hazard == 0:
                return law.cdf(y)
            return nodes_below(law, y, hazard)[1].sum(axis=-1)
        out = np.zeros(y.shape)
        cap = y - sum(other.low for other, _ in rest)
        for chunk in np.array_split(np.arange(y.size), max(1, y.size // 400)):
            x, weight = nodes_below(law, cap[chunk], hazard)
            out[chunk] = (weight * self._below(rest, y[chunk, None] - x)).sum(axis=-1) if len(rest) == 1 else [
                np.dot(w, self._below(rest, yy - xx)) for w, xx, yy in zip(weight, x, y[chunk])
            ]
        return np.where(cap > 0, out, 0.0)

    def mean_speed(self, tau_min):
        if self.cut is None:
            assert not any(self.hazards)
            total, weight = np.array([self.base]), np.array([1.0])
            step = 0.1
            z = np.arange(-FAR, FAR + step / 2, step)
            w = step * np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
            for law, _ in self.parts:
                total = (total[:, None] + law.at_normal(z)).ravel()
                weight = (weight[:, None] * w).ravel()
            return float(np.sum(weight * (tau_min / total)))
        # E[τ_min/τ - τ_min/cut; arrives by the cut] + τ_min/cut
        return tau_min / self.cut + self.alive * float(self._excess(self.parts, self.base, tau_min))

    def _excess(self, parts, elapsed, tau_min):
        if not parts:
            return np.where(elapsed <= self.cut, tau_min / elapsed - tau_min / self.cut, 0.0)
        (law, hazard), rest = parts[0], parts[1:]
        room = self.cut - elapsed - sum(other.low for other, _ in rest)
        x, weight = nodes_below(law, room, hazard)
        inner = self._excess(rest, np.asarray(elapsed)[..., None] + x, tau_min)
        return np.where(room > 0, np.sum(weight * inner, axis=-1), 0.0)

    def kinks(self):
        """Where the cdf of τ is not smooth: all sums of ends of the phases."""
        ends = [{law.low, getattr(law, "high", law.low)} - {INF} for law in self.laws]
        return [sum(combination) for combination in itertools.product(*ends)]

    def quantile(self, p):
        """The smallest x that the effective latency does not exceed with probability p."""
        if self.cut is None and len(self.parts) == 1 and not any(self.hazards):
            return self.base + float(self.parts[0][0].quantile(np.float64(p), np.float64(1 - p)))
        if not self.parts and self.alive >= p:
            return min(self.base, self.cut or INF)

        def excess(x):
            return float(self.arrives_by(np.array([x]))[0]) - p

        if self.cut is not None and excess(self.cut) < 0:
            return self.cut
        high = self.cut or max(1.0, self.low)
        while excess(high) < 0:
            high *= 2
        return optimize.brentq(excess, self.low, high, xtol=1e-15, rtol=1e-14)


class ExpectedMinimum:
    """E min over a set of τ_min/τ_eff: the integral over v of the probability that everybody is at least that fast."""

    def __init__(self, jobs, tau_min):
        cut = jobs[0].cut
        end = cut if cut is not None else 1e13 * tau_min
        core = min(end, 100 * max(job.quantile(0.999) for job in jobs))
        edges = list(np.exp(np.arange(math.log(tau_min), math.log(core), 0.06)))
        edges += list(np.exp(np.arange(math.log(core), math.log(end), 0.4))) + [tau_min, end]
        for low in {job.low for job in jobs}:
            singular = any(job.singular and job.low == low for job in jobs)
            edges += [low * (1 + 0.1 * (0.25 if singular else 0.5) ** j) for j in range(12 if singular else 3)]
        for job in jobs:
            edges += job.kinks()
        edges = np.unique([edge for edge in edges if tau_min <= edge <= end])
        x, dx = composite(edges)
        self.weight = dx * tau_min / x**2
        self.sure = tau_min / end
        known = {}
        self.cdf = np.empty((len(jobs), len(x)))
        for k, job in enumerate(jobs):
            key = repr([(type(law).__name__, vars(law)) for law in job.laws]) + repr(job.hazards)
            if key not in known:
                known[key] = job.arrives_by(x)
            self.cdf[k] = known[key]
        self.cache = {}

    def of(self, chosen):
        key = tuple(chosen)
        if key not in self.cache:
            if len(self.cache) > 200_000:
                self.cache.clear()
            self.cache[key] = self.sure + float(np.dot(np.prod(self.cdf[list(key)], axis=0), self.weight))
        return self.cache[key]


# ---------------------------------------------------------------------------------------------------- the world


class World:
    def __init__(self, scenario, seed):
        population = scenario["population"]
        groups = population.get("group") or [{"count": population["clients"]}]
        (self.protocol, protocol), = scenario["protocol"].items()
        self.ask = protocol.get("cohort") or protocol["ask"]
        self.take = protocol.get("take", self.ask)
        cut = protocol.get("timeout") or protocol.get("deadline")
        self.cut = None if cut is None else number(cut)
        self.cut_ns = None if cut is None else round(self.cut * 1e9)
        self.seed = seed
        regret = scenario["regret"]
        self.tau_min = number(regret["tau_min"])
        self.tau_min_ns = round(self.tau_min * 1e9)
        self.alpha, self.beta = float(regret.get("alpha", 3.0)), float(regret.get("beta", 1.2))
        self.quantum = regret.get("quantum") or 0.0
        self.meters = regret.get("meters", ["mean"])

        self.jobs, size, quality = [], [], []
        for group in groups:
            def inherited(key, default=None):
                return group.get(key, population.get(key, default))

            latency, dropout = inherited("latency"), inherited("dropout", {})
            count = group.get("count") or round(group["share"] * population["clients"])
            for position in range(count):
                client = len(self.jobs)
                phases = ("download", "compute", "upload")
                laws = [build_law(latency[name], seed, client, position, i) for i, name in enumerate(phases)]
                hazards = [number(dropout.get(name, 0.0)) for name in phases]
                self.jobs.append(Job(laws, hazards, self.cut))
                # Drawn sizes and qualities take places 0 and 1 after the three phases; sizes are whole numbers.
                size.append(float(round(parameter(inherited("data_size", 1), seed, client, position, 48))))
                quality.append(parameter(inherited("data_quality", 1), seed, client, position, 49))
        self.K = len(self.jobs)
        self.size, self.quality = np.array(size), np.array(quality)
        useful = self.size * self.quality
        self.rho = self.ask * useful / useful.sum()
        self.mu = np.array(self._shared(lambda job: job.mean_speed(self.tau_min)))
        self.mu_meter = quantised(self.mu, self.quantum)
        self.minima = ExpectedMinimum(self.jobs, self.tau_min) if "expected" in self.meters else None

    def _shared(self, function):
        known, out = {}, []
        for job in self.jobs:
            key = repr([(type(law).__name__, vars(law)) for law in job.laws]) + repr(job.hazards)
            if key not in known:
                known[key] = function(job)
            out.append(known[key])
        return out

    def draw(self, rounds):
        """Phase lengths in ns, the phase in which each client is lost (-1: not), and what a round waits for."""
        clients, t = np.arange(self.K)[:, None], np.arange(1, rounds + 1)[None, :]
        u, v = uniforms(self.seed, LATENCY, clients, t, 3)
        self.phases = np.empty((3, self.K, rounds), np.int64)
        for k, job in enumerate(self.jobs):
            for i, law in enumerate(job.laws):
                self.phases[i, k] = np.rint(law.quantile(u[i, k], v[i, k]) * 1e9).astype(np.int64)
        self.total = self.phases.sum(axis=0)
        self.lost = np.full((self.K, rounds), -1)
        self.lost_at = np.full((self.K, rounds), 2**62)
        u, v = uniforms(self.seed, DROPOUT, clients, t, 3)
        start = np.zeros((self.K, rounds), np.int64)
        for i in range(3):
            hazard = np.array([job.hazards[i] for job in self.jobs])[:, None]
            with np.errstate(divide="ignore"):
                survived = exponential_variate(v[i], u[i]) / hazard * 1e9
            lost = (survived < self.phases[i]) & (self.lost < 0)
            self.lost = np.where(lost, i, self.lost)
            self.lost_at = np.where(lost, start + np.where(lost, survived, 0).astype(np.int64), self.lost_at)
            start = start + self.phases[i]
        self.effective = self.total
        if self.cut_ns is not None:
            self.effective = np.where(self.lost >= 0, self.cut_ns, np.minimum(self.total, self.cut_ns))
        self.speed = self.tau_min_ns / self.effective


def quantised(x, q):
    """Multiples of q, halves away from zero."""
    return x if not q else np.sign(x) * np.floor(np.abs(x) / q + (0.5 + 1e-9)) * q


def generalisation(rho, counts, t, beta, quantum):
    x = rho - counts / t
    return quantised(np.sign(x) * np.abs(x) ** beta, quantum)


# ---------------------------------------------------------------------------------------------------- the solver


class Brute:
    """Every set, in lexicographic order: the first one within 1e-12 of the best wins."""

    def __init__(self, K, ask, take):
        self.sets = np.array(list(itertools.combinations(range(K), ask)), dtype=np.int16)
        self.take = take

    def solve(self, speed, gain):
        u = speed[self.sets]
        ask = u.shape[1]
        bottleneck = u.min(axis=1) if self.take == ask else np.sort(u, axis=1)[:, ask - self.take]
        value = bottleneck + gain[self.sets].sum(axis=1)
        best = value.max()
        if best == INF:
            return self.sets[int(np.argmax(value == INF))].astype(int)
        return self.sets[int(np.argmax(value >= best - TIE))].astype(int)


class Walk:
    """The bottleneck walk, for many clients; everybody in the set is waited for."""

    def __init__(self, K, m):
        self.m = m

    def solve(self, speed, gain):
        m = self.m
        unseen = np.flatnonzero(speed == INF)
        if len(unseen) >= m:
            return unseen[:m]
        order = np.lexsort((np.arange(len(speed)), -speed))
        import heapq

        heap, total, values = [], 0.0, []
        for i, k in enumerate(order):
            if len(heap) < m:
                heapq.heappush(heap, gain[k])
            else:
                heapq.heappushpop(heap, gain[k])
            last_of_its_speed = i + 1 == len(order) or speed[order[i + 1]] < speed[k]
            if i + 1 >= m and last_of_its_speed:
                total = math.fsum(heap)
                values.append((speed[k] + total, speed[k], total))
        target = max(value for value, _, _ in values) - TIE
        best = None
        for value, threshold, total in values:
            if value >= target:
                chosen = self._smallest(np.flatnonzero(speed >= threshold), gain, total - (target - threshold))
                if best is None or chosen < best:
                    best = chosen
        return np.array(best)

    def _smallest(self, ids, gain, slack):
        """The lexicographically smallest set of m of `ids` that loses at most `slack` of the largest sum."""
        m, g = self.m, gain[ids]
        edge = np.partition(g, len(g) - m)[len(g) - m]
        chosen = [int(k) for k in ids[g > edge + slack]]
        zone = [int(k) for k in ids[(g <= edge + slack) & (g >= edge - slack)]]
        need = m - len(chosen)
        best = math.fsum(sorted((gain[k] for k in zone), reverse=True)[:need])
        taken = []
        for place, k in enumerate(zone):
            if len(taken) == need:
                break
            rest = sorted((gain[j] for j in zone[place + 1:]), reverse=True)[: need - len(taken) - 1]
            if len(rest) == need - len(taken) - 1:
                if math.fsum([gain[j] for j in taken] + [gain[k]] + rest) >= best - slack:
                    taken.append(k)
        return sorted(chosen + taken)


def top(score, m):
    """The m highest; scores within 1e-12 of the m-th best are equal and smaller ids win."""
    edge = np.sort(score)[-m]
    if edge == INF:
        return np.flatnonzero(score == INF)[:m]
    sure = np.flatnonzero(score > edge + TIE)
    equal = np.flatnonzero((score <= edge + TIE) & (score >= edge - TIE))
    return np.sort(np.concatenate([sure, equal[: m - len(sure)]]))


# -------------------------------------------------------------------------------------------------- the policies


class Policy:
    context_ns = 0

    def __init__(self, world, solver, config):
        self.w, self.solver = world, solver
        self.seen = np.zeros(world.K, np.int64)
        self.sum = np.zeros(world.K)
        self.start(config)

    def start(self, config):
        pass

    def measure(self, k, tau_ns):
        return 0.0

    def observe(self, k, tau_ns):
        self.seen[k] += 1
        self.sum[k] += self.measure(k, tau_ns)

    def close(self, chosen):
        pass

    def mean(self):
        return self.sum / np.maximum(self.seen, 1)

    def bonus(self, factor, t):
        return np.where(self.seen > 0, np.sqrt(factor * math.log(t) / np.maximum(self.seen, 1)), INF)


class Bsfl(Policy):
    def start(self, config):
        self.alpha = config.get("alpha", self.w.alpha)
        self.beta = config.get("beta", self.w.beta)
        self.quantum = config.get("quantum", self.w.quantum)
        self.tau_min_ns = round(number(config["tau_min"]) * 1e9) if "tau_min" in config else self.w.tau_min_ns

    def measure(self, k, tau_ns):
        return self.tau_min_ns / tau_ns

    def select(self, t, counts):
        ucb = quantised(self.mean(), self.quantum) + self.bonus(self.w.ask + 1, t)
        gain = self.alpha / self.w.ask * generalisation(self.w.rho, counts, t, self.beta, self.quantum)
        return self.solver.solve(ucb, gain)


class Genie(Policy):
    def select(self, t, counts):
        return genie_set(self.w, self.solver, t, counts)


def genie_set(w, solver, t, counts):
    gain = w.alpha / w.ask * generalisation(w.rho, counts, t, w.beta, w.quantum)
    return solver.solve(w.mu_meter, gain)


class CsUcb(Policy):
    def start(self, config):
        tau_max = config.get("tau_max", {"quantile": 0.999})
        if isinstance(tau_max, dict):
            self.tau_max = max(self.w._shared(lambda job: job.quantile(tau_max["quantile"])))
        else:
            self.tau_max = number(tau_max)

    def measure(self, k, tau_ns):
        return max(0.0, 1 - tau_ns * 1e-9 / self.tau_max)

    def select(self, t, counts):
        return top(self.mean() + self.bonus(self.w.ask + 1, t), self.w.ask)


class CsUcbQ(CsUcb):
    def start(self, config):
        super().start(config)
        self.weight = config.get("beta", 0.5)
        self.share = config.get("phi", 0.5) * self.w.ask * self.w.size / self.w.size.sum()
        self.queue = np.zeros(self.w.K)

    def select(self, t, counts):
        estimate = np.minimum(1.0, self.mean() + self.bonus(2, t))
        return top((1 - self.weight) * estimate + self.weight * self.queue, self.w.ask)

    def close(self, chosen):
        selected = np.zeros(self.w.K)
        selected[chosen] = 1
        self.queue = np.maximum(0.0, self.queue + self.share - selected)


class RbcsF(Policy):
    def start(self, config):
        w = self.w
        self.V = config.get("latency_weight", 5.0)
        ridge = config.get("ridge", 1.0)
        self.exploration = config.get("exploration", 0.1)
        self.due = config.get("fairness", 0.5) * w.ask / w.K
        self.context_ns = round(number(config.get("context_time", "10 ms")) * 1e9)
        half = np.float64(0.5)
        medians = np.array([[float(law.quantile(half, half)) for law in job.laws] for job in w.jobs])
        self.context = np.column_stack([medians[:, 1], np.zeros(w.K), medians[:, 0] + medians[:, 2]])
        self.H = np.tile(ridge * np.eye(3), (w.K, 1, 1))
        self.b = np.zeros((w.K, 3))
        self.z = np.zeros(w.K)

    def select(self, t, counts):
        c = self.context
        theta = np.linalg.solve(self.H, self.b[:, :, None])[:, :, 0]
        spread = np.sum(c * np.linalg.solve(self.H, c[:, :, None])[:, :, 0], axis=1)
        tau = np.maximum(0.0, np.sum(c * theta, axis=1) - self.exploration * np.sqrt(spread))
        return self.solver.solve(-self.V * tau, self.z)

    def observe(self, k, tau_ns):
        c = self.context[k]
        self.H[k] += np.outer(c, c)
        self.b[k] += tau_ns * 1e-9 * c

    def close(self, chosen):
        selected = np.zeros(self.w.K)
        selected[chosen] = 1
        self.z = np.maximum(0.0, self.z + self.due - selected)
        self.context = self.context.copy()
        self.context[:, 1] = selected


class RoundRobin(Policy):
    def select(self, t, counts):
        return ((t - 1) * self.w.ask + np.arange(self.w.ask)) % self.w.K


POLICIES = {
    "bsfl": Bsfl, "genie": Genie, "cs-ucb": CsUcb, "cs-ucb-q": CsUcbQ, "rbcs-f": RbcsF, "round-robin": RoundRobin,
}


# -------------------------------------------------------------------------------------------------- the round loop


def simulate(world, solver, solver_of_latency, policy, rounds, given=None):
    """Yields one dictionary per round; `given` replays a list of selections instead of asking the policy."""
    w, clock, counts = world, 0, np.zeros(world.K, np.int64)
    regret = {meter: [] for meter in w.meters}
    phase_names = ("download", "compute", "upload")
    for t in range(1, rounds + 1):
        chosen = given[t - 1] if given is not None else [int(k) for k in policy.select(t, counts)]
        opened = clock
        clock += policy.context_ns if policy else 0
        now = t - 1
        # Boundary: the take-th arrival, or the cut.
        arrivals = sorted(
            (
                int(w.total[k, now]),
                int(w.phases[0, k, now] + w.phases[1, k, now]),
                int(w.phases[0, k, now]),
                place,
                k,
            )
            for place, k in enumerate(chosen)
            if w.lost[k, now] < 0 and (w.cut_ns is None or w.total[k, now] <= w.cut_ns)
        )
        full = len(arrivals) >= w.take
        boundary = arrivals[w.take - 1][0] if full else w.cut_ns
        arrived = [entry[-1] for entry in arrivals[: w.take]]
        late, dropped = [], []
        for k in chosen:
            if k not in arrived:
                if w.lost[k, now] >= 0 and w.lost_at[k, now] < boundary:
                    dropped.append((k, phase_names[w.lost[k, now]]))
                else:
                    late.append(k)
        gain = w.alpha / w.ask * generalisation(w.rho, counts, t, w.beta, w.quantum)
        ideal = [int(k) for k in genie_set(w, solver, t, counts)]

        def bottleneck(speeds):
            return float(np.sort(speeds)[len(speeds) - w.take])

        def score(members):
            members = sorted(members)
            gen = float(np.sum(gain[members]))
            out = {
                "mean": bottleneck(w.mu_meter[members]) + gen,
                "realised": bottleneck(w.speed[members, now]) + gen,
            }
            if w.minima:
                out["expected"] = w.minima.of(members) + gen
            return out

        mine, best = score(chosen), score(ideal)
        for meter in w.meters:
            regret[meter].append(best[meter] - mine[meter])
        if policy:
            for k in arrived:
                policy.observe(k, int(w.effective[k, now]))
            if w.take == w.ask or not full:
                for k in chosen:
                    if k not in arrived:
                        policy.observe(k, w.cut_ns)
            policy.close(chosen)
        counts[chosen] += 1
        clock += boundary
        yield {
            "round": t,
            "selected": chosen,
            "opened_ns": opened,
            "closed_ns": clock,
            "arrived": arrived,
            "late": sorted(late),
            "dropped": sorted(dropped),
            "reward": mine["realised"],
            "regret": {meter: regret[meter][-1] for meter in w.meters},
            "genie": ideal,
        }
