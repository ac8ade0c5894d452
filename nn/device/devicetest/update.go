package devicetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/nn/optim"
)

// updateCase is an optimiser on parameters that lie in tensors.
type updateCase struct {
	o        device.Optimizer
	scale    float64
	steps    int
	noDecay  []device.Span
	factors  []device.Factor
	tensors  []device.Span
	matrices []device.Matrix
	clip     device.Clip
	zeroFrom int // elements from here on start as zeros
}

// update is a step of c.
func (c *updateCase) update(v *updated, step int) device.Update {
	return device.Update{Optimizer: c.o, Grad: v.grad, State: v.state, NoDecay: c.noDecay, Factors: c.factors,
		Tensors: c.tensors, Matrices: c.matrices, Clip: c.clip,
		Numbers: device.Numbers{Rate: .1 / float64(step), Scale: c.scale, Step: float64(step),
			Share: 1 / float64(step)}}
}

// updateCases lists optimisers with settings for n elements.
func updateCases(n int) []updateCase {
	spans := []device.Span{{Off: n / 7, Len: n / 5}, {Off: n / 2, Len: n / 3}, {Off: n, Len: 0}}
	edges := []device.Span{{Off: 0, Len: n / 4}, {Off: n / 4, Len: n / 4}, {Off: n - n/8, Len: n / 8}}
	all := []device.Span{{Off: 0, Len: n}}
	small := []device.Span{}
	for at := 0; at < n; at += 37 {
		small = append(small, device.Span{Off: at, Len: min(37, n-at)})
	}
	factors := []device.Factor{{Span: spans[0], Rate: .25}, {Span: spans[1]}, {Span: spans[2], Rate: 1}}
	frozen := []device.Factor{{Span: edges[0]}, {Span: edges[1], Rate: 3}, {Span: edges[2]}}
	plain := optim.SGD{}
	list := []updateCase{
		{o: plain, scale: 1},
		{o: optim.SGD{Decay: .01}, scale: 1},
		{o: optim.SGD{Momentum: .9}, scale: 1},
		{o: optim.SGD{Momentum: .9, Nesterov: true}, scale: 1},
		{o: optim.SGD{Momentum: .9, Decay: .01}, scale: .25},
		{o: optim.SGD{Momentum: .9, Decay: .01, Nesterov: true}, scale: 1. / 3},
		{o: optim.SGD{Decay: .5}, scale: 1, noDecay: spans},
		{o: optim.SGD{Momentum: .9, Decay: .5}, scale: .5, noDecay: edges},
		{o: optim.SGD{Momentum: .9, Decay: .5, Nesterov: true}, scale: 1, noDecay: spans},
		{o: optim.SGD{Momentum: .9, Decay: .5}, scale: 1, noDecay: all},

		{o: optim.SGD{Momentum: .9, Decay: .5}, noDecay: edges, factors: factors}, // a scale of 0 means 1
		{o: optim.SGD{Momentum: .9, Nesterov: true}, scale: 1, factors: frozen},

		{o: optim.AdamW{Beta1: .9, Beta2: .99, Eps: 1e-8, Decay: .1}, scale: 1, noDecay: spans, factors: frozen},
		{o: optim.LARS{Momentum: .9, Decay: .1, Trust: .1}, scale: .5, noDecay: spans, factors: factors,
			tensors: between(n, spans)},
		{o: optim.LAMB{Beta1: .9, Beta2: .99, Eps: 1e-3, Decay: .1, ClipNorm: 1}, factors: frozen,
			tensors: between(n, edges)},

		{o: optim.AdamW{Beta1: .9, Beta2: .999, Eps: 1e-8, Decay: .01}, scale: 1},
		{o: optim.AdamW{Beta1: .8, Beta2: .95, Eps: .1, Decay: .5}, scale: .25, noDecay: spans},
		{o: optim.AdamW{Eps: 1e-3}, scale: 1, noDecay: edges},

		{o: optim.LARS{Momentum: .9, Decay: .01, Trust: 1e-3, Eps: 1e-8}, scale: 1, tensors: small},
		{o: optim.LARS{Momentum: .9, Decay: .5, Trust: .1}, scale: .25, noDecay: spans, tensors: between(n, spans),
			zeroFrom: n / 2},
		{o: optim.LARS{Momentum: .9, Trust: .02, Nesterov: true}, scale: 1, noDecay: edges, tensors: between(n, edges)},

		{o: optim.LAMB{Beta1: .9, Beta2: .999, Eps: 1e-6, Decay: .01, ClipNorm: 1}, scale: 1, tensors: small},
		{o: optim.LAMB{Beta1: .8, Beta2: .95, Eps: .1, Decay: .5}, scale: .25, noDecay: spans,
			tensors: between(n, spans), zeroFrom: n / 2},
		{o: optim.LAMB{Beta1: .9, Beta2: .99, Eps: 1e-3, ClipNorm: 1e9}, scale: 1, noDecay: edges,
			tensors: between(n, edges)},

		{o: optim.SGD{Momentum: .9, Decay: .01}, scale: .5, clip: device.Clip{Norm: 1.5}, noDecay: spans},
		{o: optim.AdamW{Beta1: .9, Beta2: .999, Eps: 1e-8, Decay: .01}, scale: 1, clip: device.Clip{Norm: 1e9}},
		{o: optim.LARS{Momentum: .9, Decay: .01, Trust: 1e-3}, scale: 1, clip: device.Clip{Norm: 2}, tensors: small},
		{o: optim.LAMB{Beta1: .9, Beta2: .999, Eps: 1e-3, ClipNorm: 1}, scale: 1, clip: device.Clip{Norm: 2},
			tensors: small},

		{o: optim.SGD{Momentum: .9, Decay: .01, Nesterov: true}, scale: -.5, clip: device.Clip{Value: .25},
			noDecay: spans},
		{o: optim.LAMB{Beta1: .9, Beta2: .999, Eps: 1e-3}, clip: device.Clip{Value: .5}, tensors: small},
	}
	list = append(list, updateCase{o: optim.Muon{Momentum: .9, Beta1: .9, Beta2: .99, Eps: .01, Decay: .1}, scale: .5,
		noDecay: spans, factors: factors, tensors: between(n, spans), matrices: matrices(between(n, spans), factors)})
	for _, d := range optim.All() {
		of := maps.Clone(d.Takes)
		if _, ok := of[optim.Eps]; ok {
			of[optim.Eps] = .01 // small divided by small is inaccurate in float32
		}
		for _, nesterov := range []bool{false, true} {
			if nesterov == d.Nesterov || !nesterov {
				list = append(list, updateCase{o: d.Make(optim.Hyper{Of: of, Decay: .1, Nesterov: nesterov}), scale: .5,
					noDecay: spans,
					factors: factors, tensors: between(n, spans)})
			}
		}
	}
	for i := range list {
		list[i].steps = 3
		if n > 5000 {
			list[i].steps = 2
		}
		if list[i].zeroFrom == 0 {
			list[i].zeroFrom = n
		}
		if list[i].tensors == nil { // other optimisers ignore them
			list[i].tensors = []device.Span{{Off: 1, Len: n}}
		}
	}
	return list
}

