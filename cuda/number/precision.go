// Package number defines the precisions of nets on a GPU and converts 16-bit numbers on the host. It touches no GPU.
package number

import (
	"fmt"
	"slices"
	"strings"
)

// Precision is the format in which nets store and multiply. Weights, their gradients and the optimiser's state,
// statistics, sums, logits and the loss are float32 in all of them.
type Precision uint8

// The precisions.
const (
	Float32  Precision = iota // products of float32
	TF32                      // float32, with 11 significant bits in products: TensorFloat-32
	BFloat16                  // activations and their gradients have 16 bits, 8 of them significant
	Float16                   // the same with 11 significant bits and a small range: the loss is scaled
)

var precisions = []string{"float32", "tf32", "bfloat16", "float16"}

func (p Precision) String() string {
	if int(p) >= len(precisions) {
		return fmt.Sprintf("Precision(%d)", uint8(p))
	}
	return precisions[p]
}

// ParsePrecision returns the precision with this name.
func ParsePrecision(name string) (Precision, error) {
	if i := slices.Index(precisions, name); i >= 0 {
		return Precision(i), nil
	}
	return 0, fmt.Errorf("unknown precision %q: use one of %s", name, Precisions())
}

// Precisions lists all names.
func Precisions() string { return strings.Join(precisions, ", ") }

// Bytes is the size of an element of an activation.
func (p Precision) Bytes() int {
	if p == BFloat16 || p == Float16 {
		return 2
	}
	return 4
}
