//go:build gpu && cgo

package dnn

// #include <cudnn_backend.h>
import "C"

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"onlinerna/cuda/driver"
)

// plan runs a graph by an engine.
type plan struct {
	engine    Engine
	workspace int64
	backend   // the plan's own descriptors
	d         C.cudnnBackendDescriptor_t
	packs     map[addresses]C.cudnnBackendDescriptor_t // one for each set of tensors and workspace used so far
}

// addresses are the addresses of a graph's tensors and, last, of the workspace.
type addresses [16]C.CUdeviceptr

// mostPacks limits the packs kept: a step uses one convolution less often.
const mostPacks = 128

// pack describes tensors and a workspace. It is cached, since each training step uses the same ones.
func (x *plan) pack(uids []int64, at addresses) (C.cudnnBackendDescriptor_t, error) {
	if v, ok := x.packs[at]; ok {
		return v, nil
	}
	const own = 1 // the plan itself
	if len(x.packs) == mostPacks {
		x.packs = nil
		if err := x.release(own); err != nil {
			return nil, err
		}
	}
	v := x.make(C.CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
	x.setInts(v, C.CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids...)
	set(&x.backend, v, C.CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, C.CUDNN_TYPE_VOID_PTR, at[:len(uids)]...)
	set(&x.backend, v, C.CUDNN_ATTR_VARIANT_PACK_WORKSPACE, C.CUDNN_TYPE_VOID_PTR, at[len(at)-1])
	x.finalize(v, "pointers")
	if err := x.err; err != nil {
		x.packs, x.err = nil, nil
		_ = x.release(own) // err is the cause
		return nil, err
	}
	if x.packs == nil {
		x.packs = map[addresses]C.cudnnBackendDescriptor_t{}
	}
	x.packs[at] = v
	return v, nil
}

// plan makes an engine's plan, which compiles kernels that cuDNN compiles at run time, unless the plan was made before.
func (p *Plans) plan(e Engine) (*plan, error) {
	if e.text != "" {
		return p.make(e, func(x *plan) { x.setText(x.d, C.CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, e.text) })
	}
	e.Knobs = knobs(e.config)
	return p.make(e, func(x *plan) { x.link(x.d, C.CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, e.config) })
}

// load makes a plan from its text, or returns nil.
func (p *Plans) load(k choice) *plan {
	x, err := p.make(k.Engine, func(x *plan) {
		x.setText(x.d, C.CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
			k.Plan)
	})
	if err != nil {
		p.short = errors.Is(err, driver.ErrOutOfMemory)
		return nil
	}
	if !p.within(x.workspace) {
		_ = x.close()
		return nil
	}
	return x
}

// make makes the plan of a described engine.
func (p *Plans) make(e Engine, describe func(*plan)) (x *plan, err error) {
	err = p.d.c.RetryMemory(func() (err error) {
		x = &plan{engine: e}
		x.d = x.make(C.CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
		describe(x)
		x, err = p.finish(x)
		return err
	})
	return x, err
}

func (p *Plans) finish(x *plan) (*plan, error) {
	if p.d.h != nil {
		set(&x.backend, x.d, C.CUDNN_ATTR_EXECUTION_PLAN_HANDLE, C.CUDNN_TYPE_HANDLE, p.d.h)
	}
	if p.d.described != nil {
		x.link(x.d, C.CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, p.d.described)
	}
	x.finalize(x.d, "plan of "+x.engine.String())
	x.workspace = x.getInt(x.d, C.CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
	if x.err != nil {
		err := x.err
		_ = x.close() // err is the cause
		return nil, p.d.told(err)
	}
	return x, nil
}

func (x *plan) close() error { return x.release(0) }

// Kernels names the kernels of the chosen plan that cuDNN reports: those compiled at run time.
func (p *Plans) Kernels() (names []string) {
	if p.chosen == nil {
		return nil
	}
	for _, m := range kernelName.FindAllStringSubmatch(p.chosen.text(), -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

var kernelName = regexp.MustCompile(`"kernelName":"([^"]*)"`)

// text is the plan as JSON, empty if cuDNN cannot write it.
func (x *plan) text() string {
	b := backend{}
	return b.getText(x.d, C.CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)
}

// Run runs the chosen plan on the tensors in memory, in the graph's order. All spans start at multiples of 16 bytes.
// The content of the workspace is lost.
func (p *Plans) Run(at []driver.Span, workspace driver.Span) error {
	return p.d.do(func() error {
		if err := p.Check(); err != nil {
			return err
		}
		return p.launch(p.chosen, at, workspace)
	})
}

// errPlaces reports spans that do not suit the graph.
var errPlaces = errors.New("wrong spans")

// launch is Run, called on the owner thread.
func (p *Plans) launch(x *plan, at []driver.Span, workspace driver.Span) error {
	places := p.places
	if len(at) != len(places) || workspace.Bytes() < x.workspace {
		return fmt.Errorf("cuda: %w for %s, %v: %d, and a workspace of %d bytes; want %d, and at least %d bytes",
			errPlaces, p.g.Name, p.g, len(at), workspace.Bytes(), len(places), x.workspace)
	}
	address := func(s driver.Span) (C.CUdeviceptr, error) {
		a, err := s.Address(p.d.c)
		if err == nil && a%Align != 0 {
			err = fmt.Errorf("cuda: %w for %s: one does not start at a multiple of %d bytes", errPlaces, p.g.Name,
				Align)
		}
		return C.CUdeviceptr(a), err
	}
	var to addresses
	if len(at)+len(p.scalars) >= len(to) {
		return fmt.Errorf("cuda: %w for %s: %d tensors, the most are %d", errPlaces, p.g.Name, len(at), len(to)-1)
	}
	for i, s := range at {
		if s.Bytes() != places[i] {
			return fmt.Errorf("cuda: %w for %s, %v: %d bytes, want %d", errPlaces, p.g.Name, p.g, s.Bytes(), places[i])
		}
		a, err := address(s)
		if err != nil {
			return err
		}
		to[i] = a
	}
	for i, s := range p.scalars {
		to[len(at)+i] = C.CUdeviceptr(s)
	}
	var err error
	if to[len(to)-1], err = address(workspace); err != nil {
		return err
	}
	v, err := x.pack(p.uids, to)
	if err == nil {
		err = p.d.s.Give(p.work, func() error {
			return p.d.c.Retry(func() error { // cuDNN may have lacked memory for its kernels
				b := backend{}
				b.check(C.cudnnBackendExecute(p.d.h, x.d, v), "cudnnBackendExecute", p.g.Name+" by "+x.engine.String())
				return b.err
			})
		})
	}
	return p.d.told(err)
}
