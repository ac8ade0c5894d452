package zoo

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

func init() {
	for _, v := range []struct {
		letter   string
		resize   int // of the first version
		resizeV2 int
		drop     float64
		net      Swin
	}{
		{"T", 232, 260, .2, Swin{Width: 96, Blocks: [4]int{2, 2, 6, 2}, Heads: 3}},
		{"S", 246, 260, .3, Swin{Width: 96, Blocks: [4]int{2, 2, 18, 2}, Heads: 3}},
		{"B", 238, 272, .5, Swin{Width: 128, Blocks: [4]int{2, 2, 18, 2}, Heads: 4}},
	} {
		a := nn.Architecture{
			Name:          "swin_" + strings.ToLower(v.letter),
			Family:        "swin",
			Summary:       "Swin-" + v.letter,
			Reference:     "Liu et al., Swin transformer: hierarchical vision transformer using shifted windows, 2021",
			MinSize:       32,
			DropPath:      v.drop,
			Resize:        v.resize,
			Interpolation: bicubic,
			Block:         `^(features\.[1357]\.\d+)\.`,
			Init:          swinInitial,
			Build:         v.net.Build,
		}
		imageNet(a)
		v.net.V2, v.net.Window = true, 8
		a.Name = "swin_v2_" + strings.ToLower(v.letter)
		a.Summary = "Swin V2-" + v.letter
		a.Reference = "Liu et al., Swin transformer V2: scaling up capacity and resolution, 2022"
		a.Size, a.Resize, a.Build = 256, v.resizeV2, v.net.Build
		imageNet(a)
	}
}

// Swin are the options of a transformer with attention in windows, which are shifted in every second block.
type Swin struct {
	Blocks [4]int // of each stage; depths
	Width  int    // channels of the first stage; they double from one to the next, and so do the heads; embed_dim
	Heads  int    // of the first stage; num_heads[0]
	Patch  int    // height and width of a patch; 0 means 4; torchvision's patch_size

	// V2 normalises results of attention and of perceptrons instead of their inputs, and takes cosines for scores:
	// torchvision's SwinTransformerBlockV2 and PatchMergingV2.
	V2 bool

	// Timm has timm's names, its initial values, and windows no larger than a stage's images.
	Timm bool

	// CR has V2's cosines with biases of scores from a net of all pairs of tokens. It merges tokens as the first version,
	// and normalises the last block's result in that block. Windows have an eighth of the extent of the first stage's
	// images. It is timm's SwinTransformerV2Cr, for Timm and V2.
	CR bool
	// StageNorm normalises the results of all stages: timm's extra_norm_stage. BiasHidden are the elements of the hidden
	// layer that biases come from; 0 means 384; timm's meta_hidden_dim. BiasDropout is the probability of dropping them
	// in Train. All are for CR.
	StageNorm   bool
	BiasHidden  int
	BiasDropout float64

	// Windows are the heights and widths of windows of each stage, for Timm; 0 means Window for all: timm's window_size.
	Windows [4]int

	// Pretrained are the heights of windows, of each stage, by which offsets between tokens are measured: those of
	// weights that were trained with smaller ones. 0 means Window. They are timm's pretrained_window_sizes, for Timm and
	// V2.
	Pretrained [4]int

	// Window and WindowWidth are the height and the width of a window in patches; 0 means 7 and as wide as high. They are
	// torchvision's window_size.
	Window, WindowWidth int

	MLPRatio float64 // elements of a block's hidden layer for each channel; 0 means 4; torchvision's mlp_ratio

	// Dropout is the probability of dropping elements in Train, after attention, the GELU and the last linear layer of
	// each block: torchvision's dropout. Config has that of the head's inputs, and DropPath, which is
	// stochastic_depth_prob.
	Dropout float64

	// AttentionDropout is the probability of dropping weights of attention in Train: torchvision's attention_dropout.
	// Training is slower with it.
	AttentionDropout float64
}

// swinEps is added to the variances of layer normalisations.
const swinEps = 1e-5

// swinStage has the extents of a stage's images, and its windows.
type swinStage struct {
	n, height, width, channels int
	stage, pretrained          int
	window                     window // of every second block
}

