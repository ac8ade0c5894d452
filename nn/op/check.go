package op

import (
	"fmt"
	"slices"
	"strings"
)

// wrong makes an error that names the op, its operands and the mismatch.
func wrong(o Op, in []Type, format string, args ...any) error {
	of := make([]string, len(in))
	for i, t := range in {
		of[i] = t.String()
	}
	if len(of) == 0 {
		of = []string{"nothing"}
	}
	return fmt.Errorf("%v of %s: %s", o, strings.Join(of, ", "), fmt.Sprintf(format, args...))
}

// operand is an op's requirement on an operand: a name for messages and a rank. Ranks below 0 mean any.
type operand struct {
	name string
	rank int
	kind operandKind
}

type operandKind uint8

const (
	float operandKind = iota // of the floating-point type that the op's operands share
	integer
	pixels
)

// check compares operands with an op's requirements, and returns the floating-point type that they share.
func check(o Op, in []Type, want ...operand) (DType, error) {
	if len(in) != len(want) {
		names := make([]string, len(want))
		for i, w := range want {
			names[i] = w.name
		}
		return 0, wrong(o, in, "wants %d operands (%s), not %d", len(want), strings.Join(names, ", "), len(in))
	}
	var shared DType
	for i, w := range want {
		t := in[i]
		if !positive(t.Shape) {
			return 0, wrong(o, in, "%s has an extent below 1", w.name)
		}
		if w.rank >= 0 && len(t.Shape) != w.rank {
			return 0, wrong(o, in, "%s must have %d dimensions", w.name, w.rank)
		}
		switch {
		case w.kind == integer && t.DType != Int32:
			return 0, wrong(o, in, "%s must be int32", w.name)
		case w.kind == pixels && t.DType != Uint8:
			return 0, wrong(o, in, "%s must be uint8", w.name)
		case w.kind == float && !t.DType.Float():
			return 0, wrong(o, in, "%s must be float32 or float64", w.name)
		case w.kind == float && shared != 0 && t.DType != shared:
			return 0, wrong(o, in, "%s must be %v like the operands before it", w.name, shared)
		case w.kind == float:
			shared = t.DType
		}
	}
	return shared, nil
}

// positive reports whether all extents are 1 or more.
func positive(s Shape) bool {
	return !slices.ContainsFunc(s, func(d int) bool { return d < 1 })
}

// checkShape compares the shape attribute of a gradient op with the rank of its result.
func checkShape(o Op, in []Type, name string, s Shape, rank int) error {
	if len(s) != rank || !positive(s) {
		return wrong(o, in, "the %s %v must have %d dimensions of 1 or more", name, s, rank)
	}
	return nil
}

// typed is the result of Infer: the type, or only the error.
func typed(d DType, s Shape, err error) (Type, error) {
	if err != nil {
		return Type{}, err
	}
	return Type{d, s}, nil
}

// checkEps requires a small constant that keeps 1/√(var+eps) finite.
func checkEps(o Op, in []Type, eps float64) error {
	if !(eps >= 0) {
		return wrong(o, in, "eps must not be negative")
	}
	return nil
}
