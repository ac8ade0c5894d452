package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

func init() {
	for _, v := range []struct {
		letter, size string
		resize       int
		drop         float64
		net          Swin
	}{
		{"T", "tiny", 232, .2, Swin{Width: 96, Blocks: [4]int{2, 2, 6, 2}, Heads: 3}},
		{"S", "small", 246, .3, Swin{Width: 96, Blocks: [4]int{2, 2, 18, 2}, Heads: 3}},
		{"B", "base", 238, .5, Swin{Width: 128, Blocks: [4]int{2, 2, 18, 2}, Heads: 4}},
	} {
		imageNet(nn.Architecture{
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
		})
	}
}

// Swin are the options of a transformer with attention in windows, which are shifted in every second block.
type Swin struct {
	Blocks [4]int // of each stage
	Width  int    // channels of the first stage; they double from one to the next, and so do the heads
	Heads  int
	Window int // height and width of a window in patches of 4×4; 0 means 7
}

// swinEps is added to the variances of layer normalisations.
const swinEps = 1e-5

// swinStage has the extents of a stage's images, and of images that windows fill.
type swinStage struct {
	n, height, width, channels int
	down, right                int // after padding
	shiftDown, shiftRight      int // of every second block
	window                     window
}

// Build adds the layers to b.
func (o Swin) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("Swin", o).least(1, "Blocks", "Width", "Heads").least(0, "Window").multiple("Width", "Heads")
	if !b.multipleOf(x, 4) {
		return nil
	}
	size := o.Window
	if size == 0 {
		size = 7
	}
	x = b.Conv("features.0.0", x, nn.Conv{Filters: o.Width, Kernel: 4, Stride: 4, Bias: true})
	if b.Err() != nil {
		return nil
	}
	n, height, width := x.Shape()[0], x.Shape()[2], x.Shape()[3]
	x = b.Reshape("features.0.1", b.Apply("features.0.1.tokens", op.Tokens{}, x), n*height*width, o.Width)
	x = b.LayerNorm("features.0.2", x, swinEps)
	done, last := 0, o.Blocks[0]+o.Blocks[1]+o.Blocks[2]+o.Blocks[3]-1
	s := swinStage{n: n, height: height, width: width, channels: o.Width}
	for i, blocks := range o.Blocks {
		if i > 0 {
			x = b.merge(fmt.Sprintf("features.%d", 2*i), x, &s)
		}
		s.fit(window{size: size, heads: o.Heads << i, qkv: ".qkv", proj: ".proj", index: []int{size * size * size * size}})
		mask := s.mask(b, fmt.Sprintf("features.%d.mask", 2*i+1))
		for j := range blocks {
			k := s
			if k.window.mask = mask; j%2 == 0 {
				k.shiftDown, k.shiftRight, k.window.mask = 0, 0, nil
			}
			drop := b.Config().DropPath * float64(done) / float64(max(last, 1))
			x = b.swin(fmt.Sprintf("features.%d.%d", 2*i+1, j), x, k, drop)
			done++
		}
	}
	x = b.Reshape("permute.images", b.LayerNorm("norm", x, swinEps), n, s.height*s.width, s.channels)
	x = b.GlobalAvgPool("avgpool", b.Apply("permute", op.Planes{Height: s.height, Width: s.width}, x))
	return b.Linear("head", b.Dropout("dropout", x, b.Config().Dropout), b.Config().Classes)
}

// fit sets the window, and pads images to whole ones. Where one window covers an extent nothing is shifted.
func (s *swinStage) fit(w window) {
	s.window = w
	pad := func(n int) (padded, shift int) {
		if padded = (n + w.size - 1) / w.size * w.size; padded > w.size {
			shift = w.size / 2
		}
		return padded, shift
	}
	s.down, s.shiftDown = pad(s.height)
	s.right, s.shiftRight = pad(s.width)
}

// mask keeps tokens apart that only the shift brings into one window: their score is 100 less. It is nil if nothing is
// shifted.
func (s *swinStage) mask(b layer, name string) *G.Node {
	if s.shiftDown+s.shiftRight == 0 {
		return nil
	}
	// Parts of an extent: in whole windows, and in the last one before and behind the end.
	part := func(at, n, shift int) int {
		switch {
		case shift == 0 || at < n-s.window.size:
			return 0
		case at < n-shift:
			return 1
		}
		return 2
	}
	size := s.window.size
	across, t := s.right/size, size*size
	windows := s.down / size * across
	x := op.New(op.T(op.Float64, windows, s.window.heads, t*t))
	at := 0
	for w := range windows {
		parts := make([]int, t)
		for i := range parts {
			row, column := w/across*size+i/size, w%across*size+i%size
			parts[i] = 3*part(row, s.down, s.shiftDown) + part(column, s.right, s.shiftRight)
		}
		for range s.window.heads {
			for i := range t * t {
				if parts[i/t] != parts[i%t] {
					x.Data.([]float64)[at] = -100
				}
				at++
			}
		}
	}
	return b.Constant(name, x)
}

