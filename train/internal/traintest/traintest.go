// Package traintest has the shared parts of training's tests: small runs, pictures and a hook made of functions.
package traintest

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"onlinerna/data/random"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/option"
	"onlinerna/train/safetensors"
)

// Tiny has the options of a run of LeNet on a few glyphs.
var Tiny = option.Settings("batch 8  epochs 5  limit-batches 3  limit-val 2  seed 3  " +
	"schedule linear  lr 0.05  rna-window 2  averages 2")

// TinyColour has the options of a run of a model with BatchNorm on pictures.
var TinyColour = option.Settings("model conv6  batch 8  epochs 5  seed 3  " +
	"schedule linear  lr 0.05  rna-window 2  averages 2  rna-bn-batches 2")

// Spec sets options of s, a train.Spec, which this package cannot import.
func Spec[S any](table option.Table[S], s S, list []option.Setting) S {
	if err := table.Apply(&s, list...); err != nil {
		panic(err)
	}
	return s
}

// Pictures makes folders of size×size PNG files: train with n images, val with m, in two classes.
func Pictures(t testing.TB, n, m, size int) string {
	t.Helper()
	dir := t.TempDir()
	for split, k := range map[string]int{"train": n, "val": m} {
		for i := range k {
			r := random.New(uint64(i), uint64(len(split)))
			class := i % 2
			img := image.NewRGBA(image.Rect(0, 0, size, size))
			for y := range size {
				for x := range size {
					v := uint8(60 + 80*class*(x/8%2) + r.IntN(100))
					img.Set(x, y, color.RGBA{v, uint8(4 * y), uint8(r.IntN(256)), 255})
				}
			}
			var b bytes.Buffer
			if err := png.Encode(&b, img); err != nil {
				t.Fatal(err)
			}
			Put(t, filepath.Join(dir, split, []string{"plain", "striped"}[class], fmt.Sprintf("%03d.png", i)), b.Bytes())
		}
	}
	return dir
}

// Put writes a file and creates its folders.
func Put(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// CPU is a CPU device that closes at the end of the test.
func CPU(t testing.TB, threads int) device.Device {
	t.Helper()
	dev, err := cpu.New(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// Numbers reads a vector.
func Numbers(t testing.TB, v device.Vector) []float64 {
	t.Helper()
	x := make([]float64, v.Len())
	if err := v.ReadAt64(x, 0); err != nil {
		t.Fatal(err)
	}
	return x
}

// Tensors are the parameters of a network by name, in PyTorch's order of elements.
func Tensors(t testing.TB, n *network.Network) map[string][]float64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	if err := n.SaveVector(path, n.Params); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][]float64{}
	for _, x := range f.Tensors {
		all[x.Name] = make([]float64, x.Len())
		if err := f.Float64s(x, all[x.Name], 0); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Near fails unless got and want differ by at most tol times want's largest magnitude.
func Near(t testing.TB, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	scale := 0.0
	for _, w := range want {
		scale = max(scale, math.Abs(w))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*scale) {
			t.Errorf("%s: number %d is %g, want %g (tolerance %g)", what, i, got[i], want[i], tol*scale)
			return
		}
	}
}

// Mean is Σ c_i x_i.
func Mean(c []float64, x [][]float64) []float64 {
	sum := make([]float64, len(x[0]))
	for i := range c {
		for j, v := range x[i] {
			sum[j] += c[i] * v
		}
	}
	return sum
}

// Files lists the files below dir.
func Files(t testing.TB, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Watch is a hook made of functions.
type Watch struct {
	Step, Epoch func(s *hook.State) error
}

func (Watch) Name() string { return "watch" }

func (w Watch) AfterStep(_ context.Context, s *hook.State) error {
	if w.Step == nil {
		return nil
	}
	return w.Step(s)
}

func (w Watch) AfterEpoch(_ context.Context, s *hook.State) error {
	if w.Epoch == nil {
		return nil
	}
	return w.Epoch(s)
}

// Uniform are k equal coefficients that sum to 1.
func Uniform(k int) []float64 {
	c := make([]float64, k)
	for i := range c {
		c[i] = 1 / float64(k)
	}
	return c
}
