package device

// A Pipeline is a Device to which a step is given as a whole: its input through a [Lane], its work at once, its
// results fetched when needed. This speeds up a device with asynchronous kernels: the input of a step is copied while
// the step before runs, and the host is ahead. [Piped] makes a Pipeline of any other device.
type Pipeline interface {
	Device

	// Lanes is the number of lanes, used in turn, that keep the device busy: 2 if the input of a step is copied
	// during the step before, 1 if the host waits for each kernel anyway.
	Lanes() int

	// NewLane makes a lane for the given numbers of bytes of input and output.
	NewLane(input, output int) (Lane, error)

	// Record calls f and records the kernels, operations on vectors and [Lane.Fetch] that it issues, instead of
	// running them. Numbers that f passes are fixed; the content of memory is read at each run. f must not allocate,
	// upload, download or wait, so it must have run once before: devices allocate at first use. A device that cannot
	// record, such as one that waits after each kernel, does nothing and returns a nil recording.
	Record(f func() error) (Recording, error)
}

// Live are the values that a step of the optimiser reads from the device's memory when it runs. Regions without
// Memory are unused.
type Live struct {
	// Numbers are read in place of those of Update: NumbersLen elements of the device's DType.
	Numbers Region
	// Guard is one element, such as a sum of losses: if it is NaN or infinite the step changes nothing.
	Guard Region
}

// A Recording is work that is issued as a whole.
type Recording interface {
	// Run issues the work.
	Run() error
	// Valid reports whether all memory that the work uses is still there. If not, Run is an error.
	Valid() bool
	// Free releases the recording. A second call does nothing.
	Free()
}

// A Lane takes the input of a step to the device, beside other steps, and brings its results back. The calls for a
// step are Host, Send, the kernels, Fetch and End, then Results when they are needed, at the latest before the next
// Host.
type Lane interface {
	// Input and Output are the device's memory that the kernels of the step read and write.
	Input() Memory
	Output() Memory
	// Host is the host's memory for the input, as large as Input, or Input itself. It waits until the last Send has
	// read it.
	Host() (*HostMemory, error)
	// Send copies parts of Host to the same places of Input: not before the kernels up to the last End are done with
	// it. Kernels issued later wait for the copies.
	Send(parts ...Span) error
	// Fetch issues the copy of Output to the host.
	Fetch() error
	// End says that all kernels of the step are issued.
	End() error
	// Results waits for the step and returns the fetched output, valid until the next End.
	Results() (*HostMemory, error)
	// Free waits for the copies and gives the memory back.
	Free()
}
