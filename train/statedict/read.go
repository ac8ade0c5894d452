package statedict

import (
	"encoding/binary"
	"fmt"

	"onlinerna/train/safetensors"
)

// Float64s reads all elements of a floating-point tensor, converting to float64.
func (f *File) Float64s(t Tensor, dst []float64) error { return floats(f, t, dst) }

// Float32s reads all elements of a floating-point tensor, converting to float32.
func (f *File) Float32s(t Tensor, dst []float32) error { return floats(f, t, dst) }

// blockLen is the number of elements converted at a time.
const blockLen = 1 << 16

func floats[T float32 | float64](f *File, t Tensor, dst []T) error {
	if !t.DType.Float() {
		return fmt.Errorf("%s: tensor %q is %s: only F64, F32, F16 and BF16 can be read as floating-point numbers", f.Path,
			t.Name, t.DType)
	}
	if len(dst) != t.Len() {
		return fmt.Errorf("%s: tensor %q has %d elements, asked for %d", f.Path, t.Name, t.Len(), len(dst))
	}
	wide := make([]float64, min(blockLen, len(dst)))
	return f.blocks(t, func(b []byte, at int) error {
		w := wide[:len(b)/t.DType.Size()]
		if err := safetensors.Decode(w, b, t.DType); err != nil {
			return err
		}
		for i, x := range w {
			dst[at+i] = T(x)
		}
		return nil
	})
}

// Int64s reads all elements of an I64 or I32 tensor.
func (f *File) Int64s(t Tensor) ([]int64, error) {
	if !t.DType.Integer() {
		return nil, fmt.Errorf("%s: tensor %q is %s: only I64 and I32 can be read as integers", f.Path, t.Name, t.DType)
	}
	dst := make([]int64, t.Len())
	err := f.blocks(t, func(b []byte, at int) error {
		for i := 0; len(b) > 0; i++ {
			if t.DType == safetensors.I64 {
				dst[at+i] = int64(binary.LittleEndian.Uint64(b))
			} else {
				dst[at+i] = int64(int32(binary.LittleEndian.Uint32(b)))
			}
			b = b[t.DType.Size():]
		}
		return nil
	})
	return dst, err
}

// Bytes appends the tensor's elements to b, in its order, little-endian.
func (f *File) Bytes(b []byte, t Tensor) ([]byte, error) {
	err := f.blocks(t, func(part []byte, _ int) error {
		b = append(b, part...)
		return nil
	})
	return b, err
}

// blocks reads the elements of t in order and passes them to fn in blocks of up to blockLen, each with the number of
// its first element.
func (f *File) blocks(t Tensor, fn func(b []byte, at int) error) error {
	n, size := t.Len(), t.DType.Size()
	buf := make([]byte, min(n, blockLen)*size)
	for at := 0; at < n; at += blockLen {
		b := buf[:min(blockLen, n-at)*size]
		if err := f.Read(b, t, at); err != nil {
			return err
		}
		if err := fn(b, at); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", f.Path, t.Name, err)
		}
	}
	return nil
}
