package torchfile

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/safetensors"
)

var update = flag.Bool("update", false,
	"write testdata/written.pt, which testdata/check.py compares with what PyTorch reads")

// written writes the tensors that check.py expects in written.pt, and returns the file.
func written(t *testing.T) []byte {
	list := []Tensor{
		{Name: "conv.weight", DType: safetensors.F32, Shape: []int{2, 3, 2, 2}},
		{Name: "double", DType: safetensors.F64, Shape: []int{1, 1}},
		{Name: "half", DType: safetensors.F16, Shape: []int{2}},
		{Name: "brain", DType: safetensors.BF16, Shape: []int{2}},
		{Name: "bn.num_batches_tracked", DType: safetensors.I64},
		{Name: "mask", DType: "BOOL", Shape: []int{2}},
		{Name: "none", DType: safetensors.F32, Shape: []int{0, 3}},
		{Name: "größe", DType: "U8", Shape: []int{3}},
	}
	path := filepath.Join(t.TempDir(), "written.pt")
	w, err := Create(path, list, map[string]string{"model": "conv"})
	if err != nil {
		t.Fatal(err)
	}
	elements := func(x Tensor) (b []byte, err error) {
		switch x.Name {
		case "conv.weight":
			for i := range 24 {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
			}
		case "double":
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(0.1))
		case "half", "brain":
			b = make([]byte, 4)
			_, err = safetensors.Encode(b, []float64{1.5, -2}, x.DType)
		case "bn.num_batches_tracked":
			b = binary.LittleEndian.AppendUint64(b, 1<<40)
		case "mask":
			b = []byte{1, 0}
		case "größe":
			b = []byte{1, 2, 255}
		}
		return b, err
	}
	for _, x := range slices.Backward(list) {
		b, err := elements(x)
		if err != nil {
			t.Fatal(err)
		}
		for at := range b { // one byte at a time
			if err := w.WriteAt(x.Name, b[at:at+1], int64(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestWrite compares the written file with the one that PyTorch has checked, and reads it.
func TestWrite(t *testing.T) {
	got := written(t)
	path := filepath.Join("testdata", "written.pt")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("what is written is not testdata/written.pt: write it anew with -update and run testdata/check.py")
	}
	f, err := read(bytes.NewReader(got), int64(len(got)), "")
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(f.Metadata, map[string]string{"model": "conv"}) || f.Key != "" || len(f.Tensors) != 8 {
		t.Errorf("%+v", f)
	}
	for _, x := range f.Tensors {
		if !x.Contiguous() || x.Offset%storageAlign != 0 {
			t.Errorf("%+v", x)
		}
	}
	if x := f.Tensors[0]; !slices.Equal(x.Shape, []int{2, 3, 2, 2}) || elements(t, got, x)[23] != 23 {
		t.Errorf("%+v", x)
	}
	to := filepath.Join(t.TempDir(), "refused.pt")
	if _, err := Create(to, []Tensor{{Name: "a", DType: "F8_E4M3"}}, nil); err == nil {
		t.Error("a type that torch.save has not was written")
	}
	w, err := Create(to, []Tensor{{Name: "a", DType: "U8", Shape: []int{2}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteAt("a", []byte{1, 2}, 1); err == nil {
		t.Error("a byte behind the tensor was written")
	}
	if err := w.WriteAt("a", []byte{1}, 0); err != nil {
		t.Error(err)
	}
	if err := w.Commit(); err == nil {
		t.Error("a tensor without all its bytes was written")
	}
	if left, _ := os.ReadDir(filepath.Dir(to)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestPyTorch reads the written file in PyTorch, if it is installed.
func TestPyTorch(t *testing.T) {
	python := os.Getenv("ONLINERNA_PYTHON")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import torch").Run() != nil {
		t.Skip("no PyTorch: name a Python that has it by ONLINERNA_PYTHON")
	}
	path := filepath.Join(t.TempDir(), "written.pt")
	if err := os.WriteFile(path, written(t), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, "testdata/check.py", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestWriteMany reads a file of many tensors as it was written; one that Read refuses is not begun.
func TestWriteMany(t *testing.T) {
	var list []Tensor
	for i := range 40_000 {
		list = append(list, Tensor{Name: fmt.Sprintf("model.layers.%d.mlp.experts.%d.w1.weight", i/100, i%100), DType: "U8",
			Shape: []int{1}})
	}
	path := filepath.Join(t.TempDir(), "x.pt")
	long := slices.Clone(list[:1000])
	for i := range long {
		long[i].Name += strings.Repeat("x", maxPickle/len(long))
	}
	if _, err := Create(path, long, nil); err == nil || !strings.Contains(err.Error(), "1000 tensors, more than Read") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	w, err := Create(path, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range list {
		if err := w.WriteAt(x.Name, []byte{byte(i)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.CommitUnsynced(); err != nil {
		t.Fatal(err)
	}
	if f, err := Read(path, ""); err != nil || len(f.Tensors) != len(list) {
		t.Errorf("%v", err)
	}
}
