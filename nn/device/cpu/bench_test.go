package cpu

import (
	"testing"
	"time"

	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/op"
)

// layer is a convolution of channels × size × size values to others channels, in groups unless groups is 0; times counts
// its occurrences in a net.
type layer struct{ channels, size, others, kernel, stride, pad, times, groups int }

// convNets are the convolutions of known nets, and of several nets by kind.
var convNets = []struct {
	name   string
	batch  int
	layers []layer
}{
	{"lenet", 128, []layer{{1, 28, 6, 5, 1, 2, 1, 0}, {6, 14, 16, 5, 1, 0, 1, 0}}},
	{"resnet20", 128, []layer{
		{3, 32, 16, 3, 1, 1, 1, 0}, {16, 32, 16, 3, 1, 1, 6, 0}, {16, 32, 32, 3, 2, 1, 1, 0},
		{32, 16, 32, 3, 1, 1, 5, 0}, {32, 16, 64, 3, 2, 1, 1, 0}, {64, 8, 64, 3, 1, 1, 5, 0},
	}},
	{"resnet50", 16, []layer{
		{3, 224, 64, 7, 2, 3, 1, 0},
		{64, 56, 64, 1, 1, 0, 1, 0}, {64, 56, 64, 3, 1, 1, 3, 0}, {64, 56, 256, 1, 1, 0, 4, 0}, {256, 56, 64, 1, 1, 0, 2, 0},
		{256, 56, 128, 1, 1, 0, 1, 0}, {128, 56, 128, 3, 2, 1, 1, 0}, {128, 28, 512, 1, 1, 0, 4, 0}, {256, 56, 512, 1, 2, 0, 1, 0},
		{512, 28, 128, 1, 1, 0, 3, 0}, {128, 28, 128, 3, 1, 1, 3, 0},
		{512, 28, 256, 1, 1, 0, 1, 0}, {256, 28, 256, 3, 2, 1, 1, 0}, {256, 14, 1024, 1, 1, 0, 6, 0}, {512, 28, 1024, 1, 2, 0, 1, 0},
		{1024, 14, 256, 1, 1, 0, 5, 0}, {256, 14, 256, 3, 1, 1, 5, 0},
		{1024, 14, 512, 1, 1, 0, 1, 0}, {512, 14, 512, 3, 2, 1, 1, 0}, {512, 7, 2048, 1, 1, 0, 3, 0}, {1024, 14, 2048, 1, 2, 0, 1, 0},
		{2048, 7, 512, 1, 1, 0, 2, 0}, {512, 7, 512, 3, 1, 1, 2, 0},
	}},
	{"depthwise", 16, []layer{ // of MobileNetV3-L, EfficientNet-B0 and ConvNeXt-T
		{16, 112, 16, 3, 1, 1, 1, 16}, {64, 112, 64, 3, 2, 1, 1, 64}, {72, 56, 72, 3, 1, 1, 1, 72},
		{72, 56, 72, 5, 2, 2, 1, 72}, {144, 56, 144, 5, 2, 2, 1, 144}, {120, 28, 120, 5, 1, 2, 2, 120},
		{240, 28, 240, 3, 2, 1, 1, 240}, {480, 14, 480, 3, 1, 1, 3, 480}, {672, 14, 672, 5, 1, 2, 2, 672},
		{672, 14, 672, 5, 2, 2, 1, 672}, {960, 7, 960, 5, 1, 2, 2, 960}, {1152, 7, 1152, 3, 1, 1, 1, 1152},
		{96, 56, 96, 7, 1, 3, 3, 96}, {192, 28, 192, 7, 1, 3, 3, 192}, {384, 14, 384, 7, 1, 3, 9, 384},
		{768, 7, 768, 7, 1, 3, 3, 768},
	}},
	{"grouped", 16, []layer{ // of RegNetY-400MF and ResNeXt-50
		{48, 112, 48, 3, 2, 1, 1, 6}, {104, 56, 104, 3, 2, 1, 1, 13}, {208, 14, 208, 3, 1, 1, 5, 26},
		{440, 14, 440, 3, 2, 1, 1, 55}, {440, 7, 440, 3, 1, 1, 5, 55},
		{128, 56, 128, 3, 1, 1, 3, 32}, {256, 28, 256, 3, 1, 1, 3, 32}, {512, 14, 512, 3, 1, 1, 5, 32},
		{1024, 7, 1024, 3, 1, 1, 2, 32},
	}},
}

// convPasses are a convolution and its gradients.
var convPasses = []struct {
	name  string
	build func(p *builder, o op.Conv2D, x, w, dy int) // as the last step
}{
	{"forward", func(p *builder, o op.Conv2D, x, w, _ int) { p.apply(o, x, w) }},
	{"grad-input", func(p *builder, o op.Conv2D, x, w, dy int) {
		p.apply(op.Conv2DGradInput{Conv2D: o, Input: p.Values[x].Type.Shape}, w, dy)
	}},
	{"grad-weight", func(p *builder, o op.Conv2D, x, w, dy int) {
		p.apply(op.Conv2DGradWeight{Conv2D: o, Weight: p.Values[w].Type.Shape}, x, dy)
	}},
}

