package network

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/op"
	"onlinerna/train/statedict"
)

// LoadOptions configure the reading of weights.
type LoadOptions struct {
	// Key selects one of the state dicts in a file of torch.save, such as "model_ema". By default it is found: see
	// [statedict.Open].
	Key string
	// FreshHead keeps the last layer if the file has none, or one of another size or for another task.
	FreshHead bool
}

// Loaded describes the weights that were read.
type Loaded struct {
	Meta
	Found string   // describes the state dict chosen among several; empty if there is one
	Fresh []string // parameters of the last layer that kept their values
	// Resized describes positions that were resized for images of another size, "" without.
	Resized string
	Doubt   string // that the weights are of this net, "" without
}

// LoadWeights is Load without options.
func (n *Network) LoadWeights(path string) (Meta, error) {
	l, err := n.Load(path, LoadOptions{})
	return l.Meta, err
}

// Load reads parameters and statistics of any floating-point type, F64, F32, F16 or BF16, from a file of safetensors or
// of torch.save. The file has the model's names; it may add the prefixes of PyTorch's wrappers, and a prefix that ends
// in a dot, such as Lightning's "model.". Batch counters may be missing. All names, shapes and types are checked before
// anything changes.
func (n *Network) Load(path string, opt LoadOptions) (Loaded, error) {
	f, err := statedict.Open(path, opt.Key)
	if err != nil {
		return Loaded{}, err
	}
	defer f.Close()
	if _, err := f.Verify(); err != nil {
		return Loaded{}, err
	}
	kind, what := f.Contents()
	if kind == statedict.OptimizerState {
		return Loaded{}, fmt.Errorf("%s %s", path, what)
	}
	l := Loaded{Found: f.Found()}
	if l.Meta, err = MetaOf(f); err != nil {
		return l, err
	}
	if err := l.Meaning.Check(n.model.Config.Classes); err != nil && !opt.FreshHead {
		return l, fmt.Errorf("%s: %w", path, err)
	}
	if l.Doubt, err = n.sameNet(f, l.Meta); err != nil {
		return l, fmt.Errorf("%s: %w", path, err)
	}
	file := f
	f = within(f, n.model)
	if opt.FreshHead {
		l.Fresh = n.freshHead(f, l.Meaning)
	}
	if err := n.compare(f, file, l); err != nil && what != "" {
		return l, fmt.Errorf("%s %s: %w", path, what, err)
	} else if err != nil {
		return l, fmt.Errorf("%s: %w", path, err)
	}
	l.Resized = n.resized(f)
	seen := l.Meta
	seen.ImageSize = cmp.Or(seen.ImageSize, n.cfg.Size)
	seen.Published(n.model.Arch)
	n.seen = data.EvalOptions{Resize: seen.ValResize, Interpolation: seen.Interpolation}
	if seen.ImageSize != n.cfg.Size {
		n.seen.Resize = 0 // scale it in proportion to the image size
	}
	return l, n.load(f, l.Fresh)
}

// load reads the tensors that compare has accepted.
func (n *Network) load(f *statedict.File, fresh []string) (err error) {
	halves := map[int]op.Tensor{} // by layer: mean and variance, two tensors in a file
	for _, e := range n.model.StateDict() {
		t, ok := f.Lookup(e.Name)
		switch {
		case slices.Contains(fresh, e.Name), e.Kind == nn.Buffer, e.Shared:
		case e.Kind == nn.Parameter:
			if g, ok := gridsOf(n.model, e, t.Shape); ok {
				err = n.loadPositions(f, t, e, g)
			} else if r, ok := tableOf(e, t.Shape); ok {
				err = n.loadTable(f, t, e, r)
			} else if places, ok := n.classPlace(f, e); ok {
				err = n.loadClass(f, t, places, e)
			} else {
				err = n.loadSlot(f, t, n.Params, n.params[e.Index])
			}
		case e.Kind == nn.BatchesTracked:
			if ok {
				var v []int64
				if v, err = f.Int64s(t); err == nil {
					n.StatsBatches = int(v[0])
				}
			}
		default:
			s := n.stats[e.Index]
			if _, ok := halves[e.Index]; !ok {
				halves[e.Index] = op.New(op.T(op.Float64, s.typ.Shape...))
			}
			err = f.Float64s(t, row(halves[e.Index], int(e.Kind-nn.RunningMean)).([]float64))
			if err == nil && e.Kind == nn.RunningVar {
				err = n.upload(n.Stats, s, halves[e.Index])
			}
		}
		if err != nil {
			return err
		}
	}
	return n.guard.clear(n.Device)
}

// Outputs is the size of the last layer of a model in a weights file, for any number of classes; 0 if the file has
// none.
func Outputs(f *statedict.File, model *nn.Model) int {
	t, ok := within(f, model).Lookup(model.Params[len(model.Params)-1].Name)
	if !ok || len(t.Shape) == 0 {
		return 0
	}
	return t.Shape[0]
}

// within is the part of f under the prefix that most of the model's parameters have, renamed by names.txt. It is f
// itself if it has the model's own names and no others.
func within(f *statedict.File, model *nn.Model) *statedict.File {
	first := model.Params[0].Name
	if _, ok := f.Lookup(first); ok {
		return renamed(f, model, known(f, "", model))
	}
	best, most := "", len(model.Params)/2
	for _, prefix := range outermost(f, "."+first) {
		if n := known(f, prefix+".", model); n > most {
			best, most = prefix+".", n
		}
	}
	if best != "" {
		f = f.Under(best)
	}
	return renamed(f, model, most)
}

