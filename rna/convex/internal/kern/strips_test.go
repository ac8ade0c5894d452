package kern

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestStrips(t *testing.T) {
	each(t, func(t *testing.T, s *Set) {
		rng := rand.New(rand.NewPCG(5, 6))
		const width, rows = 30, 9 // and a column that fills up
		var columns []uint16
		var values, ones []float64
		var counts []uint32
		for i := range rows { // the first row is empty
			from := len(columns)
			for j := range width {
				if rng.IntN(rows) < i {
					columns, values, ones = append(columns, uint16(Quad*j)), append(values, rng.NormFloat64()),
						append(ones, 1)
				}
			}
			for (len(columns)-from)%4 != 0 {
				columns, values, ones = append(columns, Quad*width), append(values, 0), append(ones, 0)
			}
			counts = append(counts, uint32((len(columns)-from)/4))
		}
		w, before, a := random(rng, Quad*(width+1)), random(rng, Quad*rows), random(rng, Quad*rows)
		clear(w[Quad*width:])
		for _, of := range []struct {
			name   string
			values []float64
			dots   func(out *float64)
			add    func(dst *float64)
		}{
			{"values", values,
				func(out *float64) { s.StripDots(out, &values[0], &columns[0], &counts[0], &w[0], rows) },
				func(dst *float64) { s.StripAddRows(dst, &values[0], &columns[0], &counts[0], &a[0], rows) }},
			{"ones", ones,
				func(out *float64) { s.StripSums(out, &columns[0], &counts[0], &w[0], rows) },
				func(dst *float64) { s.StripAdds(dst, &columns[0], &counts[0], &a[0], rows) }},
		} {
			allOut, out := guarded(before)
			of.dots(&out[0])
			intact(t, of.name+", products", allOut)
			allDst, dst := guarded(w)
			of.add(&dst[0])
			intact(t, of.name+", sums", allDst)
			products, sums := slices.Clone(before), slices.Clone(w)
			at := 0
			for i, c := range counts {
				for range 4 * c {
					for k := range Quad {
						products[Quad*i+k] += of.values[at] * w[int(columns[at])+k]
						sums[int(columns[at])+k] += of.values[at] * a[Quad*i+k]
					}
					at++
				}
			}
			for i, want := range products {
				near(t, of.name+", product", out[i], want, 1e-13)
			}
			for i, want := range sums[:Quad*width] {
				near(t, of.name+", sum", dst[i], want, 1e-13)
			}
		}
	})
}
