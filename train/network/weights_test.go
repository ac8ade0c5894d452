package network

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/safetensors"
)

func open(t testing.TB, dev device.Device, arch string, classes int) *Network {
	t.Helper()
	cfg := nn.Config{Classes: classes, Channels: 3, Size: 32, Mean: []float64{.5, .5, .5}, Std: []float64{.25, .25, .25}}
	n, err := New(dev, arch, cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// sixtyFourths sets the weights to numbers that every floating-point type holds exactly, and the statistics to positive
// ones.
func sixtyFourths(t testing.TB, n *Network) {
	t.Helper()
	for sign, v := range map[float64]device.Vector{-1: n.Params, 1: n.Stats} {
		x := make([]float64, v.Len())
		for i := range x {
			x[i] = float64(i*37%127+1) / 64
			if i%3 == 0 {
				x[i] *= sign
			}
		}
		if err := v.WriteAt64(x, 0); err != nil {
			t.Fatal(err)
		}
	}
	n.StatsBatches = 1 << 40
}

// file is the parsed content of a safetensors file.
type file struct {
	names []string
	types map[string]safetensors.DType
	shape map[string][]int
	data  map[string][]float64
}

func takeApart(t testing.TB, path string) file {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := file{types: map[string]safetensors.DType{}, shape: map[string][]int{}, data: map[string][]float64{}}
	for _, x := range f.Tensors {
		c.names = append(c.names, x.Name)
		c.types[x.Name], c.shape[x.Name] = x.DType, x.Shape
		v := make([]float64, x.Len())
		if x.DType.Integer() {
			ints, err := f.Int64s(x)
			if err != nil {
				t.Fatal(err)
			}
			for i := range ints {
				v[i] = float64(ints[i])
			}
		} else if err := f.Float64s(x, v, 0); err != nil {
			t.Fatal(err)
		}
		c.data[x.Name] = v
	}
	return c
}

// write assembles the file byte by byte.
func (c file) write(t testing.TB, path string) {
	t.Helper()
	head := map[string]any{}
	var body []byte
	for _, name := range c.names {
		from := len(body)
		for _, x := range c.data[name] {
			switch c.types[name] {
			case safetensors.F64:
				body = binary.LittleEndian.AppendUint64(body, math.Float64bits(x))
			case safetensors.F32:
				body = binary.LittleEndian.AppendUint32(body, math.Float32bits(float32(x)))
			case safetensors.BF16:
				body = binary.LittleEndian.AppendUint16(body, uint16(math.Float32bits(float32(x))>>16))
			case safetensors.F16:
				body = binary.LittleEndian.AppendUint16(body, half(x))
			case safetensors.I64:
				body = binary.LittleEndian.AppendUint64(body, uint64(x))
			case safetensors.I32:
				body = binary.LittleEndian.AppendUint32(body, uint32(x))
			}
		}
		head[name] = map[string]any{"dtype": c.types[name], "shape": c.shape[name], "data_offsets": []int{from, len(body)}}
	}
	js, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(js))), js...)
	if err := os.WriteFile(path, append(b, body...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// half is x, a normal number of binary16, in that format.
func half(x float64) uint16 {
	frac, exp := math.Frexp(math.Abs(x)) // [½, 1)
	h := uint16(exp-1+15)<<10 | uint16((2*frac-1)*1024)
	if x < 0 {
		h |= 1 << 15
	}
	return h
}

// equal fails unless two networks hold equal vectors.
func equal(t testing.TB, what string, got, want *Network) {
	t.Helper()
	if !slices.Equal(numbers(t, got.Params), numbers(t, want.Params)) ||
		!slices.Equal(numbers(t, got.Stats), numbers(t, want.Stats)) {
		t.Errorf("%s: the weights differ", what)
	}
	if got.StatsBatches != want.StatsBatches {
		t.Errorf("%s: %d batches tracked, want %d", what, got.StatsBatches, want.StatsBatches)
	}
}

func TestWeightsRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	meta := Meta{Model: "conv6", Classes: []string{"a b", "\"ç\""}, ImageSize: 32, Mean: []float64{.1, .2, 1. / 3},
		Std: []float64{1, 2, 3}, Epoch: 7, Kind: "rna"}
	for _, dev := range []device.Device{cpuDevice(t, 2), reference(op.Float64)} {
		a, b := open(t, dev, "conv6", 2), open(t, dev, "conv6", 2)
		sixtyFourths(t, a)
		if err := a.SaveWeights(path, a.Params, a.Stats, meta); err != nil {
			t.Fatal(err)
		}
		got, err := b.LoadWeights(path)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, meta) {
			t.Errorf("metadata %+v, want %+v", got, meta)
		}
		equal(t, dev.Name(), b, a)
		c := takeApart(t, path)
		var want []string
		for _, e := range a.Model().StateDict() {
			want = append(want, e.Name)
			dt := safetensors.F32
			switch {
			case e.Kind == nn.BatchesTracked:
				dt = safetensors.I64
			case dev.DType() == op.Float64:
				dt = safetensors.F64
			}
			if c.types[e.Name] != dt || !slices.Equal(c.shape[e.Name], e.Shape) {
				t.Errorf("%s is %s%v in the file, want %s%v", e.Name, c.types[e.Name], c.shape[e.Name], dt, e.Shape)
			}
			if strings.HasSuffix(e.Name, ".num_batches_tracked") && c.data[e.Name][0] != 1<<40 {
				t.Errorf("%s = %g", e.Name, c.data[e.Name])
			}
		}
		if !slices.Equal(c.names, want) {
			t.Errorf("names %v, want %v", c.names, want)
		}
	}
	// Files do not depend on the memory layout of the device that wrote them.
	a, b := open(t, cpuDevice(t, 1), "conv6", 2), open(t, reference(op.Float32), "conv6", 2)
	for i, n := range []*Network{a, b} {
		p := filepath.Join(t.TempDir(), "w.safetensors")
		if err := n.SaveWeights(p, n.Params, n.Stats, meta); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			x, _ := os.ReadFile(path)
			y, _ := os.ReadFile(p)
			if !slices.Equal(x, y) {
				t.Error("the cpu and the reference write different files for the same initial weights")
			}
		}
		path = p
	}
}

