package device

import "fmt"

// Memory is a piece of a device's memory.
type Memory interface {
	// Bytes is its size.
	Bytes() int
	// Free gives it back. It must not be used afterwards.
	Free()
}

// Region is a part of a memory, in bytes.
type Region struct {
	Memory Memory
	Offset int
	Bytes  int
}

// Part is the region of n bytes at byte off of r.
func (r Region) Part(off, n int) Region { return Region{r.Memory, r.Offset + off, n} }

// Vector is a flat array of floating-point numbers of the device's DType. Vectors of one operation
// have equal lengths and belong to the same device. Methods modify the receiver and leave their arguments
// unchanged, except SGD.
type Vector interface {
	// Len is the number of elements.
	Len() int
	// Region is the storage of elements off to off+n.
	Region(off, n int) Region

	// ReadAt copies elements off to off+len(dst) to the host, WriteAt copies from it. Values
	// are converted between the vector's type and the slice's.
	ReadAt(dst []float32, off int) error
	ReadAt64(dst []float64, off int) error
	WriteAt(src []float32, off int) error
	WriteAt64(src []float64, off int) error

	// Copy sets v to x.
	Copy(x Vector) error
	// Fill sets all elements to a.
	Fill(a float64) error
	// AddScaled sets v to v + a x.
	AddScaled(a float64, x Vector) error
	// SGD makes one step on the parameters v with their gradient. See SGD for the equations.
	SGD(grad, momentum Vector, s SGD) error
	// Norm is the Euclidean norm, accumulated in float64.
	Norm() (float64, error)
	// Finite says whether no element is NaN or infinite.
	Finite() (bool, error)

	// Free gives the storage back.
	Free()
}

// SGD is one step of stochastic gradient descent with momentum, as PyTorch's:
//
//	g ← scale·g + decay·w
//	m ← momentum·m + g
//	w ← w − rate·m            or, Nesterov: w ← w − rate·(g + momentum·m)
//
// The gradient vector is left as it is. Starting from m = 0 the first step has m = g.
type SGD struct {
	Rate     float64
	Momentum float64
	Decay    float64 // weight decay
	Scale    float64 // of the gradient: 1/k where k batches were added up, 1 otherwise
	Nesterov bool
	NoDecay  []Span // elements exempt from weight decay, sorted, disjoint
}

// Check says what is wrong with s as a step on n parameters.
func (s SGD) Check(n int) error {
	end := 0
	for i, d := range s.NoDecay {
		if d.Off < end || d.Len < 0 || d.Off > n-d.Len {
			return fmt.Errorf("sgd: span %d without decay, [%d, %d), is not after %d and within %d elements",
				i, d.Off, d.Off+d.Len, end, n)
		}
		end = d.Off + d.Len
	}
	return nil
}

// Span is a range of elements.
type Span struct{ Off, Len int }
