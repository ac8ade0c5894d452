#!/usr/bin/env python3
"""Compare `rna logreg` with numpy: plain numpy versions of the paper's methods and this program run in turn on the same
data, several rounds in one run.

The data have the shape of madelon: 2,000 rows of 500 features, scaled to [0, 1], and a constant. Products go through
numpy's BLAS on all cores; f and its gradient share the product with the data unless --separate is given. Curves of both
programs are compared over the first iterations. With --sparse the data have the shape of sido0, 12,678 rows of 4,932
features and a constant of which 9.8 % are not zero, and products are scipy.sparse's. Times are of the iterations alone,
medians over rounds; a ratio is the median over rounds, with the lowest and the highest.

Threads of the BLAS spin while they wait for one another: on a busy machine (see the load) the comparison is fair only
with one thread, OPENBLAS_NUM_THREADS=1 GOMAXPROCS=1.
"""

import argparse
import csv
import os
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile
import time

import numpy as np

WINDOW, LAMBDA, KAPPA = 10, 1e-8, 1e-6


def largest_square(x):
    """The square of the largest singular value."""
    if isinstance(x, np.ndarray):
        return np.linalg.norm(x.T @ x, 2)
    import scipy.sparse.linalg
    return scipy.sparse.linalg.svds(x, k=1, return_singular_vectors=False)[0] ** 2


class Logistic:
    """The l2-regularised logistic loss."""

    def __init__(self, x, y, kappa, separate=False):
        self.separate = separate
        self.x, self.y, self.n = x, y, len(y)
        smooth = largest_square(x) / (4 * self.n)
        self.reg = kappa * smooth
        self.lipschitz, self.mu = smooth + self.reg, self.reg
        self.squares = np.max((x * x if isinstance(x, np.ndarray) else x.multiply(x)).sum(axis=1))

    def value(self, w):
        return np.mean(np.log1p(np.exp(-self.y * (self.x @ w)))) + self.reg / 2 * (w @ w)

    def both(self, w):
        if self.separate:
            return self.value(w), self.gradient(w)
        e = np.exp(-self.y * (self.x @ w))
        slopes = -self.y * e / (1 + e)
        return np.mean(np.log1p(e)) + self.reg / 2 * (w @ w), self.x.T @ slopes / self.n + self.reg * w

    def gradient(self, w):
        slopes = -self.y / (1 + np.exp(self.y * (self.x @ w)))
        return self.x.T @ slopes / self.n + self.reg * w


def rna(points, gradients, lipschitz):
    """The extrapolated point of the window."""
    y, u = np.array(points).T, np.array(gradients).T
    gram = u.T @ u
    gram /= np.linalg.norm(gram, 2)
    z = np.linalg.solve(gram + LAMBDA * np.eye(len(points)), np.ones(len(points)))
    c = z / z.sum()
    return y @ c - u @ c / lipschitz


def descend(p, method, iterations):
    """Gradient descent or Nesterov's method with backtracking, and RNA."""
    offline, online = method.startswith("offline_rna_"), method.startswith("online_rna_")
    base = method.removeprefix("offline_rna_").removeprefix("online_rna_")
    q = p.mu / p.lipschitz if base == "nesterov_strong" else 0.0
    alpha = np.sqrt(q) if base == "nesterov_strong" else 1.0
    w = np.zeros(p.x.shape[1])
    y, lk = w, p.lipschitz
    points, gradients, curve = [], [], [p.value(w)]
    for _ in range(iterations):
        f, g = p.both(y)
        square = g @ g
        while True:
            step = y - g / lk
            fstep = p.value(step)
            if fstep <= f - square / (2 * lk) or lk >= p.lipschitz:
                break
            lk = min(2 * lk, p.lipschitz)
        lk /= 2
        beta = 0.0
        if base != "gd":
            b = alpha**2 - q
            root = (np.sqrt(b * b + 4 * alpha**2) - b) / 2
            beta, alpha = alpha * (1 - alpha) / (alpha**2 + root), root
        z, shown = step, fstep
        if offline or online:
            points, gradients = (points + [y])[-WINDOW:], (gradients + [g])[-WINDOW:]
            extrapolated = rna(points, gradients, p.lipschitz)
            if offline:
                shown = p.value(extrapolated)
            else:
                searched = (extrapolated + beta * w) / (1 + beta)
                if p.value(searched) < fstep:
                    z, shown = searched, p.value(extrapolated)
        y = (1 + beta) * z - beta * w
        w = z
        curve.append(shown)
    return curve


