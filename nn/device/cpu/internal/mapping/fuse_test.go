package mapping

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/vec"
	"onlinerna/nn/device/cpu/internal/work"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// TestFuse compares fused expressions, alone and inside others, with the same operations one after the other.
func TestFuse(t *testing.T) {
	x, dy := expr.Arg(0), expr.Arg(1)
	silu := func(x expr.Expr) expr.Expr { return x.Mul(x.Sigmoid()) }
	hardswish := func(x expr.Expr) expr.Expr { return x.Mul(x.Shift(3).Clamp(0, 6)).Scale(1. / 6) }
	gelu := func(x expr.Expr) expr.Expr { return x.Mul(x.Scale(math.Sqrt2 / 2).Erf().Shift(1)).Scale(.5) }
	for name, c := range map[string]struct {
		e     expr.Expr
		fused []expr.Kind
	}{
		"silu": {silu(x), []expr.Kind{fusedSiLU}}, "hardswish": {hardswish(x), []expr.Kind{fusedHardswish}},
		"relu6":                {x.Clamp(0, 6), []expr.Kind{fusedReLU6}},
		"relu6's":              {x.Clamp(0, 6).Gradient(dy)[0], []expr.Kind{fusedReLU6Grad}},
		"hard sigmoid":         {x.Shift(3).Clamp(0, 6).Scale(1. / 6), []expr.Kind{fusedReLU6}},
		"relu of 5":            {x.Clamp(0, 5), nil},
		"gelu":                 {gelu(x), []expr.Kind{fusedGELU}},
		"gelu, scaled":         {gelu(x).Scale(1.25), []expr.Kind{fusedGELU}},
		"gelu, doubled, twice": {gelu(x).Scale(2).Add(gelu(x).Scale(2).Exp()), []expr.Kind{fusedGELU}},
		"silu's gradient":      {silu(x).Gradient(dy)[0], []expr.Kind{fusedSiLUGrad}},
		"hardswish's":          {hardswish(x).Gradient(dy)[0], []expr.Kind{fusedHardswishGrad}},
		"gelu's":               {gelu(x).Gradient(dy)[0], []expr.Kind{fusedGELUGrad}},
		"silu of an affine":    {silu(x.Scale(1.5).Shift(.25)).Add(dy), []expr.Kind{fusedSiLU}},
		"gradient of a sum":    {gelu(x).Gradient(dy.Add(x))[0], []expr.Kind{fusedGELUGrad}},
		"two":                  {silu(x).Add(hardswish(dy)), []expr.Kind{fusedSiLU, fusedHardswish}},
		"a sigmoid read twice": {silu(x).Add(x.Sigmoid()), nil},
		"another constant":     {x.Mul(x.Shift(3).Clamp(0, 5)).Scale(1. / 6), nil},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := c.e.Nodes()
			var found []expr.Kind
			for _, n := range fuse(nodes) {
				if n.Kind >= fusedSiLU {
					found = append(found, n.Kind)
				}
			}
			slices.Sort(found)
			if !slices.Equal(found, c.fused) {
				t.Fatalf("fused kinds %v, want %v", found, c.fused)
			}
			in := [2][]float32{specials(1), make([]float32, Block)}
			if slices.ContainsFunc(nodes, func(n expr.Node) bool { return n.Kind == expr.KindArg && n.Index == 1 }) {
				in[1] = specials(2)
			}
			want := run(vec.For(simd.Go), nodes, in, false)
			switch got := run(vec.For(simd.Go), nodes, in, true); {
			case slices.ContainsFunc(found, func(k expr.Kind) bool { return k <= fusedSiLUGrad }):
				want = near(t, want, got, in, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) })
			case slices.ContainsFunc(found, func(k expr.Kind) bool { return k >= fusedGELU }):
				want = near(t, want, got, in, func(float64) float64 { return 1 })
			}
			for _, l := range simd.All() {
				got := run(vec.For(l), nodes, in, true)
				for i := range want {
					if math.Float32bits(want[i]) != math.Float32bits(got[i]) && !(want[i] != want[i] && got[i] != got[i]) {
						t.Fatalf("level %v: %v of %v and %v, want %v", l, got[i], in[0][i], in[1][i], want[i])
					}
				}
			}
		})
	}
}

