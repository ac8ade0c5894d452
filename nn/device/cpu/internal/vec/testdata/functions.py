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


def quotient(f, high, top, bottom, weight, rounds=300):
    """Numerator and denominator of f in v², of the given degrees, from 0 to high, with the least |error| · weight."""
    x = nodes(m.mpf(0), m.mpf(high), 600)
    u, y = np.array([float(v / high) ** 2 for v in x]), np.array([float(f(v)) for v in x])
    weights = np.array([float(weight(v)) for v in x])
    w, q, best = np.ones(len(u)), np.ones(len(u)), None
    over, under = u[:, None] ** np.arange(top + 1), u[:, None] ** np.arange(1, bottom + 1)
    a = np.hstack([over, -y[:, None] * under])
    for _ in range(rounds):
        s = np.sqrt(w) * weights / q
        c = np.linalg.lstsq(a * s[:, None], y * s, rcond=None)[0]
        q = 1 + under @ c[top + 1:]
        e = np.abs(over @ c[:top + 1] / q - y) * weights
        if best is None or e.max() < best[0]:
            best = e.max(), c
        w *= e / e.max() + 1e-2
        w /= w.mean()
    scale = float(high) ** (2 * np.arange(bottom + 1))
    return best[1][:top + 1] / scale[:top + 1], np.concatenate([[1], best[1][top + 1:]]) / scale


def computed(c, top, x):
    """x·P/Q as package vec computes it, with the coefficients c from the highest powers down."""
    z = x * x
    w = z * z

    def fma(a, b, c):
        return (a.astype(float) * b.astype(float) + np.asarray(c).astype(float)).astype(F)

    def pairs(c):
        p, i = np.full_like(z, c[0]), 1
        if len(c) % 2 == 0:
            p, i = fma(p, z, c[1]), 2
        for i in range(i, len(c), 2):
            p = fma(p, w, fma(np.full_like(z, c[i]), z, c[i + 1]))
        return p

    return pairs(c[:top + 1]) * x / pairs(c[top + 1:])


def improve(c, top, error, steps=20000):
    random, best = np.random.default_rng(1), error(c)
    for _ in range(steps):
        d = c.copy()
        for _ in range(random.integers(1, 4)):
            i = random.integers(0, len(c) - 1)
            d[i] = (d[i:i + 1].view(np.int32) + np.int32(random.normal() * random.choice([1, 4, 30, 200]))).view(F)[0]
        if (e := error(d)) < best:
            best, c = e, d
    return c.tolist(), best


def erf_error(c):
    """The mean of the largest errors, in units of the last place."""
    return np.sort(np.abs(np.minimum(computed(c, 5, ERF_X), F(1)).astype(float) - ERF) / ERF_UNIT)[-60:].mean()


def half_error(top, high, want, x):
    """The mean of the largest errors, in units of ½'s last place; the function must be ½ at its end, to the bit."""
    def error(c):
        if computed(c, top, np.array([high], F))[0] != F(.5):
            return np.inf
        return np.sort(np.abs(computed(c, top, x).astype(float) - want) * 2**24)[-60:].mean()
    return error


def halves(name, f, high, top, bottom):
    """Coefficients of the odd function f, which is ½ from about high on: the end moves down until it is ½ there."""
    p, q = quotient(lambda x: f(x) / x, high, top, bottom, lambda x: x)
    c = np.concatenate([p[::-1], q[::-1]]).astype(F)
    end = F(high)
    while computed(c, top, np.array([end]))[0] != F(.5):
        end = np.nextafter(end, F(0))
    x = np.linspace(1e-3, end, 8000).astype(F)
    print(name, end, *improve(c, top, half_error(top, end, np.array([float(f(m.mpf(float(v)))) for v in x]), x), 12000))


half = m.log(2) / 2
print("exp", polynomial(lambda r: (m.exp(r) - 1 - r) / r**2, -half, half, range(5), lambda r: r * r / m.exp(r))[::-1])
print("tanh", polynomial(lambda x: (m.tanh(x) / x - 1) / x**2, "0.001", "0.625", range(0, 10, 2),
                         lambda x: x**3 / m.tanh(x))[::-1])
ERF_X = np.concatenate([np.linspace(1e-3, 4, 6000), np.linspace(2.5, 4, 6000)]).astype(F)
ERF = np.array([float(m.erf(float(v))) for v in ERF_X])
ERF_UNIT = np.exp2(np.floor(np.log2(ERF)) - 23)
p, q = quotient(lambda x: m.erf(x) / x, 4, 5, 5, lambda x: x / m.erf(x))
print("erf", *improve(np.concatenate([p[::-1], q[::-1]]).astype(F), 5, erf_error))
halves("normal", lambda x: m.erf(x / m.sqrt(2)) / 2, 5.45, 5, 5)
halves("gelu's slope", lambda x: m.erf(x / m.sqrt(2)) / 2 + x * m.npdf(x), 6.2, 6, 7)
