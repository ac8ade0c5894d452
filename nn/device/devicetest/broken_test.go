package devicetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

// recorder is a tester that records failures. It runs one test with its parents and subtests.
type recorder struct {
	name, only string
	failures   *[]string
}

// stop is the panic value of a recorder's Fatalf.
type stop struct{}

func (r recorder) Helper() {}

func (r recorder) Errorf(format string, args ...any) {
	*r.failures = append(*r.failures, r.name+": "+fmt.Sprintf(format, args...))
}

func (r recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(stop{})
}

func (r recorder) run(name string, f func(tester)) {
	name = r.name + "/" + name
	if !strings.HasPrefix(name, r.only) && !strings.HasPrefix(r.only, name+"/") {
		return
	}
	defer func() {
		if e := recover(); e != nil && e != any(stop{}) {
			panic(e)
		}
	}()
	f(recorder{name, r.only, r.failures})
}

// broken is the reference device with a fault.
type broken struct {
	device.Device
	describe func(g *device.Group, p *device.Plan)
	after    func(g *device.Group, a device.Args) // a kernel has run
	vector   func(device.Vector) device.Vector
	group    func(p *device.Program) [][]int
	memory   func(device.Memory)
	upload   func(op.Tensor) op.Tensor
}

func (b broken) NewMemory(n int) (device.Memory, error) {
	m, err := b.Device.NewMemory(n)
	if err == nil && b.memory != nil {
		b.memory(m)
	}
	return m, err
}

func (b broken) Upload(r device.Region, l device.Layout, src op.Tensor) error {
	if b.upload != nil {
		src = b.upload(src)
	}
	return b.Device.Upload(r, l, src)
}

func (b broken) Describe(g *device.Group) (*device.Plan, error) {
	p, err := b.Device.Describe(g)
	if err == nil && b.describe != nil {
		b.describe(g, p)
	}
	return p, err
}

func (b broken) Bind(g *device.Group, p *device.Plan, a device.Args) (device.Kernel, error) {
	k, err := b.Device.Bind(g, p, a)
	if err != nil || b.after == nil {
		return k, err
	}
	return func() error {
		err := k()
		b.after(g, a)
		return err
	}, nil
}

func (b broken) NewVector(n int) (device.Vector, error) {
	v, err := b.Device.NewVector(n)
	if err != nil || b.vector == nil {
		return v, err
	}
	return b.vector(v), nil
}

func (b broken) Group(p *device.Program) [][]int {
	if b.group == nil {
		return nil
	}
	return b.group(p)
}

// vector is a reference vector with a fault.
type vector struct {
	device.Vector
	elements
	fault func(*device.Update)
}

// elements makes vector one of the reference device's.
type elements interface{ Elements() []float32 }

func (v *vector) Update(u device.Update) error {
	v.fault(&u)
	return v.Vector.Update(u)
}

// only runs f on the storage of the result of ops of a kind.
func only(kind string, f func(x []float32)) func(*device.Group, device.Args) {
	return func(g *device.Group, a device.Args) {
		if g.Steps[0].Op.Kind() == kind {
			f(content(a.Out[0]))
		}
	}
}

func content(r device.Region) []float32 {
	x, err := device.HostSlice[float32](r)
	if err != nil {
		panic(err)
	}
	return x
}

// pastEnd is the n elements after the end of r.
func pastEnd(r device.Region, n int) []float32 {
	return content(r.Part(r.Bytes, 4*n))
}

