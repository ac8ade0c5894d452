package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/rna"
	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// TrafficOptions configure [RunTraffic].
type TrafficOptions struct {
	Options
	// Least returns a card's minimum time for some work by its data sheet: the device is then a paper device, which
	// computes nothing. Nil: the device's clock times each piece of work.
	Least func(w device.Work) time.Duration
	Card  string
	// Window is the number of snapshots that RNA keeps; 0: no RNA.
	Window int
}

// Traffic is the work of a step on a device: each kernel, copy and library call with the bytes that it must move.
type Traffic struct {
	Model     string  `json:"model"`
	Batch     int     `json:"batch"`
	Card      string  `json:"card"`
	Computed  bool    `json:"computed"`                        // times come from a data sheet, not from a measurement
	Bandwidth float64 `json:"bandwidth_bytes_per_s,omitempty"` // of copies, as measured

	Step TrafficRow `json:"step"`
	// of a step at realistic shares of the data sheet, see LikelyBandwidth
	Likely float64 `json:"likely_seconds,omitempty"`
	// of batch and layer normalisations, including those in a convolution's graph
	Norm  int64         `json:"norm_bytes"`
	Kinds []TrafficRow  `json:"kinds"`
	RNA   *TrafficRow   `json:"rna,omitempty"` // a snapshot with its row of the Gram matrix, and a combination
	Works []TrafficWork `json:"works"`
}

// Realistic speeds of large cards, as a guess: on an H100, NVIDIA's convolutions reach about 450 of 989 TFLOP/s, and
// copies 2.6 of 3.35 TB/s.
const (
	LikelyBandwidth = .78
	LikelyPeak      = .45
)

// TrafficRow sums up work.
type TrafficRow struct {
	Name  string `json:"name"`
	Count int    `json:"launches"` // nodes of the graph of a step
	Read  int64  `json:"read_bytes"`
	Write int64  `json:"written_bytes"`
	FLOP  int64  `json:"flop"`
	// those of kernels, as counted by an interpreter of PTX
	Instructions int64   `json:"instructions,omitempty"`
	Seconds      float64 `json:"seconds"`
}

// TrafficWork is one piece of work.
type TrafficWork struct {
	Kind  string `json:"kind"`
	Layer string `json:"layer"`
	Name  string `json:"name"`
	Read  int64  `json:"read_bytes"`
	Write int64  `json:"written_bytes"`
	FLOP  int64  `json:"flop"`
	// as in TrafficRow
	Instructions int64   `json:"instructions,omitempty"`
	Seconds      float64 `json:"seconds"`

	other  int64 // bytes of a convolution's graph beyond the convolution's own
	likely float64
}

// The kinds of work of a step.
const (
	kindConvolution = "convolution"
	kindNorm        = "norm"
	kindAttention   = "attention"
	kindElement     = "relu, add"
	kindPool        = "pool"
	kindLinear      = "linear"
	kindLoss        = "loss"
	kindInput       = "input"
	kindUpdate      = "update"
	kindOther       = "other"
)

var trafficKinds = []string{kindConvolution, kindNorm, kindAttention, kindElement, kindPool, kindLinear, kindLoss, kindInput,
	kindUpdate, kindOther}

// kindOf returns the kind of work of a group, which may be nil.
func kindOf(g *device.Group, w device.Work) string {
	if g == nil {
		if strings.HasPrefix(w.Name, "copy") {
			return kindOther
		}
		return kindUpdate
	}
	has := func(parts ...string) bool {
		return slices.ContainsFunc(g.Steps, func(s device.Step) bool {
			return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s.Op.Kind(), p) })
		})
	}
	switch {
	case has("conv2d") && (w.FLOP > 0 || !has("batch_norm")):
		return kindConvolution
	case has("batch_norm", "layer_norm"):
		return kindNorm
	case has("attention", "softmax") && !has("cross_entropy"):
		return kindAttention
	case has("linear"):
		return kindLinear
	case has("pool"):
		return kindPool
	case has("cross_entropy", "target_loss", "score"):
		return kindLoss
	case has("images"):
		return kindInput
	case has("relu", "add", "shortcut", "map"):
		return kindElement
	}
	return kindOther
}

// layerOf names the layer of a group.
func layerOf(g *device.Group) string {
	if g == nil {
		return ""
	}
	return g.Steps[0].Name
}

// RunTraffic counts the work of a step on dev, which must report its work.
func RunTraffic(ctx context.Context, dev device.Device, o TrafficOptions) (t *Traffic, err error) {
	t, err = runTraffic(ctx, dev, o)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return t, err
}

