package zoo_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/internal/golden"
	"onlinerna/nn/machine"
	"onlinerna/nn/machine/machinetest"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
	"onlinerna/nn/zoo/zootest"
)

// reference is a file of make.py.
type reference struct {
	Net                  string
	Batch, Size, Classes int
	State                []entry
	Dropped              map[string]float64 // probabilities by layer
	Initial              map[string]float64 // roots of mean squares
	Exempt               []string           // matrices and larger tensors without weight decay; nil: timm says nothing
	Logits               []float64
	SGD, AdamW           []float64 // losses
	SGD32, AdamW32       []float64 // those of PyTorch's float32
	Deviation            float64
	Gradients, Running   map[string]float64                  // inner products
	Autocast             struct{ Logits, Gradients float64 } // deviations of PyTorch's bfloat16
	// Float32 are the largest deviations of PyTorch's float32 from the inner products, of whole nets.
	Float32 struct{ Gradients, Statistics float64 }
}

type entry struct {
	Name  string
	Shape op.Shape
}

func (e *entry) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[]any{&e.Name, &e.Shape}) }

// In float32 rounding may open or close a ReLU near 0, which later losses show.
var (
	double = tolerances{logits: 1e-10, gradients: 1e-8, statistics: 1e-8, loss: 1e-10, steps: 1e-8}
	single = tolerances{logits: 1e-5, gradients: 2e-2, statistics: 1e-5, loss: 1e-4, steps: .3}
)

// TestTorchvision compares the nets with torchvision's: those of testdata, or whole ones in the folder that
// ONLINERNA_TORCHVISION names, which make.py writes.
func TestTorchvision(t *testing.T) {
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, want := range references(t, cmp.Or(os.Getenv("ONLINERNA_TORCHVISION"), "testdata")) {
		t.Run(want.Net, func(t *testing.T) {
			j := newJudge(t, want)
			j.structure()
			j.on(device.NewReference(op.Float64), double)
			j.on(dev, single)
		})
	}
}

// TestAutocast compares the deviations of bfloat16 from float64 with those of PyTorch's autocast.
func TestAutocast(t *testing.T) {
	dev, err := cpu.New(cpu.Options{BFloat16: true})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	var ratios [2][]float64
	all := references(t, "testdata")
	for _, want := range all {
		t.Run(want.Net, func(t *testing.T) {
			logits, gradients := newJudge(t, want).deviations(dev)
			theirs := want.Autocast
			t.Logf("logits %.2g, autocast %.2g; gradients %.2g, %.2g", logits, theirs.Logits, gradients, theirs.Gradients)
			for i, r := range []float64{logits / theirs.Logits, gradients / theirs.Gradients} {
				ratios[i] = append(ratios[i], r)
				if !(r <= 3) {
					t.Errorf("%s deviate %.2g times as much as autocast's", []string{"logits", "gradients"}[i], r)
				}
			}
		})
	}
	for i, what := range []string{"logits", "gradients"} {
		mean := 1.
		for _, r := range ratios[i] {
			mean *= math.Pow(r, 1/float64(len(all)))
		}
		t.Logf("%s: %.2f times, geometric mean", what, mean)
		if len(ratios[i]) == len(all) && !(mean <= 1.1) { // else -run chose some
			t.Errorf("%s deviate %.2f times as much as autocast's, geometric mean", what, mean)
		}
	}
}

// deviations are make.py's autocast, of a device.
func (j judge) deviations(dev device.Device) (logits, gradients float64) {
	eval := j.net(dev, nn.Eval)
	j.run(eval)
	off := j.read(eval, eval.Model.Logits)
	for i := range off {
		off[i] -= j.want.Logits[i]
	}
	train := j.net(dev, nn.Train)
	j.run(train)
	var norms, offs []float64
	for _, p := range train.Model.Params {
		x := j.read(train, p.Grad)
		norms = append(norms, norm(x))
		offs = append(offs, product(x)-j.want.Gradients[p.Name])
	}
	least := 1e-2 * slices.Max(norms)
	for i := range offs {
		offs[i] /= max(norms[i], least)
	}
	return norm(off) / norm(j.want.Logits), norm(offs) / math.Sqrt(float64(len(offs)))
}

// references reads the files of a folder.
func references(t *testing.T, dir string) (list []*reference) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 || dir == "testdata" && len(files) != len(zootest.Narrow) {
		t.Fatalf("%s has %d files for %d narrow nets, %v", dir, len(files), len(zootest.Narrow), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := new(reference)
		if err := json.Unmarshal(b, want); err != nil {
			t.Fatal(err)
		}
		list = append(list, want)
	}
	return list
}

