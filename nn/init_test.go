package nn

import (
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// filled is the initial value of a parameter in float64.
func filled(t *testing.T, p *Param, seed uint64) []float64 {
	t.Helper()
	x := op.New(op.T(op.Float64, p.Shape...))
	if err := p.Fill(x, seed); err != nil {
		t.Fatal(err)
	}
	return x.Data.([]float64)
}

func moments(x []float64) (mean, variance, kurtosis float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	var fourth float64
	for _, v := range x {
		variance += (v - mean) * (v - mean) / n
		fourth += math.Pow(v-mean, 4) / n
	}
	return mean, variance, fourth / (variance * variance)
}

func TestInit(t *testing.T) {
	m, err := Build("resnet18", Config{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name               string
		variance, kurtosis float64
	}{
		{"conv1.weight", 2. / (64 * 49), 3},
		{"layer2.0.downsample.0.weight", 2. / 128, 3},
		{"layer3.0.conv1.weight", 2. / (256 * 9), 3},
		{"fc.weight", 1. / 512 / 3, 1.8},
	} {
		x := filled(t, find(t, m, c.name), 1)
		mean, variance, kurtosis := moments(x)
		// Five standard errors.
		e := 5 / math.Sqrt(float64(len(x)))
		if math.Abs(mean) > e*math.Sqrt(c.variance) || math.Abs(variance/c.variance-1) > 1.5*e ||
			math.Abs(kurtosis-c.kurtosis) > 5*e {
			t.Errorf("%s: mean %g, variance %g of %g, kurtosis %g of %g", c.name, mean, variance, c.variance, kurtosis,
				c.kurtosis)
		}
	}
	bound := 1 / math.Sqrt(512)
	for _, v := range filled(t, find(t, m, "fc.bias"), 1) {
		if math.Abs(v) > bound {
			t.Errorf("fc.bias has %g, bound %g", v, bound)
		}
	}
	for name, want := range map[string]float64{"bn1.weight": 1, "bn1.bias": 0, "layer1.0.bn2.weight": 1} {
		for _, v := range filled(t, find(t, m, name), 1) {
			if v != want {
				t.Errorf("%s has %g, want %g", name, v, want)
			}
		}
	}
}

// A kernel that is not square has the fan-out and the fan-in of its pixels.
func TestInitOfRows(t *testing.T) {
	a := Architecture{Name: "rows", Size: 8, Channels: 3, Classes: 4, Build: func(b *Builder, x *G.Node) *G.Node {
		return b.GlobalAvgPool("mean", b.Conv("conv", x, Conv{Filters: 4, Kernel: 1, Width: 7, PadWidth: 3, Bias: true}))
	}}
	m, err := a.Model(Config{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	weight, bias := m.Params[0], m.Params[1]
	if !weight.Shape.Equal(op.Shape{4, 3, 1, 7}) || weight.Init != HeNormal(4, 7) || bias.Init != FanInUniform(21) {
		t.Errorf("the weight %v starts as %v, the bias as %v", weight.Shape, weight.Init, bias.Init)
	}
}

func find(t *testing.T, m *Model, name string) *Param {
	t.Helper()
	for i := range m.Params {
		if m.Params[i].Name == name {
			return &m.Params[i]
		}
	}
	t.Fatalf("%s has no parameter %s", m.Arch.Name, name)
	return nil
}

func TestZeroInitResidual(t *testing.T) {
	for arch, last := range map[string]string{"resnet18": ".bn2.weight", "resnet50": ".bn3.weight",
		"resnet20": ".bn2.weight"} {
		m, err := Build(arch, Config{Batch: 2, ZeroInitResidual: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.Params {
			zero := strings.HasSuffix(p.Name, last) && strings.HasPrefix(p.Name, "layer")
			if zero && p.Init != (Init{}) || !zero && p.Init.Scale == 0 &&
				!strings.HasSuffix(p.Name, ".bias") {
				t.Errorf("%s: %s starts as %v", arch, p.Name, p.Init)
			}
		}
	}
}

func TestFillIsAFunctionOfSeedNameAndIndex(t *testing.T) {
	for _, init := range []Init{{Distribution: Normal, Scale: 2},
		{Distribution: Normal, Scale: 2, Mean: 5}, {Distribution: Uniform, Scale: 3}} {
		p := &Param{Name: "a", Shape: op.Shape{101}, Init: init}
		x := filled(t, p, 1)
		for i, v := range filled(t, p, 1) {
			if v != x[i] {
				t.Fatalf("%v: element %d differs from call to call", init, i)
			}
		}
		for i, v := range filled(t, &Param{Name: "a", Shape: op.Shape{2, 25}, Init: init}, 1) {
			if v != x[i] {
				t.Fatalf("%v: element %d depends on the shape", init, i)
			}
		}
		for i, v := range filled(t, &Param{Name: "b", Shape: p.Shape, Init: init}, 1) {
			if v == x[i] || filled(t, p, 2)[i] == x[i] {
				t.Fatalf("%v: element %d does not depend on name or seed", init, i)
			}
		}
		y := op.New(op.T(op.Float32, 101))
		if err := p.Fill(y, 1); err != nil {
			t.Fatal(err)
		}
		for i, v := range y.Data.([]float32) {
			if v != float32(x[i]) {
				t.Fatalf("%v: element %d is %g in float32, %g in float64", init, i, v, x[i])
			}
		}
	}
}

// Large tensors are filled by several goroutines, a piece at a time: values are those of one goroutine.
func TestPiecesOfInit(t *testing.T) {
	for _, init := range []Init{{Distribution: Normal, Scale: 2, Mean: 1}, {Distribution: Uniform, Scale: 3}, {Scale: 4}} {
		p := &Param{Name: "a", Shape: op.Shape{2*fillPiece + 3}, Init: init}
		want := make([]float64, p.Shape.Size())
		drawInit(init, want, stream(5, "a"), 0)
		for i, v := range filled(t, p, 5) {
			if v != want[i] {
				t.Fatalf("%v: element %d is %g, want %g", init, i, v, want[i])
			}
		}
	}
}

// The first values are SplitMix64's, seeded with 0.
func TestUniformIsSplitMix64(t *testing.T) {
	for i, want := range []float64{0.8833108082136426, 0.43152799704850997, 0.026433771592597743} {
		if got := uniform(0, uint64(i)); got != want {
			t.Errorf("number %d is %v, want %v", i, got, want)
		}
	}
}

func TestFillErrors(t *testing.T) {
	p := &Param{Name: "fc.weight", Shape: op.Shape{2, 3}}
	odd := &Param{Name: "fc.weight", Shape: op.Shape{1}, Init: Init{Distribution: 9}}
	if err := odd.Fill(op.New(op.T(op.Float32, 1)), 1); err == nil {
		t.Error("an unknown distribution is no error")
	}
	odd.Init = Init{Distribution: Frequencies, Row: 3}
	if err := odd.Fill(op.New(op.T(op.Float32, 1)), 1); err == nil || !strings.Contains(err.Error(), "rows of 3 values") {
		t.Errorf("frequencies by rows of 3 values: %v", err)
	}
	for _, x := range []op.Tensor{op.New(op.T(op.Float32, 3, 2)), op.New(op.T(op.Int32, 2, 3))} {
		if err := p.Fill(x, 1); err == nil || !strings.Contains(err.Error(), "fc.weight") {
			t.Errorf("filling %v gives %v", x.Type(), err)
		}
	}
	s := &Stat{Name: "bn1", Channels: 2}
	x := op.New(op.T(op.Float32, 2, 2))
	if err := s.Fill(x); err != nil || x.Data.([]float32)[1] != 0 || x.Data.([]float32)[2] != 1 {
		t.Errorf("statistics start as %v (%v)", x.Data, err)
	}
	for _, x := range []op.Tensor{op.New(op.T(op.Float32, 4)), op.New(op.T(op.Int32, 2, 2))} {
		if err := s.Fill(x); err == nil || !strings.Contains(err.Error(), "bn1") {
			t.Errorf("filling %v gives %v", x.Type(), err)
		}
	}
}

// A mean moves all values.
func TestMean(t *testing.T) {
	p := &Param{Name: "a", Shape: op.Shape{101}, Init: Init{Distribution: Normal, Scale: 2}}
	around := *p
	around.Init.Mean = 5
	x := filled(t, p, 1)
	for i, v := range filled(t, &around, 1) {
		if v != 5+x[i] {
			t.Fatalf("element %d is %g, want 5 + %g", i, v, x[i])
		}
	}
}

// Uniform values lie about their mean.
func TestUniformAboutMean(t *testing.T) {
	p := Param{Name: "A", Shape: op.Shape{1000}, Init: Init{Distribution: Uniform, Scale: 7.5, Mean: 8.5}}
	x := filled(t, &p, 1)
	if least, most := slices.Min(x), slices.Max(x); least < 1 || least > 1.1 || most >= 16 || most < 15.9 {
		t.Errorf("values from %g to %g, want 1 to 16", least, most)
	}
	if got := p.Init.String(); got != "uniform from 1 to 16" {
		t.Error(got)
	}
}

// The second half of the values may have another distribution.
func TestInitOfHalves(t *testing.T) {
	i := Init{Distribution: Normal, Scale: .5, Second: &Init{Scale: 3}}
	whole, first := make([]float64, 8), make([]float64, 4)
	if err := i.fill(whole, 1, "x"); err != nil {
		t.Fatal(err)
	}
	if err := (Init{Distribution: Normal, Scale: .5}).fill(first, 1, "x"); err != nil {
		t.Fatal(err)
	}
	if want := append(first, 3, 3, 3, 3); !slices.Equal(whole, want) {
		t.Errorf("%v, want %v", whole, want)
	}
	if want := "normal, standard deviation 0.5, in the second half constant 3"; i.String() != want {
		t.Errorf("%s, want %s", i, want)
	}
}

// Frequencies decrease along half a row, in one direction; those of the other half are perpendicular. Rows differ.
func TestFrequencies(t *testing.T) {
	p := &Param{Name: "a", Shape: op.Shape{2, 3, 8}, Init: Init{Distribution: Frequencies, Scale: 16, Row: 8}}
	v := filled(t, p, 1)
	x, y := v[:24], v[24:]
	angles := map[float64]bool{}
	for row := range 3 {
		x, y := x[8*row:][:8], y[8*row:][:8]
		angle := math.Atan2(y[0], x[0])
		angles[angle] = true
		for k := range 4 {
			length := math.Pow(16, -float64(k)/4)
			sin, cos := math.Sincos(angle)
			for i, want := range map[int][2]float64{k: {cos, sin}, k + 4: {-sin, cos}} {
				if math.Abs(x[i]-length*want[0])+math.Abs(y[i]-length*want[1]) > 1e-12 {
					t.Errorf("row %d has (%g, %g) at %d, want %g times %v", row, x[i], y[i], i, length, want)
				}
			}
		}
	}
	if len(angles) != 3 {
		t.Errorf("angles %v", angles)
	}
	if want := "frequencies by powers of 16, in random directions"; p.Init.String() != want {
		t.Errorf("%v, want %s", p.Init, want)
	}
}