// between returns spans and the gaps between them.
func between(n int, spans []device.Span) (list []device.Span) {
	at := 0
	for _, s := range append(spans[:len(spans):len(spans)], device.Span{Off: n}) {
		list = append(list, device.Span{Off: at, Len: s.Off - at}, s)
		at = s.Off + s.Len
	}
	return list
}

// matrices are every second tensor as one, of about as many rows as columns, or of more or fewer, and those with the
// factor 0.
func matrices(tensors []device.Span, factors []device.Factor) (list []device.Matrix) {
	for i, t := range tensors {
		frozen := slices.ContainsFunc(factors, func(f device.Factor) bool { return f.Rate == 0 && f.Span == t })
		if t.Len == 0 || t.Len > 5000 || i%2 > 0 && !frozen {
			continue
		}
		rows := 1
		for k := 1; k*k <= 2*t.Len; k++ {
			if t.Len%k == 0 {
				rows = k
			}
		}
		list = append(list, device.Matrix{Tensor: i, Rows: rows, Columns: t.Len / rows, Transposed: len(list)%2 > 0})
	}
	return list
}

// loose is the factor on an optimiser's tolerance: orthogonal steps magnify small values.
func loose(o device.Optimizer) float64 {
	for _, p := range o.Passes() {
		if p.Orthogonal.Steps > 0 {
			return 500
		}
	}
	return 1
}

