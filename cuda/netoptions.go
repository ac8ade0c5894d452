package cuda

import (
	"fmt"
	"slices"
	"strings"
)

// Precision says what nets store and multiply. Weights, their gradients and the optimiser's state, statistics, sums, logits and the
// loss are float32 in all of them.
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

// ParsePrecision is the precision of a name.
func ParsePrecision(name string) (Precision, error) {
	if i := slices.Index(precisions, name); i >= 0 {
		return Precision(i), nil
	}
	return 0, fmt.Errorf("unknown precision %q: use one of %s", name, strings.Join(precisions, ", "))
}

// on says why a GPU cannot compute in p.
func (p Precision) on(i Info) error {
	if p > Float16 {
		return fmt.Errorf("cuda: unknown precision %v: use one of %s", p, strings.Join(precisions, ", "))
	}
	if (p == TF32 || p == BFloat16) && i.Major < 8 {
		return fmt.Errorf("cuda: %v has no %v, which begins with sm_80: use precision float16 or float32", i, p)
	}
	return nil
}

// bytes is the size of an element of an activation.
func (p Precision) bytes() int {
	if p == BFloat16 || p == Float16 {
		return 2
	}
	return 4
}

// NetOptions are what a user chooses about the device for nets.
type NetOptions struct {
	// Context says how the GPU is opened.
	Context Options
	// Precision is what nets store and multiply.
	Precision Precision
	// Deterministic has only algorithms chosen that give equal bits in each run, by cuDNN's heuristics. Otherwise the fastest are
	// found out when they are first needed, and kept in Context.KernelCache.
	Deterministic bool
	// Workspace is the most bytes of scratch that an algorithm of a convolution may take where there is a choice; 0 means
	// DefaultWorkspace.
	Workspace int64
	// DebugSync waits for the GPU after each op, so that a failure is reported by the op that caused it. The environment
	// variable RNA_CUDA_SYNC=1 does so too.
	DebugSync bool
	// Eager gives each kernel of a step to the GPU by itself, in place of a graph of all of them. Results are the same. The environment
	// variable RNA_CUDA_EAGER=1 does so too.
	Eager bool
}

// DefaultWorkspace is what NetOptions.Workspace is when it is 0: 512 MiB.
const DefaultWorkspace = 512 << 20
