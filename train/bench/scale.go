package bench

import (
	"errors"
	"fmt"
	"io"
	"math"

	"gonum.org/v1/gonum/graph"
	G "gorgonia.org/gorgonia"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/network"
)

// A Cluster describes devices for which step times are predicted.
//
// A step takes the time of the slowest device plus that of the sums over devices that remain when the backward pass
// ends. A device's time is batch/rate, two thirds of it the backward pass; the slowest of n exceeds the mean by
// the fraction jitter·√(2 ln n), the expected maximum of n normal numbers. The sum of a bucket of b bytes begins when
// its last gradient is ready and the previous bucket is done. Within a node of m devices a ring moves 2(m−1)/m b over
// each device's link; between k nodes a ring for each device moves 2(k−1)/k b/m over the device's share of the network,
// one of the two after the other; a tree has 2⌈log₂ k⌉ latencies.
type Cluster struct {
	Rate   float64 // images per second of one device
	Batch  int     // images per device
	Jitter float64 // standard deviation of a device's step time over its mean

	Node    int     // devices per node
	Link    float64 // bytes per second between devices of a node, per device
	Network float64 // bytes per second between nodes, per device
	Latency float64 // seconds between nodes

	Element int      // bytes per gradient element as sent
	Buckets []Bucket // in the order in which they begin
	Serial  bool     // sums begin after the backward pass
}

// A Bucket is a part of the gradient.
type Bucket struct {
	Elements int
	Ready    float64 // share of the backward pass after which it is ready
}

// Prediction is the predicted speed of a number of devices.
type Prediction struct {
	Devices    int     `json:"devices"`
	Batch      int     `json:"batch"`      // of all devices
	Step       float64 `json:"step"`       // seconds
	Sums       float64 `json:"sums"`       // seconds that the sums take
	Exposed    float64 `json:"exposed"`    // of these, seconds after the backward pass
	Images     float64 `json:"images"`     // per second
	Efficiency float64 `json:"efficiency"` // relative to devices without communication
}

// check finds values that allow no prediction.
func (c *Cluster) check() error {
	switch {
	case !(c.Rate > 0) || c.Batch < 1 || !(c.Jitter >= 0):
		return fmt.Errorf("%g images/s at batch %d, jitter %g: must be above 0", c.Rate, c.Batch, c.Jitter)
	case c.Node < 1 || !(c.Link > 0) || !(c.Network > 0) || !(c.Latency >= 0):
		return fmt.Errorf("nodes of %d devices, links of %g and a network of %g bytes/s: must be above 0", c.Node, c.Link,
			c.Network)
	case c.Element != 2 && c.Element != 4:
		return fmt.Errorf("elements of %d bytes: 2 or 4", c.Element)
	case len(c.Buckets) == 0:
		return errors.New("no buckets")
	}
	return nil
}

// sum returns the time of a bucket's sum over n devices.
func (c *Cluster) sum(elements, n int) float64 {
	bytes := float64(elements * c.Element)
	m := min(n, c.Node)
	k := (n + c.Node - 1) / c.Node
	t := 0.0
	if m > 1 {
		t += 2 * float64(m-1) / float64(m) * bytes / c.Link
	}
	if k > 1 {
		t += 2*float64(k-1)/float64(k)*bytes/float64(m)/c.Network + 2*math.Ceil(math.Log2(float64(k)))*c.Latency
	}
	return t
}

// Predict returns the predicted speed of n devices.
func (c *Cluster) Predict(n int) (Prediction, error) {
	if err := c.check(); err != nil {
		return Prediction{}, err
	}
	if n < 1 {
		return Prediction{}, fmt.Errorf("%d devices", n)
	}
	alone := float64(c.Batch) / c.Rate
	slowest := alone * (1 + c.Jitter*math.Sqrt(2*math.Log(float64(n))))
	forward, done := slowest/3, 0.0
	p := Prediction{Devices: n, Batch: n * c.Batch}
	for _, b := range c.Buckets {
		ready := forward + b.Ready*(slowest-forward)
		if c.Serial {
			ready = slowest
		}
		t := c.sum(b.Elements, n)
		p.Sums += t
		done = max(done, ready) + t
	}
	p.Step = slowest
	if n > 1 {
		p.Step = max(slowest, done)
	}
	p.Exposed = p.Step - slowest
	p.Images = float64(p.Batch) / p.Step
	p.Efficiency = alone / p.Step
	return p, nil
}

