package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	fifty, hundred, most := [4]int{3, 4, 6, 3}, [4]int{3, 4, 23, 3}, [4]int{3, 8, 36, 3}
	for _, v := range []struct {
		name, summary, interpolation string
		net                          SENet
	}{
		{"seresnet18", "SE-ResNet-18", bicubic, SENet{Blocks: [4]int{2, 2, 2, 2}, Kind: "basic"}},
		{"seresnet34", "SE-ResNet-34", "", SENet{Blocks: fifty, Kind: "basic"}},
		{"seresnet50", "SE-ResNet-50", "", SENet{Blocks: fifty, Kind: "resnet"}},
		{"seresnet101", "SE-ResNet-101", "", SENet{Blocks: hundred, Kind: "resnet"}},
		{"seresnet152", "SE-ResNet-152", "", SENet{Blocks: most, Kind: "resnet"}},
		{"seresnext26_32x4d", "SE-ResNeXt-26 32×4d", bicubic, SENet{Blocks: [4]int{2, 2, 2, 2}, Kind: "resnext", Groups: 32}},
		{"seresnext50_32x4d", "SE-ResNeXt-50 32×4d", "", SENet{Blocks: fifty, Kind: "resnext", Groups: 32}},
		{"seresnext101_32x4d", "SE-ResNeXt-101 32×4d", "", SENet{Blocks: hundred, Kind: "resnext", Groups: 32}},
		{"senet154", "SENet-154", "", SENet{Blocks: most, Kind: "senet", Groups: 64}},
	} {
		imageNet(nn.Architecture{
			Name:          "legacy_" + v.name,
			Family:        "resnet",
			Summary:       v.summary + ", as its authors' and timm's",
			Reference:     "Hu, Shen, Sun, Squeeze-and-excitation networks, 2018",
			Resize:        256,
			Interpolation: v.interpolation,
			Dropout:       .2,
			Build:         v.net.Build,
		})
	}
}

// SENet are the options of the residual nets with squeeze-and-excitation of their first publication.
type SENet struct {
	Blocks [4]int // of the stages; timm's layers
	// Kind is that of the blocks: "basic", of two 3×3 convolutions; "resnet", bottlenecks whose first convolution has the
	// stride; "resnext", bottlenecks of Groups·Width/16 channels; "senet", whose 3×3 convolution doubles the channels, and
	// which have 3×3 convolutions in the stem and in shortcuts.
	Kind   string
	Groups int // of the 3×3 convolutions of bottlenecks; 0 means 1
	Width  int // channels of the first stage, before an expansion; 0 means 64
}

// Build adds the layers to b.
func (o SENet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	check := b.options("SENet", o).least(1, "Blocks").least(0, "Groups", "Width").
		that(o.Kind == "basic" || o.Kind == "resnet" || o.Kind == "resnext" || o.Kind == "senet", "Kind",
			`"basic", "resnet", "resnext" or "senet"`).
		that(o.Kind != "basic" || o.Groups == 0, "Groups", `0 with Kind "basic"`)
	if !check.ok() || !b.atLeast(x, 8) {
		return nil
	}
	width := cmp.Or(o.Width, 64)
	if o.Kind == "senet" {
		x = b.numbered("layer0", "1", x, nn.Conv{Filters: width, Kernel: 3, Stride: 2})
		x = b.numbered("layer0", "2", x, nn.Conv{Filters: width, Kernel: 3})
		x = b.numbered("layer0", "3", x, nn.Conv{Filters: 2 * width, Kernel: 3})
	} else {
		x = b.numbered("layer0", "1", x, nn.Conv{Filters: width, Kernel: 7, Stride: 2})
	}
	x = b.poolUp("pool0", x, 3)
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		for j := range n {
			stride := 1
			if i > 0 && j == 0 {
				stride = 2
			}
			x = o.block(b, fmt.Sprintf("layer%d.%d", i+1, j), x, width<<i, stride, b.Config().DropPathAt(done, all))
			done++
		}
	}
	return b.Linear("last_linear", b.pooled("dropout", x), b.Config().Classes)
}

// numbered adds the convolution, the batch normalisation and the ReLU of a number.
func (b layer) numbered(name, number string, x *G.Node, c nn.Conv) *G.Node {
	return b.ReLU(name+".relu"+number, b.plainNumbered(name, number, x, c))
}

// plainNumbered is numbered without the ReLU.
func (b layer) plainNumbered(name, number string, x *G.Node, c nn.Conv) *G.Node {
	return b.convNorm([2]string{name + ".conv" + number, name + ".bn" + number}, x, c, nil)
}

// block is a residual block with squeeze-and-excitation.
func (o SENet) block(b layer, name string, x *G.Node, width, stride int, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	channels, groups := 4*width, max(o.Groups, 1)
	var y *G.Node
	switch o.Kind {
	case "basic":
		channels = width
		y = b.numbered(name, "1", x, nn.Conv{Filters: width, Kernel: 3, Stride: stride})
		y = b.numbered(name, "2", y, nn.Conv{Filters: width, Kernel: 3})
	case "resnet":
		y = b.numbered(name, "1", x, nn.Conv{Filters: width, Kernel: 1, Stride: stride})
		y = b.numbered(name, "2", y, nn.Conv{Filters: width, Kernel: 3, Groups: groups})
	case "resnext":
		inner := width / 16 * groups
		y = b.numbered(name, "1", x, nn.Conv{Filters: inner, Kernel: 1})
		y = b.numbered(name, "2", y, nn.Conv{Filters: inner, Kernel: 3, Stride: stride, Groups: groups})
	default:
		y = b.numbered(name, "1", x, nn.Conv{Filters: 2 * width, Kernel: 1})
		y = b.numbered(name, "2", y, nn.Conv{Filters: channels, Kernel: 3, Stride: stride, Groups: groups})
	}
	if o.Kind != "basic" {
		y = b.plainNumbered(name, "3", y, nn.Conv{Filters: channels, Kernel: 1})
	}
	y = b.SqueezeExcite(name+".se_module", y, channels/16, (*nn.Builder).ReLU, (*nn.Builder).Sigmoid)
	if stride > 1 || x.Shape()[1] != channels {
		c := nn.Conv{Filters: channels, Kernel: 1, Stride: stride}
		if o.Kind == "senet" && stride > 1 {
			c.Kernel = 3
		}
		x = b.convNorm([2]string{name + ".downsample.0", name + ".downsample.1"}, x, c, nil)
	}
	return b.ReLU(name+".relu", b.residual(name, y, x, drop))
}
