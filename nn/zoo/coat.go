package zoo

import (
	"fmt"
	"math"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/op/expr"
)

func init() {
	eights := [4]int{8, 8, 4, 4}
	for _, v := range []struct {
		name string
		net  CoaT
	}{
		{"tiny", CoaT{Channels: [4]int{152, 152, 152, 152}, Blocks: [4]int{2, 2, 2, 2}, Parallel: 6}},
		{"mini", CoaT{Channels: [4]int{152, 216, 216, 216}, Blocks: [4]int{2, 2, 2, 2}, Parallel: 6}},
		{"small", CoaT{Channels: [4]int{152, 320, 320, 320}, Blocks: [4]int{2, 2, 2, 2}, Parallel: 6}},
		{"lite_tiny", CoaT{Channels: [4]int{64, 128, 256, 320}, Blocks: [4]int{2, 2, 2, 2}, MLPRatios: eights}},
		{"lite_mini", CoaT{Channels: [4]int{64, 128, 320, 512}, Blocks: [4]int{2, 2, 2, 2}, MLPRatios: eights}},
		{"lite_small", CoaT{Channels: [4]int{64, 128, 320, 512}, Blocks: [4]int{3, 4, 6, 3}, MLPRatios: eights}},
		{"lite_medium", CoaT{Channels: [4]int{128, 256, 320, 512}, Blocks: [4]int{3, 6, 10, 8}}},
		{"lite_medium_384", CoaT{Channels: [4]int{128, 256, 320, 512}, Blocks: [4]int{3, 6, 10, 8}}},
	} {
		size, large := strings.CutSuffix(v.name, "_384")
		a := nn.Architecture{
			Name:          "coat_" + v.name,
			Family:        "coat",
			Summary:       fmt.Sprintf("CoaT, %s, with timm's names", strings.ReplaceAll(size, "_", " ")),
			Reference:     "Xu et al., Co-scale conv-attentional image transformers, 2021",
			MinSize:       32,
			Resize:        248,
			Interpolation: bicubic,
			Block:         coatBlock,
			Init:          truncated(.02),
			Build:         v.net.Build,
		}
		if large {
			a.Size, a.Resize = 384, 384
		}
		imageNet(a)
	}
}

// coatBlock finds the blocks of CoaT, and the parameters before a stage's blocks by the number of the stage: timm
// counts its class, patches and shared convolutions as one layer.
const coatBlock = `^(?:cls_token|patch_embed|cpe|crpe)?(\d|serial_blocks\d\.\d+|parallel_blocks\.\d+)(?:\.|$)`

// CoaT are the options of a transformer whose attention is linear in the number of tokens. Positions come from
// convolutions that the blocks of a stage share.
type CoaT struct {
	Channels  [4]int // of each stage, divisible by 8, the number of heads; timm's embed_dims
	Blocks    [4]int // of each stage; timm's serial_depths
	MLPRatios [4]int // elements of a hidden layer for each channel; 0 all means 4; timm's mlp_ratios
	// Parallel are the blocks in which the last three stages, whose Channels and MLPRatios are equal, add up their
	// results of attention; 0: there are none, and the last stage alone has a class; timm's parallel_depth.
	Parallel int
}

// coatHeads are the heads of attention, of which two have convolutions 3×3, three 5×5 and three 7×7.
const coatHeads = 8

var coatKernels = []struct{ size, heads int }{{3, 2}, {5, 3}, {7, 3}}

// coatStage has the rows of a stage's images, each a class and pixels, and the convolutions that its blocks share.
type coatStage struct {
	n, height, width, channels, hidden int

	name     string // of its number, which ends names
	x        *G.Node
	places   func(x *G.Node) *G.Node
	relative []func(x *G.Node) *G.Node // of the heads' values, by the size of the kernel
}

// Build adds the layers to b.
func (o CoaT) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if o.MLPRatios == [4]int{} {
		o.MLPRatios = [4]int{4, 4, 4, 4}
	}
	equal := func(list [4]int) bool { return list[1] == list[2] && list[2] == list[3] }
	b.options("CoaT", o).least(1, "Channels", "Blocks", "MLPRatios").least(0, "Parallel").
		that(!slices.ContainsFunc(o.Channels[:], func(c int) bool { return c%coatHeads != 0 }), "Channels", "divisible by 8").
		that(o.Parallel == 0 || equal(o.Channels), "Channels", "equal in the last three stages, with Parallel").
		that(o.Parallel == 0 || equal(o.MLPRatios), "MLPRatios", "equal in the last three stages, with Parallel")
	if !b.multipleOf(x, 32) {
		return nil
	}
	var stages [4]*coatStage
	for i, n := range o.Blocks {
		s := o.stage(b, i, x)
		for j := range n {
			o.serial(b, fmt.Sprintf("serial_blocks%s.%d", s.name, j), s)
		}
		stages[i] = s
		if i < 3 {
			x = s.image(b, "stage"+s.name, s.x)
		}
	}
	for k := range o.Parallel {
		o.parallel(b, fmt.Sprintf("parallel_blocks.%d", k), stages[1:])
	}
	var classes []*G.Node
	for i, s := range stages {
		if i == 3 || i > 0 && o.Parallel > 0 {
			class := b.Reshape("class"+s.name, s.class(b, "last"+s.name, s.x), s.n, s.channels)
			classes = append(classes, b.LayerNorm("norm"+s.name, class, rowEps))
		}
	}
	x = classes[0]
	if len(classes) > 1 {
		x = o.aggregate(b, classes)
	}
	x = b.Linear("head", b.Dropout("head_drop", x, b.Config().Dropout), b.Config().Classes)
	b.Order(func(name string) int {
		part, _, _ := strings.Cut(name, ".")
		for i, begin := range []string{"cls_token", "patch_embed", "cpe", "crpe", "serial_blocks"} {
			if number, ok := strings.CutPrefix(part, begin); ok {
				return 4*i + int(number[0]-'1')
			}
		}
		return 99
	})
	return x
}