// updated holds the vectors of a step.
type updated struct {
	w, grad device.Vector
	state   []device.Vector
}

func (v *updated) free() {
	for _, x := range append([]device.Vector{v.w, v.grad}, v.state...) {
		if x != nil {
			x.Free()
		}
	}
}

// updatedOn makes vectors for an optimiser with parameters w.
func updatedOn(d device.Device, o device.Optimizer, w []float64) (*updated, error) {
	v := &updated{}
	var err error
	if v.w, err = d.NewVector(len(w)); err == nil {
		v.grad, err = d.NewVector(len(w))
	}
	for range o.State() {
		if err != nil {
			break
		}
		var x device.Vector
		if x, err = d.NewVector(len(w)); err == nil {
			v.state = append(v.state, x)
		}
	}
	if err == nil {
		err = v.w.WriteAt64(w, 0)
	}
	if err != nil {
		v.free()
		return nil, err
	}
	return v, nil
}

// updates tests Vector.Update against the definitions in float64.
func (s *suite) updates(t tester) {
	failures := 0
	for _, n := range lengths {
		if s.round != nil && n > 1000 { // parameters and state are stored as they are
			continue
		}
		all := device.Span{Len: n}
		nothing := updateCase{o: optim.SGD{Momentum: .9, Decay: .5}, steps: 2, zeroFrom: n,
			factors: []device.Factor{{Span: all}}}
		for _, c := range append(updateCases(n), nothing) {
			if s.round != nil && loose(c.o) > 1 { // so few bits are too inaccurate
				continue
			}
			if err := s.trajectory(n, &c); err != nil {
				t.Errorf("%d elements, %s %+v: %v", n, c.o.Name(), c.o, err)
				if failures++; failures == 5 {
					t.Fatalf("further cases are left out")
				}
			}
		}
	}
	for _, c := range updateCases(1000) {
		if s.round != nil && loose(c.o) > 1 { // a device of 16 bits may lack the products
			continue
		}
		if err := s.fromMemory(&c); err != nil {
			t.Errorf("numbers in memory, %s %+v: %v", c.o.Name(), c.o, err)
		}
	}
	if err := s.updateMisuse(); err != nil {
		t.Errorf("misuse: %v", err)
	}
}

// start is the parameters with which a case starts.
func (s *suite) start(n int, c *updateCase) []float64 {
	w := s.numbers("w", n)
	clear(w[c.zeroFrom:])
	return w
}

// trajectory makes some steps on the device and by the definition.
func (s *suite) trajectory(n int, c *updateCase) error {
	definition := device.NewReference(op.Float64)
	got, err := updatedOn(s.dev, c.o, s.start(n, c))
	if err != nil {
		return err
	}
	defer got.free()
	want, err := updatedOn(definition, c.o, s.start(n, c))
	if err != nil {
		return err
	}
	defer want.free()
	seen := map[string]float64{}
	for step := 1; step <= c.steps; step++ {
		g := s.numbers(fmt.Sprint("gradient", step), n)
		for _, v := range []*updated{got, want} {
			if err := v.grad.WriteAt64(g, 0); err != nil {
				return err
			}
			if err := v.w.Update(c.update(v, step)); err != nil {
				return err
			}
		}
		if err := s.agree(got, want, c.o, s.rounding()*loose(c.o), seen); err != nil {
			return fmt.Errorf("after step %d: %w", step, err)
		}
		if err := s.expect("gradient", got.grad, g, 0); err != nil {
			return err
		}
	}
	return nil
}

