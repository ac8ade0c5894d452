package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name   string
		resize int
		net    InceptionNeXt
	}{
		{"atto", 256, InceptionNeXt{Blocks: [4]int{2, 2, 6, 2}, Width: 40, Band: 9, Share: .25}},
		{"tiny", 256, InceptionNeXt{Blocks: [4]int{3, 3, 9, 3}, Width: 96, Band: 11, Share: .125}},
		{"small", 256, InceptionNeXt{Blocks: [4]int{3, 3, 27, 3}, Width: 96, Band: 11, Share: .125}},
		{"base", 235, InceptionNeXt{Blocks: [4]int{3, 3, 27, 3}, Width: 128, Band: 11, Share: .125}},
	} {
		imageNet(nn.Architecture{
			Name:          "inception_next_" + v.name,
			Family:        "inception_next",
			Summary:       "InceptionNeXt-" + v.name + ", as timm's",
			Reference:     "Yu et al., InceptionNeXt: when Inception meets ConvNeXt, 2024",
			MinSize:       32,
			Resize:        v.resize,
			Interpolation: bicubic,
			Block:         timmStage,
			Init:          convNeXtInitial,
			Build:         v.net.Build,
		})
	}
}

// InceptionNeXt are the options of a net with ConvNeXt's blocks, in which some channels have a depthwise convolution
// each: of 3×3, 1×Band or Band×1 pixels.
type InceptionNeXt struct {
	Blocks     [4]int  // of each stage; timm's depths
	Width      int     // channels of the first stage, which doubles from one to the next; timm's dims
	Band       int     // odd; timm's band_kernel_size
	Share      float64 // of the channels that each of the kinds has; timm's branch_ratio
	LayerScale float64 // the initial factor of a block's branch; 0 means 1e-6; timm's ls_init_value
}

// Build adds the layers to b.
func (o InceptionNeXt) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("InceptionNeXt", o).least(1, "Blocks", "Width", "Band").least(0, "Share", "LayerScale").
		that(o.Band%2 == 1 && o.Band < 1000, "Band", "odd and below 1000").
		that(o.Share*3 < 1 && int(float64(o.Width)*o.Share) > 0, "Share", "below a third, and at least 1/Width")
	if !b.atLeast(x, 32) {
		return nil
	}
	x = b.Conv("stem.0", x, nn.Conv{Filters: o.Width, Kernel: 4, Stride: 4, Bias: true})
	x = b.BatchNorm("stem.1", x, 1)
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		stage := fmt.Sprintf("stages.%d", i)
		if i > 0 {
			x = b.BatchNorm(stage+".downsample.0", x, 1)
			x = b.Conv(stage+".downsample.1", x, nn.Conv{Filters: o.Width << i, Kernel: 2, Stride: 2, Bias: true})
		}
		ratio := 4
		if i == 3 {
			ratio = 3
		}
		for j := range n {
			x = o.block(b, fmt.Sprintf("%s.blocks.%d", stage, j), x, ratio, b.Config().DropPathAt(done, all))
			done++
		}
	}
	x = b.Linear("head.fc1", b.GlobalAvgPool("head.global_pool", x), 3*o.Width<<3)
	x = b.LayerNorm("head.norm", b.GELU("head.act", x), rowEps)
	return b.Linear("head.fc2", b.Dropout("head.drop", x, b.Config().Dropout), b.Config().Classes)
}

// block adds to x its convolutions, followed by a perceptron of each pixel with ratio times as many channels.
func (o InceptionNeXt) block(b layer, name string, x *G.Node, ratio int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	gamma := b.vector(name+".gamma", c, cmp.Or(o.LayerScale, 1e-6))
	y := b.BatchNorm(name+".norm", o.mixer(b, name+".token_mixer", x), 1)
	y = b.GELU(name+".mlp.act", b.Conv(name+".mlp.fc1", y, nn.Conv{Filters: ratio * c, Kernel: 1, Bias: true}))
	y = b.Scale(name+".scaled", b.Conv(name+".mlp.fc2", y, nn.Conv{Filters: c, Kernel: 1, Bias: true}), gamma)
	return b.pathAdd(name, y, x, drop)
}

// mixer convolves the last channels, and leaves the first as they are.
func (o InceptionNeXt) mixer(b layer, name string, x *G.Node) *G.Node {
	c := x.Shape()[1]
	n := int(float64(c) * o.Share)
	all := []*G.Node{b.Slice(name+".same", x, 1, 0, c-3*n)}
	for i, v := range []struct {
		name          string
		height, width int
	}{{".dwconv_hw", 3, 3}, {".dwconv_w", 1, o.Band}, {".dwconv_h", o.Band, 1}} {
		part := b.Slice(name+v.name+".part", x, 1, c-(3-i)*n, c-(2-i)*n)
		conv := nn.Conv{Filters: n, Kernel: v.height, Width: v.width, Groups: n, Bias: true}
		all = append(all, b.conv(name+v.name, part, conv))
	}
	return b.Concat(name+".concat", 1, all...)
}