const (
	maxPrefixes = 32
	maxPrefix   = 256 // bytes
)

// outermost lists what stands before a suffix in names of tensors, the names with the fewest dots first: a net's own
// prefix comes before those of its blocks. It is bounded, as files may have any number of such names.
func outermost(f *statedict.File, suffix string) (list []string) {
	byDots := map[int][]string{}
	for _, t := range f.Tensors {
		prefix, ok := strings.CutSuffix(t.Name, suffix)
		if !ok || len(prefix) > maxPrefix {
			continue
		}
		if dots := strings.Count(prefix, "."); len(byDots[dots]) < maxPrefixes {
			byDots[dots] = append(byDots[dots], prefix)
		}
	}
	for _, dots := range slices.Sorted(maps.Keys(byDots)) {
		list = append(list, byDots[dots]...)
	}
	return list[:min(len(list), maxPrefixes)]
}

// Head lists the names of the parameters of the layers that make a model's logits.
func Head(model *nn.Model) []string {
	layers := model.Arch.Heads
	if layers == nil {
		last := model.Params[len(model.Params)-1].Name
		layers = []string{last[:max(strings.LastIndexByte(last, '.'), 0)]}
	}
	var names []string
	for _, p := range model.Params {
		if layer := p.Name[:max(strings.LastIndexByte(p.Name, '.'), 0)]; slices.Contains(layers, layer) {
			names = append(names, p.Name)
		}
	}
	return names
}

// freshHead lists the head's parameters if one of them is missing in the file or differs in its number of outputs, or if
// the file's outputs have another meaning.
func (n *Network) freshHead(f *statedict.File, of Meaning) []string {
	head := Head(n.model)
	if of.task() != n.Meaning.task() {
		return head
	}
	for _, e := range n.model.StateDict() {
		if !slices.Contains(head, e.Name) {
			continue
		}
		t, ok := f.Lookup(e.Name)
		if !ok || len(t.Shape) == len(e.Shape) && slices.Equal(t.Shape[1:], e.Shape[1:]) && t.Shape[0] != e.Shape[0] {
			return head
		}
	}
	return nil
}

// alike reports whether shapes are equal but for extents of 1 at either end, or have one extent above 1, the same in
// both: a file may have a scale [C] for [C,1,1], [1,1,1,C] for [C], or positions [T,C] for [1,T,C]. It may also have a
// convolution [O,C,H,W] of whole images for a linear layer [O,C·H·W].
func alike(a, b []int) bool {
	if len(a) == 4 && len(b) == 2 {
		return a[0] == b[0] && a[1]*a[2]*a[3] == b[1]
	}
	trim := func(s []int) []int {
		for len(s) > 1 && s[len(s)-1] == 1 {
			s = s[:len(s)-1]
		}
		return s
	}
	if len(a) == 2 && len(b) == 3 && b[0] == 1 {
		return slices.Equal(a, b[1:])
	}
	return slices.Equal(trim(a), trim(b)) || extent1(a) == extent1(b) && extent1(a) > 1
}

// extent1 is the extent of a shape that has no other above 1, else 0.
func extent1(shape []int) int {
	n := 1
	for _, d := range shape {
		if n > 1 && d > 1 {
			return 0
		}
		n *= d
	}
	return n
}

// compare returns an error if a file's tensors differ from the network's, apart from the fresh ones. The tensors of
// file have the names that it gives them.
func (n *Network) compare(f, file *statedict.File, l Loaded) error {
	want := map[string]nn.Entry{}
	resizes := func(e nn.Entry, shape []int) bool {
		_, grid := gridsOf(n.model, e, shape)
		_, table := tableOf(e, shape)
		return grid || table
	}
	var diff []string
	for _, e := range n.model.StateDict() {
		want[e.Name] = e
		if slices.Contains(l.Fresh, e.Name) {
			continue
		}
		t, ok := f.Lookup(e.Name)
		whole := e.DType == "int64"
		switch {
		case !ok && (whole || e.Kind == nn.Buffer || e.Shared): // some files lack it
		case !ok:
			diff = append(diff, fmt.Sprintf("%s%v is missing", e.Name, e.Shape))
		case e.Kind == nn.Buffer || resizes(e, t.Shape): // the model has its own buffers
		case !alike(t.Shape, e.Shape):
			diff = append(diff, fmt.Sprintf("%s is %v, the model has %v", e.Name, op.Shape(t.Shape), e.Shape))
		case whole && !t.DType.Integer():
			diff = append(diff, fmt.Sprintf("%s is of type %s, the model has integers", e.Name, t.DType))
		case !whole && !t.DType.Float():
			diff = append(diff, fmt.Sprintf("%s is of type %s, the model has floating-point numbers", e.Name, t.DType))
		}
	}
	for _, t := range f.Tensors {
		if _, ok := want[t.Name]; !ok {
			diff = append(diff, fmt.Sprintf("%s%v is not in the model", t.Name, op.Shape(t.Shape)))
		}
	}
	if len(diff) == 0 {
		return nil
	}
	more := ""
	if k := len(diff) - 5; k > 0 {
		diff, more = diff[:5], fmt.Sprintf("; and %d more", k)
	}
	of := ""
	if l.Model != "" && l.Model != n.arch {
		of = fmt.Sprintf(", as the file says that they are of %s: give that model, or other weights", l.Model)
	} else if of = Others(file, n.arch); of == "" && l.Unoffered() != "" {
		of = ", as " + l.Unoffered()
	}
	return fmt.Errorf("the weights do not fit %s with %d classes%s: %s%s",
		n.arch, n.model.Config.Classes, of, strings.Join(diff, "; "), more)
}
