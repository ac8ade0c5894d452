package extrapolate

import (
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// Role says what becomes of a tensor.
type Role int

const (
	// Weight: combined, and part of the residuals.
	Weight Role = iota
	// RunningMean and RunningVar: the statistics of a BatchNorm layer.
	RunningMean
	RunningVar
	// Copied: not of a floating-point type, so that the last file's is taken.
	Copied
)

func (r Role) String() string {
	return [...]string{Weight: "weight", RunningMean: "running mean", RunningVar: "running variance", Copied: "copied"}[r]
}

// Tensor is one tensor of a checkpoint.
type Tensor struct {
	Name  string
	DType safetensors.DType
	Shape []int
	Role  Role

	strides []int // in elements; nil when they lie in order
	off     int64 // in the file
	n       int   // elements
}

// Len is the number of elements.
func (t Tensor) Len() int { return t.n }

// Bytes is the number of bytes of the elements.
func (t Tensor) Bytes() int64 { return int64(t.n) * int64(t.DType.Size()) }

// Checkpoint is an open file of tensors. Its methods may be called concurrently.
type Checkpoint struct {
	Path     string
	Metadata map[string]string
	Tensors  []Tensor // in the file's order
	Found    string   // in which state dict of several the tensors are, in words; empty where there is one

	// Contents says what the tensors are, and What says it in words, empty for weights: see [statedict.File.Contents].
	Contents statedict.Contents
	What     string

	index map[string]int
	mem   memory
}

// memory is the content of a file.
type memory interface {
	// view returns n bytes from off on, where they lie or copied to buf, which has room for them.
	view(buf []byte, off int64, n int) ([]byte, error)
	io.Closer
}

// Open opens a file of safetensors or of torch.save, and checks what it says about its tensors. A key chooses among the state dicts of the
// latter: see [statedict.Open].
func Open(path, key string) (*Checkpoint, error) {
	f, err := statedict.Open(path, key)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Verify(); err != nil {
		return nil, err
	}
	c := &Checkpoint{Path: f.Path, Metadata: f.Metadata, Found: f.Found(), index: map[string]int{}}
	c.Contents, c.What = f.Contents()
	if f.Torch {
		c.Metadata = clone(f.Metadata)
		c.Metadata["format"] = "pt"
	}
	for i, t := range f.Tensors {
		c.index[t.Name] = i
		c.Tensors = append(c.Tensors, Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Role: roleOf(t.Name, t.DType),
			strides: t.Strides, off: t.Offset, n: t.Len()})
	}
	if c.mem, err = openMemory(f.Path); err != nil {
		return nil, err
	}
	return c, nil
}

// roleOf knows the names that PyTorch, Keras, Haiku and Flax give to running statistics.
func roleOf(name string, t safetensors.DType) Role {
	if !t.Float() {
		return Copied
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '/' })
	last := ""
	if len(parts) > 0 {
		last = strings.TrimSuffix(parts[len(parts)-1], ":0")
	}
	inStats := slices.Contains(parts, "batch_stats")
	switch {
	case last == "running_mean" || last == "moving_mean" || inStats && last == "mean":
		return RunningMean
	case last == "running_var" || last == "moving_variance" || inStats && last == "var":
		return RunningVar
	}
	return Weight
}

// Lookup finds a tensor by name.
func (c *Checkpoint) Lookup(name string) (Tensor, bool) {
	i, ok := c.index[name]
	if !ok {
		return Tensor{}, false
	}
	return c.Tensors[i], true
}

// Close releases the file.
func (c *Checkpoint) Close() error { return c.mem.Close() }

// elements returns the bytes of elements off to off+n of t in the tensor's order, where they lie or copied to
// buf, which has room for them.
func (c *Checkpoint) elements(buf []byte, t Tensor, off, n int) ([]byte, error) {
	size := t.DType.Size()
	if t.strides == nil {
		b, err := c.mem.view(buf, t.off+int64(off)*int64(size), n*size)
		if err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", c.Path, t.Name, err)
		}
		return b, nil
	}
	at := make([]int, len(t.Shape)) // the index of the element
	for i, rest := len(at)-1, off; i >= 0; i-- {
		at[i], rest = rest%t.Shape[i], rest/t.Shape[i]
	}
	var one [8]byte
	for k := range n {
		from := int64(0)
		for i, v := range at {
			from += int64(v) * int64(t.strides[i])
		}
		b, err := c.mem.view(one[:], t.off+from*int64(size), size)
		if err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", c.Path, t.Name, err)
		}
		copy(buf[k*size:(k+1)*size], b)
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]++; at[i] < t.Shape[i] {
				break
			}
			at[i] = 0
		}
	}
	return buf[:n*size], nil
}

// guard runs fn, which reads mapped files: one that another process cuts short is then an error rather than
// the end of the program.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			fault, is := r.(interface {
				error
				Addr() uintptr
			})
			if !is {
				panic(r)
			}
			err = fmt.Errorf("a file was cut short while it was read: %w", fault)
		}
	}()
	return fn()
}

// clone returns the metadata, never nil.
func clone(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}
