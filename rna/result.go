package rna

import (
	"fmt"
	"strconv"
)

// Status is the outcome of a solve.
type Status int

const (
	// OK: the coefficients can be used.
	OK Status = iota
	// TooFew: there is no residual yet.
	TooFew
	// NonFinite: an entry of the Gram matrix is NaN or infinite.
	NonFinite
	// ZeroResidual: every residual is zero, so each y is a fixed point already.
	ZeroResidual
	// RankDeficient: the regularised matrix is singular to working precision.
	RankDeficient
	// Indefinite: the matrix has a negative eigenvalue beyond rounding, so it is no Gram
	// matrix, or one that was summed in too low a precision.
	Indefinite
	// CoefficientsTooLarge: ‖c‖₂ exceeds Options.MaxNorm.
	CoefficientsTooLarge
	// Overflow: the combination might exceed the largest finite value.
	Overflow
	// Failed: a vector could not be read. The error beside the result says why.
	Failed
	// Invalid: an option is out of range.
	Invalid
)

var statusNames = [...]string{
	OK:                   "ok",
	TooFew:               "too few residuals",
	NonFinite:            "non-finite",
	ZeroResidual:         "zero residual",
	RankDeficient:        "rank deficient",
	Indefinite:           "indefinite",
	CoefficientsTooLarge: "coefficients too large",
	Overflow:             "overflow",
	Failed:               "failed",
	Invalid:              "invalid option",
}

func (s Status) String() string { return name(statusNames[:], int(s), "Status") }

// name returns the name of value i of a type.
func name(names []string, i int, kind string) string {
	if i < 0 || i >= len(names) {
		return kind + "(" + strconv.Itoa(i) + ")"
	}
	return names[i]
}

// MarshalText gives the status by name, so that it reads well in metrics.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Refusal is a column that made a system unsolvable, counted from the oldest.
type Refusal struct {
	Column int
	Reason Status
}

// A Result is the outcome of a solve. Columns are in order of age, oldest first.
type Result struct {
	// Status reports whether C can be used, and why not.
	Status Status

	// C are the coefficients: one a column, with sum 1. It is nil unless Status is OK.
	C []float64

	// NormC is ‖c‖₂. For λ > 0 it is at most √((1 + 1/λ)/N). It is also set when the
	// status is CoefficientsTooLarge.
	NormC float64

	// Lambda is the λ that was used, relative to ‖R‖₂². For CNA it is λ(τ).
	Lambda float64

	// Tau is τ(λ) = √N ‖c‖₂ − 1: CNA with this τ gives the same coefficients. It is set
	// when NormC is.
	Tau float64

	// Condition is the 2-norm condition number of RᵀR + λ‖R‖₂² I, possibly +Inf for λ = 0.
	Condition float64

	// Accuracy bounds the relative error ‖c − c*‖/‖c*‖ that rounding may have left, where c* is exact for the vectors
	// as they are stored, or for the Gram matrix if only that was given. It is set when C is. If C is the shortest of
	// several solutions for λ = 0, it covers only the directions above the noise.
	Accuracy float64

	// Rank is the number of singular values of R above the rounding of the Gram matrix, or of R
	// itself after a QR. For λ = 0 after a QR it is one more than the rank of the differences of
	// residuals, as far as it stands out from the rounding of the vectors stored, and below N when C is the
	// shortest of several solutions.
	Rank int

	// Norm is ‖R‖₂, the largest singular value of R.
	Norm float64

	// ResidualNorms are the norms ‖r_j‖₂ of the columns.
	ResidualNorms []float64

	// Refused lists the columns at fault, when single columns are.
	Refused []Refusal

	// Detail describes the reason for a status other than OK.
	Detail string
}

// Err returns nil when the status is OK, otherwise an error with the reason and the remedy.
func (r Result) Err() error {
	if r.Status == OK {
		return nil
	}
	return fmt.Errorf("rna: no extrapolation: %v: %s", r.Status, r.Detail)
}
