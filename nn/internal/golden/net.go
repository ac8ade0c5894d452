package golden

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Net holds PyTorch's float64 results for a network, for the weights and the input of its Formula and Labels.
// Deviations are those of PyTorch's own float32.
type Net struct {
	Model      string
	Batch      int
	Size       int // height and width of the images, of three channels
	Classes    int
	Parameters int // in all
	Eval       Eval
	Train      Train
	SGD        []Trajectory
}

// Eval is the forward pass with running statistics: mean 0, variance 1.
type Eval struct {
	Logits    [][]float64
	Stages    map[string]Stage
	Deviation float64 `json:"f32_max_abs_dev"`
	MaxAbs    float64 `json:"max_abs"` // of the logits
}

// Train is a forward and backward pass with the batch's statistics.
type Train struct {
	Loss      float64
	Loss32    float64     `json:"loss_f32"`
	Logits    [][]float64 `json:"logits_first8"` // the first eight classes
	LogitNorm float64     `json:"logits_norm"`
	Deviation float64     `json:"logits_f32_reldev"`
	Stages    map[string]Stage
	InputGrad Tensor `json:"input_grad"`
	Params    []ParamGrad
	Running   map[string]Tensor `json:"running_after_one_step"` // buffers by name; momentum 0.1

	GradNorm      float64 `json:"grad_norm_all"` // of all parameters' gradients
	GradDeviation float64 `json:"f32_reldev_all"`
}

// Stage sums up the output of one of the network's children, as layer1.
type Stage struct{ Norm, Sum float64 }

// Tensor sums up a tensor.
type Tensor struct {
	Norm, Sum float64
	First     []float64 // its first elements
	Deviation float64   `json:"f32_reldev"` // norm of the deviation relative to Norm
}

// UnmarshalJSON reads the first elements from first4 or first2.
func (t *Tensor) UnmarshalJSON(b []byte) error {
	type plain Tensor
	v := struct {
		*plain
		First4, First2 []float64
	}{plain: (*plain)(t)}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	t.First = append(v.First4, v.First2...)
	return nil
}

// ParamGrad sums up the gradient of parameter number Index.
type ParamGrad struct {
	Index     int `json:"i"`
	Name      string
	Shape     []int
	Norm      float64   `json:"grad_norm"`
	Sum       float64   `json:"grad_sum"`
	First     []float64 `json:"grad_first4"`
	Deviation float64   `json:"f32_reldev"`
}

// Trajectory is a run of SGD on the one batch, without Nesterov's momentum. Decay acts on all parameters.
type Trajectory struct {
	Rate     float64            `json:"lr"`
	Momentum float64            `json:"momentum"`
	Decay    float64            `json:"weight_decay"`
	Losses   []float64          `json:"losses_before_each_step_and_after_the_last"`
	Losses32 []float64          `json:"losses_f32"`
	Norms    map[string]float64 `json:"param_norms_after"`
}

// ReadNet reads a file like net_resnet20.json.
func ReadNet(path string) (*Net, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	n := new(Net)
	if err := json.Unmarshal(b, n); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

// Formula gives the network's weights and input.
func (n *Net) Formula() Formula {
	if strings.HasSuffix(n.Model, "_damped") {
		return Damped
	}
	return Plain
}
