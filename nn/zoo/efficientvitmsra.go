package zoo

import (
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

func init() {
	five, mixed := []int{5, 5, 5, 5}, []int{7, 5, 3, 3}
	for i, net := range []EfficientViTMSRA{
		{Channels: [3]int{64, 128, 192}, Blocks: [3]int{1, 2, 3}, Heads: [3]int{4, 4, 4}, Kernels: five},
		{Channels: [3]int{128, 144, 192}, Blocks: [3]int{1, 2, 3}, Heads: [3]int{2, 3, 3}, Kernels: mixed},
		{Channels: [3]int{128, 192, 224}, Blocks: [3]int{1, 2, 3}, Heads: [3]int{4, 3, 2}, Kernels: mixed},
		{Channels: [3]int{128, 240, 320}, Blocks: [3]int{1, 2, 3}, Heads: [3]int{4, 3, 4}, Kernels: five},
		{Channels: [3]int{128, 256, 384}, Blocks: [3]int{1, 2, 3}, Heads: [3]int{4, 4, 4}, Kernels: mixed},
		{Channels: [3]int{192, 288, 384}, Blocks: [3]int{1, 3, 4}, Heads: [3]int{3, 3, 4}, Kernels: mixed},
	} {
		net.Key, net.Window = 16, 7
		imageNet(nn.Architecture{
			Name:    fmt.Sprintf("efficientvit_m%d", i),
			Family:  "efficientvit",
			Summary: fmt.Sprintf("EfficientViT-M%d of Microsoft, with timm's names", i),
			Reference: "Liu et al., EfficientViT: memory efficient vision transformer with cascaded group attention, " +
				"2023",
			MinSize:       16,
			Resize:        256,
			Interpolation: bicubic,
			Block:         `^(patch_embed|stages\.\d\.(?:blocks\.\d+|downsample))\.`,
			Init:          truncated(.02),
			Build:         net.Build,
		})
	}
}

// EfficientViTMSRA are the options of Microsoft's net of cascaded attention, whose heads take parts of the channels and
// the result of the head before.
type EfficientViTMSRA struct {
	Channels [3]int // of each stage, divisible by its Heads, the first also by 8; timm's embed_dim
	Blocks   [3]int // of each stage; timm's depth
	Heads    [3]int // of each stage; timm's num_heads
	Kernels  []int  // extents of the convolutions of queries, one for each head at least; odd; timm's kernels
	Key      int    // elements of a head's keys; timm's key_dim
	Window   int    // height and width of windows, in pixels of a stage; timm's window_size
}

// Build adds the layers to b.
func (o EfficientViTMSRA) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("EfficientViTMSRA", o).least(1, "Channels", "Blocks", "Heads", "Kernels", "Key", "Window").
		that(o.Channels[0]%8 == 0, "Channels", "divisible by 8 in the first stage").
		that(!slices.ContainsFunc(o.Kernels, func(k int) bool { return k%2 == 0 || k > 99 }), "Kernels",
			"odd, and at most 99").
		that(len(o.Kernels) >= slices.Max(o.Heads[:]), "Kernels", fmt.Sprintf("as many as Heads, which are %v", o.Heads)).
		that(o.Window <= 128, "Window", "at most 128")
	for i, heads := range o.Heads {
		b.options("EfficientViTMSRA", o).that(o.Channels[i]%max(heads, 1) == 0, "Channels",
			fmt.Sprintf("divisible by Heads, which are %v", o.Heads))
	}
	if !b.atLeast(x, 16) {
		return nil
	}
	extent, c := min(x.Shape()[2], x.Shape()[3])/16, o.Channels[0]
	for i := range 4 {
		name := fmt.Sprintf("patch_embed.conv%d", i+1)
		if x = b.convBN(name, x, nn.Conv{Filters: c >> (3 - i), Kernel: 3, Stride: 2}, 1); i < 3 {
			x = b.ReLU(fmt.Sprintf("patch_embed.relu%d", i+1), x)
		}
	}
	for i, n := range o.Blocks {
		name := fmt.Sprintf("stages.%d", i)
		if i > 0 {
			extent, c = (extent-1)/2+1, o.Channels[i]
			down := name + ".downsample"
			x = b.deepPoint(down+".res1.0.m", down+".res1.1.m", x, 1)
			x = b.mergePatches(down+".patchmerge", x, c, b.convBN)
			x = b.deepPoint(down+".res2.0.m", down+".res2.1.m", x, 1)
		}
		for j := range n {
			block := fmt.Sprintf("%s.blocks.%d", name, j)
			x = b.deepPoint(block+".dw0.m", block+".ffn0.m", x, 0)
			y := b.inWindows(block+".mixer.m", x, min(o.Window, extent), func(x *G.Node) *G.Node {
				return o.attention(b, block+".mixer.m.attn", x, o.Heads[i])
			})
			x = b.deepPoint(block+".dw1.m", block+".ffn1.m", b.Add(block+".mixer.add", y, x), 0)
		}
	}
	x = b.Flatten("flatten", b.BatchNorm("head.bn", b.pixel("pool", x), 1))
	return b.Linear("head.linear", b.Dropout("head.drop", x, b.Config().Dropout), b.Config().Classes)
}

