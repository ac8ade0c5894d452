package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name, letter string
		drop         float64
		resize       int
		net          ConvNeXt
	}{
		{"tiny", "T", .1, 236, ConvNeXt{Blocks: [4]int{3, 3, 9, 3}, Width: 96}},
		{"small", "S", .4, 230, ConvNeXt{Blocks: [4]int{3, 3, 27, 3}, Width: 96}},
		{"base", "B", .5, 232, ConvNeXt{Blocks: [4]int{3, 3, 27, 3}, Width: 128}},
		{"large", "L", .5, 232, ConvNeXt{Blocks: [4]int{3, 3, 27, 3}, Width: 192}},
	} {
		imageNet(nn.Architecture{
			Name:      "convnext_" + v.name,
			Family:    "convnext",
			Summary:   "ConvNeXt-" + v.letter,
			Reference: "Liu et al., A ConvNet for the 2020s, 2022",
			MinSize:   32,
			DropPath:  v.drop,
			Resize:    v.resize,
			Block:     `^(features\.[1357]\.\d+)\.`,
			Init:      convNeXtInitial,
			Build:     v.net.Build,
		})
	}
}

// ConvNeXt are the options of a convolutional net with the blocks of a transformer.
type ConvNeXt struct {
	Blocks [4]int // of each stage
	Width  int    // channels of the first stage, which doubles from one to the next
	// LayerScale is the initial factor of a block's branch; 0 means 1e-6: torchvision's layer_scale.
	LayerScale float64
}

// Build adds the layers to b.
func (o ConvNeXt) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("ConvNeXt", o).least(1, "Blocks", "Width").least(0, "LayerScale")
	if !b.atLeast(x, 32) {
		return nil
	}
	x = b.Conv("features.0.0", x, nn.Conv{Filters: o.Width, Kernel: 4, Stride: 4, Bias: true})
	x = b.pixelNorm("features.0.1", x)
	done, last := 0, o.Blocks[0]+o.Blocks[1]+o.Blocks[2]+o.Blocks[3]-1
	for i, n := range o.Blocks {
		if i > 0 {
			name := fmt.Sprintf("features.%d", 2*i)
			x = b.Conv(name+".1", b.pixelNorm(name+".0", x), nn.Conv{Filters: o.Width << i, Kernel: 2, Stride: 2, Bias: true})
		}
		for j := range n {
			drop := b.Config().DropPath * float64(done) / float64(max(last, 1))
			x = b.convNeXt(fmt.Sprintf("features.%d.%d", 2*i+1, j), x, cmp.Or(o.LayerScale, 1e-6), drop)
			done++
		}
	}
	x = b.LayerNorm("classifier.0", b.GlobalAvgPool("avgpool", x), rowEps)
	return b.Linear("classifier.2", b.Dropout("dropout", x, b.Config().Dropout), b.Config().Classes)
}

// pixelNorm adds a layer normalisation of the channels of each pixel of x [N,C,H,W].
func (b layer) pixelNorm(name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	x = b.LayerNorm(name, b.Apply(name+".rows", op.Tokens{}, x), rowEps)
	return b.Apply(name+".pixels", op.Planes{Height: s[2], Width: s[3]}, x)
}

// convNeXt adds to x a depthwise convolution 7×7 followed by a perceptron of each pixel. scale is the initial factor of
// this branch, drop the probability of dropping it in Train.
func (b layer) convNeXt(name string, x *G.Node, scale, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	n, c, pixels := s[0], s[1], s[2]*s[3]
	factor := b.Param(name+".layer_scale", nn.Init{Distribution: nn.Constant, Scale: scale}, c, 1, 1)
	y := b.Conv(name+".block.0", x, nn.Conv{Filters: c, Kernel: 7, Pad: 3, Groups: c, Bias: true})
	y = b.Reshape(name+".rows", b.Apply(name+".block.1", op.Tokens{}, y), n*pixels, c)
	y = b.Linear(name+".block.3", b.LayerNorm(name+".block.2", y, rowEps), 4*c)
	y = b.Linear(name+".block.5", b.GELU(name+".block.4", y), c)
	y = b.Apply(name+".block.6", op.Planes{Height: s[2], Width: s[3]}, b.Reshape(name+".images", y, n, pixels, c))
	return b.residual(name, b.Map(name+".scaled", expr.Arg(0).Mul(expr.Arg(1)), y, factor), x, drop)
}

// convNeXtInitial is the initial distribution of a parameter.
func convNeXtInitial(p nn.Param) nn.Init {
	switch {
	case len(p.Shape) == 2, len(p.Shape) == 4:
		return nn.Init{Distribution: nn.Normal, Scale: .02}
	case p.Init.Distribution == nn.Uniform: // a bias
		return nn.Init{}
	}
	return p.Init
}
