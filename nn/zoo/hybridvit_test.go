package zoo_test

import (
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

// timm's hybrids standardise weights with an ε that the shapes of their tensors do not show.
func TestHybridConstants(t *testing.T) {
	m, err := nn.Build("vit_small_r26_s32_224", nn.Config{Batch: 1, Mode: nn.Eval, Size: 64})
	if err != nil {
		t.Fatal(err)
	}
	found := map[float64]int{}
	for _, n := range m.Graph.AllNodes() {
		if o, ok := n.Op().(*nn.Op); ok {
			if norm, ok := o.Op().(op.GroupNorm); ok {
				found[norm.Eps]++
			}
		}
	}
	if found[1e-8] != 29 || found[1e-5] != 29 { // of weights, and behind each convolution
		t.Errorf("normalisations by ε: %v", found)
	}
}