// stage begins stage i with patches of images x.
func (o CoaT) stage(b layer, i int, x *G.Node) *coatStage {
	if b.Err() != nil {
		return new(coatStage)
	}
	size := 2
	if i == 0 {
		size = 4
	}
	s := &coatStage{n: x.Shape()[0], height: x.Shape()[2] / size, width: x.Shape()[3] / size, channels: o.Channels[i],
		hidden: o.MLPRatios[i] * o.Channels[i], name: fmt.Sprint(i + 1)}
	c, patches := s.channels, "patch_embed"+s.name
	class := b.embedding("cls_token"+s.name, 1, c)
	x = b.Conv(patches+".proj", x, nn.Conv{Filters: c, Kernel: size, Stride: size, Bias: true})
	x = b.LayerNorm(patches+".norm", b.Apply(patches+".tokens", op.Tokens{}, x), branchEps)
	x = b.Concat(patches+".all", 1, b.Expand(patches+".class", class, s.n, 1, c), x)
	s.x = b.Reshape(patches+".rows", x, s.n*(1+s.height*s.width), c)
	s.places = b.convLater("cpe"+s.name+".proj", c, nn.Conv{Filters: c, Kernel: 3, Groups: c, Bias: true})
	for k, kernel := range coatKernels {
		c := c / coatHeads * kernel.heads
		s.relative = append(s.relative, b.convLater(fmt.Sprintf("crpe%s.conv_list.%d", s.name, k), c,
			nn.Conv{Filters: c, Kernel: kernel.size, Groups: c, Bias: true}))
	}
	return s
}

// class are the classes [N,1,C] in rows x.
func (s *coatStage) class(b layer, name string, x *G.Node) *G.Node {
	return b.Slice(name+".class", s.byImage(b, name+".class", x), 1, 0, 1)
}

// image are the images in rows x.
func (s *coatStage) image(b layer, name string, x *G.Node) *G.Node {
	x = b.Slice(name+".pixels", s.byImage(b, name+".pixels", x), 1, 1, 1+s.height*s.width)
	return b.Apply(name+".image", op.Planes{Height: s.height, Width: s.width}, x)
}

func (s *coatStage) byImage(b layer, name string, x *G.Node) *G.Node {
	return b.Reshape(name+".by_image", x, s.n, 1+s.height*s.width, s.channels)
}

// rows joins classes and images.
func (s *coatStage) rows(b layer, name string, class, images *G.Node) *G.Node {
	x := b.Concat(name+".joined", 1, class, b.Apply(name+".tokens", op.Tokens{}, images))
	return b.Reshape(name+".rows", x, s.n*(1+s.height*s.width), s.channels)
}

// place adds to the pixels of x a convolution of them.
func (s *coatStage) place(b layer, name string) {
	x := s.image(b, name, s.x)
	s.x = s.rows(b, name, s.class(b, name, s.x), b.Add(name+".add", s.places(x), x))
}

// serial is a block of attention and a perceptron.
func (o CoaT) serial(b layer, name string, s *coatStage) {
	drop := b.Config().DropPath
	b.Share(name+".cpe", "cpe"+s.name)
	s.place(b, name+".cpe")
	y := s.attention(b, name+".factoratt_crpe", b.LayerNorm(name+".norm1", s.x, rowEps))
	s.x = b.rowResidual(name+".drop_path1", y, s.x, s.n, drop)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", s.x, rowEps), s.hidden)
	s.x = b.rowResidual(name+".drop_path2", y, s.x, s.n, drop)
}

