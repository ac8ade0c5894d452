package machine_test

import (
	"fmt"
	"log"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// A graph's inputs are written and its kept results read. Gradients are results like others.
func Example() {
	g := G.NewGraph()
	x := G.NewMatrix(g, tensor.Float64, G.WithName("x"), G.WithShape(2, 3))
	w := G.NewMatrix(g, tensor.Float64, G.WithName("w"), G.WithShape(2, 3))
	labels := G.NewVector(g, tensor.Int32, G.WithName("labels"), G.WithShape(2))
	logits, err := nn.Apply("fc", op.Linear{}, x, w)
	if err != nil {
		log.Fatal(err)
	}
	loss, err := nn.Apply("loss", op.SoftmaxCrossEntropy{}, logits, labels)
	if err != nil {
		log.Fatal(err)
	}
	grads, err := nn.Grad(loss, w)
	if err != nil {
		log.Fatal(err)
	}

	m, err := machine.New(g, machine.Config{
		Device: device.NewReference(op.Float64),
		Keep:   G.Nodes{loss, grads[0]},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for n, data := range map[*G.Node]any{
		x:      []float64{1, 2, 3, 3, 2, 1},
		w:      []float64{0, 0, 0, 0, 0, 0},
		labels: []int32{0, 1},
	} {
		if err := m.Write(n, op.Tensor{Shape: op.Shape(n.Shape()), Data: data}); err != nil {
			log.Fatal(err)
		}
	}
	if err := m.Run(); err != nil {
		log.Fatal(err)
	}
	y, dw := op.New(op.T(op.Float64)), op.New(op.T(op.Float64, 2, 3))
	if err := m.Read(y, loss); err != nil {
		log.Fatal(err)
	}
	if err := m.Read(dw, grads[0]); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.4f %.1f\n", y.Data, dw.Data)
	// Output: [0.6931] [0.5 0.0 -0.5 -0.5 0.0 0.5]
}
