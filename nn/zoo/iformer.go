package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	groups, reduce := [4]int{0, 0, 3, 2}, [4]int{0, 0, 2, 4}
	medium := IFormer{Channels: [4]int{48, 96, 192, 384}, Blocks: [4]int{2, 2, 22, 6}, Attention: [4]int{0, 0, 4, 2},
		Reduce: reduce, ConvRatio: 4, MLPRatio: 3}
	large := IFormer{Channels: [4]int{48, 96, 256, 384}, Blocks: [4]int{2, 2, 33, 6}, Attention: [4]int{0, 0, 8, 2},
		Reduce: reduce, ConvRatio: 4, MLPRatio: 3}
	large2 := IFormer{Channels: [4]int{64, 128, 256, 512}, Blocks: [4]int{3, 3, 46, 9}, Attention: [4]int{0, 0, 11, 3},
		Reduce: reduce, ConvRatio: 4, MLPRatio: 3}
	for _, v := range []struct {
		name string
		net  IFormer
	}{
		{"t", IFormer{Channels: [4]int{32, 64, 128, 256}, Blocks: [4]int{2, 2, 16, 6}, Attention: groups, Reduce: reduce,
			ConvRatio: 3, MLPRatio: 2}},
		{"s", IFormer{Channels: [4]int{32, 64, 176, 320}, Blocks: [4]int{2, 2, 19, 6}, Attention: groups, Reduce: reduce,
			ConvRatio: 4, MLPRatio: 3}},
		{"m", medium},
		{"l", large},
		{"h", IFormer{Channels: [4]int{96, 192, 384, 768}, Blocks: [4]int{5, 5, 60, 18}, Attention: [4]int{0, 0, 15, 6},
			Reduce: [4]int{0, 0, 1, 1}, ConvRatio: 4, MLPRatio: 4, LayerScale: 1e-6}},
		{"m_distilled", medium},
		{"l_distilled", large},
		{"l2_distilled", large2},
	} {
		size, _, distilled := strings.Cut(v.name, "_")
		v.net.Distilled = distilled
		a := nn.Architecture{
			Name:          "iformer_" + v.name,
			Family:        "iformer",
			Summary:       fmt.Sprintf("iFormer-%s, as timm's", strings.ToUpper(size)),
			Reference:     "Zheng, iFormer: integrating ConvNet and transformer for mobile application, 2025",
			Resize:        256,
			Interpolation: bicubic,
			Block:         `^(stem|stages\.\d\.(?:blocks\.\d+|downsample))\.`,
			Init:          convNeXtInitial,
			Build:         v.net.Build,
		}
		if distilled {
			a.Summary = strings.Replace(a.Summary, ",", " with a second head for a teacher's labels,", 1)
			a.Heads = []string{"head.head.l", "head.head_dist.l"}
		}
		imageNet(a)
	}
}

// IFormer are the options of a net of depthwise convolutions, and attention of one head whose result is gated.
type IFormer struct {
	Channels [4]int // of each stage, the first even; timm's dims
	// Blocks are those of each stage. Attention has three of them: positions, attention and a perceptron; timm's depths.
	Blocks [4]int
	// Attention are groups of three such blocks. The last other block, of convolutions, follows them, the others precede
	// them; timm's attn_groups.
	Attention [4]int
	Reduce    [4]int // channels for one of queries and keys, where there is Attention; timm's attn_head_dim_reduction
	ConvRatio int    // hidden channels of a block of convolutions, by channel; timm's conv_ratio
	MLPRatio  int    // those of a perceptron; timm's ffn_ratio

	LayerScale float64 // initial factor of each channel of a branch; 0: no factors; timm's layer_scale_init_value
	Distilled  bool    // logits are the mean of two heads': timm's distillation
}

