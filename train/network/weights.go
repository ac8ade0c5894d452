package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/safetensors"
)

// Meta describes weights at rest. It is stored in the metadata of their file, a key each.
type Meta struct {
	Model     string
	Classes   []string // names by index
	ImageSize int
	Mean, Std []float64
	Epoch     int // that the weights are from, 0 before the first
	Kind      Kind
}

// Kind says how weights came about. Hooks have kinds of their own beside these.
type Kind string

// The kinds of weights, as metrics and the metadata of weights name them.
const (
	SGD      Kind = "sgd"    // the iterates of the optimiser
	SGDStats Kind = "sgd_bn" // the same, with BatchNorm statistics re-estimated
	RNA      Kind = "rna"
	Average  Kind = "average"
	EMA      Kind = "ema"
)

func (m Meta) strings() map[string]string {
	js := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	return map[string]string{
		"format": "pt", // as PyTorch's readers expect
		"model":  m.Model, "classes": js(m.Classes), "image_size": strconv.Itoa(m.ImageSize),
		"mean": js(m.Mean), "std": js(m.Std), "epoch": strconv.Itoa(m.Epoch), "kind": string(m.Kind),
	}
}

// ReadMeta reads the metadata of a weights file. What the file lacks stays zero.
func ReadMeta(path string) (Meta, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return Meta{}, err
	}
	defer f.Close()
	return parseMeta(path, f.Metadata)
}

func parseMeta(path string, s map[string]string) (Meta, error) {
	m := Meta{Model: s["model"], Kind: Kind(s["kind"])}
	var errs []error
	for _, f := range []struct {
		key string
		dst any
	}{{"classes", &m.Classes}, {"image_size", &m.ImageSize}, {"mean", &m.Mean}, {"std", &m.Std}, {"epoch", &m.Epoch}} {
		if v, ok := s[f.key]; ok {
			if err := json.Unmarshal([]byte(v), f.dst); err != nil {
				errs = append(errs, fmt.Errorf("%s: metadata %s: %w", path, f.key, err))
			}
		}
	}
	return m, errors.Join(errs...)
}

// SaveWeights writes parameters and statistics to a safetensors file under torchvision's names and
// shapes. The vectors may be the network's own or others like them.
func (n *Network) SaveWeights(path string, params, stats device.Vector, meta Meta) error {
	dt := n.fileType()
	var list []safetensors.Tensor
	for _, e := range n.model.StateDict() {
		t := safetensors.Tensor{Name: e.Name, DType: dt, Shape: e.Shape}
		if e.Kind == nn.BatchesTracked {
			t.DType = safetensors.I64
		}
		list = append(list, t)
	}
	w, err := safetensors.Create(path, list, meta.strings())
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, e := range n.model.StateDict() {
		var data any
		switch e.Kind {
		case nn.Parameter:
			t := op.New(n.params[e.Index].typ)
			if err := n.download(t, params, n.params[e.Index]); err != nil {
				return err
			}
			data = t.Data
		case nn.RunningMean, nn.RunningVar:
			t := op.New(n.stats[e.Index].typ)
			if err := n.download(t, stats, n.stats[e.Index]); err != nil {
				return err
			}
			data = row(t, int(e.Kind-nn.RunningMean))
		case nn.BatchesTracked:
			data = []int64{int64(n.StatsBatches)}
		}
		if err := w.Write(e.Name, data); err != nil {
			return err
		}
	}
	return w.Commit()
}

// wrappers are prefixes that PyTorch puts before all names of a model that it wraps: DataParallel
// and torch.compile.
var wrappers = []string{"module.", "_orig_mod."}

// unwrap finds the prefix that all names of a file have beyond the model's, "" if there is none.
func unwrap(f *safetensors.File) string {
	for _, p := range wrappers {
		if len(f.Tensors) > 0 && !slices.ContainsFunc(f.Tensors, func(t safetensors.Tensor) bool { return !strings.HasPrefix(t.Name, p) }) {
			return p
		}
	}
	return ""
}

