package golden

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"onlinerna/nn/op"
)

func TestU01(t *testing.T) {
	for stream, want := range map[uint64][]float64{
		0:    {0.8833108082136426, 0.43152799704850997, 0.026433771592597743},
		1:    {0.27357846347706083, 0.9062424483978249, 0.6012833071187135},
		1000: {0.5904321415487482, 0.8545533821590465, 0.3161565218985638},
	} {
		for i, w := range want {
			if u := U01(stream, i); u != w {
				t.Errorf("number %d of stream %d is %v, want %v", i, stream, u, w)
			}
		}
	}
}

// Parameters and inputs agree with those that formula_check.json has from a second program.
func TestFormula(t *testing.T) {
	b, err := os.ReadFile(Torch(t, "formula_check.json"))
	if err != nil {
		t.Fatal(err)
	}
	type sample struct {
		First4 []float64
		Sum    *float64
	}
	var want struct {
		ResNet20, ResNet18 map[string]sample
		Damped             map[string]sample `json:"resnet50_damped"`
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	check := func(name string, x op.Tensor, w sample) {
		t.Helper()
		v := Floats(x)
		for i, f := range w.First4 {
			if v[i] != f {
				t.Errorf("%s: element %d is %v, want %v", name, i, v[i], f)
			}
		}
		if w.Sum == nil {
			return
		}
		sum := 0.0
		for _, e := range v {
			sum += e
		}
		if math.Abs(sum-*w.Sum) > 1e-9*math.Sqrt(float64(len(v))) {
			t.Errorf("%s: the sum is %v, want %v", name, sum, *w.Sum)
		}
	}
	for name, want := range map[string]map[string]sample{"resnet20": want.ResNet20, "resnet18": want.ResNet18} {
		n, err := ReadNet(Torch(t, "net_"+name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range n.Train.Params {
			if w, ok := want[p.Name]; ok {
				check(p.Name, n.Formula().Param(p.Index, p.Name, p.Shape, op.Float64), w)
			}
		}
		check("input", n.Formula().Input(op.Shape{n.Batch, 3, n.Size, n.Size}, op.Float32), want["input"])
	}
	check("damped input", Damped.Input(op.Shape{4, 3, 64, 64}, op.Float64), want.Damped["input"])
	for name, channels := range map[string]int{"layer1.0.bn3.weight": 256, "layer1.0.bn1.weight": 64} {
		check("damped "+name, Damped.Param(0, name, op.Shape{channels}, op.Float64), want.Damped[name])
	}
}

func TestReadNet(t *testing.T) {
	n, err := ReadNet(Torch(t, "net_resnet20.json"))
	if err != nil {
		t.Fatal(err)
	}
	if n.Batch != 8 || n.Size != 32 || n.Classes != 10 || len(n.Eval.Logits) != 8 || len(n.Train.Params) != 59 ||
		len(n.SGD) != 2 {
		t.Errorf("read %d images of %d, %d classes, %d rows of logits, %d parameters, %d runs",
			n.Batch, n.Size, n.Classes, len(n.Eval.Logits), len(n.Train.Params), len(n.SGD))
	}
	all := 0
	squares := 0.0
	for i, p := range n.Train.Params {
		all += op.Shape(p.Shape).Size()
		squares += p.Norm * p.Norm
		if p.Index != i || len(p.First) == 0 || p.Deviation == 0 {
			t.Errorf("parameter %d: %+v", i, p)
		}
	}
	if all != n.Parameters || math.Abs(math.Sqrt(squares)-n.Train.GradNorm) > 1e-12*n.Train.GradNorm {
		t.Errorf("%d parameters with gradients of norm %v, want %d and %v", all, math.Sqrt(squares), n.Parameters,
			n.Train.GradNorm)
	}
	if r := n.Train.Running["bn1.running_var"]; len(r.First) != 2 || r.Norm == 0 || len(n.Train.InputGrad.First) != 4 {
		t.Errorf("bn1.running_var is %+v, the gradient of the input %+v", r, n.Train.InputGrad)
	}
	for _, s := range n.SGD {
		if len(s.Losses) != 11 || len(s.Losses32) != 11 || len(s.Norms) != 59 || s.Momentum != 0.9 || s.Decay != 1e-4 {
			t.Errorf("run at rate %v: %+v", s.Rate, s)
		}
	}
}

func TestCases(t *testing.T) {
	dir := Torch(t, "")
	for name, count := range map[string]int{"conv2d": 24, "batchnorm": 12, "relu": 1, "maxpool": 9, "gap": 4,
		"linear": 5, "softmax_ce": 8} {
		cases, err := Cases(dir, name)
		if err != nil || len(cases) != count {
			t.Errorf("%s: %d cases, want %d; error %v", name, len(cases), count, err)
		}
	}
	if _, err := Cases(dir, "attention"); err == nil {
		t.Error("no error for an op that has no cases")
	}
}

func TestPair(t *testing.T) {
	var c Case
	if err := json.Unmarshal([]byte(`{"kernel": 3, "stride": [2, 1]}`), &c); err != nil {
		t.Fatal(err)
	}
	if c.Kernel != (Pair{3, 3}) || c.Stride != (Pair{2, 1}) {
		t.Errorf("read %v, %v", c.Kernel, c.Stride)
	}
}

func TestSafetensors(t *testing.T) {
	file := func(header, elements string) string {
		size := []byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}
		path := filepath.Join(t.TempDir(), "x.safetensors")
		if err := os.WriteFile(path, []byte(string(size)+header+elements), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got,
		err := ReadSafetensors(file(`{"__metadata__":{"a":"b"},"n":{"dtype":"I32","shape":[2],"data_offsets":[1,9]},`+
		`"p":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`,
		"\x07\x01\x00\x00\x00\xff\xff\xff\xff"))
	if err != nil {
		t.Fatal(err)
	}
	if n := got["n"].Data.([]int32); len(got) != 2 || n[0] != 1 || n[1] != -1 || got["p"].Data.([]uint8)[0] != 7 {
		t.Errorf("read %v", got)
	}
	for name, path := range map[string]string{
		"element type":   file(`{"n":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`, "12"),
		"too short":      file(`{"n":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, "12"),
		"wrong length":   file(`{"n":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}}`, "12"),
		"reversed":       file(`{"n":{"dtype":"U8","shape":[1],"data_offsets":[2,1]}}`, "12"),
		"no file":        filepath.Join(t.TempDir(), "none"),
		"broken header":  file(`{"n":`, ""),
		"negative shape": file(`{"n":{"dtype":"U8","shape":[-1,-2],"data_offsets":[0,2]}}`, "12"),
	} {
		if _, err := ReadSafetensors(path); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