// BucketsOf returns the buckets of a model. A bucket is ready after a share of the backward pass, measured in products.
func BucketsOf(model string) ([]Bucket, error) {
	m, err := nn.Build(model, nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		return nil, err
	}
	var tensors []device.Span
	var products []float64 // products of each tensor's layer
	total, end := 0.0, 0
	for _, p := range m.Params {
		n := p.Shape.Size()
		tensors = append(tensors, device.Span{Off: end, Len: n})
		end += n
		x := 0.0
		for _, user := range graph.NodesOf(m.Graph.To(p.Node.ID())) {
			o, ok := user.(*G.Node).Op().(*nn.Op)
			if !ok {
				continue
			}
			var in []op.Type
			for _, c := range graph.NodesOf(m.Graph.From(user.ID())) {
				t, err := nn.TypeOf(c.(*G.Node))
				if err != nil {
					return nil, err
				}
				in = append(in, t)
			}
			f, err := op.FLOPs(o.Op(), in...)
			if err != nil {
				return nil, err
			}
			x += float64(f)
		}
		products = append(products, x)
		total += x
	}
	var list []Bucket
	for _, b := range network.Buckets(tensors) {
		after := 0.0
		for i, t := range tensors {
			if t.Off >= b.Off {
				after += products[i]
			}
		}
		list = append(list, Bucket{b.Len, after / total})
	}
	return list, nil
}

// LargestBatch is the largest global batch that ResNet-50 is known to train with on ImageNet to the usual accuracy:
// 8,192 with SGD, a linear rate and a warm-up (Goyal et al., 2017); with LARS 34,560, which took 59 epochs where 3,264
// take 37 (MLPerf v0.7 and v2.0).
func LargestBatch(optimizer string) int {
	if optimizer == "lars" {
		return 34560
	}
	return 8192
}

// WriteScale writes predictions for people.
func WriteScale(w io.Writer, c *Cluster, list []Prediction, images, epochs int) error {
	b := terminal.NewPage(w)
	elements := 0
	for _, k := range c.Buckets {
		elements += k.Elements
	}
	fmt.Fprintf(b, "a device: %s images/s at batch %d, jitter %.1f %%; gradients of %s in %s; nodes of %d, links of %s "+
		"GB/s, network of %s GB/s a device, %s µs\n\n",
		text.Number(c.Rate), c.Batch, 100*c.Jitter, gigabytes(int64(elements*c.Element)), text.Count(len(c.Buckets),
			"bucket"), c.Node, text.Number(c.Link/1e9), text.Number(c.Network/1e9), text.Number(1e6*c.Latency))
	rows := [][]string{{"devices", "batch", "step ms", "sums ms", "exposed ms", "images/s", "efficiency",
		fmt.Sprintf("%d epochs", epochs), "batch for"}}
	for _, p := range list {
		fits := "-"
		switch {
		case p.Batch <= LargestBatch("sgd"):
			fits = "sgd"
		case p.Batch <= LargestBatch("lars"):
			fits = "lars"
		}
		rows = append(rows, []string{text.Thousands(p.Devices), text.Thousands(p.Batch), text.Number(1e3 * p.Step),
			text.Number(1e3 * p.Sums), text.Number(1e3 * p.Exposed), text.Number(p.Images),
			text.Percent(p.Efficiency), duration(float64(images*epochs) / p.Images), fits})
	}
	b.Table(rows)
	fmt.Fprintf(b, "\nbatch for: optimisers that are known to train ResNet-50 on ImageNet with it: sgd up to %s, lars "+
		"up to %s; -: none\n", text.Thousands(LargestBatch("sgd")), text.Thousands(LargestBatch("lars")))
	return b.Flush(w)
}
