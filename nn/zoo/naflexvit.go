package zoo

import (
	G "gorgonia.org/gorgonia"

	"onlinerna/internal/resize"
	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	gap, radio := NaFlex{Grid: 16}, NaFlex{Grid: 128, Linear: true, NoAntialias: true}
	corners, factorized, siglip := radio, gap, gap
	corners.Corners, factorized.Factorized, siglip.Linear = true, true, true
	mean := vitBase
	mean.LayerScale, mean.Registers, mean.Mean, mean.NormMean = 1e-5, 4, true, true
	for _, v := range []struct {
		name, words string
		net         ViT
		places      NaFlex
	}{
		{"base_patch16_gap", "base, by the mean of its patches", mean, gap},
		{"base_patch16_parfac_gap", "base, places by row and by column, by the mean of its patches", mean, factorized},
		{"base_patch16_siglip", "SigLIP 2's image tower, base", vitBase, siglip},
		{"so400m_patch16_siglip", "SigLIP 2's image tower, so400m", vitSO400M, siglip},
		{"base_patch16_radio_v3", "C-RADIOv3, base", radios(vitBase, 7, 1e-5), corners},
		{"large_patch16_radio_v3", "C-RADIOv3, large", radios(vitLarge, 7, 1e-5), radio},
		{"huge_patch16_radio_v3", "C-RADIOv3, huge", radios(vitHuge, 7, 0), corners},
		{"giant_patch16_radio_v3", "C-RADIOv3, giant", radios(ViT{Width: 1536, Heads: 24, Depth: 40}, 7, 0), radio},
		{"so400m_patch16_radio_v4", "C-RADIOv4, so400m", radios(vitSO400M, 9, 0), radio},
		{"huge_patch16_radio_v4", "C-RADIOv4, huge", radios(vitHuge, 9, 0), radio},
	} {
		v.net.Patch, v.net.NaFlex = 16, &v.places
		a := nn.Architecture{Name: "naflexvit_" + v.name, Summary: "NaFlex vision transformer, " + v.words,
			Reference: "Tschannen et al., SigLIP 2: multilingual vision-language encoders, 2025", Size: 384, Mean: half,
			Std: half}
		switch {
		case v.places.Grid > 16:
			a.Size, a.Mean, a.Std = 512, clipMean, clipStd
			a.Reference = "Ranzinger et al., AM-RADIO: agglomerative vision foundation model, 2024"
		case v.places.Linear:
			v.net.GELUTanh, v.net.AttentionPool = true, true
		}
		v.net.timm(a)
	}
	// It differs for images that are not square.
	nn.Alias("naflexvit_base_patch16_par_gap", "naflexvit_base_patch16_gap")
}

// radios is a net of RADIO.
func radios(v ViT, registers int, scale float64) ViT {
	v.Registers, v.LayerScale, v.NoNorm = registers, scale, true
	return v
}

// NaFlex are the options of timm's NaFlexVit that ViT lacks: a grid of places, which is resized to that of an image's
// patches.
type NaFlex struct {
	Grid        int  // height and width of the grid of places; timm's pos_embed_grid_size
	Factorized  bool // places are sums of those of rows and of columns, resized linearly: timm's pos_embed="factorized"
	Linear      bool // the grid is resized linearly, else by cubic polynomials: timm's pos_embed_interp_mode="bilinear"
	NoAntialias bool // timm's pos_embed_antialias=False
	Corners     bool // places in the corners stay there: timm's pos_embed_align_corners
}

var naFlexNames = func() vitNames {
	of := timmNames
	for _, name := range []*string{&of.class, &of.registers, &of.place, &of.dropPlaces} {
		*name = "embeds." + *name
	}
	of.patches = "embeds.proj"
	return of
}()

// build adds the places of height×width patches: [1,height·width,width of a token].
func (f NaFlex) build(b layer, height, width, c int) *G.Node {
	by := resize.Line{Cubic: !f.Linear, Antialias: !f.NoAntialias, Corners: f.Corners}
	name := naFlexNames.place
	if !f.Factorized {
		grid := b.AddParam(nn.Param{Name: name, Shape: op.Shape{f.Grid * f.Grid, c}, Stored: op.Shape{1, f.Grid, f.Grid, c},
			BiasOrNorm: true, Init: nn.Init{Distribution: nn.Normal, Scale: .02}})
		return b.resized(name, grid, f.Grid, height, width, by)
	}
	axis := func(name string, to int) *G.Node {
		x := b.AddParam(nn.Param{Name: name, Shape: op.Shape{f.Grid, c}, Stored: op.Shape{1, f.Grid, c},
			Init: nn.Init{Distribution: nn.Normal, Scale: .02}})
		return b.MatMul(name+".resized", b.Constant(name+".along", lineMatrix(resize.Line{}, f.Grid, to)), x, false)
	}
	down, across := axis(name+"_y", height), axis(name+"_x", width)
	y := b.Map(name, expr.Arg(0).Add(expr.Arg(1)), b.Reshape(name+".rows", down, height, 1, c),
		b.Reshape(name+".columns", across, 1, width, c))
	return b.Reshape(name+".all", y, 1, height*width, c)
}

// patches are an image's, as a matrix makes them of their pixels: [n,patches,width of a token].
func (f NaFlex) patches(b layer, x *G.Node, patch, width int) *G.Node {
	s := x.Shape()
	n, height, across := s[0], s[2]/patch, s[3]/patch
	x = b.Windows("embeds.pixels", b.rows("embeds", x), nn.Windows{Height: s[2], Width: s[3], Rows: patch, Columns: patch})
	x = b.Reshape("embeds.patches", x, n*height*across, patch*patch*s[1])
	return b.Reshape("patches", b.Linear(naFlexNames.patches, x, width), n, height*across, width)
}

// initial is the initial distribution of a parameter of v.
func (NaFlex) initial(v ViT, p nn.Param) nn.Init {
	switch p.Name {
	case naFlexNames.place, naFlexNames.place + "_y", naFlexNames.place + "_x":
		return p.Init
	case naFlexNames.patches + ".weight":
		return nn.Init{Distribution: nn.Normal, Scale: .02}
	case naFlexNames.patches + ".bias":
		return nn.Init{}
	}
	return deeper(p, v.own(p))
}
