//go:build gpu && cgo

package dnn

// #include <cudnn_backend.h>
import "C"

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"onlinerna/cuda/driver"
	"onlinerna/cuda/number"
)

// ErrNoPlan says that cuDNN has no plan for a graph, or none that runs within the options.
var ErrNoPlan = errors.New("cuDNN has no plan")

// An Engine is one of cuDNN's ways to run a graph, with the settings of its knobs.
type Engine struct {
	Number int        `json:"engine"`
	Knobs  [][2]int64 `json:"knobs,omitempty"` // kinds and values

	numerical, behaviour uint64 // bits of notes
	workspace            int64  // bytes as the heuristics say, or -1
	config               C.cudnnBackendDescriptor_t
}

// Deterministic says whether cuDNN does not note that results differ in bits from run to run.
func (e Engine) Deterministic() bool { return !e.notes(C.CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) }

// Compiled says whether the engine's kernels are compiled when a plan is made.
func (e Engine) Compiled() bool {
	return e.behaviour>>C.CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION&1 != 0
}

func (e Engine) notes(any ...uint) bool {
	return slices.ContainsFunc(any, func(n uint) bool { return e.numerical>>n&1 != 0 })
}

// suits says whether an engine is as exact as the precision, and the options let it run. Winograd's transforms are not in 16 bits, and
// float32 on tensor cores is TensorFloat-32.
func (e Engine) suits(o Options) bool {
	switch {
	case e.notes(C.CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, C.CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS):
		return false
	case o.Precision.Bytes() == 2 && e.notes(C.CUDNN_NUMERICAL_NOTE_WINOGRAD, C.CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
		C.CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, C.CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13):
		return false
	case o.Precision == number.Float32 && e.notes(C.CUDNN_NUMERICAL_NOTE_TENSOR_CORE):
		return false
	}
	return !o.Deterministic || e.Deterministic()
}

func (e Engine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "e%d", e.Number)
	for _, k := range e.Knobs {
		fmt.Fprintf(&b, " k%d=%d", k[0], k[1])
	}
	return b.String()
}

// plan runs a graph by an engine.
type plan struct {
	engine    Engine
	workspace int64
	backend   // what the plan alone has
	d         C.cudnnBackendDescriptor_t
	packs     map[addresses]C.cudnnBackendDescriptor_t // of tensors and a workspace that it has run on
}

// addresses are those of a graph's tensors, the last one that of the workspace.
type addresses [16]C.CUdeviceptr

// mostPacks are kept: as many as a step has uses of one convolution, and more.
const mostPacks = 128

// pack describes tensors and a workspace, as a step that is repeated has them each time.
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
		_ = x.release(own) // err came first
		return nil, err
	}
	if x.packs == nil {
		x.packs = map[addresses]C.cudnnBackendDescriptor_t{}
	}
	x.packs[at] = v
	return v, nil
}

// Plans are what cuDNN has for a graph: several, until one is chosen.
type Plans struct {
	*driver.Resource
	d *Handle
	g *Graph
	o Options

	b      backend // the graph
	h      backend // what the heuristics say of it
	listed bool    // they were asked
	ops    C.cudnnBackendDescriptor_t

	configurations []int    // that each mode of the heuristics gave
	all            []Engine // within the options, the best first
	most           int64    // bytes of workspace to have for any that may be chosen

	// Of the graph, for each run.
	places []int64 // bytes of tensors in memory
	uids   []int64 // their numbers
	work   driver.Work

	chosen  *plan
	settled bool
	key     string // of the choice in the cache; empty for none
}

