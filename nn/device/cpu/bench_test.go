package cpu

import (
	"testing"

	"onlinerna/nn/op"
)

// convCases are convolutions of known nets.
var convCases = []struct {
	name                            string
	n, c, h, o, kernel, stride, pad int
}{
	{"lenet-conv1", 128, 1, 28, 6, 5, 1, 2},
	{"lenet-conv2", 128, 6, 14, 16, 5, 1, 0},
	{"resnet20-16", 128, 16, 32, 16, 3, 1, 1},
	{"resnet20-32", 128, 32, 16, 32, 3, 1, 1},
	{"resnet20-64", 128, 64, 8, 64, 3, 1, 1},
	{"resnet20-down", 128, 16, 32, 32, 3, 2, 1},
	{"resnet50-stem", 4, 3, 224, 64, 7, 2, 3},
	{"resnet50-3x3-64", 4, 64, 56, 64, 3, 1, 1},
	{"resnet50-1x1-256", 4, 64, 56, 256, 1, 1, 0},
	{"resnet50-3x3-512", 4, 512, 7, 512, 3, 1, 1},
}

func BenchmarkConv(b *testing.B) {
	d := open(b, 0)
	for _, c := range convCases {
		conv := op.Conv2D{Stride: [2]int{c.stride, c.stride}, Pad: [2]int{c.pad, c.pad}}
		out := (c.h+2*c.pad-c.kernel)/c.stride + 1
		flops := 2 * float64(c.n*c.o*out*out) * float64(c.c*c.kernel*c.kernel)
		for _, pass := range []struct {
			name  string
			build func(p *builder, x, w, dy int)
		}{
			{"forward", func(p *builder, x, w, _ int) { p.apply(conv, x, w) }},
			{"grad-input", func(p *builder, x, w, dy int) {
				p.apply(op.Conv2DGradInput{Conv2D: conv, Input: p.Values[x].Type.Shape}, w, dy)
			}},
			{"grad-weight", func(p *builder, x, w, dy int) {
				p.apply(op.Conv2DGradWeight{Conv2D: conv, Weight: p.Values[w].Type.Shape}, x, dy)
			}},
		} {
			b.Run(c.name+"/"+pass.name, func(b *testing.B) {
				p := &builder{tb: b}
				pass.build(p, p.data(c.n, c.c, c.h, c.h), p.weight(c.o, c.c, c.kernel, c.kernel), p.data(c.n, c.o, out, out))
				k := bind(b, d, &p.Program, p.weights, p.alone())
				k.run(b)
				for b.Loop() {
					k.run(b)
				}
				b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
