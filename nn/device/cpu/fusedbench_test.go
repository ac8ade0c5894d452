package cpu

import (
	"fmt"
	"testing"
	"time"

	"onlinerna/nn/op"
)

// BenchmarkGradBehindReLU measures input gradients of ResNet-50's 1×1 convolutions at batch 16: alone, with the ReLU's
// gradient and the sums for BatchNorm's behind it, and with an addition before these.
func BenchmarkGradBehindReLU(b *testing.B) {
	for _, c := range []struct{ channels, size, others int }{
		{256, 56, 64}, {256, 56, 128}, {512, 28, 128}, {512, 28, 256}, {1024, 14, 256}, {1024, 14, 512}, {2048, 7, 512},
		{64, 56, 256}, {128, 28, 512}, {256, 14, 1024}, {512, 7, 2048},
	} {
		for _, behind := range []string{"alone", "sums", "addition"} {
			b.Run(fmt.Sprintf("%d to %d/%s", c.others, c.channels, behind), func(b *testing.B) {
				p := &builder{tb: b}
				image := func() int { return p.data(16, c.channels, c.size, c.size) }
				x, y, more, stats := image(), image(), image(), p.weight(2, c.channels)
				g := p.apply(op.Conv2DGradInput{Input: p.Values[x].Type.Shape}, p.weight(c.others, c.channels, 1, 1),
					p.data(16, c.others, c.size, c.size))
				if behind == "addition" {
					g = p.apply(op.Add{}, more, g)
				}
				if behind != "alone" {
					g = p.apply(op.ReLUGrad{}, y, g)
					p.apply(op.BatchNormGradSums{Eps: 1e-5}, x, stats, g)
					p.Keep = append(p.Keep, g)
				}
				d := open(b, 0)
				defer d.Close()
				groups := p.grouped(d)
				if len(groups) != 1 {
					b.Fatalf("%d groups", len(groups))
				}
				k := bind(b, d, &p.Program, p.weights, groups)
				defer k.free()
				k.run(b)
				last := bound{kernels: k.kernels[len(k.kernels)-1:]}
				start := time.Now()
				for range b.N {
					last.run(b)
				}
				flops := 2 * 16 * float64(c.channels*c.size*c.size*c.others)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(flops*float64(b.N)/time.Since(start).Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
