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
	// Deterministic has only plans chosen of which cuDNN does not note that bits differ from run to run, by its heuristics. Otherwise the
	// fastest are found out when they are first needed, and kept in Context.KernelCache.
	Deterministic bool
	// Workspace is the most bytes of scratch that a plan of a convolution may take where there is a choice; 0 means
	// DefaultWorkspace.
	Workspace int64
	// DebugSync waits for the GPU after each op, so that a failure is reported by the op that caused it. The environment
	// variable RNA_CUDA_SYNC=1 does so too.
	DebugSync bool
	// Eager gives each kernel of a step to the GPU by itself, in place of a graph of all of them. Results are the same. The environment
	// variable RNA_CUDA_EAGER=1 does so too.
	Eager bool
	// Fuse says where convolutions run with what is around them as one graph of cuDNN's. The environment variable RNA_CUDA_FUSE, always
	// or never, does so too.
	Fuse Fuse
	// Warn is told, once each, what does not go as it should and costs speed alone; nil: nobody is.
	Warn func(message string)
}

// Fuse says where operations run as one. Deterministic devices never do so.
type Fuse int

const (
	FuseTimed  Fuse = iota // where that takes less time, which is found out when it is first needed
	FuseAlways             // wherever cuDNN can
	FuseNever
)

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
