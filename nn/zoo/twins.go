package zoo

import (
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

func init() {
	for _, v := range []struct {
		name string
		net  Twins
	}{
		{"pcpvt_small", Twins{Blocks: [4]int{3, 4, 6, 3}}},
		{"pcpvt_base", Twins{Blocks: [4]int{3, 4, 18, 3}}},
		{"pcpvt_large", Twins{Blocks: [4]int{3, 8, 27, 3}}},
		{"svt_small", Twins{Blocks: [4]int{2, 2, 10, 4}, Channels: [4]int{64, 128, 256, 512}, Heads: [4]int{2, 4, 8, 16}}},
		{"svt_base", Twins{Blocks: [4]int{2, 2, 18, 2}, Channels: [4]int{96, 192, 384, 768}, Heads: [4]int{3, 6, 12, 24}}},
		{"svt_large", Twins{Blocks: [4]int{2, 2, 18, 2}, Channels: [4]int{128, 256, 512, 1024}, Heads: [4]int{4, 8, 16, 32}}},
	} {
		kind, size, _ := strings.Cut(v.name, "_")
		if kind == "pcpvt" {
			v.net.Channels, v.net.Heads, v.net.MLPRatios = [4]int{64, 128, 320, 512}, [4]int{1, 2, 5, 8}, [4]int{8, 8, 4, 4}
		} else {
			v.net.Window = 7
		}
		imageNet(nn.Architecture{
			Name:          "twins_" + v.name,
			Family:        "twins",
			Summary:       fmt.Sprintf("Twins-%s, %s, with timm's names", strings.ToUpper(kind), size),
			Reference:     "Chu et al., Twins: revisiting the design of spatial attention in vision transformers, 2021",
			MinSize:       32,
			Resize:        248,
			Interpolation: bicubic,
			Block:         `^(blocks\.\d\.\d+)\.`,
			Init:          fanOutInitial,
			Build:         v.net.Build,
		})
	}
}

// Twins are the options of a transformer whose stages attend to smaller images, by turns with attention in windows.
type Twins struct {
	Channels  [4]int // of each stage; timm's embed_dims
	Blocks    [4]int // of each stage; timm's depths
	Heads     [4]int // of each stage; they divide the channels; timm's num_heads
	MLPRatios [4]int // elements of a hidden layer for each channel; 0 all means 4; timm's mlp_ratios
	Window    int    // height and width of windows, in which even blocks attend; 0: there are none; timm's wss
}

// Build adds the layers to b.
func (o Twins) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if o.MLPRatios == [4]int{} {
		o.MLPRatios = [4]int{4, 4, 4, 4}
	}
	b.options("Twins", o).least(1, "Channels", "Blocks", "Heads", "MLPRatios").least(0, "Window").
		that(o.Window <= 128, "Window", "at most 128")
	for i, heads := range o.Heads {
		b.options("Twins", o).that(o.Channels[i]%max(heads, 1) == 0, "Channels",
			fmt.Sprintf("divisible by Heads, which are %v", o.Heads))
	}
	if !b.multipleOf(x, 32) {
		return nil
	}
	size, done, all := 4, 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		name, c := fmt.Sprintf("patch_embeds.%d", i), o.Channels[i]
		image := b.Conv(name+".proj", x, nn.Conv{Filters: c, Kernel: size, Stride: size, Bias: true})
		x, size = b.LayerNorm(name+".norm", b.rows(name, image), branchEps), 2
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			x = o.block(b, fmt.Sprintf("blocks.%d.%d", i, j), x, image, i, j, drop)
			if j == 0 {
				x = b.rowPlaces(fmt.Sprintf("pos_block.%d.proj.0", i), x, image)
			}
			done++
		}
		if i == len(o.Blocks)-1 {
			x = b.LayerNorm("norm", x, rowEps)
		}
		x = b.image(name, x, image)
	}
	x = b.Linear("head", b.pooled("head_drop", x), b.Config().Classes)
	b.Order(func(name string) int {
		part, _, _ := strings.Cut(name, ".")
		return slices.Index([]string{"patch_embeds", "blocks", "pos_block", "norm", "head"}, part)
	})
	return x
}

// rowPlaces adds to the rows x of images a depthwise convolution of them. timm exempts its weights from weight decay.
func (b layer) rowPlaces(name string, x, image *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	weight := b.AddParam(nn.Param{Name: name + ".weight", Shape: op.Shape{c, 1, 3, 3}, BiasOrNorm: true,
		Init: nn.HeNormal(1, 9)})
	y := b.image(name+".tokens", x, image)
	o := op.Conv2D{Stride: [2]int{1, 1}, Pad: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: c}
	y = b.Apply(name, o, y, weight, b.bias(name, c))
	return b.Add(name+".add", b.rows(name, y), x)
}

// block adds to the rows x of images attention, in windows or to smaller images, then a perceptron.
func (o Twins) block(b layer, name string, x, image *G.Node, stage, block int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s, c, heads := image.Shape(), o.Channels[stage], o.Heads[stage]
	y := b.LayerNorm(name+".norm1", x, rowEps)
	if o.Window > 0 && block%2 == 0 {
		y = b.rowWindows(name+".attn", y, nn.Windows{Height: s[2], Width: s[3], Rows: o.Window, Columns: o.Window}, heads)
	} else {
		y = b.reducedAttention(name+".attn", y, image, heads, pvtReductions[stage])
	}
	x = b.rowResidual(name+".drop_path1", y, x, s[0], drop)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, rowEps), o.MLPRatios[stage]*c)
	return b.rowResidual(name+".drop_path2", y, x, s[0], drop)
}

// rowWindows is attention of the rows x of images in windows, without biases of scores.
func (b layer) rowWindows(name string, x *G.Node, w nn.Windows, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	x = b.Linear(name+".qkv", b.Windows(name+".windows", x, w), 3*c)
	if b.Err() != nil {
		return nil
	}
	x = b.selfAttention(name+".attention", x, x.Shape()[0]/(w.Rows*w.Columns), nn.Attention{Heads: heads})
	return b.Linear(name+".proj", b.FromWindows(name+".images", x, w), c)
}