// Build adds the layers to b.
func (o Swin) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	o.Patch, o.Window, o.MLPRatio = cmp.Or(o.Patch, 4), cmp.Or(o.Window, 7), cmp.Or(o.MLPRatio, 4)
	b.options("Swin", o).least(1, "Blocks", "Width", "Heads").least(0, "Patch", "Window", "WindowWidth", "MLPRatio").
		that(o.Window <= 128, "Window", "at most 128").that(o.WindowWidth <= 128, "WindowWidth", "at most 128").
		multiple("Width", "Heads").probability("Dropout", "AttentionDropout").
		that(!o.V2 || o.Window > 1, "Window", "at least 2 with V2").
		that(!o.V2 || o.WindowWidth != 1, "WindowWidth", "0 or at least 2 with V2").
		that(int(float64(o.Width)*o.MLPRatio) > 0, "MLPRatio", "at least 1/Width").
		least(0, "Windows").that(o.Timm || o.Windows == [4]int{}, "Windows", "0 without Timm").
		that(slices.Max(o.Windows[:]) <= 128, "Windows", "at most 128").
		that(o.Windows == [4]int{} || slices.Min(o.Windows[:]) > 1, "Windows", "numbers of at least 2, or 0 all").
		that(!o.CR || o.Timm && o.V2, "CR", "false without Timm and V2").
		that(o.CR || !o.StageNorm, "StageNorm", "false without CR").probability("BiasDropout").
		that(o.CR || o.BiasDropout == 0, "BiasDropout", "0 without CR").
		least(0, "BiasHidden").that(o.CR || o.BiasHidden == 0, "BiasHidden", "0 without CR").
		that(!o.CR || o.Windows == [4]int{}, "Windows", "0 with CR").
		least(0, "Pretrained").that(!o.CR || o.Pretrained == [4]int{}, "Pretrained", "0 with CR").
		that(o.Timm && o.V2 || o.Pretrained == [4]int{}, "Pretrained", "0 without Timm and V2")
	of := o.names()
	whole := o.Patch
	if o.CR {
		whole *= 8
	}
	if !b.multipleOf(x, whole) {
		return nil
	}
	x = b.Conv(of.patches, x, nn.Conv{Filters: o.Width, Kernel: o.Patch, Stride: o.Patch, Bias: true})
	if b.Err() != nil {
		return nil
	}
	n, height, width := x.Shape()[0], x.Shape()[2], x.Shape()[3]
	if o.CR {
		o.Window, o.WindowWidth = height/8, width/8
	}
	x = b.LayerNorm(of.first, b.rows(of.patches+".rows", x), swinEps)
	done, all := 0, sum(o.Blocks[:])
	s := swinStage{n: n, height: height, width: width, channels: o.Width}
	for i, blocks := range o.Blocks {
		if i > 0 {
			x = o.merge(b, of.merge(i), x, &s)
		}
		s.stage, s.pretrained = i, o.Pretrained[i]
		o.windows(b, of.stage(i)+".mask", &s, o.Heads<<i)
		for j := range blocks {
			k := s
			if j%2 == 0 {
				k.window.Down, k.window.Right, k.window.mask = 0, 0, nil
			}
			drop := b.Config().DropPathAt(done, all)
			x = o.block(b, of.block(i, j), x, k, drop)
			done++
			if o.CR && j == blocks-1 && (o.StageNorm || i == 3) {
				x = b.LayerNorm(of.block(i, j)+".norm3", x, swinEps)
			}
		}
	}
	if !o.CR {
		x = b.LayerNorm("norm", x, swinEps)
	}
	x = b.Reshape("permute.images", x, n, s.height*s.width, s.channels)
	x = b.GlobalAvgPool("avgpool", b.Apply("permute", op.Planes{Height: s.height, Width: s.width}, x))
	return b.Linear(of.head, b.Dropout("dropout", x, b.Config().Dropout), b.Config().Classes)
}

// windows sets those of a stage. Along an extent that one window covers nothing is shifted.
func (o Swin) windows(b layer, mask string, s *swinStage, heads int) {
	rows, columns := o.Window, cmp.Or(o.WindowWidth, o.Window)
	if n := o.Windows[s.stage]; n > 0 {
		rows, columns = n, n
	}
	if o.Timm {
		rows, columns = min(rows, s.height), min(columns, s.width)
		if s.height%rows != 0 || s.width%columns != 0 {
			b.Fail(fmt.Errorf("windows of %d×%d tokens do not divide images of %d×%d: choose an input size of %d", rows, columns,
				s.height, s.width, 8*o.Patch*max(o.Windows[3], o.Window)))
			return
		}
	}
	w := nn.Windows{Height: s.height, Width: s.width, Rows: rows, Columns: columns}
	if s.height > rows {
		w.Down = rows / 2
	}
	if s.width > columns {
		w.Right = columns / 2
	}
	t := rows * columns
	s.window = window{Windows: w, heads: heads, dropout: o.AttentionDropout, qkv: ".qkv", proj: ".proj", index: []int{t * t},
		timm: o.Timm, pretrained: s.pretrained}
	if w.Down+w.Right > 0 {
		bias := w.Mask(heads)
		bias.Shape = op.Shape{w.Count(), heads, t * t}
		s.window.mask = b.Constant(mask, bias)
	}
}

