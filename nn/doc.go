// Package nn defines networks: operations on a Gorgonia graph, layers with their parameters, and the architectures
// that are built of them.
//
// Build gives a Model: the graph of an architecture at one batch size, for training or evaluation, with the nodes
// of its inputs, parameters, loss and gradients. It holds no numbers. A machine binds the nodes to memory
// and runs the graph; package machine does so on any device, and Gorgonia's own TapeMachine does too, slowly.
//
//	m, err := nn.Build("resnet50", nn.Config{Batch: 32, Mode: nn.Train})
//	for i, p := range m.Params {
//		w := op.New(op.T(op.Float32, p.Shape...))
//		err = p.Fill(w, 1)
//		…
//	}
//
// Operations come from package op. Apply puts one on a graph as an Op, which Gorgonia can differentiate, so
// they mix with Gorgonia's own:
//
//	y, err := nn.Apply("conv1", op.Conv2D{Pad: [2]int{1, 1}}, x, w)
//	loss, err := gorgonia.Mean(gorgonia.Must(gorgonia.Square(y)))
//	grads, err := nn.Grad(loss, w)
//
// A Builder adds layers with their parameters. Names, shapes and the order of parameters and statistics are
// torchvision's, so its weights fit.
//
// An elementwise layer is an expression, here softplus, which is differentiated and runs on every device:
//
//	y := b.Map("act", expr.Arg(0).Exp().Shift(1).Log(), x)
//
// A new architecture is a file that calls Register; package zoo has most.
package nn
