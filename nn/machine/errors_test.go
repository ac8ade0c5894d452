package machine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// fixture is a small graph: y = relu(a + b), z = mix(y), and a state that y updates.
type fixture struct {
	g                 *G.ExprGraph
	dev               *grouper
	a, b, sum, y, z   *G.Node
	state, update     *G.Node
	unused, elsewhere *G.Node
}

func newFixture(t *testing.T) *fixture {
	rng := rand.New(rand.NewPCG(7, 7))
	f := &fixture{g: G.NewGraph(), dev: &grouper{Device: device.NewReference(op.Float64)}}
	f.a, f.b = newInput(t, f.g, "a", rng, 4), newInput(t, f.g, "b", rng, 4)
	f.sum = apply(t, "join", op.Add{}, f.a, f.b)
	f.y = apply(t, "relu", op.ReLU{}, f.sum)
	f.z = apply(t, "last", mix{1, 6}, f.y)
	f.state = newInput(t, f.g, "state", rng, 4)
	f.update = apply(t, "counter", accumulate{}, f.state, f.y)
	f.unused = newInput(t, f.g, "unused", rng, 2)
	f.elsewhere = newInput(t, G.NewGraph(), "elsewhere", rng, 2)
	return f
}

// region is memory for n elements.
func (f *fixture) region(n int) device.Region {
	m, err := device.NewHostMemory(8 * n)
	if err != nil {
		panic(err)
	}
	return device.Region{Memory: m, Bytes: 8 * n}
}

