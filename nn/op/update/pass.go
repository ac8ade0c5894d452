package update

import (
	"math"

	"onlinerna/nn/op/expr"
)

const (
	// MaxState is the maximal number of state vectors.
	MaxState = 2
	// MaxCoefficients is the maximal number of coefficients of a definition.
	MaxCoefficients = 8
	// coefficients has one more at the end: the bound of the gradient's elements, see ClipTo.
	coefficients = MaxCoefficients + 1
)

// The arguments of the expressions of elements: a parameter and its gradient, which is not scaled yet.
var (
	W = expr.Arg(argW)
	G = expr.Arg(argG)
)

// The places of the arguments.
const (
	argW = iota
	argG
	argState
	argCoefficient = argState + MaxState
	// Args is the number of arguments of an expression of elements.
	Args = argCoefficient + coefficients
)

// State is the argument that is the element of vector i of the state.
func State(i int) expr.Expr { return expr.Arg(argState + i) }

// Coefficient is the argument that is coefficient i of the pass.
func Coefficient(i int) expr.Expr { return expr.Arg(argCoefficient + i) }

// Argument returns the vector that an argument of an expression of elements is: 0 the parameters, 1 the gradient, 2 and
// on the state. Those after Vectors are coefficients.
const Vectors = argCoefficient

// The arguments of the expressions of scalars.
var (
	Rate    = expr.Arg(scalarRate)    // learning rate
	Scale   = expr.Arg(scalarScale)   // of the gradient
	Step    = expr.Arg(scalarStep)    // the steps since the state was zero, with this one
	Share   = expr.Arg(scalarShare)   // of this step in an average of all, see device.Averaging
	Decays  = expr.Arg(scalarDecays)  // 1 where weight decay applies, else 0
	Ratio   = expr.Arg(scalarRatio)   // of the tensor, as a pass before made it; else 1
	Rows    = expr.Arg(scalarRows)    // outputs of the matrix; else 0
	Columns = expr.Arg(scalarColumns) // inputs of the matrix; else 0

	// Norms are, for Pass.Ratio, those of the tensor's two Squares.
	Norms = [2]expr.Expr{expr.Arg(scalarNorm), expr.Arg(scalarNorm + 1)}
	// Corrections are 1 − βᵗ at step t for each of Pass.Betas.
	Corrections = [2]expr.Expr{expr.Arg(scalarCorrection), expr.Arg(scalarCorrection + 1)}
)

const (
	scalarRate = iota
	scalarScale
	scalarStep
	scalarShare
	scalarDecays
	scalarRatio
	scalarRows
	scalarColumns
	scalarNorm
	scalarCorrection = scalarNorm + 2
	scalars          = scalarCorrection + 2
)

type (
	// States are the new elements of the state.
	States [MaxState]expr.Expr
	// Coefficients are expressions of scalars.
	Coefficients [MaxCoefficients]expr.Expr
)

// Body is the computation of a pass for each element. An expression that is not valid computes nothing. All operands
// are read before a result is written.
type Body struct {
	W       expr.Expr
	State   States
	Squares [2]expr.Expr // quantities whose squares are summed up, in float64
}

// Parts selects the parameters of a pass.
type Parts uint8

// The parts.
const (
	All      Parts = iota
	Matrices       // those that Update.Matrices lists
	Rest           // the others
)

// Pass is one pass over parameters. Passes are comparable.
type Pass struct {
	On           Parts
	Betas        [2]float64 // of Corrections
	Coefficients Coefficients
	Body

	// Ratio computes each tensor's Ratio for later passes from the norms of Squares. It is 1 if one of the norms is
	// 0, and for tensors that do not decay.
	Ratio expr.Expr

	// Orthogonal is applied to the last vector of state of each matrix after the pass.
	Orthogonal NewtonSchulz

	bound float64 // see ClipTo
}

// NewtonSchulz replaces a matrix by about the nearest orthogonal one, by steps of
//
//	X ← A·X + (B·XXᵀ + C·(XXᵀ)²)·X     from X / max(‖X‖, Eps)
//
// Zero steps leave it unchanged.
type NewtonSchulz struct {
	Steps   int
	A, B, C float64
	Eps     float64
}

// Measures reports whether the pass sums up squares.
func (p *Pass) Measures() bool { return p.Squares[0].Valid() }

// Tensors reports whether the pass takes tensors apart.
func (p *Pass) Tensors() bool {
	return p.Measures() || p.On != All || p.Orthogonal.Steps > 0 || reads(p.Coefficients[:], Ratio)
}

func reads(list []expr.Expr, arg expr.Expr) bool {
	at, _ := arg.IsArg()
	for _, e := range list {
		if e.Valid() {
			if numbers, _ := e.Reads(at); numbers {
				return true
			}
		}
	}
	return false
}

// ClipTo returns p with each scaled element of the gradient clipped to [−most, most]. An element that is not finite
// stays.
func (p Pass) ClipTo(most float64) Pass {
	bound := Coefficient(MaxCoefficients)
	inside := G.Max(bound.Neg()).Min(bound)
	clipped := expr.If(G.Sub(G).Equal(expr.Const(0)), inside, G)
	p.bound = most
	for _, e := range []*expr.Expr{&p.W, &p.State[0], &p.State[1], &p.Squares[0], &p.Squares[1]} {
		if e.Valid() {
			*e = e.Substitute(func(i int) expr.Expr {
				if i == argG {
					return clipped
				}
				return expr.Arg(i)
			})
		}
	}
	return p
}

// All lists the expressions of scalars: coefficients, the bound of ClipTo and Ratio, those that are not valid as 0.
func (p *Pass) scalars() []expr.Expr {
	list := make([]expr.Expr, coefficients+1)
	copy(list, p.Coefficients[:])
	if p.bound > 0 {
		list[MaxCoefficients] = expr.Const(p.bound).Div(Scale.Abs())
	}
	list[coefficients] = p.Ratio
	for i, e := range list {
		if !e.Valid() {
			list[i] = expr.Const(0)
		}
	}
	return list
}

// outputs lists the valid expressions of elements, and where the results go: 0 the parameters, 2 and on the state,
// Vectors and on Squares.
func (b *Body) outputs() (list []expr.Expr, to []int) {
	add := func(e expr.Expr, at int) {
		if e.Valid() {
			list, to = append(list, e), append(to, at)
		}
	}
	add(b.W, argW)
	for i, e := range b.State {
		add(e, argState+i)
	}
	for i, e := range b.Squares {
		add(e, Vectors+i)
	}
	return list, to
}

// Nodes lists the steps that compute the body, and its results: node Results[k] computes place To[k]: 0 for the
// parameters, 2 and on for the state, Vectors and on for Squares.
func (b *Body) Nodes() (nodes []expr.Node, results, to []int) {
	list, to := b.outputs()
	nodes, results = expr.Together(list...)
	return nodes, results, to
}

// correction is 1 − βᵗ.
func correction(beta, t float64) float64 { return -math.Expm1(t * math.Log(beta)) }
