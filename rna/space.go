package rna

import "fmt"

// A Space is where the vectors of a [Window] live: host memory ([NewHost32], [NewHost64]), files ([NewFile32],
// [NewFile64]), or another implementation's memory. It does all work on vectors; the window does the N×N work, always
// in float64 on the CPU.
//
// Results must not depend on how the work was split: a Space fixes its blocks
// and the order of its sums.
//
// Package rna/spacetest is the conformance suite of implementations.
//
// A Space may be shared by windows that are used concurrently; a [Vector] may not
// be written while it is read.
type Space interface {
	// Dim is the number of elements of each vector, d.
	Dim() int

	// Bits is the width of the stored elements: 32 or 64.
	Bits() int

	// New allocates a vector with unspecified elements.
	New() (Vector, error)

	// Store copies src into dst and returns the largest absolute value of its
	// elements as stored. It fails with a [*NonFiniteError] when one is NaN or infinite; dst
	// is then unspecified. When dst is nil nothing is stored: only the check is made.
	Store(dst Vector, src Source) (maxAbs float64, err error)

	// MaxAbs returns the largest absolute value of r's elements, Exp ignored.
	MaxAbs(r Residual) (float64, error)

	// GramRow sets row[j] to the inner product of r and with[j]. Differences are taken
	// and products are summed in float64.
	GramRow(row []float64, r Residual, with []Residual) error

	// Combine writes Σ Coef·Vector to dst. It sums in float64, in the order of terms, and
	// rounds once, to the stored width. On failure dst may be partly written.
	Combine(dst Sink, terms []Term) error
}

// A Vector is one of a [Space]'s vectors. It can be read in blocks, as [Window.QR] does, from one goroutine
// in a space that is not of this package; it is written by [Space.Store] only.
type Vector interface {
	Source64

	// Close gives the memory back. The vector must not be used afterwards.
	Close() error
}

// A Residual is the vector 2^-Exp (X − Y), or 2^-Exp X when Y is nil. Exp is 0
// unless squares of the elements would overflow or underflow.
type Residual struct {
	X, Y Vector
	Exp  int
}

// A Term is a vector and its coefficient in a linear combination.
type Term struct {
	Coef   float64
	Vector Vector
}

// A NonFiniteError reports a vector refused for an element that is NaN or infinite.
type NonFiniteError struct {
	Offset int     // the first such element
	Value  float64 // NaN, +Inf or -Inf
}

func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("rna: vector refused: element %d is %v", e.Offset, e.Value)
}
