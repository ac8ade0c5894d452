package op_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/op"
)

// The examples have every type of the package that has a Kind.
func TestExamplesAreComplete(t *testing.T) {
	have := map[string]bool{}
	for _, e := range examples(op.Float32) {
		have[reflect.TypeOf(e.op).Name()] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != "Kind" || f.Recv == nil {
				continue
			}
			found++
			if typ := fmt.Sprint(f.Recv.List[0].Type); !have[typ] {
				t.Errorf("%s: no example of %s", name, typ)
			}
		}
	}
	if found != len(have) {
		t.Errorf("%d ops in the source, %d in the examples", found, len(have))
	}
}

// Infer refuses operands of the wrong number, type, rank and extent with an error that names the op and all operands,
// Run refuses them with the same error, and accepts all operands that Infer accepts.
func TestMisfits(t *testing.T) {
	refused := 0
	for _, e := range examples(op.Float64) {
		for what, in := range misfits(e.in) {
			typ, err := e.op.Infer(in...)
			operands := make([]op.Tensor, len(in))
			for i, u := range in {
				operands[i] = op.New(u)
			}
			if ran := e.op.Run(op.New(typ), operands...); fmt.Sprint(ran) != fmt.Sprint(err) {
				t.Errorf("%v, %s: Infer says %v, Run says %v", e.op, what, err, ran)
			}
			if err == nil {
				if !mayFit(e.op, what, len(in)) {
					t.Errorf("%v, %s: %v fit", e.op, what, in)
				}
				continue
			}
			refused++
			if typ.DType != 0 || typ.Shape != nil {
				t.Errorf("%v, %s: %v beside an error", e.op, what, typ)
			}
			parts := []string{e.op.String()}
			for _, u := range in {
				parts = append(parts, u.String())
			}
			for _, p := range parts {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("%v, %s: %q lacks %q", e.op, what, err, p)
				}
			}
			if d, ok := e.op.(op.Differentiable); ok {
				if _, got := d.Gradients(in...); fmt.Sprint(got) != err.Error() {
					t.Errorf("%v, %s: Infer says %v, Gradients %v", e.op, what, err, got)
				}
			}
		}
	}
	if refused < 500 {
		t.Errorf("only %d misfits were refused", refused)
	}
}

// misfits are changes that make operands invalid, by name.
func misfits(in []op.Type) map[string][]op.Type {
	extra := op.T(op.Float64, 6)
	m := map[string][]op.Type{
		"none":             nil,
		"without the last": in[:len(in)-1],
		"one more":         append(slices.Clone(in), extra),
		"two more":         append(slices.Clone(in), extra, extra),
	}
	floats := 0
	for _, t := range in {
		if t.DType.Float() {
			floats++
		}
	}
	for i, t := range in {
		change := func(what string, d op.DType, s op.Shape) {
			c := slices.Clone(in)
			c[i] = op.Type{DType: d, Shape: s}
			m[fmt.Sprintf("%s of operand %d", what, i)] = c
		}
		for d := range op.Uint8 + 1 {
			if bothFloat := d.Float() && t.DType.Float(); d != t.DType && (floats > 1 || !bothFloat) {
				change(d.String(), d, t.Shape)
			}
		}
		change("rank + 1", t.DType, append(slices.Clone(t.Shape), 2))
		if n := len(t.Shape); n > 0 {
			change("rank − 1", t.DType, t.Shape[:n-1])
		}
		for k, old := range t.Shape {
			for _, d := range []int{1, old - 1, old + 1} {
				s := slices.Clone(t.Shape)
				s[k] = d
				if d > 0 && d != old {
					change(fmt.Sprintf("extent %d = %d", k, d), t.DType, s)
				}
			}
			s := slices.Clone(t.Shape)
			s[k] = 0
			change(fmt.Sprintf("nothing along %d", k), t.DType, s)
		}
	}
	return m
}

// mayFit reports whether an op may take operands that were changed: other ranks and extents, and n operands instead of
// the example's number.
func mayFit(o op.Op, what string, n int) bool {
	switch o.(type) {
	case op.Attention: // with and without a bias
		if n == 3 && what == "without the last" {
			return true
		}
	case op.SelfAttention, op.SelfAttentionGrad:
		if what == "without the last" && n == 1 {
			return true
		}
	case op.Concat:
		if what == "without the last" {
			return true
		}
	case op.Conv2D, op.Linear: // with and without a bias
		if n == 2 || n == 3 {
			return !strings.HasPrefix(what, "nothing") && !strings.Contains(what, "int") &&
				!strings.Contains(what, "float")
		}
		return false
	}
	return strings.HasPrefix(what, "extent") || strings.HasPrefix(what, "rank")
}