// LoadWeights reads parameters and statistics from a safetensors file of any floating-point type, F64,
// F32, F16 or BF16. Names are the model's; "module." or "_orig_mod." before all of them is passed over, and
// counters of batches may be missing. All names, shapes and types are checked before anything changes.
func (n *Network) LoadWeights(path string) (Meta, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return Meta{}, err
	}
	defer f.Close()
	meta, err := parseMeta(path, f.Metadata)
	if err != nil {
		return meta, err
	}
	prefix := unwrap(f)
	if err := n.compare(f, prefix, meta); err != nil {
		return meta, fmt.Errorf("%s: %w", path, err)
	}
	halves := map[int]op.Tensor{} // statistics, which a file holds as two tensors
	for _, e := range n.model.StateDict() {
		t, ok := f.Lookup(prefix + e.Name)
		switch {
		case e.Kind == nn.Parameter:
			err = n.loadSlot(f, t, n.Params, n.params[e.Index])
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
			err = f.Float64s(t, row(halves[e.Index], int(e.Kind-nn.RunningMean)).([]float64), 0)
			if err == nil && e.Kind == nn.RunningVar {
				err = n.upload(n.Stats, s, halves[e.Index])
			}
		}
		if err != nil {
			return meta, err
		}
	}
	return meta, n.guard.clear(n.Device)
}

// compare says how the tensors of a file differ from the network's.
func (n *Network) compare(f *safetensors.File, prefix string, meta Meta) error {
	want := map[string]nn.Entry{}
	var diff []string
	for _, e := range n.model.StateDict() {
		want[prefix+e.Name] = e
		t, ok := f.Lookup(prefix + e.Name)
		switch {
		case !ok && e.Kind == nn.BatchesTracked: // older files lack it
		case !ok:
			diff = append(diff, fmt.Sprintf("%s%v is missing", e.Name, e.Shape))
		case !slices.Equal(t.Shape, e.Shape):
			diff = append(diff, fmt.Sprintf("%s is %v, the model has %v", e.Name, op.Shape(t.Shape), e.Shape))
		case e.Kind == nn.BatchesTracked && !t.DType.Integer():
			diff = append(diff, fmt.Sprintf("%s is of type %s, the model has integers", e.Name, t.DType))
		case e.Kind != nn.BatchesTracked && !t.DType.Float():
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
	if meta.Model != "" && meta.Model != n.arch {
		of = fmt.Sprintf(" (the file says it is %s)", meta.Model)
	}
	return fmt.Errorf("the weights do not fit %s with %d classes%s: %s%s",
		n.arch, n.model.Config.Classes, of, strings.Join(diff, "; "), more)
}

// SaveVector writes a vector like Params under the parameters' names, in PyTorch's order of elements.
func (n *Network) SaveVector(path string, v device.Vector) error {
	var list []safetensors.Tensor
	for _, s := range n.params {
		list = append(list, safetensors.Tensor{Name: s.name, DType: n.fileType(), Shape: s.typ.Shape})
	}
	w, err := safetensors.Create(path, list, nil)
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, s := range n.params {
		t := op.New(s.typ)
		if err := n.download(t, v, s); err != nil {
			return err
		}
		if err := w.Write(s.name, t.Data); err != nil {
			return err
		}
	}
	return w.Commit()
}

// LoadVector is the inverse of SaveVector.
func (n *Network) LoadVector(path string, v device.Vector) error {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, s := range n.params {
		t, ok := f.Lookup(s.name)
		if !ok || !slices.Equal(t.Shape, s.typ.Shape) {
			return fmt.Errorf("%s: no tensor %s%v: not of this model", path, s.name, s.typ.Shape)
		}
		if err := n.loadSlot(f, t, v, s); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) loadSlot(f *safetensors.File, t safetensors.Tensor, v device.Vector, s slot) error {
	x := op.New(s.typ)
	var err error
	switch d := x.Data.(type) {
	case []float32:
		err = f.Float32s(t, d, 0)
	case []float64:
		err = f.Float64s(t, d, 0)
	}
	if err != nil {
		return err
	}
	return n.upload(v, s, x)
}

func (n *Network) fileType() safetensors.DType {
	if n.Device.DType() == op.Float64 {
		return safetensors.F64
	}
	return safetensors.F32
}

// row is row i of a [2,C] tensor.
func row(t op.Tensor, i int) any {
	c := t.Shape[1]
	switch d := t.Data.(type) {
	case []float32:
		return d[i*c : (i+1)*c]
	case []float64:
		return d[i*c : (i+1)*c]
	}
	return nil
}
