package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"onlinerna/internal/simd"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

var (
	x0, x1    = expr.Arg(0), expr.Arg(1)
	silu      = x0.Mul(x0.Sigmoid())
	gelu      = x0.Scale(.5).Mul(x0.Scale(math.Sqrt2 / 2).Erf().Shift(1))
	hardswish = x0.Mul(x0.Shift(3).Clamp(0, 6)).Scale(1. / 6)
	excited   = x0.Mul(x1.Sigmoid())
	dropped   = expr.If(expr.Chance(expr.Random(77, 1, false), .25), expr.Const(0), x0.Scale(1/.75))
)

// expressions is a net with expressions behind convolutions, normalisations, sums and other expressions.
func expressions(tb testing.TB, n, c, h int) *builder {
	b := &builder{tb: tb}
	const eps = 1e-5
	conv := op.Conv2D{Pad: [2]int{1, 1}}
	shape := func(v int) op.Shape { return b.Values[v].Type.Shape }
	counter := b.value(op.T(op.Int32, 2))

	x := b.apply(op.Map{Expr: silu}, b.apply(conv, b.data(n, 3, h, h), b.weight(c, 3, 3, 3), b.weight(c)))
	y := b.apply(op.Conv2D{}, x, b.weight(c, c, 1, 1))
	stats, scale, bias := b.apply(op.BatchNormStats{}, y), b.weight(c), b.weight(c)
	normal := b.apply(op.BatchNorm{Eps: eps}, y, stats, scale, bias)
	z := b.apply(op.Map{Expr: gelu}, normal) // the backward pass reads it too
	dropout := b.apply(op.Map{Expr: dropped}, z, counter)

	inside := b.apply(op.BatchNorm{Eps: eps}, x, stats, scale, bias)
	sum := b.apply(op.Add{}, inside, b.data(shape(inside)...))
	swish := b.apply(op.Map{Expr: hardswish}, sum)
	small := b.apply(op.Map{Expr: silu}, b.apply(op.Linear{}, b.apply(op.GlobalAvgPool{}, swish), b.weight(c, c)))
	scaled := b.apply(op.Map{Expr: excited}, swish, small)

	dz := b.apply(op.Map{Expr: gelu.Gradient(x1)[0]}, normal, b.data(shape(z)...))
	b.apply(op.SumTo{Shape: shape(small)}, dz)
	b.Keep = append(b.Keep, dropout, scaled, dz)
	return b
}

func TestExpressionGroups(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, c := range []struct{ n, c, h int }{{3, 5, 7}, {2, 33, 9}, {2, 300, 4}, {1, 16, 40}} {
			b := expressions(t, c.n, c.c, c.h)
			d := open(t, 2)
			groups := b.grouped(d)
			want := []string{"batch_norm map map", "batch_norm add map"}
			if at.Vectors() != simd.Go {
				want = []string{"conv2d map", "conv2d batch_norm_stats", "batch_norm map map", "batch_norm add map", "linear map"}
			}
			if kinds := groupedKinds(b, groups); !slices.Equal(kinds, want) {
				t.Fatalf("groups %q, want %q", kinds, want)
			}
			alone := bind(t, d, &b.Program, b.weights, b.alone())
			grouped := bind(t, d, &b.Program, b.weights, groups)
			alone.run(t)
			grouped.run(t)
			same(t, b, alone, grouped, fmt.Sprintf("%+v one by one and grouped", c))
		}
	})
}

// Sums of an expression over the pixels of each image and channel have the bits of the expression and its sums, and the
// expression is not stored unless something else reads it.
func TestSumsOfExpressions(t *testing.T) {
	for _, c := range []struct {
		n, c, h    int
		kept, mean bool
		want       []string
	}{
		{n: 3, c: 37, h: 5, mean: true, want: []string{"map global_avg_pool"}},
		{n: 2, c: 5, h: 7, want: []string{"map sum_to"}}, {n: 9, c: 96, h: 21, want: []string{"map sum_to"}},
		{n: 1, c: 1100, h: 3, want: []string{"map sum_to"}}, {n: 9, c: 2051, h: 2, want: []string{"map sum_to"}},
		{n: 2, c: 16, h: 5, kept: true},
	} {
		b := &builder{tb: t}
		data := func() int {
			return b.apply(op.SliceAxis(op.Shape{c.n, c.c + 1, c.h, c.h}, 1, 1, c.c+1), b.data(c.n, c.c+1, c.h, c.h))
		}
		y := b.apply(op.Map{Expr: x0.Mul(x1).Add(expr.Arg(2))}, data(), data(), b.data(c.n, c.c))
		var o op.Op = op.SumTo{Shape: op.Shape{c.n, c.c}}
		if c.mean {
			o = op.GlobalAvgPool{}
		}
		sums := b.apply(o, y)
		b.Keep = []int{sums}
		if c.kept {
			b.Keep = append(b.Keep, y)
		}
		d := open(t, 3)
		groups := b.grouped(d)
		if kinds := groupedKinds(b, groups); !slices.Equal(kinds, c.want) {
			t.Errorf("%+v: groups %q", c, kinds)
		}
		alone, grouped := bind(t, d, &b.Program, b.weights, b.alone()), bind(t, d, &b.Program, b.weights, groups)
		for range 2 {
			alone.run(t)
			grouped.run(t)
			same(t, b, alone, grouped, fmt.Sprintf("%+v", c))
			for _, k := range []*bound{alone, grouped} { // the next run has other operands
				slices.Reverse(k.floats(t, b.Steps[2].In[2]))
			}
		}
		want := alone.floats(t, sums)
		narrowWays(t, func(way string, d *Device) {
			k := bind(t, d, &b.Program, b.weights, groups)
			slices.Reverse(k.floats(t, b.Steps[2].In[2])) // as in the last run
			k.run(t)
			size, off := 0., 0.
			for i, v := range k.floats(t, sums) {
				size += float64(want[i]) * float64(want[i])
				off += math.Pow(float64(v-want[i]), 2)
			}
			if !(off <= .01*.01*size) {
				t.Errorf("%+v, %s: differs by %.3g of the norm", c, way, math.Sqrt(off/size))
			}
		})
	}
}

