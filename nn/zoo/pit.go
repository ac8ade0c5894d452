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
	for _, v := range []struct {
		name string
		net  PiT
	}{
		{"ti", PiT{Head: 32, Heads: [3]int{2, 4, 8}}},
		{"xs", PiT{Head: 48, Heads: [3]int{2, 4, 8}}},
		{"s", PiT{Head: 48, Heads: [3]int{3, 6, 12}}},
		{"b", PiT{Head: 64, Heads: [3]int{4, 8, 16}, Patch: 14, Stride: 7, Blocks: [3]int{3, 6, 4}}},
	} {
		for _, distilled := range []bool{false, true} {
			v.net.Distilled = distilled
			if v.net.Patch == 0 {
				v.net.Patch, v.net.Stride, v.net.Blocks = 16, 8, [3]int{2, 6, 4}
			}
			a := nn.Architecture{
				Name:          "pit_" + v.name + "_224",
				Family:        "pit",
				Summary:       "PiT-" + strings.ToUpper(v.name) + ", with timm's names",
				Reference:     "Heo et al., Rethinking spatial dimensions of vision transformers, 2021",
				MinSize:       32,
				Resize:        248,
				Interpolation: bicubic,
				Block:         `^(transformers\.\d\.(?:blocks\.\d+|pool))\.`,
				Init:          torchInit,
				Build:         v.net.Build,
			}
			if distilled {
				a.Name, a.Summary = "pit_"+v.name+"_distilled_224", "PiT-"+strings.ToUpper(v.name)+" distilled, with timm's names"
				a.Heads = []string{"head", "head_dist"}
			}
			imageNet(a)
		}
	}
}

// PiT are the options of a vision transformer with three stages, between which depthwise convolutions pool tokens.
type PiT struct {
	Patch, Stride int    // height and width of a patch, and their distance; timm's patch_size and stride
	Head          int    // elements of a head; timm's base_dims
	Heads         [3]int // of each stage; a later stage's is a multiple of the one before; timm's heads
	Blocks        [3]int // of each stage; timm's depth
	Distilled     bool   // a second token has a head of its own: the logits are the mean of both heads'
}

// Build adds the layers to b.
func (o PiT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("PiT", o).least(1, "Patch", "Stride", "Head", "Heads", "Blocks").
		that(o.Heads[1]%max(o.Heads[0], 1) == 0 && o.Heads[2]%max(o.Heads[1], 1) == 0, "Heads",
			"numbers of which each divides the next")
	if !b.atLeast(x, o.Patch) {
		return nil
	}
	n, s, tokens, c := x.Shape()[0], x.Shape(), 1, o.Head*o.Heads[0]
	if o.Distilled {
		tokens = 2
	}
	height, width := (s[2]-o.Patch)/o.Stride+1, (s[3]-o.Patch)/o.Stride+1
	place := b.imagePlaces("pos_embed", c, height, width, true)
	class := b.embedding("cls_token", tokens, c)
	x = b.Conv("patch_embed.conv", x, nn.Conv{Filters: c, Kernel: o.Patch, Stride: o.Stride, Bias: true})
	x = b.Map("places", expr.Arg(0).Add(expr.Arg(1)), x, place)
	y := b.Reshape("class.rows", b.Expand("class", class, n, tokens, c), n*tokens, c)
	done, all := 0, sum(o.Blocks[:])
	for i, count := range o.Blocks {
		name := fmt.Sprintf("transformers.%d", i)
		if i > 0 {
			by := nn.Conv{Filters: o.Head * o.Heads[i], Kernel: 3, Stride: 2, Pad: 1, Groups: c, Bias: true}
			c = by.Filters
			x, y = b.Conv(name+".pool.conv", x, by), b.Linear(name+".pool.fc", y, c)
		}
		if b.Err() != nil {
			return nil
		}
		image, pixels := x, x.Shape()[2]*x.Shape()[3]
		x = b.Concat(name+".all", 1, b.Reshape(name+".class", y, n, tokens, c), b.Apply(name+".tokens", op.Tokens{}, x))
		x = b.Reshape(name+".rows", x, n*(tokens+pixels), c)
		for j := range count {
			x = b.plainBlock(fmt.Sprintf("%s.blocks.%d", name, j), x, n, o.Heads[i], 4, b.Config().DropPathAt(done, all))
			done++
		}
		x = b.Reshape(name+".sequences", x, n, tokens+pixels, c)
		y = b.Reshape(name+".class_rows", b.Slice(name+".class_tokens", x, 1, 0, tokens), n*tokens, c)
		if i < 2 {
			x = b.Reshape(name+".pixels", b.Slice(name+".patches", x, 1, tokens, tokens+pixels), n*pixels, c)
			x = b.image(name, x, image)
		}
	}
	y = b.LayerNorm("norm", y, rowEps)
	head := func(name string, k int) *G.Node {
		token := b.Reshape(name+".class", y, n, tokens, c)
		token = b.Reshape(name+".row", b.Slice(name+".token", token, 1, k, k+1), n, c)
		return b.Linear(name, b.Dropout(name+"_drop", token, b.Config().Dropout), b.Config().Classes)
	}
	logits := head("head", 0)
	if !o.Distilled {
		return logits
	}
	return b.Map("logits", meanOfTwo, logits, head("head_dist", 1))
}

// imagePlaces are places of the pixels of images with c channels, [1,c,height,width].
func (b layer) imagePlaces(name string, c, height, width int, exempt bool) *G.Node {
	x := b.AddParam(nn.Param{Name: name, Shape: op.Shape{c, height * width}, Stored: op.Shape{1, c, height, width},
		BiasOrNorm: exempt, Init: nn.Init{Distribution: nn.Normal, Scale: .02}})
	return b.Reshape(name+".image", x, 1, c, height, width)
}

// plainBlock adds to the rows x of n sequences attention, then a perceptron, as timm's vision transformers do.
func (b layer) plainBlock(name string, x *G.Node, n, heads, ratio int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	y := b.Linear(name+".attn.qkv", b.LayerNorm(name+".norm1", x, rowEps), 3*c)
	y = b.Linear(name+".attn.proj", b.selfAttention(name+".attention", y, n, nn.Attention{Heads: heads}), c)
	x = b.rowResidual(name+".drop_path1", y, x, n, drop)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, rowEps), ratio*c)
	return b.rowResidual(name+".drop_path2", y, x, n, drop)
}