// Attributes that make no sense are refused, whatever the operands, and the error says why.
func TestBadAttributes(t *testing.T) {
	f := func(shape ...int) op.Type { return op.T(op.Float32, shape...) }
	x, w, y := f(2, 4, 6, 6), f(4, 4, 3, 3), f(2, 4, 4, 4)
	pixels, crops := op.T(op.Uint8, 2, 6, 6, 1), op.T(op.Int32, 2, 3)
	stats, vector := f(2, 4), f(4)
	logits, labels := f(2, 4), op.T(op.Int32, 2)
	one := []float64{1}
	for _, c := range []struct {
		op   op.Op
		in   []op.Type
		want string
	}{
		{op.Conv2D{Stride: [2]int{-1, 1}}, []op.Type{x, w}, "negative"},
		{op.Conv2D{Pad: [2]int{0, -1}}, []op.Type{x, w}, "negative"},
		{op.Conv2D{Dilation: [2]int{1, -2}}, []op.Type{x, w}, "negative"},
		{op.Conv2D{Groups: -1}, []op.Type{x, w}, "negative"},
		{op.Conv2D{Groups: 3}, []op.Type{x, w}, "3 groups"},
		{op.Conv2D{Groups: 2}, []op.Type{x, w}, "weight wants 8"},
		{op.Conv2D{Dilation: [2]int{3, 1}}, []op.Type{x, w}, "spans 7"},
		{op.Conv2D{}, []op.Type{x, w, f(3)}, "bias has 3"},
		{op.Conv2D{}, []op.Type{x, f(4, 3, 3, 3)}, "weight wants 3"},
		{op.Conv2DGradInput{Input: op.Shape{2, 4, 6}}, []op.Type{w, y}, "4 dimensions"},
		{op.Conv2DGradInput{Input: op.Shape{2, 4, 6, 5}}, []op.Type{w, y}, "[2 4 4 3]"},
		{op.Conv2DGradInput{Conv2D: op.Conv2D{Pad: [2]int{3, 0}}, Input: op.Shape{2, 4, 0, 6}}, []op.Type{w, y},
			"1 or more"},
		{op.Conv2DGradWeight{Weight: op.Shape{4, 4, 3, 2}}, []op.Type{x, y}, "[2 4 4 5]"},
		{op.Conv2DGradWeight{Conv2D: op.Conv2D{Stride: [2]int{2, 1}}, Weight: op.Shape{4, 4, 0, 3}}, []op.Type{x, y},
			"1 or more"},
		{op.MaxPool{}, []op.Type{x}, "at least 1"},
		{op.MaxPool{Kernel: [2]int{2, 2}, Stride: [2]int{-1, 1}}, []op.Type{x}, "at least 1"},
		{op.MaxPool{Kernel: [2]int{3, 3}, Pad: [2]int{2, 0}}, []op.Type{x}, "half the kernel"},
		{op.MaxPool{Kernel: [2]int{7, 1}}, []op.Type{x}, "kernel 7"},
		{op.MaxPoolGrad{MaxPool: op.MaxPool{Kernel: [2]int{2, 2}}}, []op.Type{x, x}, "[2 4 3 3]"},
		{op.AvgPool{Kernel: [2]int{2, 2}, Pad: [2]int{-1, 0}}, []op.Type{x}, "not negative"},
		{op.AvgPoolGrad{AvgPool: op.AvgPool{Kernel: [2]int{2, 2}}, Input: x.Shape}, []op.Type{x}, "[2 4 3 3]"},
		{op.AvgPoolGrad{AvgPool: op.AvgPool{Kernel: [2]int{2, 2}, Pad: [2]int{1, 1}}, Input: op.Shape{1, 1, 0, 0}},
			[]op.Type{f(1, 1, 1, 1)}, "1 or more"},
		{op.GlobalAvgPoolGrad{Input: op.Shape{2, 4, 0, 0}}, []op.Type{stats}, "1 or more"},
		{op.GlobalAvgPoolGrad{Input: op.Shape{2, 3, 5, 5}}, []op.Type{stats}, "[N C]"},
		{op.Shortcut{Stride: -1, Channels: 4}, []op.Type{x}, "negative"},
		{op.Shortcut{Channels: 3}, []op.Type{x}, "do not fit into 3"},
		{op.ShortcutGrad{Shortcut: op.Shortcut{Channels: 4}, Input: op.Shape{2, -1, 6, 6}}, []op.Type{x}, "1 or more"},
		{op.ShortcutGrad{Shortcut: op.Shortcut{Channels: 4}, Input: op.Shape{2, 2, 6, 5}}, []op.Type{x}, "[2 4 6 5]"},
		{op.Reduce{By: 3}, []op.Type{x}, "no such reduction"},
		{op.Reduce{Axes: []int{4}}, []op.Type{x}, "no axis 4"},
		{op.Reduce{Axes: []int{1, 1}}, []op.Type{x}, "ascend"},
		{op.MatMul{}, []op.Type{x, f(2, 3, 6, 6)}, "but for the last two"},
		{op.MatMul{}, []op.Type{f(2, 3), f(2, 3)}, "columns of 2"},
		{op.Permute{Axes: []int{0, 1, 3, 3}}, []op.Type{x}, "0 to 3"},
		{op.Slice{From: []int{0, 2}, To: []int{2, 5}}, []op.Type{stats}, "elements 2 to 4 of 4 along axis 1"},
		{op.Slice{From: []int{0, 2}, To: []int{2}}, []op.Type{stats}, "begins at 2"},
		{op.Pad{Before: []int{0, -1}, After: []int{0, 0}}, []op.Type{stats}, "negative"},
		{op.Pad{Before: []int{0, 0}, After: []int{0}}, []op.Type{stats}, "2 dimensions"},
		{op.Concat{Axis: 2}, []op.Type{stats}, "no such axis"},
		{op.Concat{Axis: 1}, []op.Type{stats, f(3, 4)}, "3 elements along axis 0"},
		{op.Concat{}, []op.Type{stats, vector}, "2 dimensions"},
		{op.Expand{Shape: op.Shape{2, 5}}, []op.Type{stats}, "cannot be repeated to 5"},
		{op.Gather{Axis: 2}, []op.Type{stats, labels}, "no such axis"},
		{op.GatherGrad{Axis: 2, Extent: 1}, []op.Type{stats, labels}, "no such axis"},
		{op.GatherGrad{}, []op.Type{stats, labels}, "1 or more"},
		{op.LayerNorm{Eps: -1}, []op.Type{stats, vector, vector}, "eps"},
		{op.GroupNorm{Groups: 3}, []op.Type{stats, vector, vector}, "4 channels"},
		{op.Attention{}, []op.Type{f(2, 3, 4), f(2, 3, 4), f(2, 3, 4)}, "scale"},
		{op.AttentionGrad{Scale: 1, By: 3}, []op.Type{f(2, 3, 4), f(2, 3, 4), f(2, 3, 4), f(2, 3, 4)}, "0 to 2"},
		{op.AttentionGrad{Scale: 1}, []op.Type{f(2, 3, 4), f(2, 3, 4), f(2, 3, 5), f(2, 3, 4)}, "[2 3 5]"},
		{op.AttentionGrad{Scale: 1}, []op.Type{f(2, 3, 4), f(2, 3, 5), f(2, 3, 5), f(2, 3, 5)}, "keys 2 of 5"},
		{op.SelfAttention{Tokens: 3, Heads: 1}, []op.Type{f(6, 3)}, "scale"},
		{op.SelfAttention{Heads: 1, Scale: 1}, []op.Type{f(6, 3)}, "positive"},
		{op.SelfAttention{Tokens: 4, Heads: 1, Scale: 1}, []op.Type{f(6, 3)}, "sequences of 4"},
		{op.SelfAttention{Tokens: 3, Heads: 2, Scale: 1}, []op.Type{f(6, 9)}, "2 heads"},
		{op.SelfAttention{Tokens: 3, Heads: 2, Scale: 1}, []op.Type{f(6, 12), f(3, 3, 3)}, "divides 4"},
		{op.SelfAttentionGrad{Tokens: 3, Heads: 1, Scale: 1}, []op.Type{f(6, 3), f(6, 3)}, "[6 1]"},
		{op.Planes{Height: 2, Width: 2}, []op.Type{f(2, 3, 4)}, "3 rows"},
		{op.Filters{Height: 2, Width: 2}, []op.Type{f(1, 3, 5, 2)}, "2·2 rows"},
		{op.Filters{Height: 2, Width: 2}, []op.Type{f(2, 3, 4, 2)}, "an image"},
		{op.Row{Index: 2}, []op.Type{stats}, "no such row"},
		{op.Row{Index: -1}, []op.Type{stats}, "no such row"},
		{op.Reshape{Shape: op.Shape{3, 3}}, []op.Type{stats}, "8 elements"},
		{op.Reshape{Shape: op.Shape{-2, -4}}, []op.Type{stats}, "[-2 -4]"},
		{op.BatchNorm{Eps: -1}, []op.Type{x, stats, vector, vector}, "eps"},
		{op.BatchNorm{}, []op.Type{x, stats, vector, f(3)}, "4 channels"},
		{op.BatchNorm{}, []op.Type{x, f(3, 4), vector, vector}, "4 channels"},
		{op.BatchNormGradSums{Eps: -1}, []op.Type{x, stats, x}, "eps"},
		{op.BatchNormGradInput{Eps: -1}, []op.Type{x, stats, vector, stats, x}, "eps"},
		{op.BatchNormUpdate{}, []op.Type{stats, stats, f(1)}, "variance"},
		{op.BatchNormUpdate{Count: 1}, []op.Type{stats, stats, f(1)}, "variance"},
		{op.SoftmaxCrossEntropy{Smoothing: 1}, []op.Type{logits, labels}, "smoothing"},
		{op.SoftmaxCrossEntropyGrad{Smoothing: -.1}, []op.Type{logits, labels, f()}, "smoothing"},
		{op.SoftmaxCrossEntropy{}, []op.Type{logits, op.T(op.Int32, 3)}, "3 labels"},
		{op.Images{Height: 2, Width: 2, Mean: one, Std: one}, []op.Type{pixels, crops}, "floating-point"},
		{op.Images{DType: op.Float32, Width: 2, Mean: one, Std: one}, []op.Type{pixels, crops}, "1×1"},
		{op.Images{DType: op.Float32, Height: 2, Width: 2, Mean: one}, []op.Type{pixels, crops}, "1 values"},
		{op.Images{DType: op.Float32, Height: 2, Width: 2, Mean: one, Std: []float64{0}}, []op.Type{pixels, crops},
			"positive"},
	} {
		_, err := c.op.Infer(c.in...)
		if err == nil || !strings.HasPrefix(err.Error(), c.op.String()) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.op, err, c.want)
		}
	}
}