func TestExpressionWorkers(t *testing.T) {
	b := expressions(t, 3, 33, 21)
	one := bind(t, open(t, 1), &b.Program, b.weights, b.alone())
	one.run(t)
	for _, n := range []int{2, 7} {
		d := open(t, n)
		many := bind(t, d, &b.Program, b.weights, b.grouped(d))
		many.run(t)
		many.run(t)
		same(t, b, one, many, "one worker and several")
	}
}

// BenchmarkMap measures expressions on an activation larger than the caches, in turn with a copy that moves as many
// bytes.
func BenchmarkMap(b *testing.B) {
	d := open(b, 0)
	const n, c, h = 16, 64, 112
	for _, e := range []struct {
		name string
		expr expr.Expr
		ins  int
	}{
		{"relu", x0.Max(expr.Const(0)), 1}, {"hardswish", hardswish, 1}, {"silu", silu, 1}, {"gelu", gelu, 1},
		{"silu gradient", silu.Gradient(x1)[0], 2}, {"gelu gradient", gelu.Gradient(x1)[0], 2}, {"excited", excited, -1},
		{"dropout", dropped, -2},
	} {
		b.Run(e.name, func(b *testing.B) {
			p := &builder{tb: b}
			x := p.data(n, c, h, h)
			in, moved := []int{x}, 2
			switch e.ins {
			case 2:
				in, moved = append(in, p.data(n, c, h, h)), 3
			case -1:
				in = append(in, p.data(n, c))
			case -2:
				in = append(in, p.value(op.T(op.Int32, 2)))
			}
			p.apply(op.Map{Expr: e.expr}, in...)
			k := bind(b, d, &p.Program, p.weights, p.alone())
			defer k.free()
			size := p.Values[x].Type.Shape.Size()
			var streams [2]device.Vector
			for i := range streams {
				v, err := d.NewVector(moved * size / 2)
				if err != nil {
					b.Fatal(err)
				}
				defer v.Free()
				streams[i] = v
			}
			k.run(b)
			best, copied := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for b.Loop() {
				start := time.Now()
				streams[0].Copy(streams[1])
				between := time.Now()
				k.run(b)
				copied, best = min(copied, between.Sub(start)), min(best, time.Since(between))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(best.Seconds()*1e3, "ms")
			b.ReportMetric(float64(best.Nanoseconds())/float64(size), "ns/element")
			b.ReportMetric(copied.Seconds()/best.Seconds(), "of-copy")
		})
	}
}

// Factors of channels may change between runs, also behind a layer whose weights do not.
func TestFactorsChange(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, c := range []struct {
			name  string
			build func(p *builder) (factors, y int)
		}{
			{"map", func(p *builder) (factors, y int) {
				x, factors := p.data(1, 48, 40, 40), p.data(1, 48)
				return factors, p.apply(op.Map{Expr: x0.Mul(x1)}, x, factors)
			}},
			{"linear", func(p *builder) (factors, y int) {
				w, bias, factors := p.weight(48, 20), p.weight(48), p.data(48)
				p.Values[w].Fixed, p.Values[bias].Fixed = true, true
				return factors, p.apply(op.Map{Expr: x0.Mul(x1)}, p.apply(op.Linear{}, p.data(33, 20), w, bias), factors)
			}},
		} {
			p := &builder{tb: t}
			factor, y := c.build(p)
			d := open(t, 1)
			k := bind(t, d, &p.Program, p.weights, p.grouped(d))
			factors, err := device.HostSlice[float32](k.regions[factor])
			if err != nil {
				t.Fatal(err)
			}
			results, err := device.HostSlice[float32](k.regions[y])
			if err != nil {
				t.Fatal(err)
			}
			k.run(t)
			before := slices.Clone(results)
			for i := range factors {
				factors[i] *= 2
			}
			k.run(t)
			for i, v := range results {
				if v != 2*before[i] {
					t.Fatalf("%s: element %d is %v after a factor was doubled, and was %v", c.name, i, v, before[i])
				}
			}
		}
	})
}
