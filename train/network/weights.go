package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// Meta describes saved weights. The file's metadata has one key for each field.
type Meta struct {
	Model     string
	Classes   []string // names by index
	ImageSize int      // of the evaluation crop
	// ValResize is the length of the shorter side before the crop, Interpolation its method; zero: the default.
	ValResize     int
	BlurPool      bool // see nn.Config
	Interpolation string
	Mean, Std     []float64
	Epoch         int // of the weights, 0 before the first
	Kind          Kind
	Split         *Split // of the data, nil if unknown
	Snapshots     int    // number of snapshots in an Average
	// Gamma and Step are the exponent of a kept power EMA and the optimiser's steps until then.
	Gamma float64
	Step  int
	Meaning
	// Architecture is timm's name of the net, from the config.json beside the weights; "" without.
	Architecture string
	CropMode     string // timm's word, from such files; "" for the centre
	BestBy       string // the measure that chose a run's best weights, such as "held-out error"
}

// Config is the configuration of a net for the weights, with the given numbers of outputs and image channels.
func (m Meta) Config(outputs, channels int) nn.Config {
	return nn.Config{Classes: outputs, Channels: channels, Size: m.ImageSize, Mean: m.Mean, Std: m.Std,
		BlurPool: m.BlurPool}
}

// Published fills in how photos are resized for weights of an architecture that another program has saved.
func (m *Meta) Published(a nn.Architecture) {
	if m.Kind != "" {
		return
	}
	if m.ImageSize == 0 {
		m.ImageSize = a.Size
	}
	if m.ValResize == 0 {
		m.ValResize = a.ResizeFor(m.ImageSize)
	}
	if m.Interpolation == "" {
		m.Interpolation = a.Interpolation
	}
}

// Kind is the origin of weights. Hooks define further kinds.
type Kind string

// The kinds of weights, as metrics and metadata name them.
const (
	SGD      Kind = "sgd"    // the optimiser's iterates
	SGDStats Kind = "sgd_bn" // the same with BatchNorm statistics re-estimated
	RNA      Kind = "rna"
	Average  Kind = "average"
	EMA      Kind = "ema"
)

func (m Meta) strings() map[string]string {
	js := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	list := map[string]string{
		"format": "pt", // as PyTorch's readers expect
		"model":  m.Model, "classes": js(m.Classes), "image_size": strconv.Itoa(m.ImageSize),
		"mean": js(m.Mean), "std": js(m.Std), "epoch": strconv.Itoa(m.Epoch), "kind": string(m.Kind),
	}
	if !m.Classifies() {
		list["task"] = string(m.Task)
	}
	for key, x := range map[string][]float64{"thresholds": m.Thresholds, "offset": m.Offset, "scale": m.Scale} {
		if x != nil {
			list[key] = js(x)
		}
	}
	if m.Snapshots > 0 {
		list["snapshots"] = strconv.Itoa(m.Snapshots)
	}
	if m.Step > 0 {
		list["ema_gamma"], list["ema_step"] = js(m.Gamma), strconv.Itoa(m.Step)
	}
	if m.BestBy != "" {
		list["best_by"] = m.BestBy
	}
	if m.ValResize > 0 {
		list["val_resize"] = strconv.Itoa(m.ValResize)
	}
	if m.BlurPool {
		list["blurpool"] = "true"
	}
	if m.Interpolation != "" {
		list["interpolation"] = m.Interpolation
	}
	if m.Split != nil {
		list["split"] = js(m.Split)
	}
	return list
}

// ReadMeta reads the metadata of a weights file. Missing fields stay zero.
func ReadMeta(path string) (Meta, error) {
	f, err := statedict.Open(path, "")
	if err != nil {
		return Meta{}, err
	}
	defer f.Close()
	return MetaOf(f)
}

// MetaOf is the metadata of an open weights file. It keeps another program's model name only if nn has the model.
// The config.json that timm or transformers have beside weights completes it.
func MetaOf(f *statedict.File) (Meta, error) {
	m, err := parseMeta(f.Path, f.Metadata)
	if err != nil || m.Kind != "" {
		return m, err
	}
	err = hubMeta(f, &m)
	return m, err
}

func parseMeta(path string, s map[string]string) (Meta, error) {
	m := Meta{Meaning: Meaning{Task: data.Task(s["task"])}, Interpolation: s["interpolation"], BestBy: s["best_by"], Model: s["model"], Kind: Kind(s["kind"])}
	if m.Kind == "" { // such as timm's "resnet50.a1_in1k"
		m.Model, _, _ = strings.Cut(m.Model, ".")
		a, _ := nn.Lookup(m.Model)
		m.Model = a.Name
	}
	var errs []error
	if t := string(m.Task); t != "" && !slices.Contains(data.Tasks(), t) {
		if m.Task = ""; m.Kind != "" { // else another program's word
			errs = append(errs, fmt.Errorf("%s: metadata task: %q is not one of %s", path, t,
				strings.Join(data.Tasks(), ", ")))
		}
	}
	for _, f := range []struct {
		key string
		dst any
	}{{"classes", &m.Classes}, {"image_size", &m.ImageSize}, {"val_resize", &m.ValResize}, {"blurpool", &m.BlurPool},
		{"mean", &m.Mean}, {"std", &m.Std}, {"epoch", &m.Epoch}, {"split", &m.Split}, {"snapshots", &m.Snapshots},
		{"thresholds", &m.Thresholds}, {"offset", &m.Offset}, {"scale", &m.Scale},
		{"ema_gamma", &m.Gamma}, {"ema_step", &m.Step}} {
		if v, ok := s[f.key]; ok {
			if err := json.Unmarshal([]byte(v), f.dst); err != nil {
				errs = append(errs, fmt.Errorf("%s: metadata %s: %w", path, f.key, err))
			}
		}
	}
	return m, errors.Join(errs...)
}

