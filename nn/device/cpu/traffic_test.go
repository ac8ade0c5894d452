package cpu

import (
	"fmt"
	"math"
	"testing"
	"time"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

// BenchmarkTraffic reports the memory rate of ops that hardly compute, on activations of ResNet-50 and its parameters,
// and that of a copy that runs in turn with them. Each operand and result counts once. Both rates are the fastest of
// all runs: other load on the machine only adds time.
func BenchmarkTraffic(b *testing.B) {
	d := open(b, 0)
	const floats = 16 << 20
	var streams [2]device.Vector
	for i := range streams {
		v, err := d.NewVector(floats)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(v.Free)
		streams[i] = v
	}
	measure := func(name string, bytes int, run func()) {
		b.Run(name, func(b *testing.B) {
			run()
			best, copied := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for b.Loop() {
				start := time.Now()
				streams[0].Copy(streams[1])
				between := time.Now()
				run()
				copied, best = min(copied, between.Sub(start)), min(best, time.Since(between))
			}
			rate, limit := float64(bytes)/best.Seconds()/1e9, 8*floats/copied.Seconds()/1e9
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rate, "GB/s")
			b.ReportMetric(limit, "copy-GB/s")
			b.ReportMetric(rate/limit, "of-copy")
		})
	}
	vectors := func(n int) []device.Vector {
		list := make([]device.Vector, 4)
		for i := range list {
			v, err := d.NewVector(n)
			if err != nil {
				b.Fatal(err)
			}
			list[i] = v
			b.Cleanup(v.Free)
		}
		return list
	}
	const batch, eps = 16, 1e-5
	for _, shape := range [][2]int{{64, 112}, {256, 56}, {512, 28}, {1024, 14}, {2048, 7}} {
		c, h := shape[0], shape[1]
		size := 4 * batch * c * h * h
		name := fmt.Sprintf("%d×%d×%d", h, h, c)
		ops := func(kind string, streams int, build func(p *builder) [][]int) {
			p := &builder{tb: b}
			groups := build(p)
			if groups == nil {
				groups = p.alone()
			}
			k := bind(b, d, &p.Program, p.weights, groups)
			measure(name+"/"+kind, streams*size, func() { k.run(b) })
		}
		data := func(p *builder) int { return p.data(batch, c, h, h) }
		ops("stats", 1, func(p *builder) [][]int {
			p.apply(op.BatchNormStats{}, data(p))
			return nil
		})
		ops("norm+relu", 2, func(p *builder) [][]int {
			p.apply(op.ReLU{}, p.apply(op.BatchNorm{Eps: eps}, data(p), p.data(2, c), p.weight(c), p.weight(c)))
			return p.grouped(d)
		})
		ops("norm+add+relu", 3, func(p *builder) [][]int {
			y := p.apply(op.BatchNorm{Eps: eps}, data(p), p.data(2, c), p.weight(c), p.weight(c))
			p.apply(op.ReLU{}, p.apply(op.Add{}, y, data(p)))
			return p.grouped(d)
		})
		ops("sums", 2, func(p *builder) [][]int {
			p.apply(op.BatchNormGradSums{Eps: eps}, data(p), p.data(2, c), data(p))
			return nil
		})
		ops("relu grad+sums", 4, func(p *builder) [][]int {
			dy := p.apply(op.ReLUGrad{}, data(p), data(p))
			p.apply(op.BatchNormGradSums{Eps: eps}, data(p), p.data(2, c), dy)
			p.Keep = append(p.Keep, dy)
			return [][]int{{0, 1}}
		})
		ops("grad input", 3, func(p *builder) [][]int {
			p.apply(op.BatchNormGradInput{Eps: eps}, data(p), p.data(2, c), p.weight(c), p.data(2, c), data(p))
			return nil
		})
		ops("relu", 2, func(p *builder) [][]int {
			p.apply(op.ReLU{}, data(p))
			return nil
		})
		ops("add", 3, func(p *builder) [][]int {
			p.apply(op.Add{}, data(p), data(p))
			return nil
		})
		if h == 112 {
			pool := op.MaxPool{Kernel: [2]int{3, 3}, Stride: [2]int{2, 2}, Pad: [2]int{1, 1}}
			p := &builder{tb: b}
			p.apply(pool, data(p))
			k := bind(b, d, &p.Program, p.weights, p.alone())
			measure(name+"/max pool", size+size/4, func() { k.run(b) })
			p = &builder{tb: b}
			p.apply(op.MaxPoolGrad{MaxPool: pool}, data(p), p.data(batch, c, h/2, h/2))
			k = bind(b, d, &p.Program, p.weights, p.alone())
			measure(name+"/max pool grad", 2*size+size/4, func() { k.run(b) })
		}
		if h == 7 {
			ops("global pool", 1, func(p *builder) [][]int {
				p.apply(op.GlobalAvgPool{}, data(p))
				return nil
			})
		}
	}
	const parameters = 25_557_032
	v := vectors(parameters)
	measure("parameters/copy", 8*parameters, func() { v[0].Copy(v[1]) })
	measure("parameters/fill", 4*parameters, func() { v[0].Fill(1e-3) })
	measure("parameters/add scaled", 12*parameters, func() { v[0].AddScaled(.5, v[1]) })
	measure("parameters/lerp", 12*parameters, func() { v[0].Lerp(.5, v[1]) })
	for _, x := range []struct {
		device.Optimizer
		bytes int // read and written per element
	}{
		{optim.SGD{Momentum: .9, Decay: 1e-4}, 20},
		{optim.AdamW{Beta1: .9, Beta2: .999, Eps: 1e-8, Decay: 1e-2}, 28},
		{optim.LARS{Momentum: .9, Decay: 1e-4, Trust: 1e-3}, 28},
		{optim.LAMB{Beta1: .9, Beta2: .999, Eps: 1e-6, Decay: 1e-2, ClipNorm: 1}, 44},
	} {
		u := device.Update{Optimizer: x.Optimizer, Grad: v[1], State: v[2:][:len(x.State())],
			Tensors: []device.Span{{Len: parameters}},
			Numbers: device.Numbers{Rate: .1, Scale: 1, Step: 1}}
		measure("parameters/"+x.Name(), x.bytes*parameters, func() { v[0].Update(u) })
	}
	measure("parameters/norm", 4*parameters, func() { v[0].Norm() })
	measure("parameters/finite", 4*parameters, func() { v[0].Finite() })
}
