package sweep

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"onlinerna/train/option"
)

// tpe proposes candidates by the tree-structured Parzen estimator (Bergstra et al., 2011), with the kernels and the
// constants of Optuna's TPESampler: the tenth of candidates that did best so far, 25 at most, are a density of good
// points, the others one of bad points. Of 24 draws from the first, the one with the highest ratio of the two is next.
type tpe struct {
	space []Dimension
	seed  uint64
	drawn [][]option.Setting // different points, drawn at random: the first are taken as they are
}

const (
	tpeStartup = 10 // candidates drawn at random
	tpeDraws   = 24
	tpeShare   = .1
	tpeGood    = 25 // most points of the good density, and points without loss of weight
)

// observation is a candidate that was proposed, and perhaps has arrived at a rung.
type observation struct {
	settings []option.Setting
	arrived  bool
	rung     int
	value    Value
}

// propose returns the next candidate. It differs from all earlier ones. Of these, those on their way are bad points,
// which keeps workers from the same place.
func (t *tpe) propose(earlier []observation) []option.Setting {
	taken := map[string]bool{}
	var order []int
	for i, o := range earlier {
		if taken[pointKey(o.settings)] = true; o.arrived {
			order = append(order, i)
		}
	}
	if len(order) < tpeStartup {
		return t.fresh(taken)
	}
	slices.SortStableFunc(order, func(i, j int) int { // those that went farther are better
		a, b := earlier[i], earlier[j]
		return cmp.Or(cmp.Compare(b.rung, a.rung), cmp.Compare(a.value.Main, b.value.Main),
			cmp.Compare(a.value.Tie, b.value.Tie))
	})
	var good, bad []int
	for i := range earlier {
		if slices.Contains(order[:min(int(math.Ceil(tpeShare*float64(len(order)))), tpeGood)], i) {
			good = append(good, i)
		} else {
			bad = append(bad, i)
		}
	}
	r := rand.New(rand.NewPCG(t.seed, 0x79e<<32|uint64(len(earlier))))
	at := func(list []int) (points [][]float64) {
		for _, i := range list {
			points = append(points, make([]float64, len(t.space)))
			for k := range t.space {
				points[len(points)-1][k] = t.space[k].number(earlier[i].settings[k].Text)
			}
		}
		return points
	}
	l, g := mix(t.space, at(good)), mix(t.space, at(bad))
	for range tpeDraws {
		var best []float64
		most := math.Inf(-1)
		for range tpeDraws {
			x := l.draw(r)
			if ratio := l.log(x) - g.log(x); ratio > most || best == nil {
				most, best = ratio, x
			}
		}
		var next []option.Setting
		for k := range t.space {
			next = append(next, option.Setting{Name: t.space[k].Name, Text: t.space[k].textOf(best[k])})
		}
		if !taken[pointKey(next)] {
			return next
		}
	}
	return t.fresh(taken)
}

// fresh is the first of the drawn points that is not taken.
func (t *tpe) fresh(taken map[string]bool) []option.Setting {
	for _, p := range t.drawn {
		if !taken[pointKey(p)] {
			return p
		}
	}
	return nil // not reached: as many are drawn as are proposed
}

func pointKey(p []option.Setting) (key string) {
	for _, s := range p {
		key += s.Text + "\x00"
	}
	return key
}

// number is a value's coordinate: its index in a list, its logarithm in a logarithmic range.
func (d *Dimension) number(text string) float64 {
	if d.Kind == "" {
		return float64(slices.Index(d.Values, text))
	}
	x, _ := strconv.ParseFloat(text, 64) // written by text
	if d.Kind == "log" {
		return math.Log(x)
	}
	return x
}

// textOf is the value at a coordinate.
func (d *Dimension) textOf(x float64) string {
	switch d.Kind {
	case "":
		return d.Values[int(x)]
	case "log":
		return d.text(min(max(math.Exp(x), d.Lo), d.Hi))
	}
	return d.text(x)
}

// A mixture is a density of points: a kernel about each of some points, and one over the whole space, the last.
type mixture struct {
	weights []float64
	along   []*kernels // by dimension; a kernel is their product
}

// mix estimates the density of points, in the order in which they were found.
func mix(space []Dimension, points [][]float64) *mixture {
	m := &mixture{weights: weights(len(points))}
	for k := range space {
		x := make([]float64, len(points))
		for i, p := range points {
			x[i] = p[k]
		}
		m.along = append(m.along, space[k].kernels(x))
	}
	return m
}

