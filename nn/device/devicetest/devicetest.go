// Package devicetest is the conformance suite of package device: every device passes all of it.
//
// Run takes each op over many shapes and compares the device with the definition of the op, run in float64. Every
// buffer lies between guard bands of NaN, results and workspaces start as NaN, and each kernel runs several times in
// several places: this reveals stray reads and writes, missing elements and results that depend on anything but the
// operands. Gradients are checked against finite differences, whole programs grouped against one by one, vectors
// against plain loops and PyTorch's optimiser.
//
// Equal compares two configurations of a device bit for bit, as one worker and several:
//
//	func workers(n int) devicetest.Open {
//		return func() (device.Device, error) { return cpu.New(cpu.Options{Threads: n}) }
//	}
//
//	func TestDevice(t *testing.T)  { devicetest.Run(t, workers(2), devicetest.Options{}) }
//	func TestWorkers(t *testing.T) { devicetest.Equal(t, workers(1), workers(7)) }
package devicetest

import (
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// Open makes the device under test.
type Open func() (device.Device, error)

// Options describe the accuracy of a device.
type Options struct {
	// Tolerance is the largest error of a result, relative to the largest element of the tensor. Ops of batch
	// normalisation, and whole programs, get five times as much. 0 means 1e-5 on devices of
	// float32 and 1e-12 on those of float64.
	Tolerance float64

	// Round, unless it is nil, is the device's rounding of activations or of the factors of products. The suite then
	// passes rounded numbers, so that only arithmetic can differ, and checks programs step by step, each against its
	// definition on the device's own operands. Derivatives are not compared with finite differences, which vanish in
	// the rounding.
	Round func(float64) float64
	// Unit is the largest relative error of Round. Results that the device stores in fewer bytes than their type has may
	// be off by that share of themselves on top of Tolerance.
	Unit float64

	// Left limits, for slow devices, the number of cases in which a single op also gets operands in the layout of the
	// device's own activations, if this differs from the layout of outside values. 0 is no limit, -1 means no cases.
	Left int

	// ByAddress allows results to have other bits where weights lie at odd addresses, as on devices whose libraries
	// choose kernels by alignment. Two runs at the same addresses have equal bits all the same.
	ByAddress bool
}

// Run tests the device that open makes.
func Run(t *testing.T, open Open, opt Options) { run(goTester{t}, open, opt) }

// Equal tests that two devices give the same results, bit for bit.
func Equal(t *testing.T, a, b Open) { equal(goTester{t}, a, b) }

// tester has the methods of *testing.T that the suite needs, so that its own tests can make it fail.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	run(name string, f func(tester))
}

// goTester makes a *testing.T a tester.
type goTester struct{ *testing.T }

func (t goTester) run(name string, f func(tester)) {
	t.Run(name, func(t *testing.T) { f(goTester{t}) })
}

// suite is a device under test with its accuracy.
type suite struct {
	dev       device.Device
	dtype     op.DType
	tolerance float64
	round     func(float64) float64 // nil: not at all
	unit      float64
	left      int // Options.Left
	byAddress bool
}

func run(t tester, open Open, opt Options) {
	t.Helper()
	s := &suite{dev: opened(t, open), tolerance: opt.Tolerance, round: opt.Round, unit: opt.Unit, left: opt.Left,
		byAddress: opt.ByAddress}
	defer closed(t, s.dev)
	s.dtype = s.dev.DType()
	if !s.dtype.Float() || s.dev.Name() == "" {
		t.Fatalf("device %q keeps its vectors as %v: want a name and a floating-point type", s.dev.Name(), s.dtype)
	}
	if s.tolerance == 0 {
		s.tolerance = map[op.DType]float64{op.Float32: 1e-5, op.Float64: 1e-12}[s.dtype]
	}
	t.run("memory", s.memory)
	t.run("layouts", s.layouts)
	t.run("ops", s.ops)
	if s.round == nil {
		t.run("gradients", s.gradients)
	}
	t.run("programs", s.programs)
	t.run("unsupported", s.unsupported)
	t.run("vectors", s.vectors)
	t.run("updates", s.updates)
	t.run("sgd as PyTorch", s.torch)
	t.run("updates as PyTorch", s.golden)
	t.run("pipeline", s.pipeline)
}

func opened(t tester, open Open) device.Device {
	t.Helper()
	d, err := open()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d
}

func closed(t tester, d device.Device) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