// agree compares the parameters and the state. seen, unless nil, keeps the largest size of an element of each so far,
// to which the tolerance is relative: numbers that were large keep their errors.
func (s *suite) agree(got, want *updated, o device.Optimizer, tolerance float64, seen map[string]float64) error {
	for i, name := range append([]string{"parameters"}, o.State()...) {
		g, w := got.w, want.w
		if i > 0 {
			g, w = got.state[i-1], want.state[i-1]
		}
		x := make([]float64, w.Len())
		if err := w.ReadAt64(x, 0); err != nil {
			return err
		}
		within := tolerance
		if seen != nil {
			now := largest(tensor(op.T(op.Float64, len(x)), x))
			seen[name] = max(seen[name], now)
			within *= seen[name] / now
		}
		if err := s.expect(name, g, x, within); err != nil {
			return err
		}
	}
	return nil
}

// fromMemory compares steps that read their numbers from memory with others, bit for bit.
func (s *suite) fromMemory(c *updateCase) error {
	const n = 1000
	size := s.dtype.Size()
	numbers, err := s.dev.NewMemory(device.NumbersLen * size)
	if err != nil {
		return err
	}
	defer numbers.Free()
	at := device.Region{Memory: numbers, Bytes: device.NumbersLen * size}
	var both [2]*updated
	for i := range both {
		if both[i], err = updatedOn(s.dev, c.o, s.start(n, c)); err != nil {
			return err
		}
		defer both[i].free()
		if err := both[i].grad.WriteAt64(s.numbers("gradient", n), 0); err != nil {
			return err
		}
	}
	for step := 1; step <= c.steps; step++ {
		direct, read := c.update(both[0], step), c.update(both[1], step)
		if err := s.dev.Upload(at, "", op.Tensor{Shape: op.Shape{device.NumbersLen},
			Data: read.Numbers.Values()}); err != nil {
			return err
		}
		read.Numbers, read.Live.Numbers = device.Numbers{Rate: 99, Scale: 99, Step: 99}, at
		if err := errors.Join(both[0].w.Update(direct), both[1].w.Update(read), s.dev.Sync()); err != nil {
			return err
		}
	}
	if err := s.agree(both[1], both[0], c.o, 0, nil); err != nil {
		return err
	}
	u := c.update(both[0], 1)
	u.Live.Numbers = at.Part(0, at.Bytes-size)
	if both[0].w.Update(u) == nil {
		return errors.New("a region that is too small is no error")
	}
	u.Live = device.Live{Numbers: at, Guard: at}
	if both[0].w.Update(u) == nil {
		return errors.New("a guard that is too large is no error")
	}
	return nil
}

