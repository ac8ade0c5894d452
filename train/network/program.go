package network

import (
	"fmt"
	"slices"

	"onlinerna/nn"
	"onlinerna/nn/device"
	"onlinerna/nn/machine"
	"onlinerna/nn/op"

	G "gorgonia.org/gorgonia"
)

// Use is the purpose of a batch.
type Use uint8

// The uses.
const (
	Training   Use = iota // forward, backward, statistics
	Statistics            // forward up to the statistics
	Evaluation            // forward with the running statistics
)

func (u Use) String() string { return [...]string{"training", "statistics", "evaluation"}[u] }

// Work is a program's purpose: a use, a number of images and their size.
type Work struct {
	Use                  Use
	Batch, Height, Width int
}

func (w Work) String() string { return fmt.Sprintf("%v at batch %d", w.Use, w.Batch) }

// program is a graph with its machine, bound to a lane's memory.
type program struct {
	work    Work
	model   *nn.Model
	m       *machine.Machine // nil: not planned
	feed    feed
	targets []float32 // of a batch
	*objective
	replays []stepReplay

	loss, score int // groups of a run that compute them
	ran         int // groups of the running batch so far, if traced
}

// stepReplay is the recording of the program and the step after it.
type stepReplay struct {
	step StepOptions
	*machine.Replay
}

// Prepare plans programs, so that errors come before the run. It returns a *MemoryError if they take more memory than
// is free when other bytes are still to be allocated; the error names the first program's batch.
func (n *Network) Prepare(other int64, list ...Work) error {
	if len(list) == 0 {
		return nil
	}
	beside, err := n.prepareTeacher(other, list)
	if err != nil {
		return err
	}
	other += beside
	most, made := 0, make([]*program, len(list))
	for i, w := range list {
		if made[i], err = n.newProgram(w); err != nil {
			return err
		}
		most = max(most, made[i].feed.bytes)
	}
	lanes := int64(n.pipe.Lanes()) * int64(most)
	if err := n.checkBytes(list[0].Batch, lanes, other); err != nil { // before allocating them
		return err
	}
	if err := n.widen(most); err != nil {
		return err
	}
	for i, w := range list {
		for lane := range n.lanes {
			if _, err := n.program(w, lane, made[i]); err != nil {
				return err
			}
		}
	}
	return n.checkBytes(list[0].Batch, int64(n.arena.Bytes())+n.beside(), other)
}

// beside is the memory that programs take beside the arena, where it is not taken yet.
func (n *Network) beside() (bytes int64) {
	for _, ps := range n.programs {
		for _, p := range ps {
			if p != nil {
				s := p.m.Stats()
				bytes += int64(s.Inputs + s.Kept)
			}
		}
	}
	if _, own := device.As[device.OwnMemory](n.Device); !own { // the host gets memory when it is first touched
		for _, l := range n.lanes {
			bytes += int64(l.Input().Bytes())
		}
	}
	return bytes
}

// Plan returns the sizes of a training program at a batch size, with its batch among the inputs. It allocates nothing
// on the device.
func (n *Network) Plan(batch int) (machine.Stats, error) {
	arena := machine.NewArena(n.Device)
	p, err := n.newProgram(Work{Training, batch, n.cfg.Size, n.cfg.Size})
	if err == nil {
		err = n.bind(p, arena, nil)
	}
	if err != nil {
		return machine.Stats{}, err
	}
	s := p.m.Stats()
	if err := p.m.Close(); err != nil || n.teacher == nil {
		return s, err
	}
	if p, err = n.teacher.newProgram(Work{Evaluation, batch, n.cfg.Size, n.cfg.Size}); err == nil {
		err = n.teacher.bind(p, arena, nil)
	}
	if err != nil {
		return s, err
	}
	s.Arena, s.Inputs = arena.Bytes(), s.Inputs+p.m.Stats().Inputs
	return s, p.m.Close()
}

// Programs lists the planned programs for diagnosis: memory, steps and groups for each use and batch size.
func (n *Network) Programs() map[string]machine.Stats {
	m := map[string]machine.Stats{}
	for w, ps := range n.programs {
		for _, p := range ps {
			if p != nil {
				m[fmt.Sprintf("%v, batch %d", w.Use, w.Batch)] = p.m.Stats()
			}
		}
	}
	return m
}

// next finds or makes the program for work in the lane whose turn it is.
func (n *Network) next(w Work) (*program, error) {
	var made *program
	if ps := n.programs[w]; ps == nil || ps[n.turn] == nil {
		var err error
		if made, err = n.newProgram(w); err != nil {
			return nil, err
		}
		if err := n.widen(made.feed.bytes); err != nil {
			return nil, err
		}
	}
	return n.program(w, n.turn, made)
}