func newJudge(t *testing.T, want *reference) judge {
	a, ok := zootest.Narrow[want.Net]
	if !ok {
		var err error
		if a, err = nn.Lookup(want.Net); err != nil {
			t.Fatal(err)
		}
	}
	return judge{T: t, want: want, arch: a}
}

// tolerances are relative to the largest logit, the norm of a tensor, the first loss and those after
// steps.
type tolerances struct{ logits, gradients, statistics, loss, steps float64 }

type judge struct {
	*testing.T
	want *reference
	arch nn.Architecture
}

func (j judge) model(mode nn.Mode, d op.DType) *nn.Model {
	m, err := j.arch.Model(nn.Config{Batch: j.want.Batch, Mode: mode, Classes: j.want.Classes, Size: j.want.Size,
		FloatInput: true, DType: d})
	if err != nil {
		j.Fatal(err)
	}
	return m
}

// structure compares names, shapes, initial values, exemptions from weight decay, and layers that drop something.
func (j judge) structure() {
	m := j.model(nn.Eval, op.Float64)
	state := m.StateDict()
	if len(state) != len(j.want.State) {
		j.Fatalf("%d tensors, want %d", len(state), len(j.want.State))
	}
	for i, w := range j.want.State {
		if g := state[i]; g.Name != w.Name || !g.Shape.Equal(w.Shape) {
			j.Fatalf("tensor %d is %s%v, want %s%v", i, g.Name, g.Shape, w.Name, w.Shape)
		}
	}
	for i := range m.Params {
		p := &m.Params[i]
		exempt := len(p.Shape) == 1 || slices.Contains(j.want.Exempt, p.Name)
		if j.want.Exempt != nil && p.BiasOrNorm != exempt {
			j.Errorf("%s%v is exempt from weight decay: %t, want %t", p.Name, p.Shape, p.BiasOrNorm, exempt)
		}
		want, ok := j.want.Initial[p.Name]
		if !ok {
			continue
		}
		x := op.New(op.T(op.Float64, p.Shape...))
		if err := p.Fill(x, 1); err != nil {
			j.Fatal(err)
		}
		// The mean square of n normal numbers deviates by √(2/n); both are drawn.
		n := float64(p.Shape.Size())
		tol := 5 / math.Sqrt(n)
		if p.Init.Distribution == nn.Constant {
			tol = 1e-6
		}
		if got := norm(x.Data.([]float64)) / math.Sqrt(n); math.Abs(got-want) > tol*want || got < want/20 {
			j.Errorf("%s starts with the root mean square %g, want %g", p.Name, got, want)
		}
	}

	train, err := j.arch.Model(nn.Config{Batch: j.want.Batch, Classes: j.want.Classes, Size: j.want.Size,
		Dropout: j.arch.Dropout, DropPath: j.arch.DropPath})
	if err != nil {
		j.Fatal(err)
	}
	dropped := map[string]string{} // expressions by layer
	for _, n := range train.Graph.AllNodes() {
		o, ok := n.Op().(*nn.Op)
		if _, seen := dropped[layerOf(o)]; ok && !seen && strings.Contains(o.Op().String(), "random") {
			dropped[o.Layer()] = o.Op().String()
			// Numbers are drawn by the first dimension. Nets that give biases of attention have none of samples.
			if n.Shape()[0] != j.want.Batch && !ofPairs.MatchString(o.Layer()) {
				j.Errorf("%s drops elements of %v, want a batch of %d", o.Layer(), n.Shape(), j.want.Batch)
			}
		}
	}
	if len(dropped) != len(j.want.Dropped) {
		j.Errorf("%d layers drop, want %d: %v", len(dropped), len(j.want.Dropped), dropped)
	}
	for layer, p := range j.want.Dropped {
		if scale := fmt.Sprint(1 / (1 - p)); !strings.Contains(dropped[layer], scale) {
			j.Errorf("%s drops %q, want what is left times %s", layer, dropped[layer], scale)
		}
	}
}

// ofPairs finds layers that drop numbers from which biases of attention are made.
var ofPairs = regexp.MustCompile(`(rel_pos|meta_mlp)\.`)

func layerOf(o *nn.Op) string {
	if o == nil {
		return ""
	}
	return o.Layer()
}

