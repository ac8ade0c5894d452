package rna

import (
	"errors"
	"fmt"
	"math"
)

// Defaults for fields of [Options] that are not set.
const (
	DefaultLambda = 1e-9
	DefaultBeta   = 1
)

// A Value is a number that may be left unset. The zero Value is unset.
type Value struct {
	v   float64
	set bool
}

// Set returns a Value that is set to v. Options{Lambda: Set(0)} asks for λ = 0.
func Set(v float64) Value { return Value{v: v, set: true} }

// Or returns the number, or otherwise when it is unset.
func (v Value) Or(otherwise float64) float64 {
	if v.set {
		return v.v
	}
	return otherwise
}

// Options are the parameters of an extrapolation. The zero Options are the
// defaults.
type Options struct {
	// Lambda is the regularisation λ ≥ 0, relative to ‖R‖₂². Unset it is DefaultLambda.
	// 0 is Anderson acceleration, solved from the residuals rather than their Gram
	// matrix; +Inf is the uniform average, c = 1/N.
	Lambda Value

	// Tau is the τ ≥ 0 of CNA, which bounds ‖c‖₂ by (1+τ)/√N instead of regularising: N is the number of columns taken. 0
	// is the uniform average, +Inf Anderson acceleration. Lambda must then be unset, and the result says which λ does the
	// same.
	Tau Value

	// Beta is the mixing parameter β of y⁺ = Y c + β R c. Unset it is DefaultBeta,
	// which gives X c. 0 gives Y c.
	Beta Value

	// Newest limits the extrapolation to the newest columns of the window. 0, or more
	// than there are, takes all.
	Newest int

	// MaxNorm is the largest ‖c‖₂ accepted. 0 is no limit. Since Σ c = 1, ‖c‖₂ is at
	// least 1/√N, and a limit below that refuses everything.
	MaxNorm float64
}

func (o Options) check() error {
	lambda, beta := o.Lambda.Or(DefaultLambda), o.Beta.Or(DefaultBeta)
	switch {
	case o.Lambda.set && o.Tau.set:
		return errors.New("rna: lambda and tau are both set: each determines the other")
	case o.Tau.set && !(o.Tau.v >= 0):
		return fmt.Errorf("rna: tau is %v: it must be 0 or more", o.Tau.v)
	case math.IsNaN(lambda) || lambda < 0:
		return fmt.Errorf("rna: lambda is %v: it must be 0 or more", lambda)
	case math.IsNaN(beta) || math.IsInf(beta, 0):
		return fmt.Errorf("rna: beta is %v: it must be finite", beta)
	case o.Newest < 0:
		return fmt.Errorf("rna: newest is %d: it must be 0 (all columns) or more", o.Newest)
	case math.IsNaN(o.MaxNorm) || o.MaxNorm < 0:
		return fmt.Errorf("rna: the limit on ‖c‖ is %v: it must be 0 (none) or more", o.MaxNorm)
	}
	return nil
}
