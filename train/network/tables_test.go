package network

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

// Tables of relative positions are resized as timm does.
func TestTables(t *testing.T) {
	b, err := os.ReadFile("testdata/tables.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name     string
		From, To []int
		Y        []float64
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < 16 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		e := nn.Entry{Name: "attn." + c.Name, Shape: c.To}
		r, ok := tableOf(e, c.From)
		if !ok {
			t.Errorf("%s%v is not resized to %v", c.Name, c.From, c.To)
			continue
		}
		x := make([]float64, op.Shape(c.From).Size())
		for i := range x {
			x[i] = math.Sin(float64(i))
		}
		y := r.resize(x, e.Shape)
		for i, want := range c.Y {
			if len(y) != len(c.Y) || !(math.Abs(y[i]-want) < 1e-5) { // timm computes in float32
				t.Errorf("%s%v to %v: element %d of %d is %g, want %g of %d", c.Name, c.From, c.To, i, len(y), y[i], want,
					len(c.Y))
				break
			}
		}
	}
	for _, c := range []struct {
		name  string
		own   op.Shape
		other []int
	}{
		{"a.relative_position_bias_table", op.Shape{169, 3}, []int{169, 3}},     // equal
		{"a.relative_position_bias_table", op.Shape{169, 3}, []int{529, 4}},     // heads
		{"a.relative_position_bias_table", op.Shape{169, 3}, []int{256, 3}},     // even
		{"a.relative_position_bias_table", op.Shape{169, 3}, []int{532, 3}},     // a class token
		{"a.relative_position_bias_table", op.Shape{3, 13, 13}, []int{3, 9, 7}}, // not square
		{"a.relative_position_bias_table", op.Shape{3, 13, 13}, []int{4, 9, 9}},
		{"a.attention_biases", op.Shape{3, 49}, []int{4, 16}},
		{"a.attention_biases", op.Shape{3, 49}, []int{3, 15}},
		{"a.weight", op.Shape{169, 3}, []int{529, 3}},
	} {
		if r, ok := tableOf(nn.Entry{Name: c.name, Shape: c.own}, c.other); ok {
			t.Errorf("%s%v is resized from %v: %+v", c.name, c.own, c.other, r)
		}
	}
}

// Nets with such tables take the weights of one for images of another size.
func TestOtherTables(t *testing.T) {
	dev := cpuDevice(t, 1)
	at := func(name string, size int) *Network {
		n, err := New(dev, name, nn.Config{Classes: 10, Channels: 3, Size: size}, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		return n
	}
	for _, c := range []struct {
		name         string
		small, large int
		says         string
	}{
		{"beit_narrow", 32, 64, `table is resized from 7×7 to 15×15 relative positions, and so are \d more$`},
		{"maxvit_tf_narrow", 64, 96, `table is resized from 3×3 to 5×5 relative positions, and so are \d more$`},
		{"coatnet_narrow", 64, 96, `table is resized from`},
		{"swin_s3_timm_narrow", 32, 64, `table is resized from`}, // windows are no larger than images
		{"levit_narrow", 96, 64, `attention_biases is resized from `},
		{"efficientformer_narrow", 64, 96, `attention_biases is resized from `},
		{"efficientformerv2_narrow", 64, 96, `attention_biases is resized from `},
		{"gcvit_narrow", 64, 96, `table is resized from `},
	} {
		small, path := at(c.name, c.small), filepath.Join(t.TempDir(), "w.safetensors")
		if err := small.SaveWeights(path, small.Params, small.Stats, Meta{Model: c.name, ImageSize: c.small}); err != nil {
			t.Fatal(err)
		}
		large := at(c.name, c.large)
		l, err := large.Load(path, LoadOptions{})
		if err != nil || !regexp.MustCompile(c.says).MatchString(l.Resized) {
			t.Errorf("%s: %q, %v", c.name, l.Resized, err)
			continue
		}
		for i, p := range large.model.Params {
			s, w := large.params[i], small.params[i]
			x, y := numbers(t, large.Params)[s.off:s.off+s.n], numbers(t, small.Params)[w.off:w.off+w.n]
			if r, ok := tableOf(nn.Entry{Name: p.Name, Shape: p.Shape}, small.model.Params[i].Shape); ok {
				y = r.resize(y, p.Shape)
			}
			for k := range x {
				if math.Abs(x[k]-y[k]) > 1e-7 {
					t.Fatalf("%s: %s differs at %d", c.name, p.Name, k)
				}
			}
		}
	}
}
