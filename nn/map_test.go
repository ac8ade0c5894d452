package nn

import (
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// Operands of Map are repeated along any axes, by an Expand only where op.Map does not repeat them itself.
func TestMapBroadcasts(t *testing.T) {
	for _, c := range []struct {
		x, y     op.Shape
		expanded int
	}{
		{op.Shape{2, 3, 4, 5}, op.Shape{2, 3, 4, 5}, 0},
		{op.Shape{2, 3, 4, 5}, op.Shape{1, 3, 1, 1}, 0},
		{op.Shape{2, 3, 4, 5}, op.Shape{1, 1, 4, 5}, 0},
		{op.Shape{2, 3, 4, 5}, op.Shape{3}, 0},
		{op.Shape{1}, op.Shape{2, 3}, 0},
		{op.Shape{2, 3, 4, 5}, op.Shape{1, 1, 1, 5}, 1},
		{op.Shape{2, 1, 4, 1}, op.Shape{2, 3, 4, 5}, 1},
		{op.Shape{2, 3, 1, 1}, op.Shape{1, 1, 4, 5}, 1},
		{op.Shape{2, 3, 1, 5}, op.Shape{2, 1, 4, 1}, 2},
		{op.Shape{2, 1}, op.Shape{1, 3}, 1},
		{op.Shape{2, 1, 3, 1, 2, 1}, op.Shape{1, 4, 3, 5, 1, 6}, 2},
	} {
		m := &Model{Graph: G.NewGraph(), Config: Config{DType: op.Float64}}
		b := &Builder{model: m, names: map[string]bool{}}
		nodes := [2]*G.Node{b.input("x", op.T(op.Float64, c.x...)), b.input("y", op.T(op.Float64, c.y...))}
		z := b.Map("z", x0.Sub(x1.Scale(100)), nodes[0], nodes[1])
		if b.err != nil {
			t.Fatal(c, b.err)
		}
		expanded := 0
		for _, n := range m.Graph.AllNodes() {
			if o, ok := n.Op().(*Op); ok && o.Op().Kind() == "expand" {
				expanded++
			}
		}
		if expanded != c.expanded {
			t.Errorf("%v and %v: %d are expanded, want %d", c.x, c.y, expanded, c.expanded)
		}
		var v [2][]float64
		for k, s := range []op.Shape{c.x, c.y} {
			for i := range s.Size() {
				v[k] = append(v[k], float64(i+1))
			}
			bind(t, nodes[k], op.Tensor{Data: v[k]})
		}
		runTape(t, m.Graph)
		if len(c.x) != len(c.y) {
			continue // op.Map's own rules
		}
		at := func(s op.Shape, index []int) (i int) {
			for k, d := range s {
				i = i*d + index[k]%d
			}
			return i
		}
		shape := op.Shape(z.Shape())
		index := make([]int, len(shape))
		for i, got := range values(t, z) {
			for k, rest := len(shape)-1, i; k >= 0; k-- {
				index[k], rest = rest%shape[k], rest/shape[k]
			}
			if want := v[0][at(c.x, index)] - 100*v[1][at(c.y, index)]; got != want {
				t.Fatalf("%v and %v: element %v is %g, want %g", c.x, c.y, index, got, want)
			}
		}
	}
	m := &Model{Graph: G.NewGraph(), Config: Config{DType: op.Float64}}
	b := &Builder{model: m, names: map[string]bool{}}
	b.Map("z", x0.Add(x1), b.input("x", op.T(op.Float64, 2, 3, 4)), b.input("y", op.T(op.Float64, 2, 3, 5)))
	if b.err == nil || !strings.Contains(b.err.Error(), "operand 0 cannot be repeated to [2 3 5]") {
		t.Error(b.err)
	}
}