// SaveWeights writes parameters and statistics to a safetensors file with torchvision's names and shapes. The vectors
// may be the network's own or others like them.
func (n *Network) SaveWeights(path string, params, stats device.Vector, meta Meta) error {
	return n.SaveWeightsShare(path, params, stats, meta, Share{})
}

// SaveWeightsShare is SaveWeights of a share of the tensors.
func (n *Network) SaveWeightsShare(path string, params, stats device.Vector, meta Meta, share Share) error {
	dt := n.fileType()
	var list []tensor
	for _, e := range n.model.StateDict() {
		t := tensor{Tensor: safetensors.Tensor{Name: e.Name, DType: dt, Shape: e.Shape}, owner: n.entryOwner(e, share.Of),
			data: func() (any, error) { return n.entry(e, params, stats) }}
		if e.DType == "int64" {
			t.DType = safetensors.I64
		}
		list = append(list, t)
	}
	return share.write(path, list, meta.strings())
}

// entry reads a tensor of the state dict from vectors like Params and Stats: a []float32, a []float64 or, for a
// counter, a []int64.
func (n *Network) entry(e nn.Entry, params, stats device.Vector) (any, error) {
	switch e.Kind {
	case nn.Parameter:
		t := op.New(n.params[e.Index].typ)
		return t.Data, n.download(t, params, n.params[e.Index])
	case nn.RunningMean, nn.RunningVar:
		t := op.New(n.stats[e.Index].typ)
		err := n.download(t, stats, n.stats[e.Index])
		return row(t, int(e.Kind-nn.RunningMean)), err
	}
	if e.Kind == nn.Buffer {
		return e.Values, nil
	}
	return []int64{int64(n.StatsBatches)}, nil
}

// SaveVector writes a vector like Params under the parameters' names, in PyTorch's order of elements.
func (n *Network) SaveVector(path string, v device.Vector) error {
	return n.SaveShare(path, v, "", Share{})
}

// SaveShare is SaveVector of a share of the tensors. For a state other than weights, such as an optimiser's momentum, the
// metadata holds its name.
func (n *Network) SaveShare(path string, v device.Vector, name string, share Share) error {
	var meta map[string]string
	if name != "" {
		meta = map[string]string{statedict.Holds: name}
	}
	var list []tensor
	for _, s := range n.params {
		list = append(list, tensor{Tensor: safetensors.Tensor{Name: s.name, DType: n.fileType(), Shape: s.typ.Shape},
			owner: n.owner(s, share.Of), data: func() (any, error) {
				t := op.New(s.typ)
				return t.Data, n.download(t, v, s)
			}})
	}
	return share.write(path, list, meta)
}

// LoadVector is the inverse of SaveVector.
func (n *Network) LoadVector(path string, v device.Vector) error {
	f, err := statedict.Open(path, "")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Verify(); err != nil {
		return err
	}
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

// NonFinite names a parameter or the layer of statistics that has a number that is not finite, "" if none has.
func (n *Network) NonFinite() (string, error) {
	if ok, err := n.Finite(); ok || err != nil {
		return "", err
	}
	for i, list := range [][]slot{n.params, n.stats} {
		for _, s := range list {
			t := op.New(op.T(op.Float64, s.typ.Shape...))
			if err := n.download(t, []device.Vector{n.Params, n.Stats}[i], s); err != nil {
				return "", err
			}
			for _, x := range t.Data.([]float64) {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					return s.name, nil
				}
			}
		}
	}
	return "weights", nil
}

// CheckFinite refuses weights that were loaded from a file, with its key, if a number is not finite. It names the tensor
// as the file does, and counts.
func (n *Network) CheckFinite(path, key string) error {
	name, err := n.NonFinite()
	if err != nil || name == "" {
		return err
	}
	f, err := statedict.Open(path, key)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, t := range f.Tensors {
		if !t.DType.Float() {
			continue
		}
		x, bad := make([]float64, t.Len()), 0
		if err := f.Float64s(t, x); err != nil {
			return err
		}
		for _, v := range x {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				bad++
			}
		}
		if bad > 0 {
			return fmt.Errorf("%s: tensor %q has %d of %d elements that are not finite: choose other weights", path, t.Name, bad,
				len(x))
		}
	}
	return fmt.Errorf("%s: tensor %q has elements beyond the range of float32: choose other weights", path, name)
}

func (n *Network) loadSlot(f *statedict.File, t statedict.Tensor, v device.Vector, s slot) error {
	x := op.New(s.typ)
	var err error
	switch d := x.Data.(type) {
	case []float32:
		err = f.Float32s(t, d)
	case []float64:
		err = f.Float64s(t, d)
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