// updateMisuse asks for steps that must be errors and leave the parameters alone.
func (s *suite) updateMisuse() error {
	const n = 5
	x := s.numbers("misuse", n)
	v, err := updatedOn(s.dev, optim.AdamW{}, x)
	if err != nil {
		return err
	}
	defer v.free()
	longer, err := s.dev.NewVector(n + 1)
	if err != nil {
		return err
	}
	defer longer.Free()
	good := device.Update{Optimizer: optim.SGD{}, Grad: v.grad, State: v.state[:1],
		Numbers: device.Numbers{Scale: 1, Step: 1}}
	two := good
	two.Optimizer, two.State = optim.AdamW{Beta1: .9, Beta2: .9, Eps: 1}, v.state
	lars := good
	lars.Optimizer = optim.LARS{Trust: 1}
	span := func(off, n int) device.Span { return device.Span{Off: off, Len: n} }
	for what, f := range map[string]func() device.Update{
		"no optimiser":               func() (u device.Update) { u = good; u.Optimizer = nil; return u },
		"no gradient":                func() (u device.Update) { u = good; u.Grad = nil; return u },
		"a longer gradient":          func() (u device.Update) { u = good; u.Grad = longer; return u },
		"a foreign gradient":         func() (u device.Update) { u = good; u.Grad = foreign{}; return u },
		"the parameters as gradient": func() (u device.Update) { u = good; u.Grad = v.w; return u },
		"no state":                   func() (u device.Update) { u = good; u.State = nil; return u },
		"too much state":             func() (u device.Update) { u = good; u.State = v.state; return u },
		"too little state":           func() (u device.Update) { u = two; u.State = v.state[:1]; return u },
		"longer state":               func() (u device.Update) { u = good; u.State = []device.Vector{longer}; return u },
		"foreign state":              func() (u device.Update) { u = good; u.State = []device.Vector{foreign{}}; return u },
		"the parameters as state":    func() (u device.Update) { u = good; u.State = []device.Vector{v.w}; return u },
		"the gradient as state":      func() (u device.Update) { u = good; u.State = []device.Vector{v.grad}; return u },
		"state twice": func() (u device.Update) {
			u = two
			u.State = []device.Vector{v.state[0], v.state[0]}
			return u
		},
		"step 0":             func() (u device.Update) { u = good; u.Numbers.Step = 0; return u },
		"a momentum below 0": func() (u device.Update) { u = good; u.Optimizer = optim.SGD{Momentum: -1}; return u },
		"a beta of 1":        func() (u device.Update) { u = two; u.Optimizer = optim.AdamW{Beta1: 1}; return u },
		"a span without decay past 5": func() (u device.Update) {
			u = good
			u.NoDecay = []device.Span{span(3,
				3)}
			return u
		},
		"a span without decay before 0": func() (u device.Update) {
			u = good
			u.NoDecay = []device.Span{span(-1,
				3)}
			return u
		},
		"a span without decay, negative": func() (u device.Update) {
			u = good
			u.NoDecay = []device.Span{span(3,
				-1)}
			return u
		},
		"spans without decay, unsorted": func() (u device.Update) {
			u = good
			u.NoDecay = []device.Span{span(3, 1),
				span(0, 1)}
			return u
		},
		"spans without decay, overlapped": func() (u device.Update) {
			u = good
			u.NoDecay = []device.Span{span(0, 2),
				span(1, 2)}
			return u
		},
		"a factor past 5": func() (u device.Update) {
			u = good
			u.Factors = []device.Factor{{Span: span(3, 3),
				Rate: 1}}
			return u
		},
		"a factor below 0": func() (u device.Update) {
			u = good
			u.Factors = []device.Factor{{Span: span(3, 1), Rate: -1}}
			return u
		},
		"factors overlapped": func() (u device.Update) {
			u = good
			u.Factors = []device.Factor{{Span: span(0, 2)}, {Span: span(1, 2)}}
			return u
		},
		"a factor of a part of a tensor": func() (u device.Update) {
			u = lars
			u.Tensors, u.Factors = []device.Span{span(0, 5)}, []device.Factor{{Span: span(0, 2), Rate: 1}}
			return u
		},
		"no tensors": func() (u device.Update) { u = lars; return u },
		"tensors with a gap": func() (u device.Update) {
			u = lars
			u.Tensors = []device.Span{span(0, 2),
				span(3, 2)}
			return u
		},
		"tensors that end early": func() (u device.Update) {
			u = lars
			u.Tensors = []device.Span{span(0,
				4)}
			return u
		},
		"tensors that end late": func() (u device.Update) { u = lars; u.Tensors = []device.Span{span(0, 6)}; return u },
		"a tensor that decays in part": func() (u device.Update) {
			u = lars
			u.Tensors, u.NoDecay = []device.Span{span(0, 5)}, []device.Span{span(1, 1)}
			return u
		},
	} {
		if err := v.w.Update(f()); err == nil {
			return fmt.Errorf("%s must be an error", what)
		}
	}
	return s.expect("parameters after errors", v.w, x, 0)
}
