"""Compares rna.Solve with SciPy's anderson, jaxopt's AndersonAcceleration, the stabilised type-I method of cvxgrp/aa's
authors, DAAREM and plain iteration, by evaluations of g, on the problems of rna/internal/fixedpoint:
python3 scripts/solve_compare.py [--seeds 100,101] [--tolerance 1e-10] [--only aa,daarem]

Needs Go, numpy and scipy. All solvers stop at the first evaluation with
‖g(x) − x‖ ≤ tolerance · max(‖g(x)‖, the first residual). A solver has failed, "-", if it takes more evaluations than
plain iteration, or 20,000, or leaves g's domain. The other solvers get NaN for a failed g and run with their defaults,
with histories of 5 and 10, of which the better one counts."""
import argparse, itertools, math, statistics, subprocess, sys
import numpy as np


class Done(Exception):
    pass


class Counter:
    """g with a count of its evaluations, which ends the solve by an exception."""

    def __init__(self, ask, start, tolerance, most):
        self.ask, self.tolerance, self.most = ask, tolerance, most
        self.n, self.first, self.start = 0, None, start

    def __call__(self, x):
        x = np.asarray(x, dtype=float)
        if self.n >= self.most:
            self.n = None
            raise Done
        self.n += 1
        y = self.ask(x)
        if y is None:
            return np.full_like(x, np.nan)
        r = np.linalg.norm(y - x)
        if self.first is None:
            self.first = r
        if r <= self.tolerance * max(self.first, np.linalg.norm(y)):
            raise Done
        return y


def scipy_anderson(g, start, m):
    from scipy.optimize import anderson
    anderson(lambda x: g(x) - x, start, M=m, f_tol=1e-300, maxiter=20000)


def jaxopt_anderson(g, x, m, ridge=1e-5):
    """jaxopt's AndersonAcceleration with its defaults, in numpy: jaxopt itself compiles a program for every map."""
    points, residuals, gram = np.zeros((m, len(x))), np.zeros((m, len(x))), np.zeros((m, m))
    for i in itertools.count():
        if i >= m:
            h = np.ones((m + 1, m + 1))
            h[0, 0], h[1:, 1:] = 0, gram + ridge * np.eye(m)
            c = np.linalg.solve(h, np.eye(m + 1)[0])[1:]
            x = c @ points + c @ residuals
        y = g(x)
        k = i % m
        points[k], residuals[k] = x, y - x
        gram[k, :] = gram[:, k] = residuals @ residuals[k]
        x = y


def stabilised(g, x, m, theta=0.01, tau=0.001, alpha=0.1, limit=1e6, slack=1e-6):
    """AA-I-S-m of Zhang, O'Donoghue and Boyd (SIAM J. Optim. 30, 2020), algorithm 3.1 with the paper's constants."""
    def residual(x):
        r = x - g(x)
        return r if np.all(np.isfinite(r)) else None

    r = residual(x)
    bound, taken, kept, updates, basis = np.linalg.norm(r), 0, 0, [], []
    point = trial = x - alpha * r  # x_k, and the accelerated one
    while True:
        r_trial = residual(trial)
        if r_trial is None:  # out of the domain: forget, and take the averaged step
            updates, basis, kept = [], [], 0
            trial = point = x - alpha * r
            r_trial = residual(trial)
        s, y = trial - x, r_trial - r
        direction = s - sum(((b @ s) / (b @ b) * b for b in basis), np.zeros_like(s))
        kept += 1
        if kept == m + 1 or np.linalg.norm(direction) < tau * np.linalg.norm(s):
            kept, direction, updates, basis = 1, s, [], []
        apply = lambda v: v + sum((a * (b @ v) for a, b in updates), np.zeros_like(v))
        left = direction + sum((b * (a @ direction) for a, b in updates), np.zeros_like(s))  # directionᵀH
        eta = left @ y / (direction @ direction)
        share = 1 if abs(eta) >= theta else (1 - math.copysign(theta, eta)) / (1 - eta)
        mixed = share * y - (1 - share) * r
        updates.append(((s - apply(mixed)) / (left @ mixed), left))
        basis.append(direction)
        r = r_trial if point is trial else residual(point)
        x = point
        trial = x - apply(r)
        if np.linalg.norm(r) <= limit * bound * (taken + 1) ** -(1 + slack):
            point, taken = trial, taken + 1
        else:
            point = x - alpha * r


