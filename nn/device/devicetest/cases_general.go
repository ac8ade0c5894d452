package devicetest

import (
	"math"
	"math/rand/v2"
	"slices"

	"onlinerna/nn/op"
)

// moveCases returns cases for ops that move boxes of elements.
func moveCases() []opCase {
	one := uniform(-1, 1)
	var all []opCase
	add := func(o op.Op, shapes ...op.Shape) {
		c := opCase{op: o}
		for _, s := range shapes {
			c.in = append(c.in, data(one, s...))
		}
		all = append(all, c)
	}
	for _, c := range []struct {
		shape op.Shape
		axes  []int
	}{
		{op.Shape{5, 7}, []int{1, 0}}, {op.Shape{2, 3, 4}, []int{0, 2, 1}}, {op.Shape{3, 17, 33}, []int{2, 1, 0}},
		{op.Shape{2, 3, 4, 5}, []int{0, 2, 3, 1}}, {op.Shape{2, 3, 4, 5}, []int{3, 2, 1, 0}},
		{op.Shape{2, 16, 5, 7}, []int{0, 3, 1, 2}}, {op.Shape{2, 5, 3, 2, 16}, []int{2, 0, 3, 1, 4}},
		{op.Shape{2, 3, 1, 2, 3, 4}, []int{5, 3, 1, 0, 2, 4}}, {op.Shape{9}, []int{0}}, {op.Shape{}, []int{}},
		{op.Shape{4, 64, 3, 8, 16}, []int{2, 0, 3, 1, 4}}, {op.Shape{1, 100, 100}, []int{0, 2, 1}},
	} {
		add(op.Permute{Axes: c.axes}, c.shape)
	}
	for _, c := range []struct {
		shape    op.Shape
		from, to []int
	}{
		{op.Shape{9}, []int{2}, []int{7}}, {op.Shape{3, 4, 5}, []int{1, 0, 0}, []int{2, 4, 5}},
		{op.Shape{3, 4, 5}, []int{0, 0, 1}, []int{3, 4, 3}}, {op.Shape{2, 6, 5, 4}, []int{0, 2, 0, 0}, []int{2, 5, 5, 4}},
		{op.Shape{2, 33, 5, 7}, []int{1, 1, 2, 3}, []int{2, 32, 4, 7}},
		{op.Shape{3, 2, 2, 3, 4}, []int{1, 0, 0, 0, 0}, []int{2, 2, 2, 3, 4}},
	} {
		add(op.Slice{From: c.from, To: c.to}, c.shape)
		after := make([]int, len(c.from))
		for i := range after {
			after[i] = c.shape[i] - c.to[i]
		}
		o := op.Slice{From: c.from, To: c.to}
		y, _ := o.Infer(op.Type{DType: op.Float32, Shape: c.shape})
		add(op.Pad{Before: c.from, After: after}, y.Shape)
	}
	for _, c := range []struct {
		axis   int
		shapes []op.Shape
	}{
		{0, []op.Shape{{2, 3}, {4, 3}}}, {1, []op.Shape{{2, 3}, {2, 1}, {2, 17}}}, {0, []op.Shape{{5}, {3}}},
		{1, []op.Shape{{3, 8, 5, 5}, {3, 8, 5, 5}}}, {1, []op.Shape{{2, 3, 5, 4}, {2, 17, 5, 4}, {2, 1, 5, 4}}},
		{2, []op.Shape{{2, 3, 5, 4}, {2, 3, 1, 4}}}, {3, []op.Shape{{2, 16, 5, 4}, {2, 16, 5, 3}}},
		{1, []op.Shape{{4, 1, 12}, {4, 16, 12}}}, {0, []op.Shape{{2, 3, 2, 2}}},
		{2, []op.Shape{{2, 3, 4, 2, 2}, {2, 3, 1, 2, 2}}},
	} {
		add(op.Concat{Axis: c.axis}, c.shapes...)
	}
	for _, c := range []struct {
		shape op.Shape
		by    []int
	}{
		{op.Shape{9}, []int{4}}, {op.Shape{3, 5}, []int{0, -1}}, {op.Shape{2, 6, 5, 16}, []int{0, 2, 3, 0}},
		{op.Shape{1, 2, 14, 14, 33}, []int{0, 0, 3, 3, 0}}, {op.Shape{1, 2, 4, 4, 8}, []int{0, 0, -2, 1, 0}},
		{op.Shape{2, 3}, []int{0, 3}}, {op.Shape{17_000, 2}, []int{0, 1}}, {op.Shape{60, 2, 8}, []int{0, 1, 0}},
	} {
		add(op.Roll{By: c.by}, c.shape)
	}
	for _, c := range []struct{ x, y op.Shape }{
		{op.Shape{1, 5}, op.Shape{4, 5}}, {op.Shape{5, 1}, op.Shape{5, 33}}, {op.Shape{1, 1, 7}, op.Shape{3, 1, 7}},
		{op.Shape{1, 3, 1, 2}, op.Shape{4, 3, 5, 2}}, {op.Shape{2, 17, 1, 1}, op.Shape{2, 17, 5, 3}},
		{op.Shape{1, 2, 1, 3, 1}, op.Shape{2, 2, 3, 3, 4}}, {op.Shape{1, 1}, op.Shape{16, 1000}},
	} {
		add(op.Expand{Shape: c.y}, c.x)
	}
	for _, s := range activations {
		if len(s) == 4 {
			add(op.Tokens{}, s)
			add(op.Planes{Height: s[2], Width: s[3]}, op.Shape{s[0], s[2] * s[3], s[1]})
			add(op.Taps{}, s)
			add(op.Filters{Height: s[2], Width: s[3]}, op.Shape{1, s[0], s[2] * s[3], s[1]})
		}
	}
	return all
}

