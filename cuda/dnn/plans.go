//go:build gpu && cgo

package dnn

// #include <cudnn_backend.h>
// #include <stdlib.h>
// static uintptr_t constant(float value) {
// 	float *p = malloc(sizeof *p);
// 	if (p) *p = value;
// 	return (uintptr_t)p;
// }
// static void release(uintptr_t p) { free((void *)p); }
import "C"

import (
	"errors"
	"fmt"
	"slices"

	"onlinerna/cuda/driver"
)

// ErrNoPlan reports that cuDNN has no plan for a graph, or none that runs within the options.
var ErrNoPlan = errors.New("cuDNN has no plan")

// state is the progress of the choice among plans.
type state int

const (
	unlisted state = iota // the heuristics were not asked, or lacked memory
	kept                  // the plan that an earlier run chose is made; the heuristics were not asked
	offered               // candidates were made ahead; the heuristics were not asked
	listed                // the candidates are known; the first one's plan is made, unless that was left to Settle
	settled               // the chosen plan has run
)

// Plans are cuDNN's plans for a graph: several, until one is chosen.
type Plans struct {
	*driver.Resource
	d *Handle
	g *Graph
	o Options

	b     backend // of the graph
	h     backend // of the heuristics' results
	ops   C.cudnnBackendDescriptor_t
	short bool // see Short

	state          state
	configurations []int    // number from each mode of the heuristics
	all            []Engine // candidates without a plan, best first
	chosen         *plan    // kept or settled, or the first candidate's; nil until one is made
	most           int64    // bytes of workspace that suffice for any of the candidates
	key            string   // of the choice in the cache; empty for none

	// Constants of the graph, used in each run.
	places  []int64       // bytes of tensors in memory
	uids    []int64       // their numbers, and those of constants
	scalars []C.uintptr_t // addresses of constants
	work    driver.Work
}

