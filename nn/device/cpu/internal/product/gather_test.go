package product

import (
	"math/rand/v2"
	"testing"

	"onlinerna/nn/op"
)

// The two gathers are transposes of each other, and zero outside the source.
func TestGatherIsTransposeOfRows(t *testing.T) {
	for _, c := range []struct {
		channels, groups int
		window           window
	}{
		{1, 1, window{[2]int{5, 5}, [2]int{1, 1}, [2]int{2, 2}, [2]int{1, 1}, 1}},
		{3, 1, window{[2]int{7, 7}, [2]int{2, 2}, [2]int{3, 3}, [2]int{1, 1}, 1}},
		{4, 1, window{[2]int{3, 2}, [2]int{2, 1}, [2]int{0, 1}, [2]int{1, 2}, 1}},
		{6, 3, window{[2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}, [2]int{1, 1}, 3}},
		{40, 1, window{[2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}, [2]int{1, 1}, 1}},
	} {
		x := op.Shape{2, c.channels, 9, 11}
		size := func(d int) int {
			w := c.window
			return (x[2+d]+2*w.pad[d]-w.dilation[d]*(w.kernel[d]-1)-1)/w.stride[d] + 1
		}
		g := c.window.forwardGrid(x, op.Shape{2, 1, size(0), size(1)})
		r := rand.New(rand.NewPCG(5, 6))
		src := make([]float32, x.Size())
		for i := range src {
			src[i] = 1 + r.Float32()
		}
		first := c.channels - g.channels // of the last group
		const from, m = 3, 21
		depth := len(g.taps) * g.channels
		columns := make([]float32, depth*m)
		g.gather(columns, m, src, first, from, m, 0, depth, make([]int32, m), make([]float32, g.channels))

		k := 0
		chunks := g.chunks()
		for i := range chunks {
			ch := &chunks[i]
			rows := make([]float32, m*ch.ld)
			g.rows(rows, ch, src, first, from, m)
			for l := range ch.ld {
				for q := range m {
					got := rows[q*ch.ld+l]
					if l >= ch.k {
						if got != 0 {
							t.Fatalf("%v: padding is %v", c, got)
						}
						continue
					}
					if want := columns[(k+l)*m+q]; got != want {
						t.Fatalf("%v: pixel %d, row %d: %v and %v", c, from+q, k+l, got, want)
					}
					n, y, z := g.at(from + q)
					tap := g.taps[(k+l)/g.channels]
					row, col := y*g.rowStep+tap.row, z*g.colStep+tap.col
					want := float32(0)
					if row >= 0 && row < g.srcH && col >= 0 && col < g.srcW {
						want = src[((n*g.srcH+row)*g.srcW+col)*g.srcC+first+(k+l)%g.channels]
					}
					if got != want {
						t.Fatalf("%v: pixel %d, row %d: %v, want %v", c, from+q, k+l, got, want)
					}
				}
			}
			k += ch.k
		}
		if k != depth {
			t.Fatalf("%v: chunks cover %d rows of %d", c, k, depth)
		}
	}
}
