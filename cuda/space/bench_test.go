//go:build gpu && cgo

package space

import (
	"fmt"
	"testing"
	"time"

	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/rna"
)

// benchDim is the number of weights of a ResNet-50, or fewer on the stand-in, which only shows that the benchmarks run.
func benchDim() int {
	if sim.Active() {
		return 20_000
	}
	return 25_557_032
}

// bandwidth measures the memory's bandwidth in bytes a second with a copy within the GPU, counting reads and writes.
func bandwidth(b *testing.B, c *driver.Context) float64 {
	b.Helper()
	n := 16 * int64(benchDim())
	from, to := alloc(b, c, n), alloc(b, c, n)
	check(b, c.Stream().Fill(from.All(), 0))
	best := 0.0
	for range 5 {
		const copies = 10
		check(b, c.Stream().Synchronize())
		start := time.Now()
		for range copies {
			check(b, c.Stream().Copy(to.All(), from.All()))
		}
		check(b, c.Stream().Synchronize())
		best = max(best, copies*2*float64(n)/time.Since(start).Seconds())
	}
	check(b, from.Close())
	check(b, to.Close())
	return best
}

// report compares with the bandwidth: moved counts the bytes that the kernels read and write, once only the bytes of
// the vectors.
func report(b *testing.B, speed, moved, once float64) {
	seconds := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(moved/1e9, "GB-moved")
	b.ReportMetric(moved/seconds/1e9, "GB/s")
	b.ReportMetric(100*moved/seconds/speed, "%bandwidth")
	b.ReportMetric(seconds/(once/speed), "x-reading-once")
}

// The parts of an online update for a window of n residuals of a ResNet-50: a row of the Gram matrix, and the
// combination into GPU memory.
func BenchmarkSpace(b *testing.B) {
	c := open(b)
	speed := bandwidth(b, c)
	fmt.Printf("%v: copies within its memory move %.0f GB/s\n", c.Info(), speed/1e9)
	dim := float64(benchDim())
	s := openSpace(b, c, benchDim(), Options{})
	var vectors []rna.Vector
	b.Cleanup(func() {
		for _, v := range vectors {
			check(b, v.Close())
		}
	})
	src := make(rna.Slice32, benchDim())
	for i := range src {
		src[i] = float32(i%1000) / 1000
	}
	to := onDevice{b, alloc(b, c, 4*int64(benchDim()))}
	for _, n := range []int{2, 5, 10, 20, 50} {
		for len(vectors) < n+1 {
			v, err := s.New()
			check(b, err)
			_, err = s.Store(v, src)
			check(b, err)
			vectors = append(vectors, v)
		}
		var residuals []rna.Residual
		var terms []rna.Term
		for j := range n {
			residuals = append(residuals, rna.Residual{X: vectors[j+1], Y: vectors[j]})
			terms = append(terms, rna.Term{Coef: 1 / float64(n), Vector: vectors[j+1]})
		}
		row := make([]float64, n)
		b.Run(fmt.Sprintf("GramRow/N=%d", n), func(b *testing.B) {
			for range b.N {
				check(b, s.GramRow(row, residuals[n-1], residuals))
			}
			once := 4 * dim * float64(n+1)
			report(b, speed, once+2*8*dim*float64(n), once)
		})
		b.Run(fmt.Sprintf("Combine/N=%d", n), func(b *testing.B) {
			for range b.N {
				check(b, s.Combine(to, terms))
			}
			once := 4 * dim * float64(n)
			report(b, speed, once+4*dim, once)
		})
	}
}

// Copies between the host and the space.
func BenchmarkSpaceStore(b *testing.B) {
	c := open(b)
	s := openSpace(b, c, benchDim(), Options{})
	v, err := s.New()
	check(b, err)
	b.Cleanup(func() { check(b, v.Close()) })
	src := make(rna.Slice32, benchDim())
	b.SetBytes(4 * int64(benchDim()))
	for range b.N {
		_, err := s.Store(v, src)
		check(b, err)
	}
}