func TestFaultsAreFound(t *testing.T) {
	runs := 0
	for _, c := range []struct {
		fault  string
		broken broken
		want   []string // a failure with all of these
	}{
		{"writes past the result",
			broken{after: func(g *device.Group, a device.Args) {
				if g.Steps[0].Op.Kind() == "add" {
					pastEnd(a.Out[0], 1)[0] = 1
				}
			}},
			[]string{"ops/add", "behind the end of result"}},
		{"writes before the result",
			broken{after: func(g *device.Group, a device.Args) {
				if g.Steps[0].Op.Kind() == "linear" {
					content(a.Out[0].Part(-4, 4))[0] = 1
				}
			}},
			[]string{"ops/linear", "before the start of result"}},
		{"writes past the workspace",
			broken{
				describe: func(g *device.Group, p *device.Plan) { p.Workspace += 64 },
				after: func(g *device.Group, a device.Args) {
					if g.Steps[0].Op.Kind() == "conv2d" {
						pastEnd(a.Workspace, 1)[0] = 1
					}
				},
			},
			[]string{"ops/conv2d", "behind the end of workspace"}},
		{"changes an operand",
			broken{after: func(g *device.Group, a device.Args) {
				if g.Steps[0].Op.Kind() == "batch_norm" {
					content(a.In[2])[0]++
				}
			}},
			[]string{"ops/batch_norm", "operand 2", "was changed"}},
		{"a wrong gradient",
			broken{after: only("conv2d_grad_input", func(x []float32) { x[len(x)/2] += 1e-3 })},
			[]string{"ops/conv2d_grad_input", "want", "input [2 3 8 8]", "float32[4 3 1 1]", "element [1 0 0 0]"}},
		{"a gradient of the wrong sign",
			broken{after: only("relu_grad", func(x []float32) {
				for i := range x {
					x[i] = -x[i]
				}
			})},
			[]string{"gradients", "relu: with respect to operand 0", "finite differences give"}},
		{"an element left out",
			broken{after: only("max_pool", func(x []float32) { x[0] = math.Float32frombits(0x7fc0dead) })},
			[]string{"ops/max_pool", "NaN", "was it written"}},
		{"depends on the workspace",
			broken{
				describe: func(g *device.Group, p *device.Plan) { p.Workspace += 64 },
				after: func(g *device.Group, a device.Args) {
					if g.Steps[0].Op.Kind() == "relu" {
						content(a.Out[0])[0] += content(a.Workspace)[0]
					}
				},
			},
			[]string{"ops/relu", "NaN"}},
		{"differs from run to run",
			broken{after: only("global_avg_pool", func(x []float32) {
				runs++
				x[0] *= 1 + float32(runs%2)*2e-7
			})},
			[]string{"ops/global_avg_pool", "differs from the first run"}},
		{"a variance that cancels",
			broken{after: only("batch_norm_stats", func(x []float32) {
				for i := len(x) / 2; i < len(x); i++ {
					x[i] *= 1.001
				}
			})},
			[]string{"ops/batch_norm_stats", "element [1 0]"}},
		{"a view that is not one",
			broken{describe: func(g *device.Group, p *device.Plan) {
				if g.Steps[0].Op.Kind() == "row" {
					p.Outputs[0].View.Offset = 0
				}
			}},
			[]string{"ops/row", "row{"}},
		{"takes over what it reads again",
			broken{describe: func(g *device.Group, p *device.Plan) {
				if g.Steps[0].Op.Kind() == "global_avg_pool_grad" {
					p.Outputs[0].Over = []int{3}
				}
			}},
			[]string{"ops/global_avg_pool_grad", "over input 3 of 1"}},
		{"a gradient in another layout than the weight",
			broken{describe: func(g *device.Group, p *device.Plan) {
				if g.Steps[0].Op.Kind() == "linear_grad_weight" {
					p.Outputs[0].Layout = "transposed"
				}
			}},
			[]string{"ops/linear_grad_weight", `layout "transposed"`}},
		{"groups that run too late",
			broken{group: func(p *device.Program) [][]int { return [][]int{{0, len(p.Steps) - 1}} }},
			[]string{"programs", "runs before value"}},
		{"memory that is not zero",
			broken{memory: func(m device.Memory) {
				if m.Bytes() == 4096+1 {
					x, _ := device.HostSlice[uint8](device.Region{Memory: m, Bytes: m.Bytes()})
					x[4096] = 1
				}
			}},
			[]string{"memory", "not zero at byte 4096"}},
		{"an upload in half precision",
			broken{upload: func(x op.Tensor) op.Tensor {
				if x.DType() != op.Float32 {
					return x
				}
				half := op.New(x.Type())
				for i, a := range x.Data.([]float32) {
					half.Data.([]float32)[i] = math.Float32frombits(math.Float32bits(a) &^ 0xffff)
				}
				return half
			}},
			[]string{"layouts", "after upload and download element"}},
		{"ignores the exemption from decay",
			broken{vector: func(v device.Vector) device.Vector {
				return &vector{v, v.(elements), func(u *device.Update) { u.NoDecay = nil }}
			}},
			[]string{"updates", "sgd {Momentum:0 Decay:0.5", "after step 1"}},
		{"ignores Nesterov",
			broken{vector: func(v device.Vector) device.Vector {
				return &vector{v, v.(elements), func(u *device.Update) {
					if o, ok := u.Optimizer.(optim.SGD); ok {
						o.Nesterov = false
						u.Optimizer = o
					}
				}}
			}},
			[]string{"sgd as PyTorch", "Nesterov:true", "x after step"}},
		{"corrects no bias",
			broken{vector: func(v device.Vector) device.Vector {
				return &vector{v, v.(elements), func(u *device.Update) { u.Numbers.Step = 1e9 }}
			}},
			[]string{"updates as PyTorch", "adamw", "parameters after step 1"}},
		{"takes all parameters for one tensor",
			broken{vector: func(v device.Vector) device.Vector {
				return &vector{v, v.(elements), func(u *device.Update) {
					u.Tensors, u.NoDecay = []device.Span{{Len: v.Len()}}, nil
				}}
			}},
			[]string{"updates as PyTorch", "lars", "parameters after step 1"}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			c.broken.Device = device.NewReference(op.Float32)
			var failures []string
			open := func() (device.Device, error) { return c.broken, nil }
			run(recorder{only: "/" + c.want[0], failures: &failures}, open, Options{})
			wantFailure(t, failures, c.want)
		})
	}
}

// wantFailure asks for a failure that contains all of want.
func wantFailure(t *testing.T, failures, want []string) {
	t.Helper()
	if !slices.ContainsFunc(failures, func(f string) bool {
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(f, w) })
	}) {
		t.Errorf("no failure with all of %q among:\n%s", want, strings.Join(failures, "\n"))
	}
}

func TestDifferencesAreFound(t *testing.T) {
	for _, c := range []struct {
		broken broken
		want   []string
	}{
		{broken{after: only("linear", func(x []float32) { x[0] = math.Nextafter32(x[0], 9) })},
			[]string{"ops", "linear", "result differs between the devices: element [0 0]"}},
		{broken{after: only("avg_pool", func(x []float32) { x[0] = math.Nextafter32(x[0], 9) })},
			[]string{"programs", "LeNet", "differs between the devices"}},
		{broken{vector: func(v device.Vector) device.Vector {
			return &vector{v, v.(elements), func(u *device.Update) { u.Numbers.Rate *= 1 + 1e-6 }}
		}},
			[]string{"vectors", "sgd: element"}},
	} {
		c.broken.Device = device.NewReference(op.Float32)
		var failures []string
		a := func() (device.Device, error) { return broken{Device: c.broken.Device}, nil }
		b := func() (device.Device, error) { return c.broken, nil }
		equal(recorder{only: "/" + c.want[0], failures: &failures}, a, b)
		wantFailure(t, failures, c.want)
	}
}
