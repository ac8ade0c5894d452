package statedict

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/catalogue"
	"onlinerna/train/safetensors"
)

const torchdata = "../torchfile/testdata/"

func open(t *testing.T, path, key string) *File {
	t.Helper()
	f, err := Open(path, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func names(f *File) string {
	var list []string
	for _, x := range f.Tensors {
		list = append(list, x.Name)
	}
	return strings.Join(list, " ")
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ file, key, names, found string }{
		{"timm.pth.tar", "", "fc.weight fc.bias", "the state dict under state_dict; there are also state_dict_ema"},
		{"torchvision.pth", "model_ema", "fc.weight fc.bias", "under model_ema; there are also model"},
		{"lightning.ckpt", "", "model.fc.weight model.fc.bias", ""},
		{"module.pt", "", "0.weight 0.bias 1.weight 1.bias 1.running_mean 1.running_var 1.num_batches_tracked", ""},
	} {
		f := open(t, torchdata+c.file, c.key)
		if got := names(f); got != c.names {
			t.Errorf("%s: names %s", c.file, got)
		}
		if got := f.Found(); got == "" != (c.found == "") || !strings.Contains(got, c.found) {
			t.Errorf("%s: %q", c.file, got)
		}
	}
	if f := open(t, torchdata+"lightning.ckpt", "").Under("model."); names(f) != "fc.weight fc.bias" {
		t.Errorf("under model.: %s", names(f))
	}
}

// TestUnwrap removes prefixes that all names of a safetensors file have.
func TestUnwrap(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"module.a module.b", "a b"},
		{"_orig_mod.module.a _orig_mod.module.b", "a b"},
		{"module._orig_mod.a n_averaged", "a"},
		{"module.a b", "b module.a"},
		{"module.", "module."},
		{"n_averaged", "n_averaged"},
	} {
		path := filepath.Join(t.TempDir(), "x.safetensors")
		var list []safetensors.Tensor
		for _, n := range strings.Fields(c.in) {
			list = append(list, safetensors.Tensor{Name: n, DType: safetensors.F32, Shape: []int{1}})
		}
		w, err := safetensors.Create(path, list, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if err := w.Write(x.Name, []float32{1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		f := open(t, path, "")
		got := strings.Fields(names(f))
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s, want %s", c.in, got, c.want)
		}
	}
	if _, err := Open("nowhere.safetensors", ""); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("error %v", err)
	}
	if _, err := Open("statedict.go", "model"); err == nil || !strings.Contains(err.Error(), `key "model"`) {
		t.Errorf("error %v", err)
	}
}

