package network

import (
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/nn"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// Files of CoaT may lack the tensors that are listed again, and have normalisations that nothing takes.
func TestSharedTensorsOfFiles(t *testing.T) {
	const name = "coat_lite_tiny"
	m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		t.Fatal(err)
	}
	for i, twice := range []bool{false, true} {
		list := []safetensors.Tensor{{Name: "norm2.weight", DType: safetensors.F32, Shape: []int{128}}}
		for _, e := range m.StateDict() {
			if twice || !e.Shared {
				list = append(list, safetensors.Tensor{Name: e.Name, DType: safetensors.F32, Shape: e.Shape})
			}
		}
		path := filepath.Join(t.TempDir(), "w.safetensors")
		zeros(t, path, list)
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := Identify(f); !slices.Contains(got, name) {
			t.Errorf("case %d: %v", i, got)
		}
		f.Close()
	}
}