func TestLoadWeights(t *testing.T) {
	dev := cpuDevice(t, 2)
	dir := t.TempDir()
	want := open(t, dev, "conv6", 2)
	sixtyFourths(t, want)
	path := filepath.Join(dir, "w.safetensors")
	if err := want.SaveWeights(path, want.Params, want.Stats, Meta{}); err != nil {
		t.Fatal(err)
	}
	rename := func(prefix string) func(c *file) {
		return func(c *file) {
			for i, name := range c.names {
				c.names[i] = prefix + name
				c.types[prefix+name], c.shape[prefix+name], c.data[prefix+name] = c.types[name], c.shape[name], c.data[name]
			}
		}
	}
	convert := func(dt safetensors.DType) func(c *file) {
		return func(c *file) {
			for name, old := range c.types {
				if old == safetensors.F32 {
					c.types[name] = dt
				}
			}
		}
	}
	for name, change := range map[string]func(c *file){
		"F64":                   convert(safetensors.F64),
		"F16":                   convert(safetensors.F16),
		"BF16":                  convert(safetensors.BF16),
		"DataParallel's names":  rename("module."),
		"torch.compile's names": rename("_orig_mod."),
		"no counters": func(c *file) {
			c.names = slices.DeleteFunc(c.names, func(n string) bool { return strings.HasSuffix(n, "num_batches_tracked") })
		},
	} {
		c := takeApart(t, path)
		change(&c)
		p := filepath.Join(dir, "x.safetensors")
		c.write(t, p)
		got := open(t, dev, "conv6", 2)
		if name == "no counters" {
			got.StatsBatches = want.StatsBatches // unchanged
		}
		if _, err := got.LoadWeights(p); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		equal(t, name, got, want)
	}

	for _, c := range []struct {
		name    string
		message []string
		change  func(c *file)
	}{
		{"a tensor missing", []string{"is missing"}, func(c *file) { c.names = c.names[1:] }},
		{"a tensor too many", []string{"extra[1] is not in the model"}, func(c *file) {
			c.names = append(c.names, "extra")
			c.types["extra"], c.shape["extra"], c.data["extra"] = safetensors.F32, []int{1}, []float64{1}
		}},
		{"integers for weights", []string{"I32, the model has floating-point"},
			func(c *file) { c.types[c.names[len(c.names)-1]] = safetensors.I32 }},
		{"half of the names with a prefix", []string{"is missing", "and", "more"}, func(c *file) {
			rename("module.")(c)
			c.names[0] = strings.TrimPrefix(c.names[0], "module.")
		}},
	} {
		f := takeApart(t, path)
		c.change(&f)
		p := filepath.Join(dir, "bad.safetensors")
		f.write(t, p)
		refused(t, c.name, open(t, dev, "conv6", 2), p, c.message...)
	}
	refused(t, "more classes", open(t, dev, "conv6", 5), path, "conv6 with 5 classes", "is [2", "the model has [5")
	refused(t, "another model", open(t, dev, "lenet", 2), path, "do not fit lenet with 2 classes",
		"conv1.bias[6] is missing", "more")
	named := filepath.Join(dir, "named.safetensors")
	if err := want.SaveWeights(named, want.Params, want.Stats, Meta{Model: "conv6"}); err != nil {
		t.Fatal(err)
	}
	refused(t, "another model by name", open(t, dev, "lenet", 2), named, "of conv6: give that model, or other weights")
	if err := os.Truncate(path, 5000); err != nil {
		t.Fatal(err)
	}
	refused(t, "cut short", open(t, dev, "conv6", 2), path, "cut short")
}

