package network

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/train/safetensors"
)

// Positions are resized as timm does.
func TestPositions(t *testing.T) {
	b, err := os.ReadFile("testdata/positions.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		From, To, Width int
		Y               []float64
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < 5 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		x := make([]float64, c.From*c.From*c.Width)
		for i := range x {
			x[i] = math.Sin(float64(i + c.Width))
		}
		y := bicubic(x, c.From, c.To, c.Width)
		for i, want := range c.Y {
			if len(y) != len(c.Y) || !(math.Abs(y[i]-want) < 1e-6) { // timm computes in float32
				t.Fatalf("from %d to %d: element %d of %d is %g, want %g of %d", c.From, c.To, i, len(y), y[i], want,
					len(c.Y))
			}
		}
	}
}

// A vision transformer takes the weights of one for images of another size. Other widths are refused.
func TestOtherPositions(t *testing.T) {
	dev := cpuDevice(t, 2)
	at := func(name string, size int) *Network {
		n, err := New(dev, name, nn.Config{Classes: 10, Channels: 3, Size: size}, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		return n
	}
	for _, name := range []string{"vit_narrow", "vit_gap_narrow", "vit_torchvision_narrow", "deit_narrow",
		"dinov2_narrow", "dinov2_reg2_narrow", "vit_reg2_narrow", "clip_narrow", "clip_options_narrow",
		"siglip_narrow", "eva02_narrow", "eva_options_narrow"} {
		small, path := at(name, 32), filepath.Join(t.TempDir(), "w.safetensors")
		if err := small.SaveWeights(path, small.Params, small.Stats, Meta{Model: name, ImageSize: 32}); err != nil {
			t.Fatal(err)
		}
		large := at(name, 64)
		l, err := large.Load(path, LoadOptions{})
		if err != nil || !strings.HasSuffix(l.Resized, " is resized from 4×4 to 8×8 positions") {
			t.Errorf("%s: %q, %v", name, l.Resized, err)
		}
		for i, p := range large.model.Params {
			s, w := large.params[i], small.params[i]
			x, y := numbers(t, large.Params)[s.off:s.off+s.n], numbers(t, small.Params)[w.off:w.off+w.n]
			if p.Name == large.model.Arch.Positions.Name {
				first := large.model.Arch.Positions.First * p.Shape[2]
				y = append(y[:first:first], bicubic(y[first:], 4, 8, p.Shape[2])...)
			}
			for k := range x {
				if math.Abs(x[k]-y[k]) > 1e-7 {
					t.Fatalf("%s: %s differs at %d", name, p.Name, k)
				}
			}
		}
		wide := at("vit_tiny_patch4_32", 32)
		if _, err := wide.Load(path, LoadOptions{}); err == nil || !strings.Contains(err.Error(), "do not fit") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s in another net: %v", name, err)
		}
	}
}

// Weights of a net without a place for its class token may have one, which is added to the token.
func TestClassPlace(t *testing.T) {
	dev := cpuDevice(t, 1)
	at := func(size int) *Network {
		n, err := New(dev, "dinov2_reg2_narrow", nn.Config{Classes: 10, Channels: 3, Size: size}, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		return n
	}
	same, larger := at(24), at(32)
	for _, c := range []struct {
		net         *Network
		rows, patch int // of the file
		fits        bool
	}{{same, 10, 1, true}, {same, 9, 0, true}, {larger, 10, 1, true}, {same, 11, 0, false}} {
		path := filepath.Join(t.TempDir(), "w.safetensors")
		var list []safetensors.Tensor
		for _, e := range same.model.StateDict() {
			x := safetensors.Tensor{Name: e.Name, DType: safetensors.F32, Shape: slices.Clone(e.Shape)}
			if e.Name == "pos_embed" {
				x.Shape[1] = c.rows
			}
			list = append(list, x)
		}
		w, err := safetensors.Create(path, list, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			v := make([]float32, x.Len())
			for i := range v {
				v[i] = float32(1 + i/24)
			}
			if err := w.Write(x.Name, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		l, err := c.net.Load(path, LoadOptions{})
		if (err == nil) != c.fits {
			t.Errorf("%d rows at %d pixels: %v", c.rows, c.net.cfg.Size, err)
		}
		if err != nil {
			continue
		}
		if (l.Resized == "") != (c.net == same) {
			t.Errorf("%d rows at %d pixels: %q", c.rows, c.net.cfg.Size, l.Resized)
		}
		for _, s := range c.net.params {
			want := -1.
			switch s.name {
			case "cls_token":
				want = float64(1 + c.patch)
			case "pos_embed":
				want = float64(1 + c.patch)
			}
			x := op.New(s.typ)
			if err := c.net.download(x, c.net.Params, s); err != nil {
				t.Fatal(err)
			}
			got := float64(x.Data.([]float32)[0])
			if s.name == "pos_embed" && c.net == larger {
				want = got // TestPositions judges resizing
			}
			if want >= 0 && got != want {
				t.Errorf("%d rows: %s begins with %g, want %g", c.rows, s.name, got, want)
			}
		}
	}
}
