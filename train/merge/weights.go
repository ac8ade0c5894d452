package merge

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Mean is the weight 1/n for each of n files.
func Mean(n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = 1 / float64(n)
	}
	return w
}

// EMA are the weights of n equally spaced iterates, oldest first, in their exponential moving average, which starts at
// the first.
func EMA(n int, decay float64) ([]float64, error) {
	if !(decay >= 0 && decay < 1) {
		return nil, fmt.Errorf("decay %v: from 0 up to 1, 1 excluded", decay)
	}
	w := make([]float64, n)
	rest := 1.0 // decay^(n−1−i)
	for i := n - 1; i > 0; i-- {
		w[i] = (1 - decay) * rest
		rest *= decay
	}
	w[0] = rest
	return w, nil
}

// Schedules lists the learning-rate decays that [WSM] supports.
func Schedules() []string { return []string{"linear", "cosine", "1-sqrt"} }

// WSM are the weights of n checkpoints of a run with a constant learning rate, oldest first. With the same gradients, a
// decay of the rate over these checkpoints would give their weighted sum: the steps between checkpoints i−1 and i have
// the factor v_i = f(i/n), where f falls from 1 to 0.
func WSM(n int, schedule string) ([]float64, error) {
	var f func(x float64) float64
	switch schedule {
	case "linear":
		f = func(x float64) float64 { return 1 - x }
	case "cosine":
		f = func(x float64) float64 { return (1 + math.Cos(math.Pi*x)) / 2 }
	case "1-sqrt":
		f = func(x float64) float64 { return 1 - math.Sqrt(x) }
	default:
		return nil, fmt.Errorf("unknown schedule %q: linear, cosine or 1-sqrt", schedule)
	}
	w := make([]float64, n)
	for i := range w {
		w[i] = f(float64(i)/float64(n)) - f(float64(i+1)/float64(n))
	}
	return w, nil
}

// Power is a power-function EMA at a step: its profile over the steps t up to Step is proportional to t^γ. Its width
// σ_rel is the standard deviation of the profile relative to Step.
type Power struct {
	Step     float64
	SigmaRel float64 // 0: an iterate, not an average
}

// maxSigma is the largest width for γ ≥ 0.
var maxSigma = 1 / math.Sqrt(12)

// Gamma is the exponent γ of the width σ_rel = √(γ+1) / ((γ+2) √(γ+3)).
func Gamma(sigmaRel float64) (float64, error) {
	if !(sigmaRel >= 1e-6 && sigmaRel <= maxSigma) {
		return 0, fmt.Errorf("σ_rel %v: from 1e-6 to %.4f", sigmaRel, maxSigma)
	}
	lo, hi := 0.0, 2e6
	for range 200 {
		mid := (lo + hi) / 2
		if math.Sqrt((mid+1)/(mid+3))/(mid+2) > sigmaRel {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// PowerEMA are the weights of stored EMAs whose sum is closest to the wanted EMA: Karras et al. 2024, algorithm 3. An
// iterate represents the steps since the previous one. The residual is the distance of the profiles relative to the
// norm of the wanted one.
func PowerEMA(stored []Power, want Power) (w []float64, residual float64, err error) {
	gamma, err := Gamma(want.SigmaRel)
	if err != nil {
		return nil, 0, err
	}
	raw := 0
	for _, p := range stored {
		if !(p.Step > 0) || math.IsInf(p.Step, 0) {
			return nil, 0, fmt.Errorf("step %v: must be above 0", p.Step)
		}
		if p.SigmaRel == 0 {
			raw++
		}
	}
	switch raw {
	case len(stored):
		return powerOfIterates(stored, want.Step, gamma)
	case 0:
	default:
		return nil, 0, errors.New("some files are EMAs and some are not: give the σ_rel of each or of none")
	}
	n := len(stored)
	gammas := make([]float64, n)
	for i, p := range stored {
		if gammas[i], err = Gamma(p.SigmaRel); err != nil {
			return nil, 0, err
		}
		for j := range i {
			if stored[j] == p {
				return nil, 0, fmt.Errorf("two files are the EMA of σ_rel %v at step %v", p.SigmaRel, p.Step)
			}
		}
	}
	a, b := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
	for i, p := range stored {
		for j, q := range stored {
			a.Set(i, j, inner(p.Step, gammas[i], q.Step, gammas[j]))
		}
		b.SetVec(i, inner(p.Step, gammas[i], want.Step, gamma))
	}
	var x mat.VecDense
	if err := x.SolveVec(a, b); err != nil {
		var c mat.Condition
		if !errors.As(err, &c) || math.IsInf(float64(c), 0) {
			return nil, 0, fmt.Errorf("the profiles of the files depend on each other: %w", err)
		}
	}
	w = append(w, x.RawVector().Data...)
	norm := inner(want.Step, gamma, want.Step, gamma)
	square := mat.Inner(&x, a, &x) - 2*mat.Dot(&x, b) + norm
	return w, math.Sqrt(max(square, 0) / norm), nil
}

// inner is the inner product of two EMAs' profiles.
func inner(ta, ga, tb, gb float64) float64 {
	exp := -ga
	if ta < tb {
		exp = gb
	}
	return (ga + 1) * (gb + 1) * math.Pow(ta/tb, exp) / ((ga + gb + 1) * max(ta, tb))
}

// powerOfIterates gives each iterate the weight of the steps since the previous one.
func powerOfIterates(files []Power, step, gamma float64) (w []float64, residual float64, err error) {
	before, square := 0.0, 0.0
	for _, p := range files {
		to := p.Step / step
		if to <= before || to > 1 {
			return nil, 0, errors.New("the steps of the files must rise, up to the wanted one")
		}
		v := math.Pow(to, gamma+1) - math.Pow(before, gamma+1)
		w = append(w, v)
		square += v * v / (to - before)
		before = to
	}
	if before != 1 {
		return nil, 0, errors.New("the last file must be that of the wanted step")
	}
	norm := (gamma + 1) * (gamma + 1) / (2*gamma + 1)
	return w, math.Sqrt(max(norm-square, 0) / norm), nil
}