// attention multiplies queries by the products of values and of keys' softmax over all tokens. It adds the products of
// queries and convolutions of the values.
func (s *coatStage) attention(b layer, name string, x *G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	c, d := s.channels, s.channels/coatHeads
	qkv := b.Linear(name+".qkv", x, 3*c)
	var rows [3]*G.Node
	for i, part := range []string{".queries", ".keys", ".values"} {
		rows[i] = b.Slice(name+part, qkv, 1, i*c, (i+1)*c)
	}
	keys := b.byHead(name+".keys", rows[1], s.n, coatHeads)
	keys = b.Softmax(name+".softmax", b.Permute(name+".keys.elements", keys, 0, 2, 1))
	y := b.MatMul(name+".context", keys, b.byHead(name+".values", rows[2], s.n, coatHeads), false)
	y = b.MatMul(name+".attention", b.byHead(name+".queries", rows[0], s.n, coatHeads), y, false)
	y = b.ofHeads(name+".attention", y, s.n)

	images := s.image(b, name+".values", rows[2])
	var parts []*G.Node
	from := 0
	for k, kernel := range coatKernels {
		to := from + d*kernel.heads
		parts = append(parts, s.relative[k](b.Slice(fmt.Sprintf("%s.values.%d", name, k), images, 1, from, to)))
		from = to
	}
	places := b.Apply(name+".places.tokens", op.Tokens{}, b.Concat(name+".places", 1, parts...))
	places = b.Pad(name+".places.pad", places, []int{0, 1, 0}, []int{0, 0, 0}) // a class has none
	places = b.Reshape(name+".places.rows", places, s.n*(1+s.height*s.width), c)
	sum := expr.Arg(0).Scale(1 / math.Sqrt(float64(d))).Add(expr.Arg(1).Mul(expr.Arg(2)))
	y = b.Linear(name+".proj", b.Map(name+".sum", sum, y, rows[0], places), c)
	b.Share(name+".crpe", "crpe"+s.name)
	return y
}

// parallel is a block in which stages add up their attention, resized to each one's images, before perceptrons whose
// parameters they share.
func (o CoaT) parallel(b layer, name string, stages []*coatStage) {
	if b.Err() != nil {
		return
	}
	drop := b.Config().DropPath
	path := func(i int) string { return fmt.Sprintf("%s.drop_path.%d", name, i) }
	normed := make([]*G.Node, len(stages))
	for i, s := range stages {
		s.place(b, name+".cpe"+s.name)
		normed[i] = b.LayerNorm(name+".norm1"+s.name, s.x, rowEps)
	}
	var class *G.Node
	images := make([]*G.Node, len(stages))
	for i, s := range stages {
		part := name + ".factoratt_crpe" + s.name
		y := s.attention(b, part, normed[i])
		images[i] = s.image(b, part+".result", y)
		if own := s.class(b, part+".result", y); i == 0 {
			class = own
		} else {
			class = b.Add(part+".class", class, own)
		}
	}
	for i, s := range stages {
		sum := images[i]
		for k := range stages {
			if k != i {
				part := fmt.Sprintf("%s.from%s_to%s", name, stages[k].name, s.name)
				sum = b.Add(part+".add", sum, b.bilinear(part, images[k], s.height, s.width, false))
			}
		}
		y := s.rows(b, name+".exchanged"+s.name, class, sum)
		s.x = b.rowResidual(path(i), y, s.x, s.n, drop)
	}
	n, tokens := stages[0].n, 0
	for i, s := range stages {
		normed[i] = s.byImage(b, name+".normed"+s.name, b.LayerNorm(name+".norm2"+s.name, s.x, rowEps))
		tokens += 1 + s.height*s.width
	}
	y := b.Reshape(name+".mlp.rows", b.Concat(name+".mlp.joined", 1, normed...), n*tokens, stages[0].channels)
	y = b.perceptron(name+".mlp2", y, stages[0].hidden)
	y = b.Reshape(name+".mlp.images", y, n, tokens, stages[0].channels)
	for _, again := range []string{".mlp3", ".mlp4"} {
		b.Share(name+again, name+".mlp2")
	}
	from := 0
	for i, s := range stages {
		to := from + 1 + s.height*s.width
		own := b.Slice(name+".mlp.part"+s.name, y, 1, from, to)
		own = b.Reshape(name+".mlp.rows"+s.name, own, n*(to-from), s.channels)
		s.x = b.rowResidual(path(len(stages)+i), own, s.x, s.n, drop)
		from = to
	}
}

// aggregate is the sum of the stages' classes, each times a trained factor, and of a trained number.
func (o CoaT) aggregate(b layer, classes []*G.Node) *G.Node {
	if b.Err() != nil {
		return nil
	}
	const name = "aggregate"
	n, c := classes[0].Shape()[0], classes[0].Shape()[1]
	for i, x := range classes {
		classes[i] = b.Reshape(fmt.Sprintf("%s.class%d", name, i), x, n*c, 1)
	}
	param := func(part string, p nn.Param) *G.Node {
		p.Name, p.Init, p.Groups = name+part, nn.FanInUniform(len(classes)), 1
		return b.AddParam(p)
	}
	weight := param(".weight", nn.Param{Shape: op.Shape{1, len(classes)}, Stored: op.Shape{1, len(classes), 1}})
	bias := param(".bias", nn.Param{Shape: op.Shape{1}, BiasOrNorm: true})
	x := b.Apply(name, op.Linear{}, b.Concat(name+".all", 1, classes...), weight, bias)
	return b.Reshape(name+".rows", x, n, c)
}
