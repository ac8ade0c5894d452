// Package update is the language of optimisers. A step is a list of passes over the parameters. A [Pass] computes a few
// coefficients, expressions of scalars such as the learning rate, and then new elements: expressions of the parameter
// [W], its gradient [G], the elements of the state and the coefficients. SGD with momentum is
//
//	m := update.Coefficient(1).Mul(update.State(0)).Add(update.G)
//	update.Pass{
//		Coefficients: update.Coefficients{update.Rate, expr.Const(0.9)},
//		Body:         update.Body{W: update.W.Sub(update.Coefficient(0).Mul(m)), State: update.States{m}},
//	}
//
// Coefficients are computed in float64. Devices compile the expressions of elements, each operation in the type of
// the parameters; a [Definition] is the reference.
package update
