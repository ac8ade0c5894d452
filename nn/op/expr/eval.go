package expr

// Evaluator computes expressions in float64, for a block of elements at a time. It belongs to one goroutine.
type Evaluator struct {
	nodes   []Node
	results []int       // by expression, the node that gives it
	narrow  bool        // each operation is rounded to float32
	values  [][]float64 // by node
	truths  [][]bool
}

// BlockSize is the largest number of elements that an Evaluator takes at a time.
const BlockSize = 512

// Evaluator makes one for e.
func (e Expr) Evaluator() *Evaluator { return NewEvaluator(false, e) }

// NewEvaluator makes one for several expressions. With narrow constants and the results of operations are rounded to
// float32.
func NewEvaluator(narrow bool, list ...Expr) *Evaluator {
	v := &Evaluator{narrow: narrow}
	v.nodes, v.results = Together(list...)
	v.values = make([][]float64, len(v.nodes))
	v.truths = make([][]bool, len(v.nodes))
	for i, n := range v.nodes {
		switch {
		case n.Kind.Truth():
			v.truths[i] = make([]bool, BlockSize)
		case n.Kind == KindConst:
			v.values[i] = make([]float64, BlockSize)
			for j := range v.values[i] {
				v.values[i][j] = n.Value
			}
			v.rounds(v.values[i])
		case n.Kind != KindArg:
			v.values[i] = make([]float64, BlockSize)
		}
	}
	return v
}

// rounds rounds numbers if narrow is set.
func (v *Evaluator) rounds(x []float64) {
	if !v.narrow {
		return
	}
	for i, a := range x {
		x[i] = float64(float32(a))
	}
}

// Result has the elements of expression i that the last call of Run computed.
func (v *Evaluator) Result(i int) []float64 { return v.values[v.results[i]] }

// Run computes n elements. args has those of each operand, and draw gives the random numbers of a node, which come in
// args' place for it. It returns those of the last expression; they are valid until the next call, as those of Result.
func (v *Evaluator) Run(n int, args [][]float64, draw func(random Node, dst []float64)) []float64 {
	for i, x := range v.nodes {
		var in [3][]float64
		for j, a := range x.In {
			if !v.nodes[a].Kind.Truth() {
				in[j] = v.values[a][:n]
			}
		}
		switch {
		case x.Kind == KindArg:
			v.values[i] = args[x.Index][:n]
		case x.Kind == KindConst:
		case x.Kind == KindRandom:
			draw(x, v.values[i][:n])
		case x.Kind.Truth():
			dst := v.truths[i][:n]
			for j, a := range in[0] {
				dst[j] = x.Kind.Holds(a, in[1][j])
			}
		case x.Kind == KindIf:
			dst := v.values[i][:n]
			for j, c := range v.truths[x.In[0]][:n] {
				if c {
					dst[j] = in[1][j]
				} else {
					dst[j] = in[2][j]
				}
			}
		default:
			dst := v.values[i][:n]
			x.Kind.all(dst, in[0], in[1])
			v.rounds(dst)
		}
	}
	return v.Result(len(v.results) - 1)[:n]
}

// all is Compute for many numbers. b is nil for functions of one.
func (k Kind) all(dst, a, b []float64) {
	switch k {
	case KindAdd:
		for j, x := range a {
			dst[j] = x + b[j]
		}
	case KindSub:
		for j, x := range a {
			dst[j] = x - b[j]
		}
	case KindMul:
		for j, x := range a {
			dst[j] = x * b[j]
		}
	default:
		y := 0.
		for j, x := range a {
			if b != nil {
				y = b[j]
			}
			dst[j] = k.Compute(x, y)
		}
	}
}
