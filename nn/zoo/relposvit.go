package zoo

import (
	"cmp"
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	// Factors of residual branches start as 1e-6.
	sized := func(v ViT, patch int) RelPosViT {
		v.Patch, v.Mean, v.LayerScale = patch, true, 1e-6
		return RelPosViT{ViT: v}
	}
	plus, plus32 := sized(vitPlus, 16), sized(vitPlus, 32)
	plus32.PostNorm = true
	small, medium, base := sized(vitSmall, 16), sized(vitMedium, 16), sized(vitBase, 16)
	for _, o := range []*RelPosViT{&small, &medium, &base} {
		o.NoQKVBias = true
	}
	normed := func(o RelPosViT) RelPosViT { o.NormMean = true; return o }
	shared := func(o RelPosViT) RelPosViT { o.Shared, o.BiasHidden = true, o.Width; return o }
	class := func(o RelPosViT) RelPosViT { o.Mean = false; return o }
	post := func(o RelPosViT) RelPosViT { o.PostNorm = true; return o }
	mediumClass := class(medium)
	mediumClass.BiasHidden = 256
	beside := normed(base)
	beside.ClassBeside = true
	for _, v := range []struct {
		name, summary string
		net           RelPosViT
	}{
		{"relpos_base_patch32_plus_rpn_256", "a wider base, normalised behind branches", plus32},
		{"relpos_base_patch16_plus_240", "a wider base", plus},
		{"relpos_small_patch16_224", "small", normed(small)},
		{"relpos_medium_patch16_224", "medium", normed(medium)},
		{"relpos_base_patch16_224", "base", normed(base)},
		{"srelpos_small_patch16_224", "small, the same for all blocks", shared(small)},
		{"srelpos_medium_patch16_224", "medium, the same for all blocks", shared(medium)},
		{"relpos_medium_patch16_cls_224", "medium, a class token", mediumClass},
		{"relpos_base_patch16_cls_224", "base, a class token", class(base)},
		{"relpos_base_patch16_clsgap_224", "base, a class token beside the mean", beside},
		{"relpos_small_patch16_rpn_224", "small, normalised behind branches", post(small)},
		{"relpos_medium_patch16_rpn_224", "medium, normalised behind branches", post(medium)},
		{"relpos_base_patch16_rpn_224", "base, normalised behind branches", post(base)},
	} {
		var size int
		fmt.Sscanf(v.name[len(v.name)-3:], "%d", &size)
		v.net.BiasDropout = .125
		a := v.net.vit().of(nn.Architecture{
			Name:    "vit_" + v.name,
			Family:  "vit",
			Summary: "vision transformer, biases of scores by offset, " + v.summary + ", with timm's names",
			Reference: "Dosovitskiy et al., An image is worth 16×16 words, 2021; Liu et al., Swin transformer V2: scaling up " +
				"capacity and resolution, 2022",
			Size:          size,
			MinSize:       v.net.Patch,
			Resize:        cropped(size, .9),
			Interpolation: bicubic,
			Mean:          half,
			Std:           half,
		})
		a.Init, a.Build = v.net.Initial, v.net.Build
		imageNet(a)
	}
}

// RelPosViT are the options of a vision transformer whose tokens know their places by biases of attention, which a net
// makes of the offsets between patches.
type RelPosViT struct {
	ViT

	// BiasHidden are the elements of that net's hidden layer; 0 means 128: timm's rel_pos_dim. BiasDropout is the
	// probability of dropping them in Train, 0.125 in timm.
	BiasHidden  int
	BiasDropout float64

	Shared bool // all blocks have the same biases: timm's shared_rel_pos
}

// vit are the options of the transformer.
func (o RelPosViT) vit() ViT {
	v := o.ViT
	v.NoPlaces, v.scores = true, o.scores
	return v
}

// Build adds the layers to b.
func (o RelPosViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	ok := (layer{builder}).options("RelPosViT", o).least(0, "BiasHidden").probability("BiasDropout").
		that(!o.Parallel && !o.Differential, "Parallel", "false, as Differential").
		that(o.Registers == 0, "Registers", "0").that(!o.AttentionPool, "AttentionPool", "false").ok()
	if !ok {
		return nil
	}
	return o.vit().Build(builder, x)
}

// scores makes the function that adds the biases of a block's attention, for images of height×width patches.
func (o RelPosViT) scores(b layer, height, width int) func(name string) *G.Node {
	w := window{Windows: nn.Windows{Height: height, Width: width, Rows: height, Columns: width}, heads: o.Heads}
	add := func(name string) *G.Node {
		if height*width > mostPatches {
			b.Fail(fmt.Errorf("images of %d×%d patches: there must be at most %d patches", height, width, mostPatches))
			return nil
		}
		x := b.logOffsets(name, w, cmp.Or(o.BiasHidden, 128), o.BiasDropout, false)
		if n := o.ViT.first(); n > 0 { // others have no places
			x = b.Pad(name+".others", x, []int{0, n, n}, []int{0, 0, 0})
		}
		return x
	}
	if !o.Shared {
		return func(name string) *G.Node { return add(name + ".rel_pos") }
	}
	shared := add("shared_rel_pos")
	return func(string) *G.Node { return shared }
}

// Initial is the initial distribution of a parameter, for Architecture.Init. Most start as PyTorch's.
func (o RelPosViT) Initial(p nn.Param) nn.Init {
	of := timmNames
	switch norm := strings.HasSuffix(p.Name, of.norm1+".weight") || strings.HasSuffix(p.Name, of.norm2+".weight"); {
	case p.Name == of.class || o.PostNorm && norm:
		return o.ViT.initial(p)
	case strings.HasSuffix(p.Name, of.qkvBias):
		return nn.FanInUniform(o.Width)
	}
	return torchInit(p)
}
