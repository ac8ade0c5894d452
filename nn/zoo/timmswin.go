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
		{"base", "8", base, 8, 256}, {"base", "16", base, 16, 256},
		{"base", "12to16_192to", base, 16, 256}, {"base", "12to24_192to", base, 24, 384},
		{"large", "12to16_192to", large, 16, 256}, {"large", "12to24_192to", large, 24, 384},
	} {
		o := v.net
		o.V2, o.Timm, o.Window = true, true, v.window
		name, resize := fmt.Sprintf("swinv2_%s_window%s_%d", v.name, v.windows, v.size), v.size*10/9
		if len(v.windows) > 2 {
			name, o.Pretrained = fmt.Sprintf("swinv2_%s_window%s%d", v.name, v.windows, v.size), [4]int{12, 12, 12, 6}
		}
		if v.size == 384 {
			resize = v.size
		}
		imageNet(nn.Architecture{
			Name:          name,
			Family:        "swin",
			Summary:       fmt.Sprintf("Swin V2, %s, windows of %d×%[2]d, with timm's names", v.name, v.window),
			Reference:     "Liu et al., Swin transformer V2: scaling up capacity and resolution, 2022",
			Size:          v.size,
			MinSize:       32,
			DropPath:      .1,
			Resize:        resize,
			Interpolation: bicubic,
			Block:         `^(layers\.\d\.blocks\.\d+)\.`,
			Init:          swinInitial,
			Build:         o.Build,
		})
	}
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
	if o.Timm {
		return timmSwin
	}
	return torchvisionSwin
}
