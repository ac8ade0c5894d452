package zoo_test

import (
	"testing"

	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/nn/zoo"
)

var bottle = zoo.ByobStage{Kind: "bottle", Blocks: 1, Out: 8, Stride: 2, Ratio: 1}

func byob(change func(o *zoo.ByobNet, s *zoo.ByobStage)) zoo.ByobNet {
	o := zoo.ByobNet{Stem: []int{8}, Shortcut: "conv1x1", Stages: []zoo.ByobStage{bottle}}
	change(&o, &o.Stages[0])
	return o
}

func csp(change func(o *zoo.CspNet, s *zoo.CspStage)) zoo.CspNet {
	o := zoo.CspNet{Stem: []int{8}, StemStride: 2, Kind: "csp", Block: "dark",
		Stages: []zoo.CspStage{{Blocks: 1, Out: 16, Stride: 2, Block: .5, Bottle: 1}}}
	change(&o, &o.Stages[0])
	return o
}

func init() {
	one := [4]int{1, 1, 1, 1}
	eights := [4]int{8, 8, 8, 8}
	entry := []zoo.XceptionStage{{Out: 32, Stride: 2}}
	small = append(small, []struct {
		o    buildable
		size int
	}{
		{zoo.ConvNeXt{Blocks: one, Width: 16, Timm: true, Stem: "overlap", NormFirst: true}, 32},
		{zoo.ConvNeXt{Blocks: one, Width: 8, Timm: true, SimpleNorm: true, Stem: "overlap_act", Hidden: 8}, 32},
		{zoo.VoVNet{Stem: [3]int{8, 8, 8}, Inner: eights, Channels: eights, Blocks: one, Layers: 1, Depthwise: true}, 29},
		{zoo.HRNet{First: 1, FirstWidth: 8, Blocks: 1, Width: 4, Modules: [3]int{1, 1, 1}, Narrow: 8}, 0},
		{zoo.DLA{Levels: [6]int{1, 1, 1, 2, 1, 1}, Channels: [6]int{8, 8, 8, 8, 8, 8}, Groups: 2, GroupWidth: 32,
			Scale: 2}, 32},
		{zoo.DPN{Small: true, Stem: 8, Inner: 8, Groups: 4, Blocks: one, Growth: eights}, 1},
		{zoo.XceptionAligned{Entry: entry, Middle: 1, Narrow: 16}, 1},
		{byob(func(o *zoo.ByobNet, _ *zoo.ByobStage) { o.Attention, o.Last = "gca", 8 }), 1},
		{byob(func(o *zoo.ByobNet, s *zoo.ByobStage) {
			s.Kind, o.Attention, o.StemPlain, o.Stem = "edge", "eca", 1, []int{8, 8}
		}), 1},
		{zoo.MobileOne{Stem: 8, First: 8, Blocks: one, Channels: eights, Branches: 2, Excite: one}, 1},
		{csp(func(o *zoo.CspNet, _ *zoo.CspStage) { o.Excite = .5 }), 1},
		{zoo.ReXNet{Blocks: []int{1, 1, 1}, First: 8, Growth: 8, Width: 1, Divisor: 1, Excite: .1}, 1},
		{zoo.InceptionNeXt{Blocks: one, Width: 8, Band: 5, Share: .25}, 32},
		{zoo.HGNet{First: []int{8, 8}, Last: 8,
			Stages: []zoo.HGStage{{Inner: 8, Out: 8, Blocks: 1, Layers: 1, Kernel: 3}}}, 1},
		{zoo.RegNet{Depth: 6, Start: 16, Slope: 12.5, Factor: 2.2, GroupWidth: 8, Timm: true, SiLU: true,
			Linear: true, Last: 8}, 1},
	}...)
}

