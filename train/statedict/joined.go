package statedict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Joined is a view of the file where tensors name@1/n to name@n/n, of one type and shape, are the tensor name: they lie
// behind each other along its first dimension. It shares the open file.
func (f *File) Joined() *File {
	if !slices.ContainsFunc(f.Tensors, func(t Tensor) bool { _, n := partOf(t.Name); return n > 1 }) {
		return f
	}
	type parts struct {
		of string
		n  int
	}
	joined := map[parts]bool{} // those that were seen
	g := f.view(len(f.Tensors))
	for _, t := range f.Tensors {
		name, n := partOf(t.Name)
		p := parts{name, n}
		done, seen := joined[p]
		if n > 1 && !seen {
			if _, taken := g.Lookup(name); !taken { // by another number of parts
				var whole Tensor
				if whole, joined[p] = f.join(name, n); joined[p] {
					t = whole
				}
			}
		}
		if !done {
			g.append(t)
		}
	}
	return g
}

// partOf is the name of the tensor that one is a part of, and the number of parts; 0 if it is no part.
func partOf(name string) (whole string, n int) {
	whole, numbers, _ := strings.Cut(name, "@")
	part, of, _ := strings.Cut(numbers, "/")
	i, _ := strconv.Atoi(part)
	n, _ = strconv.Atoi(of)
	if whole == "" || i < 1 || i > n || numbers != fmt.Sprintf("%d/%d", i, n) {
		return "", 0
	}
	return whole, n
}

// join puts n tensors together, if they are there and alike.
func (f *File) join(name string, n int) (whole Tensor, ok bool) {
	if _, taken := f.Lookup(name); taken {
		return whole, false
	}
	var rows []int // the shape of each
	for i := range n {
		t, ok := f.Lookup(fmt.Sprintf("%s@%d/%d", name, i+1, n))
		if i == 0 {
			whole = Tensor{Name: name, DType: t.DType, Shape: slices.Clone(t.Shape)}
			rows = t.Shape
		}
		if !ok || len(rows) == 0 || t.DType != whole.DType || !slices.Equal(t.Shape, rows) {
			return whole, false
		}
		for _, p := range t.pieces {
			if p.size == nil {
				p.at, p.size = make([]int, len(t.Shape)), t.Shape
			}
			p.at = slices.Clone(p.at)
			p.at[0] += i * rows[0]
			whole.pieces = append(whole.pieces, p)
		}
	}
	whole.Shape[0] = n * rows[0]
	return whole, true
}
