package zoo

import (
	"cmp"
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	short := []XceptionStage{{128, 2}, {256, 2}, {728, 2}}
	long := []XceptionStage{{128, 2}, {256, 1}, {256, 2}, {728, 1}, {728, 2}}
	for _, v := range []struct {
		name   string
		resize int
		eps    float64
		net    XceptionAligned
	}{
		{"41", 331, 1e-3, XceptionAligned{Entry: short, Middle: 8}},
		{"65", 318, 1e-3, XceptionAligned{Entry: short, Middle: 16}},
		{"71", 331, 1e-3, XceptionAligned{Entry: long, Middle: 16}},
		{"41p", 318, 0, XceptionAligned{Entry: short, Middle: 8, PreAct: true}},
		{"65p", 318, 1e-3, XceptionAligned{Entry: short, Middle: 16, PreAct: true}},
	} {
		a := nn.Architecture{
			Name:          "xception" + v.name,
			Family:        "inception",
			Summary:       "aligned Xception-" + v.name + ", as timm's",
			Reference:     deepLabReference,
			Size:          299,
			Resize:        v.resize,
			Interpolation: bicubic,
			Mean:          half,
			Std:           half,
			BatchNormEps:  v.eps,
			Block:         `^(stem|blocks\.\d+)\.`,
			Init:          torchInit,
			Build:         v.net.Build,
		}
		if v.net.PreAct {
			a.Summary = strings.Replace(a.Summary, "p,", " with normalisation before convolutions,", 1)
		}
		imageNet(a)
	}
}

const deepLabReference = "Chen et al., Encoder-decoder with atrous separable convolution for semantic image " +
	"segmentation, 2018"

// XceptionAligned are the options of a net of depthwise convolutions, each followed by one of 1×1, in blocks of three.
type XceptionAligned struct {
	Entry  []XceptionStage // the first blocks
	Middle int             // blocks that keep the shape
	PreAct bool            // normalisations go before convolutions; timm's preact
	Narrow int             // divides all channels; 0 means 1
}

// XceptionStage is a block's channels and its stride.
type XceptionStage struct{ Out, Stride int }

// blocks are all: channels of their convolutions, and stride.
func (o XceptionAligned) blocks() (list []alignedBlock) {
	last := 0
	for _, s := range o.Entry {
		last = s.Out
		list = append(list, alignedBlock{[3]int{last, last, last}, s.Stride})
	}
	for range o.Middle {
		list = append(list, alignedBlock{[3]int{last, last, last}, 1})
	}
	return append(list, alignedBlock{[3]int{last, 1024, 1024}, 2}, alignedBlock{[3]int{1536, 1536, 2048}, 1})
}

// alignedBlock are the options of a block of three convolutions.
type alignedBlock struct {
	out    [3]int
	stride int // of the last convolution
}

// Build adds the layers to b.
func (o XceptionAligned) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b, narrow := layer{builder}, cmp.Or(o.Narrow, 1)
	b.options("XceptionAligned", o).least(1, "Middle").least(0, "Narrow").that(o.Narrow <= 32, "Narrow", "at most 32").
		that(len(o.Entry) > 0, "Entry", "at least one")
	for i, s := range o.Entry {
		b.options(fmt.Sprintf("XceptionAligned.Entry[%d]", i), s).least(1, "Out", "Stride").
			that(s.Out >= narrow, "Out", "at least Narrow")
	}
	if b.Err() != nil {
		return nil
	}
	relu := nn.Activation((*nn.Builder).ReLU)
	x = b.bnConv("stem.0", x, nn.Conv{Filters: 32 / narrow, Kernel: 3, Stride: 2}, relu)
	if second := (nn.Conv{Filters: 64 / narrow, Kernel: 3}); o.PreAct {
		x = b.conv("stem.1", x, second)
	} else {
		x = b.bnConv("stem.1", x, second, relu)
	}
	blocks := o.blocks()
	for i, s := range blocks {
		name, last := fmt.Sprintf("blocks.%d", i), i == len(blocks)-1
		for k := range s.out {
			s.out[k] /= narrow
		}
		y, skip := o.block(b, name, x, s, last)
		if !last {
			drop := b.Config().DropPath * float64(i) / float64(len(blocks)-1)
			y = b.pathAdd(name, y, skip, drop)
		}
		x = y
	}
	if o.PreAct {
		x = b.ReLU("act", x)
	}
	return b.byobHead(x)
}

// block returns a block's result and its shortcut, to which it is added. The last block has no shortcut.
func (o XceptionAligned) block(b layer, name string, x *G.Node, s alignedBlock, last bool) (y, skip *G.Node) {
	if b.Err() != nil {
		return nil, nil
	}
	in := x.Shape()[1]
	differs := !last && (s.stride > 1 || in != s.out[2])
	shortcut := nn.Conv{Filters: s.out[2], Kernel: 1, Stride: s.stride}
	if !o.PreAct {
		if skip = x; differs {
			skip = b.bnConv(name+".shortcut", x, shortcut, nil)
		}
		for k, out := range s.out {
			x = o.separable(b, fmt.Sprintf("%s.stack.conv%d", name, k+1), x, out, s.strideAt(k), last)
		}
		return x, skip
	}
	shorten := func(x *G.Node) *G.Node { return x }
	if differs { // its parameters are before the normalisation's
		shorten = b.ConvLater(name+".shortcut", in, shortcut)
	}
	x = b.ReLU(name+".norm.act", b.BatchNorm(name+".norm", x, 1))
	skip = shorten(x)
	for k, out := range s.out {
		conv := fmt.Sprintf("%s.stack.conv%d", name, k+1)
		if k > 0 {
			x = b.ReLU(conv+".norm.act", b.BatchNorm(conv+".norm", x, 1))
		}
		x = b.conv(conv+".conv_dw", x, nn.Conv{Filters: in, Kernel: 3, Stride: s.strideAt(k), Groups: in})
		x = b.conv(conv+".conv_pw", x, nn.Conv{Filters: out, Kernel: 1})
		in = out
	}
	return x, skip
}

// strideAt is the stride of convolution k.
func (s alignedBlock) strideAt(k int) int {
	if k == len(s.out)-1 {
		return s.stride
	}
	return 1
}

// separable is a depthwise convolution and one of 1×1. ReLUs go behind them, or one before both.
func (o XceptionAligned) separable(b layer, name string, x *G.Node, out, stride int, behind bool) *G.Node {
	var act nn.Activation
	if behind {
		act = (*nn.Builder).ReLU
	} else {
		x = b.ReLU(name+".act", x)
	}
	if b.Err() != nil {
		return nil
	}
	in := x.Shape()[1]
	depthwise := nn.Conv{Filters: in, Kernel: 3, Stride: stride, Groups: in}
	x = b.convNorm([2]string{name + ".conv_dw", name + ".bn_dw"}, x, depthwise, act)
	return b.convNorm([2]string{name + ".conv_pw", name + ".bn_pw"}, x, nn.Conv{Filters: out, Kernel: 1}, act)
}