def daarem(g, x, m, alpha=1.2, kappa=25, tolerance=0.95):
    """DAAREM of Henderson and Varadhan (J. Comput. Graph. Stat. 28, 2019) with its defaults: damped, with restarts,
    and monotone in the residual, as it is without an objective."""
    m = min(m, math.ceil(len(x) / 2))
    f = g(x) - x
    damping, steps = 0, 0
    while True:
        xs, fs, start = [], [], np.linalg.norm(f)
        x, f, before_x, before_f = x + f, None, x, f
        f = g(x) - x
        for _ in range(m):
            xs.append(x - before_x)
            fs.append(f - before_f)
            a, b = np.array(xs).T, np.array(fs).T
            u, sigma, vt = np.linalg.svd(b, full_matrices=False)
            keep = sigma > 1e-14 * sigma[0]
            u, sigma, vt, before_x, before_f = u[:, keep], sigma[keep], vt[keep], x, f
            c = u.T @ f
            goal = np.sum((c / sigma) ** 2) / (1 + alpha ** (kappa - damping))
            low, high = 0.0, 1.0
            size = lambda ridge: np.sum((sigma * c / (sigma**2 + ridge)) ** 2)
            while size(high) > goal:
                high *= 10
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (middle, high) if size(middle) > goal else (low, middle)
            gamma = vt.T @ (sigma * c / (sigma**2 + high))
            trial = x + f - (a + b) @ gamma
            f_trial = g(trial) - trial
            steps += 1
            if np.linalg.norm(f_trial) <= np.linalg.norm(f) * (1 + tolerance**steps):  # false for NaN
                x, f, damping = trial, f_trial, damping + 1
            else:
                x = x + f
                f = g(x) - x
        if not np.linalg.norm(f) <= start:
            damping = max(damping - m, -2 * kappa)


solvers = {"SciPy": scipy_anderson, "jaxopt": jaxopt_anderson, "aa": stabilised, "daarem": daarem}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seeds", default="100,101")
    p.add_argument("--tolerance", type=float, default=1e-10)
    p.add_argument("--serve", default="go run ./rna/internal/fixedpoint/serve")
    p.add_argument("--only", default=",".join(solvers))
    a = p.parse_args()
    others = [solvers[name] for name in a.only.split(",")]
    go = subprocess.Popen(a.serve.split(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(text):
        go.stdin.write(text + "\n")
        go.stdin.flush()
        return go.stdout.readline().split()

    go.stdin.write("kinds\n")
    go.stdin.flush()
    kinds = []
    while (name := go.stdout.readline().strip()):
        kinds.append(name)

    def ask(x):
        if not np.all(np.isfinite(x)):
            return None
        words = line(" ".join(repr(float(v)) for v in x))
        return None if words == ["fail"] else np.array([float(w) for w in words])

    print("| problem | plain | rna.Solve | " + a.only.replace(",", " | ") + " |\n|-|-|-" + "|-" * len(others) + "|")
    within = [0] * len(others)
    gains, over, first, total = [], 0, 0, 0
    for kind, name in enumerate(kinds):
        cells = [[] for _ in range(2 + len(others))]
        for seed in a.seeds.split(","):
            start = np.array([float(w) for w in line(f"problem {kind} {seed}")])
            plain, ours = (int(float(w)) for w in line(f"solve {a.tolerance} 20000"))
            found = []
            for solve in others:
                best = None
                for m in (5, 10):
                    g = Counter(ask, start, a.tolerance, min(20000, 2 * plain))
                    try:
                        solve(g, start, m)
                        g.n = None
                    except Done:
                        pass
                    except Exception as e:  # NoConvergence, singular systems
                        g.n = None
                    if g.n is not None and (best is None or g.n < best):
                        best = g.n
                found.append(best)
            for cell, n in zip(cells, (plain, ours, *found)):
                cell.append("-" if not n else str(n))
            if ours:
                gains.append(plain / ours)
            over += not ours or ours > 1.1 * plain
            total += 1
            within = [w + (bool(ours) and (n is None or ours <= n)) for w, n in zip(within, found)]
            first += bool(ours) and all(n is None or ours <= n for n in found)
        print(f"| {name} | " + " | ".join(", ".join(c) for c in cells) + " |", flush=True)
    print(f"\nmedian gain over plain iteration {statistics.median(gains):.1f}, geometric mean "
        f"{math.exp(statistics.fmean(map(math.log, gains))):.1f}; "
          f"more than 1.1 times plain's evaluations: {over} of {total}; no more than all others: {first} of {total}, than each: {within}")


if __name__ == "__main__":
    sys.exit(main())