// Run refuses tensors whose data do not match their shape or Infer's type.
func TestRunRefusesBrokenTensors(t *testing.T) {
	for _, e := range examples(op.Float64) {
		typ, err := e.op.Infer(e.in...)
		if err != nil {
			t.Fatal(err)
		}
		tensors := func() []op.Tensor { // the result, then the operands
			all := []op.Tensor{op.New(typ)}
			for _, in := range e.in {
				all = append(all, op.New(in))
			}
			return all
		}
		refuses := func(what string, all []op.Tensor) {
			t.Helper()
			if err := e.op.Run(all[0], all[1:]...); err == nil || !strings.Contains(err.Error(), e.op.String()) {
				t.Errorf("%v, %s: error %v", e.op, what, err)
			}
		}
		for i, x := range tensors() {
			for what, data := range map[string]any{
				"short":   reflect.ValueOf(x.Data).Slice(0, x.Shape.Size()-1).Interface(),
				"empty":   reflect.Zero(reflect.TypeOf(x.Data)).Interface(),
				"nil":     nil,
				"strings": make([]string, x.Shape.Size()),
			} {
				all := tensors()
				all[i].Data = data
				refuses(fmt.Sprintf("%s data in tensor %d", what, i-1), all)
			}
		}
		all := tensors()
		all[0] = op.New(op.Type{DType: op.Float32, Shape: typ.Shape})
		refuses("a result of another type", all)
		all[0] = op.New(op.Type{DType: op.Float64, Shape: append(slices.Clone(typ.Shape), 1)})
		refuses("a result of another shape", all)
	}
}
