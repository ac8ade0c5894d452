package merge

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"sync"

	"onlinerna/rna/kernel"
	"onlinerna/train/extrapolate"
)

// slerp moves from the first of two files to the second along the great circle, tensor by tensor, as mergekit does;
// nearly parallel tensors are interpolated linearly.
func (p *Plan) slerp(s *extrapolate.Series, opt Options) error {
	if len(s.Files()) != 2 {
		return fmt.Errorf("slerp goes between two files, not %d", len(s.Files()))
	}
	if math.IsNaN(opt.T) || math.IsInf(opt.T, 0) {
		return fmt.Errorf("t %v: must be finite", opt.T)
	}
	p.Passes = 2
	p.Rules = func(ctx context.Context, t extrapolate.Tensor) (extrapolate.Rule, error) {
		sums := make([][3]float64, s.Parts(t)) // ‖a‖², ‖b‖², a·b
		err := s.Scan(ctx, t, func(_, part, _ int, in [][]float64) {
			v := &sums[part]
			for i, a := range in[0] {
				b := in[1][i]
				v[0], v[1], v[2] = v[0]+float64(a*a), v[1]+float64(b*b), v[2]+float64(a*b)
			}
		})
		if err != nil {
			return extrapolate.Rule{}, err
		}
		var sum [3]float64
		for _, v := range sums {
			for k := range sum {
				sum[k] += v[k]
			}
		}
		a, b := slerpWeights(opt.T, math.Sqrt(sum[0]), math.Sqrt(sum[1]), sum[2])
		return extrapolate.Rule{Weights: []float64{a, b}}, nil
	}
	return nil
}

// slerpWeights are the weights for two vectors of the given norms and inner product. The bounds are mergekit's.
func slerpWeights(t, a, b, dot float64) (wa, wb float64) {
	const parallel, zero = 0.9995, 1e-8
	if a <= zero {
		a = 1
	}
	if b <= zero {
		b = 1
	}
	dot = min(max(dot/a/b, -1), 1)
	if math.Abs(dot) > parallel {
		return 1 - t, t
	}
	theta := math.Acos(dot)
	return math.Sin((1-t)*theta) / math.Sin(theta), math.Sin(t*theta) / math.Sin(theta)
}

// based plans the methods that add differences from the first file to it.
func (p *Plan) based(s *extrapolate.Series, opt Options) error {
	models := len(s.Files()) - 1
	if models < 1 {
		return fmt.Errorf("%s takes a base and one model or more", opt.By)
	}
	if opt.Weights == nil {
		for range models {
			opt.Weights = append(opt.Weights, 1)
		}
	}
	if len(opt.Weights) != models {
		return fmt.Errorf("%d weights for %d models beside the base", len(opt.Weights), models)
	}
	if math.IsNaN(opt.Scale) || math.IsInf(opt.Scale, 0) {
		return fmt.Errorf("scale %v: must be finite", opt.Scale)
	}
	if opt.Sign != "sum" && opt.Sign != "none" {
		return fmt.Errorf("unknown sign %q: sum or none", opt.Sign)
	}
	if opt.By == ByTask && opt.Sign == "none" {
		return p.task(opt)
	}
	if opt.By != ByTask && !(opt.Density > 0 && opt.Density <= 1) {
		return fmt.Errorf("density %v: above 0, up to 1", opt.Density)
	}
	if opt.By == ByBreadcrumbs && !(opt.Gamma >= 0 && opt.Gamma < 1) {
		return fmt.Errorf("gamma %v: from 0 up to 1, 1 excluded", opt.Gamma)
	}
	switch opt.Rescale {
	case "none", "density", "l1":
	default:
		return fmt.Errorf("unknown rescaling %q: none, density or l1", opt.Rescale)
	}
	if opt.By == ByTask {
		opt.Density = 1
	}
	p.Passes = 1
	if opt.Density < 1 {
		if opt.By != ByDARE {
			p.Passes += 2
		}
		if opt.Rescale == "l1" {
			p.Passes++
		}
	}
	p.Rules = func(ctx context.Context, t extrapolate.Tensor) (extrapolate.Rule, error) {
		m, err := newMask(ctx, s, t, opt)
		if err != nil {
			return extrapolate.Rule{}, err
		}
		return extrapolate.Rule{Each: m.combine}, nil
	}
	return nil
}

// task is the linear sum of weighted differences.
func (p *Plan) task(opt Options) error {
	sum := 0.0
	for _, w := range opt.Weights {
		sum += w
	}
	scale := opt.Scale
	if opt.Normalize && math.Abs(sum) >= 1e-8 {
		scale /= sum
	}
	p.Weights = []float64{1}
	for _, w := range opt.Weights {
		p.Weights = append(p.Weights, scale*w)
		p.Weights[0] -= scale * w
	}
	return nil
}

// mask selects the kept elements of one tensor's differences.
type mask struct {
	Options
	ranges  []keyRange // of each model, by magnitude; nil: all
	seeds   []uint64   // of each model, for dare
	rescale []float64
	most    uint64    // random numbers of 53 bits below it keep an element
	rows    sync.Pool // of *[][]float64, the kept differences of a run by model
}

