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
// The file may lack the last layer and the batch counters.
func Identify(f *statedict.File) []string {
	var names []string
	for _, a := range nn.Architectures() {
		m := plain(a)
		const cut = 2                                                   // tensors that are two of the model's: the weight and the bias of a head's queries, keys and values
		if m == nil || len(f.Tensors)+cut < len(m.Params)-len(m.head) { // renaming takes longer
			continue
		}
		g := within(f, m.Model)
		if t, ok := g.Lookup(m.Params[0].Name); ok && len(t.Shape) == 4 && t.Shape[1] != m.Config.Channels {
			other, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval, Channels: t.Shape[1]})
			if err != nil {
				continue
			}
			m = &plainModel{other, Head(other)}
		}
		if isOf(g, m) {
			names = append(names, a.Name)
		}
	}
	return names
}

// Others is the part of an error that names the models, other than the given one, whose tensors a file has; "" for none.
func Others(f *statedict.File, model string) string {
	names := Identify(f)
	if len(names) == 0 || slices.Contains(names, model) {
		return ""
	}
	return fmt.Sprintf(", as their tensors are those of %s: give that model, or other weights", strings.Join(names, " or "))
}

// plains caches the models of plain by name.
var plains sync.Map

// plainModel is a model and the names of the parameters of its last layer.
type plainModel struct {
	*nn.Model
	head []string
}

// plain is an architecture's model with default options, or nil if it cannot be built.
func plain(a nn.Architecture) *plainModel {
	if m, ok := plains.Load(a.Name); ok {
		return m.(*plainModel)
	}
	var p *plainModel
	if m, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval}); err == nil {
		p = &plainModel{m, Head(m)}
	}
	plains.Store(a.Name, p)
	return p
}

// isOf reports whether a file's tensors are those of a model, except for the size of the last layer.
func isOf(f *statedict.File, m *plainModel) bool {
	known := 0
	for _, e := range m.StateDict() {
		t, ok := f.Lookup(e.Name)
		switch {
		case ok:
			known++
		case e.Kind == nn.BatchesTracked || e.Kind == nn.Buffer || slices.Contains(m.head, e.Name):
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