func reduceCases() []opCase {
	var all []opCase
	for _, s := range []op.Shape{{2, 3, 7, 7}, {3, 5, 1, 1}, {2, 33, 5, 4}, {3, 10}, {1, 1}, {16, 1000}, {7},
		{2, 3, 1, 4, 5}, {300, 33}, {6, 50, 64}} {
		var subsets [][]int
		for bits := range 1 << len(s) {
			var axes []int
			for a := range s {
				if bits>>a&1 == 1 {
					axes = append(axes, a)
				}
			}
			subsets = append(subsets, axes)
		}
		for _, axes := range subsets {
			for by := op.Sum; by <= op.Max; by++ {
				all = append(all, opCase{op: op.Reduce{By: by, Axes: axes}, in: []operand{data(uniform(-.5, 1), s...)},
					alike: by == op.Mean})
			}
		}
	}
	sick := func(r *rand.Rand, x []float64) {
		uniform(-1, 1)(r, x)
		x[5], x[47] = math.NaN(), math.Inf(-1)
	}
	for _, axes := range [][]int{{0}, {1}, {2}, {0, 2}} {
		all = append(all, opCase{op: op.Reduce{By: op.Max, Axes: axes}, in: []operand{data(sick, 3, 4, 20)}})
	}
	return all
}

func matMulCases() []opCase {
	one := uniform(-1, 1)
	var all []opCase
	for _, c := range []struct {
		batch              op.Shape
		rows, inner, other int
	}{
		{nil, 3, 4, 5}, {nil, 1, 1, 1}, {op.Shape{2}, 17, 33, 16}, {op.Shape{3}, 65, 64, 65}, {op.Shape{2, 3}, 7, 5, 9},
		{op.Shape{12}, 50, 32, 50}, {op.Shape{1}, 64, 200, 48}, {op.Shape{2, 1, 2}, 9, 16, 8}, {op.Shape{5}, 1, 16, 40},
		{nil, 130, 70, 33}, {op.Shape{4}, 40, 3, 2},
	} {
		for i := range 4 {
			o := op.MatMul{TransA: i&1 == 1, TransB: i&2 == 2}
			a, b := []int{c.rows, c.inner}, []int{c.inner, c.other}
			if o.TransA {
				slices.Reverse(a)
			}
			if o.TransB {
				slices.Reverse(b)
			}
			all = append(all, opCase{op: o, in: []operand{data(one, slices.Concat(c.batch, a)...),
				data(one, slices.Concat(c.batch, b)...)}})
		}
	}
	return all
}

func gatherCases() []opCase {
	one := uniform(-1, 1)
	var all []opCase
	for _, c := range []struct {
		shape    op.Shape
		axis, to int
	}{
		{op.Shape{7}, 0, 5}, {op.Shape{4, 6}, 0, 9}, {op.Shape{4, 6}, 1, 3}, {op.Shape{2, 5, 16}, 1, 5},
		{op.Shape{2, 5, 3, 4}, 1, 8}, {op.Shape{2, 17, 3, 4}, 3, 6}, {op.Shape{169, 3}, 0, 49 * 49},
		{op.Shape{2, 70, 4, 3}, 2, 8}, {op.Shape{2, 70, 40, 3}, 3, 7},
	} {
		index := whole(op.Int32, integers(-1, c.shape[c.axis]), c.to)
		y := slices.Clone(c.shape)
		y[c.axis] = c.to
		all = append(all,
			opCase{op: op.Gather{Axis: c.axis}, in: []operand{data(one, c.shape...), index}},
			opCase{op: op.GatherGrad{Axis: c.axis, Extent: c.shape[c.axis]}, in: []operand{data(one, y...), index}})
	}
	return all
}

