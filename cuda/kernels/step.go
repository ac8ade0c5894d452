//go:build gpu && cgo

package kernels

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"onlinerna/nn/op/expr"
	"onlinerna/nn/op/update"
)

// Step returns the source of an optimiser's pass and its options for NVRTC: the kernel nn_step runs the pass, and
// nn_ratios computes the tensors' ratios after a pass that measures. store is as for [Net].
func Step(p update.Pass, store int) (source string, options []string, err error) {
	head, err := numbered("map.h", "vector.h", "step.h")
	if err != nil {
		return "", nil, err
	}
	body, err := stepKernels(&p)
	if err != nil {
		return "", nil, err
	}
	return WithStore(head+"#line 1 \"step.cu\"\n"+body, store)
}

// stepKernels writes the parts specific to a pass: functions of scalars in double, of an element in float, and the
// kernels.
func stepKernels(p *update.Pass) (string, error) {
	nodes, results := update.Compile(p).Nodes()
	var scalars strings.Builder
	for i, n := range nodes {
		f, err := scalarFormula(n)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&scalars, "\t%s v%d = %s;\n", kindOf(n, "double"), i, f)
	}
	last := len(results) - 1 // the ratio
	var coefficients strings.Builder
	for i, r := range results[:last] {
		fmt.Fprintf(&coefficients, "\tc[%d] = v%d;\n", i, r)
	}
	var corrections strings.Builder
	for i, b := range p.Betas {
		at, _ := update.Corrections[i].IsArg()
		if slices.ContainsFunc(nodes, func(n expr.Node) bool { return n.Kind == expr.KindArg && n.Index == at }) {
			fmt.Fprintf(&corrections, "\ts[%d] = correction(%s, s[STEPS]);\n", at, double(b))
		}
	}
	takes := map[update.Parts]string{update.All: "true", update.Matrices: "p.rows > 0",
		update.Rest: "p.rows == 0"}[p.On]
	measured := ""
	if p.Measures() {
		measured = `
		x = reduce(x);
		__syncthreads();
		y = reduce(y);
		__syncthreads();
		if (threadIdx.x == 0) sums[2 * k] = x, sums[2 * k + 1] = y;`
	}
	text := fmt.Sprintf(`// corrections sets those of the scalars that the betas make.
__device__ void corrections(double *s) {
%s}

__device__ void coefficientsOf(const double *s, float *c) {
%s%s}

__device__ double ratioOf(const double *s) {
%s	return v%d;
}

%s
__device__ bool takes(Part p) { return %s; }

extern "C" __global__ void __launch_bounds__(threads, 4) nn_step(STEP, const double *ratios, double *sums) {
	if (loss && loss->bad || guard && strange(*guard)) return;
	__shared__ double s[SCALARS];
	__shared__ float shared[coefficients];
	double base = 0, lastRatio = 0;
	if (threadIdx.x == 0) {
		numbersOf(s, NUMBERS);
		corrections(s);
		base = s[RATE];
	}
	float c[coefficients];
	Part last = {0, 0, -1, 0, 0, 0, 0};
	for (int k = blockIdx.x; k < count; k += gridDim.x) {
		Part p = parts[k];
		if (!takes(p)) continue;
		double ratio = ratios ? ratios[p.tensor] : 1;
		if (last.tensor < 0 || p.decays != last.decays || p.rate != last.rate || p.rows != last.rows || p.columns != last.columns ||
			ratio != lastRatio) {
			__syncthreads();
			if (threadIdx.x == 0) {
				partOf(s, p, base, ratio);
				coefficientsOf(s, shared);
			}
			__syncthreads();
			for (int j = 0; j < coefficients; j++) c[j] = shared[j];
			last = p, lastRatio = ratio;
		}
		double x = 0, y = 0;
		for (long long i = p.off + threadIdx.x; i < p.off + p.len; i += blockDim.x)
			element(w, copy, grad, first, second, i, c, x, y);%s
	}
}
`, corrections.String(), scalars.String(), coefficients.String(), scalars.String(), results[last], element(p), takes,
		measured)
	if !p.Measures() {
		return text, nil
	}
	return text + `
// nn_ratios adds up the sums of each tensor's parts, of which the first is given. A block is a tensor.
extern "C" __global__ void __launch_bounds__(threads, 4) nn_ratios(STEP, const double *sums, const int *starts,
																   double *ratios) {
	double x = 0, y = 0;
	int from = starts[blockIdx.x], to = starts[blockIdx.x + 1];
	for (int k = from + threadIdx.x; k < to; k += threads) {
		x += sums[2 * k];
		y += sums[2 * k + 1];
	}
	x = reduce(x);
	__syncthreads();
	y = reduce(y);
	if (threadIdx.x != 0) return;
	ratios[blockIdx.x] = 1;
	if (from == to || !parts[from].decays || !takes(parts[from]) || !(x > 0 && y > 0)) return;
	double s[SCALARS];
	numbersOf(s, NUMBERS);
	corrections(s);
	partOf(s, parts[from], s[RATE], 1);
	s[NORM] = sqrt(x), s[NORM + 1] = sqrt(y);
	ratios[blockIdx.x] = ratioOf(s);
}
`, nil
}

