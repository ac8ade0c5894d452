package cpu

import (
	"testing"
	"time"

	"onlinerna/nn/op"
)

// BenchmarkGradBehindReLU measures the input gradients of ResNet-50's 1×1 convolutions with the ops behind them, as
// its blocks have them, beside the gradients alone.
func BenchmarkGradBehindReLU(b *testing.B) {
	for _, c := range []struct{ channels, size, others, stride int }{
		{256, 56, 64, 1}, {256, 56, 128, 1}, {512, 28, 128, 1}, {512, 28, 256, 1}, {1024, 14, 256, 1}, {1024, 14, 512, 1},
		{2048, 7, 512, 1}, {64, 56, 256, 1}, {128, 28, 512, 1}, {256, 14, 1024, 1}, {512, 7, 2048, 1},
	} {
		d := open(b, 2)
		var ms [4]float64
		work := 2 * float64(16*c.channels*c.size*c.size*c.others)
		for i, added := range []bool{false, true, false} {
			p := &builder{tb: b}
			shape := []int{16, c.channels, c.size, c.size}
			x, y, stats := p.data(shape...), p.data(shape...), p.weight(2, c.channels)
			g := p.apply(op.Conv2DGradInput{Conv2D: op.Conv2D{}, Input: p.Values[x].Type.Shape},
				p.weight(c.others, c.channels, 1, 1), p.data(16, c.others, c.size, c.size))
			if i > 0 {
				if added {
					g = p.apply(op.Add{}, p.data(shape...), g)
				}
				g = p.apply(op.ReLUGrad{}, y, g)
				p.apply(op.BatchNormGradSums{Eps: 1e-5}, x, stats, g)
				p.Keep = append(p.Keep, g)
			}
			k := bind(b, d, &p.Program, p.weights, p.grouped(d))
			k.run(b)
			last := bound{kernels: k.kernels[len(k.kernels)-1:]}
			best := 1e9
			for range max(5, b.N) {
				start := time.Now()
				last.run(b)
				best = min(best, 1e3*time.Since(start).Seconds())
			}
			ms[i] = best
			k.free()
		}
		b.Logf("%+v: alone %.2f ms, %.0f GFLOP/s; with sums %.2f, %.0f; with an addition %.2f, %.0f", c, ms[0], work/ms[0]/1e6, ms[2], work/ms[2]/1e6, ms[1], work/ms[1]/1e6)
		d.Close()
	}
}