// rowCases returns cases for ops along rows.
func rowCases() []opCase {
	one := uniform(-1, 1)
	var all []opCase
	for _, s := range []op.Shape{{3, 5}, {1, 1}, {4, 16}, {2, 3, 17}, {2, 50, 33}, {7, 192}, {2, 3, 4, 5}, {2, 197, 64},
		{2, 8, 3, 3, 6}, {5, 1}, {3, 1000}, {61, 1000}} {
		c := s[len(s)-1]
		x, dy, scale, bias := data(one, s...), data(one, s...), weight(uniform(.5, 1.5), c), weight(one, c)
		far := data(uniform(99, 101), s...) // the variance is small beside the mean
		all = append(all,
			opCase{op: op.LayerNorm{Eps: 1e-5}, in: []operand{x, scale, bias}},
			opCase{op: op.LayerNorm{Eps: 1e-3}, in: []operand{far, scale, bias}},
			opCase{op: op.LayerNormGradInput{Eps: 1e-5}, in: []operand{x, scale, dy}},
			opCase{op: op.LayerNormGradScale{Eps: 1e-5}, in: []operand{x, dy}, weight: true},
			opCase{op: op.RMSNorm{Eps: 1e-5}, in: []operand{x, scale}},
			opCase{op: op.Softmax{}, in: []operand{data(uniform(-5, 5), s...)}},
			opCase{op: op.Softmax{}, in: []operand{data(uniform(-1e4, 1e4), s...)}}, // the exponentials overflow
			opCase{op: op.SoftmaxGrad{}, in: []operand{data(uniform(0, 1), s...), dy}})
	}
	for _, c := range []struct {
		shape  op.Shape
		groups int
	}{
		{op.Shape{2, 6, 3, 2}, 3}, {op.Shape{3, 4}, 2}, {op.Shape{2, 8, 5}, 1}, {op.Shape{2, 32, 7, 7}, 8},
		{op.Shape{2, 17, 4, 4}, 17}, {op.Shape{1, 64, 1, 1}, 4},
	} {
		n := c.shape[1]
		all = append(all, opCase{op: op.GroupNorm{Groups: c.groups, Eps: 1e-3},
			in: []operand{data(one, c.shape...), weight(uniform(.5, 1.5), n), weight(one, n)}})
	}
	return all
}

func attentionCases() []opCase {
	one := uniform(-1, 1)
	var all []opCase
	for _, c := range []struct{ n, heads, rows, keys, d, e int }{
		{1, 1, 1, 1, 1, 1}, {2, 2, 3, 6, 5, 2}, {2, 3, 17, 17, 16, 16}, {1, 3, 65, 65, 64, 64}, {3, 1, 50, 50, 32, 32},
		{1, 2, 197, 197, 16, 16}, {1, 2, 130, 300, 24, 40},
	} {
		b := c.n * c.heads
		in := []operand{data(one, b, c.rows, c.d), data(one, b, c.keys, c.d), data(one, b, c.keys, c.e)}
		dy, bias := data(one, b, c.rows, c.e), weight(one, c.heads, c.rows, c.keys)
		all = append(all, opCase{op: op.Attention{Scale: .25}, in: in},
			opCase{op: op.Attention{Scale: .5}, in: append(slices.Clone(in), bias)})
		for by := range in {
			all = append(all, opCase{op: op.AttentionGrad{Scale: .25, By: by}, in: append(slices.Clone(in), dy)})
		}
		for by := range len(in) + 1 {
			all = append(all, opCase{op: op.AttentionGrad{Scale: .5, By: by}, in: append(slices.Clone(in), bias, dy)})
		}
	}
	for _, c := range []struct{ n, tokens, heads, d, groups int }{
		{1, 1, 1, 1, 1}, {2, 3, 2, 5, 2}, {3, 17, 2, 16, 6}, {2, 49, 3, 32, 3}, {1, 50, 1, 64, 1}, {6, 9, 1, 8, 2},
		{1, 197, 2, 16, 2}, {40, 4, 3, 7, 3},
	} {
		o, width := op.SelfAttention{Tokens: c.tokens, Heads: c.heads, Scale: .25}, c.heads*c.d
		x, dy := data(one, c.n*c.tokens, 3*width), data(one, c.n*c.tokens, width)
		bias := weight(one, c.groups, c.tokens, c.tokens)
		all = append(all, opCase{op: o, in: []operand{x}}, opCase{op: o, in: []operand{x, bias}},
			opCase{op: op.SelfAttentionGrad(o), in: []operand{x, dy}},
			opCase{op: op.SelfAttentionGrad(o), in: []operand{x, bias, dy}},
			opCase{op: op.SelfAttentionGradBias(o), in: []operand{x, bias, dy}})
	}
	return all
}
