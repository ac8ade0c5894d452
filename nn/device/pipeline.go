package device

// A Pipeline is a Device whose kernels run behind the caller's back, and which therefore gains when the host is ahead of it: the input of
// one step is copied while the step before runs, the work of a step is issued as a whole, and its results are fetched when the next step
// is under way.
type Pipeline interface {
	Device

	// Record calls f and keeps what it issues, kernels, operations on vectors and [Lane.Fetch], instead of running it. The work is
	// that of the calls: numbers that f passes are fixed, content of memory is read at each run. f must not allocate, upload,
	// download or wait, so it has to have run before: devices make things when they are first needed. Where nothing can be recorded, as on a device that waits after each kernel to find one that
	// fails, Record does nothing and the recording is nil.
	Record(f func() error) (Recording, error)

	// NewLane makes a lane for input and output of so many bytes.
	NewLane(input, output int) (Lane, error)

	// Step is params.SGD(grad, momentum, s), but that the rate and the scale are read from numbers when the step runs: two
	// elements of the device's DType.
	Step(params, grad, momentum Vector, s SGD, numbers Region) error
}

// A Recording is work that is issued as a whole.
type Recording interface {
	// Run issues the work.
	Run() error
	// Valid says whether all memory that the work uses is still there. If not, Run is an error.
	Valid() bool
	// Free gives back what the recording takes. A second call does nothing.
	Free()
}

// A Lane takes the input of a step to the device, beside other steps, and brings its results back. The calls for a step are
// Host, Send, the kernels, Fetch, End; and Results once somebody wants them, at the latest before the next Host.
type Lane interface {
	// Input and Output are the device's memory that the kernels of the step read and write.
	Input() Memory
	Output() Memory
	// Host is the host's memory for the input, as large as Input. It waits until what was sent last has left it.
	Host() (*HostMemory, error)
	// Send copies parts of Host to the same places of Input: not before the kernels up to the last End are done with it. Kernels
	// issued later wait for the copies.
	Send(parts ...Span) error
	// Fetch issues the copy of Output to the host.
	Fetch() error
	// End says that all kernels of the step are issued.
	End() error
	// Results waits until the step is done and is what was fetched, valid until the next End.
	Results() (*HostMemory, error)
	// Free waits for the copies and gives the memory back.
	Free()
}
