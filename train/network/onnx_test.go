package network

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/data/random"
	"onlinerna/internal/files"
	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// trained sets scales, biases and statistics to values other than 0 and 1, as training does, and tensors that start at
// or near 0, as heads and the scales of residual branches.
func trained(t testing.TB, n *Network) {
	t.Helper()
	r := random.New(3)
	uniform := func(low, high float64) float64 { return low + (high-low)*float64(r.Uint64()>>11)/(1<<53) }
	x := numbers(t, n.Params)
	for i, s := range n.params {
		own := x[s.off : s.off+s.n]
		low, high := 0., 0.
		if n.model.Params[i].BiasOrNorm {
			low, high = .25, .75
		} else if slices.Max(own)-slices.Min(own) < 1e-5 && math.Abs(own[0]) < 1e-3 {
			low, high = -.3, .3
		}
		for k := range own {
			if low < high {
				own[k] = uniform(low, high)
			}
		}
	}
	if err := n.Params.WriteAt64(x, 0); err != nil {
		t.Fatal(err)
	}
	if n.Stats == nil {
		return
	}
	x = numbers(t, n.Stats)
	for _, s := range n.stats {
		for k := range x[s.off : s.off+s.n] {
			x[s.off+k] = uniform(-.5, .5) + float64(k/(s.n/2))
		}
	}
	if err := n.Stats.WriteAt64(x, 0); err != nil {
		t.Fatal(err)
	}
}

// The file holds the network's weights and metadata, whatever device the network is on.
func TestWriteONNX(t *testing.T) {
	n, wide := open(t, cpuDevice(t, 1), "conv6", 2), open(t, reference(op.Float64), "conv6", 2)
	sixtyFourths(t, n)
	meta := Meta{Model: "conv6", Classes: []string{"a", "b"}, ImageSize: 32, Mean: []float64{.5, .5, .5},
		Std: []float64{.25, .25, .25}, Kind: RNA}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if err := n.SaveWeights(path, n.Params, n.Stats, meta); err != nil {
		t.Fatal(err)
	}
	if _, err := wide.LoadWeights(path); err != nil {
		t.Fatal(err)
	}
	var file, other bytes.Buffer
	err, err2 := n.WriteONNX(&file, meta, 0), wide.WriteONNX(&other, meta, 0)
	if err != nil || err2 != nil || !bytes.Equal(file.Bytes(), other.Bytes()) {
		t.Errorf("the file is another one on another device: %v, %v", err, err2)
	}
	same := file.Bytes()
	for name, x := range takeApart(t, path).data {
		var raw []byte
		for _, v := range x {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
		}
		raw = append(binary.AppendUvarint(nil, uint64(len(raw))), raw...) // prefixed with its length
		if has := bytes.Contains(same, raw) && bytes.Contains(same, []byte(name)); has ==
			strings.HasSuffix(name, "num_batches_tracked") {
			t.Errorf("%s is there: %t", name, has)
		}
	}
	for text, want := range map[string]bool{`["a","b"]`: true, "image_size": true, `[0.25,0.25,0.25]`: false} {
		if bytes.Contains(same, []byte(text)) != want {
			t.Errorf("%q is there: %t", text, !want)
		}
	}
}

func init() {
	nn.Register(nn.Architecture{Name: "onnx-activations", Size: 25, Channels: 3, Classes: 7,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			a0, a1 := expr.Arg(0), expr.Arg(1)
			x = b.Conv("stem", x, nn.Conv{Filters: 16, Kernel: 3, Stride: 2, Pad: 2, Dilation: 2, Bias: true})
			x = b.Hardswish("hardswish", b.BatchNorm("bn", x, 1))
			x = b.Conv("depthwise", x, nn.Conv{Filters: 16, Kernel: 3, Stride: 2, Pad: 1, Groups: 16})
			x = b.SqueezeExcite("se", x, 4, (*nn.Builder).SiLU, (*nn.Builder).HardSigmoid)
			x = b.Map("channels", a0.Mul(a1).Exp().Shift(1).Log(), x, b.Param("scale",
				nn.Init{Distribution: nn.Constant, Scale: .7}, 16))
			x = b.Map("cells", expr.If(a0.LessEqual(a1), a0.Sub(a1), a0.Div(a1.Abs().Shift(1))), x, b.GlobalAvgPool("mean", x))
			x = b.Add("add", b.Shortcut("shortcut", x, 2, 19), b.Shortcut("same", b.AvgPool("avg", x, 3, 2, 1), 1, 19))
			x = b.Sigmoid("sigmoid", b.GELUTanh("gelutanh", b.GELU("gelu", x)))
			return b.Linear("fc", b.Flatten("flatten", b.MaxPool("max", x, 3, 1, 1)), b.Config().Classes)
		}})
}

// TestONNXRuntime checks the files with onnx.checker and onnxruntime if ONNX_PYTHON names a Python that has them.
func TestONNXRuntime(t *testing.T) {
	python := os.Getenv("ONNX_PYTHON")
	if python == "" {
		t.Skip("ONNX_PYTHON names no Python with onnx and onnxruntime")
	}
	const images = 3
	dir := t.TempDir()
	dev := cpuDevice(t, 0)
	type net struct {
		arch string
		cfg  nn.Config
	}
	nets := []net{
		{"lenet", nn.Config{Channels: 1, Mean: []float64{.25}, Std: []float64{.3}}},
		{"conv6", nn.Config{}},
		{"resnet20", nn.Config{}},
		{"resnet56", nn.Config{Size: 33}},
		{"resnet18", nn.Config{}},
		{"resnet50", nn.Config{}},
		{"resnet50", nn.Config{Size: 97, Classes: 12, BlurPool: true}},
		{"resnet101", nn.Config{Size: 64}},
		{"onnx-activations", nn.Config{}},
	}
	for _, name := range narrowNets(t) {
		nets = append(nets, net{arch: name})
	}
	for _, c := range nets {
		if c.cfg.Mean == nil {
			c.cfg.Mean, c.cfg.Std = []float64{.485, .456, .406}, []float64{.229, .224, .225}
		}
		n, err := New(dev, c.arch, c.cfg, 1)
		if err != nil {
			t.Fatal(err)
		}
		trained(t, n)
		k := n.model.Config
		b := noise(images, k.Size, 7)
		b.Channels, b.Images = k.Channels, b.Images[:images*k.Size*k.Size*k.Channels]
		logits := make([]float32, images*k.Classes)
		if _, err := n.Evaluate(b, logits); err != nil {
			t.Fatal(err)
		}
		raw, err := binary.Append(nil, binary.LittleEndian, logits)
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{0, images} {
			path := filepath.Join(dir, fmt.Sprintf("%s-%d-%t-%d", c.arch, k.Size, k.BlurPool, batch))
			var file bytes.Buffer
			if err := n.WriteONNX(&file, Meta{Model: c.arch}, batch); err != nil {
				t.Fatal(err)
			}
			for ext, content := range map[string][]byte{".onnx": file.Bytes(), ".images": b.Images, ".logits": raw} {
				if err := files.Write(path+ext, content); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(python, "testdata/onnx_check.py", dir).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
