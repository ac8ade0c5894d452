package golden

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"onlinerna/nn/op"
)

// ReadSafetensors reads the tensors of a safetensors file: F32, F64, I32 or U8.
func ReadSafetensors(path string) (map[string]op.Tensor, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	tensors, err := parseSafetensors(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tensors, nil
}

// parseSafetensors reads a file's 8 bytes of header length, the JSON header and the elements after it.
func parseSafetensors(b []byte) (map[string]op.Tensor, error) {
	if len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8) {
		return nil, fmt.Errorf("%d bytes do not hold the header", len(b))
	}
	size := binary.LittleEndian.Uint64(b)
	var header map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+size], &header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	delete(header, "__metadata__")
	elements := b[8+size:]
	tensors := make(map[string]op.Tensor, len(header))
	for name, raw := range header {
		t, err := parseTensor(raw, elements)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", name, err)
		}
		tensors[name] = t
	}
	return tensors, nil
}

func parseTensor(raw json.RawMessage, elements []byte) (op.Tensor, error) {
	var h struct {
		DType   string
		Shape   op.Shape
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return op.Tensor{}, err
	}
	dtype, ok := map[string]op.DType{"F32": op.Float32, "F64": op.Float64, "I32": op.Int32, "U8": op.Uint8}[h.DType]
	if !ok {
		return op.Tensor{}, fmt.Errorf("element type %s is not supported", h.DType)
	}
	for _, d := range h.Shape {
		if d < 0 {
			return op.Tensor{}, fmt.Errorf("shape %v has a negative extent", h.Shape)
		}
	}
	want := op.Type{DType: dtype, Shape: h.Shape}
	from, to := h.Offsets[0], h.Offsets[1]
	if from < 0 || to < from || to > len(elements) || to-from != want.Bytes() {
		return op.Tensor{}, fmt.Errorf("bytes %d to %d of %d do not hold %v", from, to, len(elements), want)
	}
	t, b := op.New(want), elements[from:to]
	switch x := t.Data.(type) {
	case []float32:
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case []float64:
		for i := range x {
			x[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
	case []int32:
		for i := range x {
			x[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case []uint8:
		copy(x, b)
	}
	return t, nil
}
