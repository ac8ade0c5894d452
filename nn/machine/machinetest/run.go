package machinetest

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/internal/golden"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

// Options limit the part of a network that Golden runs.
type Options struct {
	// Steps is the number of SGD steps, at each rate: 0 means all that are recorded, and so does
	// ONLINERNA_GOLDEN=full in the environment; a negative number means none.
	Steps int
	// Ungrouped is machine.Config's.
	Ungrouped bool
	// Unit is the unit roundoff of a device that stores activations or multiplies in fewer bits than its vectors
	// have. See shortForward and shortGradient for the tolerances.
	Unit float64
}

// Golden compares the named network, "resnet20" or "resnet18", on a device with PyTorch's: evaluation, the loss and
// all gradients of a training step, the running statistics after it, and SGD at two rates.
func Golden(t *testing.T, dev device.Device, name string, o Options) {
	g, err := load(name)
	if err != nil {
		t.Fatal(err)
	}
	if Full() {
		o.Steps = 0
	}
	c := &checker{T: t, g: g, name: name, dev: dev, exact: dev.DType() == op.Float64,
		ungrouped: o.Ungrouped, unit: o.Unit}
	t.Run("eval", func(t *testing.T) { c.with(t).eval() })
	t.Run("train", func(t *testing.T) { c.with(t).train() })
	if o.Steps < 0 {
		return
	}
	for i, s := range g.SGD {
		n := len(s.Losses) - 1
		if name == "resnet18" && s.Rate == 0.1 {
			n = 2 // chaotic: PyTorch's float32 and float64 part ways
		}
		if o.Steps > 0 {
			n = min(n, o.Steps)
		}
		t.Run(fmt.Sprintf("sgd/rate=%g", s.Rate), func(t *testing.T) { c.with(t).sgd(i, n) })
	}
}

// Full reports whether the environment asks for everything that is recorded.
func Full() bool { return os.Getenv("ONLINERNA_GOLDEN") == "full" }

type checker struct {
	*testing.T
	g         *reference
	name      string
	dev       device.Device
	exact     bool // the device's type is float64
	ungrouped bool
	unit      float64 // Options.Unit
}

func (c *checker) with(t *testing.T) *checker {
	d := *c
	d.T = t
	return &d
}

// net makes the network with the reference's batch.
func (c *checker) net(mode nn.Mode, keep func(*nn.Model) G.Nodes) *Net {
	c.Helper()
	mc := nn.Config{
		Batch: c.g.Batch, Mode: mode, Classes: c.g.Classes, Size: c.g.Size, FloatInput: true, DType: c.dev.DType(),
	}
	n, err := NewNet(c.name, mc, machine.Config{Device: c.dev, Ungrouped: c.ungrouped}, keep)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		if err := n.Close(); err != nil {
			c.Error(err)
		}
	})
	m := n.Model
	c.write(n, m.Input, c.g.Formula().Input(op.Shape(m.Input.Shape()), c.dev.DType()))
	c.write(n, m.Labels, golden.Labels(c.g.Batch))
	if m.BatchNormMomentum != nil {
		c.write(n, m.BatchNormMomentum, op.Tensor{Shape: op.Shape{1}, Data: []float64{0.1}})
	}
	return n
}

func (c *checker) write(n *Net, x *G.Node, v op.Tensor) {
	c.Helper()
	if err := n.Machine.Write(x, v); err != nil {
		c.Fatal(err)
	}
}

func (c *checker) run(n *Net) {
	c.Helper()
	if err := n.Machine.Run(); err != nil {
		c.Fatal(err)
	}
}

func (c *checker) read(n *Net, x *G.Node) []float64 {
	c.Helper()
	v, err := n.Read(x)
	if err != nil {
		c.Fatal(err)
	}
	return v
}

func (c *checker) eval() {
	n := c.net(nn.Eval, c.keptStages())
	c.run(n)
	largest := 0.0
	for _, row := range c.g.Eval.Logits {
		largest = max(largest, slices.Max(row), -slices.Min(row))
	}
	tol := max(5*c.g.Eval.Deviation, shortForward*c.unit*largest)
	got := c.read(n, n.Model.Logits)
	for i, row := range c.g.Eval.Logits {
		for j, want := range row {
			if c.exact {
				tol = 1e-8 * max(1, math.Abs(want))
			}
			c.near(fmt.Sprintf("logit %d,%d", i, j), got[i*len(row)+j], want, tol)
		}
	}
	if c.exact {
		c.stages(n, c.g.Eval.Stages)
	}
}

