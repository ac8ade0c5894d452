package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	for i, net := range []StarNet{
		{Width: 24, Blocks: [4]int{2, 2, 8, 3}}, {Width: 32, Blocks: [4]int{1, 2, 6, 2}},
		{Width: 32, Blocks: [4]int{2, 2, 8, 4}}, {Width: 32, Blocks: [4]int{3, 3, 12, 5}},
	} {
		imageNet(nn.Architecture{
			Name:          fmt.Sprintf("starnet_s%d", i+1),
			Family:        "starnet",
			Summary:       fmt.Sprintf("StarNet-S%d, with timm's names", i+1),
			Reference:     "Ma et al., Rewrite the stars, 2024",
			Resize:        256,
			Interpolation: bicubic,
			Block:         `^(stages\.\d\.\d+)\.`,
			Init:          starNetInitial,
			Build:         net.Build,
		})
	}
}

// StarNet are the options of a net whose blocks multiply two branches.
type StarNet struct {
	Width  int    // channels of the first stage, which each later one doubles; timm's base_dim
	Blocks [4]int // of each stage; timm's depths
}

// Build adds the layers to b.
func (o StarNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("StarNet", o).least(1, "Width", "Blocks").ok() {
		return nil
	}
	x = relu6(builder, "stem.1", b.biasedBN("stem.0", x, nn.Conv{Filters: 32, Kernel: 3, Stride: 2}))
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		c := o.Width << i
		x = b.biasedBN(fmt.Sprintf("stages.%d.0", i), x, nn.Conv{Filters: c, Kernel: 3, Stride: 2})
		for j := range n {
			name := fmt.Sprintf("stages.%d.%d", i, j+1)
			deep, wide := nn.Conv{Filters: c, Kernel: 7, Groups: c, Bias: true}, nn.Conv{Filters: 4 * c, Kernel: 1, Bias: true}
			y := b.biasedBN(name+".dwconv", x, deep)
			first, second := b.conv(name+".f1.conv", y, wide), b.conv(name+".f2.conv", y, wide)
			y = b.Map(name+".star", expr.Arg(0).Clamp(0, 6).Mul(expr.Arg(1)), first, second)
			y = b.biasedBN(name+".g", y, nn.Conv{Filters: c, Kernel: 1})
			y = b.StochasticDepth(name+".drop_path", b.conv(name+".dwconv2.conv", y, deep), b.Config().DropPathAt(done, all))
			x = b.Add(name+".add", y, x)
			done++
		}
	}
	return b.Linear("head", b.pooled("dropout", b.BatchNorm("norm", x, 1)), b.Config().Classes)
}

// starNetInitial is the initial distribution of a parameter. Biases of convolutions start as PyTorch's.
func starNetInitial(p nn.Param) nn.Init {
	if p.Groups > 0 && len(p.Shape) == 1 {
		return p.Init
	}
	return convNeXtInitial(p)
}
