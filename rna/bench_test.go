package rna

import (
	"slices"
	"testing"
	"time"

	"onlinerna/internal/parallel"
	"onlinerna/internal/simd/convert"
)

// BenchmarkMemory compares vector operations with a plain read of the same bytes by as many goroutines. The metric
// ×read is the median ratio of alternating timings. The vectors are ten residuals of ResNet-50 in a chain.
// Combinations and stores also count the bytes they write.
//
//	go test ./rna -run '^$' -bench Memory -benchtime 20x
func BenchmarkMemory(b *testing.B) {
	const n = 10
	dim := 25_557_032
	if testing.Short() {
		dim /= 10
	}
	for _, space := range []struct {
		name string
		make func(b *testing.B) (Space, error)
	}{
		{"host32", func(b *testing.B) (Space, error) { return NewHost32(dim, 0) }},
		{"host64", func(b *testing.B) (Space, error) { return NewHost64(dim, 0) }},
		{"file32", func(b *testing.B) (Space, error) { return NewFile32(b.TempDir(), dim, 0) }},
		{"file64", func(b *testing.B) (Space, error) { return NewFile64(b.TempDir(), dim, 0) }},
	} {
		b.Run(space.name, func(b *testing.B) {
			s, err := space.make(b)
			if err != nil {
				b.Fatal(err)
			}
			w, err := NewWindow(s, n)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { w.Close() })
			src := make(Slice32, dim)
			var src64 Slice64
			for k := range n + 1 {
				for i := range src {
					src[i] = float32((i+k)%(7+k)) - 3
				}
				if err := w.Push(src); err != nil {
					b.Fatal(err)
				}
			}
			var from Source = src
			var to Sink = make(Slice32, dim)
			if s.Bits() == 64 {
				src64 = make(Slice64, dim)
				from, to = src64, make(Slice64, dim)
			}
			var rs []Residual
			for _, c := range w.columns {
				rs = append(rs, c.residual())
			}
			c := make([]float64, n)
			for i := range c {
				c[i] = 1. / n
			}
			row := make([]float64, n)
			spare, err := s.New()
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { spare.Close() })
			vector := dim * s.Bits() / 8
			for _, op := range []struct {
				name          string
				read, written int // vectors
				run           func() error
			}{
				{"gram", n + 1, 0, func() error { _, err := s.(gramSpace).gramMatrix(rs); return err }},
				{"row", n + 1, 0, func() error { return s.GramRow(row, rs[n-1], rs) }},
				{"combine", n + 1, 1, func() error { return w.Combine(to, c, 0.5) }},
				{"store", 1, 1, func() error { _, err := s.Store(spare, from); return err }},
				{"check", 1, 0, func() error { _, err := s.Store(nil, from); return err }},
			} {
				b.Run(op.name, func(b *testing.B) {
					size := vector * (op.read + op.written)
					best := readers(size, b)
					var ratios []float64
					b.SetBytes(int64(size))
					b.ResetTimer()
					for range b.N {
						b.StopTimer()
						read := best()
						b.StartTimer()
						start := time.Now()
						if err := op.run(); err != nil {
							b.Fatal(err)
						}
						ratios = append(ratios, time.Since(start).Seconds()/read.Seconds())
					}
					slices.Sort(ratios)
					b.ReportMetric(ratios[len(ratios)/2], "×read")
				})
			}
		})
	}
}

// readers returns a function that reads the given number of bytes, a separate part per goroutine, and returns the
// time taken.
func readers(size int, b *testing.B) func() time.Duration {
	memory := make([]float32, size/4)
	for i := range memory {
		memory[i] = 1
	}
	bytes := bytesOf(memory)
	workers := parallel.Workers(0)
	part := len(bytes) / workers / 64 * 64
	return func() time.Duration {
		start := time.Now()
		parallel.For(workers, workers, func(_, i int) {
			if m, _ := convert.Largest(nil, bytes[i*part:(i+1)*part], convert.Float32, false); m != 1 {
				b.Errorf("largest is %v", m)
			}
		})
		return time.Since(start)
	}
}