// block adds attention(norm x) to the rows x, then perceptron(norm y) to the sum y; in V2 norm(attention x), then
// norm(perceptron y). drop is the probability of dropping either in Train.
func (o Swin) block(b layer, name string, x *G.Node, s swinStage, drop float64) *G.Node {
	of := o.names()
	y := o.normed(b, name+".norm1", x, s.channels, func(y *G.Node) *G.Node {
		y = b.Windows(name+".windows", y, s.window.Windows)
		switch {
		case o.CR:
			y = o.crAttention(b, name+".attn", y, s.window)
		case o.V2:
			y = b.cosineAttention(name+".attn", y, s.window)
		default:
			y = b.windowAttention(name+".attn", y, s.window)
		}
		return b.FromWindows(name+".images", b.rowDropout(name+of.dropProj, y, s.n, o.Dropout), s.window.Windows)
	})
	x = b.rowResidual(name+of.dropPath1, y, x, s.n, drop)
	y = o.normed(b, name+".norm2", x, s.channels, func(y *G.Node) *G.Node {
		y = b.GELU(name+of.expand+".gelu", b.Linear(name+of.expand, y, int(float64(s.channels)*o.MLPRatio)))
		y = b.Linear(name+of.contract, b.rowDropout(name+of.dropExpand, y, s.n, o.Dropout), s.channels)
		return b.rowDropout(name+of.dropContract, y, s.n, o.Dropout)
	})
	return b.rowResidual(name+of.dropPath2, y, x, s.n, drop)
}

// normed is a branch behind its normalisation, or before it in V2. timm's parameters of the normalisation follow those
// of the branch.
func (o Swin) normed(b layer, name string, x *G.Node, channels int, branch func(*G.Node) *G.Node) *G.Node {
	if o.Timm && o.V2 {
		y := branch(x)
		_, after := o.norm(b, name, channels)
		return after(y)
	}
	before, after := o.norm(b, name, channels)
	return after(branch(before(x)))
}

// norm adds the parameters of a layer normalisation of rows. It is done before a branch, or after it in V2.
func (o Swin) norm(b layer, name string, channels int) (before, after func(*G.Node) *G.Node) {
	norm := b.sharedNorm(name, channels, swinEps)
	before = func(x *G.Node) *G.Node { return norm("", x) }
	after = func(x *G.Node) *G.Node { return x }
	if o.V2 {
		before, after = after, before
	}
	return before, after
}

// merge makes one token of 2×2, with twice the channels.
func (o Swin) merge(b layer, name string, x *G.Node, s *swinStage) *G.Node {
	o.V2 = o.V2 && !o.CR
	c := s.channels
	width := 4 * c
	if o.V2 {
		width = 2 * c
	}
	var weight *G.Node
	var before, after func(*G.Node) *G.Node
	parts := []func(){func() { weight = b.matrix(name+".reduction", 2*c, 4*c) },
		func() { before, after = o.norm(b, name+".norm", width) }}
	if o.Timm && !o.V2 {
		slices.Reverse(parts)
	}
	for _, add := range parts {
		add()
	}
	x = b.Reshape(name+".grid", x, 1, s.n, s.height, s.width, c)
	if odd := []int{0, 0, s.height % 2, s.width % 2, 0}; odd[2]+odd[3] > 0 {
		x = b.Pad(name+".padded", x, make([]int, 5), odd)
	}
	s.height, s.width, s.channels = (s.height+1)/2, (s.width+1)/2, 2*c
	x = b.Permute(name+".quads", b.Reshape(name+".cut", x, s.n*s.height, 2, s.width, 2, c), 0, 2, 3, 1, 4)
	x = before(b.Reshape(name+".rows", x, s.n*s.height*s.width, 4*c))
	return after(b.Apply(name+".reduction", op.Linear{}, x, weight))
}

// resNorm finds timm's normalisations of branches, which start as 0 in V2.
var resNorm = regexp.MustCompile(`\.blocks\.\d+\.norm[12]\.weight$`)

// swinV2Initial is the initial distribution of a parameter of timm's V2.
func swinV2Initial(p nn.Param) nn.Init {
	if resNorm.MatchString(p.Name) {
		return nn.Init{}
	}
	return swinInitial(p)
}

// swinInitial is the initial distribution of a parameter.
func swinInitial(p nn.Param) nn.Init {
	switch {
	case p.Init.Distribution == nn.Constant && p.Init.Scale != 0: // of norms, and of V2's cosines
		return p.Init
	case len(p.Shape) == 4:
		return nn.FanInUniform(p.Shape[1:].Size())
	case p.Name == torchvisionSwin.patches+".bias" || p.Name == timmSwin.patches+".bias":
		return p.Init
	case len(p.Shape) > 1:
		return nn.Init{Distribution: nn.Normal, Scale: .02}
	case p.Init.Distribution == nn.Uniform: // a bias
		return nn.Init{}
	}
	return p.Init
}
