package device

import (
	"fmt"
	"time"

	"onlinerna/nn/op"
)

// A device may implement more than Device. Each such capability is a separate interface: those of this package are
// Grouper, Rewriter, Narrower, Divider, Composer, Sizer, LossScaler, Clock, Gauge, Pipeline, Observed, Collective,
// Joining, OwnMemory, Processor, Precise, Repeatable, Bounded, Monitored, Annotated and Card. [As] finds them, and
// those that another package declares because they speak of its types.

// Wrapper is a Device around another one. It has the inner device's capabilities, except those that it implements
// itself.
type Wrapper interface {
	Device
	Unwrap() Device
}

// As returns d as a T, or else the first device wrapped by d that is a T.
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
	// Room returns the memory that can still be allocated, in bytes, and the part of it that should be spared for
	// libraries.
	Room() (free, spare int64, err error)
	// PeakMemory is the largest number of bytes allocated at a time, without the memory of libraries.
	PeakMemory() (int64, error)
}

// Processor is a Device that computes on the host's processor.
type Processor interface {
	Device
	// Level names the instructions that it uses, as "avx2".
	Level() string
	// Threads is the number of threads that compute.
	Threads() int
	// Winograd reports whether 3×3 convolutions may run by Winograd's algorithm.
	Winograd() bool
	// Float32 names the way in which products of float32 run: direct, or in parts of bfloat16, bf16x6 or bf16x3.
	Float32() string
	// Peak measures for about t the floating-point operations per second of all threads together.
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
	// Deterministic reports whether the device avoids such algorithms.
	Deterministic() bool
}

// Bounded is a Device whose kernels take tensors of limited size.
type Bounded interface {
	Device
	// LargestTensor is the largest number of elements of an op's operand or result.
	LargestTensor() int
}

// A BoundError reports a tensor with more elements than a [Bounded] device takes.
type BoundError struct {
	Device, Op string
	Shape      op.Shape
	Most       int // elements
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("%s of shape %v has %d elements and device %s takes at most %d: choose a smaller batch or "+
		"smaller images", e.Op, e.Shape, e.Shape.Size(), e.Device, e.Most)
}

// Card is a Device that is a piece of hardware with a name.
type Card interface {
	Device
	Card() string
}
