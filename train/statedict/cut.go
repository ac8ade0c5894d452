package statedict

import (
	"fmt"
	"slices"
	"strings"
)

// maxCuts bounds the parts of a tensor: a file may have names of any length.
const maxCuts = 8

// Cut is a view of the file where a tensor "a=1/3,b=2-3/3" is two: a has the first third of its rows, b the others. A
// tensor whose rows do not divide, that lies in several pieces, or of which a part has another tensor's name, stays. It
// shares the open file.
func (f *File) Cut() *File {
	if !slices.ContainsFunc(f.Tensors, func(t Tensor) bool { return strings.Contains(t.Name, "=") }) {
		return f
	}
	g := f.view(len(f.Tensors))
	for _, t := range f.Tensors {
		parts := t.cut()
		if parts == nil || slices.ContainsFunc(parts, func(p Tensor) bool {
			_, own := f.index[p.Name]
			_, made := g.index[p.Name]
			return own || made
		}) {
			parts = []Tensor{t}
		}
		for _, p := range parts {
			g.append(p)
		}
	}
	return g
}

// cut are the parts that the name of t asks for, nil if it does not, or there are none.
func (t Tensor) cut() (parts []Tensor) {
	if len(t.Shape) == 0 || len(t.pieces) != 1 || strings.Count(t.Name, ",") >= maxCuts {
		return nil
	}
	whole := t.pieces[0]
	for part := range strings.SplitSeq(t.Name, ",") {
		name, span, _ := strings.Cut(part, "=")
		var from, to, n int
		if _, err := fmt.Sscanf(span, "%d-%d/%d", &from, &to, &n); err != nil {
			if _, err := fmt.Sscanf(span, "%d/%d", &from, &n); err != nil {
				return nil
			}
			to = from
		}
		twice := slices.ContainsFunc(parts, func(p Tensor) bool { return p.Name == name })
		if name == "" || twice || from < 1 || to < from || to > n || t.Shape[0]%n != 0 {
			return nil
		}
		row := t.Shape[0] / n
		x, p := t, whole
		x.Name, x.Shape = name, slices.Clone(t.Shape)
		x.Shape[0] = (to - from + 1) * row
		step := product(t.Shape[1:])
		if p.strides != nil {
			step = p.strides[0]
		}
		p.off += int64((from-1)*row*step) * int64(t.DType.Size())
		if p.size != nil {
			p.size = x.Shape
		}
		x.pieces = []piece{p}
		parts = append(parts, x)
	}
	return parts
}