// Numbers that multiply GELU give the same bits in its expression and in the next one.
func TestScaledGELU(t *testing.T) {
	x := expr.Arg(0)
	gelu := x.Mul(x.Scale(math.Sqrt2 / 2).Erf().Shift(1)).Scale(.5)
	in := [2][]float32{specials(1), specials(2)}
	k := vec.For(simd.Go)
	for name, next := range map[string]func(x expr.Expr) expr.Expr{
		"":            func(x expr.Expr) expr.Expr { return x },
		"doubled":     func(x expr.Expr) expr.Expr { return x.Scale(2) },
		"dropout":     func(x expr.Expr) expr.Expr { return expr.If(x.Less(expr.Const(1)), x.Scale(1/.9), expr.Const(0)) },
		"both":        func(x expr.Expr) expr.Expr { return x.Scale(1. / 3).Add(x.Scale(.7)) },
		"a product":   func(x expr.Expr) expr.Expr { return x.Mul(expr.Arg(1)) },
		"the inverse": func(x expr.Expr) expr.Expr { return expr.Const(1).Div(x.Neg()) },
	} {
		first := run(k, gelu.Nodes(), in, true)
		want := run(k, next(x).Nodes(), [2][]float32{first, in[1]}, true)
		for i, got := range run(k, next(gelu).Nodes(), in, true) {
			overflows := in[0][i] > math.MaxFloat32/2 // when it is doubled
			if math.Float32bits(got) != math.Float32bits(want[i]) && !(got != got && want[i] != want[i]) && !overflows {
				t.Fatalf("%s: %v of %v in one expression, %v in two", name, got, in[0][i], want[i])
			}
		}
	}
}

// near fails unless got equals want up to rounding, relative to part(x)·x. It returns got, which all levels must match
// in bits.
func near(t *testing.T, want, got []float32, in [2][]float32, part func(x float64) float64) []float32 {
	t.Helper()
	for i, w := range want {
		y, w, x, dy := float64(got[i]), float64(w), math.Abs(float64(in[0][i])), math.Abs(float64(in[1][i]))
		if y == w || math.IsInf(x, 0) || w != w && (y != y || x*max(x, dy) > math.MaxFloat32) {
			continue // ∞·0 is not a number in want alone
		}
		s := part(float64(in[0][i]))
		bound := 1e-6*(math.Abs(w)+x*s) + 1e-36
		if dy < math.Inf(1) {
			bound += 1e-6*dy*s*(1+x) + 1e-36*dy
		}
		if !(math.Abs(y-w) <= bound) {
			t.Fatalf("%v of %v and %v, want %v", y, in[0][i], in[1][i], w)
		}
	}
	return got
}

// specials are numbers of all sizes, those around the ends of branches, infinities and NaN.
func specials(seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 0))
	list := []float32{0, float32(math.Copysign(0, -1)), 3, -3, 6, -6, 1e-40, 104, -104, math.MaxFloat32,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for len(list) < Block {
		list = append(list, float32(r.NormFloat64()*math.Exp2(float64(r.IntN(12)-6))))
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// run computes an expression, with fused nodes or without.
func run(k *vec.Set, nodes []expr.Node, in [2][]float32, fused bool) []float32 {
	if fused {
		c := newCode(nodes, order{1, 1, true}, []op.Axes{op.All, op.All})
		y := make([]float32, Block)
		b := c.Bind(k, [][]float32{make([]float32, c.slots*Block)}, Block,
			[]*work.Pieces{work.Whole(in[0]), work.Whole(in[1])}, nil)
		b.Run(0, y, 0, nil)
		return y
	}
	values := make([][]float32, len(nodes))
	for i, n := range nodes {
		to := make([]float32, Block)
		var from [3][]float32
		for j, a := range n.In {
			from[j] = values[a]
		}
		switch n.Kind {
		case expr.KindArg:
			copy(to, in[n.Index])
		case expr.KindConst:
			k.Fill(to, float32(n.Value))
		default:
			compute(k, n.Kind, to, &from)
		}
		values[i] = to
	}
	return values[len(nodes)-1]
}
