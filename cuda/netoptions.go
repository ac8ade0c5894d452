package cuda

// NetOptions are what a user chooses about the device for nets.
type NetOptions struct {
	// Context says how the GPU is opened.
	Context Options
	// Deterministic has only algorithms chosen that give equal bits in each run.
	Deterministic bool
	// Workspace is the most bytes of scratch that an algorithm of a convolution may take where there is a choice; 0 means
	// DefaultWorkspace.
	Workspace int64
	// DebugSync waits for the GPU after each op, so that a failure is reported by the op that caused it. The environment
	// variable RNA_CUDA_SYNC=1 does so too.
	DebugSync bool
}

// DefaultWorkspace is what NetOptions.Workspace is when it is 0: 512 MiB.
const DefaultWorkspace = 512 << 20