// draw draws a point.
func (m *mixture) draw(r *rand.Rand) []float64 {
	i := pick(m.weights, r)
	x := make([]float64, len(m.along))
	for k, d := range m.along {
		x[k] = d.draw(i, r)
	}
	return x
}

// log is the logarithm of the density at a point.
func (m *mixture) log(x []float64) float64 {
	sum := 0.
	for i, w := range m.weights {
		for k, d := range m.along {
			w *= d.at(i, x[k])
		}
		sum += w
	}
	return math.Log(sum)
}

// pick draws an index.
func pick(weights []float64, r *rand.Rand) int {
	u := r.Float64()
	for i, w := range weights {
		if u -= w; u < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// kernels are those of a mixture along a dimension.
type kernels struct {
	// Of a range: truncated normal distributions. Whole numbers have the probability of the unit about them.
	mu, sigma []float64
	lo, hi    float64
	whole     bool
	// Of a list: the probability of each value by each kernel.
	values [][]float64
}

func (d *Dimension) kernels(points []float64) *kernels {
	n, p := len(points), &kernels{}
	if values := len(d.Values); d.Kind == "" {
		prior := 1 / float64(n+1) // a little for other values
		for i := range n + 1 {
			row := make([]float64, values)
			for v := range row {
				row[v] = prior / (1 + float64(values)*prior)
				if i == n {
					row[v] = 1 / float64(values)
				}
			}
			if i < n {
				row[int(points[i])] += 1 / (1 + float64(values)*prior)
			}
			p.values = append(p.values, row)
		}
		return p
	}
	p.lo, p.hi = d.Lo, d.Hi
	switch d.Kind {
	case "log":
		p.lo, p.hi = math.Log(d.Lo), math.Log(d.Hi)
	case "int":
		p.lo, p.hi, p.whole = d.Lo-.5, d.Hi+.5, true
	}
	width := p.hi - p.lo
	p.mu = append(slices.Clone(points), (p.lo+p.hi)/2)
	// A kernel is as wide as the distance to the farther of its neighbours.
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(points[i], points[j]) })
	p.sigma = make([]float64, n+1)
	for k, i := range order {
		left, right := p.lo, p.hi
		if k > 0 {
			left = points[order[k-1]]
		}
		if k < n-1 {
			right = points[order[k+1]]
		}
		switch {
		case n > 1 && k == 0:
			p.sigma[i] = right - points[i]
		case n > 1 && k == n-1:
			p.sigma[i] = points[i] - left
		default:
			p.sigma[i] = max(points[i]-left, right-points[i])
		}
		p.sigma[i] = min(max(p.sigma[i], width/min(100, float64(n+2))), width)
	}
	p.sigma[n] = width
	return p
}

// weights are those of n points and of the prior: old points of many count less.
func weights(n int) []float64 {
	w := make([]float64, n+1)
	sum := 0.
	for i := range w {
		w[i] = 1
		if old := n - tpeGood; i < old {
			w[i] = 1 / float64(n)
			if old > 1 {
				w[i] += float64(i) / float64(old-1) * (1 - 1/float64(n))
			}
		}
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// draw draws a coordinate from a kernel.
func (p *kernels) draw(i int, r *rand.Rand) float64 {
	if p.values != nil {
		return float64(pick(p.values[i], r))
	}
	a, b := normal((p.lo-p.mu[i])/p.sigma[i]), normal((p.hi-p.mu[i])/p.sigma[i])
	x := p.mu[i] + p.sigma[i]*math.Sqrt2*math.Erfinv(2*(a+(b-a)*r.Float64())-1)
	x = min(max(x, p.lo), p.hi)
	if p.whole {
		x = min(max(math.Round(x), p.lo+.5), p.hi-.5)
	}
	return x
}

// at is the density of a kernel at a coordinate, or the probability of a whole number or a listed value.
func (p *kernels) at(i int, x float64) float64 {
	if p.values != nil {
		return p.values[i][int(x)]
	}
	mu, sigma := p.mu[i], p.sigma[i]
	all := normal((p.hi-mu)/sigma) - normal((p.lo-mu)/sigma)
	if p.whole {
		return (normal((x+.5-mu)/sigma) - normal((x-.5-mu)/sigma)) / all
	}
	z := (x - mu) / sigma
	return math.Exp(-z*z/2) / (sigma * math.Sqrt(2*math.Pi) * all)
}

// normal is the standard normal distribution function.
func normal(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