// Options of the convolutional nets that do not fit are refused by name.
func TestConvNetOptions(t *testing.T) {
	next := zoo.ConvNeXt{Blocks: [4]int{1, 1, 1, 1}, Width: 8}
	stem, hidden, simple := next, next, next
	stem.Stem, stem.Timm = "deep", true
	hidden.Hidden = 8
	simple.SimpleNorm, simple.NormFirst, simple.Timm = true, true, true
	regnet := zoo.RegNet{Depth: 6, Start: 16, Slope: 12.5, Factor: 2.2, GroupWidth: 8, Linear: true}
	for _, c := range []struct {
		o    buildable
		want string
	}{
		{stem, `zoo.ConvNeXt.Stem is "deep": must be "", "overlap", "overlap_tiered" or "overlap_act"`},
		{hidden, "zoo.ConvNeXt.Hidden is 8: must be 0 with NormFirst or without Timm"},
		{simple, "zoo.ConvNeXt.NormFirst is true: must be false with SimpleNorm"},
		{regnet, "zoo.RegNet.Linear is true: must be false without Timm"},
		{zoo.DLA{Levels: [6]int{1, 1, 9, 1, 1, 1}, Channels: [6]int{8, 8, 8, 8, 8, 8}},
			"zoo.DLA.Levels is [1 1 9 1 1 1]: must be at most 8 for trees"},
		{zoo.DPN{Stem: 8, Inner: 9, Groups: 4, Blocks: [4]int{1, 1, 1, 1}, Growth: [4]int{1, 1, 1, 1}},
			"zoo.DPN.Inner is 9: must be divisible by Groups, which is 4"},
		{zoo.HRNet{First: 1, FirstWidth: 8, Blocks: 1, Width: 4, Modules: [3]int{1, 1, 1}, Narrow: 33},
			"zoo.HRNet.Narrow is 33: must be at most 32"},
		{zoo.XceptionAligned{Middle: 1}, "zoo.XceptionAligned.Entry is []: must be at least one"},
		{zoo.MobileOne{Stem: 8, First: 8, Blocks: [4]int{1, 1, 1, 1}, Channels: [4]int{8, 8, 8, 8}, Branches: 65},
			"zoo.MobileOne.Branches is 65: must be at most 64"},
		{byob(func(o *zoo.ByobNet, _ *zoo.ByobStage) { o.Attention = "bat" }),
			`zoo.ByobNet.Attention is "bat": must be "se", "gca", "eca" or ""`},
		{byob(func(_ *zoo.ByobNet, s *zoo.ByobStage) { s.Group = 3 }),
			"zoo.ByobNet.Stages.Group is 3: must be a divisor of 8 channels"},
		{byob(func(o *zoo.ByobNet, _ *zoo.ByobStage) { o.AttentionPool = true }),
			"layer head: 8 channels are not divisible by 64, the elements of a head"},
		{csp(func(o *zoo.CspNet, _ *zoo.CspStage) { o.Kind = "cs2" }),
			`zoo.CspNet.Kind is "cs2": must be "csp", "cs3" or "dark"`},
		{csp(func(_ *zoo.CspNet, s *zoo.CspStage) { s.Bottle = 0 }), "zoo.CspNet.Stages[0].Bottle is 0: must be above 0"},
		{zoo.ReXNet{Blocks: []int{1, 1, 1, 1, 1, 1, 1}, First: 8, Width: 1, Divisor: 1},
			"zoo.ReXNet.Blocks is [1 1 1 1 1 1 1]: must be of 6 stages at most"},
		{zoo.InceptionNeXt{Blocks: [4]int{1, 1, 1, 1}, Width: 8, Band: 4, Share: .25},
			"zoo.InceptionNeXt.Band is 4: must be odd and below 1000"},
	} {
		fails(t, c.o, 64, c.want)
	}
}

// Nets whose ε differ from their families' have them in all normalisations, which the shapes of their tensors do not
// show.
func TestConvNetEps(t *testing.T) {
	for name, want := range map[string]float64{"convnext_xxlarge": 1e-5, "convnext_xlarge": 1e-6, "dpn92": 1e-3,
		"xception65": 1e-3, "xception71": 1e-3, "xception41p": 1e-5, "xception65p": 1e-3} {
		m, err := nn.Build(name, nn.Config{Batch: 1, Mode: nn.Eval})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, n := range m.Graph.AllNodes() {
			o, ok := n.Op().(*nn.Op)
			if !ok {
				continue
			}
			eps := want
			switch o := o.Op().(type) {
			case op.LayerNorm:
				eps = o.Eps
				found++
			case op.BatchNorm:
				eps = o.Eps
				found++
			}
			if eps != want {
				t.Errorf("%s: %s has ε = %g, want %g", name, o.Layer(), eps, want)
			}
		}
		if found < 40 {
			t.Errorf("%s has %d normalisations", name, found)
		}
	}
}

// timm's RegNets drop branches and features, torchvision's do not.
func TestRegNetDrops(t *testing.T) {
	for name, want := range map[string]bool{"regnety_002": true, "regnet_y_400mf": false} {
		m, err := nn.Build(name, nn.Config{Batch: 2, Size: 32, DropPath: .2, Dropout: .2})
		if err != nil {
			t.Fatal(err)
		}
		if m.StochasticDepth != want || m.Dropout != want {
			t.Errorf("%s drops branches: %t, and features: %t, want %t", name, m.StochasticDepth, m.Dropout, want)
		}
	}
}