// program finds the program for work in a lane that is large enough, or plans it: made, or a new one if another lane
// has that.
func (n *Network) program(w Work, lane int, made *program) (_ *program, err error) {
	ps := n.programs[w]
	if ps == nil {
		ps = make([]*program, len(n.lanes))
		n.programs[w] = ps
	}
	if ps[lane] != nil {
		return ps[lane], nil
	}
	if made.m != nil {
		if made, err = n.newProgram(w); err != nil {
			return nil, err
		}
	}
	if err := n.bind(made, n.arena, n.lanes[lane]); err != nil {
		return nil, err
	}
	made.m.Trace(n.groups(made))
	ps[lane] = made
	return made, nil
}

// newProgram builds the model of a program that is not planned yet.
func (n *Network) newProgram(w Work) (*program, error) {
	cfg := n.cfg
	cfg.Batch, cfg.ImageHeight, cfg.ImageWidth = w.Batch, w.Height, w.Width
	if w.Height == w.Width {
		cfg.Size = w.Height
	}
	cfg.Mode = nn.Train
	if w.Use == Evaluation {
		cfg.Mode = nn.Eval
	}
	model, err := nn.Build(n.arch, cfg)
	if err != nil {
		return nil, err
	}
	if len(model.Params) != len(n.params) {
		return nil, fmt.Errorf("%s has other parameters at %d×%d", n.arch, w.Height, w.Width)
	}
	for i, s := range n.params {
		if !model.Params[i].Shape.Equal(s.typ.Shape) {
			return nil, fmt.Errorf("%s: %s is %v at %d×%d and %v at %d×%d: "+
				"images of two sizes take a model that ends in a mean over them", n.arch,
				s.name, model.Params[i].Shape, w.Height, w.Width, s.typ.Shape, n.cfg.Size, n.cfg.Size)
		}
	}
	f, err := feedOf(model, w.Use)
	return &program{work: w, model: model, feed: f, objective: &n.objective}, err
}

// prepares reports whether a program prepares Fixed weights once. On AVX-512 that saves a fifth of ResNet-50's time for
// one image, and a twentieth for sixteen.
func (n *Network) prepares(w Work) bool {
	if !n.Fixed || w.Use != Evaluation {
		return false
	}
	for other, ps := range n.programs {
		if w.Batch > 1 && other.Batch > 1 && other != w &&
			slices.ContainsFunc(ps, func(p *program) bool { return p != nil && p.m.Stats().Kept > 0 }) {
			return false
		}
	}
	return true
}

// bind plans a program on a lane's memory, or on its machine's own memory if l is nil.
func (n *Network) bind(p *program, arena *machine.Arena, l *lane) (err error) {
	model, use := p.model, p.work.Use
	mc := machine.Config{Device: n.Device, Arena: arena, LowMemory: n.LowMemory, Bind: map[*G.Node]machine.Binding{}}
	fixed := n.prepares(p.work)
	switch use {
	case Training:
		if err := n.makeGrads(); err != nil {
			return err
		}
		mc.Keep = append(G.Nodes{model.Loss, model.Score}, model.Updates...)
	case Statistics:
		mc.Keep = model.Updates
	case Evaluation:
		mc.Keep = G.Nodes{model.Logits, model.Score}
	}
	for i, s := range n.params {
		mc.Bind[model.Params[i].Node] = machine.Binding{Region: n.Params.Region(s.off, s.n), Layout: s.layout, Fixed: fixed}
		if use == Training && !model.Params[i].Frozen {
			mc.Bind[model.Params[i].Grad] = machine.Binding{Region: n.Grads.Region(s.off, s.n), Layout: s.layout}
		}
	}
	for i, s := range n.stats {
		mc.Bind[model.Stats[i].Node] = machine.Binding{Region: n.Stats.Region(s.off, s.n), Layout: s.layout, Fixed: fixed}
	}
	if l != nil {
		n.bindLane(&mc, p, l)
	}
	if p.m, err = machine.New(model.Graph, mc); err == nil {
		err = p.place(use)
	}
	if err != nil {
		return fmt.Errorf("%s, %v: %w", n.arch, p.work, err)
	}
	return nil
}

// bindLane places a program's input and results in a lane.
func (n *Network) bindLane(mc *machine.Config, p *program, l *lane) {
	out, m, size := l.Output(), p.model, n.Device.DType().Size()
	for _, in := range p.feed.inputs {
		mc.Bind[in.Node] = machine.Binding{Region: part(l.Input(), in.Span)}
	}
	if p.work.Use == Training {
		mc.Bind[m.Loss] = machine.Binding{Region: lossIn(out, size)}
	}
	if p.work.Use != Statistics {
		mc.Bind[m.Score] = machine.Binding{Region: scoreIn(out, size)}
	}
}

// close releases everything.
func (p *program) close() error {
	for _, r := range p.replays {
		r.Free()
	}
	return p.m.Close()
}

func shapeOf(n *G.Node) op.Shape { return op.Shape(n.Shape()) }
