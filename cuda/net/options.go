package net

import (
	"cmp"
	"fmt"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// Options are the user's choices for a device on which nets run.
type Options struct {
	// Context configures how the GPU is opened.
	Context driver.Options
	// Precision is the number format in which nets store and multiply.
	Precision number.Precision
	// Deterministic restricts cuDNN to plans that it documents as bit-reproducible, chosen by its heuristics.
	// Otherwise the fastest plans are measured at their first use and kept in Context.KernelCache.
	Deterministic bool
	// Workspace limits the scratch of a convolution's plan in bytes if cuDNN offers a choice; 0 means
	// DefaultWorkspace, and four times as much for activations of 32 bits on cards with at least 32 GB.
	Workspace int64
	// DebugSync waits for the GPU after each op, so that a failure is reported by the op that caused it. The
	// environment variable RNA_CUDA_SYNC=1 does the same.
	DebugSync bool
	// Eager launches each kernel of a step by itself instead of a graph of all of them. Results are the same. The
	// environment variable RNA_CUDA_EAGER=1 does the same.
	Eager bool
	// Fuse chooses when operations run as one graph of cuDNN. The environment variable RNA_CUDA_FUSE, which is timed,
	// always or never, overrides it.
	Fuse Fuse
	// Formulas makes attention run as products and softmaxes instead of one graph of cuDNN, which needs memory for all
	// scores. The environment variable RNA_CUDA_ATTENTION=never does the same.
	Formulas bool
	// Warn, unless nil, is called once for each problem that only costs speed.
	Warn func(message string)
}

// Fuse chooses when operations are fused. Deterministic devices never fuse.
type Fuse int

const (
	// FuseAttention fuses attention only. ResNet-50 on an H100 gains nothing from fused convolutions, whose kernels
	// cuDNN compiles for a minute.
	FuseAttention Fuse = iota
	FuseTimed          // convolutions, too, if that takes less time, measured at the first use
	FuseAlways         // wherever cuDNN can
	FuseNever
)

// convolutions reports whether convolutions may be fused.
func (f Fuse) convolutions() bool { return f == FuseTimed || f == FuseAlways }

// DefaultWorkspace is the value of Options.Workspace if that is 0: 512 MiB.
const DefaultWorkspace = 512 << 20

// workspace is the limit for this card. In float32, plans that transpose their operands need room for them: without it
// some of ResNet-50's gradients take a hundred times as long on an H100.
func (o Options) workspace(i driver.Info) int64 {
	if o.Workspace == 0 && o.Precision.Bytes() == 4 && i.Memory >= 32e9 {
		return 4 * DefaultWorkspace
	}
	return cmp.Or(o.Workspace, DefaultWorkspace)
}

// supports returns the reason why a GPU cannot compute in p, or nil.
func supports(i driver.Info, p number.Precision) error {
	if p > number.Float16 {
		return fmt.Errorf("cuda: unknown precision %v: use one of %s", p, number.Precisions())
	}
	if (p == number.TF32 || p == number.BFloat16) && i.Major < 8 {
		return fmt.Errorf("cuda: %v lacks %v, which needs sm_80 or newer: use precision float16 or float32", i, p)
	}
	return nil
}
