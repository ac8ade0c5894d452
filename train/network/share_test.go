package network

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/statedict"
)

// The largest of four shares of ResNet-152 is at most 1.2 times a quarter, and few tensors straddle the ranks' parts.
func TestShareBalance(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	n, err := New(dev, "resnet152", nn.Config{Classes: 1000, Channels: 3, Size: 224}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	const of = 4
	sizes := make([]int, of)
	for _, s := range n.params {
		sizes[n.owner(s, of)] += s.n
	}
	if most, all := slices.Max(sizes), n.Params.Len(); float64(most) > 1.2*float64(all)/of {
		t.Errorf("shares %v of %d", sizes, all)
	}
	if list := n.Straddling(of, of); len(list) > of-1 {
		t.Errorf("%d tensors straddle", len(list))
	}
	t.Logf("shares %v", sizes)
}

// Shares of any number of processes read as the whole.
func TestShares(t *testing.T) {
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	n, err := New(dev, "lenet", nn.Config{Classes: 10, Channels: 1, Size: 28}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	want, err := Hash(n.Params)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []int{1, 2, 3, 7, 40} { // 40 are more than there are tensors
		dir := t.TempDir()
		path := filepath.Join(dir, "weights.safetensors")
		for k := range of {
			if err := n.SaveWeightsShare(path, n.Params, n.Stats, Meta{Model: "lenet"}, Share{k, of}); err != nil {
				t.Fatal(err)
			}
		}
		v, err := n.NewParams()
		if err != nil {
			t.Fatal(err)
		}
		if err := n.LoadVector(path, v); err != nil {
			t.Fatal(err)
		}
		if got, err := Hash(v); err != nil || got != want {
			t.Errorf("%d shares: %v, other numbers than the whole", of, err)
		}
		v.Free()
		if m, err := n.LoadWeights(path); err != nil || m.Model != "lenet" {
			t.Errorf("%d shares: %+v, %v", of, m, err)
		}
		list, err := Shares(path)
		if err != nil || of > 1 != (len(list) == of) {
			t.Errorf("%d shares: %v, %v", of, list, err)
		}
		if of != 3 {
			continue
		}
		if err := os.Remove(list[1]); err != nil {
			t.Fatal(err)
		}
		if _, err := statedict.Open(path, ""); err == nil {
			t.Error("a share is missing: no error")
		}
	}
	for name, want := range map[string]Share{"weights.safetensors": {}, "weights-00002-of-00004.safetensors": {1, 4},
		".weights-00002-of-00004.safetensors.0123abcd": {}, "best-00001-of-00003.part": {0, 3}} {
		if got := ShareOf(name); got != want {
			t.Errorf("%s: share %v", name, fmt.Sprint(got))
		}
	}
}
