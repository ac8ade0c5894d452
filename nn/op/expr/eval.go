package expr

// Evaluator computes expressions in float64, for a block of elements at a time. It belongs to one goroutine.
type Evaluator struct {
	nodes   []Node
	results []int                   // by expression, the node that gives it
	round   func(x float64) float64 // what each operation gives, or nil
	values  [][]float64             // by node
	truths  [][]bool
}

// BlockSize is how many elements an Evaluator takes at most.
const BlockSize = 512

// Evaluator makes one for e.
func (e Expr) Evaluator() *Evaluator { return NewEvaluator(nil, e) }

// NewEvaluator makes one for several expressions. round, if not nil, is applied to constants and to what each operation gives.
func NewEvaluator(round func(x float64) float64, list ...Expr) *Evaluator {
	v := &Evaluator{round: round}
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

// rounds rounds numbers where that is asked for.
func (v *Evaluator) rounds(x []float64) {
	if v.round == nil {
		return
	}
	for i, a := range x {
		x[i] = v.round(a)
	}
}

// Result has the elements of expression i that the last call of Run computed.
func (v *Evaluator) Result(i int) []float64 { return v.values[v.results[i]] }

// Run computes n elements. args has those of each operand, and draw gives the random numbers of a node, which come in args' place for
// it. It returns those of the last expression; they are valid until the next call, as those of Result.
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
		case len(x.In) == 1:
			dst := v.values[i][:n]
			for j, a := range in[0] {
				dst[j] = x.Kind.Compute(a, 0)
			}
			v.rounds(dst)
		default:
			dst := v.values[i][:n]
			for j, a := range in[0] {
				dst[j] = x.Kind.Compute(a, in[1][j])
			}
			v.rounds(dst)
		}
	}
	return v.Result(len(v.results) - 1)[:n]
}
