//go:build gpu && cgo

package kernels

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"onlinerna/nn/op/expr"
)

// Operand is the form of an operand of a [Mapping].
type Operand struct {
	Counter bool // two int32 that count random numbers
	Whole   bool // one element for each element of the result, at the same place; otherwise elements are repeated
	Narrow  bool // elements have 16 bits
	Scaled  bool // elements are multiplied by the loss scale
}

// A Mapping is the kernel of an expression: nn_map. For each operand it takes a pointer and, if the operand is
// repeated, the strides along samples, channels and pixels. Then follow the result, its channels and pixels, whether it
// is channels-last, whether repeated operands can be read by V channels at a time, the loss scale or null, and the
// number of elements, less than 2³².
type Mapping struct {
	Expr     expr.Expr
	Operands []Operand
	Narrow   bool // elements of the result have 16 bits
	Scaled   bool // elements of the result are multiplied by the loss scale
}

// Source returns the kernel's source and its options for NVRTC. store is the 16-bit element type as for [Net], 0
// without one.
func (m Mapping) Source(store int) (source string, options []string, err error) {
	head, err := files.ReadFile("map.h")
	if err != nil {
		return "", nil, err
	}
	return WithStore(fmt.Sprintf("#line 1 \"map.h\"\n%s\n#line 1 \"map.cu\"\n// %v\n%s", head, m.Expr, m.kernel()),
		store)
}

func (m Mapping) kernel() string {
	var params, loads, steps strings.Builder
	aligned := []string{"packed(y)"}
	placed := false // some node needs an element's place
	for i, o := range m.Operands {
		element := "float"
		if o.Narrow {
			element = "T"
		}
		switch {
		case o.Counter:
			fmt.Fprintf(&params, "const int *x%d, ", i)
			fmt.Fprintf(&loads, "\t\tunsigned step%d = x%d[0], first%d = x%d[1];\n", i, i, i, i)
			placed = true
			continue
		case o.Whole:
			fmt.Fprintf(&params, "const %s *x%d, ", element, i)
			fmt.Fprintf(&loads, "\t\tfloat a%d[N];\n\t\ttake(x%d + i, a%d);\n", i, i, i)
			aligned = append(aligned, fmt.Sprintf("packed(x%d)", i))
		default:
			fmt.Fprintf(&params, "const %s *x%d, unsigned n%d, unsigned c%d, unsigned p%d, ", element, i, i, i, i)
			fmt.Fprintf(&loads, "\t\tfloat a%d[N];\n\t\tpick(x%d, Stride{n%d, c%d, p%d}, place, extents, N == 1 || "+
				"row, a%d);\n", i, i, i, i, i, i)
			placed = true
		}
		if o.Scaled {
			fmt.Fprintf(&loads, "\t\tfor (int j = 0; j < N; j++) a%d[j] *= unscale;\n", i)
		}
	}
	nodes := m.Expr.Nodes()
	for i, n := range nodes {
		kind := "float"
		if n.Kind.Truth() {
			kind = "bool"
		}
		if n.Kind == expr.KindRandom {
			fmt.Fprintf(&loads, "\t\tRandom r%d;\n\t\tr%d.drawn = false;\n", i, i)
		}
		fmt.Fprintf(&steps, "\t\t\t%s v%d = %s;\n", kind, i, formula(i, n))
	}
	var place, next string
	if placed {
		place = "\t\tExtents extents = {channels, pixels, last != 0};\n\t\tPlace place = placeOf(i, extents);\n"
		next = "\t\t\tstep(place, extents);\n"
	}
	scale := ""
	if m.Scaled {
		scale = " * rescale"
	}
	result := "float"
	if m.Narrow {
		result = "T"
	}
	return fmt.Sprintf(`extern "C" __global__ void __launch_bounds__(256, 4) nn_map(%s%s *y, unsigned channels, unsigned pixels, int last, int row, const float *scale, long long n) {
	float unscale = unscaleOf(scale), rescale = scaleOf(scale);
	elements(n, %s, [=](auto width, long long i) {
		WIDTH(width);
%s%s		float to[N];
#pragma unroll
		for (int j = 0; j < N; j++) {
%s			to[j] = v%d%s;
%s		}
		give(y + i, to);
	});
}
`, params.String(), result, strings.Join(aligned, " && "), place, loads.String(), steps.String(),
		len(nodes)-1, scale, next)
}

// formula is the C expression of a node.
func formula(i int, n expr.Node) string {
	in := make([]any, len(n.In))
	for j, a := range n.In {
		in[j] = fmt.Sprintf("v%d", a)
	}
	switch n.Kind {
	case expr.KindArg:
		return fmt.Sprintf("a%d[j]", n.Index)
	case expr.KindConst:
		return literal(n.Value)
	case expr.KindRandom:
		element := "place.p * channels + place.c"
		if n.PerSample {
			element = "0"
		}
		return fmt.Sprintf("draw(r%d, %#xu, %#xu, step%d, first%d + place.n, %s)", i, uint32(n.Key), uint32(n.Key>>32),
			n.Index, n.Index, element)
	}
	format, ok := map[expr.Kind]string{
		expr.KindNeg: "-%s", expr.KindAdd: "%s + %s", expr.KindSub: "%s - %s", expr.KindMul: "%s * %s",
		expr.KindDiv: "%s / %s",
		expr.KindMin: "least(%s, %s)", expr.KindMax: "most(%s, %s)", expr.KindExp: "expf(%s)", expr.KindLog: "logf(%s)",
		expr.KindSqrt: "sqrtf(%s)", expr.KindTanh: "tanhf(%s)", expr.KindErf: "erff(%s)",
		expr.KindSigmoid: "sigmoid(%s)",
		expr.KindLess:    "%s < %s", expr.KindLessEqual: "%s <= %s", expr.KindEqual: "%s == %s",
		expr.KindIf: "%s ? %s : %s",
	}[n.Kind]
	if !ok {
		panic(fmt.Sprintf("kernels: no formula for %v", n.Kind))
	}
	return fmt.Sprintf(format, in...)
}

// literal is a C literal of a number rounded to float32.
func literal(x float64) string {
	f := float32(x)
	if math.IsNaN(x) || math.IsInf(float64(f), 0) {
		return fmt.Sprintf("__uint_as_float(%#xu)", math.Float32bits(f))
	}
	s := strconv.FormatFloat(float64(f), 'e', -1, 32)
	return s + "f"
}