// newMask finds the bounds of a tensor's kept elements.
func newMask(ctx context.Context, s *extrapolate.Series, t extrapolate.Tensor, opt Options) (*mask, error) {
	m := &mask{Options: opt, rescale: make([]float64, len(opt.Weights)), most: uint64(math.Ceil(opt.Density * 0x1p53))}
	m.rows.New = func() any {
		rows := make([][]float64, len(opt.Weights))
		for k := range rows {
			rows[k] = make([]float64, 0, kernel.Run)
		}
		return &rows
	}
	for i := range m.rescale {
		m.rescale[i] = 1
	}
	if opt.Density >= 1 {
		return m, nil
	}
	if opt.By == ByDARE {
		for i := range opt.Weights {
			m.seeds = append(m.seeds, seedOf(opt.Seed, t.Name, i))
		}
	} else {
		var err error
		first, count := kept(opt, t.Len())
		if m.ranges, err = selected(ctx, s, t, first, count); err != nil {
			return nil, err
		}
	}
	switch opt.Rescale {
	case "density":
		for i := range m.rescale {
			m.rescale[i] = 1 / opt.Density
		}
	case "l1":
		if err := m.equalise(ctx, s, t); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// kept is the range of kept ranks among n elements sorted by magnitude, the smallest first, computed as in mergekit.
func kept(opt Options, n int) (first, count int) {
	count = int(opt.Density * float64(n))
	if opt.By == ByTIES {
		count = max(count, min(n, 1))
		return n - count, count
	}
	return max(0, n-count-int(opt.Gamma*float64(n))), count
}

// seedOf seeds the random numbers for a model's tensor.
func seedOf(seed uint64, name string, model int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return mix(mix(seed^h.Sum64()) + uint64(model))
}

// mix is the output function of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// take sets row to the elements of a model's difference from at on, 0 for those that are not kept.
func (m *mask) take(row, base, x []float64, model, at int) {
	base, x = base[:len(row)], x[:len(row)]
	switch {
	case m.seeds != nil:
		seed := m.seeds[model] + uint64(at)
		for i := range row {
			row[i] = 0
			if mix(seed+uint64(i))>>11 < m.most {
				row[i] = x[i] - base[i]
			}
		}
	case m.ranges != nil:
		r := m.ranges[model]
		for i := range row {
			d := x[i] - base[i]
			k := key(d)
			if k <= r.lo || k >= r.hi {
				if !r.has(k, at+i) {
					d = 0
				}
			}
			row[i] = d
		}
	default:
		for i := range row {
			row[i] = x[i] - base[i]
		}
	}
}

// equalise sets the factors that restore the sum of absolute values of all differences.
func (m *mask) equalise(ctx context.Context, s *extrapolate.Series, t extrapolate.Tensor) error {
	models := len(m.Weights)
	sums := make([]float64, 2*models*s.Parts(t)) // of all and of the kept elements, by part
	err := s.Scan(ctx, t, func(_, part, at int, in [][]float64) {
		own := sums[2*models*part:]
		pooled := m.rows.Get().(*[][]float64)
		defer m.rows.Put(pooled)
		rows := *pooled
		for k := range models {
			row := rows[k][:len(in[0])]
			m.take(row, in[0], in[k+1], k, at)
			for i, d := range row {
				own[2*k] += math.Abs(in[k+1][i] - in[0][i])
				own[2*k+1] += math.Abs(d)
			}
		}
	})
	if err != nil {
		return err
	}
	for k := range models {
		all, some := 0.0, 0.0
		for at := 2 * k; at < len(sums); at += 2 * models {
			all, some = all+sums[at], some+sums[at+1]
		}
		if least := 1e-7; all >= least && some >= least { // mergekit's bound
			m.rescale[k] = all / some
		}
	}
	return nil
}

// combine adds the kept differences to the base.
func (m *mask) combine(out []float64, in [][]float64, at int) {
	pooled := m.rows.Get().(*[][]float64)
	defer m.rows.Put(pooled)
	base, rows := in[0], *pooled
	clear(out)
	divisor := 0.0
	for k, w := range m.Weights {
		row := rows[k][:len(out)]
		m.take(row, base, in[k+1], k, at)
		for i, d := range row {
			row[i] = float64(d * m.rescale[k] * w)
			out[i] += row[i]
		}
		divisor += w
	}
	if math.Abs(divisor) < 1e-8 || !m.Normalize {
		divisor = 1
	}
	if m.Sign == "sum" { // only differences with the sign of the sum
		for i, sum := range out {
			positive, part := sum >= 0, 0.0
			sum = 0
			for k, w := range m.Weights {
				if v := rows[k][:len(out)][i]; v != 0 && (v > 0) == positive {
					sum, part = sum+v, part+w
				}
			}
			if m.Normalize && part != 0 {
				sum /= part
			}
			out[i] = base[i] + float64(sum*m.Scale)
		}
		return
	}
	for i, sum := range out {
		out[i] = base[i] + float64(sum/divisor*m.Scale)
	}
}
