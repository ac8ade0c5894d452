package zoo

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	small, base := [4]int{96, 192, 384, 576}, [4]int{128, 256, 512, 768}
	for _, v := range []struct {
		name, summary string
		resize        int
		net           MambaOut
	}{
		{"femto", "femto", 224, MambaOut{Blocks: [4]int{3, 3, 9, 3}, Channels: [4]int{48, 96, 192, 288}}},
		{"kobe", "Kobe, of 24 blocks", 224, MambaOut{Blocks: [4]int{3, 3, 15, 3}, Channels: [4]int{48, 96, 192, 288}}},
		{"tiny", "tiny", 224, MambaOut{Blocks: [4]int{3, 3, 9, 3}, Channels: small}},
		{"small", "small", 224, MambaOut{Blocks: [4]int{3, 4, 27, 3}, Channels: small}},
		{"base", "base", 224, MambaOut{Blocks: [4]int{3, 4, 27, 3}, Channels: base}},
		{"small_rw", "small, timm's own", 224, MambaOut{Blocks: [4]int{3, 4, 27, 3}, Channels: small, RW: true}},
		{"base_short_rw", "base, of fewer and wider blocks", 235,
			MambaOut{Blocks: [4]int{3, 3, 25, 3}, Channels: base, RW: true, Expansion: 3, Share: 1.25}},
		{"base_tall_rw", "base, of more and narrower blocks", 235,
			MambaOut{Blocks: [4]int{3, 4, 30, 3}, Channels: base, RW: true, Expansion: 2.5, Share: 1.25}},
		{"base_wide_rw", "base, of wider blocks", 235,
			MambaOut{Blocks: [4]int{3, 4, 27, 3}, Channels: base, RW: true, Expansion: 3, Share: 1.5, SiLU: true}},
		{"base_plus_rw", "base, of more and wider blocks", 224,
			MambaOut{Blocks: [4]int{3, 4, 30, 3}, Channels: base, RW: true, Expansion: 3, Share: 1.5, SiLU: true}},
	} {
		imageNet(nn.Architecture{
			Name:          "mambaout_" + v.name,
			Family:        "mambaout",
			Summary:       "MambaOut, " + v.summary + ", with timm's names",
			Reference:     "Yu, Wang, MambaOut: do we really need Mamba for vision?, 2025",
			MinSize:       32,
			Resize:        v.resize,
			Interpolation: bicubic,
			Block:         timmStage,
			Init:          convNeXtInitial,
			Build:         v.net.Build,
		})
	}
}

// MambaOut are the options of a net whose blocks gate the channels of pixels, of which some are convolved.
type MambaOut struct {
	Blocks   [4]int // of each stage; timm's depths
	Channels [4]int // timm's dims

	Expansion float64 // channels within blocks by those around; 0 means 8/3; timm's expansion_ratio
	Share     float64 // convolved channels by those around blocks; 0 means 1; timm's conv_ratio
	SiLU      bool    // in the stem and gates, else GELU; timm's act_layer

	// RW leaves out the normalisation within the stem, normalises before the convolutions between stages in place of
	// behind them, has trained factors for each channel of a branch, and leaves out the last normalisation: timm's
	// stem_mid_norm=False, downsample "conv_nf", ls_init_value and head_fn "norm_mlp".
	RW bool
}

// mambaOutScale is the initial factor of a branch: timm has no other, as it only asks whether ls_init_value is set.
const mambaOutScale = 1e-5

// Build adds the layers to b.
func (o MambaOut) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o.Expansion, o.Share = cmp.Or(o.Expansion, 8./3), cmp.Or(o.Share, 1)
	b.options("MambaOut", o).least(1, "Blocks", "Channels", "Expansion").least(0, "Share").
		that(o.Channels[0] > 1, "Channels", "at least 2 in the first stage")
	for _, c := range o.Channels {
		convolved := int(float64(c) * o.Share)
		b.options("MambaOut", o).that(convolved > 0, "Share", "at least 1/Channels").
			that(convolved < int(float64(c)*o.Expansion), "Share", "below Expansion, by a channel at least")
	}
	if !b.atLeast(x, 32) {
		return nil
	}
	half := nn.Conv{Kernel: 3, Stride: 2, Pad: 1, Bias: true}
	stride := func(name string, x *G.Node, channels int) *G.Node {
		half.Filters = channels
		return b.Conv(name, x, half)
	}
	x = stride("stem.conv1", x, o.Channels[0]/2)
	if !o.RW {
		x = b.pixelNorm("stem.norm1", x)
	}
	x = b.pixelNorm("stem.norm2", stride("stem.conv2", o.act(b, "stem.act", x), o.Channels[0]))
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		name := fmt.Sprintf("stages.%d", i)
		switch {
		case i == 0:
		case o.RW:
			x = stride(name+".downsample.conv", b.pixelNorm(name+".downsample.norm", x), o.Channels[i])
		default:
			x = b.pixelNorm(name+".downsample.norm", stride(name+".downsample.conv", x, o.Channels[i]))
		}
		rows := b.rows(name, x)
		for j := range n {
			rows = o.block(b, fmt.Sprintf("%s.blocks.%d", name, j), rows, x, b.Config().DropPathAt(done, all))
			done++
		}
		x = b.image(name, rows, x)
	}
	x = b.LayerNorm("head.norm", b.GlobalAvgPool("head.global_pool", x), rowEps)
	x = b.GELU("head.pre_logits.act", b.Linear("head.pre_logits.fc", x, 4*o.Channels[3]))
	drop := "head.drop"
	if !o.RW {
		drop, x = "head.head_dropout", b.LayerNorm("head.pre_logits.norm", x, rowEps)
	}
	return b.Linear("head.fc", b.Dropout(drop, x, b.Config().Dropout), b.Config().Classes)
}

// block adds to the rows x of images, which are as large as like, gated channels. drop is the probability of dropping
// them in Train.
func (o MambaOut) block(b layer, name string, x, like *G.Node, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c := x.Shape()[1]
	wide, convolved := int(o.Expansion*float64(c)), int(o.Share*float64(c))
	y := b.LayerNorm(name+".norm", x, rowEps)
	weight, bias := b.matrix(name+".fc1", 2*wide, c), b.bias(name+".fc1", 2*wide)
	part := func(part string, from, to int) *G.Node {
		return b.linearPart(name+part, y, from, to, weight, bias)
	}
	kept, moved := part(".kept", wide, 2*wide-convolved), part(".moved", 2*wide-convolved, 2*wide)
	moved = b.conv(name+".conv", b.image(name+".conv", moved, like),
		nn.Conv{Filters: convolved, Kernel: 7, Groups: convolved, Bias: true})
	gate := o.act(b, name+".act", part(".gate", 0, wide))
	y = b.Scale(name+".gated", gate, b.Concat(name+".concat", 1, kept, b.rows(name+".conv", moved)))
	y = b.Linear(name+".fc2", y, c)
	if o.RW {
		y = b.gammas(name+".ls", y, mambaOutScale)
	}
	return b.rowResidual(name+".drop_path", y, x, like.Shape()[0], drop)
}

// act is the activation of the stem and of gates.
func (o MambaOut) act(b layer, name string, x *G.Node) *G.Node {
	if o.SiLU {
		return b.SiLU(name, x)
	}
	return b.GELU(name, x)
}
