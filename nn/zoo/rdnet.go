package zoo

import (
	"cmp"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name           string
		stem           int
		stages, growth [4]int // of each size of images: the number of stages, and the channels that a block makes
	}{
		{"tiny", 64, [4]int{1, 1, 4, 1}, [4]int{64, 104, 128, 224}},
		{"small", 72, [4]int{1, 1, 7, 2}, [4]int{64, 128, 128, 240}},
		{"base", 120, [4]int{1, 1, 7, 2}, [4]int{96, 128, 168, 336}},
		{"large", 144, [4]int{1, 1, 8, 2}, [4]int{128, 192, 256, 360}},
	} {
		o := RDNet{Stem: v.stem}
		for i, n := range v.stages {
			for j := range n {
				o.Stages = append(o.Stages, RDNetStage{Blocks: 3, Growth: v.growth[i], Halve: i > 0 && j == 0, Excite: i > 1})
			}
		}
		imageNet(nn.Architecture{
			Name:          "rdnet_" + v.name,
			Family:        "rdnet",
			Summary:       "RDNet-" + v.name + ", with timm's names",
			Reference:     "Kim, Heo, Han, DenseNets reloaded: paradigm shift beyond ResNets and ViTs, 2024",
			MinSize:       32,
			Resize:        248,
			Interpolation: bicubic,
			Block:         `^(stem|dense_stages\.\d+)\.`,
			Init:          rdNetInit,
			Build:         o.Build,
		})
	}
}

// rdNetInit are the initial values: convolutions by their inputs.
func rdNetInit(p nn.Param) nn.Init {
	switch {
	case len(p.Shape) == 4:
		return nn.Init{Distribution: nn.Normal, Scale: math.Sqrt(2 / float64(p.Shape[1:].Size()))}
	case p.Name == "head.fc.bias":
		return nn.Init{}
	}
	return p.Init
}

// RDNet are the options of a DenseNet with ConvNeXt's blocks.
type RDNet struct {
	Stem       int // channels of patches of 4×4 pixels; timm's num_init_features
	Stages     []RDNetStage
	LayerScale float64 // initial factor of the channels that a block makes; 0 means 1e-6; timm's ls_init_value
}

// RDNetStage are the blocks of a stage. Before each but the first half of the channels remain.
type RDNetStage struct {
	Blocks int  // timm's num_blocks_list
	Growth int  // channels that a block makes; timm's growth_rates
	Halve  bool // height and width of images, before the stage; timm's is_downsample_block
	Excite bool // blocks scale their channels by a gate of these; timm's block_type "BlockESE"
}

// Build adds the layers to b.
func (o RDNet) Build(builder *nn.Builder, x *G.Node) *G.Node {
	b := layer{builder}
	b.options("RDNet", o).least(2, "Stem").least(0, "LayerScale").
		that(len(o.Stages) > 0 && !o.Stages[0].Halve, "Stages", "some, of which the first does not halve images")
	least, all := 4, 0
	for i, s := range o.Stages {
		b.options(fmt.Sprintf("RDNet.Stages[%d]", i), s).least(1, "Blocks", "Growth")
		if all += s.Blocks; s.Halve {
			least = min(2*least, mostCount)
		}
	}
	if !b.atLeast(x, least) {
		return nil
	}
	x = b.Conv("stem.0", x, nn.Conv{Filters: o.Stem, Kernel: 4, Stride: 4, Bias: true})
	x = b.pixelNorm("stem.1", x)
	done := 0
	for i, s := range o.Stages {
		name, blocks := fmt.Sprintf("dense_stages.%d", i), 0
		if i > 0 && b.Err() == nil {
			half := x.Shape()[1] / 16 * 8
			b.options("RDNet", o).that(half > 0, "Stages", "such that channels remain")
			conv := nn.Conv{Filters: half, Kernel: 1, Bias: true}
			if s.Halve {
				conv.Kernel, conv.Stride = 2, 2
			}
			x = b.Conv(name+".1", b.pixelNorm(name+".0", x), conv)
			blocks = 2
		}
		for j := range s.Blocks {
			x = o.block(b, fmt.Sprintf("%s.%d.dense_block%d", name, blocks, j), x, s, b.Config().DropPathAt(done, all))
			done++
		}
	}
	x = b.LayerNorm("head.norm", b.GlobalAvgPool("head.global_pool", x), rowEps)
	return b.Linear("head.fc", b.Dropout("head.drop", x, b.Config().Dropout), b.Config().Classes)
}

// block makes channels behind those of x, which it drops with probability drop in Train.
func (o RDNet) block(b layer, name string, x *G.Node, s RDNetStage, drop float64) *G.Node {
	if b.Err() != nil {
		return nil
	}
	gamma, c := b.vector(name+".gamma", s.Growth, cmp.Or(o.LayerScale, 1e-6)), x.Shape()[1]
	part := func(i int) string { return fmt.Sprintf("%s.layers.layers.%d", name, i) }
	y := b.conv(part(0), x, nn.Conv{Filters: c, Kernel: 7, Groups: c, Bias: true})
	y = b.Conv(part(2), b.pixelNorm(part(1), y), nn.Conv{Filters: 4 * c / 8 * 8, Kernel: 1, Bias: true})
	y = b.Conv(part(4), b.GELU(part(3), y), nn.Conv{Filters: s.Growth, Kernel: 1, Bias: true})
	if s.Excite {
		y = b.selfExcite(part(5), ".fc", y, (*nn.Builder).HardSigmoid)
	}
	y = b.StochasticDepth(name+".drop_path", b.Scale(name+".scaled", y, gamma), drop)
	return b.Concat(name+".concat", 1, x, y)
}
