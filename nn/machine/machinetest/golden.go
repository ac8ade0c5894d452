package machinetest

import (
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

//go:embed testdata/net_*.json
var testdata embed.FS

// golden is what PyTorch computes for a network.
type golden struct {
	Batch   int
	Size    int
	Classes int
	Eval    struct {
		Logits    [][]float64
		Deviation float64 `json:"f32_max_abs_dev"`
		Stages    map[string]stage
	}
	Train struct {
		Loss         float64
		Logits       [][]float64 `json:"logits_first8"`
		LogitsNorm   float64     `json:"logits_norm"`
		Deviation    float64     `json:"logits_f32_reldev"`
		InputGrad    summary     `json:"input_grad"`
		Params       []gradient
		Running      map[string]summary `json:"running_after_one_step"`
		Stages       map[string]stage
		GradNormAll  float64 `json:"grad_norm_all"`
		DeviationAll float64 `json:"f32_reldev_all"`
	}
	SGD []trajectory
}

// stage is the output of a part of the network.
type stage struct{ Norm, Sum float64 }

// summary describes a large tensor.
type summary struct {
	Norm, Sum float64
	First4    []float64
	First2    []float64
	Deviation float64 `json:"f32_reldev"` // norm of PyTorch's float32 error, relative to Norm
}

// gradient describes the gradient of a parameter.
type gradient struct {
	Name      string
	Norm      float64   `json:"grad_norm"`
	Sum       float64   `json:"grad_sum"`
	First4    []float64 `json:"grad_first4"`
	Deviation float64   `json:"f32_reldev"`
	NHWC      float64   `json:"f32_reldev_channels_last"`
}

// trajectory is a run of SGD with momentum and weight decay on all parameters.
type trajectory struct {
	Rate       float64            `json:"lr"`
	Momentum   float64            `json:"momentum"`
	Decay      float64            `json:"weight_decay"`
	Losses     []float64          `json:"losses_before_each_step_and_after_the_last"`
	Losses32   []float64          `json:"losses_f32"`
	LossesNHWC []float64          `json:"losses_f32_channels_last"`
	Norms      map[string]float64 `json:"param_norms_after"`
}

func load(name string) (*golden, error) {
	b, err := testdata.ReadFile("testdata/net_" + name + ".json")
	if err != nil {
		return nil, err
	}
	g := new(golden)
	if err := json.Unmarshal(b, g); err != nil {
		return nil, fmt.Errorf("golden data of %s: %w", name, err)
	}
	return g, nil
}

// uniform is the reference's pseudo-random number i of a stream, in [0,1): output stream·2³²+i of splitmix64 of seed 0.
func uniform(stream uint64, i int) float64 {
	z := (stream<<32+uint64(i))*0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	return float64(z>>11) * 0x1p-53
}

// closedForm is the value of parameter number p of a model. All are rounded to float32.
func closedForm(m *nn.Model, p int) op.Tensor {
	param := &m.Params[p]
	s := param.Shape
	formula := func(i int) float64 { return 0.1 * math.Cos(float64(i)) } // shift of a batch normalisation
	symmetric := func(scale float64) func(int) float64 {
		return func(i int) float64 { return scale * (2*uniform(uint64(p), i) - 1) }
	}
	switch {
	case len(s) == 4:
		formula = symmetric(math.Sqrt(3) * math.Sqrt(2/float64(s[0]*s[2]*s[3])))
	case len(s) == 2:
		formula = symmetric(math.Sqrt(3) * math.Sqrt(1/float64(s[1])))
	case param.Name == "fc.bias":
		formula = symmetric(0.1)
	case strings.HasSuffix(param.Name, ".weight"):
		formula = func(i int) float64 { return 1 + 0.1*math.Sin(float64(i)) }
	}
	return tabulate(s, formula)
}

// closedFormInput is the batch of images.
func closedFormInput(s op.Shape) op.Tensor {
	const stream = 1000
	return tabulate(s, func(i int) float64 { return (2*uniform(stream, i) - 1) * math.Sqrt(3) })
}

func tabulate(s op.Shape, f func(i int) float64) op.Tensor {
	x := make([]float64, s.Size())
	for i := range x {
		x[i] = float64(float32(f(i)))
	}
	return op.Tensor{Shape: s, Data: x}
}
