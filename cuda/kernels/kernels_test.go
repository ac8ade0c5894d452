//go:build gpu && cgo

package kernels_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"onlinerna/cuda/check/gputest"
	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/kernels"
	"onlinerna/cuda/lazy"
	"onlinerna/cuda/nvrtc"
	"onlinerna/nn/op/expr"
	"onlinerna/nn/optim"
)

func TestMain(m *testing.M) { os.Exit(gputest.Main(m)) }

// mappings are expressions with all functions and with operands in all forms, in 16 bits if possible.
func mappings() map[string]kernels.Mapping {
	x, y := expr.Arg(0), expr.Arg(1)
	whole, large := kernels.Operand{Whole: true, Narrow: true}, kernels.Operand{Whole: true}
	gelu := x.Scale(.5).Mul(x.Scale(math.Sqrt2 / 2).Erf().Shift(1))
	all := x.Exp().Add(x.Square().Shift(1).Log().Sqrt()).Sub(x.Tanh().Neg().Div(y.Sigmoid())).
		Min(y).Max(expr.Const(math.Inf(-1)))
	all = expr.If(x.Less(y), all, expr.If(x.LessEqual(y.Scale(2)), y, expr.If(x.Equal(expr.Const(1e300)), x, y)))
	drop := expr.If(expr.Chance(expr.Random(1<<63+5, 1, false), .25), expr.Const(0), x.Mul(expr.Random(3, 1, true)))
	return map[string]kernels.Mapping{
		"gelu":     {Expr: gelu, Operands: []kernels.Operand{whole}, Narrow: true},
		"all":      {Expr: all, Operands: []kernels.Operand{whole, large}, Narrow: true},
		"repeated": {Expr: x.Mul(y), Operands: []kernels.Operand{whole, {Narrow: true}}, Narrow: true},
		"weights":  {Expr: x.Mul(y).Add(expr.Arg(2)), Operands: []kernels.Operand{whole, {}, {}}, Narrow: true},
		"gradient": {Expr: gelu.Gradient(y)[0], Operands: []kernels.Operand{whole,
			{Whole: true, Narrow: true, Scaled: true}}, Narrow: true, Scaled: true},
		"dropout": {Expr: drop, Operands: []kernels.Operand{whole, {Counter: true}}, Narrow: true},
	}
}

// The kernels compile for all relevant GPUs, whichever this machine has. With NVIDIA's NVRTC and no driver, as in
// RNA_CUDA_LIBS=folder, this needs no GPU. (NVRTC 13.5 crashes in a process that has the stand-in's driver.)
func TestKernelsCompile(t *testing.T) {
	gputest.NeedLibrary(t, lazy.NVRTC)
	names, err := kernels.Names()
	gputest.Check(t, err)
	type source struct {
		name, text string
		options    []string
	}
	var sources []source
	for _, name := range names {
		if name == "rna.cu" {
			sources = append(sources, source{name, kernels.RNA(), nil})
			continue
		}
		for store := range 3 {
			if sim.Active() && store > 0 {
				break // the tests of nets compile them, too
			}
			text, options, err := kernels.Net(name, store)
			gputest.Check(t, err)
			sources = append(sources, source{name, text, options})
		}
	}
	for name, m := range mappings() {
		for store := range 3 {
			if sim.Active() && store > 0 {
				break // the tests of nets compile them, too
			}
			if store == 0 { // all elements are float32
				m.Narrow = false
				for i := range m.Operands {
					m.Operands[i].Narrow = false
				}
			}
			text, options, err := m.Source(store)
			gputest.Check(t, err)
			sources = append(sources, source{name, text, options})
			m = mappings()[name]
		}
	}
	for _, d := range optim.All() {
		for i, p := range d.Make(optim.Hyper{Of: d.Takes, Decay: .1}).Passes() {
			for store := range 3 {
				if sim.Active() && store > 0 {
					break // the tests of nets compile them, too
				}
				text, options, err := kernels.Step(p, store)
				gputest.Check(t, err)
				sources = append(sources, source{fmt.Sprint(d.Name, i), text, options})
			}
		}
	}
	archs := []int{75, 80, 86, 89, 90, 100, 120}
	version, err := nvrtc.Version()
	gputest.Check(t, err)
	switch {
	case sim.Active():
		archs = []int{90} // the stand-in ignores the architecture
	case !strings.HasPrefix(version, "13."):
		archs = []int{70, 90} // NVRTC 13 lacks sm_70
	case lazy.Driver.Load() != nil: // without a card this is the check that docs/gpu.md describes
		if version != gputest.NVRTC {
			t.Errorf("NVRTC %s judges the kernels, docs/gpu.md says %s, %v: gputest.NVRTC, .ci/run, "+
				"scripts/ptx_check.sh and scripts/cudnn_check.sh name it", version, gputest.NVRTC, err)
		}
	}
	// wanted reports whether a source is compiled for an architecture: in all element types for one by the newest
	// compiler, in the usual one for the others. Cards before sm_80 have float16; their ranks send bfloat16.
	wanted := func(x source, arch int) bool {
		if arch == 90 && archs[0] == 75 || len(x.options) == 0 || sim.Active() {
			return true
		}
		store := x.options[0]
		if arch < 80 {
			return store == "-DSTORE=2" || store == "-DSTORE=1" && (x.name == "ranks.cu" || x.name == "vector.cu")
		}
		return store == "-DSTORE=1"
	}
	var table resources
	t.Run("all", func(t *testing.T) {
		for _, arch := range archs {
			for _, x := range sources {
				if !wanted(x, arch) {
					continue
				}
				name := x.name + strings.Join(x.options, "")
				t.Run(fmt.Sprintf("%s/%d", name, arch), func(t *testing.T) {
					t.Parallel()
					image, compiler, err := nvrtc.Image(arch, x.name, x.text, x.options...)
					if err != nil || len(image) == 0 {
						t.Fatalf("%d bytes, %v", len(image), err)
					}
					t.Logf("%s for sm_%d by NVRTC %s: %d bytes", x.name, arch, compiler, len(image))
					if !sim.Active() {
						table.check(t, name, arch, image, version == gputest.NVRTC && slices.Contains(tuned, arch))
					}
				})
			}
		}
	})
	if !sim.Active() {
		t.Log(table.String())
	}
}
