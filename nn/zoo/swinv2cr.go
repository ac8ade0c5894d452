package zoo

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
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

// pairBias is the bias of scores by a net that takes the offset between two tokens, for each pair: elements of its
// hidden layer are dropped pair by pair.
func (o Swin) pairBias(b layer, name string, w window) *G.Node {
	t, mlp, hidden := w.Rows*w.Columns, name+".meta_mlp", cmp.Or(o.BiasHidden, 384)
	offsets := op.New(op.T(op.Float64, t*t, 2))
	for i := range t * t {
		from, to := i/t, i%t
		copy(offsets.Data.([]float64)[2*i:], []float64{logOffset(from/w.Columns - to/w.Columns),
			logOffset(from%w.Columns - to%w.Columns)})
	}
	x := b.ReLU(mlp+".act", b.Linear(mlp+".fc1", b.Constant(mlp+".offsets", offsets), hidden))
	x = b.Dropout(mlp+".drop1", b.Reshape(mlp+".row", x, 1, t*t*hidden), o.BiasDropout)
	x = b.Linear(mlp+".fc2", b.Reshape(mlp+".rows", x, t*t, hidden), w.heads)
	return b.biasByHead(name, b.Permute(name+".by_head", x, 1, 0), w)
}

// crInitial is the initial distribution of a parameter.
func crInitial(p nn.Param) nn.Init {
	if resNorm.MatchString(p.Name) {
		return nn.Init{}
	}
	return torchInit(p)
}
