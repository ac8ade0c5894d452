package extrapolate

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// Role determines the treatment of a tensor.
type Role int

const (
	// Weight: combined, and part of the residuals.
	Weight Role = iota
	// RunningMean and RunningVar: the statistics of a BatchNorm layer.
	RunningMean
	RunningVar
	// Copied: not floating-point; taken from the last file.
	Copied
	// Scale: the scale of an eight-bit tensor, computed and written with it.
	Scale
)

func (r Role) String() string {
	return [...]string{Weight: "weight", RunningMean: "running mean", RunningVar: "running variance", Copied: "copied",
		Scale: "scale"}[r]
}

// Tensor is one tensor of a checkpoint.
type Tensor struct {
	Name  string
	DType safetensors.DType
	Shape []int
	Role  Role

	n int // number of elements
}

// Len is the number of elements.
func (t Tensor) Len() int { return t.n }

// Bytes is the number of bytes of the elements.
func (t Tensor) Bytes() int64 { return int64(t.n) * int64(t.DType.Size()) }

// Checkpoint is an open checkpoint of one or more files. Its methods may be called concurrently.
type Checkpoint struct {
	Path     string
	Metadata map[string]string
	Tensors  []Tensor // in the file's order
	Found    string   // description of the tensors' state dict; empty if there is only one

	// Contents is the kind of the tensors, and What its description, empty for weights: see [statedict.File.Contents].
	Contents statedict.Contents
	What     string

	// File is the source of the tensors.
	File *statedict.File
}

// Open opens a checkpoint, and compares it with its checksums: see [statedict.Open].
func Open(path, key string) (*Checkpoint, error) {
	c, err := open(path, key)
	if err != nil {
		return nil, err
	}
	if _, err := c.File.Verify(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func open(path, key string) (*Checkpoint, error) {
	f, err := statedict.Open(path, key)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Path: f.Path, Metadata: f.Metadata, Found: f.Found(), File: f}
	c.Contents, c.What = f.Contents()
	if f.Form == statedict.Torch {
		c.Metadata = clone(f.Metadata)
		c.Metadata["format"] = "pt"
	}
	for _, t := range f.Tensors {
		c.Tensors = append(c.Tensors, Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape,
			Role: roleOf(f, t.Name, t.DType), n: t.Len()})
	}
	return c, nil
}

// kerasNorm are the tensors of Keras's layers BatchNormalization in .weights.h5, which have numbers for names.
var kerasNorm = regexp.MustCompile(`^((?:.*/)?batch_normalization(?:_\d+)?/vars/)(\d{1,3})$`)

// roleOf recognises the names that PyTorch, Keras, Haiku and Flax give to running statistics in a file.
func roleOf(f *statedict.File, name string, t safetensors.DType) Role {
	if !t.Number() {
		return Copied
	}
	if m := kerasNorm.FindStringSubmatch(name); m != nil { // the statistics come last, behind scale and centre
		has := func(more int) bool {
			i, _ := strconv.Atoi(m[2])
			_, ok := f.Lookup(m[1] + strconv.Itoa(i+more))
			return ok
		}
		switch {
		case !has(1):
			return RunningVar
		case !has(2):
			return RunningMean
		}
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
	t, ok := c.File.Lookup(name)
	if !ok {
		return Tensor{}, false
	}
	return Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Role: roleOf(c.File, t.Name, t.DType), n: t.Len()}, true
}

// Close releases the files.
func (c *Checkpoint) Close() error { return c.File.Close() }

// elements returns the bytes of elements off to off+n of t in the tensor's order, in buf, which must be large enough.
func (c *Checkpoint) elements(buf []byte, t Tensor, off, n int) ([]byte, error) {
	own, _ := c.File.Lookup(t.Name)
	b := buf[:n*t.DType.Size()]
	return b, c.File.Read(b, own, off)
}

// clone copies the metadata; the result is never nil.
func clone(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}