// TestNewErrors checks that errors name the fault.
func TestNewErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T, f *fixture, c *machine.Config)
		want []string
	}{
		{"no device", func(t *testing.T, f *fixture, c *machine.Config) { c.Device = nil }, []string{"Config.Device"}},
		{"nothing kept", func(t *testing.T, f *fixture, c *machine.Config) { c.Keep = nil },
			[]string{"nothing to compute"}},
		{"nil kept", func(t *testing.T, f *fixture, c *machine.Config) { c.Keep = append(c.Keep, nil) },
			[]string{"Keep[1] is nil"}},
		{"kept of another graph", func(t *testing.T, f *fixture, c *machine.Config) {
			c.Keep = append(c.Keep,
				f.elsewhere)
		}, []string{"Keep[1]", "elsewhere", "not a node of the graph"}},
		{"bound of another graph", func(t *testing.T, f *fixture,
			c *machine.Config) {
			c.Bind[f.elsewhere] = machine.Binding{}
		}, []string{"elsewhere", "not a node of the graph"}},
		{"arena of another device", func(t *testing.T, f *fixture, c *machine.Config) {
			c.Arena = machine.NewArena(device.NewReference(op.Float32))
		}, []string{"arena", "reference"}},
		{"foreign op", func(t *testing.T, f *fixture, c *machine.Config) {
			c.Keep = append(c.Keep, G.Must(G.Tanh(f.y)))
		}, []string{"tanh", "float64[4]", "reference", "nn.Apply"}},
		{"foreign addition", func(t *testing.T, f *fixture, c *machine.Config) {
			c.Keep = append(c.Keep, G.Must(G.Add(f.y, G.NewConstant(2.0))))
		}, []string{`"+`, "float64[4]", "reference"}},
		{"statement", func(t *testing.T, f *fixture, c *machine.Config) {
			var v G.Value
			c.Keep = append(c.Keep, G.Read(f.y, &v))
		}, []string{"statement"}},
		{"bound input of another size", func(t *testing.T, f *fixture, c *machine.Config) {
			c.Bind[f.a] = machine.Binding{Region: device.Region{Bytes: 24}}
		}, []string{"a, float64[4]", "32 bytes", "24"}},
		{"bound result of another size", func(t *testing.T, f *fixture, c *machine.Config) {
			c.Bind[f.y] = machine.Binding{Region: device.Region{Bytes: 24}}
		}, []string{"relu", "float64[4]", "24 bytes", "32"}},
		{"bound result in another layout", func(t *testing.T, f *fixture, c *machine.Config) {
			c.Bind[f.y] = machine.Binding{Region: device.Region{Bytes: 32}, Layout: "NHWC"}
		}, []string{"relu", `"NHWC"`}},
		{"overlapping", func(t *testing.T, f *fixture, c *machine.Config) {
			r := f.region(6)
			c.Bind[f.a] = machine.Binding{Region: r.Part(0, 32)}
			c.Bind[f.y] = machine.Binding{Region: r.Part(16, 32)}
		}, []string{"overlapping", "0 to 32", "16 to 48"}},
		{"bound result in place", func(t *testing.T, f *fixture, c *machine.Config) {
			c.Bind[f.update] = machine.Binding{Region: device.Region{Bytes: 32}}
		}, []string{"counter", "state"}},
		{"state that is computed", func(t *testing.T, f *fixture, c *machine.Config) {
			c.Keep = append(c.Keep, apply(t, "bad", accumulate{}, f.y, f.sum))
		}, []string{"bad", "relu", "not an input"}},
		{"state with another reader", func(t *testing.T, f *fixture, c *machine.Config) {
			c.Keep = append(c.Keep, f.update, apply(t, "early", op.ReLU{}, f.state))
		}, []string{"counter", "overwrites state"}},
		{"inputs of one name", func(t *testing.T, f *fixture, c *machine.Config) {
			w := G.NewVector(f.g, tensor.Float64, G.WithName("a"), G.WithShape(5))
			c.Keep = append(c.Keep, apply(t, "other", op.ReLU{}, w))
		}, []string{`"a"`, "(4)", "(5)"}},
		{"group out of range", propose([]int{0, 9}), []string{"[0 9]", "steps"}},
		{"group out of order", propose([]int{1, 0}), []string{"[1 0]", "order"}},
		{"group twice", propose([]int{0, 1}, []int{1, 2}), []string{"[1 2]", "step 1", "[0 1]"}},
		{"empty group", propose([]int{}), []string{"empty"}},
		{"group around a reader", propose([]int{0, 2}), []string{"[0 2]", "last step", "relu", "join"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			c := machine.Config{Device: f.dev, Keep: G.Nodes{f.z}, Bind: make(map[*G.Node]machine.Binding)}
			test.make(t, f, &c)
			m, err := machine.New(f.g, c)
			wantError(t, err, test.want...)
			if err == nil {
				t.Log(m)
			}
		})
	}
}

func propose(groups ...[]int) func(*testing.T, *fixture, *machine.Config) {
	return func(t *testing.T, f *fixture, c *machine.Config) {
		f.dev.propose = func(*device.Program) [][]int { return groups }
	}
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error; want one with %q", parts)
		return
	}
	for _, p := range append(parts, "machine: ") {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not contain %q", err, p)
		}
	}
}

