package golden

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"onlinerna/nn/op"
)

// Case is one application of an op: its attributes, as far as the op has them, and its tensors by their short
// names: x, w, b are operands, y the result, gy the gradient with respect to it, and gx, gw, gb those with
// respect to the operands.
type Case struct {
	Name                          string `json:"case"`
	Kernel, Stride, Pad, Dilation Pair
	Groups                        int
	Bias                          bool
	Train                         bool // batch normalisation with the batch's statistics
	Momentum, Eps                 float64
	Smoothing                     float64 `json:"label_smoothing"`
	Shapes                        map[string]op.Shape
	Tensors                       map[string]op.Tensor `json:"-"`
}

// Pair is a vertical and a horizontal attribute; one number stands for both.
type Pair [2]int

// UnmarshalJSON reads a number or two.
func (p *Pair) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[2]int)(p))
	}
	p[1] = 0
	err := json.Unmarshal(b, &p[0])
	p[1] = p[0]
	return err
}

// Cases reads the cases of an op from a folder with ops_index.json and the op's safetensors file. The ops are
// conv2d, batchnorm, relu, maxpool, gap, linear and softmax_ce.
func Cases(dir, name string) ([]Case, error) {
	path := filepath.Join(dir, "ops_index.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var index map[string]json.RawMessage
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var cases []Case
	if err := json.Unmarshal(index[name], &cases); err != nil {
		return nil, fmt.Errorf("%s: cases of %s: %w", path, name, err)
	}
	tensors, err := ReadSafetensors(filepath.Join(dir, name+".safetensors"))
	if err != nil {
		return nil, err
	}
	for i := range cases {
		c := &cases[i]
		c.Tensors = make(map[string]op.Tensor, len(c.Shapes))
		for short, s := range c.Shapes {
			t, ok := tensors[c.Name+"."+short]
			if !ok || !t.Shape.Equal(s) {
				return nil, fmt.Errorf("%s: tensor %s.%s of shape %v is missing", name, c.Name, short, s)
			}
			c.Tensors[short] = t
		}
	}
	return cases, nil
}

// In gives tensors of the case by name, floating-point ones in type d.
func (c *Case) In(d op.DType, names ...string) []op.Tensor {
	ts := make([]op.Tensor, len(names))
	for i, n := range names {
		ts[i] = Convert(c.Tensors[n], d)
	}
	return ts
}