// NewPlans finds plans for a graph and makes one. Settle makes the others. Without any plan it fails with [ErrNoPlan].
func (d *Handle) NewPlans(g *Graph, o Options) (*Plans, error) {
	p := &Plans{d: d, g: g, o: o, places: g.Places(), work: g.work()}
	for i, t := range g.tensors {
		if t.stored() {
			p.uids = append(p.uids, uid(i))
		}
	}
	for i, t := range g.tensors {
		if t.scalar {
			p.uids, p.scalars = append(p.uids, uid(i)), append(p.scalars, constant(t.value))
		}
	}
	err := d.do(func() error {
		err := p.open()
		if err != nil {
			_ = p.destroy() // err is the cause
			return err
		}
		p.Resource = d.adopt("plan of cuDNN", p.destroy)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// constant is the address of a constant in the C library's memory.
func constant(value float32) C.uintptr_t { return C.constant(C.float(value)) }

// Close frees the plans.
func (p *Plans) Close() error {
	if p.Resource == nil { // the card is only described
		return p.destroy()
	}
	return p.Resource.Close()
}

// Graph is the graph that the plans run.
func (p *Plans) Graph() *Graph { return p.g }

// open loads the kept plan, or lists the engines and makes the first plan that can be made.
func (p *Plans) open() error {
	if p.o.Deterministic && !p.g.deterministic() {
		return fmt.Errorf("cuda: %w with equal bits in each run for %s", ErrNoPlan, p.g.Name)
	}
	if p.o.measures() && !p.d.Described() {
		p.key = p.name()
		if k, ok := keptPlan(p.d.c.Options(), p.key); ok {
			if p.chosen = p.load(k); p.chosen != nil {
				p.state, p.most = kept, p.chosen.workspace
				return nil
			}
		}
		for _, folder := range p.o.Ahead {
			if p.all = p.ahead(folder); len(p.all) > 0 {
				p.state = offered
				if err := p.begin(nil); !errors.Is(err, ErrNoPlan) {
					return err
				}
			}
		}
	}
	return p.list()
}

// list asks the heuristics and makes the first plan. If memory is short it lists nothing, and the next call asks again.
func (p *Plans) list() error {
	return p.d.c.RetryMemory(func() error {
		err := p.listOnce()
		if !errors.Is(err, driver.ErrOutOfMemory) {
			return err
		}
		p.state, p.all, p.configurations = unlisted, nil, nil
		_ = errors.Join(p.h.release(0), p.b.release(0)) // err is the cause
		p.b = backend{}
		return err
	})
}

func (p *Plans) listOnce() error {
	p.state, p.all = listed, nil
	b := &p.b
	var tensors, ops []C.cudnnBackendDescriptor_t
	for i, t := range p.g.tensors {
		tensors = append(tensors, b.tensor(i, t))
	}
	for _, o := range p.g.ops {
		ops = append(ops, b.operation(o, tensors))
	}
	p.ops = b.make(C.CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
	b.link(p.ops, C.CUDNN_ATTR_OPERATIONGRAPH_OPS, ops...)
	if p.d.h != nil {
		set(b, p.ops, C.CUDNN_ATTR_OPERATIONGRAPH_HANDLE, C.CUDNN_TYPE_HANDLE, p.d.h)
	}
	b.finalize(p.ops, p.g.Name)
	var found error
	if b.err == nil {
		for _, mode := range []int32{C.CUDNN_HEUR_MODE_A, C.CUDNN_HEUR_MODE_FALLBACK} {
			err := p.d.told(p.ask(mode))
			if ends(err) {
				return err
			}
			if found == nil {
				found = err
			}
		}
	} else {
		found = p.d.told(b.err)
	}
	if found == nil {
		found = errors.New("no engine within the options")
	}
	return p.begin(found)
}

// begin makes the first plan, or leaves that to Settle. found is the error if there is none.
func (p *Plans) begin(found error) error {
	if p.o.Later && len(p.all) > 0 {
		return p.later(found)
	}
	first, err := p.first()
	if err != nil {
		found = err
	}
	if first == nil {
		return p.none(found)
	}
	p.chosen, p.most = first, first.workspace
	if p.o.measures() && !p.d.Described() {
		for _, e := range p.all {
			p.most = max(p.most, e.workspace)
		}
	}
	return nil
}

// later leaves the first few engines within the options to Settle.
func (p *Plans) later(err error) error {
	p.all = slices.DeleteFunc(p.all, func(e Engine) bool { return !p.within(e.workspace) })
	p.all = p.all[:min(len(p.all), mostTried)]
	for _, e := range p.all {
		p.most = max(p.most, e.workspace)
	}
	if len(p.all) == 0 {
		return p.none(err)
	}
	return nil
}

// none is the error for a graph without a plan, because of err; a fatal err is returned as it is.
func (p *Plans) none(err error) error {
	if ends(err) {
		return err
	}
	return fmt.Errorf("cuda: %w for %s in %v, %v: %w", ErrNoPlan, p.g.Name, p.o.Precision, p.g, err)
}

// Make makes the first plan that can be made, if that was left to Settle.
func (p *Plans) Make() error {
	return p.d.do(func() error {
		if p.chosen != nil {
			return nil
		}
		first, err := p.first()
		if first == nil {
			return p.none(err)
		}
		p.chosen, p.most = first, max(p.most, first.workspace)
		return nil
	})
}

// ask lists the configurations of one mode of the heuristics.
func (p *Plans) ask(mode int32) error {
	b := backend{}
	h := b.make(C.CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
	b.link(h, C.CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, p.ops)
	b.setOne(h, C.CUDNN_ATTR_ENGINEHEUR_MODE, C.CUDNN_TYPE_HEUR_MODE, mode)
	if p.d.described != nil {
		b.link(h, C.CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, p.d.described)
	}
	b.finalize(h, "heuristics for "+p.g.Name)
	configs := make([]C.cudnnBackendDescriptor_t, get[C.cudnnBackendDescriptor_t](&b, h,
		C.CUDNN_ATTR_ENGINEHEUR_RESULTS, C.CUDNN_TYPE_BACKEND_DESCRIPTOR, nil))
	for i := range configs {
		configs[i] = b.make(C.CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
	}
	if len(configs) > 0 {
		configs = configs[:min(len(configs), get(&b, h, C.CUDNN_ATTR_ENGINEHEUR_RESULTS,
			C.CUDNN_TYPE_BACKEND_DESCRIPTOR, configs))]
	}
	p.h.made = append(p.h.made, b.made...)
	if b.err != nil {
		return b.err
	}
	p.configurations = append(p.configurations, len(configs))
	for _, c := range configs {
		if e := p.engine(c); e.suits(p.o) {
			p.all = append(p.all, e)
		}
	}
	return nil
}

// within reports whether a workspace is within the options.
func (p *Plans) within(bytes int64) bool { return bytes <= p.o.Workspace }

// first makes the first plan within the options, else the one with the least workspace among the first few that can be
// made. It keeps the later engines that are candidates.
func (p *Plans) first() (*plan, error) {
	var least *plan
	var found error
	tried := 0
	for i, e := range p.all {
		if e.workspace >= 0 && !p.within(e.workspace) && tried > 0 {
			continue
		}
		x, err := p.plan(e)
		if tried++; err != nil {
			if ends(err) {
				if least != nil {
					_ = least.close() // err is the cause
				}
				return nil, err
			}
			if found == nil {
				found = err
			}
			if tried >= mostTried {
				break
			}
			continue
		}
		if p.within(x.workspace) {
			if least != nil {
				_ = least.close() // no longer needed
			}
			p.all = slices.DeleteFunc(p.all[i+1:], func(e Engine) bool {
				return e.workspace >= 0 &&
					!p.within(e.workspace)
			})
			p.all = p.all[:min(len(p.all), mostMeasured-1)]
			return x, nil
		}
		if least == nil || x.workspace < least.workspace {
			least, x = x, least
		}
		if x != nil {
			_ = x.close()
		}
		if tried >= mostTried && least != nil {
			break
		}
	}
	p.all = nil
	return least, found
}

// mostTried limits the plans made if none suits, and mostMeasured those timed. mostCompiled limits those timed whose
// kernels take seconds to compile.
const mostTried, mostMeasured, mostCompiled = 16, 8, 2

// Engine is the chosen plan's engine, or the first candidate if none is chosen.
func (p *Plans) Engine() Engine {
	if p.chosen == nil {
		return p.all[0]
	}
	return p.chosen.engine
}

// Short reports whether a plan that may be faster was skipped for lack of memory.
func (p *Plans) Short() bool { return p.short }

// Compiles reports whether plans are left to Settle that have cuDNN compile kernels.
func (p *Plans) Compiles() bool {
	return p.state == listed && p.chosen == nil && slices.ContainsFunc(p.all, Engine.Compiled)
}

// Made reports whether a plan was made.
func (p *Plans) Made() bool { return p.chosen != nil }

// Configurations counts the engine configurations from modes A and FALLBACK of the heuristics, within the options or
// not.
func (p *Plans) Configurations() []int { return p.configurations }

// Shape is the shape of the graph's convolution.
func (p *Plans) Shape() Shape { return p.g.Shape() }

// Options are the options given to NewPlans.
func (p *Plans) Options() Options { return p.o }

// Workspace is the scratch in bytes that Settle and Run need.
func (p *Plans) Workspace() int64 {
	if p.state == settled {
		return p.chosen.workspace
	}
	return p.most
}

// destroy destroys the descriptors, which lie in host memory, and frees compiled kernels.
func (p *Plans) destroy() error {
	var err error
	if p.chosen != nil {
		err = p.chosen.close()
		p.chosen = nil
	}
	for _, s := range p.scalars {
		C.release(s)
	}
	p.scalars = nil
	return errors.Join(err, p.h.release(0), p.b.release(0))
}
