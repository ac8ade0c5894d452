package merge

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"onlinerna/train/extrapolate"
)

// Stored is a power EMA, x ← x + (γ+1)/(t+γ)·(w − x) after step t = 1, 2, …, of Step steps.
type Stored struct {
	Gamma float64
	Step  int
}

// StoredOf reads the rules of the power EMAs that rna train keeps, from the metadata of their files.
func StoredOf(files []*extrapolate.Checkpoint) ([]Stored, error) {
	list := make([]Stored, len(files))
	for i, c := range files {
		gamma, err := strconv.ParseFloat(c.Metadata["ema_gamma"], 64)
		step, wrong := strconv.Atoi(c.Metadata["ema_step"])
		if err != nil || wrong != nil || !(gamma > 0) || step < 1 {
			return nil, fmt.Errorf("%s is no power EMA that rna train --ema 5,12 --keep-every 1 kept", c.Path)
		}
		list[i] = Stored{gamma, step}
	}
	return list, nil
}

// A Profile is an average to compute from stored power EMAs: another power EMA, or the average that a decay of the
// learning rate over the last Epochs stands for, as [WSM].
type Profile struct {
	Gamma    float64
	Schedule string // for a decay
	Epochs   float64
}

// ParseProfile reads the profile of a decay, as linear:3.
func ParseProfile(text string) (p Profile, err error) {
	schedule, epochs, _ := strings.Cut(text, ":")
	if _, err := WSM(1, schedule); err != nil {
		return p, err
	}
	p.Schedule = schedule
	if p.Epochs, err = strconv.ParseFloat(epochs, 64); err != nil || !(p.Epochs > 0) || math.IsInf(p.Epochs, 0) {
		return p, fmt.Errorf("decay %q: want a schedule and its epochs, as linear:3", text)
	}
	return p, nil
}

func (p Profile) String() string {
	if p.Schedule != "" {
		return fmt.Sprintf("WSM %s of %g epochs", p.Schedule, p.Epochs)
	}
	return fmt.Sprintf("power EMA, γ = %g", p.Gamma)
}

// Weights returns the weights of the iterates after steps 1, 2, … of a number of epochs.
func (p Profile) Weights(steps int, epochs float64) ([]float64, error) {
	if p.Schedule == "" {
		return powerWeights(p.Gamma, steps), nil
	}
	n := int(math.Round(p.Epochs / epochs * float64(steps)))
	if n < 1 || n > steps {
		return nil, fmt.Errorf("a decay over %g epochs: there are %g", p.Epochs, epochs)
	}
	decay, err := WSM(n, p.Schedule)
	return append(make([]float64, steps-n), decay...), err
}

// Rebuild returns the weights of kept power EMAs that make a profile at the end of an epoch, that of the last of them,
// and the distance that [Fit] returns.
func Rebuild(files []*extrapolate.Checkpoint, p Profile, epoch int) (w []float64, residual float64, err error) {
	stored, err := StoredOf(files)
	if err != nil {
		return nil, 0, err
	}
	want, err := p.Weights(stored[len(stored)-1].Step, float64(epoch))
	if err != nil {
		return nil, 0, err
	}
	return Fit(stored, want)
}

// powerWeights returns the weights that a power EMA gives the iterates after steps 1, 2, …: (γ+1)/(s+γ) times the
// product of 1 − (γ+1)/(u+γ) over the later steps u.
func powerWeights(gamma float64, steps int) []float64 {
	w := make([]float64, steps)
	w[steps-1] = (gamma + 1) / (float64(steps) + gamma)
	for s := steps - 1; s > 0; s-- {
		w[s-1] = w[s] * float64(s) / (float64(s) + gamma)
	}
	return w
}

// ridge keeps the weights of nearly dependent EMAs small, and so the rounding of their numbers.
const ridge = 1e-10

