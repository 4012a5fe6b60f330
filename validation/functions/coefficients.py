"""Minimax coefficients of src/math/lanes/functions.rs, printed as Rust constants.

    pip install mpmath && python3 coefficients.py

Each polynomial is the best one of its degree under a weight, by the Remez exchange in 60 digits; its weighted error, before
the coefficients are rounded to the type of the constant, goes into the comment.
"""

import struct

from mpmath import cos, diff, erf, erfc, exp, findroot, linspace, log, lu_solve, matrix, mp, mpf, pi, sqrt, tanh, taylor

mp.dps = 60


def remez(function, weight, low, high, degree, rounds=12, mesh=1200):
    """Coefficients c_0..c_degree whose largest |weight · (Σ c_k x^k − function)| on [low, high] is smallest, and that error."""
    low, high, count = mpf(low), mpf(high), degree + 2
    nodes = [(low + high) / 2 - (high - low) / 2 * cos(pi * (k + 0.5) / count) for k in range(count)]
    points = [(low + high) / 2 - (high - low) / 2 * cos(pi * k / mesh) for k in range(mesh + 1)]
    values = [(x, function(x), weight(x)) for x in points]
    for _ in range(rounds):
        rows, right = [], []
        for k, x in enumerate(nodes):
            rows.append([x**power for power in range(degree + 1)] + [(-1) ** k / weight(x)])
            right.append(function(x))
        solution = list(lu_solve(matrix(rows), matrix(right)))
        coefficients, level = solution[:-1], abs(solution[-1])

        def horner(x):
            total = mpf(0)
            for coefficient in reversed(coefficients):
                total = total * x + coefficient
            return total

        errors = [(w * (horner(x) - f), x) for x, f, w in values]
        peaks = []
        for error, x in errors:
            if peaks and (error > 0) == (peaks[-1][0] > 0):
                if abs(error) > abs(peaks[-1][0]):
                    peaks[-1] = (error, x)
            else:
                peaks.append((error, x))
        while len(peaks) > count:
            peaks.pop(0 if abs(peaks[0][0]) < abs(peaks[-1][0]) else -1)
        if len(peaks) < count:
            break
        nodes = [x for _, x in peaks]
        worst = max(abs(error) for error, _ in errors)
        if worst < level * mpf("1.0005"):
            break
    return coefficients, max(abs(error) for error, _ in errors)


def single(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def show(name, kind, text, coefficients, error):
    numbers = [repr(float(c)) if kind == "f64" else shortest(single(c)) for c in coefficients]
    print(f"/// {text}; error {mp.nstr(error, 2)}.")
    print(f"const {name}: [{kind}; {len(numbers)}] = [{', '.join(numbers)}];")


def shortest(x):
    return next(text for digits in range(1, 18) if single(text := f"{x:.{digits}g}") == x)


def guarded(function, at_zero, edge="1e-4"):
    """The function, by its Taylor series close to zero, where its definition is 0/0."""
    series = [mpf(c) for c in at_zero]
    return lambda x: sum(c * x**k for k, c in enumerate(series)) if abs(x) < mpf(edge) else function(x)


half = log(2) / 2 * mpf("1.0001")
exp_series = [1 / mp.factorial(k + 2) for k in range(12)]
rest_of_exp = guarded(lambda r: (exp(r) - 1 - r) / r**2, exp_series)
show("EXP", "f32", "`(e^r − 1 − r) / r²` for |r| ≤ ln 2 / 2",
     *remez(rest_of_exp, lambda r: r**2 * exp(-r) + mpf("1e-12"), -half, half, 4))
show("EXP_WIDE", "f64", "The same",
     *remez(rest_of_exp, lambda r: r**2 * exp(-r) + mpf("1e-12"), -half, half, 4))

rest_of_ln = guarded(lambda f: (log(1 + f) - f + f**2 / 2) / f**3, [(-1) ** k / mpf(k + 3) for k in range(12)])
show("LN", "f32", "`(ln(1 + f) − f + f²/2) / f³` for √½ ≤ 1 + f ≤ √2",
     *remez(rest_of_ln, lambda f: f**2 + mpf("1e-6"), sqrt(mpf(1) / 2) - 1, sqrt(2) - 1, 8))

tanh_series = taylor(tanh, 0, 17)[3::2]
show("TANH", "f32", "`(tanh x − x) / x³` as a function of x², for |x| ≤ 1",
     *remez(guarded(lambda u: (tanh(sqrt(u)) / sqrt(u) - 1) / u, tanh_series, "1e-6"), lambda u: u + mpf("1e-6"), 0, 1, 7))

erf_series = [(-1) ** k * 2 / sqrt(pi) / mp.factorial(k) / (2 * k + 1) - (k == 0) for k in range(12)]
show("ERF", "f32", "`erf x / x − 1` as a function of x², for |x| ≤ 1",
     *remez(guarded(lambda u: erf(sqrt(u)) / sqrt(u) - 1, erf_series, "1e-6"), lambda u: 1, 0, 1, 6))
show("ERF_TAIL", "f32", "`ln erfc y / y` for 1 ≤ y ≤ 4, weighted with `y erfc y`",
     *remez(lambda y: log(erfc(y)) / y, lambda y: y * erfc(y), 1, 4, 8))

shift = mpf(4)
last = mpf(15)


def on_ratio(function):
    """A function of y = |x| as one of t = (y − shift)/(y + shift)."""
    return lambda t: function(shift * (1 + t) / (1 - t))


def mills(y):
    """Φ(−y) e^{y²/2}."""
    return erfc(y / sqrt(2)) / 2 * exp(y * y / 2)


def slope(y):
    """GELU′(−y) e^{y²/2}."""
    return mills(y) - y / sqrt(2 * pi)


zero = findroot(slope, mpf("0.7518"))
derivative_at_zero = diff(slope, zero)


def without_zero(y):
    return -derivative_at_zero if abs(y - zero) < mpf("1e-20") else slope(y) / (zero - y)


high = (last - shift) / (last + shift)
print(f"/// The zero of GELU′ is at minus this.\nconst GELU_ZERO: f64 = {float(zero)!r};")
show("GELU", "f64", "`Φ(−y) e^{y²/2}` as a function of `(y − 4)/(y + 4)`, for 0 ≤ y ≤ 15; relative",
     *remez(on_ratio(mills), lambda t: 1 / on_ratio(mills)(t), -1, high, 9))
show("GELU_DERIVATIVE", "f64", "`GELU′(−y) e^{y²/2} / (zero − y)` as a function of the same; relative",
     *remez(on_ratio(without_zero), lambda t: 1 / on_ratio(without_zero)(t), -1, high, 10))
