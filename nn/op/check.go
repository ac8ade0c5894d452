package op

import (
	"fmt"
	"strings"
)

// wrong makes an error that names the op, its operands and what does not fit.
func wrong(o Op, in []Type, format string, args ...any) error {
	shapes := make([]string, len(in))
	for i, t := range in {
		shapes[i] = t.String()
	}
	return fmt.Errorf("%v of %s: %s", o, strings.Join(shapes, ", "), fmt.Sprintf(format, args...))
}

// operand is what an op wants of an operand: a name for messages and a rank. Ranks below 0 mean any.
type operand struct {
	name string
	rank int
	kind operandKind
}

type operandKind uint8

const (
	float operandKind = iota // of the op's floating-point type
	integer
	pixels
)

// check compares operands with what an op wants, and gives the floating-point type that they share.
func check(o Op, in []Type, want ...operand) (DType, error) {
	if len(in) != len(want) {
		return 0, wrong(o, in, "wants %d operands, got %d", len(want), len(in))
	}
	var dt DType
	for i, w := range want {
		t := in[i]
		for _, d := range t.Shape {
			if d < 1 {
				return 0, wrong(o, in, "%s has an extent below 1", w.name)
			}
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
		case w.kind == float && dt != 0 && t.DType != dt:
			return 0, wrong(o, in, "%s is not %v as the operands before it", w.name, dt)
		case w.kind == float:
			dt = t.DType
		}
	}
	return dt, nil
}
