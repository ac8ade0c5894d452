package cpu_test

import (
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// Training with attention, of the tokens of a sequence and between different rows, takes memory that grows with the
// tokens, and not with their square, in both precisions.
func TestAttentionMemory(t *testing.T) {
	const heads, width = 4, 32
	net := func(attention func(b *nn.Builder, x *G.Node, tokens int) *G.Node) nn.Architecture {
		return nn.Architecture{Name: "attention", Size: 64, Channels: 3, Classes: 10,
			Build: func(b *nn.Builder, x *G.Node) *G.Node {
				x = b.Conv("patches", x, nn.Conv{Filters: width, Kernel: 2, Stride: 2})
				tokens := x.Shape()[2] * x.Shape()[3]
				x = attention(b, b.Reshape("rows", b.Apply("tokens", op.Tokens{}, x), tokens, width), tokens)
				return b.Linear("head", b.Reduce("mean", x, op.Mean, 0), b.Config().Classes)
			}}
	}
	self := net(func(b *nn.Builder, x *G.Node, _ int) *G.Node {
		return b.SelfAttention("attention", b.Linear("qkv", x, 3*width), 1, heads)
	})
	cross := net(func(b *nn.Builder, x *G.Node, tokens int) *G.Node {
		q := b.Reshape("queries", b.Linear("q", x, width), 1, tokens, width)
		k := b.Reshape("keys", b.Linear("k", x, width), 1, tokens, width)
		return b.Reshape("out", b.Apply("attention", op.Attention{Scale: .25}, q, k, k), tokens, width)
	})
	arena := func(a nn.Architecture, bfloat16 bool, size int) int {
		d, err := cpu.New(cpu.Options{Threads: 2, Level: at.String(), BFloat16: bfloat16})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		m, err := a.Model(nn.Config{Batch: 1, Size: size, Mode: nn.Train})
		if err != nil {
			t.Fatal(err)
		}
		keep := G.Nodes{m.Loss}
		for _, p := range m.Params {
			if p.Grad != nil {
				keep = append(keep, p.Grad)
			}
		}
		p, err := machine.New(m.Graph, machine.Config{Device: d, Keep: keep})
		if err != nil {
			t.Fatal(err)
		}
		return p.Stats().Arena
	}
	for _, bfloat16 := range []bool{false, true} {
		for i, a := range []nn.Architecture{self, cross} {
			few, many := arena(a, bfloat16, 64), arena(a, bfloat16, 128) // 1,024 and 4,096 tokens
			if scores := 4 * 4096 * 4096; many >= scores || many > 5*few {
				t.Errorf("net %d, bfloat16 %v: %d bytes for 1,024 tokens, %d for 4,096", i, bfloat16, few, many)
			}
		}
	}
}
