package zoo

import (
	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/op"
)

// grid is an image of tokens, and the stride of those of its rows and columns that are queries.
type grid struct{ height, width, stride int }

// places number the distances, down and across, of each query from each token.
func (g grid) places() (list []int32) {
	apart := func(a, b int) int { return max(a-b, b-a) }
	for i := 0; i < g.height; i += g.stride {
		for j := 0; j < g.width; j += g.stride {
			for k := range g.height * g.width {
				list = append(list, int32(apart(i, k/g.width)*g.width+apart(j, k%g.width)))
			}
		}
	}
	return list
}

// distances adds a table of biases, for each head and distance, and makes biases of scores of it.
func (b layer) distances(name string, heads int, g grid) *G.Node {
	t := g.height * g.width
	table := b.AddParam(nn.Param{Name: name + ".attention_biases", Shape: op.Shape{heads, t}, BiasOrNorm: true})
	places := g.places()
	offsets := b.Constant(name+".offsets", op.Tensor{Shape: op.Shape{len(places)}, Data: places})
	return b.Reshape(name+".bias", b.Gather(name+".by_pair", table, 1, offsets), heads, len(places)/t, t)
}

// headParts cuts rows, whose heads follow each other, into parts of these widths of each head.
func (b layer) headParts(name string, rows *G.Node, heads int, widths ...int) []*G.Node {
	parts := make([]*G.Node, len(widths))
	if b.Err() != nil {
		return parts
	}
	n, all, from := rows.Shape()[0], rows.Shape()[1], 0
	rows = b.Reshape(name+".heads", rows, n, heads, all/heads)
	for i, width := range widths {
		part := name + [...]string{".first", ".second", ".third"}[i]
		parts[i] = b.Reshape(part+".rows", b.Slice(part, rows, 2, from, from+width), n, heads*width)
		from += width
	}
	return parts
}
