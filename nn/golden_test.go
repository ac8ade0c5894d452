package nn

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"onlinerna/nn/op"
)

// golden holds PyTorch's float64 results for closed-form weights and inputs.
type golden struct {
	Batch, Size int
	Eval        struct{ Logits [][]float64 }
	Train       struct {
		Loss         float64
		LogitsFirst8 [][]float64 `json:"logits_first8"`
		InputGrad    struct {
			Norm, Sum float64
			First4    []float64
		} `json:"input_grad"`
		Params []struct {
			Name       string
			GradNorm   float64   `json:"grad_norm"`
			GradSum    float64   `json:"grad_sum"`
			GradFirst4 []float64 `json:"grad_first4"`
		}
		Running map[string]struct {
			Norm, Sum float64
			First2    []float64
		} `json:"running_after_one_step"`
	}
}

func TestResNet20AgainstPyTorch(t *testing.T) {
	b, err := os.ReadFile("machine/machinetest/testdata/net_resnet20.json")
	if err != nil {
		t.Fatal(err)
	}
	var want golden
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}

	m := closedForm(t, &want, Eval)
	for i, row := range want.Eval.Logits {
		for j, v := range row {
			near(t, "evaluation logits", values(t, m.Logits)[i*10+j], v, 1)
		}
	}

	m = closedForm(t, &want, Train)
	near(t, "loss", values(t, m.Loss)[0], want.Train.Loss, 1)
	for i, row := range want.Train.LogitsFirst8 {
		for j, v := range row {
			near(t, "logits", values(t, m.Logits)[i*10+j], v, 1)
		}
	}
	g := want.Train.InputGrad
	nearAll(t, "gradient of the input", values(t, m.InputGrad), g.Norm, g.Sum, g.First4)
	if len(m.Params) != len(want.Train.Params) {
		t.Fatalf("%d parameters, want %d", len(m.Params), len(want.Train.Params))
	}
	for i, p := range want.Train.Params {
		if m.Params[i].Name != p.Name {
			t.Errorf("parameter %d is %s, want %s", i, m.Params[i].Name, p.Name)
		}
		nearAll(t, "gradient of "+p.Name, values(t, m.Params[i].Grad), p.GradNorm, p.GradSum, p.GradFirst4)
	}
	for _, s := range m.Stats {
		v := values(t, s.Node)
		mean, variance := want.Train.Running[s.Name+".running_mean"], want.Train.Running[s.Name+".running_var"]
		nearAll(t, s.Name+" mean", v[:s.Channels], mean.Norm, mean.Sum, mean.First2)
		nearAll(t, s.Name+" variance", v[s.Channels:], variance.Norm, variance.Sum, variance.First2)
	}
}

// closedForm runs ResNet-20 with the weights and inputs of the reference.
func closedForm(t *testing.T, want *golden, mode Mode) *Model {
	t.Helper()
	m, err := Build("resnet20", Config{Batch: want.Batch, Size: want.Size, Mode: mode, DType: op.Float64,
		FloatInput: true})
	if err != nil {
		t.Fatal(err)
	}
	bindModel(t, m, 0)
	for i := range m.Params {
		p := &m.Params[i]
		x := values(t, p.Node)
		for j := range x {
			x[j] = float64(float32(closedFormWeight(p, i, j)))
		}
	}
	const inputStream = 1000
	x := values(t, m.Input)
	for j := range x {
		x[j] = float64(float32((2*counted(inputStream, j) - 1) * math.Sqrt(3)))
	}
	runTape(t, m.Graph)
	return m
}

// counted is the reference's number i of a stream.
func counted(stream uint64, i int) float64 { return uniform(0, stream<<32+uint64(i)) }

func closedFormWeight(p *Param, stream, i int) float64 {
	u := 2*counted(uint64(stream), i) - 1
	switch s := p.Shape; {
	case len(s) == 4:
		return u * math.Sqrt(3) * math.Sqrt(2/float64(s[0]*s[2]*s[3]))
	case len(s) == 2:
		return u * math.Sqrt(3) * math.Sqrt(1/float64(s[1]))
	case p.Name == "fc.bias":
		return 0.1 * u
	case strings.HasSuffix(p.Name, ".weight"):
		return 1 + 0.1*math.Sin(float64(i))
	}
	return 0.1 * math.Cos(float64(i))
}

// near allows an error of 1e-8 relative to the value or to scale, whichever is larger.
func near(t *testing.T, what string, got, want, scale float64) {
	t.Helper()
	if e := math.Abs(got - want); !(e <= 1e-8*max(math.Abs(want), scale)) {
		t.Errorf("%s: %.12g, want %.12g", what, got, want)
	}
}

func nearAll(t *testing.T, what string, x []float64, norm, sum float64, first []float64) {
	t.Helper()
	var squares, total float64
	for _, v := range x {
		squares += v * v
		total += v
	}
	near(t, what+", norm", math.Sqrt(squares), norm, norm)
	near(t, what+", sum", total, sum, norm)
	for i, v := range first {
		near(t, what+", first", x[i], v, norm)
	}
}
