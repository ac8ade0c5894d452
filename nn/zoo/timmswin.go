package zoo

import (
	"fmt"

	"onlinerna/nn"
)

func init() {
	tiny := Swin{Width: 96, Blocks: [4]int{2, 2, 6, 2}, Heads: 3}
	small := Swin{Width: 96, Blocks: [4]int{2, 2, 18, 2}, Heads: 3}
	base := Swin{Width: 128, Blocks: [4]int{2, 2, 18, 2}, Heads: 4}
	large := Swin{Width: 192, Blocks: [4]int{2, 2, 18, 2}, Heads: 6}
	for _, v := range []struct {
		name, windows string
		net           Swin
		window, size  int
	}{
		{"tiny", "8", tiny, 8, 256}, {"tiny", "16", tiny, 16, 256},
		{"small", "8", small, 8, 256}, {"small", "16", small, 16, 256},
		{"base", "8", base, 8, 256}, {"base", "16", base, 16, 256}, {"base", "12", base, 12, 192},
		{"base", "12to16_192to", base, 16, 256}, {"base", "12to24_192to", base, 24, 384}, {"large", "12", large, 12, 192},
		{"large", "12to16_192to", large, 16, 256}, {"large", "12to24_192to", large, 24, 384},
	} {
		o := v.net
		o.V2, o.Window = true, v.window
		name := fmt.Sprintf("swinv2_%s_window%s_%d", v.name, v.windows, v.size)
		if len(v.windows) > 2 {
			name, o.Pretrained = fmt.Sprintf("swinv2_%s_window%s%d", v.name, v.windows, v.size), [4]int{12, 12, 12, 6}
		}
		timmSwins(name, v.size, fmt.Sprintf("Swin V2, %s, windows of %d×%[2]d, with timm's names", v.name, v.window),
			"Liu et al., Swin transformer V2: scaling up capacity and resolution, 2022", o)
	}
	for _, v := range []struct {
		name         string
		net          Swin
		window, size int
	}{{"base", base, 12, 384}, {"large", large, 7, 224}, {"large", large, 12, 384}} {
		v.net.Window = v.window
		timmSwins(fmt.Sprintf("swin_%s_patch4_window%d_%d", v.name, v.window, v.size), v.size,
			fmt.Sprintf("Swin, %s, windows of %d×%[2]d, with timm's names", v.name, v.window),
			"Liu et al., Swin transformer: hierarchical vision transformer using shifted windows, 2021", v.net)
	}
	for _, v := range []struct {
		name    string
		blocks  int
		windows [4]int
	}{{"tiny", 6, [4]int{7, 7, 14, 7}}, {"small", 18, [4]int{14, 14, 14, 7}}, {"base", 30, [4]int{7, 7, 14, 7}}} {
		o := tiny
		o.Blocks[2], o.Windows = v.blocks, v.windows
		timmSwins("swin_s3_"+v.name+"_224", 224, "Swin of a searched space, "+v.name+", with timm's names",
			"Chen et al., Searching the search space of vision transformer, 2021", o)
	}
}

// timmSwins registers a net with timm's names.
func timmSwins(name string, size int, summary, reference string, o Swin) {
	o.Timm = true
	a := nn.Architecture{
		Name:          name,
		Family:        "swin",
		Summary:       summary,
		Reference:     reference,
		Size:          size,
		MinSize:       32,
		DropPath:      .1,
		Resize:        size * 10 / 9,
		Interpolation: bicubic,
		Block:         `^(layers\.\d\.blocks\.\d+)\.`,
		Init:          swinInitial,
		Build:         o.Build,
	}
	if size == 384 {
		a.Resize = size
	}
	if o.V2 {
		a.Init = swinV2Initial
	}
	imageNet(a)
}

// swinNames are the names of parameters and layers; those inside a block follow the block's.
type swinNames struct {
	patches, first, head               string
	stage, merge                       func(i int) string
	block                              func(i, j int) string
	expand, contract                   string
	dropProj, dropExpand, dropContract string
	dropPath1, dropPath2               string
}

var torchvisionSwin = swinNames{
	patches: "features.0.0", first: "features.0.2", head: "head",
	stage:  func(i int) string { return fmt.Sprintf("features.%d", 2*i+1) },
	merge:  func(i int) string { return fmt.Sprintf("features.%d", 2*i) },
	block:  func(i, j int) string { return fmt.Sprintf("features.%d.%d", 2*i+1, j) },
	expand: ".mlp.0", contract: ".mlp.3",
	dropProj: ".attn.dropout", dropExpand: ".mlp.2", dropContract: ".mlp.4",
	dropPath1: ".stochastic_depth", dropPath2: ".mlp.stochastic_depth",
}

var timmSwin = swinNames{
	patches: "patch_embed.proj", first: "patch_embed.norm", head: "head.fc",
	stage:  func(i int) string { return fmt.Sprintf("layers.%d", i) },
	merge:  func(i int) string { return fmt.Sprintf("layers.%d.downsample", i) },
	block:  func(i, j int) string { return fmt.Sprintf("layers.%d.blocks.%d", i, j) },
	expand: ".mlp.fc1", contract: ".mlp.fc2",
	dropProj: ".attn.proj_drop", dropExpand: ".mlp.drop1", dropContract: ".mlp.drop2",
	dropPath1: ".drop_path1", dropPath2: ".drop_path2",
}

// names are the net's.
func (o Swin) names() swinNames {
	switch {
	case o.CR:
		return crSwin
	case o.Timm:
		return timmSwin
	}
	return torchvisionSwin
}
