package device

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
// unchanged, except for the state of Update. The argument x may be the receiver itself.
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
	// Lerp sets v to v + a (x − v), in one pass.
	Lerp(a float64, x Vector) error
	// Update makes a step of an optimiser on the parameters v.
	Update(u Update) error
	// Norm is the Euclidean norm, accumulated in float64.
	Norm() (float64, error)
	// Finite reports whether no element is NaN or infinite.
	Finite() (bool, error)

	// Free gives the storage back.
	Free()
}

// Span is a range of elements.
type Span struct{ Off, Len int }
