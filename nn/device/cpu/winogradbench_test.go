package cpu

import (
	"fmt"
	"testing"
	"time"

	"onlinerna/internal/simd"
	"onlinerna/nn/op"
)

// BenchmarkWinograd measures convolutions of 3×3 taps by both algorithms, in turn, and reports the speed of Winograd's
// relative to the direct one.
func BenchmarkWinograd(b *testing.B) {
	for _, l := range simd.All() {
		if l == simd.Go {
			continue
		}
		for _, c := range []struct{ batch, channels, size, others int }{
			{128, 16, 32, 16}, {128, 32, 16, 32}, {128, 64, 8, 64}, // CIFAR's ResNets
			{16, 64, 56, 64}, {16, 128, 28, 128}, {16, 256, 14, 256}, {16, 512, 7, 512}, // ResNet-18 to 152
			{32, 512, 7, 512}, {64, 512, 7, 512}, {32, 256, 14, 256},
			{1, 64, 56, 64}, {1, 128, 28, 128}, {4, 128, 28, 128}, {4, 256, 14, 256}, {8, 256, 14, 256},
			{128, 3, 32, 16}, {128, 8, 32, 8}, {128, 8, 32, 16}, {128, 16, 32, 8}, {128, 12, 32, 12}, {128, 16, 16, 64},
			{64, 24, 28, 24},
		} {
			for _, pass := range convPasses {
				b.Run(fmt.Sprintf("%v/%d×%d×%d×%d-%d/%s", l, c.batch, c.channels, c.size, c.size, c.others, pass.name),
					func(b *testing.B) {
						defer use(l)()
						o := op.Conv2D{Pad: [2]int{1, 1}}
						var kernels [2]*bound
						for i := range kernels {
							d := open(b, 0)
							d.setWinograd(i > 0)
							p := &builder{tb: b}
							pass.build(p, o, p.data(c.batch, c.channels, c.size, c.size),
								p.weight(c.others, c.channels, 3, 3), p.data(c.batch, c.others, c.size, c.size))
							kernels[i] = bind(b, d, &p.Program, p.weights, p.alone())
							kernels[i].run(b)
						}
						best := [2]time.Duration{1 << 62, 1 << 62}
						var cpu [2]float64
						for range b.N {
							for i, k := range kernels {
								start, used := time.Now(), cpuSeconds()
								k.run(b)
								best[i] = min(best[i], time.Since(start))
								cpu[i] += cpuSeconds() - used
							}
						}
						b.ReportMetric(1e3*best[0].Seconds(), "direct-ms")
						b.ReportMetric(1e3*best[1].Seconds(), "winograd-ms")
						b.ReportMetric(best[0].Seconds()/best[1].Seconds(), "times")
						b.ReportMetric(cpu[0]/cpu[1], "times-cpu")
						b.ReportMetric(0, "ns/op")
						for _, k := range kernels {
							k.free()
						}
					})
			}
		}
	}
}
