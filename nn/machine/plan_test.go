package machine_test

import (
	"testing"
	"time"

	G "gorgonia.org/gorgonia"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"
)

// noMemory replaces memory in planning.
type noMemory int

func (m *noMemory) Bytes() int { return int(*m) }
func (m *noMemory) Free()      {}

// planOnly plans a model's training without allocating anything.
func planOnly(t testing.TB, dev device.Device, arch string, c nn.Config, low bool) *machine.Machine {
	t.Helper()
	m, err := nn.Build(arch, c)
	if err != nil {
		t.Fatal(err)
	}
	mc := machine.Config{Device: dev, Keep: append(G.Nodes{m.Loss, m.Score}, m.Updates...),
		Bind: make(map[*G.Node]machine.Binding), LowMemory: low}
	bind := func(n *G.Node) {
		typ, err := nn.TypeOf(n)
		if err != nil {
			t.Fatal(err)
		}
		size := noMemory(typ.Bytes())
		mc.Bind[n] = machine.Binding{Region: device.Region{Memory: &size, Bytes: typ.Bytes()},
			Layout: dev.Layout(typ, device.Weight)}
	}
	for _, p := range m.Params {
		bind(p.Node)
		if p.Grad != nil {
			bind(p.Grad)
		}
	}
	for _, s := range m.Stats {
		bind(s.Node)
	}
	start := time.Now()
	x, err := machine.New(m.Graph, mc)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s, batch %d, %v: planned in %v: %+v", dev.Name(), arch, c.Batch, c.Mode,
		time.Since(start).Round(time.Millisecond), x.Stats())
	return x
}

func TestArenaIsNearLowerBound(t *testing.T) {
	fast, err := cpu.New(cpu.Options{Threads: 2}) // each thread adds scratch
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Close()
	norms := []string{"*bn*", "*downsample.1*"}
	for _, test := range []struct {
		arch   string
		batch  int
		mode   nn.Mode
		low    bool
		most   int // bytes
		frozen []string
	}{
		{"resnet50", 32, nn.Train, false, 2_765_000_000, nil},
		{"resnet50", 16, nn.Train, false, 1_390_000_000, nil},
		{"resnet50", 16, nn.Train, true, 810_000_000, nil},
		{"resnet50", 16, nn.Train, false, 685_000_000, norms},
		{"resnet50", 16, nn.Train, true, 510_000_000, norms},
		{"resnet50", 32, nn.Eval, false, 320_000_000, nil},
		{"resnet50", 32, nn.Eval, true, 320_000_000, nil},
		{"resnet152", 8, nn.Train, false, 0, nil},
		{"resnet152", 8, nn.Train, true, 0, nil},
		{"resnet20", 128, nn.Train, false, 0, nil},
		{"lenet", 64, nn.Train, false, 0, nil},
	} {
		for _, dev := range []device.Device{device.NewReference(op.Float32), fast} {
			s := planOnly(t, dev, test.arch, nn.Config{Batch: test.batch, Mode: test.mode, Freeze: test.frozen}, test.low).Stats()
			if s.Arena < s.LowerBound || float64(s.Arena) > 1.1*float64(s.LowerBound) {
				t.Errorf("%s, %s, batch %d: arena of %d bytes, at least %d are needed", dev.Name(), test.arch,
					test.batch, s.Arena, s.LowerBound)
			}
			if test.most > 0 && s.Arena > test.most {
				t.Errorf("%s, %s, batch %d: arena of %d bytes, more than %d", dev.Name(), test.arch, test.batch,
					s.Arena, test.most)
			}
		}
	}
}
