package devicetest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// pipeline tests steps and lanes, and recordings if the device has them.
func (s *suite) pipeline(t tester) {
	_, records := device.As[device.Pipeline](s.dev)
	d := device.Piped(s.dev)
	for _, test := range []struct {
		name string
		run  func(d device.Pipeline) error
		all  bool // runs on each device
	}{
		{"recording", s.recording, false},
		{"recording of failing work", s.badRecording, false},
		{"recording of memory that goes", s.staleRecording, false},
		{"steps", s.steps, true},
		{"guarded steps", s.guardedSteps, true},
		{"lanes", s.lanes, true},
	} {
		if !records && !test.all {
			continue
		}
		if err := test.run(d); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// record records f, which every device can that is a pipeline itself.
func record(d device.Pipeline, f func() error) (device.Recording, error) {
	r, err := d.Record(f)
	if err == nil && r == nil {
		err = errors.New("nothing was recorded")
	}
	return r, err
}

// work is a recording of f, or f itself if nothing is recorded.
func (s *suite) work(d device.Pipeline, f func() error) (run func() error, free func(), err error) {
	if _, records := device.As[device.Pipeline](s.dev); !records {
		return f, func() {}, nil
	}
	r, err := record(d, f)
	if err != nil {
		return nil, nil, err
	}
	return r.Run, r.Free, nil
}

func (s *suite) recording(d device.Pipeline) error {
	v, err := s.vector([]float64{1, 2, 3})
	if err != nil {
		return err
	}
	defer v.Free()
	x, err := s.vector([]float64{1, 0, -1})
	if err != nil {
		return err
	}
	defer x.Free()
	f := func() error { return errors.Join(v.AddScaled(2, x), x.AddScaled(1, x)) }
	if err := f(); err != nil { // for allocations at the first use
		return err
	}
	r, err := record(d, f)
	if err != nil {
		return err
	}
	defer r.Free()
	if err := s.expect("after recording", v, []float64{3, 2, 1}, 0); err != nil {
		return err
	}
	for range 2 {
		if err := r.Run(); err != nil {
			return err
		}
	}
	if err := s.expect("after two runs", v, []float64{15, 2, -11}, 0); err != nil {
		return err
	}
	if err := x.Fill(10); err != nil { // the run reads the present content of memory
		return err
	}
	if err := r.Run(); err != nil {
		return err
	}
	if !r.Valid() {
		return errors.New("the recording is not valid")
	}
	return s.expect("after a third run", v, []float64{35, 22, 9}, 0)
}

func (s *suite) badRecording(d device.Pipeline) error {
	v, err := s.vector([]float64{1, 2})
	if err != nil {
		return err
	}
	defer v.Free()
	mine := errors.New("mine")
	for what, f := range map[string]func() error{
		"an error":    func() error { return mine },
		"an upload":   func() error { return v.WriteAt64([]float64{3}, 0) },
		"a download":  func() error { return v.ReadAt64(make([]float64, 2), 0) },
		"a wait":      d.Sync,
		"another one": func() error { _, err := v.Norm(); return err },
	} {
		r, err := d.Record(func() error { return errors.Join(v.Fill(5), f()) })
		if err == nil || r != nil {
			return fmt.Errorf("%s in a recording is no error", what)
		}
	}
	return s.expect("after failed recordings", v, []float64{1, 2}, 0)
}

func (s *suite) staleRecording(d device.Pipeline) error {
	v, err := s.vector([]float64{1, 2})
	if err != nil {
		return err
	}
	if err := v.Fill(4); err != nil {
		return err
	}
	r, err := record(d, func() error { return v.Fill(5) })
	if err != nil {
		return err
	}
	defer r.Free()
	v.Free()
	if r.Valid() || r.Run() == nil {
		return errors.New("it is still valid")
	}
	return s.dev.Sync()
}

// steps compares steps that read their numbers when they run with others, bit for bit.
func (s *suite) steps(d device.Pipeline) error {
	for _, c := range updateCases(1000) {
		if loose(c.o) > 1 { // a device keeps one program of orthogonal steps, and two vectors take turns here
			continue
		}
		if err := s.step(d, &c); err != nil {
			return fmt.Errorf("%s %+v: %w", c.o.Name(), c.o, err)
		}
	}
	return nil
}

func (s *suite) step(d device.Pipeline, c *updateCase) error {
	const n = 1000
	size := s.dtype.Size()
	numbers, err := d.NewMemory(device.NumbersLen * size)
	if err != nil {
		return err
	}
	defer numbers.Free()
	at := device.Region{Memory: numbers, Bytes: device.NumbersLen * size}
	var v [2]*updated
	for i := range v {
		if v[i], err = updatedOn(d, c.o, s.start(n, c)); err != nil {
			return err
		}
		defer v[i].free()
		if err := v[i].grad.WriteAt64(s.numbers("gradient", n), 0); err != nil {
			return err
		}
		// A first run makes lazy allocations before the step is recorded.
		if err := v[i].w.Update(c.update(v[i], 1)); err != nil {
			return err
		}
	}
	u := c.update(v[0], 1)
	u.Numbers, u.Live.Numbers = device.Numbers{Rate: 99, Scale: 99, Step: 99}, at
	run, free, err := s.work(d, func() error { return v[0].w.Update(u) })
	if err != nil {
		return err
	}
	defer free()
	for step := 2; step < 4; step++ {
		direct := c.update(v[1], step)
		direct.Numbers.Scale /= float64(step)
		if err := d.Upload(at, "", op.Tensor{Shape: op.Shape{device.NumbersLen},
			Data: direct.Numbers.Values()}); err != nil {
			return err
		}
		if err := errors.Join(run(), v[1].w.Update(direct), d.Sync()); err != nil {
			return err
		}
	}
	return s.agree(v[0], v[1], c.o, 0, nil)
}

// guardedSteps checks that a step whose guard is not finite when it runs changes nothing, and that others are made.
func (s *suite) guardedSteps(d device.Pipeline) error {
	for _, c := range updateCases(1000) {
		if loose(c.o) > 1 { // guards are for the loss scale of 16 bits, in which devices may refuse orthogonal steps
			continue
		}
		if err := s.guardedStep(d, &c); err != nil {
			return fmt.Errorf("%s %+v: %w", c.o.Name(), c.o, err)
		}
	}
	return nil
}

func (s *suite) guardedStep(d device.Pipeline, c *updateCase) error {
	const n = 1000
	size := s.dtype.Size()
	memory, err := d.NewMemory((device.NumbersLen + 1) * size)
	if err != nil {
		return err
	}
	defer memory.Free()
	whole := device.Region{Memory: memory, Bytes: memory.Bytes()}
	live := device.Live{Numbers: whole.Part(0, device.NumbersLen*size), Guard: whole.Part(device.NumbersLen*size, size)}
	v, err := updatedOn(d, c.o, s.start(n, c))
	if err != nil {
		return err
	}
	defer v.free()
	if err := v.grad.WriteAt64(s.numbers("gradient", n), 0); err != nil {
		return err
	}
	first := c.update(v, 1)
	if err := errors.Join(v.w.Update(first), d.Upload(live.Numbers, "",
		op.Tensor{Shape: op.Shape{device.NumbersLen}, Data: first.Numbers.Values()})); err != nil {
		return err
	}
	before, err := s.all(v)
	if err != nil {
		return err
	}
	u := c.update(v, 1)
	u.Live = live
	run, free, err := s.work(d, func() error { return v.w.Update(u) })
	if err != nil {
		return err
	}
	defer free()
	for _, guard := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e30} {
		if err := d.Upload(live.Guard, "", op.Tensor{Shape: op.Shape{1}, Data: []float64{guard}}); err != nil {
			return err
		}
		if err := run(); err != nil {
			return err
		}
		after, err := s.all(v)
		if err != nil {
			return err
		}
		if made := !slices.Equal(before, after); made != (guard == -1e30) {
			return fmt.Errorf("guard %g: step made: %v", guard, made)
		}
	}
	return nil
}

// lanes sends numbers through two lanes by turns, as training does, and has a recording add them up.
func (s *suite) lanes(d device.Pipeline) error {
	const n, steps = 1000, 9
	size := s.dtype.Size()
	type side struct {
		device.Lane
		run  func() error
		free func()
	}
	var sides [2]side
	defer func() {
		for _, x := range sides {
			if x.free != nil {
				x.free()
			}
			if x.Lane != nil {
				x.Free()
			}
		}
	}()
	typ := op.T(s.dtype, n)
	bytes := 2 * typ.Bytes()
	for i := range sides {
		l, err := d.NewLane(bytes, bytes)
		if err != nil {
			return err
		}
		sides[i].Lane = l
		if l.Input().Bytes() != bytes || l.Output().Bytes() != bytes {
			return fmt.Errorf("a lane of %d and %d bytes where %d were asked for", l.Input().Bytes(),
				l.Output().Bytes(), bytes)
		}
		// Output's first half is twice the input's first, its second the ReLU of the input's second.
		half := func(m device.Memory, i int) device.Region {
			return device.Region{Memory: m, Offset: i * bytes / 2, Bytes: bytes / 2}
		}
		double, err := s.kernelOf(op.Add{}, typ, half(l.Output(), 0), half(l.Input(), 0), half(l.Input(), 0))
		if err != nil {
			return err
		}
		relu, err := s.kernelOf(op.ReLU{}, typ, half(l.Output(), 1), half(l.Input(), 1))
		if err != nil {
			return err
		}
		f := func() error { return errors.Join(double(), relu(), l.Fetch()) }
		if err := errors.Join(f(), d.Sync()); err != nil { // for allocations at the first use
			return err
		}
		if sides[i].run, sides[i].free, err = s.work(d, f); err != nil {
			return err
		}
	}
	want := func(step, i int) float64 { return float64((step*31+i)%17) - 8 }
	check := func(step int) error {
		m, err := sides[step%2].Results()
		if err != nil {
			return err
		}
		got := make([]float64, 2*n)
		if err := device.DownloadRowMajor(op.Tensor{Shape: op.Shape{2 * n}, Data: got},
			device.Region{Memory: m, Bytes: 2 * n * size}); err != nil {
			return err
		}
		for i, x := range got {
			w := 2 * want(step, i)
			if i >= n {
				w = max(0, w/2)
			}
			if x != w {
				return fmt.Errorf("step %d: number %d is %v, want %v", step, i, x, w)
			}
		}
		return nil
	}
	for step := range steps {
		l := sides[step%2]
		m, err := l.Host()
		if err != nil {
			return err
		}
		x := make([]float64, 2*n)
		for i := range x {
			x[i] = want(step, i)
		}
		if err := device.UploadRowMajor(device.Region{Memory: m, Bytes: 2 * n * size},
			op.Tensor{Shape: op.Shape{2 * n}, Data: x}); err != nil {
			return err
		}
		if err := errors.Join(l.Send(device.Span{Len: 8}, device.Span{Off: 8, Len: bytes - 8}), l.run(),
			l.End()); err != nil {
			return err
		}
		if step > 0 && step != 4 { // results may be left
			if err := check(step - 1); err != nil {
				return err
			}
		}
	}
	if err := check(steps - 1); err != nil {
		return err
	}
	if sides[0].Send(device.Span{Off: bytes, Len: 1}) == nil && d.Sync() == nil {
		return errors.New("a part that is not in the lane is no error")
	}
	return nil
}

// kernelOf binds an op on operands of one type.
func (s *suite) kernelOf(o op.Op, t op.Type, out device.Region, in ...device.Region) (device.Kernel, error) {
	g := &device.Group{Steps: []device.Step{{Name: "layer", Op: o, Out: len(in)}}, Outputs: []int{len(in)}}
	for i := range in {
		g.Steps[0].In = append(g.Steps[0].In, i)
		g.Inputs = append(g.Inputs, i)
	}
	for range len(in) + 1 {
		g.Values = append(g.Values, device.Value{Type: t, Layout: s.dev.Layout(t, device.Data), Bytes: t.Bytes()})
	}
	p, err := s.dev.Describe(g)
	if err != nil {
		return nil, err
	}
	return s.dev.Bind(g, p, device.Args{In: in, Out: []device.Region{out}})
}
