package network

import (
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/nn"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// Each net is known by the names and shapes of its tensors, also with other classes, without the last layer and under a prefix; and by no part of them.
func TestIdentify(t *testing.T) {
	for _, a := range nn.Architectures() {
		m, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval, Classes: 7})
		if err != nil {
			t.Fatal(err)
		}
		var all []safetensors.Tensor
		for _, e := range m.StateDict() {
			all = append(all, safetensors.Tensor{Name: e.Name, DType: safetensors.BF16, Shape: e.Shape})
		}
		headless := slices.DeleteFunc(slices.Clone(all), func(x safetensors.Tensor) bool { return slices.Contains(Head(m), x.Name) })
		var under []safetensors.Tensor
		for _, x := range all {
			x.Name = "net." + x.Name
			under = append(under, x)
		}
		more := append(slices.Clone(all), safetensors.Tensor{Name: "more", DType: safetensors.BF16, Shape: []int{1}})
		for i, c := range []struct {
			tensors []safetensors.Tensor
			want    []string
		}{{all, []string{a.Name}}, {headless, []string{a.Name}}, {under, []string{a.Name}}, {all[1:], nil}, {more, nil}} {
			if i > 0 && m.NumParams() > 1e6 { // it is large to write, and no other than the small ones
				break
			}
			path := filepath.Join(t.TempDir(), "w.safetensors")
			zeros(t, path, c.tensors)
			f, err := statedict.Open(path, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := Identify(f); !slices.Equal(got, c.want) {
				t.Errorf("%s, case %d: %v", a.Name, i, got)
			}
			f.Close()
		}
	}
}

// zeros writes tensors that are 0.
func zeros(t *testing.T, path string, list []safetensors.Tensor) {
	t.Helper()
	w, err := safetensors.Create(path, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, x := range list {
		if err := w.WriteAt(x.Name, make([]byte, x.Len()*x.DType.Size()), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}