// TestAccessErrors checks the errors of Write, Read and RunAll.
func TestAccessErrors(t *testing.T) {
	f := newFixture(t)
	bound := machine.Binding{Region: f.region(4)}
	m, err := machine.New(f.g, machine.Config{
		Device: f.dev, Keep: G.Nodes{f.z}, Ungrouped: true, Bind: map[*G.Node]machine.Binding{f.b: bound},
	})
	if err != nil {
		t.Fatal(err)
	}
	four, six := op.New(op.T(op.Float64, 4)), op.New(op.T(op.Float64, 6))
	wantError(t, m.Read(six, f.z), "last mix", "not run")
	wantError(t, m.Read(four, f.a), "a", "nothing was written")
	wantError(t, m.Write(f.a, six), "float64[6]", "a, float64[4]")
	wantError(t, m.Write(f.a, op.New(op.T(op.Int32, 4))), "int32[4]", "a, float64[4]")
	wantError(t, m.Write(f.y, four), "relu", "computed")
	wantError(t, m.Write(f.b, four), "write to b", "bound")
	wantError(t, m.Write(f.unused, four), "unused", "float64[4]", "float64[2]")
	wantError(t, m.Write(f.elsewhere, four), "not of the machine's graph")
	wantError(t, m.Write(nil, four), "not of the machine's graph")
	if err := m.Write(f.unused, op.New(op.T(op.Float32, 2))); err != nil {
		t.Errorf("write to an input that nothing needs: %v", err)
	}
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	wantError(t, m.Read(four, f.z), "last mix", "float64[4]", "float64[6]")
	wantError(t, m.Read(four, f.y), "relu", "Config.Keep")
	wantError(t, m.Read(four, f.update), "Config.Keep")
	wantError(t, m.Read(four, nil), "Config.Keep")
	if err := m.Read(op.New(op.T(op.Float32, 6)), f.z); err != nil {
		t.Errorf("read as float32: %v", err)
	}
	if err := errors.Join(m.Read(four, f.a), m.Read(four, f.b)); err != nil {
		t.Errorf("read of inputs: %v", err)
	}

	x := G.NewVector(f.g, tensor.Float64, G.WithName("x"), G.WithShape(4))
	m, err = machine.New(f.g, machine.Config{Device: f.dev, Keep: G.Nodes{apply(t, "top", op.ReLU{}, x)},
		Ungrouped: true})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, m.RunAll(), "input x", "no value")
}

// broken is a device that refuses or fails.
type broken struct {
	device.Device
	describe, bind, run, memory bool
}

var errBroken = errors.New("broken")

func (b broken) Describe(g *device.Group) (*device.Plan, error) {
	if b.describe && g.Steps[0].Op.Kind() == "relu" {
		return nil, &device.UnsupportedError{Device: "broken", Group: g, Reason: "no relu"}
	}
	return b.Device.Describe(g)
}

func (b broken) Bind(g *device.Group, p *device.Plan, a device.Args) (device.Kernel, error) {
	switch {
	case g.Steps[0].Op.Kind() != "relu":
	case b.bind:
		return nil, errBroken
	case b.run:
		return func() error { return errBroken }, nil
	}
	return b.Device.Bind(g, p, a)
}

func (b broken) NewMemory(n int) (device.Memory, error) {
	if b.memory {
		return nil, errBroken
	}
	return b.Device.NewMemory(n)
}

// TestDeviceErrors checks that a device's errors come with the layer and the op.
func TestDeviceErrors(t *testing.T) {
	for _, dev := range []broken{{describe: true}, {bind: true}, {run: true}, {memory: true}} {
		t.Run(fmt.Sprintf("%+v", dev), func(t *testing.T) {
			dev.Device = device.NewReference(op.Float64)
			f := newFixture(t)
			m, err := machine.New(f.g, machine.Config{Device: dev, Keep: G.Nodes{f.z}})
			if dev.describe {
				var u *device.UnsupportedError
				if !errors.As(err, &u) {
					t.Errorf("error %v is no UnsupportedError", err)
				}
				wantError(t, err, "relu: relu", "float64[4]", "device broken")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			err = m.RunAll()
			if !errors.Is(err, errBroken) {
				t.Errorf("error %v does not wrap the device's", err)
			}
			if dev.memory {
				wantError(t, err, "bytes", "reference")
			} else {
				wantError(t, err, "relu relu")
			}
		})
	}
}

// TestForeignOpError checks that callers can tell the error from others.
func TestForeignOpError(t *testing.T) {
	f := newFixture(t)
	_, err := machine.New(f.g, machine.Config{Device: f.dev, Keep: G.Nodes{G.Must(G.Exp(f.y))}})
	var e *machine.ForeignOpError
	if !errors.As(err, &e) || len(e.Operands) != 1 || !e.Operands[0].Equal(op.T(op.Float64, 4)) {
		t.Errorf("error %v, as %+v", err, e)
	}
}