// TestConvert converts a file with tensors of several types, some not contiguous, there and back.
func TestConvert(t *testing.T) {
	dir := t.TempDir()
	paths := []string{torchdata + "plain.pt", filepath.Join(dir, "a.safetensors"), filepath.Join(dir, "b.pth"),
		filepath.Join(dir, "c.safetensors")}
	for i := 1; i < len(paths); i++ {
		if err := Convert(paths[i], open(t, paths[i-1], "")); err != nil {
			t.Fatal(err)
		}
	}
	want := open(t, paths[0], "")
	for _, path := range paths[1:] {
		got := open(t, path, "")
		for _, w := range want.Tensors {
			g, ok := got.Lookup(w.Name)
			if !ok || g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) || g.pieces[0].strides != nil {
				t.Fatalf("%s: %s is %+v, want %+v", path, w.Name, g, w)
			}
			a, err := got.Bytes(nil, g)
			b, err2 := want.Bytes(nil, w)
			if err != nil || err2 != nil || !bytes.Equal(a, b) {
				t.Errorf("%s: %s differs: %v, %v", path, w.Name, err, err2)
			}
		}
		fc, _ := got.Lookup("fc.weight")
		x := make([]float32, fc.Len())
		if err := got.Float32s(fc, x); err != nil || !slices.Equal(x[:5], []float32{0, 6, 12, 18, 1}) {
			t.Errorf("%v, %v", x, err)
		}
		n, _ := got.Lookup("bn.num_batches_tracked")
		if v, err := got.Int64s(n); err != nil || !slices.Equal(v, []int64{7}) {
			t.Errorf("%v, %v", v, err)
		}
		if err := got.Float32s(n, make([]float32, 1)); err == nil {
			t.Error("integers were read as floating-point numbers")
		}
	}
	a, err := os.ReadFile(paths[1])
	c, err2 := os.ReadFile(paths[3])
	if err != nil || err2 != nil || !bytes.Equal(a, c) {
		t.Errorf("there and back is not the same file: %v, %v", err, err2)
	}
	if err := Convert(filepath.Join(dir, "d.onnx"), want); err == nil ||
		!strings.Contains(err.Error(), ".safetensors, .pt or .pth") {
		t.Errorf("error %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// TestConvertStops: an error of the callback ends a conversion at any point, and nothing is written.
func TestConvertStops(t *testing.T) {
	dir, f, n := t.TempDir(), open(t, torchdata+"plain.pt", ""), 0
	err := ConvertWith(filepath.Join(t.TempDir(), "a.pt"), f, func(int64) error { n++; return nil })
	if err != nil || n < 9 {
		t.Fatalf("%d calls, %v", n, err)
	}
	stop := errors.New("stop")
	for k := range n {
		calls := 0
		err := ConvertWith(filepath.Join(dir, "a.safetensors"), f, func(int64) error {
			if calls++; calls > k {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) {
			t.Errorf("after call %d: %v", k, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestOpenFolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, ""); err == nil || !strings.HasSuffix(err.Error(), "is a folder, not a file") {
		t.Errorf("an empty folder: %v", err)
	}
	for _, name := range []string{"best.safetensors", "config.json", "final.safetensors"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := "in it are " + filepath.Join(dir, "best.safetensors") + ", " + filepath.Join(dir, "final.safetensors")
	if _, err := Open(dir, ""); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("a run's folder: %v, want %s", err, want)
	}
}

// TestOpenByName opens weights in the cache folder, whose metadata names their net.
func TestOpenByName(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(catalogue.Variable, cache)
	b, err := os.ReadFile(torchdata + "plain.pt")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if _, err := Open("resnet50-v1", ""); err == nil || !strings.Contains(err.Error(), `"rna get resnet50-v1"`) {
		t.Error(err)
	}
	it, _ := catalogue.Find("resnet50-v1")
	if err := os.MkdirAll(filepath.Dir(it.Path(cache)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(it.Path(cache), b, 0o644); err != nil {
		t.Fatal(err)
	}
	if f := open(t, "resnet50-v1", ""); f.Path != it.Path(cache) || f.Metadata["model"] != "resnet50" {
		t.Errorf("%s of %s", f.Path, f.Metadata["model"])
	}
	if err := os.WriteFile("resnet50-v1", b, 0o644); err != nil {
		t.Fatal(err)
	}
	if f := open(t, "resnet50-v1", ""); f.Path != "resnet50-v1" || f.Metadata["model"] != "" { // the user's own file
		t.Errorf("%s of %s", f.Path, f.Metadata["model"])
	}
}

// TestReplaced verifies and reads the file that was opened, though another has its name now.
func TestReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	write := func(name string, value float32) {
		w, err := safetensors.Create(path, []safetensors.Tensor{{Name: name, DType: safetensors.F32, Shape: []int{1}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(name, []float32{value}), w.Commit()); err != nil {
			t.Fatal(err)
		}
	}
	write("a", 1)
	f := open(t, path, "")
	write("longer.name", 2)
	fd, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := fd.Stat()
	if err != nil {
		t.Fatal(err)
	}
	_, err = fd.WriteAt([]byte{1}, info.Size()-1) // damage
	if err := errors.Join(err, fd.Close()); err != nil {
		t.Fatal(err)
	}
	x := make([]float32, 1)
	if ok, err := f.Verify(); !ok || err != nil {
		t.Errorf("verified %v, %v", ok, err)
	}
	if err := f.Float32s(f.Tensors[0], x); err != nil || x[0] != 1 {
		t.Errorf("%v, %v", x, err)
	}
}

// TestVerifyMemory reads the header again only to name damaged tensors.
func TestVerifyMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "many.safetensors")
	var list []safetensors.Tensor
	for i := range 40_000 {
		list = append(list, safetensors.Tensor{Name: fmt.Sprintf("%s%d", strings.Repeat("x", 100), i), DType: "U8",
			Shape: []int{0}})
	}
	list[0].Shape[0] = 1
	w, err := safetensors.Create(path, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteAt(list[0].Name, []byte{1}, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.CommitUnsynced(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ok, err := f.Verify()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; !ok || err != nil || n > 3<<20 {
		t.Errorf("%v, %v, with %d bytes of memory", ok, err, n)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte{2}, st.Size()-1); err != nil {
		t.Fatal(err)
	}
	if ok, err := f.Verify(); ok || err == nil || !strings.Contains(err.Error(), path) ||
		!strings.Contains(err.Error(), "("+list[0].Name+")") {
		t.Errorf("a damaged tensor: %v, %v", ok, err)
	}
}
