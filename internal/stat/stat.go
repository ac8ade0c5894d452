// Package stat has the tests and intervals by which results are compared.
package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// T is the p-quantile of Student's t distribution with n − 1 degrees of freedom, NaN for n < 2.
func T(p float64, n int) float64 {
	if n < 2 {
		return math.NaN()
	}
	return distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(p)
}

// Mean returns the mean of x and its standard error, NaN for fewer than two.
func Mean(x []float64) (mean, deviation float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	sum := 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	if len(x) < 2 {
		return mean, math.NaN()
	}
	return mean, math.Sqrt(sum / (n - 1) / n)
}

// Interval returns the mean of x and half of the width of its 95 % interval by Student's t, NaN for fewer than two.
func Interval(x []float64) (mean, half float64) {
	mean, deviation := Mean(x)
	return mean, deviation * T(.975, len(x))
}

// PairedT is the two-sided p-value of Student's t test that differences d have the mean 0; NaN for fewer than two.
func PairedT(d []float64) float64 {
	mean, deviation := Mean(d)
	switch {
	case len(d) < 2:
		return math.NaN()
	case mean == 0:
		return 1
	case deviation == 0:
		return 0
	}
	return 2 * distuv.StudentsT{Sigma: 1, Nu: float64(len(d) - 1)}.CDF(-math.Abs(mean/deviation))
}

// Paired is the standard error of the difference of two shares of n of the same images, where one classifier alone is
// right on b of them and the other alone on c.
func Paired(b, c, n int) float64 {
	if n == 0 {
		return math.Inf(1)
	}
	size, d := float64(n), float64(b-c)
	return math.Sqrt(float64(b+c)-d*d/size) / size
}

// McNemar is the two-sided p-value of McNemar's exact test: of b + c images on which one of two classifiers alone is
// right, b go to the one and c to the other.
func McNemar(b, c int) float64 {
	n := b + c
	if n == 0 {
		return 1
	}
	half, _ := math.Lgamma(float64(n + 1))
	p := 0.0
	for k := range min(b, c) + 1 {
		in, _ := math.Lgamma(float64(k + 1))
		out, _ := math.Lgamma(float64(n - k + 1))
		p += math.Exp(half - in - out - float64(n)*math.Ln2)
	}
	return min(1, 2*p)
}