func runTraffic(ctx context.Context, dev device.Device, o TrafficOptions) (t *Traffic, err error) {
	if o.Options, err = o.withDefaults(); err != nil {
		return nil, err
	}
	watched, ok := device.As[device.Observed](dev)
	if !ok {
		return nil, fmt.Errorf("device %s does not report its work", dev.Name())
	}
	in := &feed{}
	if _, err := nn.Build(o.Model, in.config(o.Options)); err != nil { // report mistakes first
		return nil, err
	}
	t = &Traffic{Model: o.Model, Card: o.Card, Computed: o.Least != nil}
	if o.Least == nil {
		if g, ok := device.As[device.Gauge](dev); ok {
			limits, err := g.Limits()
			if err != nil {
				return nil, err
			}
			t.Bandwidth = limits.Bandwidth.Speed
		}
	}
	b, err := open(dev, o.Options, in)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	t.Batch = b.Batch
	b.next = func() (*data.Batch, error) { return in.noise, nil }
	// First each lane runs a step, which settles its plan.
	if err := b.steps(ctx, b.net.Ahead()+1); err != nil {
		return nil, err
	}
	if t.Works, err = o.watch(watched, func() error { return b.steps(ctx, 1) }); err != nil {
		return nil, err
	}
	for range clockedSteps {
		if o.Least != nil { // it is the same each time
			break
		}
		again, err := o.watch(watched, func() error { return b.steps(ctx, 1) })
		if err != nil {
			return nil, err
		}
		if len(again) != len(t.Works) {
			return nil, fmt.Errorf("a step has %d pieces of work, and the next one %d", len(t.Works), len(again))
		}
		for i := range again {
			t.Works[i].Seconds = min(t.Works[i].Seconds, again[i].Seconds)
		}
	}
	t.sum()
	if o.Window > 0 {
		works, err := o.watch(watched, func() error { return snapshot(dev, b.net, o.Window) })
		if err != nil {
			return nil, fmt.Errorf("RNA: %w", err)
		}
		r := TrafficRow{Name: fmt.Sprintf("RNA, a snapshot of %d", o.Window)}
		for _, w := range works {
			r.add(w)
		}
		t.RNA = &r
	}
	return t, nil
}

// watch lists the work that f issues to a device, in order, without copies of the input, which overlap with the
// previous step.
func (o TrafficOptions) watch(dev device.Observed, f func() error) (works []TrafficWork, err error) {
	clock, timed := device.As[device.Clock](dev)
	timed = timed && o.Least == nil
	err = dev.Observe(func(g *device.Group, w device.Work, give func() error) error {
		if g == nil && w.Name == "copy from the host" {
			return give()
		}
		x := TrafficWork{Kind: kindOf(g, w), Layer: layerOf(g), Name: w.Name, Read: w.Read, Write: w.Write, FLOP: w.FLOP,
			Instructions: w.Instructions}
		if w.FLOP > 0 {
			x.other = w.Bytes() - w.Product
		}
		i := len(works)
		works = append(works, x)
		if o.Least != nil {
			works[i].Seconds = o.Least(w).Seconds()
			slow := w
			slow.Read, slow.Write = int64(float64(w.Bytes())/LikelyBandwidth), 0
			slow.FLOP = int64(float64(w.FLOP) / LikelyPeak)
			works[i].likely = o.Least(slow).Seconds()
		}
		if !timed {
			return give()
		}
		err := clock.Mark(2 * i)
		if err == nil {
			err = give()
		}
		if err == nil {
			err = clock.Mark(2*i + 1)
		}
		return err
	})
	if err == nil {
		err = errors.Join(f(), dev.Observe(nil))
	}
	for i := range works {
		if err != nil || !timed {
			break
		}
		var took time.Duration
		took, err = clock.Between(2*i, 2*i+1)
		works[i].Seconds = took.Seconds()
	}
	return works, err
}

// sum computes the rows of the kinds, and of the step.
func (t *Traffic) sum() {
	rows := map[string]*TrafficRow{}
	for _, k := range trafficKinds {
		rows[k] = &TrafficRow{Name: k}
	}
	t.Step.Name = "step"
	for _, w := range t.Works {
		t.Step.add(w)
		t.Likely += w.likely
		rows[w.Kind].add(w)
		switch w.Kind {
		case kindNorm:
			t.Norm += w.Read + w.Write
		case kindConvolution:
			t.Norm += w.other
		}
	}
	for _, k := range trafficKinds {
		if rows[k].Count > 0 {
			t.Kinds = append(t.Kinds, *rows[k])
		}
	}
}

func (r *TrafficRow) add(w TrafficWork) {
	r.Count++
	r.Read += w.Read
	r.Write += w.Write
	r.FLOP += w.FLOP
	r.Instructions += w.Instructions
	r.Seconds += w.Seconds
}

// snapshot performs the work of RNA at the end of an epoch: it stores the weights, multiplies the newest residual with
// the others of a window, and, as in an extrapolation, writes a combination of the snapshots to the weights.
func snapshot(dev device.Device, net *network.Network, window int) (err error) {
	space, err := hook.NewSpace(dev, net.Params.Len(), 0)
	if err != nil {
		return err
	}
	vectors := make([]rna.Vector, window+1)
	defer func() {
		for _, v := range vectors {
			if v != nil {
				err = errors.Join(err, v.Close())
			}
		}
	}()
	for i := range vectors {
		if vectors[i], err = space.New(); err != nil {
			return err
		}
	}
	residuals, terms := make([]rna.Residual, window), make([]rna.Term, window)
	for i := range window {
		residuals[i] = rna.Residual{X: vectors[i+1], Y: vectors[i]}
		terms[i] = rna.Term{Coef: 1 / float64(window), Vector: vectors[i+1]}
	}
	if _, err := space.Store(vectors[0], net.Params); err != nil {
		return err
	}
	if err := space.GramRow(make([]float64, window), residuals[0], residuals); err != nil {
		return err
	}
	return space.Combine(net.Params, terms)
}