// element writes the function of an element.
func element(p *update.Pass) string {
	vectors := [update.Vectors]string{"w", "grad", "first", "second"}
	var b strings.Builder
	b.WriteString("__device__ void element(float *w, T *copy, const float *grad, float *first, float *second, long " +
		"long i,\n" +
		"\t\tconst float *c, double &x, double &y) {\n")
	nodes, results, to := p.Nodes()
	for i, n := range nodes {
		f := ""
		switch {
		case n.Kind == expr.KindArg && n.Index < update.Vectors:
			f = vectors[n.Index] + "[i]"
		case n.Kind == expr.KindArg:
			f = fmt.Sprintf("c[%d]", n.Index-update.Vectors)
		default:
			f = formula(i, n)
		}
		fmt.Fprintf(&b, "\t%s v%d = %s;\n", kindOf(n, "float"), i, f)
	}
	for k, at := range to {
		switch v := results[k]; {
		case at == 0:
			fmt.Fprintf(&b, "\twrite(w, copy, i, v%d);\n", v)
		case at < update.Vectors:
			fmt.Fprintf(&b, "\t%s[i] = v%d;\n", vectors[at], v)
		default:
			fmt.Fprintf(&b, "\t%s += (double)v%d * v%d;\n", []string{"x", "y"}[at-update.Vectors], v, v)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// kindOf is the C type of a node's result.
func kindOf(n expr.Node, number string) string {
	if n.Kind.Truth() {
		return "bool"
	}
	return number
}

// scalarFormula is the C expression of a node of scalars.
func scalarFormula(n expr.Node) (string, error) {
	in := make([]any, len(n.In))
	for j, a := range n.In {
		in[j] = fmt.Sprintf("v%d", a)
	}
	switch n.Kind {
	case expr.KindArg:
		return fmt.Sprintf("s[%d]", n.Index), nil
	case expr.KindConst:
		if math.IsNaN(n.Value) || math.IsInf(n.Value, 0) {
			return "", fmt.Errorf("kernels: a coefficient of a pass cannot depend on %v", n.Value)
		}
		return double(n.Value), nil
	}
	format, ok := map[expr.Kind]string{
		expr.KindNeg: "-%s", expr.KindAdd: "%s + %s", expr.KindSub: "%s - %s", expr.KindMul: "%s * %s",
		expr.KindDiv: "%s / %s", expr.KindMin: "fmin(%s, %s)", expr.KindMax: "fmax(%s, %s)", expr.KindExp: "exp(%s)",
		expr.KindLog: "log(%s)", expr.KindSqrt: "sqrt(%s)",
		expr.KindLess: "%s < %s", expr.KindLessEqual: "%s <= %s", expr.KindEqual: "%s == %s",
		expr.KindIf: "%s ? %s : %s",
	}[n.Kind]
	if !ok {
		return "", fmt.Errorf("kernels: a coefficient of a pass cannot use %v", n.Kind)
	}
	return fmt.Sprintf(format, in...), nil
}

// double is a C literal of a number.
func double(x float64) string { return strconv.FormatFloat(x, 'e', -1, 64) }
