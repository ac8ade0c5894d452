package nn_test

import (
	"fmt"
	"log"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

// Ops of this package and Gorgonia's own in one graph, differentiated and run by Gorgonia.
func ExampleApply() {
	g := G.NewGraph()
	x := G.NewTensor(g, tensor.Float64, 4, G.WithShape(1, 1, 3, 3), G.WithName("x"),
		G.WithValue(tensor.New(tensor.WithBacking(tensor.Range(tensor.Float64, 0, 9)), tensor.WithShape(1, 1, 3, 3))))
	w := G.NewTensor(g, tensor.Float64, 4, G.WithShape(1, 1, 2, 2), G.WithName("w"),
		G.WithValue(tensor.New(tensor.WithBacking([]float64{1, 0, 0, -1}), tensor.WithShape(1, 1, 2, 2))))

	y, err := nn.Apply("conv", op.Conv2D{}, x, w)
	if err != nil {
		log.Fatal(err)
	}
	cost := G.Must(G.Sum(G.Must(G.Square(y))))
	grads, err := G.Grad(cost, w)
	if err != nil {
		log.Fatal(err)
	}

	m := G.NewTapeMachine(g)
	defer m.Close()
	if err := m.RunAll(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cost.Value())
	fmt.Println(grads[0].Value().Data())
	// Output:
	// 64
	// [-64 -96 -160 -192]
}

func ExampleBuild() {
	m, err := nn.Build("resnet50", nn.Config{Batch: 32, Mode: nn.Train})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.NumParams(), "parameters in", len(m.Params), "tensors")
	for _, e := range m.StateDict()[:4] {
		fmt.Println(e.Name, e.Shape, e.DType)
	}
	fmt.Println(m.Params[0].Init)
	// Output:
	// 25557032 parameters in 161 tensors
	// conv1.weight [64 3 7 7] float32
	// bn1.weight [64] float32
	// bn1.bias [64] float32
	// bn1.running_mean [64] float32
	// normal, standard deviation 0.0252538
}

// A vision transformer of one's own: a class token, patches of 4×4 pixels, 6 blocks.
func ExampleArchitecture_transformer() {
	const width, heads, patch = 64, 4, 4
	vit := nn.Architecture{
		Name: "my_vit", Size: 32, Channels: 3, Classes: 10,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			n, side := b.Config().Batch, b.Config().Size/patch
			tokens := 1 + side*side
			class := b.Param("class", nn.Init{}, 1, 1, width)
			places := b.Param("places", nn.Init{Distribution: nn.Normal, Scale: .02}, 1, tokens, width)

			x = b.Conv("patches", x, nn.Conv{Filters: width, Kernel: patch, Stride: patch, Bias: true})
			x = b.Concat("tokens", 1, b.Expand("classes", class, n, 1, width), b.Apply("rows", op.Tokens{}, x))
			x = b.Map("placed", expr.Arg(0).Add(expr.Arg(1)), x, places)
			x = b.Reshape("matrix", x, n*tokens, width)
			for i := range 6 {
				name := fmt.Sprintf("block%d", i)
				y := b.Linear(name+".qkv", b.LayerNorm(name+".norm1", x, 1e-6), 3*width)
				y = b.Linear(name+".proj", b.SelfAttention(name+".attention", y, n, heads), width)
				x = b.Add(name+".add1", x, y)
				y = b.Linear(name+".fc1", b.LayerNorm(name+".norm2", x, 1e-6), 4*width)
				x = b.Add(name+".add2", x, b.Linear(name+".fc2", b.GELU(name+".gelu", y), width))
			}
			x = b.Slice("first", b.Reshape("apart", x, n, tokens, width), 1, 0, 1)
			x = b.LayerNorm("norm", b.Reshape("row", x, n, width), 1e-6)
			return b.Linear("head", x, b.Config().Classes)
		},
	}
	m, err := vit.Model(nn.Config{Batch: 64})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Logits.Shape(), m.NumParams())
	// Output:
	// (64, 10) 308042
}