// swin adds attention(norm x) to the rows x, then perceptron(norm y) to the sum y. drop is the probability of dropping
// either in Train.
func (b layer) swin(name string, x *G.Node, s swinStage, drop float64) *G.Node {
	y := b.toWindows(name, b.LayerNorm(name+".norm1", x, swinEps), s)
	y = b.fromWindows(name, b.windowAttention(name+".attn", y, s.window), s)
	x = b.rowResidual(name+".stochastic_depth", y, x, s.n, drop)
	y = b.perceptron(name+".mlp.0", name+".mlp.3", b.LayerNorm(name+".norm2", x, swinEps), 4*s.channels, s.channels)
	return b.rowResidual(name+".mlp.stochastic_depth", y, x, s.n, drop)
}

// toWindows pads and rolls the images of rows x and makes rows of windows, one after the other.
func (b layer) toWindows(name string, x *G.Node, s swinStage) *G.Node {
	w, c := s.window.size, s.channels
	// Five dimensions: devices keep values of four as images.
	x = b.Reshape(name+".grid", x, 1, s.n, s.height, s.width, c)
	if s.down > s.height || s.right > s.width {
		x = b.Pad(name+".padded", x, make([]int, 5), []int{0, 0, s.down - s.height, s.right - s.width, 0})
	}
	if s.shiftDown+s.shiftRight > 0 {
		x = b.Roll(name+".rolled", x, 0, 0, s.shiftDown, s.shiftRight, 0)
	}
	x = b.Reshape(name+".cut", x, s.n, s.down/w, w, s.right/w, w, c)
	return b.Reshape(name+".rows", b.Permute(name+".windows", x, 0, 1, 3, 2, 4, 5), s.n*s.down*s.right, c)
}

// fromWindows is the inverse of toWindows.
func (b layer) fromWindows(name string, x *G.Node, s swinStage) *G.Node {
	w, c := s.window.size, s.channels
	x = b.Reshape(name+".apart", x, s.n, s.down/w, s.right/w, w, w, c)
	x = b.Reshape(name+".joined", b.Permute(name+".together", x, 0, 1, 3, 2, 4, 5), 1, s.n, s.down, s.right, c)
	if s.shiftDown+s.shiftRight > 0 {
		x = b.Roll(name+".back", x, 0, 0, -s.shiftDown, -s.shiftRight, 0)
	}
	if s.down > s.height || s.right > s.width {
		x = b.Apply(name+".unpadded", op.Slice{From: make([]int, 5), To: []int{1, s.n, s.height, s.width, c}}, x)
	}
	return b.Reshape(name+".tokens", x, s.n*s.height*s.width, c)
}

// merge makes one token of 2×2, with twice the channels.
func (b layer) merge(name string, x *G.Node, s *swinStage) *G.Node {
	c := s.channels
	weight := b.AddParam(nn.Param{Name: name + ".reduction.weight", Shape: op.Shape{2 * c, 4 * c}})
	x = b.Reshape(name+".grid", x, 1, s.n, s.height, s.width, c)
	if odd := []int{0, 0, s.height % 2, s.width % 2, 0}; odd[2]+odd[3] > 0 {
		x = b.Pad(name+".padded", x, make([]int, 5), odd)
	}
	s.height, s.width, s.channels = (s.height+1)/2, (s.width+1)/2, 2*c
	x = b.Permute(name+".quads", b.Reshape(name+".cut", x, s.n*s.height, 2, s.width, 2, c), 0, 2, 3, 1, 4)
	x = b.LayerNorm(name+".norm", b.Reshape(name+".rows", x, s.n*s.height*s.width, 4*c), swinEps)
	return b.Apply(name+".reduction", op.Linear{}, x, weight)
}

// swinInitial is the initial distribution of a parameter.
func swinInitial(p nn.Param) nn.Init {
	switch {
	case len(p.Shape) == 4:
		return nn.FanInUniform(p.Shape[1:].Size())
	case p.Name == "features.0.0.bias":
		return p.Init
	case len(p.Shape) > 1:
		return nn.Init{Distribution: nn.Normal, Scale: .02}
	case p.Init.Distribution == nn.Uniform: // a bias
		return nn.Init{}
	}
	return p.Init
}
