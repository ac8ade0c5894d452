package zoo

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
)

func init() {
	for _, v := range []struct {
		name   string
		blocks int // of the third stage
	}{{"tiny_ns", 6}, {"small", 18}, {"small_ns", 18}} {
		size, _, norms := strings.Cut(v.name, "_")
		net := Swin{Width: 96, Blocks: [4]int{2, 2, v.blocks, 2}, Heads: 3, V2: true, Timm: true, CR: true,
			StageNorm: norms, BiasDropout: .125}
		summary := "Swin V2 of Christoph Reich, " + size + ", with timm's names"
		if norms {
			summary = strings.Replace(summary, ", with", " with normalised stages, with", 1)
		}
		imageNet(nn.Architecture{
			Name:          "swinv2_cr_" + v.name + "_224",
			Family:        "swin",
			Summary:       summary,
			Reference:     "Liu et al., Swin transformer V2: scaling up capacity and resolution, 2022",
			MinSize:       32,
			Resize:        248,
			Interpolation: bicubic,
			Block:         `^(stages\.\d\.blocks\.\d+)\.`,
			Init:          crInitial,
			Build:         net.Build,
		})
	}
}

var crSwin = swinNames{
	patches: "patch_embed.proj", first: "patch_embed.norm", head: "head.fc",
	stage:  func(i int) string { return fmt.Sprintf("stages.%d", i) },
	merge:  func(i int) string { return fmt.Sprintf("stages.%d.downsample", i) },
	block:  func(i, j int) string { return fmt.Sprintf("stages.%d.blocks.%d", i, j) },
	expand: ".mlp.fc1", contract: ".mlp.fc2",
	dropProj: ".attn.proj_drop", dropExpand: ".mlp.drop1", dropContract: ".mlp.drop2",
	dropPath1: ".drop_path1", dropPath2: ".drop_path2",
}

// crAttention is attention for rows x of windows, whose scores are cosines times a trained factor for each head.
func (o Swin) crAttention(b layer, name string, x *G.Node, w window) *G.Node {
	if b.Err() != nil {
		return nil
	}
	s := x.Shape()
	scale := b.vector(name+".logit_scale", w.heads, math.Log(10))
	y := b.cosines(name, b.Linear(name+".qkv", x, 3*s[1]), scale, w.heads)
	y = b.selfAttention(name+".attention", y, s[0]/(w.Rows*w.Columns),
		nn.Attention{Heads: w.heads, Scale: 1, Dropout: w.dropout}, o.pairBias(b, name, w))
	y = b.Linear(name+".proj", y, s[1])
	b.declared(name, "logit_scale", "qkv", "proj", "meta_mlp")
	return y
}

// pairBias is the bias of scores by a biasNet for each pair of tokens, whose elements are dropped pair by pair.
func (o Swin) pairBias(b layer, name string, w window) *G.Node {
	var offsets []float64
	for i := range w.Rows * w.Columns {
		for j := range w.Rows * w.Columns {
			offsets = append(offsets, logOffset(i/w.Columns-j/w.Columns), logOffset(i%w.Columns-j%w.Columns))
		}
	}
	x := b.biasNet(name+".meta_mlp", offsets, w.heads, cmp.Or(o.BiasHidden, 384), o.BiasDropout, false)
	return b.biasByHead(name, b.Permute(name+".by_head", x, 1, 0), w)
}

// crInitial is the initial distribution of a parameter.
func crInitial(p nn.Param) nn.Init {
	if resNorm.MatchString(p.Name) {
		return nn.Init{}
	}
	return torchInit(p)
}