// Build adds the layers to b.
func (o IFormer) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("IFormer", o).least(1, "Channels", "Blocks", "ConvRatio", "MLPRatio").
		least(0, "Attention", "Reduce", "LayerScale").
		that(o.Channels[0]%2 == 0, "Channels", "even in the first stage")
	for i, groups := range o.Attention {
		b.options("IFormer", o).that(3*groups <= o.Blocks[i], "Attention", "at most a third of Blocks").
			that(groups == 0 || o.Reduce[i] > 0 && o.Reduce[i] <= o.Channels[i], "Reduce",
				"from 1 to Channels in stages of Attention")
	}
	if b.Err() != nil {
		return nil
	}
	c := o.Channels[0]
	x = b.GELU("stem.act1", b.cBN("stem.conv1", x, nn.Conv{Filters: c / 2, Kernel: 5, Stride: 2}, 1))
	x = b.GELU("stem.act2", b.cBN("stem.conv2", x, nn.Conv{Filters: c / 2 * 4, Kernel: 5, Stride: 2}, 1))
	x = b.cBN("stem.conv3", x, nn.Conv{Filters: c, Kernel: 1}, 1)
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		name := fmt.Sprintf("stages.%d", i)
		if c != o.Channels[i] {
			c = o.Channels[i]
			x = b.cBN(name+".downsample", x, nn.Conv{Filters: c, Kernel: 3, Stride: 2}, 1)
		}
		attends := 3 * o.Attention[i]
		first := max(n-attends-1, 0) // blocks before attention
		for j := range n {
			block, drop := fmt.Sprintf("%s.blocks.%d", name, j), b.Config().DropPathAt(done, all)
			mixer, part := block+".mixer.module", (j-first)%3
			switch {
			case j < first || j >= first+attends:
				x = o.residual(b, block+".mixer", x, drop, func() *G.Node {
					y := b.cBN(mixer+".0", x, nn.Conv{Filters: c, Kernel: 7, Groups: c}, 1)
					y = b.GELU(mixer+".2", b.cBN(mixer+".1", y, nn.Conv{Filters: o.ConvRatio * c, Kernel: 1}, 1))
					return b.cBN(mixer+".3", y, nn.Conv{Filters: c, Kernel: 1}, 1)
				})
			case part == 0:
				y := b.cBN(block+".cpe.module", x, nn.Conv{Filters: c, Kernel: 3, Groups: c}, 1)
				x = b.Add(block+".cpe.add", y, x)
			case part == 1:
				x = o.residual(b, block+".mixer", x, drop, func() *G.Node { return b.gatedAttention(mixer, x, c/o.Reduce[i]) })
			default:
				x = o.residual(b, block+".mixer", x, drop, func() *G.Node {
					y := b.GELU(mixer+".1", b.cBN(mixer+".0", x, nn.Conv{Filters: o.MLPRatio * c, Kernel: 1}, 1))
					return b.cBN(mixer+".2", y, nn.Conv{Filters: c, Kernel: 1}, 1)
				})
			}
			done++
		}
	}
	x = b.Dropout("head_drop", b.pixel("pool", x), b.Config().Dropout)
	if o.Distilled {
		return b.distilled("head.head", "head.head_dist", ".l", x)
	}
	return b.Linear("head.head.l", b.Flatten("flatten", b.BatchNorm("head.head.bn", x, 1)), b.Config().Classes)
}

// residual adds a branch to x, times trained factors if there are such.
func (o IFormer) residual(b layer, name string, x *G.Node, drop float64, branch func() *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	if o.LayerScale == 0 {
		return b.pathAdd(name, branch(), x, drop)
	}
	c := x.Shape()[1]
	gamma := b.AddParam(nn.Param{Name: name + ".gamma", Shape: op.Shape{c, 1, 1}, Stored: op.Shape{1, c, 1, 1},
		Init: nn.Init{Scale: o.LayerScale}})
	y := b.StochasticDepth(name+".drop_path", branch(), drop)
	return b.Map(name+".add", expr.Arg(0).Mul(expr.Arg(1)).Add(expr.Arg(2)), y, gamma, x)
}

// gatedAttention is attention of one head among the pixels of x, with queries and keys of the given width. Sigmoids
// bound its values and the gates of its result.
func (b layer) gatedAttention(name string, x *G.Node, width int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	n, c := x.Shape()[0], x.Shape()[1]
	q := b.rows(name+".q", b.cBN(name+".q", x, nn.Conv{Filters: width, Kernel: 1}, 1))
	k := b.rows(name+".k", b.cBN(name+".k", x, nn.Conv{Filters: width, Kernel: 1}, 1))
	y := b.Sigmoid(name+".gate_act", b.cBN(name+".v_gate", x, nn.Conv{Filters: 2 * c, Kernel: 1}, 1))
	v, gate := b.Slice(name+".v", y, 1, 0, c), b.Slice(name+".gate", y, 1, c, 2*c)
	y = b.image(name, b.Attention(name+".attention", q, k, b.rows(name+".v", v), n, nn.Attention{Heads: 1}), x)
	return b.cBN(name+".proj", b.Scale(name+".gated", y, gate), nn.Conv{Filters: c, Kernel: 1}, 1)
}
