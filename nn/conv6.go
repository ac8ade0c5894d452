package nn

import (
	"fmt"

	G "gorgonia.org/gorgonia"
)

func init() {
	Register(Architecture{
		Name:      "conv6",
		Family:    "conv6",
		Summary:   "six 3×3 convolutions with batch normalisation, for small images",
		Reference: "a baseline of this project",
		Size:      32,
		Channels:  3,
		Classes:   10,
		Build:     conv6,
	})
}

func conv6(b *Builder, x *G.Node) *G.Node {
	for i, filters := range []int{32, 48, 64, 64, 96, 128} {
		x = b.Conv(fmt.Sprintf("conv%d", i+1), x, Conv{Filters: filters, Kernel: 3, Stride: 2 - i%2, Pad: 1})
		x = b.BatchNorm(fmt.Sprintf("bn%d", i+1), x, 1)
		x = b.ReLU(fmt.Sprintf("relu%d", i+1), x)
	}
	return b.Linear("fc", b.GlobalAvgPool("avgpool", x), b.Config().Classes)
}