func (c *checker) train() {
	n := c.net(nn.Train, c.keptStages())
	c.run(n)
	m, want := n.Model, &c.g.Train
	c.near("loss", c.read(n, m.Loss)[0], want.Loss, c.lossTolerance(0, 0))
	logits := c.read(n, m.Logits)
	for i, row := range want.Logits {
		for j, v := range row {
			c.near(fmt.Sprintf("logit %d,%d", i, j), logits[i*c.g.Classes+j], v,
				c.tolerance(want.Deviation)*want.LogitNorm)
		}
	}
	c.near("norm of the logits", norm(logits), want.LogitNorm, c.tolerance(want.Deviation)*want.LogitNorm)

	if len(m.Params) != len(want.Params) {
		c.Fatalf("%d parameters, want %d", len(m.Params), len(want.Params))
	}
	deviation := 0.0 // errors grow from the last layer to the first
	for i := len(m.Params) - 1; i >= 0; i-- {
		p := &want.Params[i]
		if m.Params[i].Name != p.Name {
			c.Fatalf("parameter %d is %s, want %s", i, m.Params[i].Name, p.Name)
		}
		deviation = max(deviation, p.Deviation, c.g.nhwc.Train.Params[i].Deviation)
		c.summary("gradient of "+p.Name, c.read(n, m.Params[i].Grad),
			golden.Tensor{Norm: p.Norm, Sum: p.Sum, First: p.First, Deviation: deviation})
	}
	want.InputGrad.Deviation = max(want.InputGrad.Deviation, deviation)
	c.summary("gradient of the input", c.read(n, m.InputGrad), want.InputGrad)
	all, err := n.Grads.Norm()
	if err != nil {
		c.Fatal(err)
	}
	c.near("norm of the gradient vector", all, want.GradNorm, c.tolerance(want.GradDeviation)*want.GradNorm)

	deviation = 0
	for _, s := range m.Stats {
		v := c.read(n, s.Node)
		for i, part := range []string{".running_mean", ".running_var"} {
			r := want.Running[s.Name+part]
			deviation = max(deviation, r.Deviation)
			r.Deviation = deviation
			c.summary(s.Name+part, v[i*s.Channels:][:s.Channels], r)
		}
	}
	if c.exact {
		c.stages(n, want.Stages)
	}
}

// sgd takes steps of the reference's run.
func (c *checker) sgd(run, steps int) {
	s := &c.g.SGD[run]
	n := c.net(nn.Train, nil)
	for i := range steps + 1 {
		c.run(n)
		c.near(fmt.Sprintf("loss after %d steps", i), c.read(n, n.Model.Loss)[0], s.Losses[i], c.lossTolerance(run, i))
		if i == steps {
			break
		}
		err := n.Params.Update(device.Update{Optimizer: optim.SGD{Momentum: s.Momentum, Decay: s.Decay}, Grad: n.Grads,
			State: []device.Vector{n.Momentum}, Numbers: device.Numbers{Rate: s.Rate, Scale: 1, Step: float64(i + 1)}})
		if err != nil {
			c.Fatal(err)
		}
	}
	if c.exact && steps == len(s.Losses)-1 {
		for _, p := range n.Model.Params {
			want := s.Norms[p.Name]
			c.near("norm of "+p.Name+" at the end", norm(c.read(n, p.Node)), want, 1e-8*want)
		}
	}
}

// stages checks the outputs of the network's parts that are kept.
func (c *checker) stages(n *Net, want map[string]golden.Stage) {
	c.Helper()
	found := stages(n.Model)
	for name, s := range want {
		node := found[name]
		if node == nil {
			c.Errorf("stage %s is not in the graph", name)
			continue
		}
		v := c.read(n, node)
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		c.near("norm of "+name, norm(v), s.Norm, 1e-8*s.Norm)
		c.near("sum of "+name, sum, s.Sum, 1e-8*s.Norm*math.Sqrt(float64(len(v))))
	}
}

