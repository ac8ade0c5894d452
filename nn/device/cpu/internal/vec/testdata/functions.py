"""Makes the coefficients of singles: polynomials with the least largest error, as float32 numbers. Those of erf are then
changed by units of the last place as long as the errors of the computation become smaller. Needs mpmath and numpy."""
import mpmath as m
import numpy as np

F = np.float32


def nodes(low, high, count=400):
    return [low + (high - low) * (1 - m.cos(m.pi * (2 * j + 1) / (2 * count))) / 2 for j in range(count)]


def least(a, y, rounds=60):
    """The c with the least largest |a·c − y|, by least squares with weights that grow with the errors."""
    w, best = np.ones(len(y)), None
    for _ in range(rounds):
        s = np.sqrt(w)
        c = np.linalg.lstsq(a * s[:, None], y * s, rcond=None)[0]
        e = np.abs(a @ c - y)
        if best is None or e.max() < best[0]:
            best = e.max(), c
        w *= e + 1e-3 * e.max()
        w /= w.mean()
    return best[1]


def polynomial(f, low, high, powers, weight):
    x = nodes(m.mpf(low), m.mpf(high))
    return least(np.array([[float(weight(v) * v**k) for k in powers] for v in x]),
                 np.array([float(weight(v) * f(v)) for v in x]))


def quotient(f, high, degree, rounds=200):
    """Numerator and denominator in v²/high² of f, from 0 to high."""
    x = nodes(m.mpf(0), m.mpf(high), 600)
    u, y = np.array([float(v / high) ** 2 for v in x]), np.array([float(f(v)) for v in x])
    w, q, best = np.ones(len(u)), np.ones(len(u)), None
    powers = u[:, None] ** np.arange(degree + 1)
    a = np.hstack([powers, -y[:, None] * powers[:, 1:]])
    for _ in range(rounds):
        s = np.sqrt(w) / (q * y)
        c = np.linalg.lstsq(a * s[:, None], y * s, rcond=None)[0]
        q = 1 + powers[:, 1:] @ c[degree + 1:]
        e = np.abs(powers @ c[:degree + 1] / q / y - 1)
        if best is None or e.max() < best[0]:
            best = e.max(), c
        w *= e / e.max() + 1e-2
        w /= w.mean()
    scale = float(high) ** (2 * np.arange(degree + 1))
    return best[1][:degree + 1] / scale, np.concatenate([[1], best[1][degree + 1:]]) / scale


def improve(c, steps=20000):
    x = np.concatenate([np.linspace(1e-3, 4, 6000), np.linspace(2.5, 4, 6000)]).astype(F)
    z, want = x * x, np.array([float(m.erf(float(v))) for v in x])
    unit = np.exp2(np.floor(np.log2(want)) - 23)

    def horner(c):
        p = np.full_like(z, c[0])
        for k in c[1:]:
            p = (p.astype(float) * z.astype(float) + float(k)).astype(F)
        return p

    def error(c):
        y = np.minimum(horner(c[:6]) * x / horner(c[6:]), F(1))
        return np.sort(np.abs(y.astype(float) - want) / unit)[-60:].mean()

    random, best = np.random.default_rng(1), error(c)
    for _ in range(steps):
        d = c.copy()
        for _ in range(random.integers(1, 4)):
            i = random.integers(0, 11)
            d[i] = (d[i:i + 1].view(np.int32) + np.int32(random.normal() * random.choice([1, 4, 30, 200]))).view(F)[0]
        if (e := error(d)) < best:
            best, c = e, d
    return c


half = m.log(2) / 2
print("exp", polynomial(lambda r: (m.exp(r) - 1 - r) / r**2, -half, half, range(5), lambda r: r * r / m.exp(r))[::-1])
print("tanh", polynomial(lambda x: (m.tanh(x) / x - 1) / x**2, "0.001", "0.625", range(0, 10, 2),
                         lambda x: x**3 / m.tanh(x))[::-1])
p, q = quotient(lambda x: m.erf(x) / x, 4, 5)
print("erf", improve(np.concatenate([p[::-1], q[::-1]]).astype(F)).tolist())
