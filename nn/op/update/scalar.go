package update

import (
	"fmt"

	"onlinerna/nn/op/expr"
)

// Numbers are the inputs of a pass's coefficients, for a part of the parameters.
type Numbers struct {
	Rate, Scale, Step, Share float64
	Decays                   bool
	Ratio                    float64
	Rows, Columns            int
	Norms                    [2]float64
}

// values are the scalars as the arguments have them.
func (n *Numbers) values(betas [2]float64) (v [scalars]float64) {
	v = [scalars]float64{scalarRate: n.Rate, scalarScale: n.Scale, scalarStep: n.Step, scalarShare: n.Share,
		scalarRatio: n.Ratio,
		scalarRows:  float64(n.Rows), scalarColumns: float64(n.Columns), scalarNorm: n.Norms[0],
		scalarNorm + 1: n.Norms[1]}
	if n.Decays {
		v[scalarDecays] = 1
	}
	for i, b := range betas {
		v[scalarCorrection+i] = correction(b, n.Step)
	}
	return v
}

// Values are the coefficients of a pass, followed by the bound of the gradient's elements.
type Values [coefficients]float64

// maxNodes bounds the scalars of a pass, so that they need no memory of the heap.
const maxNodes = 64

// Program computes the scalars of a pass.
type Program struct {
	betas   [2]float64
	nodes   []expr.Node
	results []int
}

// Compile makes the program of p. It panics if the expressions are too large.
func Compile(p *Pass) *Program {
	g := &Program{betas: p.Betas}
	g.nodes, g.results = expr.Together(p.scalars()...)
	if len(g.nodes) > maxNodes {
		panic(fmt.Sprintf("update: %d operations on scalars, %d at most", len(g.nodes), maxNodes))
	}
	return g
}

// Nodes lists the steps that compute the scalars, and those that give the coefficients, the bound of ClipTo and the
// ratio.
func (g *Program) Nodes() (nodes []expr.Node, results []int) { return g.nodes, g.results }

// Coefficients computes them.
func (g *Program) Coefficients(n *Numbers) (c Values) {
	var v [maxNodes]float64
	g.run(n, &v)
	for i := range c {
		c[i] = v[g.results[i]]
	}
	return c
}

// Ratio returns the ratio of a tensor with the given norms.
func (g *Program) Ratio(n *Numbers) float64 {
	if !(n.Norms[0] > 0 && n.Norms[1] > 0) {
		return 1
	}
	var v [maxNodes]float64
	g.run(n, &v)
	return v[g.results[coefficients]]
}

func (g *Program) run(n *Numbers, v *[maxNodes]float64) {
	in := n.values(g.betas)
	for i := range g.nodes {
		x := &g.nodes[i]
		var a, b float64
		if len(x.In) > 0 {
			a = v[x.In[0]]
		}
		if len(x.In) > 1 {
			b = v[x.In[1]]
		}
		switch {
		case x.Kind == expr.KindArg:
			v[i] = in[x.Index]
		case x.Kind == expr.KindConst:
			v[i] = x.Value
		case x.Kind == expr.KindIf:
			v[i] = v[x.In[2]]
			if a != 0 {
				v[i] = b
			}
		case x.Kind.Truth():
			v[i] = 0
			if x.Kind.Holds(a, b) {
				v[i] = 1
			}
		default:
			v[i] = x.Kind.Compute(a, b)
		}
	}
}