// Attention in windows with a table of relative positions, as in Swin, where every second layer shifts the windows.
func ExampleBuilder_Windows() {
	const width, heads, patch, size = 32, 2, 4, 4
	net := nn.Architecture{
		Name: "my_swin", Size: 32, Channels: 3, Classes: 10,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			n, side := b.Config().Batch, b.Config().Size/patch
			x = b.Conv("patches", x, nn.Conv{Filters: width, Kernel: patch, Stride: patch, Bias: true})
			x = b.Reshape("rows", b.Apply("tokens", op.Tokens{}, x), n*side*side, width)
			for i := range 2 {
				w := nn.Windows{Height: side, Width: side, Rows: size, Columns: size}
				if i%2 == 1 {
					w.Down, w.Right = size/2, size/2
				}
				name, t := fmt.Sprintf("block%d", i), size*size
				table := b.Param(name+".table", nn.Init{Distribution: nn.Normal, Scale: .02}, (2*size-1)*(2*size-1), heads)
				bias := b.Gather(name+".pairs", table, 0, b.Constant(name+".offsets", w.Offsets()))
				bias = b.Reshape(name+".places", b.Permute(name+".heads", bias, 1, 0), 1, heads, t*t)
				mask := b.Reshape(name+".masks", b.Constant(name+".mask", w.Mask(heads)), w.Count(), heads, t*t)
				bias = b.Map(name+".sum", expr.Arg(0).Add(expr.Arg(1)), mask, bias)
				bias = b.Reshape(name+".bias", bias, w.Count()*heads, t, t)

				y := b.Windows(name+".windows", b.LayerNorm(name+".norm", x, 1e-5), w)
				y = b.SelfAttention(name+".attention", b.Linear(name+".qkv", y, 3*width), n*w.Count(), heads, bias)
				x = b.Add(name+".add", x, b.FromWindows(name+".images", b.Linear(name+".proj", y, width), w))
			}
			x = b.Apply("planes", op.Planes{Height: side, Width: side}, b.Reshape("apart", x, n, side*side, width))
			return b.Linear("head", b.GlobalAvgPool("mean", x), b.Config().Classes)
		},
	}
	m, err := net.Model(nn.Config{Batch: 8})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Logits.Shape(), m.NumParams())
	// Output:
	// (8, 10) 10670
}

// Cross-attention: 3 trained queries look at the tokens of an image.
func ExampleBuilder_Attention() {
	const width, queries, patch = 32, 3, 8
	net := nn.Architecture{
		Name: "queries", Size: 32, Channels: 3, Classes: 10,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			n, side := b.Config().Batch, b.Config().Size/patch
			x = b.Conv("patches", x, nn.Conv{Filters: width, Kernel: patch, Stride: patch, Bias: true})
			x = b.Reshape("rows", b.Apply("tokens", op.Tokens{}, x), n*side*side, width)
			q := b.Param("queries", nn.Init{Distribution: nn.Normal, Scale: 1}, 1, queries, width)
			q = b.Reshape("all", b.Expand("each", q, n, queries, width), n*queries, width)
			y := b.Attention("cross", q, b.Linear("keys", x, width), b.Linear("values", x, width), n, nn.Attention{Heads: 4})
			return b.Linear("head", b.Reshape("joined", y, n, queries*width), b.Config().Classes)
		},
	}
	m, err := net.Model(nn.Config{Batch: 8})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Logits.Shape(), m.NumParams())
	// Output:
	// (8, 10) 9354
}

// A network of one's own: an Architecture need not be registered.
func ExampleArchitecture() {
	mlp := nn.Architecture{
		Name: "mlp", Size: 28, Channels: 1, Classes: 10,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			x = b.ReLU("relu", b.Linear("fc1", b.Flatten("flatten", x), 100))
			return b.Linear("fc2", x, b.Config().Classes)
		},
	}
	m, err := mlp.Model(nn.Config{Batch: 64})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Logits.Shape(), m.NumParams())
	// Output:
	// (64, 10) 79510
}
