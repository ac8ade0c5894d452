package net

import (
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// Options are what a user chooses about the device for nets.
type Options struct {
	// Context says how the GPU is opened.
	Context driver.Options
	// Precision is what nets store and multiply.
	Precision number.Precision
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
	// Warn is told, once, what does not go as it should and costs speed alone; nil: nobody is.
	Warn func(message string)
}

// DefaultWorkspace is what Options.Workspace is when it is 0: 512 MiB.
const DefaultWorkspace = 512 << 20

// supports says why a GPU cannot compute in p.
func supports(i driver.Info, p number.Precision) error {
	if p > number.Float16 {
		return fmt.Errorf("cuda: unknown precision %v: use one of %s", p, number.Precisions())
	}
	if (p == number.TF32 || p == number.BFloat16) && i.Major < 8 {
		return fmt.Errorf("cuda: %v has no %v, which begins with sm_80: use precision float16 or float32", i, p)
	}
	return nil
}