// on compares evaluation, gradients, statistics and steps on a device.
func (j judge) on(dev device.Device, tol tolerances) {
	eval := j.net(dev, nn.Eval)
	j.run(eval)
	largest := slices.Max(j.want.Logits)
	largest = max(largest, -slices.Min(j.want.Logits))
	worst := 0.
	for i, v := range j.read(eval, eval.Model.Logits) {
		worst = worse(worst, math.Abs(v-j.want.Logits[i])/largest)
	}
	if dev.DType() == op.Float32 {
		tol.logits = max(tol.logits, 10*j.want.Deviation)
	}
	if !(worst <= tol.logits) {
		j.Errorf("%s: logits are off by %.2g of the largest, %.2g is allowed", dev.Name(), worst, tol.logits)
	}
	line := fmt.Sprintf("%s: logits %.1e (PyTorch's float32 %.1e)", dev.Name(), worst, j.want.Deviation)

	line += j.steps(dev, tol, optim.SGD{Momentum: .9}, j.want.SGD, j.want.SGD32)
	line += j.steps(dev, tol, optim.AdamW{Beta1: .9, Beta2: .999, Eps: 1e-8, Decay: .05}, j.want.AdamW, j.want.AdamW32)
	j.Log(line)
}

// elements is the number of numbers in the state dict.
func (j judge) elements() (n int) {
	for _, t := range j.want.State {
		n += op.Shape(t.Shape).Size()
	}
	return n
}

// steps compares the losses of an optimiser's steps, with those of PyTorch's float32 for a measure of rounding, and
// before them gradients and statistics.
func (j judge) steps(dev device.Device, tol tolerances, by device.Optimizer, losses, losses32 []float64) (line string) {
	if losses == nil { // of a whole net
		return ""
	}
	const large = 1_000_000 // takes seconds
	_, first := by.(optim.SGD)
	switch {
	case machinetest.Full():
	case !first && (crc32.ChecksumIEEE([]byte(j.want.Net))%4 > 0 || j.elements() > large):
		return "" // exemptions and gradients, which a net adds to the optimiser, are compared for all
	case j.elements() > large:
		losses = losses[:2]
	case first:
		losses = losses[:min(3, len(losses))] // whole nets have fewer
	default:
		losses = losses[:2]
	}
	train := j.net(dev, nn.Train)
	m := train.Model
	state := []device.Vector{train.Momentum}
	for len(state) < len(by.State()) {
		v, err := dev.NewVector(m.NumParams())
		if err != nil {
			j.Fatal(err)
		}
		j.Cleanup(v.Free)
		state = append(state, v)
	}
	for step, want := range losses {
		j.run(train)
		loss := j.read(train, m.Loss)[0]
		if first && step == 0 {
			gradients, statistics := 0., 0.
			all, err := train.Grads.Norm()
			if err != nil {
				j.Fatal(err)
			}
			if dev.DType() == op.Float32 {
				tol.gradients = max(tol.gradients, 5*j.want.Float32.Gradients)
				tol.statistics = max(tol.statistics, 5*j.want.Float32.Statistics)
			}
			for _, p := range m.Params { // before a normalisation a bias has the gradient 0
				off := j.tensor(dev, "gradient of "+p.Name, j.read(train, p.Grad), j.want.Gradients[p.Name], 1e-4*all, tol.gradients)
				gradients = worse(gradients, off)
			}
			for _, s := range m.Stats {
				v := j.read(train, s.Node)
				for i, part := range []string{".running_mean", ".running_var"} {
					x := v[i*s.Channels:][:s.Channels]
					statistics = worse(statistics, j.tensor(dev, s.Name+part, x, j.want.Running[s.Name+part], 0, tol.statistics))
				}
			}
			line += fmt.Sprintf(", gradients %.1e, statistics %.1e", gradients, statistics)
		}
		if step == 0 {
			line += ", losses by " + by.Name()
		}
		off := math.Abs(loss-want) / math.Abs(want)
		line += fmt.Sprintf(" %.1e", off)
		allowed := tol.loss
		if step > 0 {
			allowed = tol.steps
		}
		if dev.DType() == op.Float32 {
			allowed = max(allowed, 20*math.Abs(losses32[step]-want)/math.Abs(want))
		}
		if !(off <= allowed) {
			j.Errorf("%s: the loss after %d steps of %s is %.12g, want %.12g", dev.Name(), step, by.Name(), loss, want)
		}
		err := train.Params.Update(device.Update{Optimizer: by, Grad: train.Grads, State: state,
			Numbers: device.Numbers{Rate: .001, Scale: 1, Step: float64(step + 1)}})
		if err != nil {
			j.Fatal(err)
		}
	}
	return line
}

