package device

import "time"

// A device may have more to offer than Device asks for. Each such capability is an interface of its own: those of this
// package are Grouper, Rewriter, Sizer, LossScaler, Clock, Gauge, Pipeline, Observed, Collective, OwnMemory, Processor,
// Precise, Repeatable and Card. [As] finds them, and those that another package declares because they speak of its types.

// Wrapper is a Device round another one whose capabilities are its own, but for those that it has itself.
type Wrapper interface {
	Device
	Unwrap() Device
}

// As is d as a T, or else the first device within d that is one, where d wraps others.
func As[T any](d Device) (T, bool) {
	for d != nil {
		if t, ok := d.(T); ok {
			return t, true
		}
		w, ok := d.(Wrapper)
		if !ok {
			break
		}
		d = w.Unwrap()
	}
	var none T
	return none, false
}

// OwnMemory is a Device with memory of its own, other than the host's.
type OwnMemory interface {
	Device
	// Room is the memory that can still be allocated, in bytes, and how much of that should be spared for libraries.
	Room() (free, spare int64, err error)
	// PeakMemory is the most that was allocated at a time, in bytes, without what libraries take.
	PeakMemory() (int64, error)
}

// Processor is a Device that computes on the host's processor.
type Processor interface {
	Device
	// Level names the instructions that it uses, as "avx2".
	Level() string
	// Threads is how many compute.
	Threads() int
	// Winograd reports whether 3×3 convolutions may run by Winograd's algorithm.
	Winograd() bool
	// Peak measures for about t how many floating-point operations a second all threads make together.
	Peak(t time.Duration) float64
}

// Precise is a Device that multiplies in several precisions.
type Precise interface {
	Device
	// Precision names the one of activations and of the factors of products, as "bfloat16".
	Precision() string
}

// Repeatable is a Device that may run algorithms whose bits differ from run to run. Other devices never do.
type Repeatable interface {
	Device
	// Deterministic says whether the device leaves them out.
	Deterministic() bool
}

// Card is a Device that is a piece of hardware with a name.
type Card interface {
	Device
	Card() string
}
