package extrapolate

import (
	"fmt"
	"math"

	"onlinerna/internal/simd/convert"
	"onlinerna/rna/kernel"
	"onlinerna/train/safetensors"
)

// LargeNorm is the 2-norm of weights or coefficients above which [Far] warns: the noise of single files comes through
// this much amplified, where an average damps it.
const LargeNorm = 10

// Distances of a combination, over all weights.
type Distances struct {
	FromFirst, FromLast float64 // from the first and the last file
	Diameter            float64 // the largest distance between two files
}

// Far describes a point of weights with the given 2-norm that is far from its files: farther from the last one, or from
// the first one as their base, than the files are from each other. tame is the advice. Nil distances are unknown.
func Far(norm float64, d *Distances, based bool, tame string) (warnings []string) {
	if norm > LargeNorm {
		warnings = append(warnings, fmt.Sprintf("‖c‖₂ is %.3g: noise of single files is amplified as much: %s", norm, tame))
	}
	if d == nil {
		return warnings
	}
	from, name := d.FromLast, "last file"
	if based {
		from, name = d.FromFirst, "base"
	}
	if from > d.Diameter*(1+1e-9) {
		warnings = append(warnings, fmt.Sprintf("the point is %.3g from the %s, the files are at most %.3g apart: %s", from,
			name, d.Diameter, tame))
	}
	return warnings
}

// Norm2 is the 2-norm of weights.
func Norm2(w []float64) float64 {
	sum := 0.0
	for _, v := range w {
		sum += v * v
	}
	return math.Sqrt(sum)
}

// Meter measures the distances of the points that [Series.Combine] computes, over all calls. The zero value is ready.
type Meter struct {
	first, last float64   // squared distances
	gram        []float64 // of the steps from each file to the next
	files       int
}

// Sums returns the sums measured so far for a number of files, which [Meter.Add] adds to another meter's.
func (m *Meter) Sums(files int) []float64 {
	sums := make([]float64, 2+(files-1)*(files-1))
	sums[0], sums[1] = m.first, m.last
	copy(sums[2:], m.gram)
	return sums
}

// Add adds a meter's sums.
func (m *Meter) Add(files int, sums []float64) {
	if m.files = files; m.gram == nil {
		m.gram = make([]float64, (files-1)*(files-1))
	}
	m.first, m.last = m.first+sums[0], m.last+sums[1]
	for i, v := range sums[2:] {
		m.gram[i] += v
	}
}

// Distances returns the result; nil if nothing was measured, or if it is not finite.
func (m *Meter) Distances() *Distances {
	d := &Distances{math.Sqrt(m.first), math.Sqrt(m.last), 0}
	d.Diameter = diameter(m.files-1, func(i, j int) float64 { return m.gram[i*(m.files-1)+j] })
	if sum := d.FromFirst + d.FromLast + d.Diameter; m.files == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil
	}
	return d
}

// diameter is the largest distance between n+1 files, from the inner products of the n steps between them.
func diameter(n int, gram func(i, j int) float64) float64 {
	most := 0.0
	for i := range n { // the square of the sum of steps i to j
		square := 0.0
		for j := i; j < n; j++ {
			square += gram(j, j)
			for k := i; k < j; k++ {
				square += 2 * gram(j, k)
			}
			most = max(most, square)
		}
	}
	return math.Sqrt(most)
}

// measurer is a worker's part of a Meter.
type measurer struct {
	products map[convert.Format]*kernel.Products
	sums     []float64 // of one span, as Meter.Sums
	triangle []float64
}

// begin clears the sums for a span of the files, whose views are loaded, and adds the products of their steps.
func (m *measurer) begin(t safetensors.DType, views [][]byte, n int) {
	steps := len(views) - 1
	if m.sums == nil {
		m.products = map[convert.Format]*kernel.Products{}
		m.sums, m.triangle = make([]float64, 2+steps*steps), make([]float64, steps*(steps+1)/2)
	}
	clear(m.sums)
	if steps == 0 {
		return
	}
	f := t.Format()
	if m.products[f] == nil {
		var pairs []kernel.Pair
		for i := range steps {
			pairs = append(pairs, kernel.Pair{X: i + 1, Y: i})
		}
		m.products[f] = kernel.NewProducts(f, len(views), pairs, true)
	}
	for at := 0; at < n; at += kernel.Block {
		m.products[f].Block(m.triangle, views, at, min(kernel.Block, n-at))
		k := 0
		for i := range steps {
			for j := range i + 1 {
				m.sums[2+i*steps+j] += m.triangle[k]
				k++
			}
		}
	}
}

// add adds the distances of a run of the point from the first and the last file.
func (m *measurer) add(point []float64, in [][]float64) {
	first, last := in[0], in[len(in)-1]
	for i, v := range point {
		a, b := v-first[i], v-last[i]
		m.sums[0] += float64(a * a)
		m.sums[1] += float64(b * b)
	}
}