// convBN is a convolution, and a normalisation whose factor starts as scale.
func (b layer) convBN(name string, x *G.Node, c nn.Conv, scale float64) *G.Node {
	return b.BatchNorm(name+".bn", b.conv(name+".conv", x, c), scale)
}

// deepPoint adds to x a depthwise convolution, whose normalisation starts with scale, and to the sum a perceptron of
// each pixel.
func (b layer) deepPoint(deep, point string, x *G.Node, scale float64) *G.Node {
	return b.pointAdd(point, b.deepAdd(deep, x, scale, b.convBN), b.convBN)
}

// inWindows applies f to the windows of size×size pixels of images x, which are images one after the other. Zeros fill
// the last window of a row and of a column.
func (b layer) inWindows(name string, x *G.Node, size int, f func(x *G.Node) *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	if s[2] == size && s[3] == size {
		return f(x)
	}
	w := nn.Windows{Height: s[2], Width: s[3], Rows: size, Columns: size}
	y := b.Windows(name+".windows", b.rows(name, x), w)
	y = b.Reshape(name+".apart", y, s[0]*w.Count(), size*size, s[1])
	y = f(b.Apply(name+".pixels", op.Planes{Height: size, Width: size}, y))
	return b.image(name, b.FromWindows(name+".whole", b.rows(name+".joined", y), w), x)
}

// attention is attention among the pixels of x, head by head.
func (o EfficientViTMSRA) attention(b layer, name string, x *G.Node, heads int) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	width := s[1] / heads
	bias := b.distances(name, heads, grid{s[2], s[3], 1})
	var y *G.Node
	values := make([]*G.Node, heads)
	for i := range heads {
		part := func(part string) string { return fmt.Sprintf("%s.%s.%d", name, part, i) }
		head := b.Slice(part("part"), x, 1, i*width, (i+1)*width)
		if i > 0 {
			head = b.Add(part("add"), y, head)
		}
		y = b.convBN(part("qkvs"), head, nn.Conv{Filters: 2*o.Key + width, Kernel: 1}, 1)
		q := b.Slice(part("q"), y, 1, 0, o.Key)
		q = b.convBN(part("dws"), q, nn.Conv{Filters: o.Key, Kernel: o.Kernels[i], Groups: o.Key}, 1)
		k, v := b.Slice(part("k"), y, 1, o.Key, 2*o.Key), b.Slice(part("v"), y, 1, 2*o.Key, 2*o.Key+width)
		y = b.Attention(part("attention"), b.rows(part("q"), q), b.rows(part("k"), k), b.rows(part("v"), v), s[0],
			nn.Attention{Heads: 1}, b.Slice(part("bias"), bias, 0, i, i+1))
		y = b.image(part("image"), y, x)
		values[i] = y
	}
	y = b.ReLU(name+".proj.0", b.Concat(name+".concat", 1, values...))
	y = b.convBN(name+".proj.1", y, nn.Conv{Filters: s[1], Kernel: 1}, 0)
	b.declared(name, "attention_biases", "qkvs", "dws", "proj")
	return y
}

// declared sorts the tensors of a layer by the parts of it that they are of, in the order in which PyTorch declares
// them.
func (b layer) declared(name string, parts ...string) {
	b.Order(func(tensor string) int {
		of, ok := strings.CutPrefix(tensor, name+".")
		if !ok {
			return -1
		}
		part, _, _ := strings.Cut(of, ".")
		return slices.Index(parts, part)
	})
}