// keptStages keeps the stages' outputs, if they are to be checked.
func (c *checker) keptStages() func(*nn.Model) G.Nodes {
	if !c.exact {
		return nil
	}
	return func(m *nn.Model) G.Nodes { return slices.Collect(maps.Values(stages(m))) }
}

// stages finds the results of a ResNet's top-level parts, by torchvision's names.
func stages(m *nn.Model) map[string]*G.Node {
	found := make(map[string]*G.Node)
	for _, n := range m.Graph.AllNodes() { // in the order in which they were made: the last of a stage wins
		o, ok := n.Op().(*nn.Op)
		if !ok {
			continue
		}
		switch o.Op().(type) {
		case op.Conv2D, op.BatchNorm, op.MaxPool, op.GlobalAvgPool, op.Linear:
			if !strings.Contains(o.Layer(), ".") {
				found[o.Layer()] = n
			}
		case op.ReLU:
			if stage, _, ok := strings.Cut(o.Layer(), "."); ok {
				found[stage] = n
			}
		}
	}
	return found
}

// tolerance is relative to a norm; deviation is PyTorch's.
func (c *checker) tolerance(deviation float64) float64 {
	if c.exact {
		return 1e-8
	}
	if c.name == "resnet20" {
		deviation = max(deviation, flippedGradient/5)
	}
	return max(5*deviation, shortGradient*math.Sqrt(c.unit))
}

// With a unit roundoff u of activations each of some twenty layers adds an error of about u in the forward pass, in
// random directions. A share of some u of the activations is so near 0 that the rounding flips their ReLU, and takes
// the gradients there away or adds them: of the gradient's square a share of some u, and of its norm the root of
// that.
const (
	shortForward = 8 // times u, relative: logits and losses
	// times √u, relative to the norm of the tensor: gradients and, for simplicity, all other tensors compared by norm
	shortGradient = 4
)

// Some activations are as good as 0. In float64, too, changing the parameters by a float32's rounding before each
// step then changes later results by these amounts, or hardly at all: the gradient of a parameter relative to its
// norm, for ResNet-20, and the loss after some steps. flippedLoss has the largest of 24 such runs.
const flippedGradient = 1.8e-4

var flippedLoss = map[string]map[float64][]float64{
	"resnet20": {
		0.1:  {0, 2.3e-6, 5.4e-4, 1.4e-3, 3e-3},
		0.01: {0, 1.3e-6, 7.3e-6, 1.6e-4, 1.6e-4, 3.3e-4, 3.7e-4, 9.4e-4, 9.4e-4, 1.1e-3, 1.4e-3},
	},
	"resnet18": {0.01: {0, 0, 4.3e-4}},
}

// lossTolerance is absolute, for the loss after some steps of a run.
func (c *checker) lossTolerance(run, steps int) float64 {
	s, nhwc := &c.g.SGD[run], c.g.nhwc.SGD[run].Losses
	if c.exact {
		return 1e-8 * max(1, s.Losses[steps])
	}
	d := 0.0
	for i := range steps + 1 {
		d = max(d, math.Abs(s.Losses32[i]-s.Losses[i]), math.Abs(nhwc[i]-s.Losses[i]))
	}
	flip := 0.0
	if f := flippedLoss[c.name][s.Rate]; f != nil {
		flip = f[min(steps, len(f)-1)]
	}
	return max(5*d, 2*flip, shortForward*c.unit*s.Losses[steps])
}

func (c *checker) near(what string, got, want, tol float64) {
	c.Helper()
	if d := math.Abs(got - want); !(d <= tol) {
		c.Errorf("%s: %.12g, want %.12g: off by %.3g, %.3g is allowed", what, got, want, d, tol)
	}
}

func (c *checker) summary(what string, x []float64, want golden.Tensor) {
	c.Helper()
	tol := c.tolerance(want.Deviation) * want.Norm
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	c.near(what+", norm", norm(x), want.Norm, tol)
	c.near(what+", sum", sum, want.Sum, tol*math.Sqrt(float64(len(x))))
	for i, v := range want.First {
		c.near(fmt.Sprintf("%s, element %d", what, i), x[i], v, tol)
	}
}

func norm(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v * v
	}
	return math.Sqrt(s)
}
