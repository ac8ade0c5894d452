package zoo_test

import (
	"slices"
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

// ConViT's first blocks start as convolutions: values are the tokens, and heads prefer a neighbour each, as
// timm's local_init writes them.
func TestConViTStarts(t *testing.T) {
	m, err := nn.Build("convit_small", nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range m.Params {
		x := op.New(op.T(op.Float64, p.Shape...))
		switch p.Name {
		default:
			continue
		case "blocks.9.attn.v.weight":
			err = p.Fill(x, 1)
			for i, v := range x.Data.([]float64) {
				if want := float64(map[bool]int{true: 1}[i/432 == i%432]); v != want {
					t.Fatalf("value %d of %s is %g, want %g", i, p.Name, v, want)
				}
			}
		case "blocks.9.attn.pos_proj.weight":
			err = p.Fill(x, 1)
			want := []float64{-2, -2, -1, -2, 0, -1, -2, 2, -1, 0, -2, -1, 0, 0, -1, 0, 2, -1, 2, -2, -1, 2, 0, -1, 2, 2, -1}
			if !slices.Equal(x.Data.([]float64), want) {
				t.Errorf("%s starts as %v, want %v", p.Name, x.Data, want)
			}
		}
		if found++; err != nil {
			t.Error(err)
		}
	}
	if found != 2 {
		t.Errorf("%d tensors", found)
	}
}
