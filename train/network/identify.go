package network

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"onlinerna/internal/parallel"
	"onlinerna/nn"
	"onlinerna/train/statedict"
)

// Identify lists the models whose tensors match those of a weights file by name and shape, for any number of classes.
// The file may lack the last layer and the batch counters. A ResNet with strides stands for those with other layers in
// their place, whose weights are rare.
func Identify(f *statedict.File) []string {
	numbers, extents := 0, map[int]bool{}
	for _, t := range f.Tensors {
		numbers += t.Len()
		for _, n := range t.Shape {
			extents[n] = true
		}
	}
	// A vector may be two or three in the file.
	has := func(width int) bool {
		return width == 0 || extents[width] || width%2 == 0 && extents[width/2] || width%3 == 0 && extents[width/3]
	}
	archs := slices.DeleteFunc(nn.Architectures(), func(a nn.Architecture) bool {
		s, ok := a.Sizes()
		// Positions may be those of smaller images.
		return ok && (len(f.Tensors)+cut < s.Tensors || numbers < (s.Parameters-s.Head)/2 ||
			!has(s.Widths[0]) || !has(s.Widths[1]) || !has(s.Widths[2]))
	})
	of := make([]bool, len(archs))
	parallel.For(len(archs), parallel.Cores(), func(_, i int) { of[i] = fits(f, archs[i]) })
	var names []string
	for i, a := range archs {
		if of[i] {
			names = append(names, a.Name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		plain := unsmoothed(name)
		return plain != name && slices.Contains(names, plain)
	})
}

// cut is how many tensors fewer than a model's a file may have: the weight and the bias of a head's queries, keys and
// values may be two tensors.
const cut = 2

// outlined is a model's outline and the names of the parameters of its last layer.
type outlined struct {
	*nn.Model
	head []string
}

// outlines caches those of outline by name.
var outlines sync.Map

// outline is that of an architecture's model with default options, or nil if it cannot be built.
func outline(a nn.Architecture) *outlined {
	if o, ok := outlines.Load(a.Name); ok {
		return o.(*outlined)
	}
	var o *outlined
	if m, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval}); err == nil {
		o = &outlined{m.Outline(), Head(m)}
	}
	outlines.Store(a.Name, o)
	return o
}

// fits reports whether a file's tensors are those of a net.
func fits(f *statedict.File, a nn.Architecture) bool {
	m := outline(a)
	if m == nil || len(f.Tensors)+cut < len(m.Params)-len(m.head) { // renaming takes longer
		return false
	}
	g := within(f, m.Model)
	conv := slices.IndexFunc(m.Params, func(p nn.Param) bool { return len(p.Shape) == 4 }) // tokens may be before it
	if conv < 0 {
		return isOf(g, m)
	}
	first := m.Params[conv]
	if t, ok := g.Lookup(first.Name); ok && len(t.Shape) == 4 && t.Shape[1] != first.Shape[1] {
		// The pixels of a square may be channels of the first convolution.
		channels := t.Shape[1] * m.Config.Channels / first.Shape[1]
		other, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval, Channels: channels})
		if err != nil {
			return false
		}
		m = &outlined{other, Head(other)}
	}
	return isOf(g, m)
}

// Others is the part of an error that names the models, other than the given one, whose tensors a file has; "" for none.
func Others(f *statedict.File, model string) string {
	names := Identify(f)
	if len(names) == 0 || slices.Contains(names, unsmoothed(model)) {
		return ""
	}
	return fmt.Sprintf(", as their tensors are those of %s: give that model, or other weights", strings.Join(names, " or "))
}

// isOf reports whether a file's tensors are those of a model, except for the size of the last layer.
func isOf(f *statedict.File, m *outlined) bool {
	known := 0
	for _, e := range m.StateDict() {
		t, ok := f.Lookup(e.Name)
		switch {
		case ok:
			known++
		case e.Kind == nn.BatchesTracked || e.Kind == nn.Buffer || e.Shared || slices.Contains(m.head, e.Name):
			continue
		default:
			return false
		}
		g, other := gridsOf(m.Model, e, t.Shape)
		same := alike(t.Shape, e.Shape) || other && g.from == g.to
		if slices.Contains(m.head, e.Name) { // the first dimension is the number of classes
			same = len(t.Shape) == len(e.Shape) && slices.Equal(t.Shape[1:], e.Shape[1:])
		}
		if !same {
			return false
		}
	}
	return known == len(f.Tensors)
}
