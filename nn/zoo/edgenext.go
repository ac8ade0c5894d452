package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	for _, v := range []struct {
		name   string
		resize int
		drop   float64
		net    EdgeNeXt
	}{
		{"xx_small", 284, 0, EdgeNeXt{Blocks: [4]int{2, 2, 6, 2}, Channels: [4]int{24, 48, 88, 168}, Heads: 4}},
		{"x_small", 284, 0, EdgeNeXt{Blocks: [4]int{3, 3, 9, 3}, Channels: [4]int{32, 64, 100, 192}, Heads: 4}},
		{"small", 269, .1, EdgeNeXt{Blocks: [4]int{3, 3, 9, 3}, Channels: [4]int{48, 96, 160, 304}, Heads: 8}},
		{"base", 269, .1, EdgeNeXt{Blocks: [4]int{3, 3, 9, 3}, Channels: [4]int{80, 160, 288, 584}, Heads: 8}},
		{"small_rw", 284, 0,
			EdgeNeXt{Blocks: [4]int{3, 3, 9, 3}, Channels: [4]int{48, 96, 192, 384}, Heads: 8, Overlap: true}},
	} {
		imageNet(nn.Architecture{
			Name:   "edgenext_" + v.name,
			Family: "edgenext",
			Summary: "EdgeNeXt, " + strings.NewReplacer("_rw", ", by Wightman", "xx_", "extra extra ", "x_", "extra ").
				Replace(v.name) + ", with timm's names",
			Reference: "Maaz et al., EdgeNeXt: efficiently amalgamated CNN-transformer architecture for mobile vision " +
				"applications, 2022",
			Size:          256,
			MinSize:       32,
			Resize:        v.resize,
			Interpolation: bicubic,
			DropPath:      v.drop,
			Block:         timmStage,
			Init:          edgeNeXtInitial,
			Build:         v.net.Build,
		})
	}
}

// EdgeNeXt are the options of a net of ConvNeXt's blocks, with attention among channels in the last of later stages.
type EdgeNeXt struct {
	Blocks   [4]int // of each stage; timm's depths
	Channels [4]int // of each stage; timm's dims
	Heads    int    // of attention, which divide the channels of later stages; timm's heads

	// Overlap has windows that overlap in the first convolution, depthwise convolutions with a stride between stages, and
	// none of these has biases: timm's stem_type="overlap", downsample_block=True and conv_bias=False.
	Overlap bool
}

// edgeScale is the initial factor of branches.
const edgeScale = 1e-6

// Build adds the layers to b.
func (o EdgeNeXt) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("EdgeNeXt", o).least(1, "Blocks", "Channels", "Heads")
	if !b.atLeast(x, 32) {
		return nil
	}
	for _, c := range o.Channels[1:] {
		b.options("EdgeNeXt", o).that(c%o.Heads == 0, "Channels", fmt.Sprintf("divisible by Heads, which is %d", o.Heads))
	}
	stem := nn.Conv{Filters: o.Channels[0], Kernel: 4, Stride: 4, Bias: true}
	if o.Overlap {
		stem.Kernel, stem.Pad, stem.Bias = 9, 4, false
	}
	x = b.pixelNorm("stem.1", b.Conv("stem.0", x, stem))
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		c := o.Channels[i]
		if i > 0 && !o.Overlap {
			name := fmt.Sprintf("stages.%d.downsample", i)
			x = b.Conv(name+".1", b.pixelNorm(name+".0", x), nn.Conv{Filters: c, Kernel: 2, Stride: 2, Bias: true})
		}
		for j := range n {
			name, drop := fmt.Sprintf("stages.%d.blocks.%d", i, j), b.Config().DropPathAt(done, all)
			if i > 0 && j == n-1 {
				x = o.split(b, name, x, [...]int{2, 2, 3, 4}[i], i == 1, drop)
			} else {
				stride := 1
				if o.Overlap && i > 0 && j == 0 {
					stride = 2
				}
				x = o.block(b, name, x, c, 3+2*i, stride, drop)
			}
			done++
		}
	}
	x = b.LayerNorm("head.norm", b.GlobalAvgPool("head.global_pool", x), rowEps)
	return b.Linear("head.fc", b.Dropout("head.drop", x, b.Config().Dropout), b.Config().Classes)
}

// block is a depthwise convolution and a perceptron. The shortcut starts behind the convolution if that changes shapes.
func (o EdgeNeXt) block(b layer, name string, x *G.Node, out, kernel, stride int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	in := x.Shape()[1]
	gamma := b.vector(name+".gamma", out, edgeScale)
	y := b.conv(name+".conv_dw", x, nn.Conv{Filters: out, Kernel: kernel, Stride: stride, Groups: in, Bias: !o.Overlap})
	if stride > 1 || in != out {
		x = y
	}
	return b.pathAdd(name, b.edgeMLP(name, y, gamma), x, drop)
}

// edgeMLP is a perceptron of the normalised pixels of x, times factors.
func (b layer) edgeMLP(name string, x, gamma *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	y := b.rows(name+".mlp", x)
	y = b.image(name+".mlp", b.perceptron(name+".mlp", b.LayerNorm(name+".norm", y, rowEps), 4*c), x)
	return b.Scale(name+".scaled", y, gamma)
}

// split convolves parts of the channels one after the other, each plus the result before, and adds attention among
// channels and a perceptron.
func (o EdgeNeXt) split(b layer, name string, x *G.Node, scales int, places bool, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	n, c := s[0], s[1]
	gammaXCA, gamma := b.vector(name+".gamma_xca", c, edgeScale), b.vector(name+".gamma", c, edgeScale)
	width := (c + scales - 1) / scales
	part := func(i int) *G.Node {
		return b.Slice(fmt.Sprintf("%s.part%d", name, i), x, 1, i*width, min((i+1)*width, c))
	}
	var list []*G.Node
	y := part(0)
	for i := range scales - 1 {
		conv := fmt.Sprintf("%s.convs.%d", name, i)
		if i > 0 {
			y = b.Add(conv+".add", y, part(i))
		}
		y = b.conv(conv, y, nn.Conv{Filters: width, Kernel: 3, Groups: width, Bias: !o.Overlap})
		list = append(list, y)
	}
	y = b.Concat(name+".concat", 1, append(list, part(scales-1))...)
	if places {
		table := b.Constant(name+".pos_embd.waves", waves(s[2], s[3]))
		table = b.Conv(name+".pos_embd.token_projection", table, nn.Conv{Filters: c, Kernel: 1, Bias: true})
		y = b.Map(name+".pos_embd", expr.Arg(0).Add(expr.Arg(1)), y, table)
	}
	rows := b.rows(name, y)
	z := b.covariance(name+".xca", b.LayerNorm(name+".norm_xca", rows, rowEps), n, o.Heads)
	rows = b.rowResidual(name+".drop_path1", b.Scale(name+".scaled_xca", z, gammaXCA), rows, n, drop)
	y = b.edgeMLP(name, b.image(name, rows, y), gamma)
	return b.Add(name+".add", b.StochasticDepth(name+".drop_path2", y, drop), x)
}

// edgeNeXtInitial is the initial distribution of a parameter: weights are cut at two standard deviations.
func edgeNeXtInitial(p nn.Param) nn.Init {
	init := convNeXtInitial(p)
	if init.Distribution == nn.Normal {
		init.Scale *= cutNormal
	}
	return init
}