// Fit returns the weights, with the sum 1, of stored power EMAs whose sum is closest to an average with the wanted
// weights of the iterates after steps 1, 2, …, and the distance of its weights from them, relative to their norm. It
// is the post-hoc EMA of Karras et al. 2024, arXiv 2312.02696, for any average and the exact weights of steps.
func Fit(stored []Stored, want []float64) (w []float64, residual float64, err error) {
	n := len(stored)
	if n == 0 {
		return nil, 0, errors.New("no stored EMAs")
	}
	a, b, scale := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil), make([]float64, n)
	for i, p := range stored {
		if p.Step > len(want) || p.Step < 1 || !(p.Gamma > 0) {
			return nil, 0, fmt.Errorf("an EMA with γ %g of step %d for an average of %d steps", p.Gamma, p.Step, len(want))
		}
		for j := range i {
			if stored[j] == p {
				return nil, 0, fmt.Errorf("two files are the EMA with γ %g of step %d", p.Gamma, p.Step)
			}
		}
	}
	inner := newProducts(want)
	for i, p := range stored {
		scale[i] = 1 / math.Sqrt(inner.of(p, p))
		for j := range i + 1 {
			a.SetSym(i, j, inner.of(p, stored[j])*scale[i]*scale[j])
		}
		a.SetSym(i, i, 1+ridge)
		b.SetVec(i, inner.wanted(p)*scale[i])
	}
	var f mat.Cholesky
	if !f.Factorize(a) {
		return nil, 0, errors.New("the stored EMAs depend on each other")
	}
	// The sum of the weights is 1: x = A⁻¹b + ν A⁻¹s.
	var x, y mat.VecDense
	s := mat.NewVecDense(n, scale)
	if err := errors.Join(f.SolveVecTo(&x, b), f.SolveVecTo(&y, s)); err != nil {
		return nil, 0, err
	}
	x.AddScaledVec(&x, (1-mat.Dot(s, &x))/mat.Dot(s, &y), &y)
	w = make([]float64, n)
	rest := append([]float64(nil), want...)
	norm := 0.0
	for _, v := range want {
		norm += v * v
	}
	for i, p := range stored {
		w[i] = x.AtVec(i) * scale[i]
		for s, v := range powerWeights(p.Gamma, p.Step) {
			rest[s] -= w[i] * v
		}
	}
	for _, v := range rest {
		residual += v * v
	}
	return w, math.Sqrt(residual / norm), nil
}

// products computes inner products of weights of steps in one pass for each pair of exponents.
type products struct {
	want  []float64
	pairs map[[2]float64][]float64 // by γ and δ: the products of EMAs that end at the same step
	with  map[float64][]float64    // by γ: those with the wanted weights
}

func newProducts(want []float64) *products {
	return &products{want, map[[2]float64][]float64{}, map[float64][]float64{}}
}

// of returns the inner product of two EMAs' weights. That of the later one holds the earlier one's steps with a factor
// of the product of 1 − (δ+1)/(u+δ) over the steps u between.
func (n *products) of(p, q Stored) float64 {
	if p.Step > q.Step {
		p, q = q, p
	}
	key := [2]float64{p.Gamma, q.Gamma}
	c, ok := n.pairs[key]
	if !ok {
		c = make([]float64, len(n.want))
		before := 0.0
		for t := range c {
			a, b := (p.Gamma+1)/(float64(t+1)+p.Gamma), (q.Gamma+1)/(float64(t+1)+q.Gamma)
			before = before*(1-a)*(1-b) + a*b
			c[t] = before
		}
		n.pairs[key] = c
	}
	at, to := float64(p.Step), float64(q.Step)
	return c[p.Step-1] * math.Exp(logGamma(to)-logGamma(at)+logGamma(at+q.Gamma+1)-logGamma(to+q.Gamma+1))
}

// wanted returns the inner product of an EMA's weights with the wanted ones.
func (n *products) wanted(p Stored) float64 {
	c, ok := n.with[p.Gamma]
	if !ok {
		c = make([]float64, len(n.want))
		before := 0.0
		for t, v := range n.want {
			a := (p.Gamma + 1) / (float64(t+1) + p.Gamma)
			before = before*(1-a) + a*v
			c[t] = before
		}
		n.with[p.Gamma] = c
	}
	return c[p.Step-1]
}

func logGamma(x float64) float64 { v, _ := math.Lgamma(x); return v }
