package devicetest

import (
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
)

// memory allocates memories and finds them zero.
func (s *suite) memory(t tester) {
	for _, n := range []int{0, 1, 63, 64, 4097, 1 << 20} {
		m, err := s.dev.NewMemory(n)
		if err != nil {
			t.Errorf("memory of %d bytes: %v", n, err)
			continue
		}
		if m.Bytes() != n {
			t.Errorf("memory of %d bytes says it has %d", n, m.Bytes())
		}
		x := tensor(op.T(op.Uint8, n), slices.Repeat([]float64{7}, n))
		if err := s.dev.Download(x, device.Region{Memory: m, Bytes: n}, ""); err != nil {
			t.Errorf("download of %d bytes: %v", n, err)
		} else if i := slices.IndexFunc(x.Data.([]byte), func(b byte) bool { return b != 0 }); i >= 0 {
			t.Errorf("new memory of %d bytes is not zero at byte %d", n, i)
		}
		m.Free()
	}
}

// layouts uploads tensors and downloads them again.
func (s *suite) layouts(t tester) {
	shapes := []op.Shape{nil, {1}, {17}, {2, 3}, {1000, 33}, {4, 3, 1, 1}, {6, 2, 3, 3}, {8, 3, 7, 7}, {64, 17, 3, 3},
		{1, 33, 5, 1}, {33, 1, 3, 5}, {2, 3, 9, 8}, {2, 64, 7, 7}}
	for _, role := range []device.Role{device.Data, device.Weight} {
		for _, d := range []op.DType{s.dtype, op.Int32, op.Uint8} {
			if role == device.Weight && !d.Float() {
				continue
			}
			for _, shape := range shapes {
				typ := op.Type{DType: d, Shape: shape}
				if err := s.roundTrip(typ, role); err != nil {
					t.Errorf("%v, role %d, layout %q: %v", typ, role, s.dev.Layout(typ, role), err)
				}
			}
		}
	}
}

// roundTrip uploads and downloads a tensor of type t, also through the other floating-point type.
func (s *suite) roundTrip(t op.Type, role device.Role) error {
	p := newProgram()
	r := newRand(t.String())
	x := make([]float64, t.Shape.Size())
	if t.DType.Float() {
		uniform(-1, 1)(r, x)
		for i, a := range []float64{math.Inf(1), math.Copysign(0, -1), 1e-42, 3e38} {
			if 3*i < len(x)-1 {
				x[3*i] = a
			}
		}
	} else {
		integers(0, 255)(r, x)
	}
	src := tensor(t, x)
	v := p.input("x", role, src)
	p.keep(v)
	j, err := describe(s.dev, p, nil)
	if err != nil {
		return err
	}
	if l := s.dev.Layout(t, role); l != j.values[v].Layout {
		return fmt.Errorf("asked again the layout is %q", l)
	}
	for _, pl := range j.placements() {
		b, err := j.bind(pl)
		if err != nil {
			return err
		}
		defer b.memory.Free()
		if err := b.fill(); err != nil {
			return err
		}
		got, err := b.run()
		if err != nil {
			return err
		}
		stored := src
		short := b.values[v].Bytes < t.Bytes()
		if short {
			stored = s.roundedTensor(src)
		}
		if d := unequal(stored, got[0]); d != "" {
			return fmt.Errorf("%s: after upload and download %s", pl.name, d)
		}
		if err := b.untouched(src, !short); err != nil {
			return fmt.Errorf("%s: %w", pl.name, err)
		}
		if t.DType.Float() {
			if err := b.convertedRoundTrip(v, stored); err != nil {
				return fmt.Errorf("%s: %w", pl.name, err)
			}
		}
		if len(x) > 1 {
			part := b.regions[v].Part(0, b.regions[v].Bytes/len(x)*(len(x)-1))
			if s.dev.Upload(part, j.values[v].Layout, src) == nil {
				return fmt.Errorf("%s: upload to a region of %d bytes must fail", pl.name, part.Bytes)
			}
			if s.dev.Download(op.New(t), part, j.values[v].Layout) == nil {
				return fmt.Errorf("%s: download from a region of %d bytes must fail", pl.name, part.Bytes)
			}
		}
	}
	return nil
}

// untouched checks the memory after an upload of x: the guards are whole, and between them, if elements says so, are
// x's elements in some order.
func (b *bound) untouched(x op.Tensor, elements bool) error {
	now, err := b.bytes()
	if err != nil {
		return err
	}
	u := b.buffers[0]
	u.constant = false
	guards := &bound{buffers: []buffer{u}}
	if err := guards.stray(patterned(len(now)), now); err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	if !elements {
		return nil
	}
	stored := op.New(x.Type())
	if err := b.dev.Download(stored, b.regions[0], ""); err != nil {
		return err
	}
	is, want := floats(stored), floats(x)
	slices.Sort(is)
	slices.Sort(want)
	if !slices.Equal(is, want) {
		return fmt.Errorf("the layout does not hold each element once")
	}
	return nil
}

// convertedRoundTrip uploads x from the other floating-point type and downloads it to it.
func (b *bound) convertedRoundTrip(v int, x op.Tensor) error {
	t := x.Type()
	t.DType = map[op.DType]op.DType{op.Float32: op.Float64, op.Float64: op.Float32}[t.DType]
	other := tensor(t, floats(x))
	rounded := tensor(x.Type(), floats(other))
	if err := b.dev.Upload(b.regions[v], b.values[v].Layout, other); err != nil {
		return fmt.Errorf("upload of %v: %w", t, err)
	}
	gotOther, got := op.New(t), op.New(x.Type())
	if err := b.dev.Download(gotOther, b.regions[v], b.values[v].Layout); err != nil {
		return fmt.Errorf("download as %v: %w", t, err)
	}
	if err := b.dev.Download(got, b.regions[v], b.values[v].Layout); err != nil {
		return fmt.Errorf("download: %w", err)
	}
	if d := unequal(other, gotOther); d != "" {
		return fmt.Errorf("uploaded and downloaded as %v %s", t, d)
	}
	if d := unequal(rounded, got); d != "" {
		return fmt.Errorf("uploaded as %v and downloaded %s", t, d)
	}
	return nil
}