def lbfgs(p, iterations):
    """L-BFGS with steps that satisfy Armijo's condition."""
    w = np.zeros(p.x.shape[1])
    f, g = p.both(w)
    steps, changes, curve = [], [], [f]
    for _ in range(iterations):
        d, alphas = -g, []
        for s, q in zip(reversed(steps), reversed(changes)):
            alphas.append(s @ d / (s @ q))
            d = d - alphas[-1] * q
        if steps:
            d = d * (steps[-1] @ changes[-1] / (changes[-1] @ changes[-1]))
        for s, q, alpha in zip(steps, changes, reversed(alphas)):
            d = d + (alpha - q @ d / (s @ q)) * s
        size, slope = 1.0 if steps else 1 / np.sum(np.abs(g)), g @ d
        for _ in range(30):
            new = w + size * d
            fnew, gnew = p.both(new)
            if fnew <= f + 1e-4 * size * slope:
                break
            size /= 2
        if (new - w) @ (gnew - g) > 0:
            steps, changes = (steps + [new - w])[-WINDOW:], (changes + [gnew - g])[-WINDOW:]
        w, f, g = new, fnew, gnew
        curve.append(f)
    return curve


def stochastic(p, method, epochs):
    """SGD, SAGA and SVRG, one sample at a time. An epoch is gradients of n samples."""
    rng = np.random.default_rng(0)
    x, y, n, reg = p.x, p.y, p.n, p.squares / p.n
    w = np.zeros(x.shape[1])
    p.reg = reg
    step = 1 / (p.squares + reg) if method == "sgd" else 1 / (3 * (p.squares + reg))
    curve = [p.value(w)]
    slopes, mean = -y / 2, x.T @ (-y / 2) / n
    for _ in range(epochs // 2 if method == "svrg" else epochs):
        if method == "svrg":
            slopes = -y / (1 + np.exp(y * (x @ w)))
            mean = x.T @ slopes / n
        for i in rng.integers(n, size=n):
            slope = -y[i] / (1 + np.exp(y[i] * (x[i] @ w)))
            if method == "sgd":
                w = w - step * (slope * x[i] + reg * w)
                continue
            change = slope - slopes[i]
            w = w - step * (change * x[i] + mean + reg * w)
            if method == "saga":
                mean = mean + change / n * x[i]
                slopes[i] = slope
        curve.append(p.value(w))
    return curve


METHODS = ["gd", "nesterov_convex", "nesterov_strong", "offline_rna_gd", "offline_rna_nesterov_convex",
    "offline_rna_nesterov_strong",
           "online_rna_gd", "online_rna_nesterov_convex", "online_rna_nesterov_strong", "lbfgs"]
ALL = METHODS + ["bfgs", "optimal_adaptive", "plain_online_rna_gd", "anderson_gd"]
STOCHASTIC = ["sgd", "svrg", "saga"]


def madelon(real, n=2000, d=500):
    """Rows of partly correlated features and a noisy label that depends on a few of them. Features are integers like
    madelon's, or real numbers, both scaled to [0, 1]."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, d)) * rng.uniform(10, 60, size=d) + 480
    x[:, :20] += 30 * rng.normal(size=(n, 5)) @ rng.normal(size=(5, 20))
    y = np.where((x[:, :5] - 480) @ rng.normal(size=5) + 60 * rng.normal(size=n) > 0, 1.0, -1.0)
    if not real:
        x = np.rint(x)
    low, high = x.min(axis=0), x.max(axis=0)
    return np.hstack([(x - low) / (high - low), np.ones((n, 1))]), y


def sido(real, n=12678, d=4932, density=0.098):
    """Rows with as many features as sido0, 0 or 1 or real numbers, and a label that depends on them."""
    import scipy.sparse
    rng = np.random.default_rng(1)
    x = scipy.sparse.random(n, d, density=density, random_state=1, format="csr")
    if not real:
        x.data[:] = 1
    x = scipy.sparse.hstack([x, np.ones((n, 1))]).tocsr()
    z = x @ (rng.normal(size=d + 1) / 30)
    return x, np.where(rng.random(n) < 1 / (1 + np.exp(z.mean() - z)), 1.0, -1.0)


def ours(program, file, methods, iterations, folder, extra=()):
    """Seconds and curves of `rna logreg`, by method."""
    curves = folder / "curves.csv"
    out = subprocess.run([program, "logreg", "--data", str(file), "--methods", ",".join(methods), "--iterations",
        str(iterations),
                          "--csv", str(curves), *extra], check=True, capture_output=True, text=True).stdout
    seconds = {m[1]: float(m[2]) for m in re.finditer(r"^\s*(\w+) .* (\S+)$", out, re.M) if m[1] in methods}
    result = {m: [] for m in methods}
    with curves.open() as f:
        for row in csv.DictReader(f):
            result[row["method"]].append(float(row["f_minus_fstar"]))
    return seconds, result


def user(run):
    """Seconds of processor time that children used during run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run()
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def report(rows):
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))), flush=True)


