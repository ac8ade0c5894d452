"""Makes the coefficients of erfTable: the polynomial in u, from -1 to 1, that interpolates erf(x)/x with
x = sqrt(8 (u+1)), from 0 to 4, at the Chebyshev points of its degree. Needs mpmath."""
from mpmath import mp, mpf, cos, erf, pi, sqrt

mp.dps = 60
DEGREE = 17


def f(u):
    x = sqrt(8 * (u + 1))
    return erf(x) / x if x else 2 / sqrt(pi)


n = DEGREE + 1
points = [cos(pi * (2 * j + 1) / (2 * n)) for j in range(n)]
c = [2 * sum(f(p) * cos(k * pi * (2 * j + 1) / (2 * n)) for j, p in enumerate(points)) / n for k in range(n)]
c[0] /= 2
t = [[mpf(1)], [mpf(0), mpf(1)]]  # Chebyshev polynomials
for k in range(2, n):
    a = [mpf(0)] + [2 * v for v in t[-1]]
    for i, v in enumerate(t[-2]):
        a[i] -= v
    t.append(a)
poly = [sum(c[k] * t[k][i] for k in range(n) if i < len(t[k])) for i in range(n)]
for v in reversed(poly):
    print(repr(float(v)) + ",")
worst = 0
for i in range(20001):
    u = mpf(i) / 10000 - 1
    p = mpf(0)
    for v in reversed(poly):
        p = p * u + mpf(float(v))
    worst = max(worst, abs(p / f(u) - 1))
print("# relative error", mp.nstr(worst, 3))
