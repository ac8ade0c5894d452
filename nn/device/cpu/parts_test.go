package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/simd"
	"onlinerna/nn/device/cpu/internal/kern"
	"onlinerna/nn/op"
)

// partWays opens devices that multiply float32 in the given parts in all ways: by the definition, by AVX-512 and by
// AMX.
func partWays(t *testing.T, parts, threads int, f func(name string, d *Device)) {
	way := func(name string, l simd.Level, change func(d *Device, parts int)) {
		defer use(l)()
		d, err := New(Options{Threads: threads, Level: at.String()})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		change(d, parts)
		f(name, d)
	}
	way("definition", simd.Best(), InPartsByDefinition)
	if simd.Best() == simd.AVX512 {
		way("vectors", simd.Best(), InPartsByVectors)
	}
	if simd.LacksAMX() == nil {
		way("amx", simd.AMX, InParts)
	}
}

// partCases are convolutions and linear layers.
var partCases = []struct {
	o    op.Conv2D
	x, w op.Shape
}{
	{op.Conv2D{}, op.Shape{3, 64, 7, 7}, op.Shape{80, 64, 1, 1}},
	{op.Conv2D{Pad: [2]int{1, 1}}, op.Shape{2, 48, 9, 7}, op.Shape{33, 48, 3, 3}},
	{op.Conv2D{Pad: [2]int{3, 3}, Stride: [2]int{2, 2}}, op.Shape{2, 3, 21, 20}, op.Shape{20, 3, 7, 7}},
	{op.Conv2D{Pad: [2]int{2, 2}, Dilation: [2]int{2, 2}}, op.Shape{1, 131, 6, 5}, op.Shape{40, 131, 3, 3}},
	{op.Conv2D{Pad: [2]int{1, 1}, Stride: [2]int{2, 2}}, op.Shape{2, 80, 9, 8}, op.Shape{70, 80, 3, 3}},
	{op.Conv2D{}, op.Shape{1, 1025, 3, 3}, op.Shape{17, 1025, 1, 1}},
	{op.Conv2D{Pad: [2]int{1, 1}}, op.Shape{2, 300, 3, 5}, op.Shape{36, 300, 3, 3}},
	{op.Conv2D{}, op.Shape{1, 30, 1, 1}, op.Shape{16, 30, 1, 1}},
	{op.Conv2D{Pad: [2]int{1, 1}, Groups: 2}, op.Shape{3, 48, 9, 7}, op.Shape{40, 24, 3, 3}},
	{op.Conv2D{Stride: [2]int{2, 2}}, op.Shape{3, 40, 15, 14}, op.Shape{72, 40, 1, 1}},
	{op.Conv2D{}, op.Shape{1, 24, 61, 50}, op.Shape{20, 24, 1, 1}},
	{op.Conv2D{Pad: [2]int{1, 1}, Groups: 8}, op.Shape{2, 32, 8, 7}, op.Shape{32, 4, 3, 3}},
	{op.Conv2D{}, op.Shape{9, 77}, op.Shape{45, 77}},
	{op.Conv2D{}, op.Shape{32, 600}, op.Shape{10, 600}},
	{op.Conv2D{}, op.Shape{20, 1500}, op.Shape{40, 1500}},
}

// numberKinds make operands whose sums are hard.
func numberKinds(r *rand.Rand) map[string]func(i int) float32 {
	return map[string]func(i int) float32{
		"normal":           func(int) float32 { return float32(r.NormFloat64()) },
		"positive":         func(int) float32 { return float32(math.Abs(r.NormFloat64())) },
		"mixed magnitudes": func(int) float32 { return float32(r.NormFloat64() * math.Exp2(float64(r.IntN(41)-20))) },
		"cancellation": func(i int) float32 { // pairs of neighbours all but cancel
			return float32(1+1e-3*r.NormFloat64()) * float32(1-2*(i%2))
		},
		"small": func(int) float32 { return float32(r.NormFloat64() * 0x1p-50) },
		"large": func(int) float32 { return float32(r.NormFloat64() * 0x1p50) },
	}
}

