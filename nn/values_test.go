package nn_test

import (
	"fmt"
	"log"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn"
	"onlinerna/rna"
)

var (
	_ rna.Source64 = (*nn.Values)(nil)
	_ rna.Sink64   = (*nn.Values)(nil)
)

// RNA beside Gorgonia's own solver and machine, over the values of a slice of nodes. Least squares with columns of very
// different sizes are slow for gradient descent.
func ExampleValues() {
	g := G.NewGraph()
	x := G.NewMatrix(g, tensor.Float64, G.WithShape(4, 2), G.WithValue(tensor.New(tensor.WithShape(4, 2),
		tensor.WithBacking([]float64{1, .1, -1, .1, 1, -.1, 1, .2}))))
	y := G.NewVector(g, tensor.Float64, G.WithShape(4),
		G.WithValue(tensor.New(tensor.WithShape(4), tensor.WithBacking([]float64{3.2, -.8, 1.8, 4.4}))))
	w := G.NewVector(g, tensor.Float64, G.WithShape(2), G.WithName("w"),
		G.WithValue(tensor.New(tensor.WithShape(2), tensor.WithBacking([]float64{0, 0}))))
	b := G.NewVector(g, tensor.Float64, G.WithShape(1), G.WithName("b"),
		G.WithValue(tensor.New(tensor.WithShape(1), tensor.WithBacking([]float64{0}))))
	model := G.Nodes{w, b}
	predicted := G.Must(G.BroadcastAdd(G.Must(G.Mul(x, w)), b, nil, []byte{0}))
	loss := G.Must(G.Mean(G.Must(G.Square(G.Must(G.Sub(predicted, y))))))
	if _, err := G.Grad(loss, model...); err != nil {
		log.Fatal(err)
	}
	machine := G.NewTapeMachine(g, G.BindDualValues(model...))
	defer machine.Close()
	solver := G.NewVanillaSolver(G.WithLearnRate(0.2))

	point, err := nn.NewValues(model...)
	if err != nil {
		log.Fatal(err)
	}
	space, err := rna.NewHost64(point.Len(), 0)
	if err != nil {
		log.Fatal(err)
	}
	window, err := rna.NewWindow(space, 4)
	if err != nil {
		log.Fatal(err)
	}
	run := func() float64 { // the loss and the gradients at the present values
		machine.Reset()
		if err := machine.RunAll(); err != nil {
			log.Fatal(err)
		}
		return loss.Value().Data().(float64)
	}
	for range 8 {
		if err := window.Push(point); err != nil {
			log.Fatal(err)
		}
		run()
		if err := solver.Step(G.NodesToValueGrads(model)); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("loss after 8 steps %.4f", run())
	if _, err := window.Extrapolate(point, rna.Options{}); err != nil { // the values are the extrapolated ones now
		log.Fatal(err)
	}
	fmt.Printf(", extrapolated %.4f\n", run())
	// Output: loss after 8 steps 0.7800, extrapolated 0.0733
}

func TestValues(t *testing.T) {
	g := G.NewGraph()
	node := func(name string, backing any, shape ...int) *G.Node {
		v := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(backing))
		return G.NewTensor(g, v.Dtype(), len(shape), G.WithShape(shape...), G.WithName(name), G.WithValue(v))
	}
	a := node("a", []float64{1, 2, 3, 4, 5, 6}, 2, 3)
	b := node("b", []float32{7, 8}, 2)
	c := node("c", []float64{9}, 1)
	v, err := nn.NewValues(a, b, c)
	if err != nil || v.Len() != 9 {
		t.Fatal(v, err)
	}
	for off := range 10 {
		for n := range 10 - off {
			want := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}[off : off+n]
			got, got32 := make([]float64, n), make([]float32, n)
			if err := v.ReadAt64(got, off); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d from %d on: %v, want %v, %v", n, off, got, want, err)
			}
			if err := v.ReadAt(got32, off); err != nil || n > 0 && float64(got32[n-1]) != want[n-1] {
				t.Errorf("float32, %d from %d on: %v, %v", n, off, got32, err)
			}
		}
	}
	if err := v.WriteAt64([]float64{50, 60, 70.5, 80}, 4); err != nil {
		t.Fatal(err)
	}
	if err := v.WriteAt([]float32{90}, 8); err != nil {
		t.Fatal(err)
	}
	got := make([]float64, 9)
	if err := v.ReadAt64(got, 0); err != nil || !slices.Equal(got, []float64{1, 2, 3, 4, 50, 60, 70.5, 80, 90}) {
		t.Errorf("written: %v, %v", got, err)
	}
	if x := a.Value().Data().([]float64)[5]; x != 60 {
		t.Errorf("the node's own value is %g", x)
	}
	// Another tensor in the place of the first.
	if err := G.Let(c, tensor.New(tensor.WithShape(1), tensor.WithBacking([]float64{-1}))); err != nil {
		t.Fatal(err)
	}
	if err := v.ReadAt64(got[:1], 8); err != nil || got[0] != -1 {
		t.Errorf("after Let %v, %v", got[0], err)
	}
	for off, n := range map[int]int{-1: 1, 5: 5, 10: 0} {
		if v.ReadAt64(make([]float64, n), off) == nil || v.WriteAt64(make([]float64, n), off) == nil {
			t.Errorf("%d elements from %d on: no error", n, off)
		}
	}
	for want, nodes := range map[string]G.Nodes{
		"no value yet": {a, G.NewVector(g, tensor.Float64, G.WithShape(2), G.WithName("empty"))},
		"int":          {node("ints", []int{1}, 1)},
		"no nodes":     {},
		"gorgonia.I32": {G.NewScalar(g, tensor.Int32, G.WithName("count"), G.WithValue(int32(1)))},
	} {
		if _, err := nn.NewValues(nodes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestScalarValues reads and writes scalars in all their forms: Gorgonia's own, and a tensor without dimensions.
func TestScalarValues(t *testing.T) {
	g := G.NewGraph()
	single := G.NewScalar(g, tensor.Float32, G.WithName("single"), G.WithValue(float32(1.5)))
	double := G.NewScalar(g, tensor.Float64, G.WithName("double"), G.WithValue(2.5))
	whole := G.NewScalar(g, tensor.Float32, G.WithName("whole"))
	if err := G.Let(whole, tensor.New(tensor.FromScalar(float32(3.5)))); err != nil {
		t.Fatal(err)
	}
	v, err := nn.NewValues(single, double, whole)
	if err != nil || v.Len() != 3 {
		t.Fatal(v, err)
	}
	got := make([]float64, 3)
	if err := v.ReadAt64(got, 0); err != nil || !slices.Equal(got, []float64{1.5, 2.5, 3.5}) {
		t.Errorf("%v, %v", got, err)
	}
	if err := v.WriteAt64([]float64{-1, -2, -3}, 0); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[*G.Node]any{single: float32(-1), double: -2.0, whole: float32(-3)} {
		if x := n.Value().Data(); x != want {
			t.Errorf("%s is %v, want %v", n.Name(), x, want)
		}
	}
}
