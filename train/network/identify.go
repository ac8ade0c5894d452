package network

import (
	"slices"
	"sync"

	"onlinerna/nn"
	"onlinerna/train/statedict"
)

// Identify lists the models whose tensors those of a weights file are, by names and shapes, whatever the number of classes. A file may lack the
// last layer, and counters of batches.
func Identify(f *statedict.File) []string {
	var names []string
	for _, a := range nn.Architectures() {
		m := plain(a)
		if m == nil {
			continue
		}
		if t, ok := within(f, m).Lookup(m.Params[0].Name); ok && len(t.Shape) == 4 && t.Shape[1] != m.Config.Channels {
			other, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval, Channels: t.Shape[1]})
			if err != nil {
				continue
			}
			m = other
		}
		if isOf(within(f, m), m) {
			names = append(names, a.Name)
		}
	}
	return names
}

// plains are the models that plain has built, by name.
var plains sync.Map

// plain is the model of an architecture without options, or nil where there is none.
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

// isOf says whether a file's tensors are those of a model, but for the size of the last layer.
func isOf(f *statedict.File, m *nn.Model) bool {
	head, known := Head(m), 0
	for _, e := range m.StateDict() {
		t, ok := f.Lookup(e.Name)
		switch {
		case ok:
			known++
		case e.Kind == nn.BatchesTracked || slices.Contains(head, e.Name):
			continue
		default:
			return false
		}
		same := slices.Equal(t.Shape, e.Shape)
		if slices.Contains(head, e.Name) { // the first dimension goes by the classes
			same = len(t.Shape) == len(e.Shape) && slices.Equal(t.Shape[1:], e.Shape[1:])
		}
		if !same {
			return false
		}
	}
	return known == len(f.Tensors)
}