// set uploads operands made by f to the inputs and the weights of a program.
func (b *builder) set(d *Device, k *bound, values []int, f func(i int) float32) {
	for _, v := range values {
		x := op.New(op.Type{DType: op.Float32, Shape: b.Values[v].Type.Shape})
		list := x.Data.([]float32)
		for i := range list {
			list[i] = f(i)
		}
		if err := d.Upload(k.regions[v], b.Values[v].Layout, x); err != nil {
			b.tb.Fatal(err)
		}
	}
}

// Products of float32 in parts: the errors of six terms are at most those of direct sums of float32, or four roundings
// of the largest element, and the errors of three terms stay below the limit in Options. All ways have equal bits, for
// any number of threads.
func TestParts(t *testing.T) {
	for _, c := range partCases {
		for parts := 2; parts <= 3; parts++ {
			if testing.Short() && (parts == 2 || c.x.Size() > 1e4) {
				continue
			}
			t.Run(fmt.Sprintf("%v, %v, %d parts", c.x, c.w, parts), func(t *testing.T) {
				b, made := products(t, c.o, c.x, c.w, false)
				inputs := b.operands()
				for kind, f := range numberKinds(rand.New(rand.NewPCG(4, 4))) {
					if (kind == "small" || kind == "large" || kind == "positive") && c.x.Size() > 4e3 {
						continue
					}
					if kind != "mixed magnitudes" && (testing.Short() || parts == 2 && kind != "normal") {
						continue
					}
					var want [][]float32
					errors := map[string]map[string]float64{}
					run := func(name string, d *Device) {
						k := bind(t, d, &b.Program, b.weights, b.alone())
						defer k.free()
						r := rand.New(rand.NewPCG(4, uint64(c.x.Size())))
						f = numberKinds(r)[kind]
						b.set(d, k, inputs, f)
						k.run(t)
						if name == "direct" || want == nil {
							errors[name] = b.errors(d, k)
						}
						if name == "direct" {
							return
						}
						var got [][]float32
						for _, v := range made {
							got = append(got, k.numbers(t, d, b.Values[v], v))
						}
						if want == nil {
							want = got
						}
						if !slices.EqualFunc(got, want, slices.Equal) {
							t.Errorf("%s: %s has other bits than the definition", kind, name)
						}
					}
					direct, err := New(Options{Threads: 2, Level: simd.Best().String(), Direct: true})
					if err != nil {
						t.Fatal(err)
					}
					run("direct", direct)
					direct.Close()
					partWays(t, parts, 2, run)
					if kind == "mixed magnitudes" {
						partWays(t, parts, 5, run)
					}
					for pass, e := range errors["definition"] {
						limit := max(errors["direct"][pass], 0x1p-22)
						if parts == 2 {
							limit = 2e-5
						}
						t.Logf("%s, %s: error %.2g, direct %.2g", kind, pass, e, errors["direct"][pass])
						if !(e <= limit) {
							t.Errorf("%s: %s: error %.3g of the largest element, limit %.3g", kind, pass, e, limit)
						}
					}
				}
			})
		}
	}
}

// operands are the values that a program is given.
func (b *builder) operands() (list []int) {
	made := map[int]bool{}
	for _, s := range b.Steps {
		made[s.Out] = true
	}
	for v := range b.Values {
		if !made[v] {
			list = append(list, v)
		}
	}
	return list
}

// Numbers that are not finite, and those whose first part is not, have the results of direct sums.
func TestPartsKeepInfinities(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range partCases {
		if c.o.Groups == 8 || c.x.Size() > 5e3 {
			continue
		}
		for _, v := range []float32{-inf, nan, 3.395e38} {
			for which := range 2 {
				t.Run(fmt.Sprintf("%v, %v, %v in operand %d", c.x, c.w, v, which), func(t *testing.T) {
					b, _ := products(t, c.o, c.x, c.w, false)
					inputs := b.operands()
					partWays(t, 3, 3, func(name string, d *Device) {
						k := bind(t, d, &b.Program, b.weights, b.alone())
						defer k.free()
						r := rand.New(rand.NewPCG(4, 9))
						b.set(d, k, inputs, func(i int) float32 { return .125 * (.5 + r.Float32()) })
						b.set(d, k, inputs[which:which+1], func(i int) float32 {
							if i == 37 {
								return v
							}
							return .125 * (.5 + r.Float32())
						})
						k.run(t)
						b.compareDirect(t, name, d, k, which == 1 && c.o.Pad[0] > 0)
					})
				})
			}
		}
	}
}

