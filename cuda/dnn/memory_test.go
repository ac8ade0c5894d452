//go:build gpu && cgo

package dnn

import (
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// spans are places for a convolution's operands, result and workspace.
func spans(t *testing.T, c *driver.Context, v *Plans) [4]driver.Span {
	b := v.Graph().Places()
	return [4]driver.Span{alloc(t, c, b[0]).All(), alloc(t, c, b[1]).All(), alloc(t, c, b[2]).All(),
		alloc(t, c, max(v.Workspace(), 1)).All()}
}

// Heuristics that lacked memory are asked again: there may be a plan.
func TestFaultOfMemoryOfHeuristics(t *testing.T) {
	fault(t, "")
	o := Options{Measure: true, Precision: number.BFloat16, Workspace: 1 << 20}
	for _, later := range []bool{false, true} {
		c := openWith(t, driver.Options{KernelCache: t.TempDir(), ExactMemory: true})
		d := newDNN(t, c)
		o.Later = later
		for call := 1; call <= 60; call += 3 {
			check(t, sim.Fault("cudnnBackendCreateDescriptor@"+strconv.Itoa(call)+"=4003"))
			p, err := d.NewPlans(blur.Graph(Forward, number.BFloat16), o)
			check(t, sim.Fault(""))
			if err != nil && (!errors.Is(err, driver.ErrOutOfMemory) || errors.Is(err, ErrNoPlan)) || call == 1 &&
				err == nil {
				t.Errorf("later %v, call %d: %v, want driver.ErrOutOfMemory", later, call, err)
			}
			if err == nil {
				check(t, p.Close())
			}
		}
	}
	// The kept plan does not run, and asking for another fails, with measuring and without.
	o.Later = false
	folder := t.TempDir()
	c := openWith(t, driver.Options{KernelCache: folder, ExactMemory: true})
	d := newDNN(t, c)
	_, err := settleOne(t, c, d, blur, o)
	check(t, err)
	for _, refused := range []string{"cudnnBackendCreateDescriptor@2=4003;cudnnBackendCreateDescriptor@3=4003",
		"cudnnBackendFinalize@2=4004;cudnnBackendFinalize@3=4004"} {
		v, err := convolution(d, Forward, blur, o)
		check(t, err)
		defer func() { check(t, v.Close()) }()
		if v.state != kept {
			t.Fatal("no plan was kept")
		}
		s := spans(t, c, v)
		check(t, sim.Fault("cudnnBackendExecute@1=5000;"+refused))
		if err := v.Settle(s[:3], s[3]); !errors.Is(err, driver.ErrOutOfMemory) ||
			errors.Is(err, ErrNoPlan) {
			t.Errorf("%s: %v, want driver.ErrOutOfMemory", refused, err)
		}
		check(t, sim.Fault(""))
		check(t, v.Settle(s[:3], s[3]))
		check(t, v.Run(s[:3], s[3]))
	}
}

// Making a plan, from an engine or from a kept text, is retried once if freed memory was returned, and only then.
func TestFaultOfMemoryOfMaking(t *testing.T) {
	fault(t, "")
	o := Options{Measure: true, Precision: number.BFloat16, Workspace: 1 << 20}
	folder := t.TempDir()
	c := openWith(t, driver.Options{KernelCache: folder})
	d := newDNN(t, c)
	_, err := settleOne(t, c, d, blur, o)
	check(t, err)
	for _, freed := range []bool{false, true} {
		spare := func() {
			check(t, c.Trim())
			if freed {
				m, err := c.Alloc(1 << 10)
				check(t, err)
				check(t, m.Close())
			}
		}
		later := o
		later.Later, later.Measure = true, false
		p, err := d.NewPlans(Shape{N: 1, C: 8, H: 4, W: 4, O: 8, KH: 1, KW: 1, Stride: [2]int{1, 1},
			Dilation: [2]int{1, 1}, Groups: 1}.Graph(Forward, number.BFloat16), later)
		check(t, err)
		p.all = p.all[1:] // the first engine cannot make a plan
		spare()
		before := sim.Calls("cudnnBackendFinalize")
		check(t, sim.Fault("cudnnBackendFinalize@1=4004"))
		err = p.Make()
		check(t, sim.Fault(""))
		if calls := sim.Calls("cudnnBackendFinalize") - before; freed && (err != nil || calls != 2) || !freed &&
			(!errors.Is(err, driver.ErrOutOfMemory) || errors.Is(err, ErrNoPlan) || calls != 1) {
			t.Errorf("freed memory %v: %v after %d calls", freed, err, calls)
		}
		check(t, p.Close())

		spare()
		check(t, sim.Fault("cudnnBackendFinalize@1=4004"))
		v, err := convolution(d, Forward, blur, o)
		check(t, sim.Fault(""))
		check(t, err)
		if kept := v.state == kept; kept != freed || v.Short() == freed {
			t.Errorf("freed memory %v: the plan that was kept is taken: %v, short of memory: %v", freed, kept,
				v.Short())
		}
		check(t, v.Close())
	}
	files, err := filepath.Glob(filepath.Join(folder, "plan-*"))
	if check(t, err); len(files) != 1 {
		t.Errorf("files %q", files)
	}
}
