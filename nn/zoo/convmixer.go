package zoo

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name, summary string
		net           ConvMixer
	}{
		{"768_32", "768/32", ConvMixer{Width: 768, Depth: 32, Kernel: 7, Patch: 7, ReLU: true}},
		{"1024_20_ks9_p14", "1024/20, patches of 14×14", ConvMixer{Width: 1024, Depth: 20, Kernel: 9, Patch: 14}},
		{"1536_20", "1536/20", ConvMixer{Width: 1536, Depth: 20, Kernel: 9, Patch: 7}},
	} {
		imageNet(nn.Architecture{
			Name:          "convmixer_" + v.name,
			Family:        "convmixer",
			Summary:       "ConvMixer-" + v.summary + ", with timm's names",
			Reference:     "Trockman, Kolter, Patches are all you need?, 2022",
			MinSize:       v.net.Patch,
			Resize:        233,
			Interpolation: bicubic,
			Block:         `^(stem|blocks\.\d+)\.`,
			Init:          torchInit,
			Build:         v.net.Build,
		})
	}
}

// ConvMixer are the options of a net of patches, whose blocks convolve each channel and then each pixel.
type ConvMixer struct {
	Width  int  // channels; timm's dim
	Depth  int  // blocks
	Kernel int  // height and width of the convolutions of channels, odd; timm's kernel_size
	Patch  int  // height and width of a patch; timm's patch_size
	ReLU   bool // activations, else GELU; timm's act_layer
}

// Build adds the layers to b.
func (o ConvMixer) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("ConvMixer", o).least(1, "Width", "Depth", "Kernel", "Patch").
		that(o.Kernel%2 == 1 && o.Kernel < 1000, "Kernel", "odd and below 1000")
	if !b.atLeast(x, o.Patch) {
		return nil
	}
	x = b.Conv("stem.0", x, nn.Conv{Filters: o.Width, Kernel: o.Patch, Stride: o.Patch, Bias: true})
	x = b.BatchNorm("stem.2", o.act(b, "stem.1", x), 1)
	for i := range o.Depth {
		name := fmt.Sprintf("blocks.%d", i)
		y := b.conv(name+".0.fn.0", x, nn.Conv{Filters: o.Width, Kernel: o.Kernel, Groups: o.Width, Bias: true})
		x = b.Add(name+".0", b.BatchNorm(name+".0.fn.2", o.act(b, name+".0.fn.1", y), 1), x)
		x = o.act(b, name+".2", b.Conv(name+".1", x, nn.Conv{Filters: o.Width, Kernel: 1, Bias: true}))
		x = b.BatchNorm(name+".3", x, 1)
	}
	return b.Linear("head", b.pooled("head_drop", x), b.Config().Classes)
}

// act is the activation.
func (o ConvMixer) act(b layer, name string, x *G.Node) *G.Node {
	if o.ReLU {
		return b.ReLU(name, x)
	}
	return b.GELU(name, x)
}
