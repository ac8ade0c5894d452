"""Compares rna.Solve with SciPy's anderson, jaxopt's AndersonAcceleration and plain iteration, by evaluations of g, on
the problems of rna/internal/fixedpoint: python3 scripts/solve_compare.py [--seeds 100,101] [--tolerance 1e-10]

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


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seeds", default="100,101")
    p.add_argument("--tolerance", type=float, default=1e-10)
    p.add_argument("--serve", default="go run ./rna/internal/fixedpoint/serve")
    a = p.parse_args()
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

    print("| problem | plain | rna.Solve | SciPy | jaxopt |\n|-|-|-|-|-|")
    gains, over, first, total = [], 0, 0, 0
    for kind, name in enumerate(kinds):
        cells = [[], [], [], []]
        for seed in a.seeds.split(","):
            start = np.array([float(w) for w in line(f"problem {kind} {seed}")])
            plain, ours = (int(float(w)) for w in line(f"solve {a.tolerance} 20000"))
            found = []
            for solve in (scipy_anderson, jaxopt_anderson):
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
            first += bool(ours) and all(n is None or ours <= n for n in found)
        print(f"| {name} | " + " | ".join(", ".join(c) for c in cells) + " |", flush=True)
    print(f"\nmedian gain over plain iteration {statistics.median(gains):.1f}, geometric mean "
        f"{math.exp(statistics.fmean(map(math.log, gains))):.1f}; "
          f"more than 1.1 times plain's evaluations: {over} of {total}; no more than both others: {first} of {total}")


if __name__ == "__main__":
    sys.exit(main())
