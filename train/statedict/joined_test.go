package statedict

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/train/safetensors"
)

// Only the parts of a joined tensor are dropped: names that look alike stay.
func TestJoinedKeeps(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"@1/2 @2/2 a b@x", "@1/2 @2/2 a b@x"},
		{"x@1/2 x@2/2 x@7/2 x@1/3 x@0/2 x@01/2 x@1/2/2 x@/2 x@-1/2", "x x@-1/2 x@/2 x@0/2 x@01/2 x@1/2/2 x@1/3 x@7/2"},
		{"x@1/3 x@1/2 x@2/2", "x x@1/3"},
		{"x@1/2 x@2/2 x@1/3 x@2/3 x@3/3", "x x@1/3 x@2/3 x@3/3"},
		{"x@2/2 y@1/2 y x@1/2 y@2/2", "x y y@1/2 y@2/2"},
	} {
		var list []safetensors.Tensor
		for name := range strings.FieldsSeq(c.file) {
			list = append(list, safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: []int{1}})
		}
		path := filepath.Join(t.TempDir(), "w.safetensors")
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
		f := open(t, path, "").Joined()
		got := strings.Fields(names(f))
		slices.Sort(got)
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %q, want %s", c.file, got, c.want)
		}
		for _, x := range f.Tensors {
			if found, ok := f.Lookup(x.Name); !ok || found.Name != x.Name {
				t.Errorf("%s: %s is %+v", c.file, x.Name, found)
			}
		}
	}
}

// Parts of a tensor are read as one, in their order, wherever they lie in the file. All others stay.
func TestJoined(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	list := []safetensors.Tensor{
		{Name: "a@2/3", Shape: []int{2, 3}}, {Name: "b", Shape: []int{2}}, {Name: "a@3/3", Shape: []int{2, 3}},
		{Name: "a@1/3", Shape: []int{2, 3}}, {Name: "b@1/2", Shape: []int{2}}, {Name: "b@2/2", Shape: []int{2}},
		{Name: "c@1/2", Shape: []int{1}}, {Name: "c@2/2", Shape: []int{2}}, {Name: "d@1/2", Shape: []int{1}},
		{Name: "e@x/y", Shape: []int{1}}, {Name: "f@1/1", Shape: []int{1}}, {Name: "g@1/2", Shape: []int{}},
		{Name: "g@2/2", Shape: []int{}}, {Name: "h@1/2", Shape: []int{1}}, {Name: "h@2/2", Shape: []int{1}},
	}
	for i := range list {
		list[i].DType = safetensors.F32
	}
	list[len(list)-1].DType = safetensors.F64
	w, err := safetensors.Create(path, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range list {
		numbers := make([]float32, x.Len())
		for k := range numbers {
			numbers[k] = float32(10*i + k)
		}
		var data any = numbers
		if x.DType == safetensors.F64 {
			data = make([]float64, x.Len())
		}
		if err := w.Write(x.Name, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	f := open(t, path, "").Joined()
	const want = "a b b@1/2 b@2/2 c@1/2 c@2/2 d@1/2 e@x/y f@1/1 g@1/2 g@2/2 h@1/2 h@2/2"
	if got := names(f); got != want {
		t.Errorf("tensors %s, want %s", got, want)
	}
	x, ok := f.Lookup("a")
	if !ok || !slices.Equal(x.Shape, []int{6, 3}) {
		t.Fatalf("%+v, %v", x, ok)
	}
	got := make([]float64, 18)
	if err := f.Float64s(x, got); err != nil || !slices.Equal(got,
		[]float64{30, 31, 32, 33, 34, 35, 0, 1, 2, 3, 4, 5, 20, 21, 22, 23, 24, 25}) {
		t.Errorf("%v, %v", got, err)
	}
	b := make([]byte, 4*8) // across two borders
	if err := f.Read(b, x, 5); err != nil {
		t.Fatal(err)
	}
	part := make([]float64, 8)
	if err := safetensors.Decode(part, b, safetensors.F32); err != nil || !slices.Equal(part, got[5:13]) {
		t.Errorf("%v, %v", part, err)
	}
}