// BenchmarkConv measures all convolutions of a net, each as often as the net has it, and logs each with -v.
func BenchmarkConv(b *testing.B) {
	for _, l := range simd.All() {
		b.Run(l.String(), func(b *testing.B) { benchmarkConv(b, l, false) })
	}
	levels := []simd.Level{simd.Best()}
	if simd.HasBFloat16() {
		levels = append(levels, simd.AVX512BF16)
	}
	if simd.LacksAMX() == nil {
		levels = append(levels, simd.AMX)
	}
	for _, l := range levels {
		b.Run("bfloat16/"+l.String(), func(b *testing.B) { benchmarkConv(b, l, true) })
	}
}

func benchmarkConv(b *testing.B, l simd.Level, narrow bool) {
	for _, net := range convNets {
		for _, pass := range convPasses {
			b.Run(net.name+"/"+pass.name, func(b *testing.B) {
				d, err := New(Options{Level: l.String(), BFloat16: narrow})
				if err != nil {
					b.Fatal(err)
				}
				defer d.Close()
				var flops, seconds, cpu float64
				for i, c := range net.layers {
					if i == 0 && c.groups == 0 && pass.name == "grad-input" {
						continue // no net needs gradients with respect to the images
					}
					o := op.Conv2D{Stride: [2]int{c.stride, c.stride}, Pad: [2]int{c.pad, c.pad}, Groups: c.groups}
					in := c.channels / max(1, c.groups)
					out := (c.size+2*c.pad-c.kernel)/c.stride + 1
					p := &builder{tb: b}
					data := p.data
					if narrow { // only results of steps are stored as bfloat16
						data = func(shape ...int) int { return p.apply(op.ReLU{}, p.data(shape...)) }
					}
					pass.build(p, o, data(net.batch, c.channels, c.size, c.size),
						p.weight(c.others, in, c.kernel, c.kernel), data(net.batch, c.others, out, out))
					k := bind(b, d, &p.Program, p.weights, p.alone())
					k.run(b)
					last := k.kernels[len(k.kernels)-1:]
					start, used := time.Now(), cpuSeconds()
					for range b.N {
						(&bound{kernels: last}).run(b)
					}
					each := time.Since(start).Seconds() / float64(b.N)
					u := (cpuSeconds() - used) / float64(b.N)
					work := 2 * float64(net.batch*c.others*out*out) * float64(in*c.kernel*c.kernel)
					b.Logf("%+v: %.3g ms, %.4g GFLOP/s, %.4g a CPU second", c, 1e3*each, work/each/1e9, work/u/1e9)
					flops += float64(c.times) * work
					seconds += float64(c.times) * each
					cpu += float64(c.times) * u
					k.free()
				}
				b.ReportMetric(1e3*seconds, "ms")
				b.ReportMetric(flops/seconds/1e9, "GFLOP/s")
				b.ReportMetric(flops/cpu/1e9, "GFLOP/CPU-s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// linearLayers are those of a block of ViT-S/16: inputs and outputs of tokens.
var linearLayers = [][2]int{{384, 1152}, {384, 384}, {384, 1536}, {1536, 384}}

// BenchmarkLinear measures the linear layers of ViT-S/16 at batch 16 and their gradients, and logs each with -v.
func BenchmarkLinear(b *testing.B) {
	const tokens = 16 * 197
	passes := []struct {
		name  string
		apply func(p *builder, x, w, dy int)
	}{
		{"forward", func(p *builder, x, w, _ int) { p.apply(op.Linear{}, x, w) }},
		{"grad-input", func(p *builder, _, w, dy int) { p.apply(op.LinearGradInput{}, w, dy) }},
		{"grad-weight", func(p *builder, x, _, dy int) { p.apply(op.LinearGradWeight{}, x, dy) }},
	}
	for _, pass := range passes {
		b.Run(pass.name, func(b *testing.B) {
			d := open(b, 0)
			var flops, seconds float64
			for _, l := range linearLayers {
				p := &builder{tb: b}
				pass.apply(p, p.data(tokens, l[0]), p.weight(l[1], l[0]), p.data(tokens, l[1]))
				k := bind(b, d, &p.Program, p.weights, p.alone())
				k.run(b)
				last := bound{kernels: k.kernels[len(k.kernels)-1:]}
				start, used := time.Now(), cpuSeconds()
				for range b.N {
					last.run(b)
				}
				each := time.Since(start).Seconds() / float64(b.N)
				work := 2 * tokens * float64(l[0]*l[1])
				b.Logf("%v: %.3g ms, %.4g GFLOP/s, %.4g a CPU second", l, 1e3*each, work/each/1e9,
					work*float64(b.N)/(cpuSeconds()-used)/1e9)
				flops += work
				seconds += each
				k.free()
			}
			b.ReportMetric(flops/seconds/1e9, "GFLOP/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkPeak measures the multiply-adds on registers that all workers reach.
func BenchmarkPeak(b *testing.B) {
	for _, l := range simd.All() {
		set := kern.For(l)
		if set == nil {
			continue
		}
		b.Run(l.String(), func(b *testing.B) {
			d := open(b, 0)
			const turns = 1 << 16
			blocks := 8 * d.pool.Workers()
			used := cpuSeconds()
			for b.Loop() {
				d.pool.Run(blocks, func(int, int) { set.Peak(turns) })
			}
			flops := float64(b.N*blocks) * turns * 2 * 2 * float64((set.Registers-2)*set.Lanes)
			b.ReportMetric(flops/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			b.ReportMetric(flops/(cpuSeconds()-used)/1e9, "GFLOP/CPU-s")
		})
	}
}

// free releases the memory of all values.
func (b *bound) free() {
	for _, r := range b.regions {
		if r.Memory != nil {
			r.Memory.Free()
		}
	}
}