// refused fails unless n rejects the file with an error that names the fault and its place, and stays unchanged.
func refused(t testing.TB, what string, n *Network, path string, message ...string) {
	t.Helper()
	before := numbers(t, n.Params)
	_, err := n.LoadWeights(path)
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, m := range append(message, path) {
		if !strings.Contains(err.Error(), m) {
			t.Errorf("%s: error %q does not say %q", what, err, m)
		}
	}
	if !slices.Equal(numbers(t, n.Params), before) {
		t.Errorf("%s: weights have changed", what)
	}
}

// TestMetaOfOthers reads other programs' metadata, or none.
func TestMetaOfOthers(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		meta map[string]string
		want Meta
		err  string
	}{
		"none":    {nil, Meta{}, ""},
		"PyTorch": {map[string]string{"format": "pt"}, Meta{}, ""},
		"the like": {map[string]string{"model": "resnet18", "mean": "[1,2]"}, Meta{Model: "resnet18", Mean: []float64{1, 2}},
			""},
		"garbled": {map[string]string{"classes": "a,b"}, Meta{}, "metadata classes"},
	} {
		path := filepath.Join(dir, name+".safetensors")
		w, err := safetensors.Create(path, nil, c.meta)
		if err == nil {
			err = w.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadMeta(path)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: error %v", name, err)
			}
		} else if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

// TestNoDecay checks the parameters without weight decay.
func TestNoDecay(t *testing.T) {
	n := open(t, reference(op.Float32), "conv6", 2)
	got := map[int]bool{}
	last := 0
	for _, s := range n.NoDecay() {
		if s.Off < last || s.Len <= 0 {
			t.Errorf("span %+v is empty or out of order", s)
		}
		last = s.Off + s.Len
		for i := range s.Len {
			got[s.Off+i] = true
		}
	}
	for _, s := range n.params {
		if want := len(s.typ.Shape) == 1; got[s.off] != want || got[s.off+s.n-1] != want {
			t.Errorf("%s%v: exempt %v, want %v", s.name, s.typ.Shape, got[s.off], want)
		}
	}
}

// Weights of a task that this program does not know are not taken for classification's.
func TestUnknownTask(t *testing.T) {
	for _, x := range []struct {
		kind, task string
		want       data.Task
		wrong      bool
	}{
		{"sgd", "regression", data.Regression, false}, {"sgd", "", "", false}, {"sgd", "segment\x1bation", "", true},
		{"", "image-classification", "", false},
	} {
		m, err := parseMeta("x", map[string]string{"model": "lenet", "kind": x.kind, "task": x.task})
		if m.Task != x.want || (err != nil) != x.wrong {
			t.Errorf("%+v: %q, %v", x, m.Task, err)
		}
	}
}
