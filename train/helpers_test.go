package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/op"
	"onlinerna/train/network"
	"onlinerna/train/safetensors"
)

// tiny is a run of LeNet on a few glyphs.
func tiny(out string) Config {
	return Config{Batch: 8, Epochs: 5, StepsLimit: 3, ValLimit: 2, Seed: 3, Out: out,
		Schedule: Schedule{Kind: Linear, Rate: 0.05}, RNA: RNAConfig{Window: 2, Averages: []int{2}}}
}

// tinyColour is a run of a model with BatchNorm on pictures.
func tinyColour(out, pictures string) Config {
	return Config{Data: pictures, Model: "conv6", Batch: 8, Epochs: 5, Seed: 3, Out: out,
		Schedule: Schedule{Kind: Linear, Rate: 0.05}, RNA: RNAConfig{Window: 2, Averages: []int{2}, Batches: 2}}
}

// pictures makes folders of PNG files of size×size: train with n images, val with m, two classes.
func pictures(t testing.TB, n, m, size int) string {
	t.Helper()
	dir := t.TempDir()
	for split, k := range map[string]int{"train": n, "val": m} {
		for i := range k {
			r := data.NewRand(uint64(i), uint64(len(split)))
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
			put(t, filepath.Join(dir, split, []string{"plain", "striped"}[class], fmt.Sprintf("%03d.png", i)), b.Bytes())
		}
	}
	return dir
}

func put(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func cpuDevice(t testing.TB, threads int) device.Device {
	t.Helper()
	dev, err := cpu.New(cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func newRun(t testing.TB, c Config, dev device.Device, hooks ...Hook) *Run {
	t.Helper()
	r, err := New(c, dev, hooks...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// trained is a run that is over.
func trained(t testing.TB, c Config, dev device.Device, hooks ...Hook) *Run {
	t.Helper()
	r := newRun(t, c, dev, hooks...)
	if err := r.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r
}

// numbers reads a vector.
func numbers(t testing.TB, v device.Vector) []float64 {
	t.Helper()
	x := make([]float64, v.Len())
	if err := v.ReadAt64(x, 0); err != nil {
		t.Fatal(err)
	}
	return x
}

// tensors are the parameters of a network by name, in PyTorch's order of elements.
func tensors(t testing.TB, n *network.Network) map[string][]float64 {
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

// near fails unless got and want differ by at most tol of want's largest value.
func near(t testing.TB, what string, got, want []float64, tol float64) {
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

// mean is Σ c_i x_i.
func mean(c []float64, x [][]float64) []float64 {
	sum := make([]float64, len(x[0]))
	for i := range c {
		for j, v := range x[i] {
			sum[j] += c[i] * v
		}
	}
	return sum
}

// watch is a hook made of functions.
type watch struct {
	step, epoch func(s *State) error
}

func (watch) Name() string { return "watch" }

func (w watch) AfterStep(s *State) error {
	if w.step == nil {
		return nil
	}
	return w.step(s)
}

func (w watch) AfterEpoch(s *State) error {
	if w.epoch == nil {
		return nil
	}
	return w.epoch(s)
}

// untimed is JSON without what differs from run to run: times and folders.
func untimed(t testing.TB, b []byte) string {
	t.Helper()
	var clean func(v any)
	clean = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range []string{"seconds", "img_per_s", "out", "metrics"} { // metrics: its size in bytes
				delete(v, k)
			}
			for _, x := range v {
				clean(x)
			}
		case []any:
			for _, x := range v {
				clean(x)
			}
		}
	}
	var out strings.Builder
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	for dec.More() {
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		clean(v)
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(b, '\n'))
	}
	return out.String()
}

// files lists the files below dir.
func files(t testing.TB, dir string) []string {
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

// sameFolders fails unless two runs left the same files: weights, checkpoint and window bit for bit, metrics
// and state apart from times.
func sameFolders(t testing.TB, got, want string) {
	t.Helper()
	g, w := files(t, got), files(t, want)
	if !slices.Equal(g, w) {
		t.Errorf("files %v, want %v", g, w)
		return
	}
	for _, name := range w {
		a, err := os.ReadFile(filepath.Join(got, name))
		b, err2 := os.ReadFile(filepath.Join(want, name))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl") {
			a, b = []byte(untimed(t, a)), []byte(untimed(t, b))
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs", name)
			if len(a)+len(b) < 20000 && strings.Contains(name, ".json") {
				t.Logf("got\n%s\nwant\n%s", a, b)
			}
		}
	}
}

func reference(d op.DType) device.Device { return device.NewReference(d) }
