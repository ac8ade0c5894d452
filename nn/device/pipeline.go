package device

// A Pipeline is a Device to which a step is given as a whole: its input through a [Lane], its work at once, its results
// fetched when somebody wants them. One whose kernels run behind the caller's back gains by that: the input of a step
// is copied while the step before runs, and the host is ahead. [Piped] makes a Pipeline of any other device.
type Pipeline interface {
	Device

	// Lanes is how many lanes, used in turn, keep the device busy: 2 where the input of a step is copied beside the
	// step before, 1 where the host waits for each kernel anyway.
	Lanes() int

	// NewLane makes a lane for input and output of so many bytes.
	NewLane(input, output int) (Lane, error)

	// Record calls f and keeps what it issues, kernels, operations on vectors and [Lane.Fetch], instead of running it.
	// The work is that of the calls: numbers that f passes are fixed, content of memory is read at each run. f must not
	// allocate, upload, download or wait, so it has to have run before: devices make things when they are first needed.
	// Where nothing can be recorded, as on a device that waits after each kernel, Record does nothing and the recording
	// is nil.
	Record(f func() error) (Recording, error)
}

// Live is what a step of the optimiser reads from the device's memory when it runs. Regions without Memory are not
// there.
type Live struct {
	// Numbers are read in place of those of Update: NumbersLen elements of the device's DType.
	Numbers Region
	// Guard is one element, say a sum of losses: where it is NaN or infinite the step changes nothing.
	Guard Region
}

// A Recording is work that is issued as a whole.
type Recording interface {
	// Run issues the work.
	Run() error
	// Valid reports whether all memory that the work uses is still there. If not, Run is an error.
	Valid() bool
	// Free gives back what the recording takes. A second call does nothing.
	Free()
}

// A Lane takes the input of a step to the device, beside other steps, and brings its results back. The calls for a step
// are Host, Send, the kernels, Fetch, End; and Results once somebody wants them, at the latest before the next Host.
type Lane interface {
	// Input and Output are the device's memory that the kernels of the step read and write.
	Input() Memory
	Output() Memory
	// Host is the host's memory for the input, as large as Input, or Input itself. It waits until what was sent last
	// has left it.
	Host() (*HostMemory, error)
	// Send copies parts of Host to the same places of Input: not before the kernels up to the last End are done with
	// it. Kernels issued later wait for the copies.
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
