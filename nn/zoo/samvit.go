package zoo

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op/expr"
)

func init() {
	base := SAMViT{Patch: 16, Width: 768, Heads: 12, Global: []int{2, 5, 8, 11}, Neck: 256}
	small := base
	small.Neck, small.NoPlaces = 0, true
	for _, v := range []struct {
		name string
		size int
		part float64
		net  SAMViT
	}{
		{"base_patch16", 1024, 1, base},
		{"large_patch16", 1024, 1,
			SAMViT{Patch: 16, Width: 1024, Heads: 16, Depth: 24, Global: []int{5, 11, 17, 23}, Neck: 256}},
		{"huge_patch16", 1024, 1,
			SAMViT{Patch: 16, Width: 1280, Heads: 16, Depth: 32, Global: []int{7, 15, 23, 31}, Neck: 256}},
		{"base_patch16_224", 224, .9, small},
	} {
		imageNet(nn.Architecture{
			Name:          "samvit_" + v.name,
			Family:        "samvit",
			Summary:       "Segment Anything's image tower, " + v.name + ", with timm's names",
			Reference:     "Kirillov et al., Segment anything, 2023",
			Size:          v.size,
			MinSize:       16,
			Resize:        cropped(v.size, v.part),
			Interpolation: bicubic,
			Init:          torchInit,
			Build:         v.net.Build,
		})
	}
}

// SAMViT are the options of a vision transformer most of whose blocks attend in windows. The head takes the mean of the
// patches. Weights fit images of one size.
type SAMViT struct {
	Patch    int   // height and width of a patch, which divide those of the image; timm's patch_size
	Width    int   // elements of a token, divided equally among the heads; timm's embed_dim
	Heads    int   // timm's num_heads
	Depth    int   // blocks; 0 means 12; timm's depth
	Window   int   // height and width of a window; 0 means 14; timm's window_size
	Global   []int // blocks that attend in the whole image; timm's global_attn_indexes
	Neck     int   // channels of two convolutions behind the last block; 0: a normalisation alone; timm's neck_chans
	NoPlaces bool  // patches have no trained places: timm's use_abs_pos=False
}

// samEps is added to the variances of layer normalisations, but for those of the neck.
const samEps = 1e-5

// Build adds the layers to b.
func (o SAMViT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o.Depth, o.Window = cmp.Or(o.Depth, 12), cmp.Or(o.Window, 14)
	b.options("SAMViT", o).least(1, "Patch", "Width", "Heads", "Window").least(0, "Depth", "Neck").
		multiple("Width", "Heads").that(o.Window <= 128, "Window", "at most 128")
	if !b.multipleOf(x, o.Patch) {
		return nil
	}
	s := x.Shape()
	n, side := s[0], s[2]/o.Patch
	if s[2] != s[3] || side*side > mostPatches {
		b.Fail(fmt.Errorf("images of %d×%d pixels: height and width must be equal, of at most %d patches", s[2], s[3],
			mostPatches))
		return nil
	}
	var place *G.Node
	if !o.NoPlaces {
		place = b.tokenPlaces(side, side, o.Width, 0)
	}
	image := b.Conv("patch_embed.proj", x, nn.Conv{Filters: o.Width, Kernel: o.Patch, Stride: o.Patch, Bias: true})
	x = b.rows("patch_embed", image)
	if place != nil {
		x = b.Map("places", expr.Arg(0).Add(expr.Arg(1)), b.Reshape("by_image", x, n, side*side, o.Width), place)
		x = b.Reshape("rows", x, n*side*side, o.Width)
	}
	for i := range o.Depth {
		w := nn.Windows{Height: side, Width: side, Rows: o.Window, Columns: o.Window}
		if slices.Contains(o.Global, i) {
			w.Rows, w.Columns = side, side
		}
		x = o.block(b, fmt.Sprintf("blocks.%d", i), x, n, w, b.Config().DropPathAt(i, o.Depth))
	}
	x = b.image("blocks", x, image)
	if o.Neck > 0 {
		x = b.pixelNorm("neck.1", b.Conv("neck.0", x, nn.Conv{Filters: o.Neck, Kernel: 1}))
		x = b.pixelNorm("neck.3", b.conv("neck.2", x, nn.Conv{Filters: o.Neck, Kernel: 3}))
	} else {
		x = b.pixelNorm("neck", x)
	}
	x = b.Dropout("head.drop", b.GlobalAvgPool("head.global_pool", x), b.Config().Dropout)
	return b.Linear("head.fc", x, b.Config().Classes)
}

// block adds attention to the rows x of n images, then a perceptron. Attention is dropped by window, as timm does.
func (o SAMViT) block(b layer, name string, x *G.Node, n int, w nn.Windows, drop float64) *G.Node {
	y := b.Windows(name+".windows", b.LayerNorm(name+".norm1", x, samEps), w)
	if b.Err() != nil {
		return nil
	}
	y = o.attention(b, name+".attn", y, n, w)
	y = b.FromWindows(name+".images", b.partDropout(name+".drop_path1", y, n, w.Count(), drop), w)
	x = b.Add(name+".add", y, x)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, samEps), 4*o.Width)
	return b.rowResidual(name+".drop_path2", y, x, n, drop)
}

// attention is that among the rows x of windows of n images.
func (o SAMViT) attention(b layer, name string, x *G.Node, n int, w nn.Windows) *G.Node {
	c, side, windows := o.Width, w.Rows, n*w.Count()
	tables := b.distanceTables(name, 2*side-1, c/o.Heads, nn.Init{}, false)
	qkv := b.Linear(name+".qkv", x, 3*c)
	var parts [3]*G.Node
	for i, part := range []string{".queries", ".keys", ".values"} {
		parts[i] = b.byHead(name+part, b.Slice(name+part+".rows", qkv, 1, i*c, (i+1)*c), windows, o.Heads)
	}
	y := b.squareAttention(name, parts, tables, n, squares{queries: side, keys: side})
	return b.Linear(name+".proj", b.ofHeads(name+".mixture", y, windows), c)
}
