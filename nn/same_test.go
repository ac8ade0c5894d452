package nn

import (
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
)

// SAME's zeros by hand: a convolution with as many on both sides adds them itself, others follow a pad.
func TestSamePadding(t *testing.T) {
	const (
		even = "conv2d{stride [2 2], pad [0 0], dilation [1 1], groups 1}"
		odd  = "conv2d{stride [2 2], pad [1 1], dilation [1 1], groups 1}"
	)
	for _, c := range []struct {
		size int
		conv Conv
		blur bool
		want []string
		out  int
	}{
		{6, Conv{Kernel: 3, Stride: 2, Pad: 1}, false, []string{"pad{[0 0 0 0], [0 0 1 1]}", even}, 3},
		{7, Conv{Kernel: 3, Stride: 2, Pad: 1}, false, []string{odd}, 4},
		{6, Conv{Kernel: 5, Stride: 2, Pad: 2}, false, []string{"pad{[0 0 1 1], [0 0 2 2]}", even}, 3},
		{6, Conv{Kernel: 3, Stride: 2, Pad: 2, Dilation: 2}, false, []string{"pad{[0 0 1 1], [0 0 2 2]}",
			"conv2d{stride [2 2], pad [0 0], dilation [2 2], groups 1}"}, 3},
		{6, Conv{Kernel: 1, Stride: 2}, false, []string{even}, 3},
		{9, Conv{Kernel: 3, Stride: 3, Pad: 1}, false,
			[]string{"conv2d{stride [3 3], pad [0 0], dilation [1 1], groups 1}"}, 3},
		{8, Conv{Kernel: 3, Stride: 3, Pad: 1}, false, []string{"pad{[0 0 0 0], [0 0 1 1]}",
			"conv2d{stride [3 3], pad [0 0], dilation [1 1], groups 1}"}, 3},
		{1, Conv{Kernel: 3, Stride: 2, Pad: 1}, false, []string{odd}, 1},
		{6, Conv{Kernel: 1, Width: 3, Stride: 2, PadWidth: 1}, false, []string{"pad{[0 0 0 0], [0 0 0 1]}", even}, 3},
		{7, Conv{Kernel: 3, Width: 1, Stride: 2, Pad: 1}, false,
			[]string{"conv2d{stride [2 2], pad [1 0], dilation [1 1], groups 1}"}, 4},
		{6, Conv{Kernel: 1, Width: 5, PadWidth: 2}, false,
			[]string{"conv2d{stride [1 1], pad [0 2], dilation [1 1], groups 1}"}, 6},
		{6, Conv{Kernel: 3, Pad: 1}, false, []string{"conv2d{stride [1 1], pad [1 1], dilation [1 1], groups 1}"}, 6},
		{6, Conv{Kernel: 3, Stride: 2, Pad: 1}, true, []string{"avg_pool", "avg_pool", "pad{[0 0 0 0], [0 0 1 1]}", even}, 3},
	} {
		a := Architecture{Name: "same", Size: c.size, Channels: 16, Classes: 2, SamePadding: true,
			Build: func(b *Builder, x *G.Node) *G.Node {
				c.conv.Filters = 2
				return b.GlobalAvgPool("mean", b.Conv("conv", x, c.conv))
			}}
		m, err := a.Model(Config{Batch: 1, Mode: Eval, FloatInput: true, BlurPool: c.blur})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range m.Graph.AllNodes() {
			o, ok := n.Op().(*Op)
			if !ok || o.Layer() != "conv" {
				continue
			}
			if got = append(got, o.Op().String()); o.Op().Kind() == "avg_pool" {
				got[len(got)-1] = "avg_pool"
			}
			if s := n.Shape(); o.Op().Kind() == "conv2d" && (s[2] != c.out || s[3] != c.out) {
				t.Errorf("%+v of %d pixels gives %v", c.conv, c.size, s)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v of %d pixels is %q, want %q", c.conv, c.size, got, c.want)
		}
	}
}
