package nn

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/graph"
	G "gorgonia.org/gorgonia"

	"onlinerna/nn/op"
)

// Model is the graph of a network at one batch size and mode, with its nodes of interest. Models of one architecture
// that differ in Batch, Mode and Size only have the same Params, Stats and StateDict.
type Model struct {
	Arch   Architecture
	Config Config // as given to Build, with the defaults filled in
	Graph  *G.ExprGraph

	// Inputs. H and W are Config.ImageHeight and Config.ImageWidth, f is Config.DType.
	Images            *G.Node // uint8 [N,H,W,C] pixels; nil with Config.FloatInput
	Crops             *G.Node // int32 [N,3]: top, left, and 1 to flip; nil with Config.FloatInput
	Labels            *G.Node // int32 [N]; those outside 0…K−1 are ignored
	Targets           *G.Node // f [N,K], in Train with a Config.Loss that takes them, else nil
	Teacher           *G.Node // f [N,K], the teacher's logits in Train with Config.Teacher, else nil
	BatchNormMomentum *G.Node // f [1], 0.1 as a rule; nil in Eval and in a network without batch normalisation

	// RandomCounter is int32 [2]: a number that differs from step to step, and the first of N numbers that differ from
	// sample to sample of a step; nil in Eval and in a network without random layers. Both may wrap.
	RandomCounter *G.Node

	// Dropout and StochasticDepth report whether the network has such layers, in Train with probabilities above 0.
	Dropout, StochasticDepth bool

	// Own are the network's further inputs, f [N,…]: see Builder.Input. Inputs are all that differ from batch to batch:
	// those above that are not nil, and Own. Each node's name is its input's.
	Inputs, Own G.Nodes

	Input  *G.Node // f [N,C,Size,Size], the network's input tensor: a graph input with Config.FloatInput
	Logits *G.Node // f [N,K]
	Loss   *G.Node // f scalar: mean cross-entropy with Config.Smoothing, or Config.Loss, with that of Config.Teacher
	Score  *G.Node // f [3]: sum of the losses without smoothing, number right at top 1, at top 5

	InputGrad *G.Node // of Loss with respect to Input; nil unless in Train with Config.FloatInput

	Params  []Param // in torchvision's order
	Stats   []Stat
	Updates G.Nodes // of the running statistics that are not Frozen: roots of the graph; none in Eval

	entries []Entry
}

// Param is a tensor that is trained.
type Param struct {
	Name  string // torchvision's, as "layer1.0.conv1.weight"
	Shape op.Shape
	// Stored is the shape in the state dict, of as many elements; nil means Shape. Devices keep parameters of four
	// dimensions as weights of convolutions, which other ops cannot read.
	Stored op.Shape

	Node *G.Node
	Grad *G.Node // of Loss with respect to Node; nil in Eval, and where Frozen
	Init Init
	// Groups are those of the convolution that the parameter is of; else 0.
	Groups int
	// BiasOrNorm marks biases, scales of normalisation, class tokens and position embeddings, which some exempt from
	// weight decay.
	BiasOrNorm bool
	Frozen     bool // by Config.Freeze: it is not trained
}

// Fill writes the initial values of p into t, which has p's shape. They are functions of seed,
// p.Name and the index of the element only.
func (p *Param) Fill(t op.Tensor, seed uint64) error {
	if !t.Shape.Equal(p.Shape) {
		return fmt.Errorf("nn: parameter %s%v filled into a tensor of shape %v", p.Name, p.Shape, t.Shape)
	}
	if err := p.Init.fill(t.Data, seed, p.Name); err != nil {
		return fmt.Errorf("nn: parameter %s: %w", p.Name, err)
	}
	return nil
}

// Stat is the running mean and variance of a batch normalisation.
type Stat struct {
	Name     string // of the layer, as "layer1.0.bn1"
	Channels int
	Node     *G.Node // f [2,C]: mean, variance (unbiased, as PyTorch's)
	Batch    *G.Node // f [2,C]: mean and biased variance of the batch; nil in Eval, and where Frozen
	Update   *G.Node // overwrites Node; nil in Eval, and where Frozen
	Frozen   bool    // the parameters of the layer are
	Count    int     // values a channel in a batch, N·H·W
}

// Fill writes the initial statistics into t, of shape [2,C]: mean 0, variance 1.
func (s *Stat) Fill(t op.Tensor) error {
	want := op.Shape{2, s.Channels}
	if !t.Shape.Equal(want) {
		return fmt.Errorf("nn: statistics of %s%v filled into a tensor of shape %v", s.Name, want, t.Shape)
	}
	var err error
	switch d := t.Data.(type) {
	case []float32:
		fillStat(d, s.Channels)
	case []float64:
		fillStat(d, s.Channels)
	default:
		err = fmt.Errorf("nn: statistics of %s filled into a %T", s.Name, t.Data)
	}
	return err
}

func fillStat[T float32 | float64](d []T, channels int) {
	for i := range d {
		d[i] = T(i / channels)
	}
}

// NumParams is the number of trained values.
func (m *Model) NumParams() int {
	n := 0
	for _, p := range m.Params {
		n += p.Shape.Size()
	}
	return n
}

// EntryKind is the kind of an Entry of a state dict.
type EntryKind uint8

// The kinds of entries.
const (
	Parameter   EntryKind = iota // Model.Params[Index]
	RunningMean                  // row 0 of Model.Stats[Index]
	RunningVar                   // row 1 of Model.Stats[Index]
	// number of batches that Model.Stats[Index] has seen: PyTorch stores it, nothing here needs it
	BatchesTracked
	// Values, which PyTorch stores and nothing here reads
	Buffer
)

// Entry is a tensor of a state dict.
type Entry struct {
	Name  string
	Shape op.Shape
	DType string // "float32" or "float64", Config.DType; "int64" for BatchesTracked and integers of a Buffer
	Kind  EntryKind
	Index int

	Values any  // of a Buffer, a slice of DType
	Shared bool // an entry before has the same tensor: see Builder.Share
}

// StateDict lists the tensors of stored weights, with torchvision's names, shapes and order.
func (m *Model) StateDict() []Entry { return slices.Clone(m.entries) }

// Outline is the model without graph and values: its tensors' names and shapes, with which a file is compared.
func (m *Model) Outline() *Model {
	o := &Model{Arch: m.Arch, Config: m.Config}
	for _, p := range m.Params {
		p.Node, p.Grad = nil, nil
		o.Params = append(o.Params, p)
	}
	for _, s := range m.Stats {
		s.Node, s.Batch, s.Update = nil, nil, nil
		o.Stats = append(o.Stats, s)
	}
	for _, e := range m.entries {
		e.Values = nil
		o.entries = append(o.entries, e)
	}
	return o
}

// FLOPs counts the floating-point operations of the graph's products: those of a forward pass of the batch, and in
// Train of the backward pass, too. See op.FLOPs.
func (m *Model) FLOPs() (int64, error) {
	sum := int64(0)
	for _, n := range m.Graph.AllNodes() {
		o, ok := n.Op().(*Op)
		if !ok {
			continue
		}
		in := make([]op.Type, 0, 3)
		for _, c := range graph.NodesOf(m.Graph.From(n.ID())) {
			t, err := TypeOf(c.(*G.Node))
			if err != nil {
				return 0, err
			}
			in = append(in, t)
		}
		f, err := op.FLOPs(o.Op(), in...)
		if err != nil {
			return 0, err
		}
		sum += f
	}
	return sum, nil
}
