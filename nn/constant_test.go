package nn

import (
	"fmt"
	"hash/fnv"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// Gorgonia tells nodes apart by their text. That of a constant is its name: to print the tables of large transformers
// takes seconds.
func TestConstantsAreNotPrinted(t *testing.T) {
	printed := map[string]bool{}
	a := Architecture{Name: "constants", Size: 8, Channels: 3, Classes: 4, Build: func(b *Builder, x *G.Node) *G.Node {
		for _, name := range []string{"one", "other"} {
			c := b.Constant(name, op.Tensor{Shape: op.Shape{2, 3}, Data: []float64{1, 2, 3, 4, 5, 6}})
			if _, ok := Dense(c.Value()); !ok || !IsConstant(c) {
				t.Errorf("the constant is a %T", c.Value())
			}
			h := fnv.New32a()
			c.Op().WriteHash(h)
			printed[fmt.Sprint(h.Sum32(), c.Op().(interface{ Value() G.Value }).Value())] = true
		}
		return b.Linear("fc", b.GlobalAvgPool("pool", x), 4)
	}}
	if _, err := a.Model(Config{Batch: 1, Mode: Eval}); err != nil {
		t.Fatal(err)
	}
	for text := range printed {
		if len(text) > 20 {
			t.Errorf("printed: %s", text)
		}
	}
	if len(printed) != 2 {
		t.Errorf("constants with other names are printed alike: %v", printed)
	}
}
