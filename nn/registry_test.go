package nn

import (
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

func TestParameterCounts(t *testing.T) {
	want := map[string]int{
		"lenet":     61_706,
		"conv6":     247_242,
		"resnet20":  269_722,
		"resnet32":  464_154,
		"resnet44":  658_586,
		"resnet56":  853_018,
		"resnet18":  11_689_512,
		"resnet34":  21_797_672,
		"resnet50":  25_557_032,
		"resnet101": 44_549_160,
		"resnet152": 60_192_808,

		"resnext50_32x4d":  25_028_904,
		"resnext101_32x8d": 88_791_336,
		"resnext101_64x4d": 83_455_272,
		"wide_resnet50_2":  68_883_240,
		"wide_resnet101_2": 126_886_696,
	}
	for _, a := range Architectures() {
		for _, mode := range []Mode{Train, Eval} {
			m, err := Build(a.Name, Config{Batch: 2, Mode: mode})
			if err != nil {
				t.Error(err)
				continue
			}
			if m.NumParams() != want[a.Name] {
				t.Errorf("%s has %d parameters in %v, want %d", a.Name, m.NumParams(), mode, want[a.Name])
			}
			checkModel(t, m)
		}
		delete(want, a.Name)
	}
	for name := range want {
		t.Errorf("%s is not registered", name)
	}
}

// checkModel checks the documented properties of a Model's nodes.
func checkModel(t *testing.T, m *Model) {
	t.Helper()
	c, name := m.Config, m.Arch.Name+" "+m.Config.Mode.String()
	train := c.Mode == Train
	for _, n := range []struct {
		what string
		node *G.Node
		want op.Type
	}{
		{"images", m.Images, op.T(op.Uint8, c.Batch, c.ImageHeight, c.ImageWidth, c.Channels)},
		{"crops", m.Crops, op.T(op.Int32, c.Batch, 3)},
		{"labels", m.Labels, op.T(op.Int32, c.Batch)},
		{"input", m.Input, op.T(c.DType, c.Batch, c.Channels, c.Size, c.Size)},
		{"logits", m.Logits, op.T(c.DType, c.Batch, c.Classes)},
		{"loss", m.Loss, op.T(c.DType)},
		{"score", m.Score, op.T(c.DType, 3)},
	} {
		if got, err := TypeOf(n.node); err != nil || !got.Equal(n.want) {
			t.Errorf("%s: %s is %v, want %v (%v)", name, n.what, got, n.want, err)
		}
	}
	for _, p := range m.Params {
		if got, _ := TypeOf(p.Node); !got.Equal(op.T(c.DType, p.Shape...)) {
			t.Errorf("%s: the node of %s is %v, want shape %v", name, p.Name, got, p.Shape)
		}
		if !train {
			if p.Grad != nil {
				t.Errorf("%s: %s has a gradient", name, p.Name)
			}
			continue
		}
		if got, _ := TypeOf(p.Grad); !got.Equal(op.T(c.DType, p.Shape...)) {
			t.Errorf("%s: the gradient of %s is %v, want shape %v", name, p.Name, got, p.Shape)
		}
		if p.BiasOrNorm != (len(p.Shape) == 1) {
			t.Errorf("%s: %s%v has BiasOrNorm %v", name, p.Name, p.Shape, p.BiasOrNorm)
		}
	}
	if hasNorm := len(m.Stats) > 0; (m.BatchNormMomentum != nil) != (train && hasNorm) {
		t.Errorf("%s: momentum is %v with %d batch normalisations", name, m.BatchNormMomentum, len(m.Stats))
	}
	if train && len(m.Updates) != len(m.Stats) || !train && len(m.Updates) != 0 {
		t.Errorf("%s: %d updates of %d statistics", name, len(m.Updates), len(m.Stats))
	}
}

func TestNoGradientOfPixels(t *testing.T) {
	m, err := Build("resnet18", Config{Batch: 1, Size: 64})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range m.Graph.AllNodes() {
		if o, ok := n.Op().(*Op); ok && o.Layer() == "conv1" && o.Op().Kind() == "conv2d_grad_input" {
			t.Errorf("%v makes a gradient of the pixels", o)
		}
	}
	m, err = Build("resnet18", Config{Batch: 1, Size: 64, FloatInput: true})
	if err != nil {
		t.Fatal(err)
	}
	if m.InputGrad == nil || !m.InputGrad.Shape().Eq(m.Input.Shape()) {
		t.Errorf("the gradient of the input %v is %v", m.Input.Shape(), m.InputGrad)
	}
}

func TestArchitecturesAreSorted(t *testing.T) {
	var names []string
	for _, a := range Architectures() {
		names = append(names, a.Name)
	}
	if !slices.IsSortedFunc(names, compareNames) || slices.Index(names, "resnet18") > slices.Index(names, "resnet101") {
		t.Error(names)
	}
}

func TestUnknownModel(t *testing.T) {
	for name, want := range map[string]string{
		"resnet5":  `did you mean one of resnet50, resnet56?`,
		"res":      `resnext101_32x8d or of 2 others? rna models lists them`,
		"resnt50":  `did you mean "resnet50"?`,
		"ResNet18": `did you mean "resnet18"?`,
		"lnet":     `did you mean "lenet"?`,
		"vgg":      `"vgg" (known: conv6, lenet, resnet18, `,
	} {
		if _, err := Build(name, Config{Batch: 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Build(%q) gives %v, want …%s…", name, err, want)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		arch string
		c    Config
		want string
	}{
		{"lenet", Config{}, "batch size 0"},
		{"lenet", Config{Batch: 1, Classes: -1}, "-1 classes: must be at least 1"},
		{"lenet", Config{Batch: 1, Channels: -1}, "-1 channels"},
		{"lenet", Config{Batch: 1, Size: 11}, "input size 11 is too small: must be at least 12"},
		{"resnet18", Config{Batch: 1, Size: 5_000_000}, "input size 5000000 is too large: must be at most 16384"},
		{"lenet", Config{Batch: 1, ImageHeight: -3}, "images of -3×28 pixels"},
		{"lenet", Config{Batch: 1, DType: op.Int32}, "element type int32"},
		{"lenet", Config{Batch: 1, Smoothing: 1}, "label smoothing 1"},
		{"lenet", Config{Batch: 1, Mode: 7}, "unknown mode Mode(7)"},
		{"conv6", Config{Batch: 1, Mean: []float64{1, 2}}, "mean has 2 values for 3 channels"},
		{"conv6", Config{Batch: 1, Std: []float64{1, 0, 1}}, "std of channel 1 is 0"},
		{"lenet", Config{Batch: 1, Mean: []float64{math.NaN()}}, "mean of channel 0 is NaN"},
		{"resnet18", Config{Batch: 1, Size: 32}, "layer4.0.bn1"},
	} {
		_, err := Build(c.arch, c.c)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.arch) {
			t.Errorf("Build(%s, %+v) gives %v, want …%s…", c.arch, c.c, err, c.want)
		}
	}
	if _, err := Build("lenet", Config{Batch: 1, Size: 12}); err != nil {
		t.Error(err)
	}
}

// An alias finds its net, under the net's name. Names and aliases are unique.
func TestAlias(t *testing.T) {
	Alias("another_lenet", "lenet")
	defer delete(registry.aliases, "another_lenet")
	if a, err := Lookup("another_lenet"); err != nil || a.Name != "lenet" {
		t.Errorf("%q, %v", a.Name, err)
	}
	if got := Aliases()["another_lenet"]; got != "lenet" {
		t.Errorf("the alias is %q", got)
	}
	for name, register := range map[string]func(){
		"a net's name":    func() { Alias("resnet18", "lenet") },
		"an alias's name": func() { Alias("another_lenet", "lenet") },
		"no net":          func() { Alias("lenet5", "lenet4") },
		"an alias for one": func() {
			Register(Architecture{Name: "another_lenet", Size: 1, Channels: 1, Classes: 2, Build: lenet})
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted", name)
				}
			}()
			register()
		}()
	}
}

func TestRegisterTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Register(Architecture{Name: "lenet", Size: 1, Channels: 1, Classes: 2, Build: lenet})
}
