package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	deep := [4]int{2, 2, 18, 2}
	for _, v := range []struct {
		name string
		size int
		net  FocalNet
	}{
		{"tiny_srf", 224, FocalNet{Width: 96, Blocks: [4]int{2, 2, 6, 2}, Levels: 2}},
		{"tiny_lrf", 224, FocalNet{Width: 96, Blocks: [4]int{2, 2, 6, 2}, Levels: 3}},
		{"small_srf", 224, FocalNet{Width: 96, Blocks: deep, Levels: 2}},
		{"small_lrf", 224, FocalNet{Width: 96, Blocks: deep, Levels: 3}},
		{"base_srf", 224, FocalNet{Width: 128, Blocks: deep, Levels: 2}},
		{"base_lrf", 224, FocalNet{Width: 128, Blocks: deep, Levels: 3}},
		{"large_fl3", 384, FocalNet{Width: 192, Blocks: deep, Levels: 3, Window: 5, PostNorm: true}},
		{"large_fl4", 384, FocalNet{Width: 192, Blocks: deep, Levels: 4, PostNorm: true}},
		{"xlarge_fl3", 384, FocalNet{Width: 256, Blocks: deep, Levels: 3, Window: 5, PostNorm: true}},
		{"xlarge_fl4", 384, FocalNet{Width: 256, Blocks: deep, Levels: 4, PostNorm: true}},
		{"huge_fl3", 224, FocalNet{Width: 352, Blocks: deep, Levels: 3, PostNorm: true, NormModulation: true}},
		{"huge_fl4", 224, FocalNet{Width: 352, Blocks: deep, Levels: 4, PostNorm: true, NormModulation: true}},
	} {
		if v.net.PostNorm {
			v.net.LayerScale = 1e-4
		}
		a := nn.Architecture{
			Name:          "focalnet_" + v.name,
			Family:        "focalnet",
			Summary:       "FocalNet, " + v.name + ", with timm's names",
			Reference:     "Yang et al., Focal modulation networks, 2022",
			Size:          v.size,
			MinSize:       32,
			DropPath:      .1,
			Resize:        248,
			Interpolation: bicubic,
			Block:         `^(layers\.\d\.blocks\.\d+)\.`,
			Init:          convNeXtInitial,
			Build:         v.net.Build,
		}
		if v.size == 384 {
			a.Resize = v.size
		}
		imageNet(a)
	}
}

// FocalNet are the options of a net whose blocks multiply pixels by gated sums of convolutions of growing windows.
type FocalNet struct {
	Width  int    // channels of the first stage; they double from one to the next; timm's embed_dim
	Blocks [4]int // of each stage; timm's depths
	Levels int    // convolutions of a block; timm's focal_levels
	Window int    // height and width of the first of them; each is 2 larger than the one before; 0 means 3; focal_windows

	// PostNorm normalises the results of branches instead of their inputs, and convolutions between stages overlap: timm's
	// use_post_norm with use_overlap_down.
	PostNorm       bool
	NormModulation bool    // pixels are normalised behind the product; timm's use_post_norm_in_modulation
	LayerScale     float64 // initial factor of each channel of a branch; 0: none; timm's layerscale_value
}

// focalEps is added to the variances of layer normalisations.
const focalEps = 1e-5

// Build adds the layers to b.
func (o FocalNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o.Window = cmp.Or(o.Window, 3)
	b.options("FocalNet", o).least(1, "Width", "Blocks", "Levels", "Window").least(0, "LayerScale").
		that(o.Levels <= 64, "Levels", "at most 64").that(o.Window%2 == 1 && o.Window < 128, "Window", "odd and below 128")
	if !b.atLeast(x, 32) {
		return nil
	}
	x = o.down(b, "stem", x, nn.Conv{Filters: o.Width, Kernel: 4, Stride: 4})
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		stage := fmt.Sprintf("layers.%d", i)
		if i > 0 {
			x = o.down(b, stage+".downsample", x, nn.Conv{Filters: o.Width << i, Kernel: 2, Stride: 2})
		}
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			name := fmt.Sprintf("%s.blocks.%d", stage, j)
			x = o.branch(b, name, "1", x, drop, func(x *G.Node) *G.Node { return o.modulate(b, name+".modulation", x) })
			x = o.branch(b, name, "2", x, drop, func(x *G.Node) *G.Node {
				return b.pointPerceptron(name+".mlp", x, 4*o.Width<<i)
			})
			done++
		}
	}
	return b.byobHead(b.pixelNormBy("norm", x, focalEps))
}

// down is a convolution with a stride, which overlaps with PostNorm, and a normalisation.
func (o FocalNet) down(b layer, name string, x *G.Node, c nn.Conv) *G.Node {
	c.Bias = true
	switch {
	case o.PostNorm && c.Stride == 4:
		c.Kernel, c.Pad = 7, 2
	case o.PostNorm:
		c.Kernel, c.Pad = 3, 1
	}
	return b.pixelNormBy(name+".norm", b.Conv(name+".proj", x, c), focalEps)
}

// branch adds to images x the first or the second branch f of a block.
func (o FocalNet) branch(b layer, name, number string, x *G.Node, drop float64, f func(*G.Node) *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	y := x
	if !o.PostNorm {
		y = b.pixelNormBy(name+".norm"+number, y, focalEps)
	}
	y = f(y)
	if o.PostNorm {
		y = b.pixelNormBy(name+".norm"+number+"_post", y, focalEps)
	}
	if o.LayerScale > 0 {
		y = b.Scale(name+".ls"+number, y, b.vector(name+".ls"+number+".gamma", x.Shape()[1], o.LayerScale))
	}
	return b.Add(name+".add"+number, b.StochasticDepth(name+".drop_path"+number, y, drop), x)
}

// modulate multiplies pixels by their surroundings: the sum of convolved images, each of the one before, and of their
// mean, times gates.
func (o FocalNet) modulate(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	all := b.Conv(name+".f", x, nn.Conv{Filters: 2*c + o.Levels + 1, Kernel: 1, Bias: true})
	point := nn.Conv{Filters: c, Kernel: 1, Bias: true}
	toH, proj := b.convLater(name+".h", c, point), b.convLater(name+".proj", c, point)
	part := func(part string, from, to int) *G.Node { return b.Slice(name+part, all, 1, from, to) }
	gate := func(k int) *G.Node { return part(fmt.Sprintf(".gates.%d", k), 2*c+k, 2*c+k+1) }
	x0, x1, x2 := expr.Arg(0), expr.Arg(1), expr.Arg(2)
	context, total := part(".context", c, 2*c), (*G.Node)(nil)
	for k := range o.Levels {
		layer := fmt.Sprintf("%s.focal_layers.%d", name, k)
		context = b.conv(layer+".0", context, nn.Conv{Filters: c, Kernel: o.Window + 2*k, Groups: c})
		context = b.GELU(layer+".1", context)
		if k == 0 {
			total = b.Map(layer+".gated", x0.Mul(x1), context, gate(k))
		} else {
			total = b.Map(layer+".gated", x0.Mul(x1).Add(x2), context, gate(k), total)
		}
	}
	mean := b.GELU(name+".act", b.pixel(name+".mean", context))
	total = b.Map(name+".gated", x0.Mul(x1).Add(x2), mean, gate(o.Levels), total)
	y := toH(total)
	y = b.Scale(name+".product", y, part(".queries", 0, c))
	if o.NormModulation {
		y = b.pixelNormBy(name+".norm", y, focalEps)
	}
	return proj(y)
}
