package statedict

import (
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/train/safetensors"
)

// Rows of a tensor are read as tensors of their own. Names that ask for rows that are not there stay.
func TestCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	const many = "a1=1/9,a2=2/9,a3=3/9,a4=4/9,a5=5/9,a6=6/9,a7=7/9,a8=8/9,a9=9/9"
	list := []safetensors.Tensor{
		{Name: "a=1/3,b=2-3/3", Shape: []int{6, 2}}, {Name: "c=2/2", Shape: []int{4}}, {Name: "d=1/4,e=2-4/4", Shape: []int{6}},
		{Name: "f=0/2", Shape: []int{2}}, {Name: "g=2-1/2", Shape: []int{2}}, {Name: "h=x", Shape: []int{2}},
		{Name: "=1/2", Shape: []int{2}}, {Name: "i=1/2", Shape: []int{}}, {Name: "k", Shape: []int{1}},
		{Name: "k=1/1", Shape: []int{1}}, {Name: "l=3/2", Shape: []int{2}},
		{Name: "m=1/2,m=2/2", Shape: []int{2}}, {Name: "n=1/2", Shape: []int{2}}, {Name: "n=2/2", Shape: []int{2}},
		{Name: "o=1/2,p=2/2", Shape: []int{0, 3}}, {Name: many, Shape: []int{9}},
	}
	for i := range list {
		list[i].DType = safetensors.F32
	}
	w, err := safetensors.Create(path, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		v := make([]float32, x.Len())
		for i := range v {
			v[i] = float32(i)
		}
		if err := w.Write(x.Name, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	f := open(t, path, "").Cut()
	want := map[string][]float32{
		"a": {0, 1, 2, 3}, "b": {4, 5, 6, 7, 8, 9, 10, 11}, "c": {2, 3}, "d=1/4,e=2-4/4": {0, 1, 2, 3, 4, 5}, "f=0/2": {0, 1},
		"g=2-1/2": {0, 1}, "h=x": {0, 1}, "=1/2": {0, 1}, "i=1/2": {0}, "k": {0}, "k=1/1": {0}, "l=3/2": {0, 1},
		"m=1/2,m=2/2": {0, 1}, "n": {0}, "n=2/2": {0, 1}, "o": {}, "p": {}, many: {0, 1, 2, 3, 4, 5, 6, 7, 8},
	}
	if len(f.Tensors) != len(want) {
		t.Errorf("%d tensors: %s", len(f.Tensors), names(f))
	}
	for name, v := range want {
		x, ok := f.Lookup(name)
		got := make([]float32, len(v))
		if err := f.Float32s(x, got); !ok || err != nil || !slices.Equal(got, v) {
			t.Errorf("%s has %v, want %v; %v", name, got, v, err)
		}
	}
	// Rows that do not lie behind each other, as torch.save has of a transposed tensor.
	x, _ := open(t, path, "").Lookup("a=1/3,b=2-3/3")
	p := x.pieces[0]
	p.at, p.size, p.strides = []int{0, 0}, []int{2, 6}, []int{1, 2}
	x.Name, x.Shape, x.pieces = "a=1/2,b=2/2", p.size, []piece{p}
	for i, p := range x.cut() {
		got := make([]float32, 6)
		k := float32(i)
		if err := f.Float32s(p, got); err != nil || !slices.Equal(got, []float32{k, 2 + k, 4 + k, 6 + k, 8 + k, 10 + k}) {
			t.Errorf("%s has %v, %v", p.Name, got, err)
		}
	}
}