// worse is the larger error, NaN being larger than all.
func worse(a, b float64) float64 {
	if math.IsNaN(a) || a > b {
		return a
	}
	return b
}

// tensor compares the inner product of a tensor and returns its error relative to the norm, or to the least one.
func (j judge) tensor(dev device.Device, what string, x []float64, want, least, tol float64) float64 {
	sum := product(x)
	off := math.Abs(sum-want) / max(norm(x), least)
	if sum == want {
		off = 0
	}
	if !(off <= tol) {
		j.Errorf("%s: %s: the inner product is %.12g, want %.12g: off by %.2g of the norm", dev.Name(), what, sum, want, off)
	}
	return off
}

// product is make.py's inner product.
func product(x []float64) float64 {
	sum := 0.
	for i, v := range x {
		sum += v * (2*golden.U01(productStream, i) - 1)
	}
	return sum
}

func norm(x []float64) float64 {
	s := 0.
	for _, v := range x {
		s += v * v
	}
	return math.Sqrt(s)
}

// The streams of make.py.
const imageStream, productStream = 100000, 100002

// net makes the net on a device, with the weights of make.py.
func (j judge) net(dev device.Device, mode nn.Mode) *machinetest.Net {
	k := uint64(0)
	n, err := machinetest.NewModel(j.model(mode, dev.DType()), machine.Config{Device: dev}, nil,
		func(e nn.Entry) op.Tensor {
			k++
			return formula(k-1, e)
		})
	if err != nil {
		j.Fatal(err)
	}
	j.Cleanup(func() {
		if err := n.Close(); err != nil {
			j.Error(err)
		}
	})
	m := n.Model
	j.write(n, m.Input, numbers(imageStream, op.Shape(m.Input.Shape()),
		func(u float64) float64 { return (2*u - 1) * math.Sqrt(3) }))
	labels := golden.Labels(j.want.Batch)
	for i := range labels.Data.([]int32) {
		labels.Data.([]int32)[i] %= int32(j.want.Classes)
	}
	j.write(n, m.Labels, labels)
	if m.RandomCounter != nil {
		j.write(n, m.RandomCounter, op.Tensor{Shape: op.Shape{2}, Data: make([]int32, 2)})
	}
	if m.BatchNormMomentum != nil {
		j.write(n, m.BatchNormMomentum, op.Tensor{Shape: op.Shape{1}, Data: []float64{j.arch.BatchNormMomentum}})
	}
	return n
}

// formula is make.py's value.
func formula(stream uint64, e nn.Entry) op.Tensor {
	first := golden.U01(stream, 0)
	return numbers(stream, e.Shape, func(u float64) float64 {
		switch {
		case strings.HasPrefix(e.Name, "features.7") && strings.HasSuffix(e.Name, "logit_scale") && u == first:
			return 5
		case strings.HasSuffix(e.Name, "logit_scale"):
			return u
		case len(e.Shape) > 1:
			return (2*u - 1) * math.Sqrt(3/float64(e.Shape[1:].Size()))
		case e.Kind == nn.RunningVar:
			return .5 + u
		case strings.HasSuffix(e.Name, ".weight"), strings.HasSuffix(e.Name, ".scale"):
			return .75 + .5*u
		}
		return .2 * (2*u - 1)
	})
}

// numbers are f of a stream's, rounded to float32.
func numbers(stream uint64, s op.Shape, f func(u float64) float64) op.Tensor {
	x := op.New(op.T(op.Float64, s...))
	for i := range x.Data.([]float64) {
		x.Data.([]float64)[i] = float64(float32(f(golden.U01(stream, i))))
	}
	return x
}

func (j judge) write(n *machinetest.Net, x *G.Node, v op.Tensor) {
	if err := n.Machine.Write(x, v); err != nil {
		j.Fatal(err)
	}
}

func (j judge) run(n *machinetest.Net) {
	if err := n.Machine.Run(); err != nil {
		j.Fatal(err)
	}
}

func (j judge) read(n *machinetest.Net, x *G.Node) []float64 {
	v, err := n.Read(x)
	if err != nil {
		j.Fatal(err)
	}
	return v
}
