package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name, summary, reference, block string
		build                           func(*nn.Builder, *G.Node) *G.Node
	}{
		{"nasnetalarge", "NASNet-A, large", "Zoph et al., Learning transferable architectures for scalable image " +
			"recognition, 2018", `^(conv0|(?:reduction_)?cell_(?:stem_)?\d+)\.`,
			NASNet{Stem: 96, Width: 168, Blocks: [3]int{6, 6, 6}}.Build},
		{"pnasnet5large", "PNASNet-5, large", "Liu et al., Progressive neural architecture search, 2018",
			`^(conv_0|cell_(?:stem_)?\d+)\.`, PNASNet{Stem: 96, Width: 216, Blocks: [3]int{4, 4, 4}}.Build},
	} {
		imageNet(nn.Architecture{
			Name:          v.name,
			Family:        "nasnet",
			Summary:       v.summary + ", with timm's names",
			Reference:     v.reference,
			Size:          331,
			MinSize:       32,
			Resize:        363,
			Interpolation: bicubic,
			Mean:          half,
			Std:           half,
			BatchNormEps:  1e-3,
			Block:         v.block,
			Init:          torchInit,
			Build:         v.build,
		})
	}
}

// NASNet are the options of a net of searched cells, which see the results of the two before.
type NASNet struct {
	Stem   int    // channels of the first convolution; timm's stem_size
	Width  int    // channels of a cell's branches in the first stage, which double twice; timm's num_features by 24
	Blocks [3]int // cells of each stage beside those with strides
}

// Build adds the layers to b.
func (o NASNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := cells{layer{builder}}
	b.options("NASNet", o).least(1, "Stem", "Width", "Blocks").that(o.Width%4 == 0, "Width", "divisible by 4")
	if !b.atLeast(x, 32) {
		return nil
	}
	first := b.stem("conv0", x, o.Stem)
	const stem0, stem1 = "cell_stem_0", "cell_stem_1"
	before := b.strided(stem0, b.point(stem0+".conv_1x1", first, o.Width/4, 1), first, o.Width/4)
	x = b.point(stem1+".conv_1x1", before, o.Width/2, 1)
	x = b.strided(stem1, x, b.everySecond(stem1, first, o.Width/2), o.Width/2)
	at := 0
	for i, n := range o.Blocks {
		width := o.Width << i
		if i > 0 {
			name := fmt.Sprintf("reduction_cell_%d", i-1)
			left := b.point(name+".conv_prev_1x1", before, width, 1)
			x = b.strided(name, b.point(name+".conv_1x1", x, width, 1), left, width)
		}
		for j := range n {
			name := fmt.Sprintf("cell_%d", at)
			var left, right *G.Node
			if j == 0 { // the result before is twice as large
				right = b.point(name+".conv_1x1", x, width, 1)
				left = b.everySecond(name, before, width)
			} else {
				left = b.point(name+".conv_prev_1x1", before, width, 1)
				right = b.point(name+".conv_1x1", x, width, 1)
			}
			x, before = b.normal(name, left, right, width), x
			at++
		}
	}
	return b.head(x)
}

// PNASNet are the options of a net of cells that were searched for one after the other.
type PNASNet struct {
	Stem   int    // channels of the first convolution
	Width  int    // channels of a cell's branches in the first stage, which double twice
	Blocks [3]int // cells of each stage, of which the first halves images but in the first stage
}

// Build adds the layers to b.
func (o PNASNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := cells{layer{builder}}
	b.options("PNASNet", o).least(1, "Stem", "Width", "Blocks").that(o.Width%4 == 0, "Width", "divisible by 4").
		that(o.Blocks[1] > 1, "Blocks", "at least 2 in the second stage")
	if !b.atLeast(x, 32) {
		return nil
	}
	first := b.stem("conv_0", x, o.Stem)
	const stem0, stem1 = "cell_stem_0", "cell_stem_1"
	before := b.progressive(stem0, first, b.point(stem0+".conv_1x1", first, o.Width/4, 1), o.Width/4, 2)
	left := b.everySecond(stem1+".conv_prev_1x1", first, o.Width/2)
	x = b.progressive(stem1, left, b.point(stem1+".conv_1x1", before, o.Width/2, 1), o.Width/2, 2)
	at := 0
	for i, n := range o.Blocks {
		width := o.Width << i
		for j := range n {
			name, stride := fmt.Sprintf("cell_%d", at), 1
			if i > 0 && j == 0 {
				stride = 2
			}
			if j == min(i, 1) { // the result before is twice as large
				left = b.everySecond(name+".conv_prev_1x1", before, width)
			} else {
				left = b.point(name+".conv_prev_1x1", before, width, 1)
			}
			x, before = b.progressive(name, left, b.point(name+".conv_1x1", x, width, 1), width, stride), x
			at++
		}
	}
	return b.head(x)
}
