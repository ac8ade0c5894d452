package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name string
		net  LeViT
	}{
		{"128s", LeViT{Width: [3]int{128, 256, 384}, Key: 16, Heads: [3]int{4, 6, 8}, Blocks: [3]int{2, 3, 4}}},
		{"128", LeViT{Width: [3]int{128, 256, 384}, Key: 16, Heads: [3]int{4, 8, 12}, Blocks: [3]int{4, 4, 4}}},
		{"192", LeViT{Width: [3]int{192, 288, 384}, Key: 32, Heads: [3]int{3, 5, 6}, Blocks: [3]int{4, 4, 4}}},
		{"256", LeViT{Width: [3]int{256, 384, 512}, Key: 32, Heads: [3]int{4, 6, 8}, Blocks: [3]int{4, 4, 4}}},
		{"384", LeViT{Width: [3]int{384, 512, 768}, Key: 32, Heads: [3]int{6, 9, 12}, Blocks: [3]int{4, 4, 4}}},
	} {
		name := "levit_conv_" + v.name
		imageNet(nn.Architecture{
			Name:          name,
			Family:        "levit",
			Summary:       fmt.Sprintf("LeViT-%s, as timm's", strings.ToUpper(v.name)),
			Reference:     "Graham et al., LeViT: a vision transformer in ConvNet's clothing for faster inference, 2021",
			Resize:        248,
			Interpolation: bicubic,
			Block:         `^(stem|stages\.\d\.(?:blocks\.\d+|downsample))\.`,
			Heads:         []string{"head.linear", "head_dist.linear"},
			Init:          leViTInitial,
			Build:         v.net.Build,
		})
		nn.Alias("levit_"+v.name, name) // of linear layers in place of 1×1 convolutions
	}
}

// LeViT are the options of a net of attention behind a stem of convolutions.
type LeViT struct {
	Width  [3]int // channels of each stage, the first divisible by 8, and those before the last by Key; timm's embed_dim
	Key    int    // elements of a head's keys; timm's key_dim
	Heads  [3]int // of each stage; timm's num_heads
	Blocks [3]int // of each stage; timm's depth
}

// Build adds the layers to b.
func (o LeViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("LeViT", o).least(1, "Width", "Key", "Heads", "Blocks").
		that(o.Width[0]%8 == 0, "Width", "divisible by 8 in the first stage").
		that(min(o.Width[0], o.Width[1]) >= o.Key, "Width", "at least Key").ok() {
		return nil
	}
	c := o.Width[0]
	for i := range 4 {
		name := fmt.Sprintf("stem.conv%d", i+1)
		stem := nn.Conv{Filters: c >> (3 - i), Kernel: 3, Stride: 2}
		if x = b.convNorm([2]string{name + ".linear", name + ".bn"}, x, stem, nil); i < 3 {
			x = b.Hardswish(name+".act", x)
		}
	}
	drop := b.Config().DropPath
	for i, n := range o.Blocks {
		if i > 0 {
			name := fmt.Sprintf("stages.%d.downsample", i)
			x = o.attention(b, name+".attn_downsample", x, o.Width[i], c/o.Key, 4, 2)
			c = o.Width[i]
			y := b.StochasticDepth(name+".drop_path", o.mlp(b, name+".mlp", x), drop)
			x = b.Add(name+".add", y, x)
		}
		for j := range n {
			name := fmt.Sprintf("stages.%d.blocks.%d", i, j)
			y := o.attention(b, name+".attn", x, c, o.Heads[i], 2, 1)
			x = b.Add(name+".add1", b.StochasticDepth(name+".drop_path1", y, drop), x)
			y = b.StochasticDepth(name+".drop_path2", o.mlp(b, name+".mlp", x), drop)
			x = b.Add(name+".add2", y, x)
		}
	}
	return b.distilled("head", "head_dist", ".linear", b.pixel("pool", x))
}

// attention is attention among the pixels of x, of those of a stride to all, with values of ratio·Key elements.
func (o LeViT) attention(b layer, name string, x *G.Node, out, heads, ratio, stride int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s, value, scale := x.Shape(), ratio*o.Key, 0.
	bias := b.distances(name, heads, grid{s[2], s[3], stride})
	var parts []*G.Node
	like := x
	if stride == 1 {
		qkv := b.linearBN(name+".qkv", x, heads*(2*o.Key+value), 1)
		parts = b.headParts(name, b.rows(name+".qkv", qkv), heads, o.Key, o.Key, value)
	} else {
		scale = 1
		kv := b.headParts(name, b.rows(name+".kv", b.linearBN(name+".kv", x, heads*(o.Key+value), 1)), heads, o.Key, value)
		like = b.linearBN(name+".q.ln", b.AvgPool(name+".q.down", x, 1, stride, 0), heads*o.Key, 1)
		parts = append([]*G.Node{b.rows(name+".q", like)}, kv...)
	}
	y := b.Attention(name+".attention", parts[0], parts[1], parts[2], s[0], nn.Attention{Heads: heads}, bias)
	y = b.image(name, y, like)
	return b.linearBN(name+".proj.ln", b.Hardswish(name+".proj.act", y), out, scale)
}

// mlp is a perceptron of twice as many channels.
func (o LeViT) mlp(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	return b.linearBN(name+".ln2", b.Hardswish(name+".act", b.linearBN(name+".ln1", x, 2*c, 1)), c, 0)
}

// linearBN is a 1×1 convolution, and a normalisation whose factor starts as scale.
func (b layer) linearBN(name string, x *G.Node, out int, scale float64) *G.Node {
	return b.BatchNorm(name+".bn", b.conv(name+".linear", x, nn.Conv{Filters: out, Kernel: 1}), scale)
}

// leViTInitial is the initial distribution of a parameter: PyTorch's, but for the heads.
func leViTInitial(p nn.Param) nn.Init {
	if strings.HasPrefix(p.Name, "head") {
		return truncated(.02)(p)
	}
	return torchInit(p)
}