// NewPlans finds plans for a graph, of which one is made. More are left to Settle. It is an [ErrNoPlan] where there is none.
func (d *Handle) NewPlans(g *Graph, o Options) (*Plans, error) {
	p := &Plans{d: d, g: g, o: o, places: g.Places(), work: g.work()}
	for i, t := range g.tensors {
		if !t.between {
			p.uids = append(p.uids, uid(i))
		}
	}
	err := d.do(func() error {
		err := p.open()
		if err != nil {
			_ = p.destroy() // err came first
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

// Close gives the plans back.
func (p *Plans) Close() error {
	if p.Resource == nil { // the card is only described
		return p.destroy()
	}
	return p.Resource.Close()
}

// Graph is what the plans run.
func (p *Plans) Graph() *Graph { return p.g }

// open chooses a plan that was kept, or lists the engines and makes the first plan that can be made.
func (p *Plans) open() error {
	if p.o.Deterministic && !p.g.deterministic() {
		return fmt.Errorf("cuda: %w with equal bits in each run for %s", ErrNoPlan, p.g.Name)
	}
	if p.o.Measure && !p.o.Deterministic && p.d.c != nil {
		p.key = p.name()
		if kept, ok := keptPlan(p.d.c.Options(), p.key); ok {
			if p.chosen = p.load(kept); p.chosen != nil {
				p.most = p.chosen.workspace
				return nil
			}
		}
	}
	return p.list()
}

// list asks the heuristics, and makes the first plan.
func (p *Plans) list() error {
	p.listed = true
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
			if err := p.ask(mode); err != nil && found == nil {
				found = err
			}
		}
	} else {
		found = b.err
	}
	if found == nil {
		found = errors.New("no engine within the options")
	}
	if p.o.Later && len(p.all) > 0 {
		return p.later(found)
	}
	first, err := p.first()
	if err != nil {
		found = err
	}
	if first == nil {
		if lost := p.d.verdict(); lost != nil {
			return lost
		}
		return fmt.Errorf("cuda: %w for %s, %v: %w", ErrNoPlan, p.g.Name, p.g, found)
	}
	p.chosen, p.most = first, first.workspace
	if p.o.Measure && !p.o.Deterministic && !p.d.Described() {
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
		return fmt.Errorf("cuda: %w for %s, %v: %w", ErrNoPlan, p.g.Name, p.g, err)
	}
	return nil
}

// Make makes the first plan that can be made, where that was left to Settle.
func (p *Plans) Make() error {
	return p.d.do(func() error {
		if p.chosen != nil {
			return nil
		}
		first, err := p.first()
		if first == nil {
			return fmt.Errorf("cuda: %w for %s, %v: %w", ErrNoPlan, p.g.Name, p.g, err)
		}
		p.chosen, p.most = first, max(p.most, first.workspace)
		return nil
	})
}

// ask lists what a mode of the heuristics gives.
func (p *Plans) ask(mode int32) error {
	b := backend{}
	h := b.make(C.CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
	b.link(h, C.CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, p.ops)
	b.setOne(h, C.CUDNN_ATTR_ENGINEHEUR_MODE, C.CUDNN_TYPE_HEUR_MODE, mode)
	if p.d.described != nil {
		b.link(h, C.CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, p.d.described)
	}
	b.finalize(h, "heuristics for "+p.g.Name)
	configs := make([]C.cudnnBackendDescriptor_t, get[C.cudnnBackendDescriptor_t](&b, h, C.CUDNN_ATTR_ENGINEHEUR_RESULTS, C.CUDNN_TYPE_BACKEND_DESCRIPTOR, nil))
	for i := range configs {
		configs[i] = b.make(C.CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
	}
	if len(configs) > 0 {
		configs = configs[:min(len(configs), get(&b, h, C.CUDNN_ATTR_ENGINEHEUR_RESULTS, C.CUDNN_TYPE_BACKEND_DESCRIPTOR, configs))]
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

// engine reads what a configuration is. What cannot be read is left as it is.
func (p *Plans) engine(config C.cudnnBackendDescriptor_t) Engine {
	e := Engine{Number: -1, workspace: -1, config: config}
	b := backend{}
	at := []C.cudnnBackendDescriptor_t{b.make(C.CUDNN_BACKEND_ENGINE_DESCRIPTOR)}
	get(&b, config, C.CUDNN_ATTR_ENGINECFG_ENGINE, C.CUDNN_TYPE_BACKEND_DESCRIPTOR, at)
	e.Number = int(b.getInt(at[0], C.CUDNN_ATTR_ENGINE_GLOBAL_INDEX))
	e.numerical = b.getBits(at[0], C.CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, C.CUDNN_TYPE_NUMERICAL_NOTE)
	e.behaviour = b.getBits(at[0], C.CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, C.CUDNN_TYPE_BEHAVIOR_NOTE)
	if bytes := b.getInt(config, C.CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE); b.err == nil {
		e.workspace = bytes
	}
	p.h.made = append(p.h.made, b.made...)
	return e
}

// knobs reads the settings of a configuration, as far as it tells them.
func knobs(config C.cudnnBackendDescriptor_t) (all [][2]int64) {
	b := backend{}
	defer b.release(0)
	choices := make([]C.cudnnBackendDescriptor_t, 64)
	for i := range choices {
		choices[i] = b.make(C.CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)
	}
	n := get(&b, config, C.CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, C.CUDNN_TYPE_BACKEND_DESCRIPTOR, choices)
	for _, k := range choices[:min(len(choices), n)] {
		kind := make([]int32, 1)
		get(&b, k, C.CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, C.CUDNN_TYPE_KNOB_TYPE, kind)
		if value := b.getInt(k, C.CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE); b.err == nil {
			all = append(all, [2]int64{int64(kind[0]), value})
		}
	}
	return all
}

// within says whether a workspace is within the options.
func (p *Plans) within(bytes int64) bool { return bytes <= p.o.Workspace }

// first makes the first plan within the options, or else the one with the least workspace of the first few that can be made at all. It
// leaves those engines behind it that may come in question.
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
			if found == nil {
				found = err
			}
			if errors.Is(err, driver.ErrLost) || tried >= mostTried {
				break
			}
			continue
		}
		if p.within(x.workspace) {
			if least != nil {
				_ = least.close() // of no use
			}
			p.all = slices.DeleteFunc(p.all[i+1:], func(e Engine) bool { return e.workspace >= 0 && !p.within(e.workspace) })
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

// mostTried plans are made where none suits. Of those whose kernels are compiled, which takes seconds, few are timed.
const mostTried, mostCompiled = 16, 2

// plan makes the plan of an engine, which compiles what is compiled when the program runs.
func (p *Plans) plan(e Engine) (*plan, error) {
	e.Knobs = knobs(e.config)
	x := &plan{engine: e}
	x.d = x.make(C.CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
	x.link(x.d, C.CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, e.config)
	return p.finish(x)
}

// load makes a plan of its text, or nil.
func (p *Plans) load(k kept) *plan {
	x := &plan{engine: k.Engine}
	x.d = x.make(C.CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
	x.setText(x.d, C.CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, k.Plan)
	x, err := p.finish(x)
	if err != nil {
		return nil
	}
	if !p.within(x.workspace) {
		_ = x.close()
		return nil
	}
	return x
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
		_ = x.close() // err came first
		if lost := p.d.verdict(); lost != nil {
			return nil, lost
		}
		return nil, err
	}
	return x, nil
}

func (x *plan) close() error { return x.release(0) }

// Kernels are the names of those that the chosen plan brings along, as far as it says them: those that are compiled when it is made.
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

// text is the plan as JSON, empty where cuDNN does not give it.
func (x *plan) text() string {
	b := backend{}
	return b.getText(x.d, C.CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)
}

// Engine is the chosen plan's, and the first one's where none is chosen.
func (p *Plans) Engine() Engine {
	if p.chosen == nil {
		return p.all[0]
	}
	return p.chosen.engine
}

// Made says whether a plan was made.
func (p *Plans) Made() bool { return p.chosen != nil }

// Configurations are how many configurations of engines modes A and FALLBACK of the heuristics gave, within the options or not.
func (p *Plans) Configurations() []int { return p.configurations }

// Shape is that of the graph's convolution.
func (p *Plans) Shape() Shape {
	for _, o := range p.g.ops {
		if o.action == opConvolve {
			return o.shape
		}
	}
	return Shape{}
}

// Options are what the plans are made with.
func (p *Plans) Options() Options { return p.o }

// Workspace is the bytes of scratch that Settle and Run need.
func (p *Plans) Workspace() int64 {
	if p.settled {
		return p.chosen.workspace
	}
	return p.most
}

// Settle times the plans, unless one is chosen, and takes the fastest. One that fails gives way to the next. Places are as for Run;
// results are lost. Where no plan runs it is an [ErrNoPlan].
func (p *Plans) Settle(at []driver.Span, workspace driver.Span) error {
	return p.d.do(func() error {
		if err := p.Check(); err != nil {
			return err
		}
		if p.settled {
			return nil
		}
		return p.settle(at, workspace)
	})
}

func (p *Plans) settle(at []driver.Span, workspace driver.Span) error {
	measure := p.o.Measure && !p.o.Deterministic && p.listed && len(p.all) > 0
	compiled := 0
	if measure {
		var end func()
		var err error
		if at, end, err = p.noise(at); err != nil {
			return err
		}
		defer end()
	}
	best, least := (*plan)(nil), time.Duration(0)
	var first error
	try := func(x *plan) error {
		if x.workspace > workspace.Bytes() { // more than was planned for
			return x.close()
		}
		took, err := time.Duration(1), error(nil)
		launch := func() error { return p.launch(x, at, workspace) }
		if measure {
			took, err = p.d.Time(launch)
		} else if err = launch(); err == nil {
			err = p.d.s.Synchronize()
		}
		if errors.Is(err, driver.ErrLost) || errors.Is(err, errPlaces) {
			return err
		}
		if err != nil && first == nil {
			first = err
		}
		if err == nil && x.engine.Compiled() {
			compiled++
		}
		if err == nil && (best == nil || took < least) {
			x, best, least = best, x, took
		}
		if x != nil {
			return x.close()
		}
		return nil
	}
	rest := p.all
	if x := p.chosen; x != nil {
		p.chosen = nil
		if err := try(x); err != nil {
			p.chosen = x
			return err
		}
	}
	if best == nil && !p.listed { // the plan that was kept does not run here
		if err := p.list(); err != nil {
			return err
		}
		return p.settle(at, workspace)
	}
	for _, e := range rest {
		if best != nil && (!measure || compiled >= mostCompiled) {
			break
		}
		x, err := p.plan(e)
		if errors.Is(err, driver.ErrLost) {
			p.chosen = best
			return err
		}
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		if err := try(x); err != nil {
			p.chosen = best
			return err
		}
	}
	p.all, p.chosen = nil, best
	if best == nil {
		if first == nil {
			first = fmt.Errorf("none does with a workspace of %d bytes", workspace.Bytes())
		}
		return fmt.Errorf("cuda: %w that runs for %s, %v: %w", ErrNoPlan, p.g.Name, p.g, first)
	}
	p.settled = true
	if measure && p.key != "" {
		keepPlan(p.d.c.Options(), kept{Key: p.key, Engine: best.engine, Plan: best.text()})
	}
	if i := slices.Index(p.h.made, best.engine.config); i >= 0 { // what the plan is made of stays
		p.h.made = slices.Delete(p.h.made, i, i+1)
		p.b.made = append(p.b.made, best.engine.config)
	}
	return p.h.release(0)
}

// noise is places with noise in those that are read.
func (p *Plans) noise(at []driver.Span) (there []driver.Span, end func(), err error) {
	var operands []driver.Span
	var places []int
	var narrow []bool
	there = slices.Clone(at)
	for i, t := range p.g.inputs() {
		if t != nil && i < len(at) {
			operands, places, narrow = append(operands, at[i]), append(places, i), append(narrow, t.element != Float32)
		}
	}
	end, err = p.d.noise(operands, narrow)
	for i, place := range places {
		there[place] = operands[i]
	}
	return there, end, err
}

// Run runs the chosen plan on the tensors in memory, in the order in which the graph has them. All spans start at multiples of 16
// bytes. The content of the workspace is lost.
func (p *Plans) Run(at []driver.Span, workspace driver.Span) error {
	return p.d.do(func() error {
		if err := p.Check(); err != nil {
			return err
		}
		return p.launch(p.chosen, at, workspace)
	})
}

// errPlaces says that a graph is run on what it is not for.
var errPlaces = errors.New("wrong spans")

// launch is Run on the owner thread.
func (p *Plans) launch(x *plan, at []driver.Span, workspace driver.Span) error {
	places := p.places
	if len(at) != len(places) || workspace.Bytes() < x.workspace {
		return fmt.Errorf("cuda: %w for %s, %v: %d, and a workspace of %d bytes where %d and at least %d are needed",
			errPlaces, p.g.Name, p.g, len(at), workspace.Bytes(), len(places), x.workspace)
	}
	address := func(s driver.Span) (C.CUdeviceptr, error) {
		a, err := s.Address(p.d.c)
		if err == nil && a%Align != 0 {
			err = fmt.Errorf("cuda: %w for %s: one starts beside a multiple of %d bytes", errPlaces, p.g.Name, Align)
		}
		return C.CUdeviceptr(a), err
	}
	var to addresses
	if len(at) >= len(to) {
		return fmt.Errorf("cuda: %w for %s: %d tensors where %d are the most", errPlaces, p.g.Name, len(at), len(to)-1)
	}
	for i, s := range at {
		if s.Bytes() != places[i] {
			return fmt.Errorf("cuda: %w for %s, %v: %d bytes where %d are needed", errPlaces, p.g.Name, p.g, s.Bytes(), places[i])
		}
		a, err := address(s)
		if err != nil {
			return err
		}
		to[i] = a
	}
	var err error
	if to[len(to)-1], err = address(workspace); err != nil {
		return err
	}
	v, err := x.pack(p.uids, to)
	if err == nil {
		err = p.d.s.Give(p.work, func() error {
			return p.d.c.Retry(func() error { // cuDNN may have had no memory for its kernels
				b := backend{}
				b.check(C.cudnnBackendExecute(p.d.h, x.d, v), "cudnnBackendExecute", p.g.Name+" by "+x.engine.String())
				return b.err
			})
		})
	}
	if err != nil {
		if lost := p.d.verdict(); lost != nil {
			return lost
		}
	}
	return err
}

// destroy destroys the descriptors, which are the host's, and gives back kernels that were compiled.
func (p *Plans) destroy() error {
	var err error
	if p.chosen != nil {
		err = p.chosen.close()
		p.chosen = nil
	}
	return errors.Join(err, p.h.release(0), p.b.release(0))
}
