package zoo

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name string
		net  EfficientFormer
	}{
		{"l1", EfficientFormer{Blocks: [4]int{3, 2, 6, 4}, Channels: [4]int{48, 96, 224, 448}, Attention: 1}},
		{"l3", EfficientFormer{Blocks: [4]int{4, 4, 12, 6}, Channels: [4]int{64, 128, 320, 512}, Attention: 4}},
		{"l7", EfficientFormer{Blocks: [4]int{6, 6, 18, 8}, Channels: [4]int{96, 192, 384, 768}, Attention: 8}},
	} {
		imageNet(nn.Architecture{
			Name:          "efficientformer_" + v.name,
			Family:        "efficientformer",
			Summary:       fmt.Sprintf("EfficientFormer-%s, with timm's names", strings.ToUpper(v.name)),
			Reference:     "Li et al., EfficientFormer: vision transformers at MobileNet speed, 2022",
			Resize:        235,
			Interpolation: bicubic,
			Block:         `^(stem|stages\.\d\.(?:blocks\.\d+|downsample))\.`,
			Heads:         []string{"head", "head_dist"},
			Init:          truncated(.02),
			Build:         v.net.Build,
		})
	}
}

// EfficientFormer are the options of a net that mixes tokens by pooling, and by attention in its last blocks.
type EfficientFormer struct {
	Blocks    [4]int // of each stage; timm's depths
	Channels  [4]int // of each stage, the first even; timm's embed_dims
	Attention int    // blocks of attention, the last ones of the last stage; timm's num_vit
}

// The heads of attention, elements of a key and of a value.
const (
	efficientFormerHeads = 8
	efficientFormerKey   = 32
	efficientFormerValue = 128
)

// efficientFormerScale is the initial factor of branches.
const efficientFormerScale = 1e-5

// Build adds the layers to b.
func (o EfficientFormer) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	if !b.options("EfficientFormer", o).least(1, "Blocks", "Channels", "Attention").
		that(o.Channels[0]%2 == 0, "Channels", "even in the first stage").
		that(o.Attention <= o.Blocks[3], "Attention", "at most the blocks of the last stage").ok() {
		return nil
	}
	biased := func(names [2]string, x *G.Node, c nn.Conv) *G.Node {
		c.Bias = true
		return b.convNorm(names, x, c, nil)
	}
	c := o.Channels[0]
	x = biased([2]string{"stem.conv1", "stem.norm1"}, x, nn.Conv{Filters: c / 2, Kernel: 3, Stride: 2})
	x = biased([2]string{"stem.conv2", "stem.norm2"}, b.ReLU("stem.act1", x), nn.Conv{Filters: c, Kernel: 3, Stride: 2})
	x = b.ReLU("stem.act2", x)
	var image *G.Node // of the size of the rows x
	done, all := 0, sum(o.Blocks[:])
	for i, n := range o.Blocks {
		c = o.Channels[i]
		if i > 0 {
			name := fmt.Sprintf("stages.%d.downsample", i)
			x = biased([2]string{name + ".conv", name + ".norm"}, x, nn.Conv{Filters: c, Kernel: 3, Stride: 2})
		}
		at := 0
		for j := range n {
			drop := b.Config().DropPathAt(done, all)
			if i == 3 && j == n-o.Attention {
				image, x = x, b.rows("flat", x)
				at++ // timm counts the change of shape
			}
			name := fmt.Sprintf("stages.%d.blocks.%d", i, at)
			if image != nil {
				x = o.attends(b, name, x, image, drop)
			} else {
				y := b.gammas(name+".ls1", b.poolAround(name+".token_mixer", x), efficientFormerScale)
				x = b.Add(name+".add1", b.StochasticDepth(name+".drop_path1", y, drop), x)
				y = biased([2]string{name + ".mlp.fc1", name + ".mlp.norm1"}, x, nn.Conv{Filters: 4 * c, Kernel: 1})
				y = b.GELU(name+".mlp.act", y)
				y = biased([2]string{name + ".mlp.fc2", name + ".mlp.norm2"}, y, nn.Conv{Filters: c, Kernel: 1})
				y = b.gammas(name+".ls2", y, efficientFormerScale)
				x = b.Add(name+".add2", b.StochasticDepth(name+".drop_path2", y, drop), x)
			}
			at, done = at+1, done+1
		}
	}
	x = b.GlobalAvgPool("pool", b.image("norm", b.LayerNorm("norm", x, 1e-5), image))
	return b.twoHeads(b.Dropout("head_drop", x, b.Config().Dropout))
}

// attends adds attention and a perceptron to the rows x of images.
func (o EfficientFormer) attends(b layer, name string, x, image *G.Node, drop float64) *G.Node {
	y := b.LayerNorm(name+".norm1", x, 1e-5)
	if b.Err() != nil {
		return nil
	}
	s, mixer := image.Shape(), name+".token_mixer"
	const heads, key, value = efficientFormerHeads, efficientFormerKey, efficientFormerValue
	g := grid{s[2], s[3], 1}
	bias := b.distances(mixer, heads, g)
	var places []int64
	for _, v := range g.places() {
		places = append(places, int64(v))
	}
	b.Buffer(mixer+".attention_bias_idxs", places, s[2]*s[3], s[2]*s[3])
	qkv := b.headParts(mixer, b.Linear(mixer+".qkv", y, heads*(2*key+value)), heads, key, key, value)
	y = b.Attention(mixer+".attention", qkv[0], qkv[1], qkv[2], s[0], nn.Attention{Heads: heads}, bias)
	y = b.gammas(name+".ls1", b.Linear(mixer+".proj", y, s[1]), efficientFormerScale)
	x = b.rowResidual(name+".drop_path1", y, x, s[0], drop)
	y = b.perceptron(name+".mlp", b.LayerNorm(name+".norm2", x, 1e-5), 4*s[1])
	return b.rowResidual(name+".drop_path2", b.gammas(name+".ls2", y, efficientFormerScale), x, s[0], drop)
}

// twoHeads is the mean of two linear layers, that of the labels and that of a teacher's.
func (b layer) twoHeads(x *G.Node) *G.Node {
	k := b.Config().Classes
	return b.Map("mean", meanOfTwo, b.Linear("head", x, k), b.Linear("head_dist", x, k))
}
