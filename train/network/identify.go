package network

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"onlinerna/nn"
	"onlinerna/train/statedict"
)

// Identify lists the models whose tensors match those of a weights file by name and shape, for any number of classes.
// The file may lack the last layer and the batch counters. A ResNet with strides stands for those with other layers in
// their place, whose weights are rare.
func Identify(f *statedict.File) []string {
	var names []string
	for _, a := range nn.Architectures() {
		m := plain(a)
		if m == nil || len(f.Tensors) < len(m.Params)-len(Head(m)) { // renaming takes longer
			continue
		}
		g := within(f, m)
		if t, ok := g.Lookup(m.Params[0].Name); ok && len(t.Shape) == 4 && t.Shape[1] != m.Config.Channels {
			other, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval, Channels: t.Shape[1]})
			if err != nil {
				continue
			}
			m = other
		}
		if isOf(g, m) {
			names = append(names, a.Name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		plain := unsmoothed(name)
		return plain != name && slices.Contains(names, plain)
	})
}

// Others is the part of an error that names the models, other than the given one, whose tensors a file has; "" for none.
func Others(f *statedict.File, model string) string {
	names := Identify(f)
	if len(names) == 0 || slices.Contains(names, unsmoothed(model)) {
		return ""
	}
	return fmt.Sprintf(", as their tensors are those of %s: give that model, or other weights", strings.Join(names, " or "))
}

// plains caches the models of plain by name.
var plains sync.Map

// plain is an architecture's model with default options, or nil if it cannot be built.
func plain(a nn.Architecture) *nn.Model {
	if m, ok := plains.Load(a.Name); ok {
		return m.(*nn.Model)
	}
	m, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		m = nil
	}
	plains.Store(a.Name, m)
	return m
}

// isOf reports whether a file's tensors are those of a model, except for the size of the last layer.
func isOf(f *statedict.File, m *nn.Model) bool {
	head, known := Head(m), 0
	for _, e := range m.StateDict() {
		t, ok := f.Lookup(e.Name)
		switch {
		case ok:
			known++
		case e.Kind == nn.BatchesTracked || e.Kind == nn.Buffer || slices.Contains(head, e.Name):
			continue
		default:
			return false
		}
		g, other := gridsOf(m, e, t.Shape)
		same := alike(t.Shape, e.Shape) || other && g.from == g.to
		if slices.Contains(head, e.Name) { // the first dimension is the number of classes
			same = len(t.Shape) == len(e.Shape) && slices.Equal(t.Shape[1:], e.Shape[1:])
		}
		if !same {
			return false
		}
	}
	return known == len(f.Tensors)
}