// compareDirect compares results with float64's, as float32: those that are not finite are the same.
func (b *builder) compareDirect(t *testing.T, name string, d *Device, k *bound, padded bool) {
	t.Helper()
	for _, s := range b.Steps {
		var in []op.Tensor
		for _, v := range s.In {
			x := op.New(op.Type{DType: op.Float64, Shape: b.Values[v].Type.Shape})
			if err := d.Download(x, k.regions[v], b.Values[v].Layout); err != nil {
				t.Fatal(err)
			}
			in = append(in, x)
		}
		exact := op.New(op.Type{DType: op.Float64, Shape: b.Values[s.Out].Type.Shape})
		if err := s.Op.Run(exact, in...); err != nil {
			t.Fatal(err)
		}
		got, special := k.numbers(t, d, b.Values[s.Out], s.Out), 0
		for i, x := range exact.Data.([]float64) {
			want := float32(x)
			if !kern.Finite(want) {
				special++
			}
			close := math.Abs(float64(got[i])-x) <= 1e-5*math.Abs(x)
			if _, grad := s.Op.(op.Conv2DGradInput); grad && got[i] != got[i] && padded {
				continue // zeros around the gradient times a weight that is not finite
			}
			if !(got[i] == want || got[i] != got[i] && want != want || kern.Finite(want) && close) {
				t.Fatalf("%s: %s: element %d is %v, want %v", name, s.Op.Kind(), i, got[i], want)
			}
		}
		t.Logf("%s: %d of %d not finite", s.Op.Kind(), special, len(got))
	}
}

// The tests of other products hold in parts too.
func TestPartsAsOthers(t *testing.T) {
	if simd.LacksAMX() == nil {
		t.Cleanup(use(simd.AMX))
	} else if testing.Short() {
		t.Skip("the definition is slow")
	}
	inParts = 3
	defer func() { inParts = 0 }()
	t.Run("groups", TestGroupsEqualSingleSteps)
	t.Run("gradients in groups", TestGradInputGroups)
	t.Run("evaluation in groups", TestEvaluationGroups)
	if at == simd.AMX {
		t.Run("workers", TestWorkersGiveEqualBits)
	}
	t.Run("expressions", TestExpressionGroups)
	t.Run("NaN", TestNaNIsNotHidden)
	t.Run("steady state", func(t *testing.T) { steady(t, open(t, 3)) })
}

// Float32 chooses how products run where the level has AMX, and bf16x3 is an error elsewhere.
func TestFloat32Option(t *testing.T) {
	amx := simd.LacksAMX() == nil
	for _, c := range []struct {
		level, way string
		bfloat16   bool
		want       string // empty: an error
	}{
		{"", "bf16x7", false, ""},
		{"go", "", false, Direct}, {"go", BF16x6, false, Direct}, {"go", Direct, false, Direct}, {"go", BF16x3, false, ""},
		{"go", BF16x6, true, Direct}, {"go", BF16x3, true, ""},
		{"amx", "", false, BF16x6}, {"amx", BF16x6, false, BF16x6}, {"amx", BF16x3, false, BF16x3},
		{"amx", Direct, false, Direct},
		{"amx", "", true, Direct}, {"amx", BF16x3, true, ""},
	} {
		if c.level == "amx" && !amx {
			continue
		}
		d, err := New(Options{Threads: 1, Level: c.level, Float32: c.way, BFloat16: c.bfloat16})
		if err != nil {
			if c.want != "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if d.Float32() != c.want {
			t.Errorf("%+v: %s", c, d.Float32())
		}
		if tiles := d.tiles != nil && d.tiles.Parts > 0; tiles != (c.want == BF16x6 || c.want == BF16x3) {
			t.Errorf("%+v: tiles of parts: %v", c, tiles)
		}
		d.Close()
	}
}