def ratio(pairs):
    q = sorted(theirs / mine for mine, theirs in pairs)
    return f"{statistics.median(q):.1f} ({q[0]:.1f}–{q[-1]:.1f})"


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("methods", nargs="*", metavar="method", help=f"default: all of {', '.join(METHODS + STOCHASTIC)}")
    a.add_argument("--rna", default="bin/rna", help="this program")
    a.add_argument("--rounds", type=int, default=7)
    a.add_argument("--iterations", type=int, default=300)
    a.add_argument("--real", action="store_true",
        help="real features in place of madelon's integers, which rna stores in 16 bits")
    a.add_argument("--sparse", action="store_true",
        help="data of sido0's size, and only methods that are not stochastic; needs scipy")
    a.add_argument("--separate", action="store_true",
        help="compute numpy's f and its gradient separately, each with its own product")
    a.add_argument("--epochs", type=int, default=4, help="of stochastic methods")
    args = a.parse_args()
    wanted = args.methods or METHODS + (STOCHASTIC if not args.sparse else [])
    for m in wanted:
        if m not in METHODS + STOCHASTIC:
            a.error(f"unknown method {m!r}")
    if args.rounds < 1 or args.iterations < 6 or args.epochs < 2:
        a.error("--rounds must be at least 1, --iterations 6, --epochs 2")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        x, y = (sido if args.sparse else madelon)(args.real)
        if args.sparse:
            import scipy.io
            file = folder / "sido.mat"
            scipy.io.savemat(file, {"X": x.tocsc(), "y": y[:, None]})
        else:
            file = folder / "madelon.csv"
            np.savetxt(file, np.hstack([y[:, None], x]), fmt="%.17g", delimiter=",")
        p = Logistic(x, y, KAPPA, args.separate)
        deterministic, sampled = [m for m in wanted if m in METHODS], [m for m in wanted if m in STOCHASTIC]
        times, differences, computing = {m: [] for m in wanted}, {}, []
        load = os.getloadavg()[0]
        for _ in range(args.rounds):
            began = time.process_time()
            for methods, count, extra in ((deterministic, args.iterations, ()),
                (sampled, args.epochs, ("--stochastic",))):
                if not methods:
                    continue
                seconds, curves = ours(args.rna, file, methods, count, folder, extra)
                for m in methods:
                    if m not in STOCHASTIC:
                        p.reg = KAPPA * (p.lipschitz / (1 + KAPPA))
                    start = time.perf_counter()
                    curve = stochastic(p, m, count) if extra else lbfgs(p, count) if m == "lbfgs" else descend(p, m,
                        count)
                    theirs = time.perf_counter() - start
                    times[m].append((seconds[m], theirs))
                    if not extra and m != "lbfgs":
                        best = np.log(2) - curves[m][0]
                        differences[m] = max(abs(b - best - c) / c for b, c in zip(curve[:6], curves[m][:6]))
            # on a busy machine processor time is fairer; subtract one iteration's, for reading the data and finding f*
            if args.sparse:
                theirs = time.process_time() - began
                computing.append([user(lambda n=n: ours(args.rna, file, deterministic, n, folder)) for n in (1,
                    args.iterations)] + [theirs])
        rows = [("ms an iteration or epoch", "numpy", "rna", "ratio", "curves differ by, 5 iterations")]
        for m in wanted:
            count = args.epochs if m in STOCHASTIC else args.iterations
            median = [1e3 / count * statistics.median(t[i] for t in times[m]) for i in (1, 0)]
            rows.append((m, *(f"{t:.3g}" for t in median), ratio(times[m]),
                f"{differences[m]:.0e}" if m in differences else ""))
        rounds = [[sum(times[m][r][i] for m in deterministic) for i in (0, 1)] for r in range(args.rounds)]
        if deterministic:
            median = [1e3 / args.iterations * statistics.median(t[i] for t in rounds) for i in (1, 0)]
            rows.append(("deterministic, in all", *(f"{t:.3g}" for t in median), ratio(rounds), ""))
        if args.sparse:
            used = user(lambda: ours(args.rna, file, ALL, args.iterations, folder))
            print(f"{len(ALL)} methods, {args.iterations} iterations each, with reading the file and finding f*: "
                f"{used:.1f} s of CPU")
        if args.sparse:
            pairs = [(all - one, theirs) for one, all, theirs in computing]
            median = [1e3 / args.iterations / len(wanted) * statistics.median(p[i] for p in pairs) for i in (1, 0)]
            rows.append(("CPU time, mean of methods", *(f"{t:.3g}" for t in median), ratio(pairs), ""))
        print(f"{len(y)} rows of {x.shape[1]} features, of {'real numbers' if args.real else 'integers'}, "
            f"{'scipy.sparse' if args.sparse else 'dense'}, {os.cpu_count()} cores, numpy {np.__version__}, load "
                f"{load:.1f}")
        report(rows)


if __name__ == "__main__":
    main()
